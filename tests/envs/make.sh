#!/usr/bin/env bash
# To be sourced, with $root set to the checkout: makes the environments that tests/envs/*.txt describe.
#
#   dir="$(make_env tf215)" || echo "$dir"     the folder of a ready virtual environment, or what is wrong
#
# They are kept in $NPU_SHIM_CACHE, or else in .envs/ of the checkout. collections.pth in each of them lets tests/run.sh
# choose how often Python's garbage collector runs, in every process of the tests.

envs_dir="${NPU_SHIM_CACHE:-$root/.envs}"

say() { printf '%s\n' "$*"; }

python_version_of() {
  case "$1" in
    tf115 | plain_tf115) echo 3.7 ;;
    tf26 | plain_tf26) echo 3.9 ;;
    plain_tf216) echo 3.12 ;;
    tf215 | tf221 | plain_tf215 | plain_tf221 | mpi | mpi_debian | mpich | reports | vendor) echo 3.11 ;;
    *) return 1 ;;
  esac
}

# --- interpreters ------------------------------------------------------------
is_python() {  # PATH VERSION: a pyenv shim may exist and yet not run
  [ "$("$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2> /dev/null)" = "$2" ]
}

pyenv_root() {
  if [ -n "${PYENV_ROOT:-}" ]; then say "$PYENV_ROOT"
  elif command -v pyenv > /dev/null; then pyenv root
  else say "$HOME/.pyenv"
  fi
}

find_python() {  # VERSION -> path of an interpreter, or what is wrong and code 1
  local candidate
  for candidate in "python$1" $(ls -d "$(pyenv_root)/versions/$1".*/bin/python 2> /dev/null | sort -rV) python3 python; do
    if is_python "$candidate" "$1"; then command -v "$candidate"; return; fi
  done
  say "no Python $1: tried python$1, python3 and python on PATH and $1.* in $(pyenv_root)/versions." \
      "Install it ('pyenv install $1', or your distribution's python$1 with its venv module) and run again."
  return 1
}

add_startup() {  # FOLDER: in one that cannot be written, the tests run more slowly
  local packages
  for packages in "$1"/lib/python*/site-packages; do
    cmp -s "$root/tests/envs/collections.pth" "$packages/collections.pth" ||
      cp "$root/tests/envs/collections.pth" "$packages/" 2> /dev/null || true
  done
}

# --- environments ------------------------------------------------------------
# Prints the folder of a ready environment, or what is wrong with code 1;
# progress goes to stderr. The mark .complete is written last, so that an
# interrupted installation is begun anew.
make_env() {  # NAME
  local name=$1 version python key dir
  version="$(python_version_of "$name")"
  python="$(find_python "$version")" || { say "$python"; return 1; }
  key="$({ "$python" -VV; cat "$root/tests/envs/common.txt" "$root/tests/envs/$name."*; } | sha256sum | cut -c1-12)"
  dir="$envs_dir/$name-$key"
  if [ -f "$dir/.complete" ] && [ ! -f "$root/tests/envs/$name.sh" ]; then
    add_startup "$dir"
    say "$dir"
    return
  fi
  mkdir -p "$envs_dir" 2> /dev/null && [ -w "$envs_dir" ] ||
    { say "cannot write to $envs_dir; set NPU_SHIM_CACHE to a folder of yours"; return 1; }
  exec 9> "$envs_dir/$name.lock"
  if command -v flock > /dev/null; then flock 9; fi
  if [ ! -f "$dir/.complete" ]; then
    say "== $name: making $dir with $("$python" -V) ($python)" >&2
    rm -rf "$dir"
    {
      "$python" -m venv "$dir" &&
        "$dir/bin/python" -m pip install -q --disable-pip-version-check -U pip &&
        "$dir/bin/python" -m pip install -q --disable-pip-version-check -r "$root/tests/envs/$name.txt" &&
        touch "$dir/.complete"
    } >&2 9>&- || { say "could not install tests/envs/$name.txt into $dir: see above"; return 1; }
  fi
  if [ -f "$root/tests/envs/$name.sh" ]; then
    bash "$root/tests/envs/$name.sh" "$dir" 9>&- || return 1
  fi
  exec 9>&-
  add_startup "$dir"
  say "$dir"
}
