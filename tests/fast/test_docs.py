"""The generated pages are what would be generated today."""

from __future__ import annotations

import pathlib
import subprocess
import sys


def test_generated_pages_are_current(repo_root: pathlib.Path) -> None:
    done = subprocess.run(
        [sys.executable, str(repo_root / "docs" / "make.py"), "--check"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    assert done.returncode == 0, done.stdout.decode()
