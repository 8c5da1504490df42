"""The vendor's context managers for profiling and for freeing graphs. On the CPU they do nothing."""

from __future__ import annotations

from types import TracebackType
from typing import TypeVar

from npu_shim._tensorflow import tf_api

_Context = TypeVar("_Context", bound="_Nothing")


class _Nothing:
    """A context manager that does nothing."""

    def start(self) -> None:
        """Begin, as at the start of ``with``."""

    def stop(self) -> None:
        """End, as at the end of ``with``."""

    def __enter__(self: _Context) -> _Context:
        self.start()
        return self

    def __exit__(
        self, exe_type: type[BaseException] | None, exe_val: BaseException | None, exc_tb: TracebackType | None
    ) -> None:
        self.stop()


class Profiler(_Nothing):
    """Profile the NPU between start and stop, or inside ``with``.

    On the CPU it logs one line and profiles nothing.

    Args:
        level: 'L0', 'L1' or 'L2'.
        aic_metrics: metrics of the AI cores.
        output_path: directory for the results.
    Raises:
        ValueError: if an argument is not a str, or level is not allowed.
    """

    def __init__(self, *, level: str = "L0", aic_metrics: str = "", output_path: str = "") -> None:
        for name, value in (("level", level), ("aic_metrics", aic_metrics), ("output_path", output_path)):
            if not isinstance(value, str):
                raise ValueError(f"{name}={value!r} is not allowed: it must be a str.")
        if level not in ("L0", "L1", "L2"):
            raise ValueError(f"level={level!r} is not allowed: it must be one of L0, L1, L2.")

    def start(self) -> None:
        """Start profiling."""
        tf_api.logging.info("npu_shim: there is no NPU here, so Profiler records nothing.")


class ScopedGraphManager(_Nothing):
    """Free the NPU's graphs that were created inside ``with`` at its end. On the CPU there are none."""
