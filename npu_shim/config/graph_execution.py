"""Execution settings of a graph for the NPU: dynamic inputs, training, memory optimization."""

from __future__ import annotations

from npu_shim._tensorflow import tf_api, tf_graph
from npu_shim._tensorflow.types import Fetches
from npu_shim.config.nested import ExperimentalConfig
from npu_shim.ops.node_attributes import ops_of_fetch

_MODES = ("lazy_recompile", "dynamic_execute")


def set_graph_exec_config(
    fetch: Fetches,
    dynamic_input: bool = False,
    dynamic_graph_execute_mode: str = "dynamic_execute",
    dynamic_inputs_shape_range: str | None = None,
    is_train_graph: bool = False,
    experimental_config: ExperimentalConfig | None = None,
) -> Fetches:
    """Set how the graph behind a fetch runs on the NPU. No effect on the CPU.

    Args:
        fetch: an op, a tensor, a tensor's name, or a list of ops and tensors.
        dynamic_input: True if its inputs have dynamic shapes.
        dynamic_graph_execute_mode: 'lazy_recompile' or 'dynamic_execute'.
        dynamic_inputs_shape_range: ranges of those shapes.
        is_train_graph: True if the graph trains.
        experimental_config: an ExperimentalConfig.
    Returns:
        The fetch; for a name, its tensor.
    Raises:
        ValueError: if the mode, fetch or config is not allowed.
        KeyError: if no tensor has the name.
    """
    if dynamic_graph_execute_mode not in _MODES:
        raise ValueError(
            f"dynamic_graph_execute_mode={dynamic_graph_execute_mode!r} is not allowed: it must be one of "
            f"{', '.join(_MODES)}."
        )
    if experimental_config is not None and not isinstance(experimental_config, ExperimentalConfig):
        raise ValueError(f"experimental_config={experimental_config!r} must be an ExperimentalConfig or None.")
    if isinstance(fetch, str):
        fetch = tf_api.v1.get_default_graph().get_tensor_by_name(fetch)
    attributes: dict[str, bool | int | str] = {
        "_graph_dynamic_input": bool(dynamic_input),
        "_graph_dynamic_graph_execute_mode": dynamic_graph_execute_mode,
        "_graph_dynamic_inputs_shape_range": dynamic_inputs_shape_range or "",
        "_is_train_graph": bool(is_train_graph),
    }
    memory = getattr(experimental_config, "graph_memory_optimize_config", None)
    if memory is not None and memory.recompute is not None:
        attributes["_recompute_mode"] = memory.recompute
    for op in ops_of_fetch(fetch, "fetch"):
        for name, value in attributes.items():
            tf_graph.set_op_attr(op, name, value)
    return fetch
