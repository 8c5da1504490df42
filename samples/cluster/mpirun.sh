#!/usr/bin/env bash
#
# Trains a migrated script with mpirun of Open MPI, one process for each rank:
#
#   bash samples/cluster/mpirun.sh samples/digits_horovod/expected_npu.py --steps=400 --model_dir=/shared/digits
#   HOSTS=node1:8,node2:8 bash samples/cluster/mpirun.sh train.py      # 16 ranks of two hosts, which mpirun reaches by ssh
#
# The folder is the same on each host, such as a shared one. If a rank fails, mpirun ends the others. What you may set:
# HOSTS (default localhost:4), PYTHON (default python3), CANN (the environment script of CANN, on each host).
set -euo pipefail
[ $# -gt 0 ] || { echo "mpirun.sh: name the script to train: mpirun.sh train.py --steps=100" >&2; exit 2; }
hosts="${HOSTS:-localhost:4}"
[[ "$hosts" =~ ^[^:,]+:[0-9]+(,[^:,]+:[0-9]+)*$ ]] || { echo "mpirun.sh: HOSTS=$hosts is not HOST:RANKS,HOST:RANKS ..." >&2; exit 2; }
python="${PYTHON:-python3}"
ranks=$((0 $(sed -E 's/[^:,]+:([0-9]+),?/+ \1 /g' <<< "$hosts")))

# With NPUs: a rank table of these hosts, which mpirun gathers from each host's hccn.conf.
cann="${CANN:-/usr/local/Ascend/ascend-toolkit/set_env.sh}"
table=()
if [ -f "$cann" ]; then
  table=("RANK_TABLE_FILE=$PWD/rank_table.json")
  (
    set +u  # that file reads variables that may be unset
    . "$cann"
    "$python" -m npu_shim ranktable make --mpi --hosts "$hosts" --force -o "${table[0]#*=}"
  )
fi

# Each rank gets CANN's paths, if its host has CANN. Ranks are numbered host by host, as in the rank table.
with_cann='[ ! -f "$0" ] || . "$0"; exec "$@"'
exec mpirun -np "$ranks" --host "$hosts" --map-by slot --bind-to none \
  bash -c "$with_cann" "$cann" env ${table[@]+"${table[@]}"} "$python" "$@"
