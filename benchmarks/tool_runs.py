"""The sides of the tool benchmarks, each in a process of its own: the tool, the floor, and tf_upgrade_v2.

    python benchmarks/tool_runs.py --floor SOURCE TARGET PROCESSES
    python benchmarks/tool_runs.py --upgrade SOURCE TARGET

The floor is the minimum for a tool that converts Python files: it reads, parses and writes each file. Its garbage
collector is off, as in the tool.
"""

from __future__ import annotations

import ast
import functools
import gc
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from typing import NamedTuple, Sequence

import tool_corpus

_HERE = os.path.abspath(__file__)
_TOOL = str(tool_corpus.ROOT / "tools" / "convert_tf2npu" / "main.py")
_AT_ONCE = 8  # files per task of the floor
FAILURES = "failures.txt"


class Cost(NamedTuple):
    """The cost of a process and its children; the peak is that of the largest of them."""

    cpu_s: float
    wall_s: float
    peak_mb: float


def cost(command: Sequence[str], cache: pathlib.Path | None = None) -> Cost:
    """Run a command to its end.

    Args:
        command: its words.
        cache: the folder to use instead of ~/.cache.

    Raises:
        RuntimeError: it fails.
    """
    environment = dict(os.environ, TF_CPP_MIN_LOG_LEVEL="3", PYTHONDONTWRITEBYTECODE="")
    if cache:
        environment["XDG_CACHE_HOME"] = str(cache)
    with tempfile.TemporaryFile() as output:
        begin = time.perf_counter()
        process = subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
        )
        _, status, used = os.wait4(process.pid, 0)
        wall_s = time.perf_counter() - begin
        process.returncode = status  # os.wait4 has already reaped it
        if status:
            output.seek(0)
            raise RuntimeError(
                "{} failed:\n{}".format(" ".join(command), output.read()[-3000:].decode("utf-8", "replace"))
            )
    return Cost(used.ru_utime + used.ru_stime, wall_s, used.ru_maxrss / 1024)


def median(costs: Sequence[Cost]) -> Cost:
    """Return the median of each figure."""
    return Cost(*(statistics.median(each) for each in zip(*costs)))


def tool(python: str, *arguments: str) -> list[str]:
    """Return the command that runs the tool."""
    return [python, _TOOL, *arguments]


def floor_command(python: str, source: str, target: str, processes: int = 1) -> list[str]:
    """Return the command that runs the floor."""
    return [python, _HERE, "--floor", source, target, str(processes)]


def upgrade_command(python: str, source: str, target: str) -> list[str]:
    """Return the command that runs tf_upgrade_v2."""
    return [python, _HERE, "--upgrade", source, target]


def floor(source: str, target: str, processes: int) -> None:
    """Read, parse and write each file."""
    paths: list[str] = []
    for folder, _, names in os.walk(source):
        below = os.path.relpath(folder, source)
        os.makedirs(os.path.join(target, below))
        paths += [os.path.join(below, name) for name in names]
    one = functools.partial(_floor_of_file, source, target)
    _start_floor()
    if processes == 1:
        for path in paths:
            one(path)
        return
    import multiprocessing

    with multiprocessing.Pool(processes, _start_floor) as pool:
        pool.map(one, paths, _AT_ONCE)


def _start_floor() -> None:
    gc.disable()
    warnings.simplefilter("ignore")


def _floor_of_file(source: str, target: str, path: str) -> None:
    with open(os.path.join(source, path), "rb") as stream:
        raw = stream.read()
    ast.parse(raw)
    with open(os.path.join(target, path), "wb") as stream:
        stream.write(raw)


def upgrade(source: str, target: str) -> None:
    """Run tf_upgrade_v2 on each file of a folder, and continue after a failure.

    On a folder, tf_upgrade_v2 stops at the first failure. It fails on some syntax that is newer than Python 3.6.
    """
    from tensorflow.tools.compatibility import ast_edits, tf_upgrade_v2

    upgrader = ast_edits.ASTCodeUpgrader(tf_upgrade_v2.TFAPIChangeSpec())
    failures = 0
    for path in tool_corpus.python_files(pathlib.Path(source)):
        written = pathlib.Path(target) / path.relative_to(source)
        written.parent.mkdir(parents=True, exist_ok=True)
        try:
            upgrader.process_file(str(path), str(written))
        except Exception:  # its parser raises many kinds
            failures += 1
            shutil.copy(str(path), str(written))
    (pathlib.Path(target) / FAILURES).write_text(str(failures))


if __name__ == "__main__":
    if sys.argv[1] == "--floor":
        floor(sys.argv[2], sys.argv[3], int(sys.argv[4]))
    else:
        upgrade(sys.argv[2], sys.argv[3])
