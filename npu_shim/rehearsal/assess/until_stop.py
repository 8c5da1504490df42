"""Run a script with its own arguments until a capture stops it. No file stays; it prints to standard error."""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
from typing import Iterator

from npu_shim._host import host_env
from npu_shim._tensorflow.patches import register_undo, restore_all
from npu_shim.import_hook import script
from npu_shim.rehearsal.assess.capture import Capture, Stop
from npu_shim.rehearsal.files.taken_back import restoring_files


@contextlib.contextmanager
def run_until_stop(capture: Capture, path: str, arguments: list[str], alias: bool) -> Iterator[None]:
    """Run the script. At the end, TensorFlow and the files are as before.

    Args:
        capture: it stops the script. Its ``failure`` says why a script ended otherwise.
        path: of the script.
        arguments: its own.
        alias: True to serve the vendor's packages and Horovod.
    """
    if alias:
        importlib.import_module("npu_shim.alias")
    capture.install()
    if "NPU_SHIM_KERNELS" not in host_env.process_environ():
        # a card does not run what npu_shim compiles for the CPU
        register_undo(host_env.set_variables({"NPU_SHIM_KERNELS": "plain"}))
    sys.dont_write_bytecode = True
    script.enter_script_folder([path])
    with restoring_files():
        try:
            with _stdout_to_stderr():
                _run_script(capture, path, arguments)
            yield
        finally:
            restore_all()


def _run_script(capture: Capture, path: str, arguments: list[str]) -> None:
    try:
        script.run_file(path, arguments, None)
    except Stop:
        pass
    except SystemExit as error:
        capture.failure = f"it ended with exit code {error.code}" if error.code else None
    except Exception as error:
        if not capture.graphs:
            sys.excepthook(type(error), error, error.__traceback__)
        capture.failure = f"{type(error).__name__}: {error}"


@contextlib.contextmanager
def _stdout_to_stderr() -> Iterator[None]:
    """Let what is printed go to standard error, also from TensorFlow's kernels."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)
