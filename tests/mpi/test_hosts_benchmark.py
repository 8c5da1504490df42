"""The benchmark of reductions between hosts runs, and its sides agree; no figure decides."""

from __future__ import annotations

import subprocess
import sys

from benchmarks import hosts


def test_every_layout_is_measured_against_mpi() -> None:
    done = subprocess.run([sys.executable, hosts.__file__, "--quick"], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-3000:]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in done.stdout.splitlines() if line[:1] == "|"]
    head, _, *measured = rows
    assert head[3:6] == ["npu_shim, ms", "MPI, ms", "ratio"]
    assert [(row[0], int(row[1]), row[2]) for row in measured] == [
        (layout.name, len(layout.servers), size) for layout in hosts.LAYOUTS for size in hosts.QUICK
    ]
    assert all(float(cell) > 0 for row in measured for cell in row[3:])
