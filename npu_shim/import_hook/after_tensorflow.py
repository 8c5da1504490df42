"""Callbacks that wait until a script has imported TensorFlow, because it may never import it."""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, Callable, Sequence

from npu_shim._host.packages import find_spec_after

Callback = Callable[[], None]


def after_tensorflow(callback: Callback) -> None:
    """Call a function when TensorFlow is imported, or now if it is; several in the order of these calls.

    The functions import parts of npu_shim and use Keras. If one of these imports TensorFlow, they wait for its end.
    """
    waiting = next((finder for finder in sys.meta_path if isinstance(finder, _Waiting)), None)
    if waiting is not None:
        waiting.callbacks.append(callback)
    elif _is_loaded():
        callback()
    else:
        sys.meta_path.insert(0, _Waiting(callback))


class _Waiting:
    """A module finder that calls back after the import of TensorFlow, once.

    Attributes:
        callbacks: functions to call.
    """

    def __init__(self, callback: Callback) -> None:
        self.callbacks = [callback]
        self._loading = 0

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of TensorFlow, Keras or a part of npu_shim with a loader that calls back; None for others."""
        if name not in ("tensorflow", "keras") and not name.startswith("npu_shim."):
            return None
        spec = find_spec_after(self, name, path, target)
        if spec is not None:
            self._run_callbacks_after_exec(spec)
        return spec

    def _run_callbacks_after_exec(self, spec: ModuleSpec) -> None:
        load: Callable[[ModuleType], Any] | None = getattr(spec.loader, "exec_module", None)
        if load is None:
            return

        def exec_module(module: ModuleType) -> None:
            self._loading += 1
            try:
                load(module)
            finally:
                self._loading -= 1
                if not self._loading and self in sys.meta_path and _is_loaded():
                    sys.meta_path.remove(self)
                    for callback in self.callbacks:
                        callback()

        setattr(spec.loader, "exec_module", exec_module)


def _is_loaded() -> bool:
    """Return True for TensorFlow itself, False for a replacement in the script's tests."""
    return hasattr(sys.modules.get("tensorflow"), "__version__")
