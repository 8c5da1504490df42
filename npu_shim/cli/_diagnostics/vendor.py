"""The vendor's packages, toolkit and driver, and the Ascend cards of this machine."""

from __future__ import annotations

import glob
import os
import re
from typing import Mapping

from npu_shim._host.host_device import DEVICE_FILES, card_product
from npu_shim._host.packages import package_path, version_of
from npu_shim._tensorflow.types import JsonObject

# TF Adapter for TensorFlow 1 and 2, collectives, operator compiler
PACKAGES = ("npu_bridge", "npu_device", "hccl", "te")
_TOOLKIT_HOMES = ("ASCEND_TOOLKIT_HOME", "ASCEND_HOME_PATH")
_INSTALLED = "usr/local/Ascend"
_VERSION = re.compile(r"^\s*version\s*=\s*(\S+)", re.IGNORECASE | re.MULTILINE)


def vendor_facts(environ: Mapping[str, str], root: str = "/") -> JsonObject:
    """Return the vendor's packages, driver, toolkit, cards, and their product (None if unknown).

    Args:
        environ: the variables, which may give the folder of the toolkit.
        root: root of the file system.
    """
    packages = []
    for name in PACKAGES:
        path = package_path(name)
        packages.append({"name": name, "path": path, "version": version_of(name) if path else None})
    return {
        "packages": packages,
        "driver": _component_facts(os.path.join(root, _INSTALLED, "driver"), "version.info"),
        "toolkit": _component_facts(_toolkit_folder(environ, root), "version.cfg", "*/ascend_toolkit_install.info"),
        "product": card_product(root),
        "cards": sorted(glob.glob(os.path.join(root, DEVICE_FILES.lstrip("/")))),
    }


def _toolkit_folder(environ: Mapping[str, str], root: str) -> str:
    homes = [environ[name] for name in _TOOLKIT_HOMES if environ.get(name)]
    return homes[0] if homes else os.path.join(root, _INSTALLED, "ascend-toolkit", "latest")


def _component_facts(folder: str, *files: str) -> dict[str, str | None] | None:
    """Return an installed folder and the version in one of its files, None if the folder does not exist."""
    if not os.path.isdir(folder):
        return None
    paths: list[str] = [path for pattern in files for path in sorted(glob.glob(os.path.join(folder, pattern)))]
    for path in paths:
        try:
            with open(path, encoding="utf-8", errors="replace") as stream:
                version = _VERSION.search(stream.read())
        except OSError:
            continue  # another file may be readable
        if version:
            return {"path": folder, "version": version.group(1)}
    return {"path": folder, "version": None}
