"""The benchmark of observed runs runs; its figures decide nothing."""

from __future__ import annotations

import pathlib
import subprocess
import sys

import pytest
import tensorflow as tf

pytestmark = pytest.mark.nightly


def test_observed_runs_are_measured(repo_root: pathlib.Path) -> None:
    command = [sys.executable, str(repo_root / "benchmarks" / "observing.py"), "--quick"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-3000:]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in done.stdout.splitlines() if line[:1] == "|"]
    kinds = ["digits_estimator", "digits_session"] if tf.__version__ < "2" else ["digits_loop", "digits_fit"]
    assert [row[:2] for row in rows[2:]] == [[tf.__version__, kind] for kind in kinds]
    assert all(float(cell) > 0 for row in rows[2:] for cell in row[3:])
