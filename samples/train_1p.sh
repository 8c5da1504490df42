#!/usr/bin/env bash
# Trains a migrated sample on one device. All other arguments go to the training
# script:
#
#   bash samples/train_1p.sh digits_session --steps=400 --batch_size=64
#   bash samples/digits_session/train_1p.sh --steps=400      the same
#
# What you may set: ASCEND_DEVICE_ID (default 0), JOB_ID, LOG_DIR (default output/
# in the sample's folder), PYTHON. Without an Ascend card it trains on the CPU.
set -euo pipefail
samples="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
sample="${1:-}"
here="$samples/$sample"
if [ -z "$sample" ] || [ ! -f "$here/expected_npu.py" ]; then
  echo "train_1p.sh: no sample '$sample'. Name one: $(cd "$samples" && echo */expected_npu.py | sed 's,/expected_npu.py,,g')" >&2
  exit 2
fi
shift

export JOB_ID="${JOB_ID:-10087}"
export RANK_ID=0
export RANK_SIZE=1
export ASCEND_DEVICE_ID="${ASCEND_DEVICE_ID:-0}"
unset RANK_TABLE_FILE  # one device needs none, and one left over would mislead

# CANN's own paths, where there is a CANN and its paths are not set yet.
cann=/usr/local/Ascend/ascend-toolkit/set_env.sh
if [ -z "${ASCEND_OPP_PATH:-}" ] && [ -f "$cann" ]; then
  set +u  # that file reads variables which may be unset
  . "$cann"
  set -u
fi

log_dir="${LOG_DIR:-$here/output}"
mkdir -p "$log_dir"
log="$log_dir/train_$ASCEND_DEVICE_ID.log"
echo "device $ASCEND_DEVICE_ID, job $JOB_ID, log $log"

# pipefail makes the script's own exit code the one of this file.
"${PYTHON:-python3}" "$here/expected_npu.py" "$@" 2>&1 | tee "$log"
