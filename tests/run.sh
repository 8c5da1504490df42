#!/usr/bin/env bash
# Runs the tests, each environment in a virtual environment of its own.
#
#   bash tests/run.sh                    what a change needs, in the environment tf215: minutes
#   bash tests/run.sh --all              the support matrix, as .ci/run runs it
#   bash tests/run.sh --nightly          the rest: soak tests, public packages, fuzzing, many faults, benchmarks
#   bash tests/run.sh --env tf115        what --all runs in that environment (may be given several times)
#   bash tests/run.sh --suite samples    this suite in all environments of its row (may be given several times)
#   bash tests/run.sh tests/ops          only these tests, in tf215 or in the environments given; with --nightly
#                                        also those that are marked so
#   bash tests/run.sh -k dropout -x      all other arguments go to pytest
#   bash tests/run.sh --all --list       prints which suite runs where, and runs nothing
#
# Three suites run at a time, those that take longest first, and each prints its
# output when it is done: suites of ranks and processes wait for a part of their
# time. --jobs 4 runs four at a time; --jobs 1 shows the output while the tests
# run. The ten slowest tests of each suite are printed, and how long the processors
# were idle. tests/seconds.tsv has the last seconds of each suite on one machine;
# --record writes those of this run, and --nightly does so always.
#
# tests/suites.py has a row for each suite: its tests, and where they run. The marks
# of tests (pyproject.toml) say which run there: "nightly" in the nightly run only,
# "slow" not in the default, "once" in tf215 only, "once_tf115" in tf115 only
# and "twice" in both, where their suite runs there by day. With --few-cases=N a
# test of many cases runs with N of them. The nightly run has all.
#
# The environments are made on first use from tests/envs/*.txt and kept in
# $NPU_SHIM_CACHE, or else in .envs/ of the checkout. A change of those files
# makes a new one; the old one may be deleted. The environment "reports" drives
# the tool's reports in a browser and needs a Chromium (tests/envs/reports.sh),
# "mpi_debian" needs the distribution's Open MPI (tests/envs/mpi_debian.sh).
set -euo pipefail

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
source "$root/tests/envs/make.sh"

# tests/suites.py has the table of the suites, and plans what runs.
suites() {
  local python=python3 version
  for version in 3.11 3.9 3.7; do
    if "$python" -V > /dev/null 2>&1; then "$python" "$root/tests/suites.py" "$@"; return; fi
    python="$(find_python "$version")" || true
  done
  say "tests/run.sh: no python3 on PATH" >&2
  return 1
}

usage_error() { say "tests/run.sh: $*" >&2; exit 2; }

# --- arguments ---------------------------------------------------------------
plan=()
pytest_args=()
list=no
record_seconds=no
jobs=3
while [ $# -gt 0 ]; do
  case "$1" in
    --all) plan+=(--column all) ;;
    --nightly) plan+=(--column nightly) record_seconds=yes ;;
    --list) list=yes ;;
    --record) record_seconds=yes ;;
    --suite | --env)
      [ $# -ge 2 ] || usage_error "$1 needs a name from the table in tests/suites.py"
      plan+=("$1" "$2")
      shift ;;
    --jobs)
      [[ "${2:-}" =~ ^[1-9][0-9]*$ ]] || usage_error "--jobs needs the number of suites to run at a time"
      jobs=$2
      shift ;;
    -h | --help) sed -n '2,/^set /{/^set /!s/^# \{0,1\}//p;}' "${BASH_SOURCE[0]}"; exit 0 ;;
    *)
      case "$1" in -*) ;; *) [ ! -e "$root/${1%%::*}" ] || plan+=(--path "$1") ;; esac
      pytest_args+=("$1") ;;
  esac
  shift
done

# --- what is to be run -------------------------------------------------------
cd "$root"
planned="$(suites plan ${plan[@]+"${plan[@]}"})" || exit
if [ "$list" = yes ]; then
  cut -f 2,3,6 <<< "$planned" | tr '\t' ' ' | sed 's/ $//'
  exit
fi
mapfile -t chosen <<< "$planned"  # COLUMN ENVIRONMENT SUITE VARIABLE MARKS ARGUMENTS

# --- tests -------------------------------------------------------------------
processors() { sed -n 's/^cpu  *//p' /proc/stat 2> /dev/null || true; }  # ticks: user, nice, system, idle, waiting ...

results="$(mktemp -d "${TMPDIR:-/tmp}/npu_shim_tests.XXXXXX")"
trap 'rm -rf "$results"' EXIT
: > "$results/parts"

count() {  # XML ATTRIBUTE -> number in pytest's own result file
  sed -n "s/.*<testsuite [^>]*\b$2=\"\([0-9]*\)\".*/\1/p" "$1" | head -n 1
}

record() {  # PASSED FAILED CODE TEXT: a line for each suite, as several run at the same time
  say "$*" >> "$results/parts"
}

not_run() {  # WHAT WHY: what could not even start counts as one failure
  record 0 1 1 "$1: NOT RUN: $2"
  say "== $1: NOT RUN: $2" >&2
}

