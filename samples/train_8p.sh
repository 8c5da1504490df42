#!/usr/bin/env bash
# Trains a sample on eight devices of this host. All other arguments go to the
# training script, which is the sample's distributed_npu.py, or its expected_npu.py
# where the migrated script already trains on several devices:
#
#   bash samples/train_8p.sh digits_session --steps=400
#   bash samples/digits_session/train_8p.sh --steps=400      the same
#   RANK_SIZE=2 bash samples/train_8p.sh digits_session
#
# What you may set: RANK_SIZE (1, 2, 4 or 8), RANK_TABLE_FILE (default: that of
# samples/ranktables/ for so many devices; on Ascend cards, one with their
# addresses), JOB_ID, LOG_DIR (default output/ in the sample's folder), PYTHON.
# Without Ascend cards it trains in as many processes on the CPU.
set -uo pipefail
samples="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
sample="${1:-}"
here="$samples/$sample"
if [ -z "$sample" ] || [ ! -f "$here/expected_npu.py" ]; then
  echo "train_8p.sh: no sample '$sample'. Name one: $(cd "$samples" && echo */expected_npu.py | sed 's,/expected_npu.py,,g')" >&2
  exit 2
fi
shift
script="$here/distributed_npu.py"
[ -f "$script" ] || script="$here/expected_npu.py"

export RANK_SIZE="${RANK_SIZE:-8}"
export JOB_ID="${JOB_ID:-10087}"
export RANK_TABLE_FILE="${RANK_TABLE_FILE:-$samples/ranktables/rank_table_${RANK_SIZE}p.json}"
if [ ! -f "$RANK_TABLE_FILE" ]; then
  echo "train_8p.sh: no rank table $RANK_TABLE_FILE; npu-shim ranktable make writes one" >&2
  exit 2
fi

# CANN's own paths, where there is a CANN and its paths are not set yet.
cann=/usr/local/Ascend/ascend-toolkit/set_env.sh
if [ -z "${ASCEND_OPP_PATH:-}" ] && [ -f "$cann" ]; then
  set +u  # that file reads variables which may be unset
  . "$cann"
  set -u
fi

# Each rank gets its share of the processors, if there is one for each.
cores="$(nproc)"
log_dir="${LOG_DIR:-$here/output}"
pids=()
trap 'kill "${pids[@]}" 2> /dev/null; wait; exit 130' INT TERM
for ((RANK_ID = 0; RANK_ID < RANK_SIZE; RANK_ID++)); do
  export RANK_ID
  export ASCEND_DEVICE_ID="$RANK_ID"
  bind=()
  if [ "$cores" -ge "$RANK_SIZE" ] && command -v taskset > /dev/null; then
    bind=(taskset -c "$((RANK_ID * cores / RANK_SIZE))-$(((RANK_ID + 1) * cores / RANK_SIZE - 1))")
  fi
  mkdir -p "$log_dir/$ASCEND_DEVICE_ID"
  ${bind[@]+"${bind[@]}"} "${PYTHON:-python3}" "$script" "$@" \
    > "$log_dir/$ASCEND_DEVICE_ID/train_$ASCEND_DEVICE_ID.log" 2>&1 &
  pids+=("$!")
done
echo "job $JOB_ID: $RANK_SIZE ranks, logs in $log_dir/*/train_*.log"

# The first rank that fails ends the others, and its exit code is that of this file.
code=0
for _ in "${pids[@]}"; do
  wait -n || { code=$?; kill "${pids[@]}" 2> /dev/null; break; }
done
wait
tail -n 3 "$log_dir/0/train_0.log"
exit "$code"
