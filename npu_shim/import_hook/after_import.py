"""Does something when a module has been imported, and not before: a script may never import it."""

from __future__ import annotations

from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, Callable

from npu_shim.import_hook import autograph
from npu_shim.import_hook.lines import Lookup

_AUTOGRAPH_PARSER = ".python.autograph.pyct.parser"  # below tensorflow; in TensorFlow 1.15 below tensorflow_core


def prepare(spec: ModuleSpec, migrated: Lookup, watch_shapes: bool) -> None:
    """Has TensorFlow's modules extended as soon as they are loaded.

    Args:
        spec: of a module that is about to be loaded, any one.
        migrated: gives the migrated form of a file.
        watch_shapes: whether shapes that change from run to run are told.
    """
    if spec.name == "tensorflow" and watch_shapes:
        _then(spec, _watch_shapes)
    elif spec.name.startswith("tensorflow") and spec.name.endswith(_AUTOGRAPH_PARSER):
        _then(spec, lambda parser: autograph.teach(parser, migrated))


def _then(spec: ModuleSpec, action: Callable[[Any], None]) -> None:
    loader: Any = spec.loader
    load = loader.exec_module

    def exec_module(module: ModuleType) -> None:
        load(module)
        action(module)

    loader.exec_module = exec_module


def _watch_shapes(tensorflow: Any) -> None:
    if hasattr(tensorflow, "__version__"):  # TensorFlow indeed, and not a stand-in of the script's tests
        from npu_shim.data import watch_shapes

        watch_shapes()
