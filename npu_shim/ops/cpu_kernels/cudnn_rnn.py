"""The recurrent layers of cuDNN, computed step by step.

The parameters are one vector. For each layer, and in each layer for each direction, it has the weights of the gates for
the input, those for the state, and the matrix of the projection if there is one, each with the units as rows. The
biases follow in the same order.

With x the input, h the state before, W, R the weights for both, b, d their biases, and s the sigmoid function:

* lstm, gates i, f, g, o: c' = s(f) c + s(i) tanh(g), h' = s(o) tanh(c'), where each gate is W x + b + R h + d;
* gru, gates r, u, n: n = tanh(W x + b + s(r) (R h + d)), h' = (1 - s(u)) n + s(u) h;
* rnn_relu, rnn_tanh: h' = relu or tanh of the gate.

The reserved space has the masks of dropout between the layers, so that the op of the gradient finds them.

If the first layer skips its input, x takes the place of W x there, and W has no elements.
"""

from __future__ import annotations

from typing import Callable, NamedTuple, Sequence

import tensorflow as tf

from npu_shim._tensorflow import tf_api, tf_gradients, tf_graph
from npu_shim._tensorflow.tf_op_forms import AskedOp
from npu_shim._tensorflow.types import Tensor

v1 = tf_api.v1
_GATES = {"lstm": 4, "gru": 3, "rnn_relu": 1, "rnn_tanh": 1}


class _Matrix(NamedTuple):
    """A part of the parameters: the weights of a gate, and the number of its biases."""

    rows: int
    columns: int
    biases: int


class _Network(NamedTuple):
    """The attributes of the op, and the sizes of its inputs.

    Attributes:
        mode: lstm, gru, rnn_relu or rnn_tanh.
        layers: the number of layers.
        directions: 1, or 2 if bidirectional.
        inputs: the size of the input.
        units: the size of the state.
        projected: the size of the output of a layer; 0 without projection.
        is_skipped: the first layer takes its input as it is, without a matrix.
    """

    mode: str
    layers: int
    directions: int
    inputs: int
    units: int
    projected: int
    is_skipped: bool

    def matrices(self) -> list[_Matrix]:
        """Return the matrices of all layers and directions in the order of the parameters."""
        outputs = self.projected or self.units
        parts = []
        for layer in range(self.layers):
            taken = outputs * self.directions if layer else 0 if self.is_skipped else self.inputs
            one = [_Matrix(self.units, taken, self.units)] * _GATES[self.mode]
            one += [_Matrix(self.units, outputs, self.units)] * _GATES[self.mode]
            one += [_Matrix(self.projected, self.units, 0)] * bool(self.projected)
            parts += one * self.directions
        return parts

    def number_of_parameters(self) -> int:
        """Return the number of parameters."""
        return sum(matrix.rows * matrix.columns + matrix.biases for matrix in self.matrices())

    def split_parameters(self, parameters: Tensor) -> tuple[list[Tensor], list[Tensor]]:
        """Return the matrices and the biases in the parameters."""
        matrices = self.matrices()
        sizes = [matrix.rows * matrix.columns for matrix in matrices]
        biases = [matrix.biases for matrix in matrices if matrix.biases]
        parts = tf.split(tf.reshape(parameters, [-1]), [*sizes, *biases])
        weights = [tf.reshape(part, [matrix.rows, matrix.columns]) for part, matrix in zip(parts, matrices)]
        return weights, parts[len(sizes) :]


def params_size_form(asked: AskedOp) -> Callable[[], Sequence[Tensor]] | None:
    """Return the form of CudnnRNNParamsSize."""
    return lambda: [
        tf.constant([_network_of_size_inputs(asked).number_of_parameters()], asked.attributes.get("S", tf.int32))
    ]


def canonical_to_params_form(asked: AskedOp) -> Callable[[], Sequence[Tensor]] | None:
    """Return the form of CudnnRNNCanonicalToParams: one vector of the matrices and biases."""
    return lambda: [
        tf.concat([tf.reshape(part, [-1]) for part in [*asked.inputs["weights"], *asked.inputs["biases"]]], 0)
    ]


def params_to_canonical_form(asked: AskedOp) -> Callable[[], Sequence[Tensor]] | None:
    """Return the form of CudnnRNNParamsToCanonical: the matrices and biases of a vector."""

    def compute() -> list[Tensor]:
        weights, biases = _network_of_size_inputs(asked).split_parameters(asked.inputs["params"])
        return [*weights, *biases]

    return compute


