"""Context managers around work on the device. On the CPU there is no device to profile or to clean."""

from __future__ import annotations

from typing import Any

from npu_shim import _device, _tf


class Profiler:
    """Profiles what runs on the card between start and stop, or inside ``with``.

    On the CPU nothing is profiled, and one log line says so.

    Args:
        level: 'L0', 'L1' or 'L2'.
        aic_metrics: what to count on the cores.
        output_path: directory for the result.
    Raises:
        ValueError: an argument is no text, or level another one.
    """

    def __init__(self, *, level: str = "L0", aic_metrics: str = "", output_path: str = "") -> None:
        for name, value in (("level", level), ("aic_metrics", aic_metrics), ("output_path", output_path)):
            if not isinstance(value, str):
                raise ValueError(f"{name}={value!r} is not allowed: it must be a str.")
        if level not in ("L0", "L1", "L2"):
            raise ValueError(f"level={level!r} is not allowed: it must be one of L0, L1, L2.")
        self._vendor: Any | None = None
        if _device.device().is_npu:
            self._vendor = _device.vendor("npu_bridge.profiler.profiler").Profiler(
                level=level, aic_metrics=aic_metrics, output_path=output_path
            )

    def start(self) -> None:
        """Begins."""
        if self._vendor is not None:
            self._vendor.start()
        else:
            _tf.logging.info("npu_shim: there is no NPU here, so Profiler records nothing.")

    def stop(self) -> None:
        """Ends."""
        if self._vendor is not None:
            self._vendor.stop()

    def __enter__(self) -> Profiler:
        self.start()
        return self

    def __exit__(self, exe_type: Any, exe_val: Any, exc_tb: Any) -> None:
        self.stop()


class ScopedGraphManager:
    """Frees the card's graphs that were made inside ``with``, at its end. On the CPU there are none."""

    def __init__(self) -> None:
        self._vendor: Any | None = None
        if _device.device().is_npu:
            self._vendor = _device.vendor("npu_bridge.scoped_graph_manager.scoped_graph_manager").ScopedGraphManager()

    def start(self) -> None:
        """Begins."""
        if self._vendor is not None:
            self._vendor.start()

    def stop(self) -> None:
        """Frees the graphs made since start."""
        if self._vendor is not None:
            self._vendor.stop()

    def __enter__(self) -> ScopedGraphManager:
        self.start()
        return self

    def __exit__(self, exe_type: Any, exe_val: Any, exc_tb: Any) -> None:
        self.stop()
