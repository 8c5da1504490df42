#!/usr/bin/env bash
# Runs the tests, each environment in a virtual environment of its own.
#
#   bash tests/run.sh                    what a change needs, in the environment tf215: minutes
#   bash tests/run.sh --all              the support matrix, as .ci/run runs it
#   bash tests/run.sh --nightly          the rest: soak tests, public packages, fuzzing, many faults, benchmarks
#   bash tests/run.sh --env tf115        what --all runs in that environment (may be given several times)
#   bash tests/run.sh --suite backends   this suite in all environments of its row (may be given several times)
#   bash tests/run.sh tests/ops          only these tests, in tf215 or in the environments given; with --nightly
#                                        also those that are marked so
#   bash tests/run.sh -k dropout -x      all other arguments go to pytest
#   bash tests/run.sh --all --list       prints which suite runs where, and runs nothing
#
# Three suites run at a time, those that take longest first, and each prints its
# output when it is done: suites of ranks and processes wait for a part of their
# time. --jobs 4 runs four at a time; --jobs 1 shows the output while the tests
# run. The ten slowest tests of each suite are printed, and how long the processors
# were idle. tests/seconds.tsv has the seconds of each suite on one machine;
# --record adds those of this run, and --nightly does so always.
#
# Tests with the mark "nightly" run in the nightly run only. Those with the mark
# "once" run in tf215 only where their suite runs there. With --few-cases=N a test
# of many cases runs with N of them. The nightly run has all.
#
# The environments are made on first use from tests/envs/*.txt and kept in
# $NPU_SHIM_CACHE, or else in .envs/ of the checkout. A change of those files
# makes a new one; the old one may be deleted. The environment "reports" drives
# the tool's reports in a browser and needs a Chromium (tests/envs/reports.sh),
# "mpi_debian" needs the distribution's Open MPI (tests/envs/mpi_debian.sh).
set -euo pipefail

