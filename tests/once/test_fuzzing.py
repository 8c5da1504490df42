"""The fuzz targets under a coverage-guided fuzzer, for a few seconds: that they run, and find nothing near the seeds.

The seed of chance is fixed, so that a run of the tests finds what the one before it found. Looking for more takes
``python fuzz/fuzz.py TARGET SECONDS`` and patience.
"""

from __future__ import annotations

import os
import pathlib
import re
import subprocess
import sys

import pytest

RUNS = {"script": 1000, "notebook": 2000, "project": 300, "cell": 5000, "table": 20000, "places": 5000}


def fuzzed(root: pathlib.Path, folder: pathlib.Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, str(root / "fuzz" / "fuzz.py")] + list(arguments),
        cwd=str(folder),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=dict(os.environ, PYTHONHASHSEED="0"),
    )


@pytest.mark.parametrize("target", list(RUNS))
def test_nothing_is_found_near_the_seeds(target: str, repo_root: pathlib.Path, tmp_path: pathlib.Path) -> None:
    done = fuzzed(repo_root, tmp_path, target, "60", "-seed=1", f"-runs={RUNS[target]}")
    said = done.stdout.decode("utf-8", "replace")
    assert done.returncode == 0, said[-3000:]
    (runs,) = re.findall(r"stat::number_of_executed_units: (\d+)", said)
    (new,) = re.findall(r"stat::new_units_added: +(\d+)", said)
    assert int(runs) > 100 and int(new) > 0  # coverage is seen, or there would be nothing new
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_target_is_an_error(repo_root: pathlib.Path, tmp_path: pathlib.Path) -> None:
    done = fuzzed(repo_root, tmp_path, "nonsense")
    assert done.returncode == 1 and b"give a target: script, notebook, project, cell, table, places" in done.stdout
