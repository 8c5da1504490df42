"""The names of a module at a vendor's path, which are loaded on first use."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Callable

from npu_shim._host.lazy_names import lazy_names
from npu_shim._vendor_paths.table import ALWAYS_OWN, OUTSIDE_NPU_BRIDGE, TABLE, names_of_row

_PACKAGE = "npu_shim."


def vendor_names(module: str) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` for a module of the table.

    At a path of the vendor's package npu_bridge, each name is the vendor's own object on an NPU, also a name that the
    table does not have. Otherwise, and if the vendor's module does not have it, it is the object of lazy_names. Each
    name is loaded once.

    Args:
        module: ``__name__`` of the module, ``npu_shim`` and the vendor's path.
    """
    below = module[len(_PACKAGE) :]
    homes = {source: names_of_row(source, names) for source, names in TABLE[below].items()}
    own_attribute, own_dir = lazy_names(module, {_PACKAGE + source: " ".join(names) for source, names in homes.items()})
    if below.startswith(OUTSIDE_NPU_BRIDGE):
        return own_attribute, own_dir
    always_own = {name for source in ALWAYS_OWN for name in homes.get(source, ())}

    def vendors_module() -> ModuleType | None:
        from npu_shim._host import host_device

        return host_device.find_vendor_module(f"npu_bridge.{below}")

    def __getattr__(name: str) -> object:
        if not (name in always_own or name.startswith("__")):
            vendors = vendors_module()
            if vendors is not None and hasattr(vendors, name):
                value = getattr(vendors, name)
                setattr(sys.modules[module], name, value)
                return value
        return own_attribute(name)

    def __dir__() -> list[str]:
        vendors = vendors_module()
        return sorted(set(own_dir()) | set(() if vendors is None else dir(vendors)))

    return __getattr__, __dir__
