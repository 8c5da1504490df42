"""The vendor's operators against NumPy in float64: in a graph, a function, a loop and eager code, with their gradients.

A row of CASES gives the operator, its inputs and a reference; the gradients of the reference are taken numerically.
"""

from __future__ import annotations

from typing import Any, Callable, NamedTuple

import numpy as np
import pytest
import tensorflow as tf
from npu_shim.tbe import npu_vector_ops

from npu_shim.estimator import npu_aicore_ops, npu_ops
from npu_shim.estimator.npu import npu_dynamic_rnn
from npu_shim.estimator.npu_aicore_ops import npu_aicore_ops as operators
from tests.ops.operator_case import Case, check_gradients, check_values, in_graph, made, random, sigmoid

pytestmark = pytest.mark.once


def lstm(x: Any, h: Any, c: Any, w: Any, b: Any) -> Any:
    i, j, f, o = np.split(np.concatenate([x, h], 1) @ w + b, 4, axis=1)
    i, j, f, o = sigmoid(i), np.tanh(j), sigmoid(f + 1.0), sigmoid(o)
    new = c * f + i * j
    return [new, np.tanh(new) * o, i, j, f, o, np.tanh(new)]


def layer_norm(x: Any, gamma: Any, beta: Any) -> Any:
    mean, variance = x.mean(2, keepdims=True), x.var(2, keepdims=True)
    return [(x - mean) / np.sqrt(variance + 0.01) * gamma + beta, mean, variance]


def lars(w: Any, g: Any) -> Any:
    return 0.001 * np.linalg.norm(w) / (np.linalg.norm(g) + 0.1 * np.linalg.norm(w) + 1e-5) * (g + 0.1 * w)


def fast_gelu_v2(x: Any) -> Any:
    curve = -0.1444 * (np.minimum(0.7071 * np.abs(x), 1.769) - 1.769) ** 2 + 0.5
    return x * (np.sign(x) * curve + 0.5)


CASES = {
    "fast_gelu": Case(operators.fast_gelu, (made(3, 4),), lambda x: x * sigmoid(1.702 * x), (0,)),
    "fast_gelu_v2": Case(npu_aicore_ops.fast_gelu_v2, (made(3, 4) * 2,), fast_gelu_v2, (0,)),
    "centralization": Case(
        lambda x: npu_aicore_ops.centralization(x, [0, 2]),
        (made(2, 3, 4),),
        lambda x: x - x.mean((0, 2), keepdims=True),
        (0,),
    ),
    "prelu, a weight for all": Case(
        npu_aicore_ops.prelu, (made(2, 3), made(1)), lambda x, w: np.where(x > 0, x, w * x), (0, 1)
    ),
    "prelu, a weight for each channel": Case(
        npu_aicore_ops.prelu,
        (made(2, 3, 2, 2), made(3)),
        lambda x, w: np.where(x > 0, x, w[:, None, None] * x),
        (0, 1),
    ),
    "prelu, channels last": Case(
        npu_aicore_ops.prelu, (made(2, 2, 2, 3), made(1, 1, 3)), lambda x, w: np.where(x > 0, x, w * x), (0, 1)
    ),
    "layer_norm": Case(
        lambda x, gamma, beta: npu_aicore_ops.layer_norm(x, gamma, beta, 2, 2, 0.01),
        (made(2, 2, 4), made(4), made(4)),
        layer_norm,
        (0, 1, 2),
    ),
    "LARSV2": Case(lambda w, g: npu_ops.LARSV2(w, g, 0.1, 0.002), (made(2, 3), made(2, 3)), lars, (0, 1), False),
    "LARS": Case(
        lambda w, g, v, h: npu_ops.LARS([w, v], [g, h], 0.1),
        (made(2, 3), made(2, 3), made(4), made(4)),
        lambda w, g, v, h: [lars(w, g), lars(v, h)],
        (0, 3),
        False,
    ),
    "basic_lstm_cell": Case(
        lambda x, h, c, w, b: list(npu_ops.basic_lstm_cell(x, h, c, w, b, 1.0, 1.0, True, "tanh")),
        (made(2, 2), made(2, 3), made(2, 3), made(5, 12), made(12)),
        lstm,
        (0, 1, 2, 3, 4),
        False,
    ),
}
cases = pytest.mark.parametrize("case", list(CASES.values()), ids=list(CASES))


