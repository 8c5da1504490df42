"""The vendor's packages, toolkit and driver, and the Ascend cards of this machine."""

from __future__ import annotations

import glob
import os
import re
from dataclasses import dataclass
from typing import Mapping, Sequence

from npu_shim._host.host_device import DEVICE_FILES, card_product
from npu_shim._host.packages import package_path, version_of

# TF Adapter for TensorFlow 1 and 2, collectives, operator compiler
PACKAGES = ("npu_bridge", "npu_device", "hccl", "te")
_TOOLKIT_HOMES = ("ASCEND_TOOLKIT_HOME", "ASCEND_HOME_PATH")
_INSTALLED = "usr/local/Ascend"
_VERSION = re.compile(r"^\s*version\s*=\s*(\S+)", re.IGNORECASE | re.MULTILINE)


@dataclass(frozen=True)
class Package:
    """A package of the vendor; its path is None if it is not installed."""

    name: str
    path: str | None
    version: str | None


@dataclass(frozen=True)
class Component:
    """An installed folder of the vendor; its version is None if no file has it."""

    path: str
    version: str | None


@dataclass(frozen=True)
class VendorFacts:
    """The vendor's software and hardware; the product of the cards is None if it is unknown."""

    packages: Sequence[Package]
    driver: Component | None
    toolkit: Component | None
    product: str | None
    cards: Sequence[str]


def vendor_facts(environ: Mapping[str, str], root: str = "/") -> VendorFacts:
    """Return the vendor's packages, driver, toolkit and cards.

    Args:
        environ: the variables, which may give the folder of the toolkit.
        root: root of the file system.
    """
    packages = []
    for name in PACKAGES:
        path = package_path(name)
        packages.append(Package(name, path, version_of(name) if path else None))
    return VendorFacts(
        packages=packages,
        driver=_installed_component(os.path.join(root, _INSTALLED, "driver"), "version.info"),
        toolkit=_installed_component(_toolkit_folder(environ, root), "version.cfg", "*/ascend_toolkit_install.info"),
        product=card_product(root),
        cards=sorted(glob.glob(os.path.join(root, DEVICE_FILES.lstrip("/")))),
    )


def _toolkit_folder(environ: Mapping[str, str], root: str) -> str:
    homes = [environ[name] for name in _TOOLKIT_HOMES if environ.get(name)]
    return homes[0] if homes else os.path.join(root, _INSTALLED, "ascend-toolkit", "latest")


def _installed_component(folder: str, *files: str) -> Component | None:
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
            return Component(folder, version.group(1))
    return Component(folder, None)
