"""Report the steps of an observed run to the command that started it."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from typing import Iterator

from npu_shim._host import host_env
from npu_shim.launching.progress.status import PIPE_VARIABLE, Status, encode, send
from npu_shim.rehearsal.recording.recorder import Recorder

_INTERVAL_S = 0.5


@contextlib.contextmanager
def reporting_steps(recorder: Recorder) -> Iterator[None]:
    """Report the steps until the end of the block, if the environment names a pipe for them."""
    number = host_env.process_environ().pop(PIPE_VARIABLE, None)
    if number is None:
        yield
        return
    pipe, begin, ended = int(number), time.monotonic(), threading.Event()
    os.set_inheritable(pipe, False)

    def report(code: int | None = None) -> None:
        seconds = time.monotonic() - begin
        send(pipe, encode(Status(0, recorder.steps or None, seconds, name="observed", code=code)))

    def report_until_end() -> None:
        while not ended.wait(_INTERVAL_S):
            report()

    thread = threading.Thread(target=report_until_end, name="npu_shim progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        report(0)
