"""The LSTM operators of the NPU, in TensorFlow's ops. Their gradients are those of the ops.

With [i j f o] = [x h] w + b:

    c' = sigmoid(f + forget_bias) c + sigmoid(i) tanh(j)
    h' = sigmoid(o) tanh(c')

Source: Hochreiter and Schmidhuber, "Long Short-Term Memory", 1997.
"""

from __future__ import annotations

from npu_shim._tensorflow.tf_api import tf
from npu_shim._tensorflow.types import Tensor
from npu_shim.ops.recurrent import check_only_values, raise_for_unsupported_arguments, run_over_steps


def basic_lstm_cell(
    x: Tensor, h: Tensor, c: Tensor, w: Tensor, b: Tensor, keep_prob: float = 1.0, forget_bias: float = 1.0,
    state_is_tuple: bool = True, activation: str = "tanh", name: str | None = None,
) -> tuple[Tensor, ...]:  # fmt: skip
    """Run one step of an LSTM.

    Args:
        x: [batch, inputs], float16 or float32.
        h: [batch, units], the output of the step before.
        c: [batch, units], the cell state of the step before.
        w: [inputs + units, 4 units], in the order i, j, f, o.
        b: [4 units].
        keep_prob: 1; dropout inside the cell is not supported.
        forget_bias: added to f.
        state_is_tuple: True.
        activation: "tanh".
        name: name of the ops.
    Returns:
        ct, ht, and the activations it, jt, ft, ot, tanh(ct), each [batch, units].
    Raises:
        ValueError: an argument is not supported.
    """
    check_only_values("basic_lstm_cell", activation=(activation, "tanh"), keep_prob=(keep_prob, 1.0))
    check_only_values("basic_lstm_cell", state_is_tuple=(state_is_tuple, True))
    with tf.name_scope(name or "basic_lstm_cell"):
        return _lstm_step(x, h, c, w, b, forget_bias)


def dynamic_rnn(
    x: Tensor, w: Tensor, b: Tensor, seq_length: Tensor | None, init_h: Tensor, init_c: Tensor, cell_type: str = "LSTM",
    direction: str = "UNIDIRECTIONAL", activation: str = "tanh", cell_depth: int = 1, use_peephole: bool = False,
    keep_prob: float = 1.0, cell_clip: float = -1.0, num_proj: int = 0, time_major: bool = True,
    forget_bias: float = 0.0, is_training: bool = True, name: str | None = None,
) -> tuple[Tensor, ...]:  # fmt: skip
    """Run an LSTM over the steps of a batch.

    Args:
        x: [steps, batch, inputs], float16 or float32.
        w: [inputs + units, 4 units], in the order i, j, f, o.
        b: [4 units].
        seq_length: int32 [batch], the steps of each example; behind its last step y is 0 and the state stays. All steps
            if None.
        init_h: [1, batch, units] or [batch, units].
        init_c: as init_h.
        cell_type: "LSTM".
        direction: "UNIDIRECTIONAL", or "REDIRECTIONAL" for the steps from the last to the first.
        cell_depth, use_peephole, keep_prob, cell_clip, num_proj, time_major, activation: their defaults; no other value
            is supported.
        forget_bias: added to f.
        is_training: the results for the gradient are also returned if it is False.
        name: name of the ops.
    Returns:
        y, output_h, output_c, and the activations i, j, f, o, tanhc, each [steps, batch, units].
    Raises:
        ValueError: an argument is not supported.
    """
    check_only_values("dynamic_rnn", cell_type=(cell_type, "LSTM"), use_peephole=(use_peephole, False))
    raise_for_unsupported_arguments("dynamic_rnn", cell_depth, keep_prob, cell_clip, num_proj, time_major, activation)

    def step(state: tuple[Tensor, ...], x_t: Tensor) -> tuple[Tensor, ...]:
        c, h, *gates = _lstm_step(x_t, state[0], state[1], w, b, forget_bias)
        return (h, c, *gates)

    with tf.name_scope(name or "dynamic_rnn"):
        x = tf.convert_to_tensor(x)
        return run_over_steps("dynamic_rnn", step, x, [init_h, init_c], 5, seq_length, direction)


def dynamic_rnn_v2(
    x: Tensor, w: Tensor, b: Tensor, init_h: Tensor, init_c: Tensor, cell_type: str = "LSTM",
    direction: str = "UNIDIRECTIONAL", activation: str = "tanh", cell_depth: int = 1, use_peephole: bool = False,
    keep_prob: float = 1.0, cell_clip: float = -1.0, num_proj: int = 0, time_major: bool = True,
    forget_bias: float = 0.0, is_training: bool = True, name: str | None = None,
) -> tuple[Tensor, ...]:  # fmt: skip
    """Run an LSTM over all steps of a batch: dynamic_rnn without seq_length."""
    return dynamic_rnn(
        x, w, b, None, init_h, init_c, cell_type, direction, activation, cell_depth, use_peephole, keep_prob,
        cell_clip, num_proj, time_major, forget_bias, is_training, name or "dynamic_rnn_v2",
    )  # fmt: skip


def _lstm_step(x: Tensor, h: Tensor, c: Tensor, w: Tensor, b: Tensor, forget_bias: float) -> tuple[Tensor, ...]:
    sums = tf.matmul(tf.concat([x, h], 1), w) + b
    i, j, f, o = tf.split(sums, 4, axis=1)
    i, j, f, o = tf.sigmoid(i), tf.tanh(j), tf.sigmoid(f + tf.cast(forget_bias, f.dtype)), tf.sigmoid(o)
    ct = c * f + i * j
    tanh_ct = tf.tanh(ct)
    return ct, tanh_ct * o, i, j, f, o, tanh_ct
