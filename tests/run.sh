#!/usr/bin/env bash
# Runs the tests, each environment in a virtual environment of its own.
#
#   bash tests/run.sh                    the default environment, tf215
#   bash tests/run.sh --all              every environment of the support matrix
#   bash tests/run.sh --env tf115        that one (may be given several times)
#   bash tests/run.sh --env once         what one environment is enough for, which is tf215's
#   bash tests/run.sh --all --jobs 2     two environments at a time; prints each when it is done
#   bash tests/run.sh -k dropout -x      all other arguments go to pytest
#   bash tests/run.sh tests/ops          only these tests
#
# The environments are made on first use from tests/envs/*.txt and kept in
# $NPU_SHIM_CACHE, or else in .envs/ of the checkout. A change of those files
# makes a new one; the old one may be deleted. The environment "reports" drives
# the tool's reports in a browser and needs a Chromium (tests/envs/reports.sh).
set -euo pipefail

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
source "$root/tests/envs/make.sh"
default_env=tf215
all_envs=(tf215 tf115 tf26 tf221 once reports)  # the longest first, for --jobs
fast_suite=(tests/fast tests/convert)
tool_suites=(tests/convert tests/corpus)  # which need no TensorFlow: once for each Python
same_python=tf221        # as the default environment has
long_tests=(tests/distributed/test_faults.py tests/distributed/test_two_hosts.py tests/samples/test_dropout.py)
long_envs=(tf115 tf215)  # minutes each, for what does not depend on the version: where most users are, and the default
types_suite=tests/types  # in the default environment, which has mypy
once_suite=tests/once    # as "once", in the default environment: public packages from PyPI, fuzzing, benchmarks made there
reports_suite=(tests/browser tests/schemas tests/plots)  # in the environment "reports"

usage_error() { say "tests/run.sh: $*" >&2; exit 2; }

# --- arguments ---------------------------------------------------------------
envs=()
pytest_args=()
own_paths=no
jobs=1
while [ $# -gt 0 ]; do
  case "$1" in
    --all) envs=("${all_envs[@]}") ;;
    --jobs)
      [[ "${2:-}" =~ ^[1-9][0-9]*$ ]] || usage_error "--jobs needs the number of environments to test at a time"
      jobs=$2
      shift ;;
    --env)
      [ $# -ge 2 ] || usage_error "--env needs a name: one of ${all_envs[*]}"
      [ "$2" = once ] || python_version_of "$2" > /dev/null ||
        usage_error "--env $2: no such environment; there are ${all_envs[*]}"
      envs+=("$2")
      shift ;;
    -h | --help) sed -n '2,/^set /{/^set /!s/^# \{0,1\}//p;}' "${BASH_SOURCE[0]}"; exit 0 ;;
    *)
      case "$1" in -*) ;; *) [ ! -e "$root/${1%%::*}" ] || own_paths=yes ;; esac
      case "$1" in tests/browser* | tests/schemas* | tests/plots*) default_env=reports ;; esac
      pytest_args+=("$1") ;;
  esac
  shift
