"""The functions of the vendor's module tf_adapter, below npu_plugin. On the CPU there is no device to start or stop."""

from __future__ import annotations

from typing import Mapping, Sequence

from npu_shim._tensorflow.types import DType
from npu_shim.config import plugin
from npu_shim.distributed import remote_memory
from npu_shim.ops.context_managers import Profiler

_DONE = 0


def PluginInit(init_options: Mapping[str, str]) -> None:
    """Start the graph engine. Does nothing on the CPU."""


def PluginFinalize() -> None:
    """Stop the graph engine. Does nothing on the CPU."""


def NpuClose() -> None:
    """Close the device. Does nothing on the CPU."""


def EnableControl() -> None:
    """Keep the NPU's graphs that come from here on, for Clear. Does nothing on the CPU."""


def Clear() -> None:
    """Free the NPU's graphs since EnableControl. Does nothing on the CPU."""


def SetDeviceSatMode(mode: int) -> None:
    """Set the result of an overflow. See npu_plugin.set_device_sat_mode."""
    plugin.set_device_sat_mode(mode)


def GetDeviceSatMode() -> int:
    """Return 1: an overflow results in infinity and NaN."""
    return int(plugin.is_inf_nan_enabled())


def ProfilerStart(level: str, aic_metrics: str, output_path: str) -> None:
    """Start profiling. Logs one line on the CPU; see profiler.Profiler."""
    Profiler(level=level, aic_metrics=aic_metrics, output_path=output_path).start()


def ProfilerStop() -> None:
    """Stop profiling. Does nothing on the CPU."""


def InitRdmaPool(size: int) -> int:
    """Create a pool of remote memory. Return 0; see npu_plugin.init_rdma_pool."""
    plugin.init_rdma_pool(size)
    return _DONE


def RegistRdmaRemoteAddr(var_info: Sequence[Sequence[int]]) -> int:
    """Register addresses and sizes as remote memory. Return 0; see npu_plugin.rdma_remote_register."""
    plugin.rdma_remote_register(var_info)
    return _DONE


def RdmaInitAndRegister(var_info: Sequence[Sequence[int]], size: int) -> int:
    """Call InitRdmaPool and RegistRdmaRemoteAddr. Return 0."""
    plugin.rdma_remote_init(var_info, size)
    return _DONE


def MallocSharedMem(var_name: str, dims: Sequence[int], data_type: DType) -> list[int]:
    """Return 0, address and bytes of a memory; see npu_plugin.malloc_shared_memory."""
    return [_DONE, *remote_memory.malloc_shared_memory(var_name, dims, data_type)]


def GetVarAddrAndSize(var_name: str) -> list[int]:
    """Return 0, address and bytes of a variable's memory; see npu_plugin.get_var_addr_and_size."""
    return [_DONE, *remote_memory.get_var_addr_and_size(var_name)]
