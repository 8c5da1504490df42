"""The line of the script that a thread is at."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from npu_shim._tensorflow import script_frames

pytestmark = pytest.mark.once


def test_line_of_the_main_thread_is_that_of_the_script(monkeypatch: Any, tmp_path: Any) -> None:
    started, ended = threading.Event(), threading.Event()
    source = "def load():\n    started.set()\n    ended.wait()\n\nload()\n"
    script = compile(source, str(tmp_path / "train.py"), "exec")
    thread = threading.Thread(target=exec, args=(script, {"started": started, "ended": ended}))
    thread.start()
    started.wait(60)
    monkeypatch.setattr(threading, "main_thread", lambda: SimpleNamespace(ident=thread.ident))
    try:
        assert script_frames.main_thread_line_text() in [f"at {tmp_path}/train.py:{line} in load" for line in (2, 3)]
    finally:
        ended.set()
        thread.join()
    assert script_frames.main_thread_line_text() == ""  # of a thread that has ended


def test_packages_of_the_system_and_of_the_user_are_libraries(tmp_path: Any, python: Any) -> None:
    code = (
        "import sys\nfrom npu_shim._tensorflow import script_frames as frames\n"
        "print([frames.is_library(path + '/x.py') for path in sys.argv[1:]])"
    )
    folders = [str(tmp_path / name) for name in ("site-packages", "dist-packages", "project")]
    paths = f"import sys\nsys.path += {folders}\n"
    (tmp_path / "train.py").write_text(paths + code)
    assert python(tmp_path, "train.py", *folders).stdout.endswith("[True, True, False]\n")


def test_frames_of_the_command_that_starts_a_script_are_not_of_the_script(tmp_path: Any, python: Any) -> None:
    """A console script lies in a folder of programs, which is no library."""
    (tmp_path / "npu-shim").write_text(
        "from npu_shim.import_hook import script\nscript.run_file('train.py', [], None)\n"
    )
    (tmp_path / "train.py").write_text(
        "from npu_shim._tensorflow import script_frames\n"
        "def load():\n    for frame in script_frames.running_frames():\n        print(frame.f_lineno)\nload()\n"
    )
    assert python(tmp_path, "npu-shim").stdout.endswith("4\n5\n")
