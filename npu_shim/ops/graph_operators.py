"""Operators with the vendor's wrappers, which only work in graph mode: npu_ops and npu_vector_ops."""

from __future__ import annotations

from npu_shim._tensorflow.types import Tensor
from npu_shim.ops import lstm, optimizer_updates
from npu_shim.ops.graph_mode import only_in_graphs


@only_in_graphs("npu_ops.basic_lstm_cell")
def basic_lstm_cell(
    x: Tensor, h: Tensor, c: Tensor, w: Tensor, b: Tensor, keep_prob: float, forget_bias: float, state_is_tuple: bool,
    activation: str, name: str | None = None,
) -> tuple[Tensor, ...]:  # fmt: skip
    """Run one step of an LSTM. Arguments and results as for lstm.basic_lstm_cell.

    Raises:
        ValueError: an argument is not supported.
    """
    return lstm.basic_lstm_cell(x, h, c, w, b, keep_prob, forget_bias, state_is_tuple, activation, name)


adam_apply_one_assign = only_in_graphs("npu_ops.adam_apply_one_assign")(optimizer_updates.adam_apply_one_assign)
adam_apply_one_with_decay_assign = only_in_graphs("npu_ops.adam_apply_one_with_decay_assign")(
    optimizer_updates.adam_apply_one_with_decay_assign
)
lamb_apply_optimizer_assign = only_in_graphs("npu_vector_ops.lamb_apply_optimizer_assign")(
    optimizer_updates.lamb_apply_optimizer_assign
)
lamb_apply_weight_assign = only_in_graphs("npu_vector_ops.lamb_apply_weight_assign")(
    optimizer_updates.lamb_apply_weight_assign
)
