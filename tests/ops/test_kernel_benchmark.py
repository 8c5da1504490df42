"""The benchmark of forms for the CPU runs with both forms of each block; its figures decide nothing."""

from __future__ import annotations

import subprocess
import sys

import pytest
import tensorflow as tf

pytestmark = pytest.mark.nightly


def test_forms_for_the_cpu_are_measured(repo_root):
    command = [sys.executable, str(repo_root / "benchmarks" / "cpu_forms.py"), "--quick"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in done.stdout.splitlines() if line[:1] == "|"]
    assert [row[:2] for row in rows[2:]] == [
        [tf.__version__, block] for block in ("residual block, NCHW", "groups", "dilation")
    ]
    assert all(float(row[2]) > 0 and float(row[3]) > 0 for row in rows[2:])
