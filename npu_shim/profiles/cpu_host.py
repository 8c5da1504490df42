"""The lines of the script at which its threads are, sampled: those of the loop, and those of the input pipeline."""

from __future__ import annotations

import collections
import os
import threading
import time

from npu_shim._tensorflow import script_frames
from npu_shim._tensorflow.tf_session import TENSORFLOW_FOLDER
from npu_shim.profiles.cpu_form import Api
from npu_shim.rehearsal.assess.lines import relative

_INTERVAL_S = 0.002
_RUNS_OPS = ("execute.py", "session.py")  # and generated functions: files of TensorFlow whose frame waits for ops


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

    def end(self) -> list[Api]:
        """Sample no longer. Return the times at each line, the longest first."""
        self._ended.set()
        self._thread.join()
        found = [Api(*key, sum(times), len(times)) for key, times in self._times.items()]
        return sorted(found, key=lambda each: -each.time)

    def _sample(self) -> None:
        last = time.monotonic()
        while not self._ended.wait(_INTERVAL_S):
            now = time.monotonic()
            for thread, path in script_frames.innermost_files().items():
                if thread == self._loop and _waits_for_ops(path):
                    continue
                for own in script_frames.running(thread):
                    name = f"{relative(own.f_code.co_filename, self._folder)}:{own.f_lineno} ({own.f_code.co_name})"
                    key = "host" if thread == self._loop else "pipeline", name
                    self._times[key].append((now - last) * 1e6)
                    break
            last = now


def _waits_for_ops(path: str) -> bool:
    name = os.path.basename(path)
    return path.startswith(TENSORFLOW_FOLDER) and (name in _RUNS_OPS or name.startswith("gen_"))