@cases
def test_values_in_graphs_functions_loops_and_eager_code(case: Case) -> None:
    check_values(case)


@cases
def test_gradients_are_those_of_the_reference(case: Case) -> None:
    check_gradients(case)


@pytest.mark.parametrize("name", ["LARSV2", "basic_lstm_cell"])
def test_wrappers_of_graph_mode_refuse_eager_code(name: str) -> None:
    case = CASES[name]
    if tf.executing_eagerly():
        with pytest.raises(RuntimeError, match=f"npu_ops.{name} works in graph mode: call tf.compat.v1.disable_eager"):
            case.call(*case.inputs)
    else:
        case.call(*case.inputs)


def test_gradient_operators() -> None:
    """Each against the gradient of its forward operator."""
    x, dy = made(2, 3, 4), made(2, 3, 4)
    gamma, weight = made(4), made(3)

    def pairs() -> Any:
        found, wanted = [], []
        v = tf.constant(x)
        for forward, backward in (
            (operators.gelu(v), operators.gelu_grad(dy, v, operators.gelu(v))),
            (operators.fast_gelu(v), operators.fast_gelu_grad(dy, v)),
        ):
            found.append(backward)
            wanted += tf.gradients(forward, [v], [dy])
        w = tf.constant(weight)
        found += operators.p_relu_grad(dy, v, w)
        wanted += tf.gradients(operators.p_relu(v, w), [v, w], [dy])
        g = tf.constant(gamma)
        beta = tf.constant(gamma)
        y, mean, variance = operators.fused_layer_norm(v, g, beta, 2, 2, 0.0)
        found += operators.fused_layer_norm_grad(dy, v, variance, mean, g)
        wanted += tf.gradients(y, [v, g, beta], [dy])
        return found, wanted

    for found, wanted in zip(*in_graph(pairs)):
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


class Op(NamedTuple):
    """An operator as gradient functions see it."""

    inputs: Any
    outputs: Any
    attributes: dict[str, Any]

    def get_attr(self, name: str) -> Any:
        return self.attributes[name]


SETTINGS = [("UNIDIRECTIONAL", "zrh", True), ("REDIRECTIONAL", "rzh", False)]


@pytest.mark.parametrize("direction, gate_order, reset_after", SETTINGS)
def test_gradient_functions(direction: str, gate_order: str, reset_after: bool) -> None:
    """Each against the gradient that TensorFlow finds for the forward operator."""
    last = -1 if direction == "UNIDIRECTIONAL" else 0
    attributes = {"direction": direction, "gate_order": gate_order, "reset_after": reset_after}
    lengths = np.array([3, 2], np.int32)

    def check(name: str, inputs: list[Any], dy: Any, dh: Any, **settings: Any) -> Any:
        """Return the gradients that the function finds, and those that TensorFlow finds."""
        inputs = [tf.constant(each) for each in inputs]
        outputs = list(getattr(operators, name)(*inputs, **settings))
        states = 2 if "rnn" in name else 1
        steps = np.zeros([3, 2, 4], np.float32)
        if direction == "UNIDIRECTIONAL":  # the functions take the gradient of the last row of output_h
            steps[last] = dh
        given = [dy] + [tf.constant(steps)] * states + [tf.zeros_like(each) for each in outputs[1 + states :]]
        function = getattr(npu_ops, name + "_grad")
        found = function(Op(inputs, outputs, attributes), *given)
        wanted = tf.gradients(outputs[: 1 + states], inputs, given[: 1 + states])
        kept = [number for number, each in enumerate(inputs) if each.dtype == tf.float32]
        return [found[number] for number in kept], [wanted[number] for number in kept]

    def build() -> Any:
        x, dy, dh, h, c = made(3, 2, 2), made(3, 2, 4), made(2, 4), made(1, 2, 4), made(1, 2, 4)
        gru = [made(2, 12), made(4, 12), made(12), made(12), lengths, h]
        attention = random.rand(3, 2).astype(np.float32)
        settings = {"gate_order": gate_order, "reset_after": reset_after, "direction": direction}
        return [
            check("dynamic_rnn_v2", [x, made(6, 16), made(16), h, c], dy, dh, direction=direction),
            check("dynamic_gru_v2", [x, *gru], dy, dh, **settings),
            check("dynamic_augru", [x, *gru[:2], attention, *gru[2:]], dy, dh, **settings),
        ]

    for found, wanted in in_graph(build):
        for each, true in zip(found, wanted):
            np.testing.assert_allclose(each, true, rtol=1e-4, atol=1e-5)


