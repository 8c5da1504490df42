"""Finds the migration tool: beside npu_shim, in tools/ of its checkout, or wherever it is installed."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys

PACKAGE = "convert_tf2npu"


class ToolMissing(Exception):
    """The package of the migration tool is not there."""


def load() -> None:
    """Makes the package importable, and leaves ``sys.path`` as it is: the path belongs to the script.

    Raises:
        ToolMissing: it is in none of the places; the text names them.
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
        importlib.import_module(PACKAGE + ".convert")
    except ImportError as error:
        raise ToolMissing(
            f"the migration tool, package {PACKAGE}, is missing ({error}). It was looked for in {' and '.join(places)} "
            "and on sys.path. Install npu_shim with pip, which brings it, or run from a checkout that has tools/."
        ) from error


def package_root() -> str:
    """The folder that holds the package npu_shim."""
    return os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
