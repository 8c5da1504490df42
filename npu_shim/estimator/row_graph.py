"""What a graph makes of the rows of a batch: which results depend on the input, and where rows meet each other."""

from __future__ import annotations

from typing import Any, Iterable

from npu_shim import _tf

tf = _tf.tf

_REDUCTIONS = ("Sum", "Mean", "Prod", "EuclideanNorm", "Cumsum", "Cumprod")


def _key(tensor: Any) -> tuple[Any, int]:
    return tensor.op, tensor.value_index


def used_by(tensors: Iterable[Any]) -> set[tuple[Any, int]]:
    """Every tensor that the given tensors and operations are computed from, and themselves, as (op, index)."""
    found: set[tuple[Any, int]] = set()
    done: set[Any] = set()
    todo: list[Any] = list(tensors)
    while todo:
        one = todo.pop()
        op = one
        if isinstance(one, tf.Tensor):
            found.add(_key(one))
            op = one.op
        if op not in done:
            done.add(op)
            todo.extend(op.inputs)
            # A group (tf.group) has no value of its own, and what a variable holds was put there before.
            if not len(op.inputs) or op.type == "ReadVariableOp":
                todo.extend(op.control_inputs)
    return found


def depends(results: Iterable[Any], inputs: Iterable[Any]) -> bool:
    """Whether any of the results is computed from any of the input tensors."""
    return not used_by(results).isdisjoint(_key(t) for t in inputs)


def mixing_op(results: Iterable[Any], inputs: Iterable[Any], size: int) -> str | None:
    """The name of an operation that computes results from several rows of the inputs at once.

    Seen are sums, means and products over the first dimension, batch
    normalisation with the statistics of the batch, and products of matrices
    over it. (A maximum or minimum is not one: it stays when a row is repeated.)

    Args:
        results: tensors.
        inputs: tensors with ``size`` rows.
        size: rows of a batch.
    Returns:
        None where no such operation is seen.
    """
    before = {op for op, _ in used_by(results)}
    done: set[Any] = set()
    todo = [op for tensor in inputs for op in tensor.consumers()]
    while todo:
        op = todo.pop()
        if op in done or op not in before:
            continue
        done.add(op)
        if _mixes(op, size):
            return op.name
        todo += [consumer for output in op.outputs for consumer in output.consumers()]
    return None


def _mixes(op: Any, size: int) -> bool:
    if op.type.startswith("FusedBatchNorm") and "Grad" not in op.type:
        return bool(op.get_attr("is_training"))
    if op.type == "MatMul":
        return bool(op.get_attr("transpose_a")) and _rows_of(op.inputs[0]) == size
    if op.type not in _REDUCTIONS or _rows_of(op.inputs[0]) != size:
        return False
    axes = _tf.static_value(op.inputs[1])
    return axes is None or any(axis in (0, -op.inputs[0].shape.rank) for axis in axes.ravel())


def _rows_of(tensor: Any) -> int | None:
    return tf.compat.dimension_value(tensor.shape[0]) if tensor.shape.rank else None
