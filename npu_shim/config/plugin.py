"""The functions of the vendor's npu_plugin on the CPU, which has no backend: they only check their arguments."""

from __future__ import annotations

from typing import Sequence

from npu_shim._tensorflow.types import Variable
from npu_shim.ops.overflow import OVERFLOW
from npu_shim.options.check import checked_session_options


def npu_resource_init(
    graph_run_mode: int = 1, op_debug_level: int = 0, enable_profiling: bool = False,
    profiling_options: str | None = None, precision_mode: str | None = None,
    enable_scope_fusion_passes: str | None = None, enable_exception_dump: int = 2, aoe_mode: str | None = None,
    work_path: str | None = None, op_compiler_cache_mode: str | None = None, op_compiler_cache_dir: str | None = None,
    debug_dir: str | None = None, hcom_multi_mode: bool = False, distribute_config: str | None = None,
    aoe_config_file: str | None = None, precision_mode_v2: str | None = None, export_compile_stat: int = 1,
    aicore_num: str | None = None, oo_constant_folding: bool = True, input_batch_cpy: bool = False,
    oo_level: str = "O3", optimization_switch: str | None = None,
) -> None:  # fmt: skip
    """Check the options; there is no backend to start.

    Args: the NPU options of the same names; enable_profiling is profiling_mode.
    Raises:
        TypeError, ValueError: as session_config does.
    """
    options = dict(locals())
    options["profiling_mode"] = options.pop("enable_profiling")
    options["op_debug_level"] = options["op_debug_level"] or None
    checked_session_options(options)
    if enable_profiling and profiling_options is None:
        raise ValueError("npu_resource_init: enable_profiling=True needs profiling_options. Give a JSON string.")


def npu_resource_shutdown() -> None:
    """Stop the backend. Does nothing on the CPU."""


def npu_close() -> None:
    """Close the backend. Does nothing on the CPU."""


def init_op_compiler_cache_mode(init: dict[str, str], op_compiler_cache_mode: str | None) -> None:
    """Set the option in a dictionary of the graph engine's options, unless it is None."""
    _set_unless_none(init, "ge.op_compiler_cache_mode", op_compiler_cache_mode)


def init_op_compiler_cache_dir(init: dict[str, str], op_compiler_cache_dir: str | None) -> None:
    """Set the option in a dictionary of the graph engine's options, unless it is None."""
    _set_unless_none(init, "ge.op_compiler_cache_dir", op_compiler_cache_dir)


def init_debug_dir(init: dict[str, str], debug_dir: str | None) -> None:
    """Set the option in a dictionary of the graph engine's options, unless it is None."""
    _set_unless_none(init, "ge.debugDir", debug_dir)


def _set_unless_none(options: dict[str, str], key: str, value: str | None) -> None:
    if value is not None:
        options[key] = value


def check_graph_run_mode(graph_run_mode: int) -> None:
    """Raise ValueError for a mode other than 0 and 1."""
    checked_session_options({"graph_run_mode": graph_run_mode})


def init_rdma_pool(mem_size: int) -> None:
    """Create a pool of remote memory. Does nothing on the CPU.

    Raises:
        ValueError: if mem_size is not an int.
    """
    if not isinstance(mem_size, int):
        raise ValueError(f"mem_size={mem_size!r} is not allowed: it must be an int, in bytes.")


def rdma_remote_register(remote_var_list: Sequence[Variable]) -> None:
    """Register variables as remote memory. Does nothing on the CPU.

    Raises:
        ValueError: if remote_var_list is not a list or tuple.
    """
    if not isinstance(remote_var_list, (list, tuple)):
        raise ValueError(f"remote_var_list={remote_var_list!r} is not allowed: it must be a list.")


def rdma_remote_init(remote_var_list: Sequence[Variable], mem_size: int) -> None:
    """Call init_rdma_pool and rdma_remote_register."""
    init_rdma_pool(mem_size)
    rdma_remote_register(remote_var_list)


def set_device_sat_mode(mode: int) -> None:
    """Set the result of an overflow: 0 for the largest number, 1 for infinity and NaN.

    The CPU computes with infinity and NaN, so it accepts 0 only while half precision is rehearsed.

    Raises:
        ValueError: for another mode, or for 0 on the CPU.
    """
    if mode not in (0, 1):
        raise ValueError(f"mode={mode!r} is not allowed: it must be 0 or 1.")
    if mode == 0 and not OVERFLOW.rehearsed:
        raise ValueError(
            "set_device_sat_mode(0) is not possible on the CPU, which has infinity and NaN. Use mode 1, or rehearse "
            "half precision: npu-shim run --half."
        )
    OVERFLOW.set_mode(mode)


def is_inf_nan_enabled() -> bool:
    """Return True if an overflow results in infinity and NaN, as on the CPU but for rehearsals with saturation."""
    return not OVERFLOW.saturates
