"""Shares of gradients among ranks with weight-update sharding on the NPU: functions of the vendor's util.

On the CPU each rank updates all variables, so npu_shim's optimizers do not use them.
"""

from __future__ import annotations

from typing import Hashable, Sequence

from npu_shim._tensorflow.tf_api import tf
from npu_shim._tensorflow.types import Tensor, Variable

_NONE = -1  # the rank of a gradient that nobody has
_items: list[GradDivisionItem] = []  # of the gradients that add_grads_and_vars was called with
_values: dict[Hashable, object] = {}


class GradDivisionItem:
    """A gradient and its variable.

    Args:
        grad: a tensor of a static shape.
        var: its variable.
    Attributes:
        size: the bytes of the gradient; 0 for a scalar.
        root_rank_id: the rank that updates the variable; -1 for none.
    """

    def __init__(self, grad: Tensor, var: Variable) -> None:
        self.grad, self.var = grad, var
        shape = tf.TensorShape(grad.shape)
        self.size = shape.num_elements() * grad.dtype.size if shape.rank else 0
        self.root_rank_id = _NONE


def fair_division(inputs: list[GradDivisionItem], number: int) -> list[GradDivisionItem]:
    """Give each rank a run of neighboring items, of about the same number of bytes, and set their root_rank_id.

    A rank takes items while they stay within its fair part of the bytes that are left, and one more if that is nearer
    to it. Items that are larger than all others that are left together do not count for the fair part.

    Args:
        inputs: items, changed in place.
        number: the number of ranks, at most that of items.
    Returns:
        inputs.
    Raises:
        ValueError: number is negative or larger than that of items.
    """
    if not 0 <= number <= len(inputs):
        raise ValueError(
            f"fair_division: number={number!r} is not allowed: it must be from 0 to the number of items, {len(inputs)}."
        )
    begin = 0
    for rank in range(number):
        left = number - rank
        if number == len(inputs):
            end = begin + 1
        else:
            end = _count_of_first_share([item.size for item in inputs[begin:]], left) + begin
        for item in inputs[begin:end]:
            item.root_rank_id = rank
        begin = end
    return inputs


def add_grads_and_vars(grads_and_vars: Sequence[tuple[Tensor | None, Variable]], rank_size: int) -> None:
    """Divide gradients among ranks, in place of those of the last call. Those that are None are left out."""
    items = [GradDivisionItem(grad, var) for grad, var in grads_and_vars if grad is not None]
    _items[:] = fair_division(items, rank_size)


def get_gid_by_grad(grad: Tensor) -> int:
    """Return the rank of a gradient, found by its name; -1 if it has none."""
    return next((item.root_rank_id for item in reversed(_items) if item.grad.name == grad.name), _NONE)


def get_gid_by_weight(weight: Variable) -> int:
    """Return the rank that updates a variable, found by its name; -1 if there is none."""
    return next((item.root_rank_id for item in reversed(_items) if item.var.name == weight.name), _NONE)


def get_all_grad_item() -> list[GradDivisionItem]:
    """Return the items of the last add_grads_and_vars."""
    return _items


def global_dict_init() -> None:
    """Empty the dictionary of set_value."""
    _values.clear()


def set_value(key: Hashable, value: object) -> None:
    """Keep a value in a dictionary of this process."""
    _values[key] = value


def get_value(key: Hashable, def_value: object = None) -> object:
    """Return a value that set_value keeps, or def_value."""
    return _values.get(key, def_value)


def _count_of_first_share(sizes: list[int], ranks: int) -> int:
    """Return how many of the items the first of the ranks gets. Each other rank gets one at least."""
    fair, most = _fair_share_bytes(sizes, ranks), len(sizes) - ranks + 1
    count, taken = 0, 0
    while count < most and taken + sizes[count] <= fair:
        taken += sizes[count]
        count += 1
    if count < most and (count == 0 or taken + sizes[count] - fair <= fair - taken):
        count += 1
    return count


def _fair_share_bytes(sizes: list[int], ranks: int) -> int:
    """Return the bytes of one rank, without items that are larger than all others together and their ranks."""
    if ranks == 1:
        return sum(sizes)
    rest = sorted(sizes)
    while True:
        total, size = sum(rest), len(rest)
        fair = total // max(ranks - (len(sizes) - size), 1)
        while rest and rest[-1] > total - rest[-1]:
            rest.pop()
        if len(rest) == size:
            return fair
