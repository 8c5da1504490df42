"""Averages gradients over ranks: many small ones in one message, as HCCL fuses them."""

from __future__ import annotations

import contextlib
import functools
from typing import Any, Callable, Iterator, Sequence

from npu_shim import _tf
from npu_shim.distributed import gradient_buckets, groups
from npu_shim.distributed.world import WORLD

tf = _tf.tf
_MARK = "_npu_shim_averages"
_UNKNOWN_BYTES = 1 << 20  # of a gradient whose shape is not known when the graph is built


def reduce_all(values: Sequence[Any], reduction: str, group: str = WORLD) -> list[Any]:
    """Reduces each of several tensors over the ranks of a group.

    Tensors of one bucket (set_split_strategy_by_idx and _by_size, HCCL's own
    split without) and type travel in one message. Messages follow each other
    in the same order on every rank.

    Args:
        values: tensors, tf.IndexedSlices or None.
        reduction: 'mean', 'sum', 'prod', 'max' or 'min'.
        group: name of the group.
    Returns:
        A list of the same length: reduced tensors; of IndexedSlices the rows of all ranks, for 'mean' divided by their
        number; None for None.
    Raises:
        ValueError: IndexedSlices with another reduction than 'mean' and 'sum'.
    """
    made: dict[int, Any] = {}
    size = groups.group(group).size
    if size == 1:
        return [value if value is None or is_sparse(value) else tf.identity(value) for value in values]
    from npu_shim.distributed import graph_ops

    dense = [index for index, value in enumerate(values) if value is not None and not is_sparse(value)]
    tensors = {index: tf.convert_to_tensor(values[index]) for index in dense}
    last: list[Any] = []
    for indices in _messages(list(tensors.values()), group):
        members = [dense[index] for index in indices]
        with tf.control_dependencies(last):
            reduced = graph_ops.allreduce(
                [tensors[index] for index in members], "sum" if reduction == "mean" else reduction, group
            )
        last = reduced[:1]  # all are of one op
        made.update(zip(members, [mean(r, size) for r in reduced] if reduction == "mean" else reduced))
    for index, value in enumerate(values):
        if is_sparse(value):
            with tf.control_dependencies(last):
                made[index] = _gathered(value, reduction, group, size)
            last = [made[index].values]
    return [made.get(index) for index in range(len(values))]


def average(grads_and_vars: Sequence[tuple[Any | None, Any]], group: str = WORLD) -> list[tuple[Any | None, Any]]:
    """The pairs with each gradient averaged over the ranks of a group.

    In a replica of NPUStrategy they are added up, as the strategy does with what is applied: the loss is divided by the
    number of replicas before.
    """
    pairs = list(grads_and_vars)
    reduction = "mean" if _replica() is None else "sum"
    return list(
        zip(reduce_all([gradient for gradient, _ in pairs], reduction, group), [variable for _, variable in pairs])
    )


@contextlib.contextmanager
def reduced() -> Iterator[None]:
    """Inside, what an optimizer applies counts as reduced over all ranks, so that NPUStrategy does not do it again."""
    replica = _replica()
    if replica is None or replica.gradients_are_reduced:
        yield
        return
    replica.gradients_are_reduced = True
    try:
        yield
    finally:
        replica.gradients_are_reduced = False


def _replica() -> Any:
    """What is behind NPUStrategy, where one of its replicas is being built."""
    if _tf.tf.distribute.in_cross_replica_context():
        return None
    extended = _tf.tf.distribute.get_strategy().extended
    return extended if hasattr(extended, "gradients_are_reduced") else None


def is_sparse(value: Any) -> bool:
    """True for IndexedSlices."""
    return isinstance(value, tf.IndexedSlices)


def mean(total: Any, size: int) -> Any:
    """A sum over ``size`` ranks, divided by their number; integers round towards minus infinity."""
    if total.dtype.is_integer:
        return total // tf.constant(size, total.dtype)
    return total / tf.constant(size, total.dtype)


def _messages(tensors: Sequence[Any], group: str) -> list[list[int]]:
    """Which tensors go together: those of one bucket and one type."""
    found: list[list[int]] = []
    for bucket in gradient_buckets.buckets([_bytes(tensor) for tensor in tensors], group):
        by_type: dict[Any, list[int]] = {}
        for index in bucket:
            by_type.setdefault(tensors[index].dtype.base_dtype, []).append(index)
        found += by_type.values()
    return found


def _bytes(tensor: Any) -> int:
    count = tensor.shape.num_elements()
    return _UNKNOWN_BYTES if count is None else count * tensor.dtype.size


def _gathered(value: Any, reduction: str, group: str, size: int) -> Any:
    """The rows of all ranks: their sum, where a variable is updated with them, is the sum of the slices."""
    if reduction not in ("mean", "sum"):
        raise ValueError(f"reduction={reduction!r} is not allowed for IndexedSlices: it must be mean or sum.")
    from npu_shim.distributed import graph_ops

    rows, indices = (graph_ops.allgather(part, group) for part in (value.values, value.indices))
    return tf.IndexedSlices(mean(rows, size) if reduction == "mean" else rows, indices, value.dense_shape)


def make_averaging(optimizer: Any) -> None:
    """Makes an optimizer average its gradients over all ranks from now on; once is enough.

    An optimizer of tf.train averages what compute_gradients returns, so that
    what is done to gradients in between, such as clipping, sees the averages; a
    Keras optimizer what apply_gradients is given, by whichever way they come.

    Raises:
        TypeError: it is no optimizer.
    """
    if isinstance(optimizer, _tf.v1.train.Optimizer):
        compute = optimizer.compute_gradients
        if not hasattr(compute, _MARK):
            optimizer.compute_gradients = _marked(lambda *args, **kwargs: average(compute(*args, **kwargs)), compute)
            optimizer.apply_gradients = _marked(applying_reduced(optimizer.apply_gradients), optimizer.apply_gradients)
        return
    apply = getattr(optimizer, "apply_gradients", None)
    if apply is None or isinstance(optimizer, type):
        raise TypeError(
            f"optimizer={optimizer!r} is {type(optimizer).__name__}, but must be an optimizer of "
            "tf.compat.v1.train or tf.keras.optimizers."
        )
    if not hasattr(apply, _MARK):
        optimizer.apply_gradients = _marked(averaging_apply(apply), apply)


def averaging_apply(apply: Callable[..., Any]) -> Callable[..., Any]:
    """A Keras optimizer's apply_gradients that averages first, where no NPUStrategy does."""

    def averaged(grads_and_vars: Any, *args: Any, **kwargs: Any) -> Any:
        return apply(grads_and_vars if adds_up() else average(list(grads_and_vars)), *args, **kwargs)

    return averaged


def adds_up() -> bool:
    """Whether a strategy adds up over all ranks what an optimizer applies here."""
    return hasattr(_tf.tf.distribute.get_strategy().extended, "gradients_are_reduced")


def applying_reduced(apply: Callable[..., Any]) -> Callable[..., Any]:
    """An apply_gradients whose gradients are reduced over all ranks already."""

    def applied(*args: Any, **kwargs: Any) -> Any:
        with reduced():
            return apply(*args, **kwargs)

    return applied


def _marked(made: Callable[..., Any], original: Callable[..., Any]) -> Callable[..., Any]:
    wrapped = functools.wraps(original)(made)
    setattr(wrapped, _MARK, True)
    return wrapped
