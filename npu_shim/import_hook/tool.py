"""Find the migration tool: beside npu_shim, in tools/ of its checkout, or where it is installed."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from typing import Mapping

PACKAGE = "convert_tf2npu"


class ToolMissing(Exception):
    """Raised if the package of the migration tool is not found."""


def make_importable() -> None:
    """Make the package importable without changing ``sys.path``, which belongs to the script.

    Raises:
        ToolMissing: if it is in none of the folders, which the message names.
    """
    if PACKAGE in sys.modules:
        return
    parent = package_root()
    places = [os.path.join(parent, "tools", PACKAGE), os.path.join(parent, PACKAGE)]
    for place in places:
        file = os.path.join(place, "__init__.py")
        if os.path.isfile(file):
            spec = importlib.util.spec_from_file_location(PACKAGE, file, submodule_search_locations=[place])
            assert spec is not None and spec.loader is not None
            module = importlib.util.module_from_spec(spec)
            sys.modules[PACKAGE] = module
            spec.loader.exec_module(module)
            return
    try:
        importlib.import_module(PACKAGE + ".api")
    except ImportError as error:
        raise ToolMissing(
            f"the migration tool, package {PACKAGE}, is missing ({error}). Searched: {', '.join(places)}, sys.path. "
            "Install npu_shim with pip, or run from a checkout with tools/."
        ) from error


def package_root() -> str:
    """Return the folder that contains the package npu_shim."""
    return os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def with_package_path(environ: Mapping[str, str]) -> dict[str, str]:
    """Return environment variables with which Python finds the package npu_shim first."""
    paths = [package_root(), environ.get("PYTHONPATH", "")]
    return {**environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
