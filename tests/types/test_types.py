"""mypy checks the types of the library and of the tool, ruff the style of all."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import pytest


def test_mypy_finds_nothing(repo_root: pathlib.Path) -> None:
    packages = ["-p", "npu_shim", "-p", "convert_tf2npu"]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--cache-dir", os.devnull, *packages],  # writing a cache takes a quarter
        cwd=str(repo_root),
        env={**os.environ, "MYPYPATH": "tools"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    assert done.returncode == 0, done.stdout.decode()


@pytest.mark.parametrize("command", [["check"], ["format", "--check"]], ids=" ".join)
def test_ruff_finds_nothing(command: list[str], repo_root: pathlib.Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "ruff", *command, "--no-cache", "."],
        cwd=str(repo_root),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    assert done.returncode == 0, done.stdout.decode()
