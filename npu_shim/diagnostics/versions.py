"""Versions of what is installed, read from its metadata."""

from __future__ import annotations

import importlib.util
import platform
import sys
from typing import Any

import npu_shim


def versions() -> dict[str, Any]:
    """npu_shim, Python and the system."""
    return {
        "npu_shim": npu_shim.__version__,
        "npu_shim_path": npu_shim.__path__[0],
        "python": platform.python_version(),
        "python_path": sys.executable,
        "system": platform.platform(),
        "machine": platform.machine(),
    }


def version_of(distribution: str) -> str | None:
    """The version of an installed distribution, None where there is none."""
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


def path_of(package: str) -> str | None:
    """Where a package would be imported from, None where it cannot be found."""
    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError):
        return None
    if spec is None:
        return None
    return spec.origin or next(iter(spec.submodule_search_locations or ()), None)
