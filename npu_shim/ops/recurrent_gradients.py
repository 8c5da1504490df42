"""The NPU's operators that compute the gradients of its recurrent operators.

They take the activations that lstm.py and gru.py return, and go backwards through the steps. For an LSTM with dh and
dc, the gradients of h' and c':

    dc += dh o (1 - tanh(c')^2)
    di = dc j i (1 - i),  dj = dc i (1 - j^2),  df = dc c f (1 - f),  do = dh tanh(c') o (1 - o)
    dc of the step before = dc f,  dh of the step before = [di dj df do] w_h^T

For a GRU with gates z, r, n and hidden, the part of n that comes from h:

    dn = dh (1 - z) (1 - n^2),  dz = dh (h - n) z (1 - z),  dr = dn hidden r (1 - r)

Scripts need them only in gradient functions of their own. The forward operators have gradients of their own.
Source: the chain rule, applied to the formulas in lstm.py and gru.py.
"""

from __future__ import annotations

from typing import Callable, Tuple

from npu_shim._tensorflow.tf_api import tf
from npu_shim._tensorflow.types import Tensor
from npu_shim.ops.recurrent import without_first_axis

Tensors = Tuple[Tensor, ...]


def basic_lstm_cell_c_state_grad(
    c: Tensor, dht: Tensor, dct: Tensor, it: Tensor, jt: Tensor, ft: Tensor, ot: Tensor, tanhct: Tensor,
    forget_bias: float = 1.0, activation: str = "tanh", name: str | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Return the gradients of the gates and of the cell state before a step of basic_lstm_cell.

    Args:
        c: [batch, units], the cell state before the step.
        dht: [batch, units], the gradient of ht.
        dct: [batch, units], the gradient of ct.
        it, jt, ft, ot, tanhct: [batch, units], results of basic_lstm_cell.
        forget_bias: has no effect, because ft contains it.
        activation: "tanh".
        name: name of the ops.
    Returns:
        dgate, [batch, 4 units] in the order i, j, f, o, and dct_1, [batch, units].
    """
    with tf.name_scope(name or "basic_lstm_cell_c_state_grad"):
        return _lstm_gates(c, dht, dct, (it, jt, ft, ot, tanhct))


def basic_lstm_cell_weight_grad(x: Tensor, h: Tensor, dgate: Tensor, name: str | None = None) -> tuple[Tensor, Tensor]:
    """Return the gradients of w and b of basic_lstm_cell: [x h]^T dgate, and the sum of dgate over the batch.

    Args:
        x: [batch, inputs].
        h: [batch, units], the output of the step before.
        dgate: [batch, 4 units], from basic_lstm_cell_c_state_grad.
        name: name of the ops.
    Returns:
        dw, [inputs + units, 4 units], and db, [4 units].
    """
    with tf.name_scope(name or "basic_lstm_cell_weight_grad"):
        return tf.matmul(tf.concat([x, h], 1), dgate, transpose_a=True), tf.reduce_sum(dgate, 0)


def basic_lstm_cell_input_grad(
    dgate: Tensor, w: Tensor, keep_prob: float = 1.0, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Return the gradients of x and h of basic_lstm_cell: the parts of dgate w^T.

    Args:
        dgate: [batch, 4 units], from basic_lstm_cell_c_state_grad.
        w: [inputs + units, 4 units].
        keep_prob: 1; dropout inside the cell is not supported.
        name: name of the ops.
    Returns:
        dxt, [batch, inputs], and dht, [batch, units].
    Raises:
        ValueError: keep_prob is not 1.
    """
    if keep_prob != 1.0:
        raise ValueError(f"basic_lstm_cell_input_grad: keep_prob={keep_prob!r} is not supported. Use 1.0.")
    with tf.name_scope(name or "basic_lstm_cell_input_grad"):
        both = tf.matmul(dgate, w, transpose_b=True)
        rows, columns = tf.convert_to_tensor(w).shape.as_list()
        dxt, dht = tf.split(both, [rows - columns // 4, columns // 4], 1)
        return dxt, dht


def dynamic_rnn_grad(
    x: Tensor, w: Tensor, b: Tensor, y: Tensor, init_h: Tensor, init_c: Tensor, h: Tensor, c: Tensor, dy: Tensor,
    dh: Tensor, dc: Tensor, i: Tensor, j: Tensor, f: Tensor, o: Tensor, tanhc: Tensor, cell_type: str = "LSTM",
    direction: str = "UNIDIRECTIONAL", cell_depth: int = 1, use_peephole: bool = False, keep_prob: float = 1.0,
    cell_clip: float = -1.0, num_proj: int = 0, time_major: bool = True, forget_bias: float = 0.0,
    name: str | None = None,
) -> Tensors:  # fmt: skip
    """Return the gradients of dynamic_rnn.

    Args:
        x, w, b: inputs of dynamic_rnn.
        init_h, init_c: [batch, units] or [1, batch, units].
        y, h, c, i, j, f, o, tanhc: results of dynamic_rnn, [steps, batch, units].
        dy: [steps, batch, units], the gradient of y.
        dh, dc: [batch, units], the gradients of the last step's h and c.
        direction: as for dynamic_rnn.
        cell_type and the arguments behind direction: those of dynamic_rnn; they have no effect.
        name: name of the ops.
    Returns:
        dw, db, dx, and dh_prev and dc_prev, the gradients of init_h and init_c with their shapes.
    """
    with tf.name_scope(name or "dynamic_rnn_grad"):
        first_h, first_c = without_first_axis(init_h), without_first_axis(init_c)
        x, h, c, dy, *gates = _reverse_if_backward(direction, x, h, c, dy, i, j, f, o, tanhc)
        h_before, c_before = _states_before_steps(first_h, h), _states_before_steps(first_c, c)
        w_x, w_h = tf.split(w, [x.shape.as_list()[2], first_h.shape.as_list()[1]])

        def back(state: Tensors, now: Tensors) -> Tensors:
            c_t, dy_t, *gates_t = now
            dgate, dc_t = _lstm_gates(c_t, state[0] + dy_t, state[1], tuple(gates_t))
            return tf.matmul(dgate, w_h, transpose_b=True), dc_t, dgate

        start = (tf.convert_to_tensor(dh), tf.convert_to_tensor(dc), tf.zeros_like(tf.concat([first_h] * 4, 1)))
        dhs, dcs, dgates = tf.scan(back, (c_before, dy, *gates), start, reverse=True)
        dw = tf.tensordot(tf.concat([x, h_before], 2), dgates, [[0, 1], [0, 1]])
        (dx,) = _reverse_if_backward(direction, tf.tensordot(dgates, w_x, [[2], [1]]))
        dh_prev, dc_prev = (tf.reshape(first, tf.shape(init_h)) for first in (dhs[0], dcs[0]))
        return dw, tf.reduce_sum(dgates, [0, 1]), dx, dh_prev, dc_prev


def dynamic_gru_v2_grad(
    x: Tensor, weight_input: Tensor, weight_hidden: Tensor, y: Tensor, init_h: Tensor, h: Tensor, dy: Tensor,
    dh: Tensor, update: Tensor, reset: Tensor, new: Tensor, hidden_new: Tensor, seq_length: Tensor | None = None,
    direction: str = "UNIDIRECTIONAL", gate_order: str = "zrh", cell_depth: int = 1, keep_prob: float = 1.0,
    cell_clip: float = -1.0, num_proj: int = 0, time_major: bool = True, reset_after: bool = True,
    name: str | None = None,
) -> Tensors:  # fmt: skip
    """Return the gradients of dynamic_gru_v2.

    Args:
        x, weight_input, weight_hidden, seq_length: inputs of dynamic_gru_v2.
        init_h: [batch, units] or [1, batch, units].
        y, h, update, reset, new, hidden_new: results of dynamic_gru_v2, [steps, batch, units].
        dy: [steps, batch, units], the gradient of y.
        dh: [batch, units], the gradient of the last step's output_h; or [steps, batch, units] of all steps'.
        direction, gate_order, reset_after: as for dynamic_gru_v2.
        cell_depth, keep_prob, cell_clip, num_proj, time_major: have no effect.
        name: name of the ops.
    Returns:
        dw_input, dw_hidden, db_input, db_hidden, dx, and dh_prev, the gradient of init_h with its shape.
    """
    with tf.name_scope(name or "dynamic_gru_v2_grad"):
        gates = (update, update, reset, new, hidden_new)
        settings = (seq_length, direction, gate_order, reset_after)
        return _gru_grad(x, weight_input, weight_hidden, None, init_h, h, dy, dh, gates, *settings)[:6]


def dynamic_augru_grad(
    x: Tensor, weight_input: Tensor, weight_hidden: Tensor, weight_att: Tensor, y: Tensor, init_h: Tensor, h: Tensor,
    dy: Tensor, dh: Tensor, update: Tensor, update_att: Tensor, reset: Tensor, new: Tensor, hidden_new: Tensor,
    seq_length: Tensor | None = None, direction: str = "UNIDIRECTIONAL", gate_order: str = "zrh", cell_depth: int = 1,
    keep_prob: float = 1.0, cell_clip: float = -1.0, num_proj: int = 0, time_major: bool = True,
    reset_after: bool = True, name: str | None = None,
) -> Tensors:  # fmt: skip
    """Return the gradients of dynamic_augru: those of dynamic_gru_v2_grad, and dw_att.

    Args:
        weight_att: [steps, batch], or [steps, batch, units] with the same value for all units.
        update_att: the update gate after attention, a result of dynamic_augru.
        others: as for dynamic_gru_v2_grad.
    Returns:
        dw_input, dw_hidden, db_input, db_hidden, dx, dh_prev, and dw_att, [steps, batch].
    """
    with tf.name_scope(name or "dynamic_augru_grad"):
        weight_att = tf.convert_to_tensor(weight_att)
        attention = weight_att[:, :, :1] if weight_att.shape.rank == 3 else tf.expand_dims(weight_att, -1)
        gates = (update, update_att, reset, new, hidden_new)
        settings = (seq_length, direction, gate_order, reset_after)
        return _gru_grad(x, weight_input, weight_hidden, attention, init_h, h, dy, dh, gates, *settings)


def _lstm_gates(c: Tensor, dht: Tensor, dct: Tensor, gates: Tensors) -> tuple[Tensor, Tensor]:
    i, j, f, o, tanh_c = gates
    dc = dct + dht * o * (1 - tanh_c * tanh_c)
    di, dj, df = dc * j * i * (1 - i), dc * i * (1 - j * j), dc * c * f * (1 - f)
    return tf.concat([di, dj, df, dht * tanh_c * o * (1 - o)], 1), dc * f


def _gru_grad(
    x: Tensor, w_x: Tensor, w_h: Tensor, attention: Tensor | None, init_h: Tensor, h: Tensor, dy: Tensor, dh: Tensor,
    gates: Tensors, seq_length: Tensor | None, direction: str, gate_order: str, reset_after: bool,
) -> Tensors:  # fmt: skip
    first, dh = without_first_axis(init_h), tf.convert_to_tensor(dh)
    steps = tf.shape(x)[0]
    lives = tf.ones_like(h[:, :, :1])
    if seq_length is not None:
        lives = tf.expand_dims(tf.transpose(tf.sequence_mask(seq_length, steps, h.dtype)), -1)
    dy = dy * lives
    if dh.shape.rank == 3:
        dy, dh = dy + dh, tf.zeros_like(first)
    attended = tf.ones_like(lives) if attention is None else 1 - attention
    x, h, dy, lives, attended, z, z_att, r, n, hidden = _reverse_if_backward(
        direction, x, h, dy, lives, attended, *gates
    )
    h_before = _states_before_steps(first, h)
    columns = dict(zip(gate_order, tf.split(w_h, 3, axis=1)))
    joined = _gate_concatenator(gate_order)

    def back(state: Tensors, now: Tensors) -> Tensors:
        h_t, dy_t, live, attend, z_t, z_att_t, r_t, n_t, hidden_t = now
        total = state[0] + dy_t
        dh_t = total * live
        dz_att = dh_t * (h_t - n_t)
        dz = dz_att * attend * z_t * (1 - z_t)
        dn = dh_t * (1 - z_att_t) * (1 - n_t * n_t)
        if reset_after:
            dr, dhidden = dn * hidden_t * r_t * (1 - r_t), dn * r_t
            through = tf.matmul(dhidden, columns["h"], transpose_b=True)
        else:
            of_product = tf.matmul(dn, columns["h"], transpose_b=True)
            dr, dhidden, through = of_product * h_t * r_t * (1 - r_t), dn, of_product * r_t
        through += tf.matmul(dz, columns["z"], transpose_b=True) + tf.matmul(dr, columns["r"], transpose_b=True)
        return dh_t * z_att_t + through + total * (1 - live), dz, dr, dn, dhidden, dz_att * z_t

    start = (dh,) + (tf.zeros_like(first),) * 5
    sequences = (h_before, dy, lives, attended, z, z_att, r, n, hidden)
    dhs, dz, dr, dn, dhidden, datt = tf.scan(back, sequences, start, reverse=True)
    of_x, of_h = joined(dz, dr, dn), joined(dz, dr, dhidden)
    dw_x = tf.tensordot(x, of_x, [[0, 1], [0, 1]])
    parts = {"z": h_before, "r": h_before, "h": h_before if reset_after else r * h_before}
    dgates = {"z": dz, "r": dr, "h": dhidden}
    dw_h = tf.concat([tf.tensordot(parts[g], dgates[g], [[0, 1], [0, 1]]) for g in gate_order], 1)
    db_x, db_h = tf.reduce_sum(of_x, [0, 1]), tf.reduce_sum(of_h, [0, 1])
    dx, dw_att = _reverse_if_backward(direction, tf.tensordot(of_x, w_x, [[2], [1]]), -tf.reduce_sum(datt, 2))
    return dw_x, dw_h, db_x, db_h, dx, tf.reshape(dhs[0], tf.shape(init_h)), dw_att


def _gate_concatenator(gate_order: str) -> Callable[[Tensor, Tensor, Tensor], Tensor]:
    return lambda z, r, h: tf.concat([{"z": z, "r": r, "h": h}[gate] for gate in gate_order], -1)


def _reverse_if_backward(direction: str, *sequences: Tensor) -> list[Tensor]:
    """Return sequences in the order in which the forward operator went through them; or back from it."""
    tensors = [tf.convert_to_tensor(sequence) for sequence in sequences]
    return [tf.reverse(sequence, [0]) for sequence in tensors] if direction == "REDIRECTIONAL" else tensors


def _states_before_steps(first: Tensor, states: Tensor) -> Tensor:
    """Return the states before each step."""
    return tf.concat([tf.expand_dims(first, 0), states[:-1]], 0)
