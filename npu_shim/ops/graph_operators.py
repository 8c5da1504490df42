"""Operators with the vendor's wrappers, which only work in graph mode: npu_ops and npu_vector_ops."""

from __future__ import annotations

from typing import TYPE_CHECKING

from npu_shim.ops import lstm, optimizer_updates
from npu_shim.ops.graph_mode import only_in_graphs

if TYPE_CHECKING:
    from npu_shim._tensorflow.types import Operation, Tensor, Variable

_OPS, _VECTOR_OPS = "npu_bridge.estimator.npu_ops", "npu_bridge.tbe.npu_vector_ops"


@only_in_graphs(_OPS)
def basic_lstm_cell(
    x: Tensor,
    h: Tensor,
    c: Tensor,
    w: Tensor,
    b: Tensor,
    keep_prob: float,
    forget_bias: float,
    state_is_tuple: bool,
    activation: str,
    name: str | None = None,
) -> tuple[Tensor, ...]:
    """Run one step of an LSTM. Arguments and results as for lstm.basic_lstm_cell.

    Raises:
        RuntimeError: in eager mode.
        ValueError: an argument is not supported.
    """
    return lstm.basic_lstm_cell(x, h, c, w, b, keep_prob, forget_bias, state_is_tuple, activation, name)


@only_in_graphs(_OPS)
def adam_apply_one_assign(
    input0: Tensor,
    input1: Variable,
    input2: Variable,
    input3: Variable,
    input4: Tensor,
    mul0_x: Tensor,
    mul1_x: Tensor,
    mul2_x: Tensor,
    mul3_x: Tensor,
    add2_y: Tensor,
    name: str | None = None,
) -> Operation | None:
    """Do one step of Adam in place. Arguments and results as for optimizer_updates.adam_apply_one_assign.

    Raises:
        RuntimeError: in eager mode.
    """
    return optimizer_updates.adam_apply_one_assign(
        input0, input1, input2, input3, input4, mul0_x, mul1_x, mul2_x, mul3_x, add2_y, name
    )


@only_in_graphs(_OPS)
def adam_apply_one_with_decay_assign(
    input0: Tensor,
    input1: Variable,
    input2: Variable,
    input3: Variable,
    input4: Tensor,
    mul0_x: Tensor,
    mul1_x: Tensor,
    mul2_x: Tensor,
    mul3_x: Tensor,
    mul4_x: Tensor,
    add2_y: Tensor,
    name: str | None = None,
) -> Operation | None:
    """Do one step of Adam with decoupled weight decay in place.

    Arguments and results as for optimizer_updates.adam_apply_one_with_decay_assign.

    Raises:
        RuntimeError: in eager mode.
    """
    return optimizer_updates.adam_apply_one_with_decay_assign(
        input0, input1, input2, input3, input4, mul0_x, mul1_x, mul2_x, mul3_x, mul4_x, add2_y, name
    )


@only_in_graphs(_VECTOR_OPS)
def lamb_apply_optimizer_assign(
    input0: Tensor,
    input1: Variable,
    input2: Variable,
    input3: Variable,
    mul0_x: Tensor,
    mul1_x: Tensor,
    mul2_x: Tensor,
    mul3_x: Tensor,
    add2_y: Tensor,
    steps: Tensor,
    do_use_weight: Tensor,
    weight_decay_rate: Tensor,
    name: str | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Update the moments of LAMB in place. Arguments and results as for optimizer_updates.lamb_apply_optimizer_assign.

    Raises:
        RuntimeError: in eager mode.
    """
    return optimizer_updates.lamb_apply_optimizer_assign(
        input0, input1, input2, input3, mul0_x, mul1_x, mul2_x, mul3_x, add2_y, steps, do_use_weight,
        weight_decay_rate, name,
    )  # fmt: skip


@only_in_graphs(_VECTOR_OPS)
def lamb_apply_weight_assign(
    input0: Tensor, input1: Tensor, input2: Tensor, input3: Tensor, input4: Variable, name: str | None = None
) -> Tensor:
    """Apply an update of LAMB in place. Arguments and result as for optimizer_updates.lamb_apply_weight_assign.

    Raises:
        RuntimeError: in eager mode.
    """
    return optimizer_updates.lamb_apply_weight_assign(input0, input1, input2, input3, input4, name)
