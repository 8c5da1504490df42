"""The vendor's packages, toolkit and driver, and the Ascend cards of this machine."""

from __future__ import annotations

import glob
import os
import re
from typing import Any, Mapping

from npu_shim import _env
from npu_shim._device import DEVICE_FILES
from npu_shim._packages import path_of, version_of
from npu_shim.distributed.ranktable.products import ASCEND_A5, ATLAS_910, ATLAS_A2, ATLAS_A3

# TF Adapter for TensorFlow 1 and 2, collectives, operator compiler
PACKAGES = ("npu_bridge", "npu_device", "hccl", "te")
_TOOLKIT_HOMES = ("ASCEND_TOOLKIT_HOME", "ASCEND_HOME_PATH")
_INSTALLED = "usr/local/Ascend"
_PCI_VENDOR = "0x19e5"
_PCI_PRODUCTS = {"0xd801": ATLAS_910, "0xd802": ATLAS_A2, "0xd803": ATLAS_A3, "0xd806": ASCEND_A5}
_VERSION = re.compile(r"^\s*version\s*=\s*(\S+)", re.IGNORECASE | re.MULTILINE)


def vendor(environ: Mapping[str, str] | None = None, root: str = "/") -> dict[str, Any]:
    """Return the vendor's packages, driver, toolkit, cards, and their product (one of PRODUCTS, None if unknown).

    Args:
        environ: the variables, which may give the folder of the toolkit; those of this process if None.
        root: root of the file system.
    """
    if environ is None:
        environ = _env.process_environ()
    packages = []
    for name in PACKAGES:
        path = path_of(name)
        packages.append({"name": name, "path": path, "version": version_of(name) if path else None})
    return {
        "packages": packages,
        "driver": _component(os.path.join(root, _INSTALLED, "driver"), "version.info"),
        "toolkit": _component(_toolkit(environ, root), "version.cfg", "*/ascend_toolkit_install.info"),
        "product": _product(root),
        "cards": sorted(glob.glob(os.path.join(root, DEVICE_FILES.lstrip("/")))),
    }


def _product(root: str) -> str | None:
    """Return the product of the cards on the PCI bus; None if there are none, or several products."""
    found = set()
    for folder in glob.glob(os.path.join(root, "sys/bus/pci/devices/*")):
        ids = []
        for name in ("vendor", "device"):
            try:
                with open(os.path.join(folder, name), encoding="ascii", errors="replace") as stream:
                    ids.append(stream.read().strip())
            except OSError:
                ids.append("")  # a device that has just been removed
        if ids[0] == _PCI_VENDOR and ids[1] in _PCI_PRODUCTS:
            found.add(_PCI_PRODUCTS[ids[1]])
    return found.pop() if len(found) == 1 else None


def _toolkit(environ: Mapping[str, str], root: str) -> str:
    homes = [environ[name] for name in _TOOLKIT_HOMES if environ.get(name)]
    return homes[0] if homes else os.path.join(root, _INSTALLED, "ascend-toolkit", "latest")


def _component(folder: str, *files: str) -> dict[str, str | None] | None:
    """Return an installed folder and the version in one of its files, None if the folder does not exist."""
    if not os.path.isdir(folder):
        return None
    found: list[str] = [path for pattern in files for path in sorted(glob.glob(os.path.join(folder, pattern)))]
    for path in found:
        try:
            with open(path, encoding="utf-8", errors="replace") as stream:
                version = _VERSION.search(stream.read())
        except OSError:
            continue  # another file may be readable
        if version:
            return {"path": folder, "version": version.group(1)}
    return {"path": folder, "version": None}
