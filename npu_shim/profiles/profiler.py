"""Profile some training steps of a script: count them, and begin and end between two of them."""

from __future__ import annotations

import atexit

from npu_shim._host.messages import report
from npu_shim.rehearsal.progress import hooks
from npu_shim.rehearsal.progress.progress import Progress


class Profiler(Progress):
    """A profiler of some steps of this process; what it does at the steps is up to it.

    Args:
        first, last: the steps to profile, from 0.
    """

    def __init__(self, first: int, last: int) -> None:
        super().__init__()
        self._first, self._last = first, last
        self._began: int | None = None
        self._ended = False

    def start(self) -> None:
        """Count from now on."""
        hooks.watch_all(self)
        atexit.register(self._at_exit)

    def is_due(self) -> bool:
        """Return False: no values of the steps are wanted."""
        return False

    def reach(self, source: int, step: int) -> None:
        """Set the number of steps of a source. The profiler begins and ends between two steps."""
        before = self.steps
        super().reach(source, step)
        if self._ended or self.steps <= before:
            return
        if self._began is not None:
            self.ends_step()
            if self.steps > self._last and self.steps - self._began > self._last - self._first:
                self._at_exit()
        elif self.steps >= self._first:
            self._began = self.steps
            self.begin()
        elif self.steps == self._first - 1:
            self.prepare()

    def _at_exit(self) -> None:
        if self._ended:
            return
        self._ended = True
        if self._began is not None and self.steps > self._began:
            report(f"profiled steps {self._began} to {self.steps - 1}. {self.end()}")
        else:
            report(
                f"the script ended after {self.steps} training steps, and step {self._first} is the first to profile. "
                "Give earlier ones with --profile-steps."
            )

    def prepare(self) -> None:
        """Take note that the last step before the profile begins."""

    def begin(self) -> None:
        """Begin."""

    def ends_step(self) -> None:
        """Take note of the end of a step."""

    def end(self) -> str:
        """End. Return what to do now."""
        raise NotImplementedError