def rnn_form(asked: AskedOp) -> Callable[[], Sequence[Tensor]] | None:
    """Return the form of CudnnRNN, also of its second and third version."""

    def compute() -> list[Tensor]:
        outputs, masks = _run_network(asked, None)
        reserved = [tf.concat([tf.reshape(mask, [-1]) for mask in masks] or [tf.zeros([0], outputs[0].dtype)], 0)]
        return [*outputs, *reserved, *[tf.zeros([0], tf.int8)] * (asked.type != "CudnnRNN")]

    return compute


def rnn_gradient_form(asked: AskedOp) -> Callable[[], Sequence[Tensor]] | None:
    """Return the form of CudnnRNNBackprop, also of its later versions: the gradients of the steps, run once more."""

    def compute() -> list[Tensor]:
        given = asked.inputs
        points = [given[name] for name in ("input", "input_h", "input_c", "params")]
        slopes = [given[f"{name}_backprop"] for name in ("output", "output_h", "output_c")]
        masks = tf.stop_gradient(given["reserve_space"]) if asked.attributes["dropout"] else None
        count = 3 if asked.attributes["rnn_mode"] == "lstm" else 2
        again = asked._replace(attributes={**asked.attributes, "is_training": True})
        gradients = tf_gradients.compute_gradients(
            lambda: _run_network(again, masks)[0][:count], points, slopes[:count]
        )
        return [tf.zeros_like(point) if slope is None else slope for point, slope in zip(points, gradients)]

    return compute


def _network_of_size_inputs(asked: AskedOp) -> _Network:
    values = {}
    for name in ("num_layers", "num_units", "input_size"):
        value = tf_api.static_value(asked.inputs[name])
        if value is None:
            raise ValueError(f"{asked.type}: {name} must be a constant on the CPU. Give a number.")
        values[name] = int(value)
    return _make_network(asked, values["num_layers"], values["input_size"], values["num_units"])


def _make_network(asked: AskedOp, layers: int, inputs: int, units: int) -> _Network:
    attributes = asked.attributes
    mode = attributes["input_mode"]
    is_skipped = mode == "skip_input" or (mode == "auto_select" and inputs == units)
    if is_skipped and inputs != units:
        raise ValueError(
            f"{asked.type} with input_mode='{mode}' needs as many inputs as units, got {inputs} and {units}. "
            "Use input_mode='linear_input'."
        )
    directions = 2 if attributes["direction"] == "bidirectional" else 1
    projected = attributes.get("num_proj") or 0
    return _Network(attributes["rnn_mode"], layers, directions, inputs, units, projected, is_skipped)


