"""Take the place of matplotlib where a script only draws."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
from typing import Any
from unittest import mock

use = mock.MagicMock()


class _Modules(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Find a mock for each module below this one but pyplot."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """Return where the module is, or None for one of another package."""
        is_below = name.startswith(f"{__name__}.") and name != f"{__name__}.pyplot"
        return importlib.machinery.ModuleSpec(name, self, is_package=True) if is_below else None

    def create_module(self, spec: Any) -> Any:
        """Return the mock."""
        return mock.MagicMock(__path__=[])

    def exec_module(self, module: Any) -> None:
        """Leave it as it is."""


sys.meta_path.append(_Modules())


def __getattr__(name: str) -> Any:
    return mock.MagicMock()
