#!/usr/bin/env bash
# Migrates five ordinary TensorFlow scripts and trains original and migrated
# script side by side on this machine's CPU. Needs Python 3.11 with pip; makes
# .venv/ in the checkout and writes only there and to build/.
#
#   bash samples/quickstart.sh
#   bash samples/quickstart.sh digits_session     only this sample
#   PYTHON=/path/to/python3.11 bash samples/quickstart.sh
set -euo pipefail

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
venv="$root/.venv"
mark="$venv/.npu_shim_quickstart"   # this .venv is ours: may be made anew
stamp="$venv/.npu_shim_installed"   # what is installed in it, written last

fail() { printf 'samples/quickstart.sh: %s\n' "$*" >&2; exit 1; }

case "${1:-}" in
  -h | --help) sed -n '2,/^set /{/^set /!s/^# \{0,1\}//p;}' "${BASH_SOURCE[0]}"; exit 0 ;;
esac

# --- an interpreter which the samples' TensorFlow exists for ------------------
version_of() { "$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>&1; }

python="${PYTHON:-python3.11}"
if [ -z "${PYTHON:-}" ] && ! version_of "$python" > /dev/null; then
  for other in python3 python; do  # Python 3.11 by another name
    if [ "$(version_of "$other")" = 3.11 ]; then python="$other"; break; fi
  done
fi
if ! version="$(version_of "$python")"; then
  fail "cannot run '$python': $version
Python 3.11 is needed. Install it (Debian, Ubuntu: apt install python3.11 python3.11-venv;
or pyenv install 3.11), or name another one: PYTHON=/path/to/python3.11 bash samples/quickstart.sh"
fi
case "$version" in
  3.7 | 3.8 | 3.9 | 3.10 | 3.11) ;;
  *) fail "'$python' is Python $version; tf.estimator, which one sample uses, is in TensorFlow up
to 2.15 and that runs on Python 3.7 to 3.11. Give one of these:
PYTHON=/path/to/python3.11 bash samples/quickstart.sh" ;;
esac

# --- .venv with the package, renewed when the interpreter or the source changes
source_hash() {
  (cd "$root" && "$python" -VV && find setup.py pyproject.toml npu_shim tools -type f \
    ! -name '*.pyc' -print0 | sort -z | xargs -0 sha256sum) | sha256sum | cut -d' ' -f1
}

begin=$SECONDS
wanted="$(source_hash)"
if [ ! -f "$stamp" ] || [ "$(cat "$stamp")" != "$wanted" ]; then
  if [ "$(version_of "$venv/bin/python")" != "$version" ] ||
    ! "$venv/bin/python" -m pip --version > /dev/null 2>&1; then
    [ ! -e "$venv" ] || [ -f "$mark" ] || [ -z "$(ls -A "$venv")" ] ||
      fail "$venv exists, was not made by this script and is not an environment of
Python $version with pip. Move it away and run this again."
    printf 'Making %s with Python %s\n' "$venv" "$version"
    rm -rf "$venv"
    mkdir "$venv"
    touch "$mark"  # first of all: a half-made environment is ours, too
    "$python" -m venv "$venv" || fail "could not make $venv: see above
(on Debian and Ubuntu the package python$version-venv is needed)"
  fi
  rm -f "$stamp"
  printf 'Installing npu_shim and TensorFlow (about 0.6 GB to download the first time)\n'
  # A copy is installed: building in the checkout would leave build/lib/ behind.
  copy="$(mktemp -d "${TMPDIR:-/tmp}/npu_shim_source.XXXXXX")"
  trap 'rm -rf "$copy"' EXIT
  (cd "$root" && for name in setup.py pyproject.toml README.md LICENSE npu_shim tools; do
    [ ! -e "$name" ] || cp -R "$name" "$copy"
  done)
  "$venv/bin/python" -m pip install --disable-pip-version-check --progress-bar off \
    --upgrade-strategy only-if-needed "$copy" 'tensorflow>=1.15.5,<2.16' 'scikit-learn>=0.24' 2>&1 | tee "$venv/install.log" |
    sed -un 's/^ *Downloading /  downloading /p' || {
    tail -n 15 "$venv/install.log" >&2
    fail "could not install the package into $venv; all of pip's output is in $venv/install.log.
Is there a network? Run this again when it is mended: nothing is lost."
  }
  printf '%s' "$wanted" > "$stamp"
  printf 'Installed in %d s\n' "$((SECONDS - begin))"
fi

cd "$root"
"$venv/bin/python" -m samples.compare "$@"
printf 'Total: %d s\n' "$((SECONDS - begin))"
