"""Average gradients over ranks; many small gradients travel in one message, as HCCL fuses them."""

from __future__ import annotations

import contextlib
import functools
from typing import Callable, Iterable, Iterator, Sequence, Tuple, TypeVar

from npu_shim._tensorflow import tf_api
from npu_shim._tensorflow.types import DType, Function, Gradient, Optimizer, StrategyExtended, Tensor, Variable
from npu_shim.distributed import gradient_buckets, groups
from npu_shim.distributed.world import WORLD, world_size

GradientAndVariable = Tuple[Gradient, Variable]
GradientsAndVariables = Sequence[GradientAndVariable]

T = TypeVar("T")
tf = tf_api.tf
_MARK = "_npu_shim_averages"
_IS_AVERAGED = "_npu_shim_has_averaged_gradient"
_BYTES_IF_UNKNOWN = 1 << 20  # of a gradient with a dynamic shape


def reduce_all(values: Sequence[Gradient], reduction: str, group: str = WORLD) -> list[Gradient]:
    """Reduce each of several tensors over the ranks of a group.

    Tensors of one type in one bucket travel in one message. The buckets are
    those of set_split_strategy_by_idx and _by_size, or HCCL's default. Messages
    have the same order on every rank.

    Args:
        values: tensors, tf.IndexedSlices or None.
        reduction: 'mean', 'sum', 'prod', 'max' or 'min'.
        group: name of the group.
    Returns:
        A list of the same length: reduced tensors; for IndexedSlices the rows of all ranks, for 'mean' divided by their
        number; None for None.
    Raises:
        ValueError: for IndexedSlices, if the reduction is not 'mean' or 'sum'.
    """
    results: dict[int, Gradient] = {}
    size = groups.find_group(group).size
    if size == 1:
        return [value if value is None or is_sparse(value) else tf.identity(value) for value in values]
    from npu_shim.distributed import graph_ops

    dense = [index for index, value in enumerate(values) if value is not None and not is_sparse(value)]
    tensors = {index: tf.convert_to_tensor(values[index]) for index in dense}
    last: list[Tensor] = []
    for indices in group_into_messages(list(tensors.values()), group):
        members = [dense[index] for index in indices]
        with tf.control_dependencies(last):
            reduced = graph_ops.allreduce(
                [tensors[index] for index in members], "sum" if reduction == "mean" else reduction, group
            )
        last = reduced[:1]  # all are outputs of one op
        results.update(zip(members, [mean_of_total(r, size) for r in reduced] if reduction == "mean" else reduced))
    for index, value in enumerate(values):
        if is_sparse(value):
            with tf.control_dependencies(last):
                results[index] = _gather_slices(value, reduction, group, size)
            last = [results[index].values]
    return [results.get(index) for index in range(len(values))]


def average_gradients(grads_and_vars: GradientsAndVariables) -> list[GradientAndVariable]:
    """Return the pairs with each gradient averaged over all ranks.

    In a replica of NPUStrategy gradients are added up, as the strategy does with applied gradients: the loss was
    already divided by the number of replicas.
    """
    pairs = list(grads_and_vars)
    reduction = "mean" if _strategy_in_replica() is None else "sum"
    return list(zip(reduce_all([gradient for gradient, _ in pairs], reduction), [variable for _, variable in pairs]))


@contextlib.contextmanager
def gradients_marked_as_reduced() -> Iterator[None]:
    """Inside, NPUStrategy does not reduce applied gradients again."""
    replica = _strategy_in_replica()
    if replica is None or replica.gradients_are_reduced:
        yield
        return
    replica.gradients_are_reduced = True
    try:
        yield
    finally:
        replica.gradients_are_reduced = False


def _strategy_in_replica() -> StrategyExtended | None:
    """Return the ``extended`` of the NPUStrategy whose replica is being built, or None."""
    if tf_api.tf.distribute.in_cross_replica_context():
        return None
    extended = tf_api.tf.distribute.get_strategy().extended
    return extended if hasattr(extended, "gradients_are_reduced") else None


def is_sparse(value: Gradient) -> bool:
    """Return True for tf.IndexedSlices."""
    return isinstance(value, tf.IndexedSlices)


def mean_of_total(total: Tensor, size: int) -> Tensor:
    """Return a sum over ``size`` ranks divided by their number; integers round towards minus infinity."""
    if total.dtype.is_integer:
        return total // tf.constant(size, total.dtype)
    return total / tf.constant(size, total.dtype)


def group_into_messages(tensors: Sequence[Tensor], group: str) -> list[list[int]]:
    """Return the indices of the tensors of each message: those of one bucket and one type.

    Args:
        tensors: the gradients, in their order.
        group: name of the group.
    """
    members: list[list[int]] = []
    for bucket in gradient_buckets.bucket_indices([_size_bytes(tensor) for tensor in tensors], group):
        by_type: dict[DType, list[int]] = {}
        for index in bucket:
            by_type.setdefault(tensors[index].dtype.base_dtype, []).append(index)
        members += by_type.values()
    return members


def _size_bytes(tensor: Tensor) -> int:
    count = tensor.shape.num_elements()
    return _BYTES_IF_UNKNOWN if count is None else count * tensor.dtype.size


