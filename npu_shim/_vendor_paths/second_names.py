"""Modules of npu_shim that can be imported under a second name."""

from __future__ import annotations

import importlib
import importlib.abc
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Sequence

from npu_shim._vendor_paths.table import GRAPH_MODE, IN_GRAPH_MODE

_PACKAGE = f"npu_shim.{GRAPH_MODE}"


class Loader(importlib.abc.Loader):
    """Load a module under a second name.

    Args:
        home: the module of npu_shim.
    """

    def __init__(self, home: str) -> None:
        self.home = home

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Return None: Python creates the module, and exec_module replaces it."""
        return None

    def exec_module(self, module: ModuleType) -> None:
        """Put the module of npu_shim in the place of ``module``."""
        sys.modules[module.__name__] = importlib.import_module(self.home)


class GraphMode(importlib.abc.MetaPathFinder):
    """Find the modules of npu_bridge below ``npu_shim.npu_device.compat.v1``."""

    def find_spec(
        self, name: str, path: Sequence[str | bytes] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of a module, None if it is no second name.

        Raises:
            ModuleNotFoundError: the vendor has no such module in a package of graph mode.
        """
        module = name[len(_PACKAGE) :] if name.startswith(_PACKAGE) else ""
        if module in IN_GRAPH_MODE:
            return ModuleSpec(name, Loader(f"npu_shim.{module}"))
        if module.partition(".")[0] in IN_GRAPH_MODE:  # Python would load a file of npu_shim a second time
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return None


def install() -> None:
    """Install the finder of graph mode before all others. A second call does nothing."""
    if not any(isinstance(finder, GraphMode) for finder in sys.meta_path):
        sys.meta_path.insert(0, GraphMode())
