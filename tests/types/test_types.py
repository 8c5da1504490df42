"""mypy checks the types of the library and of the tool, ruff the style of all."""

from __future__ import annotations

import pathlib
import subprocess
import sys

import pytest


@pytest.mark.parametrize("folder,package", [(".", "npu_shim"), ("tools", "convert_tf2npu")])
def test_mypy_finds_nothing(folder: str, package: str, repo_root: pathlib.Path, tmp_path: pathlib.Path) -> None:
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "mypy",
            "--config-file",
            str(repo_root / "pyproject.toml"),
            "--cache-dir",
            str(tmp_path),
            "-p",
            package,
        ],
        cwd=str(repo_root / folder),
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
