"""Actions that wait until a script has imported a module, because it may never import it."""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, Callable, cast

from npu_shim.import_hook import autograph
from npu_shim.import_hook.lines import Lookup

if TYPE_CHECKING:
    from importlib.abc import Loader

_AUTOGRAPH_PARSER = ".python.autograph.pyct.parser"  # below tensorflow; in TensorFlow 1.15 below tensorflow_core


class Actions:
    """The actions of one process."""

    def __init__(self, migrated: Lookup, watch_shapes: bool) -> None:
        """Take over the lookup of migrated files; watch_shapes to report shapes that change between runs."""
        self._migrated = migrated
        self._watch_shapes = watch_shapes
        self._loading = 0

    def prepare(self, spec: ModuleSpec) -> None:
        """Let the actions follow the load of a module; for any module that is about to be loaded."""
        if self._watch_shapes and (spec.name == "tensorflow" or spec.name.startswith("npu_shim.")):
            _wrap(spec, self._load_and_watch)
        elif spec.name.startswith("tensorflow") and spec.name.endswith(_AUTOGRAPH_PARSER):
            _wrap(spec, self._load_parser)

    def _load_parser(self, load: Callable[[ModuleType], None], parser: ModuleType) -> None:
        load(parser)
        autograph.use_migrated_source(parser, self._migrated)

    def _load_and_watch(self, load: Callable[[ModuleType], None], module: ModuleType) -> None:
        """Load TensorFlow, or a part of npu_shim that may import it, and then watch the shapes.

        The watch needs parts of npu_shim. So if one of them imports TensorFlow, the watch waits for that part.
        """
        self._loading += 1
        try:
            load(module)
        finally:
            self._loading -= 1
        if not self._loading and self._watch_shapes and _is_tensorflow_loaded():
            self._watch_shapes = False
            from npu_shim.data import watch_shapes

            watch_shapes()


def _wrap(spec: ModuleSpec, load: Callable[[Callable[[ModuleType], None], ModuleType], None]) -> None:
    loader = cast("Loader", spec.loader)
    original = loader.exec_module
    setattr(loader, "exec_module", lambda module: load(original, module))


def _is_tensorflow_loaded() -> bool:
    """Return True for TensorFlow itself, False for a replacement in the script's tests."""
    return hasattr(sys.modules.get("tensorflow"), "__version__")
