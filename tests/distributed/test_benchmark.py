"""The benchmark of collectives runs, and its engines agree with its baseline; what it measures decides nothing."""
from __future__ import annotations

import pathlib
import subprocess
import sys

from tests.distributed.test_training import environment


def test_it_runs_and_all_engines_come_to_the_same_sums(repo_root: pathlib.Path) -> None:
    done = subprocess.run([sys.executable, str(repo_root / 'benchmarks' / 'collectives.py'), '--quick'], env=environment(),
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True)
    assert done.returncode == 0, done.stdout[-3000:]
    rows = [line.split(' | ') for line in done.stdout.splitlines() if line.startswith(('| 2 |', '| 4 |'))]
    assert [(row[0], row[1]) for row in rows] == [('| 2', '1 KB'), ('| 2', '1 MB'), ('| 4', '1 KB'), ('| 4', '1 MB')]
    assert all('in a session' in line for line in done.stdout.splitlines() if line.startswith('| ranks'))
