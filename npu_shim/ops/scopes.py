"""Scopes that set attributes for the NPU's compiler on the ops created inside.

Each sets a node attribute, or a name, on the ops. The NPU's compiler reads it.
The CPU ignores it, and no number changes.
"""

from __future__ import annotations

import enum
from typing import ContextManager

from npu_shim._host.argument_checks import check_positive_int
from npu_shim._tensorflow import tf_api, tf_graph


class NpuExecutePlacement(enum.Enum):
    """The unit of the chip on which npu_variable_scope places variables."""

    ALL = "all"
    CUBE = "cube"
    VECTOR = "vector"
    TAISHAN = "taishan"
    DVPP = "dvpp"
    HOST = "host"


def without_npu_compile_scope() -> ContextManager[None]:
    """Run ops on the host; needs mix_compile_mode on the NPU. No effect on the CPU."""
    return tf_graph.attr_scope({"_without_npu_compile": True})


def npu_variable_scope(placement: NpuExecutePlacement = NpuExecutePlacement.ALL) -> ContextManager[None]:
    """Place variables on a unit of the chip. No effect on the CPU.

    Raises:
        ValueError: if placement is not an NpuExecutePlacement.
    """
    if not isinstance(placement, NpuExecutePlacement):
        names = ", ".join(str(p) for p in NpuExecutePlacement)
        raise ValueError(f"placement={placement!r} is not allowed: it must be one of {names}.")
    return tf_graph.attr_scope({"_variable_placement": placement.value})


def keep_dtype_scope() -> ContextManager[None]:
    """Keep the type of ops under mixed precision. No effect on the CPU, which has none."""
    return tf_graph.attr_scope({"_keep_dtype": 1})


def npu_stage_scope(stage: int) -> ContextManager[None]:
    """Assign ops to a pipeline stage. No effect on the CPU."""
    return tf_graph.attr_scope({"_stage_level": int(stage)})


def npu_mem_type_scope() -> ContextManager[None]:
    """Place the results of ops in another memory type. No effect on the CPU."""
    return tf_graph.attr_scope({"_output_memory_type": 1})


def npu_weight_prefetch_scope(buffer_pool_id: int = 0, buffer_pool_size: int = 536870912) -> ContextManager[None]:
    """Prefetch weights through a buffer of ``buffer_pool_size`` bytes. No effect on the CPU."""
    return tf_graph.attr_scope({"_buffer_pool_id": int(buffer_pool_id), "_buffer_pool_size": int(buffer_pool_size)})


def op_specified_engine_scope(engine_name: str, kernel_lib_name: str) -> ContextManager[None]:
    """Run ops on a named engine with a named kernel library. No effect on the CPU."""
    return tf_graph.attr_scope({"_specified_engine_name": engine_name, "_specified_kernel_lib_name": kernel_lib_name})


def npu_qos_label_scope(label: int) -> ContextManager[None]:
    """Label ops for quality of service. No effect on the CPU."""
    return tf_graph.attr_scope({"_qos_service_label": int(label)})


def subgraph_multi_dims_scope(index: int) -> ContextManager[None]:
    """Make ops a subgraph with its own shape profiles. No effect on the CPU."""
    return tf_graph.attr_scope({"_subgraph_multi_dims_index": int(index)})


def npu_optimizer_scope() -> ContextManager[None]:
    """Mark ops as part of the optimizer. No effect on the CPU."""
    return tf_graph.attr_scope({"_optimizer": True})


def npu_recompute_scope() -> ContextManager[None]:
    """Recompute results in the backward pass to save memory on the NPU. A name scope on the CPU."""
    return tf_api.v1.name_scope("NpuRecompute")


def npu_graph_slice_scope(slice_num: int | None = None) -> ContextManager[None]:
    """Split the graph into slices on the NPU. A name scope on the CPU.

    Raises:
        TypeError, ValueError: if slice_num is not an int of at least 1.
    """
    if slice_num is not None:
        check_positive_int(slice_num, "slice_num")
    # The name that the NPU's pass reads.
    return tf_api.v1.name_scope(f"SliceNum-{slice_num}-NpuGraphSlicing{slice_num}")


def disable_autofuse() -> ContextManager[None]:
    """Do not fuse ops. No effect on the CPU."""
    return tf_graph.attr_scope({"_disable_autofuse_scope": True})


def limit_core_num_scope(op_aicore_num: str = "0", op_vectorore_num: str = "0") -> ContextManager[None]:
    """Limit the number of vector cores for ops. No effect on the CPU.

    Args:
        op_aicore_num: has no effect, as in the vendor's package.
        op_vectorore_num: a positive number as a string.
    Raises:
        ValueError: if op_vectorore_num is something else.
    """
    if not isinstance(op_vectorore_num, str) or not op_vectorore_num.isdigit() or int(op_vectorore_num) < 1:
        raise ValueError(
            f"op_vectorore_num={op_vectorore_num!r} is not allowed: it must be a positive number as a string, like '8'."
        )
    return tf_graph.attr_scope({"_op_vectorcore_num": op_vectorore_num})


__all__ = [name for name in dir() if name.endswith("scope") or name in ("disable_autofuse", "NpuExecutePlacement")]
