"""Marks on single ops and tensors for the NPU's compiler. On the CPU nothing reads them."""

from __future__ import annotations

from typing import Any, Sequence

from npu_shim import _tf
from npu_shim.config.nested import ExperimentalConfig

tf = _tf.tf
_MODES = ("lazy_recompile", "dynamic_execute")


def set_graph_exec_config(
    fetch: Any,
    dynamic_input: bool = False,
    dynamic_graph_execute_mode: str = "dynamic_execute",
    dynamic_inputs_shape_range: str | None = None,
    is_train_graph: bool = False,
    experimental_config: ExperimentalConfig | None = None,
) -> Any:
    """Says how the graph behind a fetch is to run on the card. No effect on the CPU.

    Args:
        fetch: an op, a tensor, a tensor's name, or a list of ops and tensors.
        dynamic_input: its inputs change their shape.
        dynamic_graph_execute_mode: 'lazy_recompile' or 'dynamic_execute'.
        dynamic_inputs_shape_range: ranges of those shapes.
        is_train_graph: it trains.
        experimental_config: an ExperimentalConfig.
    Returns:
        The fetch; for a name, its tensor.
    Raises:
        ValueError: another mode, fetch or config.
        KeyError: no tensor has the name.
    """
    if dynamic_graph_execute_mode not in _MODES:
        raise ValueError(
            f"dynamic_graph_execute_mode={dynamic_graph_execute_mode!r} is not allowed: it must be one of {', '.join(_MODES)}."
        )
    if experimental_config is not None and not isinstance(experimental_config, ExperimentalConfig):
        raise ValueError(f"experimental_config={experimental_config!r} must be an ExperimentalConfig or None.")
    if isinstance(fetch, str):
        fetch = _tf.v1.get_default_graph().get_tensor_by_name(fetch)
    attributes: dict[str, bool | int | str] = {
        "_graph_dynamic_input": bool(dynamic_input),
        "_graph_dynamic_graph_execute_mode": dynamic_graph_execute_mode,
        "_graph_dynamic_inputs_shape_range": dynamic_inputs_shape_range or "",
        "_is_train_graph": bool(is_train_graph),
    }
    memory = getattr(experimental_config, "graph_memory_optimize_config", None)
    if memory is not None and memory.recompute is not None:
        attributes["_recompute_mode"] = memory.recompute
    for op in _ops(fetch, "fetch"):
        for name, value in attributes.items():
            _tf.set_op_attr(op, name, value)
    return fetch


def keep_tensors_dtypes(graph: Any, input_tensors: Sequence[str]) -> None:
    """The ops that make the named tensors keep their type under mixed precision. No effect on the CPU.

    Raises:
        ValueError: graph is no tf.Graph, or input_tensors no list or tuple.
        KeyError: no tensor has the name.
    """
    if not isinstance(graph, tf.Graph):
        raise ValueError(f"graph={graph!r} is not allowed: it must be a tf.Graph.")
    if not isinstance(input_tensors, (list, tuple)):
        raise ValueError(f"input_tensors={input_tensors!r} is not allowed: it must be a list of tensor names.")
    for name in input_tensors:
        _tf.set_op_attr(graph.get_tensor_by_name(name).op, "_keep_dtype", 1)


def set_op_tensor_max_range(tensor: Any, max_shape: str) -> None:
    """The largest shape of an op's result. No effect on the CPU."""
    _mark(tensor, _op_max_shape=max_shape)


def set_op_tensor_max_size(tensor: Any, max_size: int) -> None:
    """The largest size of an op's result. No effect on the CPU."""
    _mark(tensor, _op_max_size=int(max_size))


def set_op_input_tensor_multi_dims(tensor: Any, input_shape: str, input_dims: str) -> None:
    """Profiles of an op's inputs. No effect on the CPU."""
    _mark(tensor, _subgraph_multi_dims_input_shape=input_shape, _subgraph_multi_dims_input_dims=input_dims)


def variable_initializer_in_host(var_list: Sequence[Any]) -> Any:
    """The op that initialises variables, on the host."""
    return _tf.v1.variables_initializer(var_list, name="var_in_host")


def npu_compile(sess: Any, *fetches: Any) -> None:
    """Runs fetches once, so that the card's compiler does its work before it is timed."""
    sess.run(fetches)


def _mark(tensor: Any, **attributes: Any) -> None:
    for op in _ops(tensor, "tensor"):
        for name, value in attributes.items():
            _tf.set_op_attr(op, name, value)


def _ops(fetch: Any, name: str) -> list[Any]:
    flat = list(fetch) if isinstance(fetch, (list, tuple)) else [fetch]
    for item in flat:
        if not isinstance(item, (tf.Tensor, tf.Operation)):
            raise ValueError(f"{name}={item!r} is not allowed: it must be an op or a tensor, or a list of them.")
    return [item.op if isinstance(item, tf.Tensor) else item for item in flat]
