"""Modules that a process has imported before its script, which takes them over or starts again without them.

A rank that is forked from a process with TensorFlow must behave as a new Python. So the modules are hidden at first: a
module appears in ``sys.modules`` when the script imports it. At that moment the environment variables and the search
path must be as they were when the module was really imported, because modules read both. Otherwise the process is
replaced by a new Python.
"""

from __future__ import annotations

import importlib
import os
import sys
import sysconfig
from importlib.abc import Loader
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Callable, Collection, Mapping, Sequence

from npu_shim._host import host_env
from npu_shim._host.packages import SITE_FOLDERS

TENSORFLOW = "tensorflow"
# Read when devices, sessions or ranks are created, not by an import.
READ_LATER: tuple[str, ...] = (
    *("CUDA_", "RANK_", "HCCL_", "ASCEND_", "DEVICE_", "NPU_SHIM_", "CM_", "GE_", "JOB_ID", "TF_CONFIG", "POD_"),
    *("TF_FORCE_GPU_ALLOW_GROWTH", "TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS", "TF_CPU_ALLOCATOR_USE_BFC"),
    *("TF_CPU_BFC_MEM_LIMIT_IN_MB", "PYTHONUNBUFFERED", "TMPDIR"),
    *("KMP_DUPLICATE_LIB_OK", "KMP_INIT_AT_FORK"),  # scikit-learn sets them, for a second OpenMP library
)
# Read by TensorFlow and Keras only.
OF_TENSORFLOW = ("TF_", "TF2_", "XLA_", "KERAS_", "AUTOGRAPH_", "CUDA_")
_FAMILY = (TENSORFLOW, "keras", "tf_keras")  # names that begin so import TensorFlow
_STANDARD_LIBRARY = (sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib"))


class Preloaded:
    """A module finder for modules that are imported already.

    Args:
        before: the names of the modules that a new Python has.
        environ: the environment variables of their import.
        added: the environment variables that their import has set.
        start_again: replaces the process; gets the reason.
        first: called when the script imports TensorFlow.
    """

    def __init__(
        self,
        before: Collection[str],
        environ: Mapping[str, str],
        added: Mapping[str, str],
        start_again: Callable[[str], None],
        first: Callable[[], None],
    ) -> None:
        self._environ, self._added = dict(environ), dict(added)
        self._start_again, self._first = start_again, first
        self._path = list(sys.path)
        self._modules = {
            name: module for name, module in sys.modules.items() if name not in before and not _is_never_hidden(name)
        }
        self._tops = {name for name in self._modules if "." not in name}

    def hide_modules(self) -> None:
        """Hide the modules until they are imported."""
        for name in self._modules:
            del sys.modules[name]
        sys.meta_path.insert(0, self)

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return a spec for a hidden module, None for all others."""
        module = self._modules.get(name)
        if module is None:
            return None
        old = getattr(module, "__spec__", None)
        spec = ModuleSpec(name, _Loader(self, module), origin=getattr(old, "origin", None))
        spec.submodule_search_locations = getattr(old, "submodule_search_locations", None)
        return spec

    def show_module(self, name: str) -> None:
        """Put a module and its package into ``sys.modules``; with TensorFlow all modules that it has imported.

        Args:
            name: of the module that the script imports.
        """
        top = name.partition(".")[0]
        everything = top == TENSORFLOW
        reason = self._why_import_differs(top, top.startswith(_FAMILY))
        if reason:
            self._start_again(reason)
        if everything:
            host_env.process_environ().update(self._added)
            self._first()
        elif top.startswith(_FAMILY):
            importlib.import_module(TENSORFLOW)  # other finders may wait for it
        shown = [module_name for module_name in self._modules if everything or module_name.partition(".")[0] == top]
        for module_name in shown:
            module = self._modules.pop(module_name)
            if module_name != name:  # the import system adds that one
                sys.modules[module_name] = module
        if not self._modules and self in sys.meta_path:
            sys.meta_path.remove(self)

    def _why_import_differs(self, top: str, for_all_packages: bool) -> str | None:
        """Return why an import of a package now would differ from its import in the past; None if it would not."""
        ignored = READ_LATER if for_all_packages else READ_LATER + OF_TENSORFLOW
        environ = host_env.process_environ()
        for name in sorted({*environ, *self._environ}):
            at_import = self._environ.get(name)
            same = environ.get(name) in (at_import, self._added.get(name, at_import))
            if not same and not name.startswith(ignored):
                return f"the script, or a module that it imports, sets {name} before it imports {top}"
        if sys.path == self._path:
            return None
        for package in self._tops if for_all_packages else {top}:
            hidden = shadowing_file(package, self._modules.get(package))
            if hidden:
                return f"{hidden} in the search path of the script hides the module {package}"
        return None


class _Loader(Loader):
    """Load a module that exists."""

    def __init__(self, finder: Preloaded, module: ModuleType) -> None:
        self._finder, self._module = finder, module
        self._spec = getattr(module, "__spec__", None)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return the module."""
        self._finder.show_module(spec.name)
        return self._module

    def exec_module(self, module: ModuleType) -> None:
        """Give the module its own spec back, which the import system has replaced."""
        module.__spec__ = self._spec


def shadowing_file(name: str, module: ModuleType | None) -> str | None:
    """Return the file that an import of a name would load now, if it is not the file of the module; else None.

    Args:
        name: of a module, without a dot.
        module: its module.
    """
    spec = getattr(module, "__spec__", None)
    if spec is None or not spec.has_location:
        return None
    current = PathFinder.find_spec(name)
    if current is None or not current.has_location or current.origin == spec.origin:
        return None
    return current.origin


def _is_never_hidden(name: str) -> bool:
    """Return True for a module that is not hidden: of Python, and of npu_shim, which read no variables at import."""
    top = name.partition(".")[0]
    if top in ("__main__", "__mp_main__", "npu_shim"):
        return True
    module = sys.modules.get(top)
    file = getattr(module, "__file__", None)
    if file is None:  # a namespace package has a path; others are built in, or shared by compiled modules
        return not hasattr(module, "__path__")
    parts = file.split(os.sep)
    return any(file.startswith(folder + os.sep) for folder in _STANDARD_LIBRARY) and not any(
        folder in parts for folder in SITE_FOLDERS
    )
