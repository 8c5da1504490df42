"""Module attributes that are loaded on first use (PEP 562)."""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Callable, Mapping

if TYPE_CHECKING:
    from npu_shim._tensorflow.types import Function

    missing: Function  # a function of ops/npu_only.py


def lazy_names(module: str, homes: Mapping[str, str]) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` for a module whose names live in other modules.

    Each name is loaded once. After that it is an attribute of the module, and the same object as in its home. A module
    that has no ``__all__`` gets one with these names.

    Args:
        module: ``__name__`` of the module.
        homes: home module to the names that live there, separated by spaces. If the home is the name within this
            module, the name is that submodule. For the home ``package.module:table``, the name is what
            ``package.module.npu_only_function(table, name)`` returns.
    """
    home_of: dict[str, str] = {name: home for home, names in homes.items() for name in names.split()}
    vars(sys.modules[module]).setdefault("__all__", sorted(home_of))

    def __getattr__(name: str) -> object:
        here = sys.modules[module]
        if name not in home_of:
            raise AttributeError(f"module {module!r} has no attribute {name!r}; it offers {', '.join(here.__all__)}")
        value = _load_name(home_of[name], name, module)
        setattr(here, name, value)
        return value

    def __dir__() -> list[str]:
        return sorted(set(vars(sys.modules[module])) | set(home_of))

    return __getattr__, __dir__


def _load_name(home: str, name: str, module: str) -> object:
    path, _, table = home.partition(":")
    loaded = importlib.import_module(path)
    if table:
        return loaded.npu_only_function(table, name)
    return loaded if home == f"{module}.{name}" else getattr(loaded, name)
