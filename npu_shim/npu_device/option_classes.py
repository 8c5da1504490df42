"""The classes of the options for TensorFlow 2, on an NPU the vendor's."""

from __future__ import annotations

from npu_shim._host import host_device
from npu_shim._vendor_paths import table as _paths
from npu_shim.config.device_options import *  # noqa: F403

_HERE = "npu_device.option_classes"  # in the table

if host_device.has_npu_device():
    for _module, _homes in _paths.TABLE.items():
        _served = host_device.import_vendor_module(_module) if _HERE in _homes else None
        globals().update((_name, getattr(_served, _name)) for _name in _homes.get(_HERE, "").split())
