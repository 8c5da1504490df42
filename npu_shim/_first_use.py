"""Modules whose names live in other modules, which are loaded when such a name is first used (PEP 562)."""

from __future__ import annotations

import importlib
import sys
from typing import Any, Callable, Mapping

NOT_YET = "not_yet:"  # what follows is a table of ops/not_yet.py


def first_use(module: str, homes: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The ``__getattr__`` and ``__dir__`` of a module.

    What was used once is the module's own from then on: the same object as in its home.

    Args:
        module: its ``__name__``.
        homes: a module, or NOT_YET and a table, to the names that live there, with spaces between them. A home that
            is the name within this module gives itself.
    """
    home_of: dict[str, str] = {name: home for home, names in homes.items() for name in names.split()}

    def __getattr__(name: str) -> Any:
        here = sys.modules[module]
        if name not in home_of:
            raise AttributeError(f"module {module!r} has no attribute {name!r}; it offers {', '.join(here.__all__)}")
        value = _found(home_of[name], name, module)
        setattr(here, name, value)
        return value

    def __dir__() -> list[str]:
        return sorted(set(vars(sys.modules[module])) | set(home_of))

    return __getattr__, __dir__


def _found(home: str, name: str, module: str) -> Any:
    if home.startswith(NOT_YET):
        from npu_shim.ops.not_yet import function

        return function(home[len(NOT_YET) :], name)
    loaded = importlib.import_module(home)
    return loaded if home == f"{module}.{name}" else getattr(loaded, name)
