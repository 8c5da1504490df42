"""The NPU's recurrent operators, in TensorFlow's ops. Their gradients are those of the ops.

LSTM, with [i j f o] = [x h] w + b:

    c' = sigmoid(f + forget_bias) c + sigmoid(i) tanh(j)
    h' = sigmoid(o) tanh(c')

GRU, with gates z (update), r (reset) and candidate n in the order of ``gate_order``, xw = x w_x + b_x and
hw = h w_h + b_h:

    z = sigmoid(xw_z + hw_z),  r = sigmoid(xw_r + hw_r),  n = tanh(xw_n + r hw_n)
    h' = (1 - z) n + z h

Sources: Hochreiter and Schmidhuber, "Long Short-Term Memory", 1997; Cho et al., arXiv:1406.1078; the attentional update
gate: Zhou et al., "Deep Interest Evolution Network", arXiv:1809.03672.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable

from npu_shim._tf import tf

if TYPE_CHECKING:
    from npu_shim._types import Tensor


def basic_lstm_cell(
    x: Tensor,
    h: Tensor,
    c: Tensor,
    w: Tensor,
    b: Tensor,
    keep_prob: float = 1.0,
    forget_bias: float = 1.0,
    state_is_tuple: bool = True,
    activation: str = "tanh",
    name: str | None = None,
) -> tuple[Tensor, ...]:
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
    _check("basic_lstm_cell", activation=(activation, "tanh"), keep_prob=(keep_prob, 1.0))
    _check("basic_lstm_cell", state_is_tuple=(state_is_tuple, True))
    with tf.name_scope(name or "basic_lstm_cell"):
        return _lstm_step(x, h, c, w, b, forget_bias)


def dynamic_rnn(
    x: Tensor,
    w: Tensor,
    b: Tensor,
    seq_length: Tensor | None,
    init_h: Tensor,
    init_c: Tensor,
    cell_type: str = "LSTM",
    direction: str = "UNIDIRECTIONAL",
    cell_depth: int = 1,
    use_peephole: bool = False,
    keep_prob: float = 1.0,
    cell_clip: float = -1.0,
    num_proj: int = 0,
    time_major: bool = True,
    activation: str = "tanh",
    forget_bias: float = 0.0,
    is_training: bool = True,
    name: str | None = None,
) -> tuple[Tensor, ...]:
    """Run an LSTM over the steps of a batch.

    Args:
        x: [steps, batch, inputs], float16 or float32.
        w: [inputs + units, 4 units], in the order i, j, f, o.
        b: [4 units].
        seq_length: int32 [batch], the steps of each example; behind its last step y is 0 and the state stays. All steps
            if None.
        init_h: [1, batch, units].
        init_c: [1, batch, units].
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
    _check("dynamic_rnn", cell_type=(cell_type, "LSTM"), use_peephole=(use_peephole, False))
    _check_common("dynamic_rnn", cell_depth, keep_prob, cell_clip, num_proj, time_major, activation)

    def step(state: tuple[Tensor, ...], x_t: Tensor) -> tuple[Tensor, ...]:
        c, h, *gates = _lstm_step(x_t, state[0], state[1], w, b, forget_bias)
        return (h, c, *gates)

    with tf.name_scope(name or "dynamic_rnn"):
        x = tf.convert_to_tensor(x)
        return _over_steps("dynamic_rnn", step, x, [init_h, init_c], 5, seq_length, direction)


def dynamic_rnn_v2(
    x: Tensor, w: Tensor, b: Tensor, init_h: Tensor, init_c: Tensor, *args: Any, **kwargs: Any
) -> tuple[Tensor, ...]:
    """Run an LSTM over all steps of a batch: dynamic_rnn without seq_length."""
    return dynamic_rnn(x, w, b, None, init_h, init_c, *args, **kwargs)


