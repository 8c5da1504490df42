"""The interface of a profiler of some training steps."""

from __future__ import annotations


class Profiler:
    """A profiler of a part of a run; what it does at the steps is up to it."""

    def watch(self) -> None:
        """Install hooks, before those that count steps."""

    def prepare(self) -> None:
        """Take note that the last step before the profile begins."""

    def begin(self, step: int) -> None:
        """Begin with a step."""

    def ends_step(self) -> None:
        """Take note of the end of a step."""

    def end(self) -> str:
        """End. Return what to do now."""
        raise NotImplementedError
