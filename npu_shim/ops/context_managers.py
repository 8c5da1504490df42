"""The vendor's context managers for profiling and for freeing graphs. On the CPU they do nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from npu_shim import _device, _tf

if TYPE_CHECKING:
    from types import TracebackType


class Profiler:
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
        self._vendor: Any | None = None
        if _device.is_npu():
            self._vendor = _device.vendor("npu_bridge.profiler.profiler").Profiler(
                level=level, aic_metrics=aic_metrics, output_path=output_path
            )

    def start(self) -> None:
        """Start profiling."""
        if self._vendor is not None:
            self._vendor.start()
        else:
            _tf.logging.info("npu_shim: there is no NPU here, so Profiler records nothing.")

    def stop(self) -> None:
        """Stop profiling."""
        if self._vendor is not None:
            self._vendor.stop()

    def __enter__(self) -> Profiler:
        self.start()
        return self

    def __exit__(
        self, exe_type: type[BaseException] | None, exe_val: BaseException | None, exc_tb: TracebackType | None
    ) -> None:
        self.stop()


class ScopedGraphManager:
    """Free the NPU's graphs that were created inside ``with`` at its end. On the CPU there are none."""

    def __init__(self) -> None:
        self._vendor: Any | None = None
        if _device.is_npu():
            self._vendor = _device.vendor("npu_bridge.scoped_graph_manager.scoped_graph_manager").ScopedGraphManager()

    def start(self) -> None:
        """Start tracking graphs."""
        if self._vendor is not None:
            self._vendor.start()

    def stop(self) -> None:
        """Free the graphs that were created since start."""
        if self._vendor is not None:
            self._vendor.stop()

    def __enter__(self) -> ScopedGraphManager:
        self.start()
        return self

    def __exit__(
        self, exe_type: type[BaseException] | None, exe_val: BaseException | None, exc_tb: TracebackType | None
    ) -> None:
        self.stop()
