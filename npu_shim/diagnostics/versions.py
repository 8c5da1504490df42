"""Versions of installed packages, read from their metadata."""

from __future__ import annotations

import importlib.util
import platform
import sys

import npu_shim


def versions() -> dict[str, str]:
    """Return versions and paths of npu_shim, Python and the system."""
    return {
        "npu_shim": npu_shim.__version__,
        "npu_shim_path": npu_shim.__path__[0],
        "python": platform.python_version(),
        "python_path": sys.executable,
        "system": platform.platform(),
        "machine": platform.machine(),
    }


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


def path_of(package: str) -> str | None:
    """Return the path that a package would be imported from, None if it is not found."""
    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError):
        return None
    if spec is None:
        return None
    return spec.origin or next(iter(spec.submodule_search_locations or ()), None)
