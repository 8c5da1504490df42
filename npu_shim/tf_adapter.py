"""The vendor's npu_bridge.tf_adapter. Generated from the table in npu_shim/_vendor_paths.py; do not edit."""
from __future__ import annotations

from typing import TYPE_CHECKING

from npu_shim._lazy_names import Missing as _Missing, vendor_names as _vendor_names

if TYPE_CHECKING:
    from npu_shim.ops.library import DT_DOUBLE
    from npu_shim.ops.library import DT_FLOAT
    from npu_shim.ops.library import DT_HALF
    from npu_shim.ops.library import DT_INT32
    from npu_shim.ops.library import DT_INT64
    from npu_shim.ops.library import DT_UINT64

    Clear: _Missing
    EnableControl: _Missing
    GetDeviceSatMode: _Missing
    GetVarAddrAndSize: _Missing
    InitRdmaPool: _Missing
    MallocSharedMem: _Missing
    NpuClose: _Missing
    PluginFinalize: _Missing
    PluginInit: _Missing
    ProfilerStart: _Missing
    ProfilerStop: _Missing
    RdmaInitAndRegister: _Missing
    RegistRdmaRemoteAddr: _Missing
    SetDeviceSatMode: _Missing
else:
    __getattr__, __dir__ = _vendor_names(__name__, {
        "npu_shim.ops.library": "DT_DOUBLE DT_FLOAT DT_HALF DT_INT32 DT_INT64 DT_UINT64",
        "npu_shim.ops.unimplemented:tf_adapter": (
            "Clear EnableControl GetDeviceSatMode GetVarAddrAndSize InitRdmaPool MallocSharedMem NpuClose "
            "PluginFinalize PluginInit ProfilerStart ProfilerStop RdmaInitAndRegister RegistRdmaRemoteAddr "
            "SetDeviceSatMode"
        ),
    })

__all__ = [
    "Clear",
    "DT_DOUBLE",
    "DT_FLOAT",
    "DT_HALF",
    "DT_INT32",
    "DT_INT64",
    "DT_UINT64",
    "EnableControl",
    "GetDeviceSatMode",
    "GetVarAddrAndSize",
    "InitRdmaPool",
    "MallocSharedMem",
    "NpuClose",
    "PluginFinalize",
    "PluginInit",
    "ProfilerStart",
    "ProfilerStop",
    "RdmaInitAndRegister",
    "RegistRdmaRemoteAddr",
    "SetDeviceSatMode",
]