run_suite() {  # FOLDER COLUMN ENVIRONMENT SUITE VARIABLE MARKS ARGUMENTS...
  local dir=$1 column=$2 name=$3 suite=$4 variable=$5 marks=$6 code=0 log xml bad total failed=0 started=$SECONDS
  shift 6
  if [ "$variable" != - ]; then export "$variable"; fi
  # A fifth of the processor time is Python's garbage collector, which looks through TensorFlow's modules again and again.
  # By day it runs seldom; by night as often as for users.
  # oneDNN's pass over each graph of TensorFlow 2.15 and 2.21 takes a tenth, and the threads with which NumPy multiplies
  # small matrices another one while they wait for each other; users and the nightly run have both.
  [ "$column" = nightly ] || export NPU_SHIM_TEST_COLLECTIONS="100000 50 100" TF_ENABLE_ONEDNN_OPTS=0 OPENBLAS_NUM_THREADS=1
  log="$results/$column-$name-$suite.log" xml="$results/$column-$name-$suite.xml"
  say "== $name, $suite tests: $("$dir/bin/python" -V)"
  # The tests see the checkout and nothing that the caller may have on PYTHONPATH. Their thousands of processes need not
  # compile it again: bytecode is kept where the checkout can be written.
  PYTHONPATH="$root:$root/tools" PYTHONDONTWRITEBYTECODE= "$dir/bin/python" -m pytest --junitxml="$xml" \
    -p no:cacheprovider --durations=10 ${marks:+-m "$marks"} "$@" ${pytest_args[@]+"${pytest_args[@]}"} 2>&1 | tee "$log" || code=$?
  if [ ! -f "$xml" ]; then
    not_run "$name $suite" "pytest ended with code $code before it wrote its results"
    return
  fi
  total="$(count "$xml" tests)"
  bad=$(($(count "$xml" failures) + $(count "$xml" errors)))
  # 5 is "nothing collected": right for one suite when -k asks for another one.
  [ "$code" -eq 0 ] || [ "$code" -eq 5 ] || failed=1
  times > "$log.times"  # the second line: of the processes that this shell has waited for
  printf '%s\t%s\t%s\t%s\t%d\t%s\t%d\n' "$(date +%F)" "$column" "$name" "$suite" $((SECONDS - started)) \
    "$(sed '1d; s/[ms]/ /g' "$log.times" | awk '{ printf "%d", 60 * $1 + $2 + 60 * $3 + $4 }')" "$total" >> "$results/seconds"
  record $((total - bad - $(count "$xml" skipped))) "$bad" "$failed" "$name $suite: $(tail -n 1 "$log" | tr -d =)"
}

if [ "$jobs" -gt 1 ]; then
  set -m  # else what runs in the background ignores SIGINT, and so would the tests of it
  trap 'for job in $(jobs -p); do kill -- "-$job"; done; exit 130' INT TERM
fi
before="$(processors)"
declare -A made=()  # the folder of each environment; empty where it could not be made
for each in "${chosen[@]}"; do
  # With tabs read would skip the empty fields.
  IFS=$'\x1f' read -r column name suite variable marks arguments <<< "${each//$'\t'/$'\x1f'}"
  if [ -z "${made[$name]+known}" ]; then
    if dir="$(make_env "$name")"; then
      made[$name]=$dir
    else
      not_run "$name" "$dir"
      made[$name]=
    fi
  fi
  [ -n "${made[$name]}" ] || continue
  if [ "$jobs" -eq 1 ] || [ ${#chosen[@]} -eq 1 ]; then
    (run_suite "${made[$name]}" "$column" "$name" "$suite" "$variable" "$marks" $arguments)  # unquoted: words and patterns
  else
    while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do wait -n || true; done
    say "== $name, $suite tests: started"
    { run_suite "${made[$name]}" "$column" "$name" "$suite" "$variable" "$marks" $arguments > "$results/$column-$name-$suite.out" 2>&1
      cat "$results/$column-$name-$suite.out"; } < /dev/null &
  fi
done
wait
idle="$(echo $before $(processors) | awk 'NF >= 20 { half = int(NF / 2)
  for (k = 1; k <= 8; k++) all += $(half + k) - $k
  printf ", processors idle %d %%", 100 * ($(half + 4) + $(half + 5) - $4 - $5) / all }')"
if [ "$record_seconds" = yes ] && [ -f "$results/seconds" ]; then suites record "$results/seconds"; fi

sum_up() {  # adds all suites
  local passed bad code text
  n_passed=0 n_failed=0 failed=0 summary=()
  while read -r passed bad code text; do
    n_passed=$((n_passed + passed)) n_failed=$((n_failed + bad)) failed=$((failed | code))
    summary+=("$text")
  done < "$results/parts"
}

sum_up
if [ $((n_passed + n_failed)) -eq 0 ]; then
  not_run "tests/run.sh" "no test matches ${pytest_args[*]-}"
  sum_up
fi
say
printf '%s\n' "${summary[@]}"
say "all in $SECONDS s$idle"
say "$n_passed passed, $n_failed failed"
exit "$failed"
