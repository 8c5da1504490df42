"""The GRU operators of the NPU, in TensorFlow's ops. Their gradients are those of the ops.

With gates z (update), r (reset) and candidate n in the order of ``gate_order``, xw = x w_x + b_x and hw = h w_h + b_h:

    z = sigmoid(xw_z + hw_z),  r = sigmoid(xw_r + hw_r),  n = tanh(xw_n + r hw_n)
    h' = (1 - z) n + z h

Sources: Cho et al., arXiv:1406.1078; the attentional update gate: Zhou et al., "Deep Interest Evolution Network",
arXiv:1809.03672.
"""

from __future__ import annotations

from typing import Callable

from npu_shim._tensorflow.tf_api import tf
from npu_shim._tensorflow.types import Tensor
from npu_shim.ops.recurrent import raise_for_unsupported_arguments, run_over_steps


def dynamic_gru_v2(
    x: Tensor, weight_input: Tensor, weight_hidden: Tensor, bias_input: Tensor, bias_hidden: Tensor,
    seq_length: Tensor | None, init_h: Tensor, direction: str = "UNIDIRECTIONAL", activation: str = "tanh",
    gate_order: str = "zrh", cell_depth: int = 1, keep_prob: float = 1.0, cell_clip: float = -1.0, num_proj: int = 0,
    time_major: bool = True, reset_after: bool = True, is_training: bool = True, name: str | None = None,
) -> tuple[Tensor, ...]:  # fmt: skip
    """Run a GRU over the steps of a batch.

    Args:
        x: [steps, batch, inputs], float16 or float32.
        weight_input: [inputs, 3 units].
        weight_hidden: [units, 3 units].
        bias_input: [3 units].
        bias_hidden: [3 units].
        seq_length: as for dynamic_rnn.
        init_h: [1, batch, units] or [batch, units].
        direction: as for dynamic_rnn.
        cell_depth, keep_prob, cell_clip, num_proj, time_major, activation: their defaults; no other value is supported.
        gate_order: "zrh" or "rzh".
        reset_after: True: the reset gate multiplies h w_h + b_h. False: it multiplies h.
        is_training: the results for the gradient are also returned if it is False.
        name: name of the ops.
    Returns:
        y, output_h, and update, reset, new, hidden_new, each [steps, batch, units].
    Raises:
        ValueError: an argument is not supported.
    """
    raise_for_unsupported_arguments(
        "dynamic_gru_v2", cell_depth, keep_prob, cell_clip, num_proj, time_major, activation
    )
    gates = _gru_step("dynamic_gru_v2", (weight_input, weight_hidden, bias_input, bias_hidden), gate_order, reset_after)

    def step(state: tuple[Tensor, ...], x_t: Tensor) -> tuple[Tensor, ...]:
        z, r, n, hidden = gates(x_t, state[0])
        return ((1 - z) * n + z * state[0], z, r, n, hidden)

    with tf.name_scope(name or "dynamic_gru_v2"):
        return run_over_steps("dynamic_gru_v2", step, tf.convert_to_tensor(x), [init_h], 4, seq_length, direction)


def dynamic_augru(
    x: Tensor, weight_input: Tensor, weight_hidden: Tensor, weight_att: Tensor, bias_input: Tensor, bias_hidden: Tensor,
    seq_length: Tensor | None, init_h: Tensor, direction: str = "UNIDIRECTIONAL", activation: str = "tanh",
    gate_order: str = "zrh", cell_depth: int = 1, keep_prob: float = 1.0, cell_clip: float = -1.0, num_proj: int = 0,
    time_major: bool = True, reset_after: bool = True, is_training: bool = True, name: str | None = None,
) -> tuple[Tensor, ...]:  # fmt: skip
    """Run a GRU with attentional update gate over the steps of a batch: z' = (1 - a) z and h' = (1 - z') h + z' n.

    Args:
        weight_att: [steps, batch], the attention a of each step.
        others: as for dynamic_gru_v2.
    Returns:
        y, output_h, and update, update_att, reset, new, hidden_new, each [steps, batch, units].
    Raises:
        ValueError: an argument is not supported.
    """
    raise_for_unsupported_arguments("dynamic_augru", cell_depth, keep_prob, cell_clip, num_proj, time_major, activation)
    gates = _gru_step("dynamic_augru", (weight_input, weight_hidden, bias_input, bias_hidden), gate_order, reset_after)

    def step(state: tuple[Tensor, ...], x_t: Tensor) -> tuple[Tensor, ...]:
        attention, x_t = x_t[:, :1], x_t[:, 1:]
        z, r, n, hidden = gates(x_t, state[0])
        attended = (1 - attention) * z
        return ((1 - attended) * n + attended * state[0], z, attended, r, n, hidden)

    with tf.name_scope(name or "dynamic_augru"):
        together = tf.concat([tf.expand_dims(weight_att, -1), x], -1)
        return run_over_steps("dynamic_augru", step, together, [init_h], 5, seq_length, direction)


def _gru_step(
    name: str, weights: tuple[Tensor, ...], gate_order: str, reset_after: bool
) -> Callable[[Tensor, Tensor], tuple[Tensor, ...]]:
    """Return a function of x and h that returns z, r, n and the part of n that comes from h."""
    if gate_order not in ("zrh", "rzh"):
        raise ValueError(f"{name}: gate_order={gate_order!r} is not allowed: it must be 'zrh' or 'rzh'.")
    w_x, w_h, b_x, b_h = weights

    def gates(x: Tensor, h: Tensor) -> tuple[Tensor, ...]:
        from_x = dict(zip(gate_order, tf.split(tf.matmul(x, w_x) + b_x, 3, axis=1)))
        if reset_after:
            from_h = dict(zip(gate_order, tf.split(tf.matmul(h, w_h) + b_h, 3, axis=1)))
            z, r = tf.sigmoid(from_x["z"] + from_h["z"]), tf.sigmoid(from_x["r"] + from_h["r"])
            hidden = from_h["h"]
            return z, r, tf.tanh(from_x["h"] + r * hidden), hidden
        columns = dict(zip(gate_order, zip(tf.split(w_h, 3, axis=1), tf.split(b_h, 3))))
        z, r = (tf.sigmoid(from_x[g] + tf.matmul(h, columns[g][0]) + columns[g][1]) for g in "zr")
        hidden = tf.matmul(r * h, columns["h"][0]) + columns["h"][1]
        return z, r, tf.tanh(from_x["h"] + hidden), hidden

    return gates
