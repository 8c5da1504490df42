"""Node attributes of single ops for the NPU's compiler. The CPU ignores them."""

from __future__ import annotations

from typing import Sequence

from npu_shim._tensorflow import tf_api, tf_graph
from npu_shim._tensorflow.types import Fetches, Graph, Operation, Session, Tensor, Variable
from npu_shim.distributed import remote_memory

tf = tf_api.tf


def keep_tensors_dtypes(graph: Graph, input_tensors: Sequence[str]) -> None:
    """Keep the type of the ops that produce the named tensors under mixed precision. No effect on the CPU.

    Raises:
        ValueError: if graph is not a tf.Graph, or input_tensors is not a list or tuple.
        KeyError: if no tensor has the name.
    """
    if not isinstance(graph, tf.Graph):
        raise ValueError(f"graph={graph!r} is not allowed: it must be a tf.Graph.")
    if not isinstance(input_tensors, (list, tuple)):
        raise ValueError(f"input_tensors={input_tensors!r} is not allowed: it must be a list of tensor names.")
    for name in input_tensors:
        tf_graph.set_op_attr(graph.get_tensor_by_name(name).op, "_keep_dtype", 1)


def set_op_tensor_max_range(tensor: Tensor, max_shape: str) -> None:
    """Set the largest shape of an op's result. No effect on the CPU."""
    _set_attributes(tensor, _op_max_shape=max_shape)


def set_op_tensor_max_size(tensor: Tensor, max_size: int) -> None:
    """Set the largest size of an op's result. No effect on the CPU."""
    _set_attributes(tensor, _op_max_size=int(max_size))


def set_op_input_tensor_multi_dims(tensor: Tensor, input_shape: str, input_dims: str) -> None:
    """Set the shape profiles of an op's inputs. No effect on the CPU."""
    _set_attributes(tensor, _subgraph_multi_dims_input_shape=input_shape, _subgraph_multi_dims_input_dims=input_dims)


def variable_initializer_in_host(var_list: Sequence[Variable]) -> Operation:
    """Return the op that initializes variables on the host, where get_var_addr_and_size finds their initial values."""
    with tf.control_dependencies([remote_memory.copy_initial_values_op(var_list)]):
        return tf_api.v1.variables_initializer(var_list, name="var_in_host")


def npu_compile(sess: Session, *fetches: Fetches) -> None:
    """Run fetches once, so that the NPU compiles them before they are timed."""
    sess.run(fetches)


def _set_attributes(tensor: Tensor, **attributes: bool | int | str) -> None:
    for op in ops_of_fetch(tensor, "tensor"):
        for name, value in attributes.items():
            tf_graph.set_op_attr(op, name, value)


def ops_of_fetch(fetch: Fetches, name: str) -> list[Operation]:
    """Return the ops of one op or tensor, or of a list of them.

    Raises:
        ValueError: if an element is neither an op nor a tensor; the message names the argument ``name``.
    """
    flat = list(fetch) if isinstance(fetch, (list, tuple)) else [fetch]
    for item in flat:
        if not isinstance(item, (tf.Tensor, tf.Operation)):
            raise ValueError(f"{name}={item!r} is not allowed: it must be an op or a tensor, or a list of them.")
    return [item.op if isinstance(item, tf.Tensor) else item for item in flat]