def _gather_slices(value: Gradient, reduction: str, group: str, size: int) -> Gradient:
    """Return the rows of all ranks, which may have another number each.

    A variable updated with them gets the sum of the slices.
    """
    if reduction not in ("mean", "sum"):
        raise ValueError(f"reduction={reduction!r} is not allowed for IndexedSlices: it must be mean or sum.")
    from npu_shim.distributed import uneven_ops

    rows, indices = (uneven_ops.allgather(part, group)[0] for part in (value.values, value.indices))
    return tf.IndexedSlices(mean_of_total(rows, size) if reduction == "mean" else rows, indices, value.dense_shape)


def patch_to_average(optimizer: Optimizer) -> None:
    """Make an optimizer average its gradients over all ranks. A second call does nothing.

    A tf.compat.v1.train optimizer averages the result of compute_gradients, a Keras optimizer that of get_gradients
    and minimize, so that changes to gradients, such as clipping, see the averages. Other gradients a Keras optimizer
    averages in apply_gradients.

    Raises:
        TypeError: if it is not an optimizer.
    """
    if isinstance(optimizer, tf_api.v1.train.Optimizer):
        compute = optimizer.compute_gradients
        if not hasattr(compute, _MARK):
            optimizer.compute_gradients = _mark_as_averaging(
                lambda *args, **kwargs: average_gradients(compute(*args, **kwargs)), compute
            )
            optimizer.apply_gradients = _mark_as_averaging(
                wrap_apply_of_reduced_gradients(optimizer.apply_gradients), optimizer.apply_gradients
            )
        return
    apply = getattr(optimizer, "apply_gradients", None)
    if apply is None or isinstance(optimizer, type):
        raise TypeError(
            f"optimizer={optimizer!r} is {type(optimizer).__name__}, but must be an optimizer of "
            "tf.compat.v1.train or tf.keras.optimizers."
        )
    if not hasattr(apply, _MARK):
        for name, change in KERAS_METHODS.items():
            if hasattr(optimizer, name):
                original = getattr(optimizer, name)
                setattr(optimizer, name, _mark_as_averaging(change(original), original))


def _wrap_apply_gradients(apply: Callable[..., T]) -> Callable[..., T]:
    """Return a Keras apply_gradients that averages first what is not averaged, unless an NPUStrategy does."""

    def averaged(grads_and_vars: GradientsAndVariables, *args: object, **kwargs: object) -> T:
        pairs = list(grads_and_vars)
        if world_size() > 1 and not strategy_reduces_gradients():
            if not pop_averaged_marks([variable for gradient, variable in pairs if gradient is not None]):
                pairs = average_gradients(pairs)
        return apply(pairs, *args, **kwargs)

    return averaged


def _wrap_get_gradients(get: Callable[..., list[Gradient]]) -> Callable[..., list[Gradient]]:
    """Return a Keras get_gradients with averages."""

    def averaged(loss: Tensor, params: Sequence[Variable]) -> list[Gradient]:
        return [gradient for gradient, _ in _average_pairs(zip(get(loss, params), tf.nest.flatten(params)))]

    return averaged


def _wrap_compute_gradients(compute: Callable[..., GradientsAndVariables]) -> Callable[..., GradientsAndVariables]:
    """Return the part of a Keras minimize that computes gradients, with averages."""
    return lambda *args, **kwargs: _average_pairs(compute(*args, **kwargs))


def _average_pairs(computed: Iterable[GradientAndVariable]) -> list[GradientAndVariable]:
    pairs = list(computed)
    if world_size() == 1 or strategy_reduces_gradients():
        return pairs
    mark_averaged([variable for _, variable in pairs], True)
    return average_gradients(pairs)


# The methods of Keras optimizers that average: the vendor's wrappers change the first two
KERAS_METHODS: dict[str, Callable[[Function], Function]] = {
    "get_gradients": _wrap_get_gradients,
    "_compute_gradients": _wrap_compute_gradients,
    "apply_gradients": _wrap_apply_gradients,
}


def mark_averaged(variables: Iterable[Variable], is_averaged: bool) -> None:
    """Remember if the last gradients of variables are averages."""
    for variable in variables:
        setattr(variable, _IS_AVERAGED, is_averaged)


def pop_averaged_marks(variables: Sequence[Variable]) -> bool:
    """Return True if the last gradients of all these variables are averages, and forget it."""
    averaged = [variable for variable in variables if getattr(variable, _IS_AVERAGED, False)]
    mark_averaged(averaged, False)
    return 0 < len(averaged) == len(variables)


def strategy_reduces_gradients() -> bool:
    """Return True if the current strategy adds up applied gradients over all ranks."""
    return hasattr(tf_api.tf.distribute.get_strategy().extended, "gradients_are_reduced")


def wrap_apply_of_reduced_gradients(apply: Callable[..., T]) -> Callable[..., T]:
    """Return an apply_gradients for gradients that are already reduced over all ranks."""

    def applied(*args: object, **kwargs: object) -> T:
        with gradients_marked_as_reduced():
            return apply(*args, **kwargs)

    return applied


def _mark_as_averaging(function: Callable[..., T], original: Callable[..., object]) -> Callable[..., T]:
    wrapped = functools.wraps(original)(function)
    setattr(wrapped, _MARK, True)
    return wrapped