# One suite a line: is it in the default, in which environments --all runs it, in which --nightly does, and its tests.
# Tests that need no TensorFlow run with Python 3.7 (tf115) and 3.11 (tf215, tf221): where the sources ask for a version of
# Python, it is 3.8, 3.9 or 3.11, or a later one than the matrix has, so these two take both ways. With 3.9 (tf26) the suite
# python runs a few of them, and --nightly all.
suites=(
  # suite      default all                      nightly                 tests
  "distributed no      tf215,tf115              tf215,tf115,tf26,tf221  tests/distributed --ignore-glob=*/test_backend_* --ignore=tests/distributed/test_faults.py"
  "ops         no      tf215                    -                       --few-cases=6 tests/ops tests/cpu_kernels --ignore=tests/ops/test_benchmarks.py"
  "shim        no      tf215                    -                       tests/shim --ignore-glob=*/test_benchmarks.py --ignore-glob=*/test_estimator*.py --ignore-glob=*/test_step_loop.py --ignore-glob=*/test_loss_scale_reference.py"
  "shim        yes     -                        -                       --few-cases=4 tests/shim tests/ops --ignore-glob=*/test_benchmarks.py --ignore-glob=*/test_estimator_batches.py --ignore-glob=*/test_estimator_parent.py --ignore-glob=*/test_dropout_mask.py --ignore-glob=*/test_star_import.py --ignore-glob=*/test_recordings.py --ignore-glob=*/test_compiled.py"
  "shim        no      tf115                    -                       --few-cases=2 tests/shim tests/ops --ignore-glob=*/test_benchmarks.py"
  "shim        no      -                        tf215,tf115,tf26,tf221  tests/shim tests/ops --ignore-glob=*/test_benchmarks.py"
  "shim        no      tf26,tf221               -                       --few-cases=1 tests/shim tests/ops tests/cpu_kernels --ignore-glob=*/test_benchmarks.py --ignore-glob=*/test_cudnn_rnn.py --ignore-glob=*/test_estimator*.py --ignore-glob=*/test_step_loop.py --ignore-glob=*/test_loss_scale_reference.py --ignore-glob=*/test_dropout_mask.py --ignore-glob=*/test_deep_potential.py"
  "kernels     no      -                        tf215,tf115,tf26,tf221  tests/cpu_kernels"
  "kernels     yes     tf115                    -                       --few-cases=2 tests/cpu_kernels"
  "backends    no      tf215                    tf215,tf115,tf26,tf221  tests/distributed/test_backend_*.py"
  "smoke       no      tf26                     -                       -m smoke tests/distributed tests/lifted tests/samples tests/cli"
  "smoke       no      tf221                    -                       -m smoke tests/distributed tests/lifted tests/samples"
  "smoke       yes     -                        -                       -m smoke tests/distributed tests/lifted tests/samples tests/cli"
  "convert     yes     tf215                    tf115,tf215,tf26        tests/convert"
  "convert     no      tf115                    -                       --few-cases=2 tests/convert"
  "card        yes     tf215,tf115,tf26,tf221   tf115                   tests/card --ignore=tests/card/test_two_cards.py"
  "two_cards   no      -                        tf115,tf26              tests/card/test_two_cards.py"
  "mpi         no      -                        mpi                     NPU_SHIM_TEST_BACKENDS=mpi tests/mpi/test_ranks.py tests/distributed/test_backend_collectives.py tests/distributed/test_backend_uneven.py tests/distributed/test_backend_random.py"
  "mpi_hosts   no      -                        mpi                     tests/mpi/test_two_hosts.py tests/mpi/test_sample.py"
  "mpi_ranks   no      -                        mpich,mpi_debian        NPU_SHIM_TEST_BACKENDS=mpi tests/mpi/test_ranks.py tests/mpi/test_two_hosts.py tests/distributed/test_backend_collectives.py"
  "mpi_sample  no      -                        mpi_debian              tests/mpi/test_sample.py"
  "cli         no      tf215,tf115              tf215,tf115,tf26,tf221  tests/cli"
  "samples     no      tf215,tf115              tf215,tf115,tf26,tf221  tests/samples tests/migrated tests/lifted"
  "reports     no      reports                  reports                 tests/browser tests/schemas tests/site"
  "corpus      no      tf115                    tf115,tf26,tf215        tests/corpus"
  "fast        no      tf215                    tf115,tf26,tf221        tests/fast"
  "fast        no      tf115                    -                       --few-cases=3 tests/fast"
  "fast        yes     -                        -                       tests/fast --ignore=tests/fast/test_forked_ranks.py --ignore=tests/fast/test_alias.py --ignore=tests/fast/test_rehearse.py --ignore=tests/fast/test_cli_launch.py --ignore=tests/fast/test_run_as_python.py --ignore=tests/fast/test_run_migrated.py"
  "dumps       yes     tf215,tf115              tf215,tf26,tf221        tests/dumps tests/profiles"
  "robustness  no      tf215                    tf115,tf26              tests/robustness"
  "types       yes     tf215                    -                       tests/types"
  "python      no      tf26                     -                       --few-cases=9 tests/convert/test_rules.py tests/convert/test_config.py tests/convert/test_fstrings.py tests/fast/test_run_as_python.py tests/fast/test_cli_doctor.py"
  "rehearsal   no      tf215                    -                       -m smoke tests/rehearsal"
  "defects     no      -                        tf215,tf115,tf26,tf221  tests/rehearsal"
  "blocks      no      tf215,tf115              tf215,tf115             tests/blocks"
  "faults      no      tf215                    tf215,tf115             tests/distributed/test_faults.py"
  "cluster     no      -                        tf215,tf115             tests/cluster/test_slurm.py"
  "slurm_mpi   no      -                        mpi                     tests/cluster/test_slurm_mpi.py"
  "many_faults no      -                        tf215                   NPU_SHIM_FAULTS=200 tests/distributed/test_faults.py"
  "rank_cases  no      -                        tf215,tf115,tf26,tf221  NPU_SHIM_RANK_CASES=all tests/distributed/test_estimator_files.py tests/distributed/test_converted.py tests/distributed/test_strategy.py tests/distributed/test_names.py tests/distributed/test_training.py"
  "rank_sizes  no      -                        tf215,tf115             NPU_SHIM_RANK_CASES=all tests/distributed/test_collective_ops.py tests/distributed/test_threads.py tests/distributed/test_rehearsal.py"
  "benchmarks  no      -                        tf215,tf115,tf26,tf221  tests/shim/test_benchmarks.py tests/ops/test_benchmarks.py"
  "assess      no      -                        tf215,tf115             tests/rehearsal/test_assess_memory.py"
  "vendor      no      -                        vendor                  tests/vendor"
  "once        no      -                        tf215                   tests/once"
  "install     no      -                        tf215                   tests/install"
)

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
source "$root/tests/envs/make.sh"
default_env=tf215
all_envs=(tf215 tf115 tf26 tf221 mpi mpi_debian mpich reports vendor)
suite_names="$(echo $(printf '%s\n' "${suites[@]%% *}" | sort -u))"  # unquoted: one line

