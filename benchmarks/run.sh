#!/usr/bin/env bash
# Runs the benchmarks, each in the environments whose figures it keeps, and writes what they measure into
# benchmarks/RESULTS.md and results.json. Nothing else should run on the machine meanwhile.
#
#   bash benchmarks/run.sh                        all of them; about half an hour
#   bash benchmarks/run.sh recording profiles     these
#   bash benchmarks/run.sh --env tf115 recording  only in that environment
#   bash benchmarks/run.sh --quick                a look at whether they run: seconds each, nothing is written
#   bash benchmarks/run.sh --list                 their names and environments
#
# The environments are those of tests/run.sh.
set -euo pipefail

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
source "$root/tests/envs/make.sh"

all_tf='tf115 tf26 tf215 tf221'
names=(recording observing cpu_forms predicting tool_throughput tool_growth profiles)

envs_of() {  # NAME: where its figures come from
  case "$1" in
    recording | observing | cpu_forms) echo "$all_tf" ;;
    predicting | tool_throughput | tool_growth) echo tf215 ;;
    profiles) echo vendor ;;
    *) return 1 ;;
  esac
}

usage_error() { say "benchmarks/run.sh: $*" >&2; exit 2; }

chosen=() only= mode=--write
while [ $# -gt 0 ]; do
  case "$1" in
    --env)
      [ $# -ge 2 ] && python_version_of "$2" > /dev/null ||
        usage_error "--env ${2:-} needs the name of an environment: one of $all_tf vendor"
      only=$2
      shift ;;
    --quick) mode=--quick ;;
    --list) for name in "${names[@]}"; do say "$name: $(envs_of "$name")"; done; exit 0 ;;
    -h | --help) sed -n '2,/^set /{/^set /!s/^# \{0,1\}//p;}' "${BASH_SOURCE[0]}"; exit 0 ;;
    *)
      envs_of "$1" > /dev/null || usage_error "$1: no such benchmark; there are ${names[*]}"
      chosen+=("$1") ;;
  esac
  shift
done
[ ${#chosen[@]} -gt 0 ] || chosen=("${names[@]}")

run() {  # NAME ENV: one benchmark in one environment
  local name=$1 env=$2 dir other args=("$mode")
  dir="$(make_env "$env")" || { say "$dir" >&2; return 1; }
  case "$name" in
    tool_throughput | tool_growth)
      if [ "$mode" = --write ]; then
        other="$(make_env tf115)" || { say "$other" >&2; return 1; }
        args+=(--python "$other/bin/python" --python "$dir/bin/python" --packages)
        [ "$name" = tool_growth ] || args+=(--share 60 --larger 10)
      else
        args+=(--corpus "$root/samples")
      fi ;;
  esac
  say "== $name, $env"
  PYTHONPATH="$root:$root/tools" "$dir/bin/python" "$root/benchmarks/$name.py" ${args[@]+"${args[@]}"}
}

failed=()
for name in "${chosen[@]}"; do
  for env in $(envs_of "$name"); do
    if [ -z "$only" ] || [ "$only" = "$env" ]; then
      run "$name" "$env" || failed+=("$name in $env")
    fi
  done
done
if [ ${#failed[@]} -gt 0 ]; then
  printf 'failed: %s\n' "${failed[@]}" >&2
  exit 1
fi
