"""The vendor's context managers for profiling and for freeing graphs. On the CPU they do nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from npu_shim import _device, _tf

if TYPE_CHECKING:
    from types import TracebackType

_Context = TypeVar("_Context", bound="_VendorContext")


class _VendorContext:
    """A context manager of the vendor. On the CPU it does nothing.

    Attributes:
        _vendor: the vendor's object; None on the CPU.
    """

    _vendor: Any | None = None

    def start(self) -> None:
        """Begin, as at the start of ``with``."""
        if self._vendor is not None:
            self._vendor.start()

    def stop(self) -> None:
        """End, as at the end of ``with``."""
        if self._vendor is not None:
            self._vendor.stop()

    def __enter__(self: _Context) -> _Context:
        self.start()
        return self

    def __exit__(
        self, exe_type: type[BaseException] | None, exe_val: BaseException | None, exc_tb: TracebackType | None
    ) -> None:
        self.stop()


class Profiler(_VendorContext):
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
        if _device.is_npu():
            self._vendor = _device.vendor("npu_bridge.profiler.profiler").Profiler(
                level=level, aic_metrics=aic_metrics, output_path=output_path
            )

    def start(self) -> None:
        """Start profiling."""
        if self._vendor is None:
            _tf.logging.info("npu_shim: there is no NPU here, so Profiler records nothing.")
        super().start()


class ScopedGraphManager(_VendorContext):
    """Free the NPU's graphs that were created inside ``with`` at its end. On the CPU there are none."""

    def __init__(self) -> None:
        if _device.is_npu():
            self._vendor = _device.vendor("npu_bridge.scoped_graph_manager.scoped_graph_manager").ScopedGraphManager()
