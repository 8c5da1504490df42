"""The vendor's npu_bridge.tf_adapter. Generated from npu_shim/_vendor_paths/modules.json; do not edit."""

from npu_shim.config.adapter import (
    Clear, EnableControl, GetDeviceSatMode, GetVarAddrAndSize, InitRdmaPool, MallocSharedMem, NpuClose, PluginFinalize,
    PluginInit, ProfilerStart, ProfilerStop, RdmaInitAndRegister, RegistRdmaRemoteAddr, SetDeviceSatMode,
)
from npu_shim.ops.library import DT_DOUBLE, DT_FLOAT, DT_HALF, DT_INT32, DT_INT64, DT_UINT64

__all__ = [
    "Clear", "DT_DOUBLE", "DT_FLOAT", "DT_HALF", "DT_INT32", "DT_INT64", "DT_UINT64", "EnableControl",
    "GetDeviceSatMode", "GetVarAddrAndSize", "InitRdmaPool", "MallocSharedMem", "NpuClose", "PluginFinalize",
    "PluginInit", "ProfilerStart", "ProfilerStop", "RdmaInitAndRegister", "RegistRdmaRemoteAddr", "SetDeviceSatMode",
]
