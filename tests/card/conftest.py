"""A host that seems to have a card: packages with the vendor's names, operators and arguments, and a device file.

npu_shim then takes the branch of the card. TensorFlow 1.15 has the package npu_bridge, TensorFlow 2 has npu_device. A
process that has seen a card keeps it, so these tests run in a process of their own.
"""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
from typing import Any

import pytest
import tensorflow as tf

HERE = os.path.dirname(os.path.abspath(__file__))
FACE = "npu_bridge" if tf.__version__.startswith("1.") else "npu_device"
FOLDER = tempfile.mkdtemp(prefix="npu_shim_card")
atexit.register(shutil.rmtree, FOLDER)
sys.path[:0] = [FOLDER, HERE]

import vendor_code  # noqa: E402
import vendor_package  # noqa: E402

from npu_shim._host import host_device  # noqa: E402

vendor_package.write(FOLDER, FACE)
open(os.path.join(FOLDER, "davinci0"), "w").close()
host_device.DEVICE_FILES = os.path.join(FOLDER, "davinci[0-9]*")
os.environ["NPU_SHIM_FALLBACK"] = "error"


def pytest_collection_modifyitems(items: list[Any]) -> None:
    """Refuse other tests in the same process."""
    others = [item.nodeid for item in items if not str(item.fspath).startswith(HERE)]
    if others:
        raise pytest.UsageError(f"run tests/card in a process of its own, without {others[0]}")


@pytest.fixture
def calls() -> list[vendor_code.Call]:
    """Return the calls of the vendor's names from here on."""
    vendor_code.CALLS.clear()
    return vendor_code.CALLS