def dynamic_gru_v2(
    x: Tensor,
    weight_input: Tensor,
    weight_hidden: Tensor,
    bias_input: Tensor,
    bias_hidden: Tensor,
    seq_length: Tensor | None,
    init_h: Tensor,
    direction: str = "UNIDIRECTIONAL",
    cell_depth: int = 1,
    keep_prob: float = 1.0,
    cell_clip: float = -1.0,
    num_proj: int = 0,
    time_major: bool = True,
    activation: str = "tanh",
    gate_order: str = "zrh",
    reset_after: bool = True,
    is_training: bool = True,
    name: str | None = None,
) -> tuple[Tensor, ...]:
    """Run a GRU over the steps of a batch.

    Args:
        x: [steps, batch, inputs], float16 or float32.
        weight_input: [inputs, 3 units].
        weight_hidden: [units, 3 units].
        bias_input: [3 units].
        bias_hidden: [3 units].
        seq_length: as for dynamic_rnn.
        init_h: [1, batch, units].
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
    _check_common("dynamic_gru_v2", cell_depth, keep_prob, cell_clip, num_proj, time_major, activation)
    weights = (weight_input, weight_hidden, bias_input, bias_hidden)
    gates = _gru("dynamic_gru_v2", weights, gate_order, reset_after)

    def step(state: tuple[Tensor, ...], x_t: Tensor) -> tuple[Tensor, ...]:
        z, r, n, hidden = gates(x_t, state[0])
        return ((1 - z) * n + z * state[0], z, r, n, hidden)

    with tf.name_scope(name or "dynamic_gru_v2"):
        return _over_steps("dynamic_gru_v2", step, tf.convert_to_tensor(x), [init_h], 4, seq_length, direction)


def dynamic_augru(
    x: Tensor,
    weight_input: Tensor,
    weight_hidden: Tensor,
    weight_att: Tensor,
    bias_input: Tensor,
    bias_hidden: Tensor,
    seq_length: Tensor | None,
    init_h: Tensor,
    direction: str = "UNIDIRECTIONAL",
    cell_depth: int = 1,
    keep_prob: float = 1.0,
    cell_clip: float = -1.0,
    num_proj: int = 0,
    time_major: bool = True,
    activation: str = "tanh",
    gate_order: str = "zrh",
    reset_after: bool = True,
    is_training: bool = True,
    name: str | None = None,
) -> tuple[Tensor, ...]:
    """Run a GRU with attentional update gate over the steps of a batch: z' = (1 - a) z and h' = (1 - z') h + z' n.

    Args:
        weight_att: [steps, batch], the attention a of each step.
        others: as for dynamic_gru_v2.
    Returns:
        y, output_h, and update, update_att, reset, new, hidden_new, each [steps, batch, units].
    Raises:
        ValueError: an argument is not supported.
    """
    _check_common("dynamic_augru", cell_depth, keep_prob, cell_clip, num_proj, time_major, activation)
    weights = (weight_input, weight_hidden, bias_input, bias_hidden)
    gates = _gru("dynamic_augru", weights, gate_order, reset_after)

    def step(state: tuple[Tensor, ...], x_t: Tensor) -> tuple[Tensor, ...]:
        attention, x_t = x_t[:, :1], x_t[:, 1:]
        z, r, n, hidden = gates(x_t, state[0])
        attended = (1 - attention) * z
        return ((1 - attended) * n + attended * state[0], z, attended, r, n, hidden)

    with tf.name_scope(name or "dynamic_augru"):
        together = tf.concat([tf.expand_dims(weight_att, -1), x], -1)
        return _over_steps("dynamic_augru", step, together, [init_h], 5, seq_length, direction)


def _lstm_step(x: Tensor, h: Tensor, c: Tensor, w: Tensor, b: Tensor, forget_bias: float) -> tuple[Tensor, ...]:
    sums = tf.matmul(tf.concat([x, h], 1), w) + b
    i, j, f, o = tf.split(sums, 4, axis=1)
    i, j, f, o = tf.sigmoid(i), tf.tanh(j), tf.sigmoid(f + tf.cast(forget_bias, f.dtype)), tf.sigmoid(o)
    ct = c * f + i * j
    tanh_ct = tf.tanh(ct)
    return ct, tanh_ct * o, i, j, f, o, tanh_ct


def _gru(name: str, weights: tuple[Tensor, ...], gate_order: str, reset_after: bool) -> Callable[..., Any]:
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


def _over_steps(
    name: str,
    step: Callable[[tuple[Tensor, ...], Tensor], tuple[Tensor, ...]],
    x: Tensor,
    states: list[Tensor],
    gates: int,
    seq_length: Tensor | None,
    direction: str,
) -> tuple[Tensor, ...]:
    """Return y, the states and the gates of all steps.

    Args:
        step: a function of the states and x of a step that returns the new states and the gates.
        states: [1, batch, units] each; the first one is h.
        gates: the number of gates.
    """
    if direction not in ("UNIDIRECTIONAL", "REDIRECTIONAL"):
        raise ValueError(f"{name}: direction={direction!r} is not allowed: it must be 'UNIDIRECTIONAL'.")
    first = tuple(tf.reshape(state, tf.shape(state)[1:]) for state in states)
    kept = len(first)

    def masked(before: tuple[Tensor, ...], now: tuple[Tensor, Tensor]) -> tuple[Tensor, ...]:
        number, x_t = now
        made = step(before[:kept], x_t)
        if seq_length is None:
            return made
        lives = tf.cast(tf.expand_dims(number < tf.cast(seq_length, tf.int32), 1), x_t.dtype)
        return tuple(lives * new + (1 - lives) * old for new, old in zip(made[:kept], before)) + made[kept:]

    numbers = tf.range(tf.shape(x)[0])
    start = first + (tf.zeros_like(first[0]),) * gates
    results = tf.scan(masked, (numbers, x), start, reverse=direction == "REDIRECTIONAL")
    h = results[0]
    if seq_length is None:
        return (h, *results)
    lives = tf.transpose(tf.sequence_mask(seq_length, tf.shape(x)[0], h.dtype))
    return (h * tf.expand_dims(lives, -1), *results)


def _check_common(
    name: str, cell_depth: int, keep_prob: float, cell_clip: float, num_proj: int, time_major: bool, activation: str
) -> None:
    _check(name, cell_depth=(cell_depth, 1), keep_prob=(keep_prob, 1.0), cell_clip=(cell_clip, -1.0))
    _check(name, num_proj=(num_proj, 0), time_major=(time_major, True), activation=(activation, "tanh"))


def _check(name: str, **given: tuple[object, object]) -> None:
    for argument, (value, only) in given.items():
        if value != only:
            raise ValueError(f"{name}: {argument}={value!r} is not supported. Use {only!r}.")
