"""Functions of an op and the gradients of its results that return the gradients of its inputs.

The vendor's package registers them for its operators. On the CPU the operators are TensorFlow's ops, so TensorFlow does
not call them; scripts may, for an object with inputs, outputs and get_attr.
"""

from __future__ import annotations

from npu_shim._tensorflow.types import Operation, Tensor, Value
from npu_shim.ops import prelu, recurrent_gradients


def prelu_grad(op: Operation, grad: Tensor) -> list[Tensor]:
    """Return the gradients of x and weight, for an op PRelu."""
    return list(prelu.p_relu_grad(grad, op.inputs[0], op.inputs[1]))


def basic_lstm_cell_grad(
    op: Operation, dct: Tensor, dht: Tensor, dit: Tensor, djt: Tensor, dft: Tensor, dot: Tensor, dtanhct: Tensor
) -> list[Tensor]:
    """Return the gradients of x, h, c, w and b, for an op BasicLSTMCell. Those of the gates are not used."""
    x, h, c, w, _ = op.inputs
    attributes = {"forget_bias": op.get_attr("forget_bias"), "activation": op.get_attr("activation")}
    dgate, dct_1 = recurrent_gradients.basic_lstm_cell_c_state_grad(c, dht, dct, *op.outputs[2:], **attributes)
    dw, db = recurrent_gradients.basic_lstm_cell_weight_grad(x, h, dgate)
    dxt, dht_1 = recurrent_gradients.basic_lstm_cell_input_grad(dgate, w, op.get_attr("keep_prob"))
    return [dxt, dht_1, dct_1, dw, db]


def dynamic_rnn_grad(
    op: Operation, dy: Tensor, dh: Tensor, dc: Tensor, di: Tensor, dj: Tensor, df: Tensor, do: Tensor, dtanhc: Tensor
) -> tuple[Tensor, ...]:
    """Return the gradients of the inputs of an op DynamicRnn, in their order; for seq_length itself.

    Of dh and dc those of the last step count.
    """
    x, w, b, seq_length, init_h, init_c = op.inputs
    dw, db, dx, dh_prev, dc_prev = _rnn_gradients(op, x, w, b, init_h, init_c, dy, dh, dc)
    return dx, dw, db, seq_length, dh_prev, dc_prev


def dynamic_rnn_v2_grad(
    op: Operation, dy: Tensor, dh: Tensor, dc: Tensor, di: Tensor, dj: Tensor, df: Tensor, do: Tensor, dtanhc: Tensor
) -> tuple[Tensor, ...]:
    """Return the gradients of x, w, b, init_h and init_c, for an op DynamicRnnV2."""
    dw, db, dx, dh_prev, dc_prev = _rnn_gradients(op, *op.inputs, dy, dh, dc)
    return dx, dw, db, dh_prev, dc_prev


def dynamic_gru_v2_grad(
    op: Operation, dy: Tensor, doutput_h: Tensor, dupdate: Tensor, dreset: Tensor, dnew: Tensor, dhidden_new: Tensor
) -> tuple[Tensor, ...]:
    """Return the gradients of the inputs of an op DynamicGruV2, in their order; for seq_length itself."""
    x, w_x, w_h, _, _, seq_length, init_h = op.inputs
    y, h, z, r, n, hidden = op.outputs
    dw_x, dw_h, db_x, db_h, dx, dh_prev = recurrent_gradients.dynamic_gru_v2_grad(
        x, w_x, w_h, y, init_h, h, dy, doutput_h[-1], z, r, n, hidden, seq_length, **_attributes_of_op(op)
    )
    return dx, dw_x, dw_h, db_x, db_h, seq_length, dh_prev


def dynamic_augru_grad(
    op: Operation, dy: Tensor, doutput_h: Tensor, dupdate: Tensor, dupdate_att: Tensor, dreset: Tensor, dnew: Tensor,
    dhidden_new: Tensor,
) -> tuple[Tensor, ...]:  # fmt: skip
    """Return the gradients of the inputs of an op DynamicAUGRU, in their order; for seq_length itself."""
    x, w_x, w_h, w_att, _, _, seq_length, init_h = op.inputs
    y, h, z, z_att, r, n, hidden = op.outputs
    dw_x, dw_h, db_x, db_h, dx, dh_prev, dw_att = recurrent_gradients.dynamic_augru_grad(
        x, w_x, w_h, w_att, y, init_h, h, dy, doutput_h[-1], z, z_att, r, n, hidden, seq_length, **_attributes_of_op(op)
    )
    return dx, dw_x, dw_h, dw_att, db_x, db_h, seq_length, dh_prev


def _rnn_gradients(
    op: Operation, x: Tensor, w: Tensor, b: Tensor, init_h: Tensor, init_c: Tensor, *given: Tensor
) -> tuple[Tensor, ...]:
    dy, dh, dc = given
    y, h, c, i, j, f, o, tanhc = op.outputs
    direction = op.get_attr("direction")
    return recurrent_gradients.dynamic_rnn_grad(
        x, w, b, y, init_h, init_c, h, c, dy, dh[-1], dc[-1], i, j, f, o, tanhc, direction=direction
    )


def _attributes_of_op(op: Operation) -> dict[str, Value]:
    return {name: op.get_attr(name) for name in ("direction", "gate_order", "reset_after")}
