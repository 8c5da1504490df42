"""Each code block of the pages runs, or its mark says what it needs."""

from __future__ import annotations

import doctest
import multiprocessing
import os
import pathlib
import shutil
import subprocess
import sys
import traceback
from collections import Counter
from typing import Any

import pytest

from .pages import ALONE, NEEDS, RUN, Block, blocks, is_for_version_1, pages, runnable

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
FILES = pathlib.Path(__file__).parent / "files"
VERSION_1 = sys.version_info < (3, 8)  # of Python, to which tests/envs gives TensorFlow 1.15
PAGES = [page for page in pages(ROOT) if is_for_version_1(page) == VERSION_1]
# The marked blocks, by what they need. A new one is a choice: add it here.
NOT_RUN = {"card": 6, "cluster": 5, "network": 14, "tested": 25}
# The pages whose commands run by day; those of the others are of commands that have tests of their own.
DAILY = ("README.md", "start.md")
# The pages whose train.py trains: each import takes seconds.
TRAINING = ("README.md", "start.md", "migrate.md", "assess.md", "precision.md")
_context: Any = multiprocessing.get_context("forkserver")  # importing TensorFlow once is enough
_context.set_forkserver_preload(["tensorflow"])


def test_blocks_run_or_are_marked() -> None:
    every = [block for page in pages(ROOT) for block in blocks(page) if block.language in RUN]
    unknown = [f"{block.place}: {block.mark}" for block in every if block.mark not in ("", ALONE, *NEEDS)]
    assert unknown == []
    marked = Counter(block.mark for block in every if block.mark in NEEDS)
    run = sum(len(runnable(page)) for page in pages(ROOT))
    print(f"{run} blocks run, {len(every) - run} do not:")
    for block in every:
        if block.mark in NEEDS:
            print(f"  {block.place} needs {NEEDS[block.mark]}")
    assert dict(marked) == NOT_RUN and run > 50


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> pathlib.Path:
    """A folder like a checkout beside the reader's scripts, with small projects in place of the public ones."""
    for name in ("benchmarks", "docs", "fuzz", "npu_shim", "samples", "tests", "tools"):
        (tmp_path / name).symlink_to(ROOT / name)
    for path in FILES.iterdir():
        (shutil.copytree if path.is_dir() else shutil.copy)(str(path), str(tmp_path / path.name))
    (tmp_path / "bin").mkdir()
    for name, command in {
        "python": "",
        "npu-shim": "-m npu_shim",
        "convert_tf2npu": str(ROOT / "tools" / "convert_tf2npu" / "main.py"),
    }.items():
        (tmp_path / "bin" / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {command} "$@"\n')
        (tmp_path / "bin" / name).chmod(0o755)
    return tmp_path


def environment(folder: pathlib.Path) -> dict[str, str]:
    return {
        **os.environ,
        "NPU_SHIM_FALLBACK": "silent",
        "PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
        "PYTHONPATH": f"{ROOT}:{ROOT / 'tools'}",
    }


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=[pytest.mark.nightly] * (page.name not in DAILY))
        for page in PAGES
        if any(b.language == "bash" for b in runnable(page))
    ],
    ids=str,
)
def test_the_commands_of_a_page_run_in_order(page: pathlib.Path, folder: pathlib.Path) -> None:
    commands = [f": at {block.place}\n{block.text}" for block in runnable(page) if block.language == "bash"]
    done = subprocess.run(
        ["bash", "-exc", "\n".join(commands)],
        cwd=str(folder),
        env={
            **environment(folder),
            **({"TRAIN": "1"} if page.name in TRAINING else {}),
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout.decode(errors="replace")[-5000:]


@pytest.mark.parametrize(
    "page", [page for page in PAGES if any(b.language == "python" for b in runnable(page))], ids=str
)
def test_the_python_of_a_page_runs_in_one_process(page: pathlib.Path, folder: pathlib.Path) -> None:
    python = [block for block in runnable(page) if block.language == "python"]
    together = [block for block in python if block.mark != ALONE]
    for part in filter(None, [together, *([block] for block in python if block.mark == ALONE)]):
        log = folder / "log"
        process = _context.Process(target=run_python, args=(part, str(folder), str(log)), daemon=True)
        process.start()
        process.join(300)
        assert process.exitcode == 0, log.read_text(errors="replace")[-5000:]


def run_python(part: list[Block], folder: str, log: str) -> None:
    """Run blocks in one namespace, with the output in a file."""
    written = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(written, 1)
    os.dup2(written, 2)
    os.chdir(folder)
    os.environ["NPU_SHIM_FALLBACK"] = "silent"
    namespace: dict[str, Any] = {"__name__": "__main__"}
    try:
        for block in part:
            if block.text.lstrip().startswith(">>>"):
                test = doctest.DocTestParser().get_doctest(block.text, namespace, block.place, None, block.line)
                assert doctest.DocTestRunner().run(test, clear_globs=False).failed == 0
            else:
                exec(compile("\n" * block.line + block.text, block.page, "exec"), namespace)
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    sys.stdout.flush()
    os._exit(0)