def _run_network(asked: AskedOp, masks: Tensor | None) -> tuple[list[Tensor], list[Tensor]]:
    """Return the output and the last states, and the masks of dropout between the layers.

    Args:
        asked: the op, or that of its gradient.
        masks: those of an earlier run, as one vector; None to draw them.
    """
    given, is_training = asked.inputs, asked.attributes["is_training"]
    is_by_time = asked.attributes.get("time_major", True)

    def by_time(value: Tensor) -> Tensor:
        return value if is_by_time else tf.transpose(value, [1, 0, 2])

    value, lengths = by_time(given["input"]), given.get("sequence_lengths")
    has_cells = asked.attributes["rnn_mode"] == "lstm"
    hidden = by_time(given["input_h"])
    cells = by_time(given["input_c"]) if has_cells else hidden
    rows = _static_size(asked, hidden, 0)
    directions = 2 if asked.attributes["direction"] == "bidirectional" else 1
    net = _make_network(asked, rows // directions, _static_size(asked, value, 2), _static_size(asked, cells, 2))
    weights, biases = net.split_parameters(given["params"])
    gates = _GATES[net.mode]
    last: list[list[Tensor]] = []
    drawn: list[Tensor] = []
    kept = [] if masks is None else tf.split(masks, net.layers - 1)
    for layer in range(net.layers):
        if layer and is_training and asked.attributes["dropout"]:
            if masks is None:
                rate, seed = asked.attributes["dropout"], asked.attributes["seed"] or None
                drawn.append(v1.nn.dropout(tf.ones_like(value), rate=rate, seed=seed))
            value *= drawn[-1] if masks is None else tf.reshape(kept[layer - 1], tf.shape(value))
        outputs = []
        for direction in range(directions):
            place = layer * directions + direction
            count = 2 * gates + bool(net.projected)
            own = weights[place * count : (place + 1) * count]
            offsets = biases[place * 2 * gates : (place + 1) * 2 * gates]
            output, states = _run_layer(
                net,
                _reverse_if_backward(value, lengths, direction),
                [hidden[place], cells[place]],
                own,
                offsets,
                lengths,
            )
            outputs.append(_reverse_if_backward(output, lengths, direction))
            last.append(states)
        value = tf.concat(outputs, -1)
    results = [by_time(value), by_time(tf.stack([pair[0] for pair in last]))]
    results.append(by_time(tf.stack([pair[1] for pair in last])) if has_cells else tf.identity(given["input_c"]))
    return results, drawn


def _static_size(asked: AskedOp, value: Tensor, axis: int) -> int:
    size = value.shape.as_list()[axis] if value.shape.rank is not None else None
    if size is None:
        raise ValueError(
            f"{asked.type} needs a known size of axis {axis} of {value.name} on the CPU. Set it with set_shape()."
        )
    return int(size)


def _reverse_if_backward(value: Tensor, lengths: Tensor | None, direction: int) -> Tensor:
    """Return the steps in the order of a direction: as they are, or from the last of each sequence to its first."""
    if not direction:
        return value
    return tf.reverse(value, [0]) if lengths is None else v1.reverse_sequence(value, lengths, seq_axis=0, batch_axis=1)


def _run_layer(
    net: _Network,
    value: Tensor,
    states: Sequence[Tensor],
    weights: Sequence[Tensor],
    biases: Sequence[Tensor],
    lengths: Tensor | None,
) -> tuple[Tensor, list[Tensor]]:
    """Return the outputs of all steps of a layer in one direction, and its last states."""
    gates = _GATES[net.mode]
    of_input, of_state = (
        tf.transpose(tf.concat(matrices, 0)) for matrices in (weights[:gates], weights[gates : 2 * gates])
    )
    offset_of_input, offset_of_state = tf.concat(biases[:gates], 0), tf.concat(biases[gates:], 0)
    projection = tf.transpose(weights[-1]) if net.projected else None
    steps, batch = tf.unstack(tf.shape(value)[:2])
    size = value.shape.as_list()[-1]
    flat = tf.reshape(value, [-1, size])
    if of_input.shape.as_list()[0] == 0:  # skipped
        flat = tf.tile(flat, [1, gates])
    else:
        flat = tf.matmul(flat, of_input)
    given = tf.reshape(flat + offset_of_input, [steps, batch, gates * net.units])
    first_output = tf.zeros([batch, net.projected or net.units], value.dtype)

    def step(before: Sequence[Tensor], now: Sequence[Tensor]) -> list[Tensor]:
        hidden, cells, _ = before
        taken, is_inside = now
        hidden_now, cells_now = _run_cell(net.mode, taken, tf.matmul(hidden, of_state) + offset_of_state, hidden, cells)
        if projection is not None:
            hidden_now = tf.matmul(hidden_now, projection)
        after = [v1.where(is_inside, hidden_now, hidden), v1.where(is_inside, cells_now, cells)]
        return [*after, v1.where(is_inside, hidden_now, tf.zeros_like(hidden_now))]

    inside = tf.ones([steps, batch], tf.bool)
    if lengths is not None:
        inside = tf.transpose(tf.sequence_mask(lengths, steps))
    with tf_graph.loops_with_second_gradients():
        all_hidden, all_cells, outputs = tf.scan(step, [given, inside], [*states, first_output])
    return outputs, [all_hidden[-1], all_cells[-1]]


def _run_cell(mode: str, inputs: Tensor, recurrent: Tensor, hidden: Tensor, cells: Tensor) -> tuple[Tensor, Tensor]:
    """Return the state and the cells after a step."""
    if mode == "lstm":
        enter, forget, candidate, leave = tf.split(inputs + recurrent, 4, 1)
        cells = tf.sigmoid(forget) * cells + tf.sigmoid(enter) * tf.tanh(candidate)
        return tf.sigmoid(leave) * tf.tanh(cells), cells
    if mode == "gru":
        reset, update, candidate = tf.split(inputs, 3, 1)
        from_reset, from_update, from_candidate = tf.split(recurrent, 3, 1)
        fresh = tf.tanh(candidate + tf.sigmoid(reset + from_reset) * from_candidate)
        share = tf.sigmoid(update + from_update)
        return fresh + share * (hidden - fresh), cells
    total = inputs + recurrent
    return (tf.nn.relu(total) if mode == "rnn_relu" else tf.tanh(total)), cells
