"""Serve the packages npu_bridge, hccl, npu_device, horovod and moxing where they are not installed.

A script that imports the vendor's packages or Horovod runs unchanged, and so does one for ModelArts. Importing this
module installs a module finder::

    import npu_shim.alias

    from npu_bridge.npu_init import *
    import horovod.tensorflow as hvd

``npu_bridge.npu_init`` then is the module ``npu_shim.npu_init``, not a copy of it. A package that is installed is
imported as usual, and a warning names it. ``npu-shim run --alias script.py`` and ``NPU_SHIM_ALIAS=1`` do the same
without a change of the script.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.util
import sys
import warnings
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Sequence

from npu_shim._host import host_env
from npu_shim._host.host_device import VENDOR_PACKAGE
from npu_shim._host.lazy_names import lazy_names
from npu_shim._host.packages import ALIAS, find_spec_after, is_alias_module
from npu_shim._vendor_paths.second_names import Loader
from npu_shim._vendor_paths.table import TABLE

ROOTS = (VENDOR_PACKAGE, "hccl", "npu_device", "horovod")  # whose names npu_shim has, all or most
_MODELARTS = "moxing"
# The modules and names that the vendor's npu_bridge/__init__.py brings
_IMPORTED = (
    "estimator.npu.npu_config estimator.npu.npu_estimator estimator.npu.npu_hook estimator.npu.npu_plugin "
    "estimator.npu.npu_scope estimator.npu.util estimator.npu_ops hccl.hccl_ops"
)
_EXPORTED = {
    "npu_shim.estimator": "estimator",
    "npu_shim.estimator.npu": "npu_estimator",
    "npu_shim.estimator.npu.npu_plugin": "npu_close",
    "npu_shim.hccl": "hccl hccl_ops",
}


class Finder(importlib.abc.MetaPathFinder):
    """Find the modules of ROOTS and moxing in npu_shim, unless another finder has the package."""

    def find_spec(
        self, name: str, path: Sequence[str | bytes] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of a module, None if its package is not served.

        Raises:
            ModuleNotFoundError: the package is served, but has no such module.
        """
        root = name.partition(".")[0]
        if root not in (*ROOTS, _MODELARTS):
            return None
        if name == root:
            installed = find_spec_after(self, name, path, target)
            if installed is not None:
                if name != _MODELARTS:  # which is on its own platform then
                    warnings.warn(
                        f"The alias does not serve {name}: it is installed in "
                        f"{installed.origin or list(installed.submodule_search_locations or ())}.",
                        RuntimeWarning,
                    )
                return None
        elif not is_alias_module(sys.modules.get(root)):
            return None
        home = home_of(name)
        if home is None:  # Python would search the folders of npu_shim, and load its files a second time
            raise ModuleNotFoundError(
                f"No module named {name!r}. npu_shim serves {root}, but not this module.", name=name
            )
        loader = Loader(home) if home else BridgeLoader(home)
        return ModuleSpec(name, loader, origin=ALIAS, is_package=name == root)


class BridgeLoader(Loader):
    """Load npu_bridge itself, which is no module of npu_shim."""

    def exec_module(self, module: ModuleType) -> None:
        """Import the modules that the vendor's package imports, and give ``module`` its names."""
        name = module.__name__
        for part in _IMPORTED.split():
            importlib.import_module(f"{name}.{part}")
        exported = sorted(" ".join(_EXPORTED.values()).split())
        getter, lister = lazy_names(name, _EXPORTED)
        module.__dict__.update(__getattr__=getter, __dir__=lister, __all__=exported)


def home_of(name: str) -> str | None:
    """Return the module of npu_shim for a module of ROOTS or moxing.

    Args:
        name: the full name of the module.
    Returns:
        A full name; an empty string for npu_bridge itself; None if npu_shim has no such module.
    """
    if name == VENDOR_PACKAGE:
        return ""
    if not name.startswith(VENDOR_PACKAGE + "."):
        home = f"npu_shim._host.{name}" if name.split(".")[0] == _MODELARTS else f"npu_shim.{name}"
        return home if _is_importable(home) else None
    module = name[len(VENDOR_PACKAGE) + 1 :]
    modules = [other for other in (*TABLE, "npu_init") if not other.startswith("npu_device.")]
    return f"npu_shim.{module}" if any(f"{other}.".startswith(f"{module}.") for other in modules) else None


def _is_importable(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # of its package
        return False


def install() -> None:
    """Install the finder before all others, and export the ranks of mpirun. A second call does nothing."""
    if not any(isinstance(finder, Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, Finder())
    host_env.export_rank_variables()


install()
