"""The lines of the script at which its threads are, sampled: those of the loop, and those of the input pipeline."""

from __future__ import annotations

import collections
import os
import threading
import time

from npu_shim._tensorflow import script_frames
from npu_shim.rehearsal.assess.lines import relative

_INTERVAL_S = 0.002
_RUNS_OPS = ("execute.py", "session.py", "gen_", "cpu_trace.py")  # begin the files whose frame waits for ops


class HostSamples:
    """Sample the threads of this process from now on.

    Args:
        folder: that of the script.
    """

    def __init__(self, folder: str) -> None:
        # the microseconds between two samples, by level (the thread that makes this object: "host") and line
        self._times: dict[tuple[str, str], list[float]] = collections.defaultdict(list)
        self._folder = folder
        self._loop = threading.get_ident()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._sample, name="npu_shim profile", daemon=True)
        self._thread.start()

    def end(self) -> list[tuple[str, str, float, int]]:
        """Sample no longer. Return level, line, microseconds and number of samples, the longest first."""
        self._ended.set()
        self._thread.join()
        return sorted(((*key, sum(times), len(times)) for key, times in self._times.items()), key=lambda row: -row[2])

    def _sample(self) -> None:
        last = time.monotonic()
        while not self._ended.wait(_INTERVAL_S):
            now = time.monotonic()
            for thread, path in script_frames.innermost_files().items():
                waits = path.startswith(script_frames.LIBRARIES) and os.path.basename(path).startswith(_RUNS_OPS)
                own = None if waits and thread == self._loop else next(script_frames.running(thread), None)
                if own is not None:
                    name = f"{relative(own.f_code.co_filename, self._folder)}:{own.f_lineno} ({own.f_code.co_name})"
                    self._times["host" if thread == self._loop else "pipeline", name].append((now - last) * 1e6)
            last = now
