"""The benchmarks of ops run, and check what they measure against the baseline's results; their figures decide nothing."""
from __future__ import annotations

import json
import subprocess
import sys

import pytest


@pytest.mark.parametrize("options", [[], ["--unknown", "--keep-memory", "--dtype=float16"]], ids=["default", "others"])
@pytest.mark.parametrize("op", ["gelu", "dropout"])
def test_it_runs_and_the_forms_agree(repo_root, op, options):
    command = [sys.executable, str(repo_root / "benchmarks" / (op + ".py")), "--quick"] + options
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True)
    assert done.returncode == 0, done.stderr[-3000:]
    rows = json.loads(next(line for line in done.stdout.splitlines() if line.startswith("[{")))
    assert [row["elements"] for row in rows] == [1000, 100_000]
    assert all({"ours", "x + 1"} < set(row[part]) for row in rows for part in ("forward", "both"))
    assert len([line for line in done.stdout.splitlines() if line.startswith("|")]) == 4
