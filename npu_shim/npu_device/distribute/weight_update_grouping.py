"""Update each variable on one rank only, and broadcast it: less memory and time for the optimizer."""

from __future__ import annotations

from typing import Iterable, Sequence

from npu_shim._host import host_device
from npu_shim._tensorflow.types import Function, Result, Variable
from npu_shim.npu_device.distribute import hccl
from npu_shim.npu_device.npu_device import global_npu_ctx
from npu_shim.optimizer.gradient_averaging import GradientAndVariable
from npu_shim.optimizer.gradient_shares import GradDivisionItem, fair_division


class GroupingVars:
    """The assignment of variables to ranks: consecutive variables, about the same number of bytes on each rank.

    Args:
        variables: the variables in the same order on every rank; None is left out.
        rank_size: the number of ranks.
    Raises:
        ValueError: there are more ranks than variables.
    """

    def __init__(self, variables: Sequence[Variable | None], rank_size: int) -> None:
        self._variables = [variable for variable in variables if variable is not None]
        count = len(self._variables)
        if not 0 < rank_size <= count:
            raise ValueError(
                f"rank_size={rank_size} is not allowed for {count} variables: each rank needs one. Use "
                "npu.distribute.all_reduce and apply all gradients on each rank."
            )
        items = [GradDivisionItem(variable, variable) for variable in self._variables]
        self._ranks = [item.root_rank_id for item in fair_division(items, rank_size)]

    def get_gid_by_var(self, var: Variable) -> int:
        """Return the rank that updates a variable, -1 for another variable."""
        return next((rank for own, rank in zip(self._variables, self._ranks) if own is var), -1)


def grouping_gradients_apply(
    apply_func: Function, grads_and_vars: Iterable[GradientAndVariable], *args: object, **kwargs: object
) -> Result:
    """Apply the gradients of this rank's variables, then broadcast every variable from its rank.

    Args:
        apply_func: apply_gradients of a Keras optimizer.
        grads_and_vars: pairs with gradients that are already reduced over the ranks, in the same order on every rank.
        *args, **kwargs: for apply_func.
    Returns:
        The result of apply_func on one process, else None.
    Raises:
        ValueError: there are more ranks than variables.
    """
    if not hccl.is_worker("npu.distribute.grouping_gradients_apply"):
        return apply_func(grads_and_vars, *args, **kwargs)
    handle = global_npu_ctx()
    assert handle is not None
    pairs = list(grads_and_vars)
    groups = GroupingVars([variable for _, variable in pairs], handle.workers_num)
    own = [(grad, variable) for grad, variable in pairs if groups.get_gid_by_var(variable) == handle.worker_id]
    apply_func(own, *args, **kwargs)
    for _, variable in pairs:
        hccl.broadcast([variable], groups.get_gid_by_var(variable), 0)
    return None


def grouping_broadcast(variables: Sequence[Variable]) -> Sequence[Variable] | None:
    """Broadcast every variable from the rank that updates it, for example before a checkpoint.

    Args:
        variables: those of grouping_gradients_apply, in the same order.
    Returns:
        The variables on one process, else None.
    Raises:
        ValueError: there are more ranks than variables.
    """
    if not hccl.is_worker("npu.distribute.grouping_broadcast"):
        return variables
    handle = global_npu_ctx()
    assert handle is not None
    groups = GroupingVars(variables, handle.workers_num)
    for variable in variables:
        hccl.broadcast([variable], groups.get_gid_by_var(variable), 0)
    return None


host_device.copy_vendor_names(__name__)