def test_gradient_functions_of_lstm_and_prelu() -> None:
    def build() -> Any:
        given = [tf.constant(each) for each in CASES["basic_lstm_cell"].inputs]
        outputs = operators.basic_lstm_cell(*given)
        dc, dh = tf.constant(made(2, 3)), tf.constant(made(2, 3))
        attributes = {"forget_bias": 1.0, "activation": "tanh", "keep_prob": 1.0}
        found = npu_ops.basic_lstm_cell_grad(Op(given, outputs, attributes), dc, dh, *[None] * 5)
        wanted = tf.gradients(outputs[:2], given, [dc, dh])
        x, w, dy = (tf.constant(each) for each in (made(2, 3), made(3), made(2, 3)))
        found += npu_aicore_ops.prelu_grad(Op([x, w], None, {}), dy)
        wanted += tf.gradients(npu_aicore_ops.prelu(x, w), [x, w], [dy])
        return found, wanted

    for found, wanted in zip(*in_graph(build)):
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


def graph_layers(build: Callable[[], Any]) -> tuple[Any, dict[str, Any]]:
    """Return what build returns, and the variables that it makes, by name."""
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        fetched = build()
        variables = tf.compat.v1.global_variables()
        session.run(tf.compat.v1.global_variables_initializer())
        return session.run([fetched, {variable.op.name: variable for variable in variables}])


def test_dynamic_rnn_layer_in_both_directions() -> None:
    x = made(3, 2, 4)

    def build() -> Any:
        layer = npu_dynamic_rnn.DynamicRNN(5, tf.float32, direction="BIDIRECTIONAL", forget_bias=1.0)
        results = layer(tf.constant(x), seq_length=[3, 2])
        assert len(results) == 8 and layer.direction == npu_dynamic_rnn.DYNAMIC_RNN_BIDIRECTION
        weights = tf.compat.v1.trainable_variables()
        gradients = tf.gradients(results[0], weights)
        assert len(weights) == 2 and len(gradients) == 2
        return [results[0], *gradients]

    (y, *_), variables = graph_layers(build)
    w, b = variables["dynamic_rnn/dynamicrnn/w"], variables["dynamic_rnn/dynamicrnn/b"]
    assert y.shape == (2, 3, 2, 5) and w.shape == (2, 9, 20)
    np.testing.assert_array_equal(variables["dynamic_rnn/dynamicbase/seq_length"], [3, 3])
    for way, steps in enumerate([range(3), range(2, -1, -1)]):
        h = c = np.zeros([2, 5])
        for step in steps:
            new_c, new_h = lstm(x[step], h, c, w[way], b[way])[:2]
            lives = np.array([[step < 3], [step < 2]])
            h, c = np.where(lives, new_h, h), np.where(lives, new_c, c)
            np.testing.assert_allclose(y[way][step], np.where(lives, h, 0), rtol=1e-4, atol=1e-6)