done
if [ ${#envs[@]} -eq 0 ]; then
  envs=("$default_env")
  [ "$own_paths" = yes ] || envs+=(once)
elif [ "$own_paths" = yes ] && [ ${#envs[@]} -gt 1 ]; then
  envs=(${envs[*]/#once})  # the default environment has it all
fi

# --- tests -------------------------------------------------------------------
results="$(mktemp -d "${TMPDIR:-/tmp}/npu_shim_tests.XXXXXX")"
trap 'rm -rf "$results"' EXIT

count() {  # XML ATTRIBUTE -> number in pytest's own result file
  sed -n "s/.*<testsuite [^>]*\b$2=\"\([0-9]*\)\".*/\1/p" "$1" | head -n 1
}

record() {  # PASSED FAILED CODE TEXT: a line for each part, as environments may be tested at the same time
  say "$*" >> "$results/parts"
}

not_run() {  # WHAT WHY: what could not even start counts as one failure
  record 0 1 1 "$1: NOT RUN: $2"
  say "== $1: NOT RUN: $2" >&2
}

run_pytest() {  # NAME DIR PART PATHS...
  local name=$1 dir=$2 part=$3 code=0 log xml bad total failed=0
  shift 3
  log="$results/$name-$part.log" xml="$results/$name-$part.xml"
  say "== $name, $part tests: $("$dir/bin/python" -V)"
  # The tests see the checkout and nothing that the caller may have on PYTHONPATH. Their thousands of processes need not
  # compile it again, as bytecode is kept.
  PYTHONPATH="$root:$root/tools" PYTHONDONTWRITEBYTECODE= "$dir/bin/python" -m pytest --junitxml="$xml" \
    -p no:cacheprovider "$@" ${pytest_args[@]+"${pytest_args[@]}"} 2>&1 | tee "$log" || code=$?
  if [ ! -f "$xml" ]; then
    not_run "$name $part" "pytest ended with code $code before it wrote its results"
    return
  fi
  total="$(count "$xml" tests)"
  bad=$(($(count "$xml" failures) + $(count "$xml" errors)))
  # 5 is "nothing collected": right for one part when -k asks for the other.
  [ "$code" -eq 0 ] || [ "$code" -eq 5 ] || failed=1
  record $((total - bad - $(count "$xml" skipped))) "$bad" "$failed" "$name $part: $(tail -n 1 "$log")"
}

is_for() {  # FOLDER NAME: whether its tests run in an environment
  [ "$2" != "$same_python" ] || case " ${tool_suites[*]} " in *" $1 "*) return 1 ;; esac
}

tensorflow_suite() {  # NAME: every other folder of tests/ which has tests for an environment
  local folder
  for folder in tests/*/; do
    case " ${fast_suite[*]} $types_suite $once_suite ${reports_suite[*]} " in *" ${folder%/} "*) continue ;; esac
    is_for "${folder%/}" "$1" || continue
    [ -z "$(find "$folder" -name 'test_*.py' -print -quit)" ] || say "${folder%/}"
  done
}

without_long() {  # NAME: pytest's arguments that leave out what is not for an environment
  case " ${long_envs[*]} " in *" $1 "*) ;; *) printf -- '--ignore=%s\n' "${long_tests[@]}" ;; esac
}

test_env() {  # NAME: all that is to be run in it
  local name=$1 dir folder fast slow
  if ! dir="$(make_env "${name/#once/$default_env}")"; then
    not_run "$name" "$dir"
  elif [ "$own_paths" = yes ]; then
    run_pytest "$name" "$dir" chosen
  elif [ "$name" = once ]; then
    run_pytest "$name" "$dir" long "$once_suite"
  elif [ "$name" = reports ]; then
    run_pytest "$name" "$dir" browser "${reports_suite[@]}"
  else
    fast=()
    for folder in "${fast_suite[@]}"; do
      ! is_for "$folder" "$name" || fast+=("$folder")
    done
    [ "$name" != "$default_env" ] || fast+=("$types_suite")
    run_pytest "$name" "$dir" fast "${fast[@]}"
    mapfile -t slow < <(tensorflow_suite "$name"; without_long "$name")
    run_pytest "$name" "$dir" tensorflow "${slow[@]}"
  fi
}

cd "$root"
: > "$results/parts"
if [ "$jobs" -gt 1 ]; then
  set -m  # else what runs in the background ignores SIGINT, and so would the tests of it
  trap 'for job in $(jobs -p); do kill -- "-$job"; done; exit 130' INT TERM
fi
for name in "${envs[@]}"; do
  if [ "$jobs" -eq 1 ]; then
    test_env "$name"
  else
    while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do wait -n || true; done
    { test_env "$name" > "$results/$name.out" 2>&1; cat "$results/$name.out"; } < /dev/null &
  fi
done
wait

sum_up() {  # adds all parts
  local passed bad code text
  n_passed=0 n_failed=0 failed=0 summary=()
  while read -r passed bad code text; do
    n_passed=$((n_passed + passed)) n_failed=$((n_failed + bad)) failed=$((failed | code))
    summary+=("$text")
  done < "$results/parts"
}

sum_up
if [ $((n_passed + n_failed)) -eq 0 ]; then
  not_run "${envs[*]}" "no test matches ${pytest_args[*]-}"
  sum_up
fi
say
printf '%s\n' "${summary[@]}"
say "$n_passed passed, $n_failed failed"
exit "$failed"