usage_error() { say "tests/run.sh: $*" >&2; exit 2; }

# --- arguments ---------------------------------------------------------------
columns=()
wanted_suites=()
envs=()
pytest_args=()
own_paths=no
list=no
record_seconds=no
jobs=3
while [ $# -gt 0 ]; do
  case "$1" in
    --all | --nightly) columns+=("${1#--}") ;;
    --list) list=yes ;;
    --record) record_seconds=yes ;;
    --suite)
      [ $# -ge 2 ] || usage_error "--suite needs a name from the table in tests/run.sh"
      case " $suite_names " in *" $2 "*) ;; *) usage_error "--suite $2: no such suite; there are $suite_names" ;; esac
      wanted_suites+=("$2")
      shift ;;
    --jobs)
      [[ "${2:-}" =~ ^[1-9][0-9]*$ ]] || usage_error "--jobs needs the number of suites to run at a time"
      jobs=$2
      shift ;;
    --env)
      [ $# -ge 2 ] || usage_error "--env needs a name: one of ${all_envs[*]}"
      case " ${all_envs[*]} " in *" $2 "*) ;; *) usage_error "--env $2: no such environment; there are ${all_envs[*]}" ;; esac
      envs+=("$2")
      shift ;;
    -h | --help) sed -n '2,/^set /{/^set /!s/^# \{0,1\}//p;}' "${BASH_SOURCE[0]}"; exit 0 ;;
    *)
      case "$1" in -*) ;; *) [ ! -e "$root/${1%%::*}" ] || own_paths=yes ;; esac
      case "$1" in tests/browser* | tests/schemas* | tests/site*) default_env=reports ;; tests/mpi*) default_env=mpi ;; tests/vendor*) default_env=vendor ;; esac
      pytest_args+=("$1") ;;
  esac
  shift
done

# --- what is to be run -------------------------------------------------------
cd "$root"
chosen=()  # "COLUMN ENVIRONMENT SUITE TESTS..."

choose() {  # COLUMN: the suites of that column, in the environments that are wanted
  local row suite default all nightly tests column env in_tf215=" "
  for row in "${suites[@]}"; do
    read -r suite default all _ <<< "$row"
    case ",$all," in *,tf215,*) in_tf215+="$suite " ;; esac
  done
  for row in "${suites[@]}"; do
    read -r suite default all nightly tests <<< "$row"
    case " ${wanted_suites[*]-} " in "  " | *" $suite "*) ;; *) continue ;; esac
    case "$1" in all) column=$all ;; nightly) column=$nightly ;; *) column=${default/yes/$default_env} ;; esac
    for env in ${column//,/ }; do
      case " ${envs[*]-} " in "  " | *" $env "*) ;; *) continue ;; esac
      case "$env" in - | no) continue ;; esac
      if [ "$1" = all ] && [ "$env" != tf215 ] && [[ "$in_tf215" = *" $suite "* ]]; then
        chosen+=("not_once $env $suite $tests")
      else
        chosen+=("$1 $env $suite $tests")
      fi
    done
  done
}

