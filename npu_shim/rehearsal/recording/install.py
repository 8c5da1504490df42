"""Install the hooks of a recording as soon as the script, or npu_shim, has imported TensorFlow."""

from __future__ import annotations

import importlib.util
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, Callable, Sequence

from npu_shim.rehearsal.recording.recorder import Recorder


def install(recorder: Recorder, seed: int, by_call_site: bool) -> None:
    """Install the hooks when TensorFlow is imported, or now if it is.

    Args:
        recorder: receives the values.
        seed: of this run.
        by_call_site: True to derive the seeds of ops from their call sites.
    """

    def hook() -> None:
        from npu_shim.rehearsal.recording import hooks

        hooks.install_all(recorder, seed, by_call_site)

    after_tensorflow(hook)


def after_tensorflow(act: Callable[[], None]) -> None:
    """Call a function when TensorFlow is imported, or now if it is; several in the order of these calls."""
    waiting = next((each for each in sys.meta_path if isinstance(each, _AfterTensorFlow)), None)
    if "tensorflow" in sys.modules:
        act()
    elif waiting is not None:
        waiting.acts.append(act)
    else:
        sys.meta_path.insert(0, _AfterTensorFlow(act))


class _AfterTensorFlow:
    """A module finder that acts after the import of TensorFlow, once.

    Attributes:
        acts: functions to call.
    """

    def __init__(self, act: Callable[[], None]) -> None:
        self.acts = [act]

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return TensorFlow's spec with a loader that acts at its end, None for all other modules."""
        if name != "tensorflow":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            return spec
        load: Callable[[ModuleType], Any] = getattr(spec.loader, "exec_module")

        def exec_module(module: ModuleType) -> None:
            load(module)
            for act in self.acts:
                act()

        setattr(spec.loader, "exec_module", exec_module)
        return spec
