#!/usr/bin/env bash
#SBATCH --job-name=train
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=4
#SBATCH --time=01:00:00
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=slurm-%j.log
#
# Trains a migrated script as a job of Slurm, one task for each rank:
#
#   sbatch samples/cluster/slurm.sh samples/digits_horovod/expected_npu.py --steps=400 --model_dir=/shared/digits
#   sbatch --nodes=2 --ntasks-per-node=8 --gres=npu:8 samples/cluster/slurm.sh train.py      # 16 NPUs, if the site's gres is npu
#
#   SLURM_MPI_TYPE=pmix sbatch --nodes=2 --ntasks-per-node=4 samples/cluster/slurm.sh train.py   # 2 nodes without NPUs, Open MPI
#
# A rank that fails ends the job, which starts again, at most MAX_RESTARTS times (default 3); the script continues from
# its last checkpoint. What you may set: MAX_RESTARTS, PYTHON (default python3), CANN (the environment script of CANN).
set -uo pipefail
[ $# -gt 0 ] || { echo "slurm.sh: name the script to train: sbatch slurm.sh train.py --steps=100" >&2; exit 2; }
[ -n "${SLURM_JOB_ID:-}" ] || { echo "slurm.sh: not a job of Slurm. Submit it with sbatch." >&2; exit 2; }

# With NPUs: CANN's paths, and a rank table of this allocation, which srun gathers from each node's hccn.conf.
cann="${CANN:-/usr/local/Ascend/ascend-toolkit/set_env.sh}"
if [ -f "$cann" ]; then
  set +u  # that file reads variables that may be unset
  . "$cann"
  set -u
  export RANK_TABLE_FILE="$PWD/rank_table_$SLURM_JOB_ID.json"
  "${PYTHON:-python3}" -m npu_shim ranktable make --slurm --force -o "$RANK_TABLE_FILE" || exit
fi

# Without NPUs: the ranks train on the processors, with the variables of srun. Several nodes need its type of MPI.
srun --kill-on-bad-exit=1 "${PYTHON:-python3}" "$@" && exit
code=$?
# A job that is cancelled or over its time is not RUNNING here.
if [ "${SLURM_RESTART_COUNT:-0}" -lt "${MAX_RESTARTS:-3}" ] && scontrol show job "$SLURM_JOB_ID" | grep -q JobState=RUNNING; then
  echo "slurm.sh: the job failed with code $code and starts again"
  scontrol requeue "$SLURM_JOB_ID"
fi
exit "$code"