if [ "$own_paths" = yes ]; then
  [ ${#wanted_suites[@]} -eq 0 ] || usage_error "--suite runs the paths of its row; leave out either --suite or the paths"
  if [ ${#columns[@]} -gt 0 ] && [ ${#envs[@]} -eq 0 ]; then envs=(tf215 tf115 tf26 tf221); fi
  for env in ${envs[@]-$default_env}; do chosen+=("${columns[0]-default} $env chosen"); done
elif [ ${#columns[@]} -gt 0 ]; then
  for column in "${columns[@]}"; do choose "$column"; done
elif [ ${#wanted_suites[@]} -gt 0 ]; then
  choose all
  choose nightly
elif [ ${#envs[@]} -gt 0 ]; then
  choose all
else
  choose default
fi
[ ${#chosen[@]} -gt 0 ] || usage_error "no suite of that name or column runs in ${envs[*]-}; see the table in tests/run.sh"

seconds_of() {  # COLUMN ENVIRONMENT SUITE: as last measured, in --all if never in that column; 999 if never
  awk -F '\t' -v column="${1/not_once/all}" -v env="$2" -v suite="$3" \
    '$3 == env && $4 == suite { seconds[$2] = $5 }
    END { print column in seconds ? seconds[column] : "all" in seconds ? seconds["all"] : 999 }' tests/seconds.tsv
}

mapfile -t chosen < <(for each in "${chosen[@]}"; do
  read -r column env suite _ <<< "$each"
  say "$(seconds_of "$column" "$env" "$suite") $each"
done | sort -k1,1nr -s | cut -d ' ' -f 2-)
if [ "$list" = yes ]; then
  printf '%s\n' "${chosen[@]#* }"
  exit
fi

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

run_suite() {  # FOLDER COLUMN ENVIRONMENT SUITE TESTS...
  local dir=$1 column=$2 name=$3 suite=$4 code=0 log xml bad total failed=0 started=$SECONDS marks
  shift 4
  case "${1:-}" in [A-Z]*=*) export "$1"; shift ;; esac
  case "$column" in nightly) marks="" ;; not_once) marks="not nightly and not once" ;; *) marks="not nightly" ;; esac
  case "${1:-}" in -m) marks="$2${marks:+ and $marks}"; shift 2 ;; esac
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
  printf '%s\t%s\t%s\t%s\t%d\t%s\t%d\n' "$(date +%F)" "${column/not_once/all}" "$name" "$suite" $((SECONDS - started)) \
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
  read -r column name suite tests <<< "$each"
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
    (run_suite "${made[$name]}" "$column" "$name" "$suite" $tests)  # unquoted: words and patterns
  else
    while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do wait -n || true; done
    say "== $name, $suite tests: started"
    { run_suite "${made[$name]}" "$column" "$name" "$suite" $tests > "$results/$column-$name-$suite.out" 2>&1
      cat "$results/$column-$name-$suite.out"; } < /dev/null &
  fi
done
wait
idle="$(echo $before $(processors) | awk 'NF >= 20 { half = int(NF / 2)
  for (k = 1; k <= 8; k++) all += $(half + k) - $k
  printf ", processors idle %d %%", 100 * ($(half + 4) + $(half + 5) - $4 - $5) / all }')"
case " ${columns[*]-} " in *" nightly "*) record_seconds=yes ;; esac
if [ "$record_seconds" = yes ] && [ -f "$results/seconds" ]; then cat "$results/seconds" >> tests/seconds.tsv; fi

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
