"""Installed packages: where they would be imported from, and their versions. Imports none of them.

A package that npu_shim serves under a foreign name (``npu_shim.alias``) does not count as installed.
"""

from __future__ import annotations

import importlib.util
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Sequence

ALIAS = "alias of npu_shim"  # origin of the specs of modules that npu_shim serves under a foreign name
SITE_FOLDERS = ("site-packages", "dist-packages")  # names of the folders of installed packages
_TENSORFLOW = ("tensorflow", "tensorflow-cpu", "tensorflow-gpu", "tensorflow-aarch64", "tensorflow-cpu-aws")


def version_of(distribution: str) -> str | None:
    """Return the version of an installed distribution, None if it is not installed."""
    if sys.version_info >= (3, 8):
        from importlib import metadata

        try:
            return metadata.version(distribution)
        except metadata.PackageNotFoundError:
            return None
    import pkg_resources

    try:
        return pkg_resources.get_distribution(distribution).version
    except pkg_resources.DistributionNotFound:
        return None


def package_path(package: str) -> str | None:
    """Return the path that a package would be imported from, None if it is not found."""
    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError):
        return None
    if spec is None or spec.origin == ALIAS:
        return None
    return spec.origin or next(iter(spec.submodule_search_locations or ()), None)


def find_spec_after(
    asking_finder: object, name: str, path: Sequence[str | bytes] | None, target: ModuleType | None
) -> ModuleSpec | None:
    """Return the spec of a module from the finders behind one on ``sys.meta_path``, None if they do not find it.

    Args:
        asking_finder: the finder that asks; none is asked if it has left ``sys.meta_path``.
        name, path, target: the arguments of its ``find_spec``.
    """
    for finder in sys.meta_path[sys.meta_path.index(asking_finder) + 1 :] if asking_finder in sys.meta_path else []:
        find = getattr(finder, "find_spec", None)
        spec = find(name, path, target) if find else None
        if spec is not None:
            return spec
    return None


def is_importable(package: str) -> bool:
    """Return True if a package is imported, or Python finds it."""
    if package in sys.modules:
        return sys.modules[package] is not None and not is_alias_module(sys.modules[package])
    spec = importlib.util.find_spec(package)
    return spec is not None and spec.origin != ALIAS


def is_alias_module(module: ModuleType | None) -> bool:
    """Return True if npu_shim serves a module under a foreign name."""
    spec = getattr(module, "__spec__", None)
    return spec is not None and (spec.origin == ALIAS or spec.name.startswith("npu_shim."))


def install_command(package: str) -> str:
    """Return the command that installs a package; of TensorFlow the version for the NPU that this Python can have."""
    wanted = package
    if package == "tensorflow":
        if sys.version_info < (3, 8):
            wanted = "'tensorflow==1.15.5' 'protobuf<3.21'"
        elif sys.version_info < (3, 10):
            wanted = "'tensorflow==2.6.5' 'keras<2.7' 'protobuf<3.21'"
        elif sys.version_info < (3, 12):
            wanted = "'tensorflow<2.16'"  # 2.15 is the last with Estimator
    return f"python -m pip install {wanted}"


def tensorflow_version() -> str | None:
    """Return the version of TensorFlow without an import, None if it is not known."""
    loaded = getattr(sys.modules.get("tensorflow"), "__version__", None)
    if loaded:
        return str(loaded)
    return next((version for version in map(version_of, _TENSORFLOW) if version), None)
