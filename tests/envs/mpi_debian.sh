#!/usr/bin/env bash
# Open MPI of the distribution, which the environment "mpi_debian" uses with the mpi4py from PyPI.
#
#   bash tests/envs/mpi_debian.sh DIR       says what is missing and how to get it, and returns 1
#
# tests/run.sh runs it whenever it uses that environment. As root on a system with apt-get it installs Open MPI.
set -euo pipefail

is_open_mpi() { mpirun --version 2> /dev/null | grep -q "Open MPI"; }

if ! is_open_mpi && [ "$(id -u)" = 0 ] && command -v apt-get > /dev/null; then
  echo "== mpi_debian: installing openmpi-bin with apt-get" >&2
  { apt-get update -q && apt-get install -q -y --no-install-recommends openmpi-bin; } >&2 || true
fi
is_open_mpi || {
  echo "no mpirun of Open MPI on the PATH: 'apt-get install openmpi-bin' as root, or your distribution's package, gives one"
  exit 1
}
