"""A project in a folder, run as plain Python runs it and as ``npu-shim run`` does, without TensorFlow."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
from typing import Any, Callable, NamedTuple

import pytest

# Enough of TensorFlow for scripts whose migration needs nothing of npu_shim: '/gpu:0' becomes '/cpu:0'.
FAKE_TENSORFLOW = """
class device:
    def __init__(self, name):
        self.name = name
    def __enter__(self):
        return self.name
    def __exit__(self, *error):
        pass
"""


class Done(NamedTuple):
    """The end of a process; ``said`` is what ``npu-shim run`` itself wrote to standard error."""

    code: int
    out: str
    err: str
    said: list[str]


class Project:
    """A folder of scripts, and the ways to run them."""

    def __init__(self, root: pathlib.Path, checkout: pathlib.Path, libraries: pathlib.Path) -> None:
        self.root = root
        self._path = os.pathsep.join([str(checkout), str(libraries)])

    def write(self, files: dict[str, str]) -> Project:
        """Writes files by their path below the folder."""
        for name, text in files.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode("utf-8"))
        return self

    def python(self, *arguments: str, cwd: pathlib.Path | None = None, **env: str) -> Done:
        """``python arguments``, which writes no bytecode, lest the second run finds what the first left."""
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=str(cwd or self.root),
            env={**os.environ, "PYTHONPATH": self._path, "PYTHONDONTWRITEBYTECODE": "1", **env},
            capture_output=True,
            stdin=subprocess.DEVNULL,
            text=True,
        )
        lines = done.stderr.splitlines()
        said = [line for line in lines if line.startswith("npu-shim run: ")]
        return Done(done.returncode, done.stdout, "\n".join(x for x in lines if x not in said), said)

    def run(self, *arguments: str, **more: Any) -> Done:
        """``npu-shim run arguments``; it may write bytecode, as users' Python does."""
        return self.python("-m", "npu_shim", "run", *arguments, PYTHONDONTWRITEBYTECODE="", **more)

    def files(self) -> dict[str, bytes]:
        """All files below the folder."""
        return {
            str(path.relative_to(self.root)): path.read_bytes()
            for path in sorted(self.root.rglob("*"))
            if path.is_file()
        }


@pytest.fixture
def project(tmp_path: pathlib.Path, repo_root: pathlib.Path) -> Callable[..., Project]:
    """project(path=text, ...) makes one."""
    libraries = tmp_path / "libraries"
    libraries.mkdir()
    (libraries / "tensorflow.py").write_text(FAKE_TENSORFLOW)
    root = tmp_path / "project"
    root.mkdir()
    return lambda files: Project(root, repo_root, libraries).write(files)
