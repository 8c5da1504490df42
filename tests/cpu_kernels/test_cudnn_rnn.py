"""The recurrent layers of cuDNN against the same steps in NumPy, against Keras, and their checkpoints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.eager import context

from npu_shim._tensorflow import patches
from npu_shim.ops.cpu_kernels import forms

v1 = tf.compat.v1
IS_1 = tf.__version__.startswith("1.")
STEPS, BATCH, INPUTS, UNITS, LAYERS = 5, 3, 4, 2, 2
GATES = {"lstm": 4, "gru": 3, "rnn_relu": 1, "rnn_tanh": 1}
pytestmark = [pytest.mark.usefixtures("in_use"), pytest.mark.twice, pytest.mark.slow]


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def cell(mode: str, x: list[np.ndarray], h: list[np.ndarray], hidden: Any, cells: Any) -> tuple[Any, Any]:
    """Return the state and the cells after one step, from what the input and the state give each gate."""
    if mode == "lstm":
        i, f, g, o = (a + b for a, b in zip(x, h))
        cells = sigmoid(f) * cells + sigmoid(i) * np.tanh(g)
        return sigmoid(o) * np.tanh(cells), cells
    if mode == "gru":
        r, u = (sigmoid(a + b) for a, b in zip(x[:2], h[:2]))
        return (1 - u) * np.tanh(x[2] + r * h[2]) + u * hidden, cells
    total = x[0] + h[0]
    return (np.maximum(total, 0) if mode == "rnn_relu" else np.tanh(total)), cells


def reference(
    mode: str, weights: list[np.ndarray], biases: list[np.ndarray], value: Any, h: Any, c: Any, lengths: Any, both: bool
) -> tuple[Any, Any, Any]:
    """Return the output and the last states. The input and the output are [time, batch, size]."""
    count, left, offsets = GATES[mode], list(weights), list(biases)
    last_h, last_c = np.array(h), np.array(c)
    is_projected = mode == "lstm" and h.shape[2] != c.shape[2]
    for place in range(len(h)):
        if place % (2 if both else 1) == 0:
            taken, outputs = value, []
        own, left = left[: 2 * count + is_projected], left[2 * count + is_projected :]
        given, offsets = offsets[: 2 * count], offsets[2 * count :]
        output = np.zeros([STEPS, BATCH, h.shape[2]])
        for row in range(BATCH):
            order = range(lengths[row])
            hidden, cells = h[place, row], c[place, row]
            for step in reversed(order) if both and place % 2 else order:
                x = [w @ taken[step, row] + b for w, b in zip(own[:count], given[:count])]
                gates = [w @ hidden + b for w, b in zip(own[count:], given[count:])]
                hidden, cells = cell(mode, x, gates, hidden, cells)
                hidden = own[-1] @ hidden if is_projected else hidden
                output[step, row] = hidden
            last_h[place, row], last_c[place, row] = hidden, cells
        outputs.append(output)
        value = np.concatenate(outputs, -1)
    return value, last_h, last_c


ONCE = pytest.mark.once  # the steps are the same with every TensorFlow; the two ops are not


@pytest.mark.parametrize(
    ("mode", "both", "projected", "is_varied"),
    [
        ("lstm", True, 0, True),
        ("gru", True, 0, False),
        pytest.param("lstm", False, 0, False, marks=ONCE),
        pytest.param("lstm", False, 3, True, marks=ONCE),
        pytest.param("gru", False, 0, True, marks=ONCE),
        pytest.param("rnn_relu", False, 0, False, marks=ONCE),
        pytest.param("rnn_tanh", True, 0, True, marks=ONCE),
    ],
)
def test_values(mode: str, both: bool, projected: int, is_varied: bool) -> None:
    random = np.random.RandomState(1)
    directions, made = 1 + both, projected or UNITS
    shapes: list[list[int]] = []
    for layer in range(LAYERS):
        taken = made * directions if layer else INPUTS
        one = [[UNITS, taken]] * GATES[mode] + [[UNITS, made]] * GATES[mode] + [[projected, UNITS]] * bool(projected)
        shapes += one * directions
    weights = [random.uniform(-1, 1, shape).astype(np.float32) for shape in shapes]
    number = 2 * GATES[mode] * LAYERS * directions
    biases = [random.uniform(-1, 1, UNITS).astype(np.float32) for _ in range(number)]
    value = random.uniform(-1, 1, [STEPS, BATCH, INPUTS]).astype(np.float32)
    h = random.uniform(-1, 1, [LAYERS * directions, BATCH, made]).astype(np.float32)
    c = random.uniform(-1, 1, [LAYERS * directions, BATCH, UNITS]).astype(np.float32)
    lengths = [STEPS, 2, 1] if is_varied else [STEPS] * BATCH
    common = dict(rnn_mode=mode, direction="bidirectional" if both else "unidirectional")
    sizes = dict(num_layers=LAYERS, num_units=UNITS, input_size=INPUTS, num_proj=projected, **common)
    with tf.Graph().as_default(), v1.Session() as session:
        with v1.device("/gpu:0"):  # as tf.contrib does
            params = tf.raw_ops.CudnnRNNCanonicalToParamsV2(weights=weights, biases=biases, **sizes)
        size = tf.raw_ops.CudnnRNNParamsSize(T=tf.float32, S=tf.int32, **sizes)
        back = tf.raw_ops.CudnnRNNParamsToCanonicalV2(
            params=params, num_params_weights=len(weights), num_params_biases=len(biases), **sizes
        )
        given = dict(input=value, input_h=h, input_c=c, params=params, **common)
        if is_varied or projected:
            outputs = tf.raw_ops.CudnnRNNV3(sequence_lengths=lengths, num_proj=projected, **given)
        else:
            outputs = tf.raw_ops.CudnnRNN(**given)
        slope = tf.gradients(tf.reduce_sum(outputs[0] ** 2), params)[0]
        found, counted, flat, again, slope = session.run([list(outputs[:3]), size, params, list(back[0]), slope])
    assert counted.tolist() == [len(flat)] and slope.shape == flat.shape and np.abs(slope).min() >= 0
    for one, other in zip(again, weights):
        np.testing.assert_array_equal(one, other)
    wanted = reference(mode, weights, biases, value, h, c, lengths, both)
    for one, other in zip(found, wanted[: 3 if mode == "lstm" else 2]):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["LSTM", pytest.param("GRU", marks=ONCE)])
@pytest.mark.once
def test_layers_of_keras(name: str) -> None:
    layers = v1.keras.layers
    if not hasattr(layers, f"CuDNN{name}"):  # Keras 3
        assert tf.__version__ >= "2.16"
        return
    value = np.random.RandomState(2).uniform(-1, 1, [3, 6, 4]).astype(np.float32)
    gates, given = {"LSTM": (4, {}), "GRU": (3, {"reset_after": True})}[name]
    with tf.Graph().as_default():
        x = v1.placeholder(tf.float32, [None, 6, 4])
        tested = getattr(layers, f"CuDNN{name}")(5, return_sequences=True)
        plain = getattr(layers, name)(5, return_sequences=True, recurrent_activation="sigmoid", **given)
        results = [tested(x), plain(x)]
        slopes = [tf.gradients(tf.reduce_sum(each**2), x)[0] for each in results]
        with v1.Session() as session:
            session.run(v1.global_variables_initializer())
            kernel, recurrent, bias = (
                np.random.RandomState(3).uniform(-1, 1, each.shape) for each in tested.get_weights()
            )
            v1.keras.backend.set_session(session)
            tested.set_weights([kernel, recurrent, bias])
            # The flat weights of a gate have the units as rows.
            kernel, recurrent = (
                np.hstack([part.ravel().reshape([5, -1]).T for part in np.hsplit(each, gates)])
                for each in (kernel, recurrent)
            )
            bias = bias.reshape([2, -1])
            plain.set_weights([kernel, recurrent, bias.sum(0) if name == "LSTM" else bias])
            found = session.run([*results, *slopes], {x: value})
    np.testing.assert_allclose(found[0], found[1], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found[2], found[3], rtol=1e-5, atol=1e-5)


def test_layers_of_contrib_and_their_checkpoints(tmp_path: Path) -> None:
    if not IS_1:
        assert not hasattr(tf, "contrib")
        return
    rnn = tf.contrib.cudnn_rnn
    value = np.random.RandomState(2).uniform(-1, 1, [6, 3, 4]).astype(np.float32)
    with tf.Graph().as_default(), v1.Session() as session:
        output, _ = rnn.CudnnLSTM(2, 5, direction="bidirectional")(tf.constant(value), training=True)
        session.run(v1.global_variables_initializer())
        found = session.run(output)
        saved = v1.train.Saver().save(session, str(tmp_path / "model"))
    with tf.Graph().as_default(), v1.Session() as session:
        with v1.variable_scope("cudnn_lstm"):
            cells = [[rnn.CudnnCompatibleLSTMCell(5) for _ in range(2)] for _ in range(2)]
            wanted, _, _ = tf.contrib.rnn.stack_bidirectional_dynamic_rnn(
                *cells, tf.constant(value), dtype=tf.float32, time_major=True
            )
        v1.train.Saver().restore(session, saved)
        np.testing.assert_allclose(found, session.run(wanted), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("mode", ["lstm", pytest.param("gru", marks=pytest.mark.nightly)])
def test_a_skipped_input_takes_the_place_of_its_product_with_a_matrix(mode: str) -> None:
    random, gates = np.random.RandomState(5), GATES[mode]
    value = random.uniform(-1, 1, [STEPS, BATCH, UNITS]).astype(np.float32)
    state = random.uniform(-1, 1, [1, BATCH, UNITS]).astype(np.float32)
    rest = random.uniform(-1, 1, gates * (UNITS * UNITS + 2 * UNITS)).astype(np.float32)
    identity = np.tile(np.eye(UNITS, dtype=np.float32).ravel(), gates)
    sizes = dict(num_layers=1, num_units=UNITS, input_size=UNITS, rnn_mode=mode, T=tf.float32, S=tf.int32)
    with tf.Graph().as_default(), v1.Session() as session:
        given = dict(input=value, input_h=state, input_c=state, rnn_mode=mode)
        wanted = tf.raw_ops.CudnnRNN(params=np.concatenate([identity, rest]), **given).output
        for name in ("skip_input", "auto_select"):
            found = tf.raw_ops.CudnnRNN(params=rest, input_mode=name, **given).output
            size = tf.raw_ops.CudnnRNNParamsSize(input_mode=name, **sizes)
            np.testing.assert_allclose(*session.run([found, wanted]), rtol=1e-5, atol=1e-6)
            assert session.run(size).tolist() == [len(rest)]
        wide = np.zeros([STEPS, BATCH, UNITS + 1], np.float32)
        with pytest.raises(ValueError, match="as many inputs as units, got 3 and 2"):
            tf.raw_ops.CudnnRNN(params=rest, input_mode="skip_input", **dict(given, input=wide))


def test_a_frozen_graph_is_imported() -> None:
    random = np.random.RandomState(6)
    weights = [random.uniform(-1, 1, [UNITS, size]).astype(np.float32) for size in [INPUTS] * 3 + [UNITS] * 3]
    value = random.uniform(-1, 1, [STEPS, BATCH, INPUTS]).astype(np.float32)
    sizes = dict(num_layers=1, num_units=UNITS, input_size=INPUTS, rnn_mode="gru")

    def build(value: Any) -> Any:
        params = tf.raw_ops.CudnnRNNCanonicalToParams(
            weights=weights, biases=[np.full(UNITS, i, np.float32) for i in range(6)], **sizes
        )
        parts = dict(num_params=6, params=params, **sizes)
        state = tf.zeros([1, tf.shape(value)[1], UNITS])
        for _ in range(2):
            value = tf.raw_ops.CudnnRNN(input=value, input_h=state, input_c=0.0, params=params, rnn_mode="gru").output
            value = tf.concat([value, value], -1)
        last = tf.raw_ops.CudnnRNNParamsToCanonical(**parts).weights[5]
        return tf.concat([tf.reshape(value, [-1]), tf.reshape(last, [-1])], 0, name="result")

    patches.restore_all()
    with tf.Graph().as_default() as graph:
        build(v1.placeholder(tf.float32, [None, None, INPUTS], "value"))
    forms.use_cpu_forms()
    with tf.Graph().as_default(), v1.Session() as session:
        (found,) = tf.import_graph_def(graph.as_graph_def(), {"value:0": value}, ["result:0"])
        np.testing.assert_allclose(*session.run([found, build(tf.constant(value))]), rtol=1e-5, atol=1e-6)


def test_eagerly() -> None:
    if IS_1:
        return
    random = np.random.RandomState(4)
    value, params = random.uniform(-1, 1, [5, 3, 4]), random.uniform(-1, 1, [4 * 2 * (4 + 2) + 16])
    given = dict(input=value, input_h=np.zeros([1, 3, 2]), input_c=np.zeros([1, 3, 2]), params=params)
    arrays = {name: np.float32(each) for name, each in given.items()}
    with tf.Graph().as_default(), v1.Session() as session:
        wanted = session.run(tf.raw_ops.CudnnRNNV2(**arrays).output)
    with context.eager_mode():
        tensors = {name: tf.constant(each) for name, each in arrays.items()}
        with tf.GradientTape() as tape:
            tape.watch(tensors["params"])
            output = tf.raw_ops.CudnnRNNV2(**tensors).output
        assert tape.gradient(output, tensors["params"]).shape == params.shape
        np.testing.assert_allclose(output.numpy(), wanted, rtol=1e-6, atol=1e-6)


def slopes_of_penalty(value: Any, params: Any) -> list[Any]:
    """Return the squared gradient with respect to the input, and its gradients: those of the second order."""
    state = tf.zeros([1, BATCH, UNITS])
    output = tf.raw_ops.CudnnRNN(input=value, input_h=state, input_c=state, params=params).output
    penalty = tf.reduce_sum(tf.gradients(output**2, value)[0] ** 2)
    return [penalty, *tf.gradients(penalty, [value, params])]


@pytest.mark.once
def test_second_gradients() -> None:
    random = np.random.RandomState(7)
    params = random.uniform(-1, 1, 4 * UNITS * (INPUTS + UNITS + 2)).astype(np.float32)
    value, way = (random.uniform(-1, 1, [STEPS, BATCH, INPUTS]).astype(np.float32) for _ in range(2))
    other_way = random.uniform(-1, 1, params.shape).astype(np.float32)
    with tf.Graph().as_default(), v1.Session() as session:
        x, w = v1.placeholder(tf.float32, value.shape), v1.placeholder(tf.float32, params.shape)
        penalty, *slopes = slopes_of_penalty(x, w)
        found = session.run(slopes, {x: value, w: params})
        after, before = (
            session.run(penalty, {x: value + step * way, w: params + step * other_way}) for step in (1e-2, -1e-2)
        )
    assert np.vdot(found[0], way) + np.vdot(found[1], other_way) == pytest.approx((after - before) / 2e-2, rel=2e-3)


@pytest.mark.parametrize(("mode", "dropout"), [("lstm", 0.5), pytest.param("gru", 0.0, marks=pytest.mark.nightly)])
def test_a_graph_that_trains_is_imported(mode: str, dropout: float) -> None:
    """It has the op of the gradient, which drops the same outputs between the layers as the op before it."""
    gates = GATES[mode]
    random = np.random.RandomState(8)
    size = gates * UNITS * (INPUTS + 3 * UNITS + 4)
    value = random.uniform(-1, 1, [STEPS, BATCH, INPUTS]).astype(np.float32)
    params = random.uniform(-1, 1, size).astype(np.float32)

    def build(x: Any, w: Any) -> list[Any]:
        state = tf.zeros([LAYERS, BATCH, UNITS])
        given = dict(input=x, input_h=state, input_c=state, params=w, rnn_mode=mode, dropout=dropout, seed=5)
        output, last_h, last_c, *_ = tf.raw_ops.CudnnRNN(**given)
        loss = tf.reduce_sum(output**2) + tf.reduce_sum(last_h) + (tf.reduce_sum(last_c) if mode == "lstm" else 0.0)
        return [tf.identity(each, name=f"result_{i}") for i, each in enumerate([loss, *tf.gradients(loss, [x, w])])]

    patches.restore_all()
    with tf.Graph().as_default() as graph:
        build(v1.placeholder(tf.float32, value.shape, "x"), v1.placeholder(tf.float32, [size], "w"))
    graph_def = graph.as_graph_def()
    assert [each.op for each in graph_def.node].count("CudnnRNNBackprop") == 1
    forms.use_cpu_forms()
    names = [f"result_{i}:0" for i in range(3)]
    with tf.Graph().as_default(), v1.Session() as session:
        found = session.run(tf.import_graph_def(graph_def, {"x:0": value, "w:0": params}, names))
        wanted = session.run(build(tf.constant(value), tf.constant(params)))
    for one, other in zip(found, wanted):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)
