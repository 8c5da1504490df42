"""Actions that wait until a script has imported a module, because it may never import it."""

from __future__ import annotations

from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, Callable, cast

from npu_shim.import_hook import autograph
from npu_shim.import_hook.lines import Lookup

if TYPE_CHECKING:
    from importlib.abc import Loader

_AUTOGRAPH_PARSER = ".python.autograph.pyct.parser"  # below tensorflow; in TensorFlow 1.15 below tensorflow_core


def prepare(spec: ModuleSpec, migrated: Lookup, watch_shapes: bool) -> None:
    """Extend TensorFlow's modules as soon as they are loaded.

    Args:
        spec: of any module that is about to be loaded.
        migrated: returns the migrated form of a file.
        watch_shapes: True to report shapes that change from run to run.
    """
    if spec.name == "tensorflow" and watch_shapes:
        _then(spec, _watch_shapes)
    elif spec.name.startswith("tensorflow") and spec.name.endswith(_AUTOGRAPH_PARSER):
        _then(spec, lambda parser: autograph.use_migrated_source(parser, migrated))


def _then(spec: ModuleSpec, action: Callable[[ModuleType], None]) -> None:
    loader = cast("Loader", spec.loader)
    load = loader.exec_module

    def exec_module(module: ModuleType) -> None:
        load(module)
        action(module)

    setattr(loader, "exec_module", exec_module)


def _watch_shapes(tensorflow: ModuleType) -> None:
    if hasattr(tensorflow, "__version__"):  # TensorFlow itself, not a replacement in the script's tests
        from npu_shim.data import watch_shapes

        watch_shapes()
