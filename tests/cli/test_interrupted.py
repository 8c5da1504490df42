"""Ctrl-C and crashes of a script in the verbs that run it in their own process: one line, and the exit code."""

from __future__ import annotations

import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

import pytest

pytestmark = pytest.mark.once_tf115

STEPS = {
    "assess": ["train.py"],
    "export": ["--script", "train.py", "-o", "out"],
}
WAITS = """import threading, time
import tensorflow as tf
threading.Thread(target=time.sleep, args=(600,)).start()  # it would keep the process
open("ready", "w").close()
time.sleep(600)
"""
FAILS = """import tensorflow as tf
def build():
    raise ValueError("no data")
build()
"""


def start(verb: str, script: str, folder: pathlib.Path, repo_root: pathlib.Path) -> subprocess.Popen[str]:
    (folder / "train.py").write_text(script)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(repo_root), str(repo_root / "tools")])}
    return subprocess.Popen(
        [sys.executable, "-m", "npu_shim", verb, *STEPS[verb]],
        cwd=str(folder),
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


@pytest.mark.parametrize("verb", ["assess", pytest.param("export", marks=pytest.mark.nightly)])
def test_ctrl_c_in_a_script_is_one_line(verb: str, tmp_path: pathlib.Path, repo_root: pathlib.Path) -> None:
    process = start(verb, WAITS, tmp_path, repo_root)
    last = threading.Timer(300, process.kill)
    last.start()
    while not (tmp_path / "ready").exists() and process.poll() is None:
        time.sleep(0.05)
    time.sleep(0.2)
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate()
    last.cancel()
    assert process.returncode == 130, err
    assert "Traceback" not in err and err.splitlines()[-1] == f"npu-shim {verb}: interrupted"
    assert out == ""


@pytest.mark.parametrize("verb", [pytest.param("assess", marks=pytest.mark.nightly), "export"])
def test_a_script_that_fails_is_2_with_its_traceback(
    verb: str, tmp_path: pathlib.Path, repo_root: pathlib.Path
) -> None:
    process = start(verb, FAILS, tmp_path, repo_root)
    _, err = process.communicate()
    assert process.returncode == 2
    lines = err.splitlines()
    assert "ValueError: no data" in lines[-1] and lines[-1].startswith(f"npu-shim {verb}: error: train.py did not ")
    assert 'train.py", line 4, in <module>' in err and "npu_shim/import_hook" not in err