def test_gru_layers() -> None:
    x, attention = made(3, 2, 4), random.rand(3, 2).astype(np.float32)

    def build() -> Any:
        gru = npu_dynamic_rnn.DynamicGRUV2(5, tf.float32)(tf.constant(x))
        augru = npu_dynamic_rnn.DynamicAUGRU(5, tf.float32)(tf.constant(x), tf.constant(attention))
        weights = tf.compat.v1.trainable_variables()
        assert len(gru) == 6 and len(augru) == 7 and len(weights) == 8
        again = operators.dynamic_gru_v2(x, *weights[:4], None, np.zeros([2, 5], np.float32))
        return [gru[0], again[0], augru[0], *tf.gradients([gru[0], augru[0]], weights)]

    (gru, again, augru, *gradients), variables = graph_layers(build)
    np.testing.assert_allclose(gru, again, rtol=1e-6)
    assert augru.shape == (3, 2, 5) and len(gradients) == 8
    limits = [np.abs(value).max() for name, value in variables.items() if "seq_length" not in name]
    assert max(limits) <= 1 / np.sqrt(5)


@pytest.mark.parametrize("cls", ["DynamicRNN", "DynamicGRUV2"])
def test_layers_in_eager_code_and_functions(cls: str) -> None:
    if not tf.executing_eagerly():
        with tf.Graph().as_default(), pytest.raises(ValueError, match="last size must be static"):
            getattr(npu_dynamic_rnn, cls)(5, tf.float32)(tf.compat.v1.placeholder(tf.float32, [3, 2, None]))
        return
    layer = getattr(npu_dynamic_rnn, cls)(5, tf.float32)
    x = tf.constant(made(3, 2, 4))
    plain = layer(x)[0]
    in_function = tf.function(lambda x: layer(x)[0])
    with tf.GradientTape() as tape:
        y = in_function(x)
    np.testing.assert_allclose(y, plain, rtol=1e-6)
    gradients = tape.gradient(y, layer.trainable_variables)
    assert len(gradients) == (2 if cls == "DynamicRNN" else 4) and all(each is not None for each in gradients)


def test_invalid_direction() -> None:
    with tf.Graph().as_default(), pytest.raises(ValueError, match="DynamicRNN: direction='BACK' is not allowed"):
        npu_dynamic_rnn.DynamicRNN(5, tf.float32, direction="BACK")(tf.constant(made(3, 2, 4)))


@pytest.mark.parametrize("form", ["dropout_v3", "dropout_v4"])
def test_dropout_with_bytes(form: str, run: Any) -> None:
    function = getattr(npu_aicore_ops, form)
    x = np.abs(made(40, 50)) + 1
    outcomes = [run(lambda: function(x, 0.75, seed=7)), run(lambda: function(x, 0.75, noise_shape=[None, 1], seed=7))]
    if tf.executing_eagerly():
        outcomes.append(function(x, 0.75, seed=7).numpy())
    for y in outcomes:
        assert 0.5 < (y > 0).mean() < 0.95
        np.testing.assert_allclose(y[y > 0], (x / 0.75)[y > 0], rtol=1e-6)
    assert set((outcomes[1] > 0).sum(1)) <= {0, 50}
    np.testing.assert_array_equal(run(lambda: function(x, 1.0)), x)
    with pytest.raises(ValueError, match="keep_prob=0.0 is not allowed"):
        run(lambda: function(x, 0.0))
    with pytest.raises(ValueError, match="is int32, but must be a float tensor"):
        run(lambda: function([1, 2], 0.5))


def test_prelu_layer() -> None:
    x = made(2, 3, 3, 4)
    layer = npu_vector_ops.PReLU(alpha_initializer=tf.keras.initializers.Constant(0.25), shared_axes=[1, 2])
    model = tf.keras.Sequential([tf.keras.layers.InputLayer(x.shape[1:]), layer])
    np.testing.assert_allclose(model.predict(x), np.where(x > 0, x, 0.25 * x), rtol=1e-6)
    assert [tuple(weight.shape) for weight in model.trainable_weights] == [(1, 1, 4)]
