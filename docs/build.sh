#!/usr/bin/env bash
# Make the documentation as a site, from docs/ and the code.
#
#   bash docs/build.sh [FOLDER]     into FOLDER, or else build/site
#   bash docs/build.sh serve        show it at http://127.0.0.1:8000, and anew after each change
#   bash docs/build.sh serve 8001   the same with another port
#   bash docs/build.sh release v1.2.3 [FOLDER]   that of a tag into FOLDER/1.2.3, or else build/versions/1.2.3, with a
#                                   switch to the other versions in the folder
#
# The environment "reports" of the tests has mkdocs, and the Chromium that takes the screenshots.
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
source "$root/tests/envs/make.sh"
dir="$(make_env reports)" || { say "$dir" >&2; exit 1; }
cd "$root"
export NO_MKDOCS_2_WARNING=1 # an advertisement
case "${1:-build/site}" in
  serve)
    port="${2:-8000}"
    "$dir/bin/python" -c 'import socket, sys; socket.create_server(("127.0.0.1", int(sys.argv[1])))' "$port" 2> /dev/null ||
      { say "docs/build.sh: port $port is not free. Name another one, as in: bash docs/build.sh serve 8001" >&2; exit 1; }
    exec "$dir/bin/mkdocs" serve --dev-addr "127.0.0.1:$port" ;;
  release)
    [ $# -ge 2 ] || { say "docs/build.sh: release needs a tag, as in: bash docs/build.sh release v1.2.3" >&2; exit 1; }
    exec "$dir/bin/python" docs/site_versions.py "$2" "$(realpath -m "${3:-build/versions}")" ;;
  *) exec "$dir/bin/mkdocs" build --strict --site-dir "$(realpath -m "${1:-build/site}")" ;;
esac
