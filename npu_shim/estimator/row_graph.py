"""The rows of a batch in a graph: results that depend on the input, and ops that combine several rows."""

from __future__ import annotations

from typing import Iterable, Tuple

from npu_shim._tensorflow import tf_api
from npu_shim._tensorflow.types import Operation, Tensor

Key = Tuple[Operation, int]  # a tensor: its op and its index

tf = tf_api.tf

_REDUCTIONS = ("Sum", "Mean", "Prod", "EuclideanNorm", "Cumsum", "Cumprod")


def _tensor_key(tensor: Tensor) -> Key:
    return tensor.op, tensor.value_index


def tensor_keys_behind(tensors: Iterable[Tensor | Operation]) -> set[Key]:
    """Return every tensor that the given tensors and operations are computed from, including themselves."""
    used: set[Key] = set()
    done: set[Operation] = set()
    todo: list[Tensor | Operation] = list(tensors)
    while todo:
        one = todo.pop()
        op = one
        if isinstance(one, tf.Tensor):
            used.add(_tensor_key(one))
            op = one.op
        if op not in done:
            done.add(op)
            todo.extend(op.inputs)
            # A tf.group has no value of its own. A variable was assigned before.
            if not len(op.inputs) or op.type == "ReadVariableOp":
                todo.extend(op.control_inputs)
    return used


def is_computed_from(results: Iterable[Tensor], inputs: Iterable[Tensor]) -> bool:
    """Return True if any of the results is computed from any of the input tensors."""
    return not tensor_keys_behind(results).isdisjoint(_tensor_key(t) for t in inputs)


def row_mixing_op_name(results: Iterable[Tensor], inputs: Iterable[Tensor], size: int) -> str | None:
    """Return the name of an operation that combines several rows of the inputs.

    Such operations are sums, means and products over the first dimension,
    batch normalization with the statistics of the batch, and matrix products
    over the first dimension. A maximum or minimum does not count, because
    repeated rows do not change it.

    Args:
        results: tensors.
        inputs: tensors with ``size`` rows.
        size: number of rows of a batch.
    Returns:
        None if there is no such operation.
    """
    before = {op for op, _ in tensor_keys_behind(results)}
    done: set[Operation] = set()
    todo = [op for tensor in inputs for op in tensor.consumers()]
    while todo:
        op = todo.pop()
        if op in done or op not in before:
            continue
        done.add(op)
        if _mixes_rows(op, size):
            return op.name
        todo += [consumer for output in op.outputs for consumer in output.consumers()]
    return None


def _mixes_rows(op: Operation, size: int) -> bool:
    if op.type.startswith("FusedBatchNorm") and "Grad" not in op.type:
        return bool(op.get_attr("is_training"))
    if op.type == "MatMul":
        return bool(op.get_attr("transpose_a")) and _static_row_count(op.inputs[0]) == size
    if op.type not in _REDUCTIONS or _static_row_count(op.inputs[0]) != size:
        return False
    axes = tf_api.static_value(op.inputs[1])
    return axes is None or any(axis in (0, -op.inputs[0].shape.rank) for axis in axes.ravel())


def _static_row_count(tensor: Tensor) -> int | None:
    return tf.compat.dimension_value(tensor.shape[0]) if tensor.shape.rank else None
