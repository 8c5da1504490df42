"""The benchmark of recordings runs; its figures decide nothing."""

from __future__ import annotations

import subprocess
import sys

import pytest
import tensorflow as tf

pytestmark = pytest.mark.nightly


def test_recordings_are_measured(repo_root):
    command = [sys.executable, str(repo_root / "benchmarks" / "recording.py"), "--quick"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in done.stdout.splitlines() if line[:1] == "|"]
    kinds = ["session"] + ["fit", "loop", "loop, wide"] * hasattr(tf.keras.utils, "set_random_seed")
    assert [row[:2] for row in rows[2:]] == [[tf.__version__, kind] for kind in kinds]
    assert all(float(row[3]) > 0 for row in rows[2:])
