"""Names of later versions: the values of formulas and of NumPy, with npu_shim's form and with TensorFlow's own."""

from __future__ import annotations

import random

import numpy as np
import pytest
import tensorflow as tf
from convert_tf2npu.tf_api import forms_in_26

from npu_shim import backports
from npu_shim.backports import keras_ops, keras_random

ops = backports.ops
X = np.linspace(-2, 3, 24).astype(np.float32).reshape(2, 3, 4)
INTEGERS = np.arange(6, dtype=np.int32).reshape(2, 3)
V26 = not hasattr(tf.keras.utils, "set_random_seed")


def test_the_tool_knows_the_names():
    assert set(forms_in_26.BACKPORTS.values()) | set(forms_in_26.MODEL_METHODS) == set(backports.__all__)
    assert forms_in_26.MEMBERS["ops"] | forms_in_26.OF_IMAGES == set(keras_ops.OPS)
    assert forms_in_26.MEMBERS["random"] == set(vars(keras_random.random))
    assert forms_in_26.OF_IMAGES == set(vars(keras_ops.ops.image))


@pytest.mark.parametrize("old", sorted(set(forms_in_26.MOVED.values())))
def test_each_older_spelling_is_a_name_of_tensorflow(old):
    found = tf
    for part in old.split("."):
        found = getattr(found, part)


def adam_w(value, gradients, rate, decay, amsgrad=False):
    """Return a variable after steps of AdamW, in float64."""
    value, m, v, largest = np.float64(value), 0.0, 0.0, 0.0
    for step, gradient in enumerate(gradients, 1):
        value = value - value * rate(step - 1) * decay
        m, v = 0.9 * m + 0.1 * gradient, 0.999 * v + 0.001 * gradient**2
        largest = max(largest, v) if amsgrad else v
        value = value - rate(step - 1) * np.sqrt(1 - 0.999**step) / (1 - 0.9**step) * m / (np.sqrt(largest) + 1e-7)
    return value


@pytest.mark.parametrize("amsgrad", [False, True])
@pytest.mark.parametrize("in_function", [False, True])
@pytest.mark.parametrize("scheduled", [False, True])
def test_adam_w(amsgrad, in_function, scheduled):
    rate = tf.keras.optimizers.schedules.PolynomialDecay(0.1, 4, 0.0) if scheduled else 0.1
    optimizer = backports.AdamW(rate, weight_decay=0.2, amsgrad=amsgrad)
    optimizer.exclude_from_weight_decay(var_names=["bias"])
    kernel, bias = tf.Variable([1.5], name="kernel"), tf.Variable([1.5], name="bias")
    gradients = [0.5, -2.0, 0.25]

    def step(gradient):
        optimizer.apply_gradients([(gradient * [1.0], kernel), (gradient * [1.0], bias)])

    step = tf.function(step) if in_function else step
    for gradient in gradients:
        step(tf.constant(gradient))
    rates = (lambda n: 0.1 * (1 - n / 4)) if scheduled else (lambda n: 0.1)
    np.testing.assert_allclose(kernel.numpy(), [adam_w(1.5, gradients, rates, 0.2, amsgrad)], rtol=2e-6)
    np.testing.assert_allclose(bias.numpy(), [adam_w(1.5, gradients, rates, 0.0, amsgrad)], rtol=2e-6)


def test_adam_w_decays_rows_without_a_gradient():
    table = tf.Variable([[1.0], [2.0]], name="table")
    optimizer = backports.AdamW(0.1, weight_decay=0.5)
    optimizer.apply_gradients([(tf.IndexedSlices(tf.constant([[1.0]]), tf.constant([0]), tf.constant([2, 1])), table)])
    np.testing.assert_allclose(table.numpy(), [[adam_w(1.0, [1.0], lambda n: 0.1, 0.5)], [2.0 * 0.95]], rtol=2e-6)


def test_adam_w_trains_and_is_loaded(tmp_path):
    model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(4,)), backports.UnitNormalization()])
    model.compile(backports.AdamW(1e-2, clipnorm=1.0), "mse")
    model.fit(X[:, 0], X[:, 0, :1], epochs=2, verbose=0)
    model.save(str(tmp_path / "model.keras"))
    optimizer = tf.keras.models.load_model(str(tmp_path / "model.keras")).optimizer
    assert optimizer.get_config()["weight_decay"] == pytest.approx(0.004)
    with pytest.raises(ValueError, match="weight_decay"):
        backports.AdamW(weight_decay=None)
    if V26:
        with pytest.raises(ValueError, match="ExponentialMovingAverage"):
            backports.AdamW(use_ema=True)


@pytest.mark.parametrize(("groups", "axis", "shape"), [(2, -1, (3, 5, 4)), (1, 1, (2, 6, 3, 2)), (-1, -1, (2, 7, 3))])
def test_group_normalization(groups, axis, shape):
    x = np.random.default_rng(1).normal(3, 2, shape)
    layer = backports.GroupNormalization(groups, axis, beta_initializer="ones", gamma_initializer="ones")
    rows = np.moveaxis(x, axis, -1)
    number = rows.shape[-1] if groups == -1 else groups
    grouped = rows.reshape(*rows.shape[:-1], number, -1)
    over = tuple(a for a in range(1, grouped.ndim) if a != grouped.ndim - 2)
    wanted = (grouped - grouped.mean(over, keepdims=True)) / np.sqrt(grouped.var(over, keepdims=True) + 1e-3) + 1
    wanted = np.moveaxis(wanted.reshape(rows.shape), -1, axis)
    np.testing.assert_allclose(layer(x.astype(np.float32)).numpy(), wanted, rtol=2e-5, atol=2e-5)
    again = type(layer).from_config(layer.get_config())
    assert again.axis == axis and again.groups == layer.groups
    inputs = tf.keras.Input((None, *shape[2:]) if axis == -1 else shape[1:])
    assert tuple(backports.GroupNormalization(groups, axis)(inputs).shape) == tuple(inputs.shape)
    with pytest.raises(ValueError):
        backports.GroupNormalization(5)(x[..., :4])


def test_small_layers():
    x = X.astype(np.float64)
    unit = backports.UnitNormalization(axis=[1, 2])(X).numpy()
    np.testing.assert_allclose(unit, x / np.sqrt((x**2).sum((1, 2), keepdims=True)), rtol=1e-6)
    np.testing.assert_array_equal(backports.Identity()(X).numpy(), X)
    kernel = backports.EinsumDense("abc,cd->abd", output_shape=(None, 2), kernel_initializer="ones")(X).numpy()
    np.testing.assert_allclose(kernel, np.repeat(x.sum(-1, keepdims=True), 2, -1), rtol=1e-5)
    np.testing.assert_allclose(backports.silu(tf.constant(X)).numpy(), x / (1 + np.exp(-x)), rtol=1e-5, atol=1e-7)
    assert issubclass(backports.BackupAndRestore, tf.keras.callbacks.Callback)


def test_variables():
    zeros = backports.Variable("zeros", shape=(2, 3), trainable=False, name="own")
    assert zeros.shape == (2, 3) and not zeros.trainable and zeros.name.startswith("own")
    assert tf.as_dtype(backports.Variable([1, 2], dtype="int").dtype).is_integer
    np.testing.assert_array_equal(np.asarray(backports.Variable(X)), X)
    assert tf.as_dtype(backports.Variable(0.5).dtype) == tf.float32
    with pytest.raises(ValueError):
        backports.Variable("zeros")


def test_seeds_make_numbers_the_same():
    drawn = []
    for _ in range(2):
        backports.set_random_seed(7)
        drawn.append((random.random(), np.random.rand(), float(tf.random.uniform([])), tf.keras.layers.Dense(1)(X)))
    assert drawn[0][:3] == drawn[1][:3]
    np.testing.assert_array_equal(drawn[0][3], drawn[1][3])
    random.seed(7)
    np.random.seed(7)
    assert drawn[0][:2] == (random.random(), np.random.rand())
    with pytest.raises(ValueError):
        backports.set_random_seed(-1)


def test_determinism(monkeypatch):
    if V26:
        monkeypatch.delenv("TF_DETERMINISTIC_OPS", raising=False)
        backports.enable_op_determinism()
        import os

        assert os.environ["TF_DETERMINISTIC_OPS"] == "1"
    else:
        assert backports.enable_op_determinism is tf.config.experimental.enable_op_determinism


class Stepping(tf.keras.Sequential):
    """A model with a training step of its own, as later versions have it."""

    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            y_pred = self(x, training=True)
            loss = backports.compute_loss(self, x=x, y=y, y_pred=y_pred)
        self.optimizer.apply_gradients(zip(tape.gradient(loss, self.trainable_variables), self.trainable_variables))
        return backports.compute_metrics(self, x, y, y_pred)


def test_methods_of_models():
    model = Stepping([tf.keras.layers.Dense(1, kernel_initializer="ones", kernel_regularizer="l2", input_shape=(4,))])
    model.compile("sgd", "mse", metrics=["mae"])
    x, y = X[:, 0].astype(np.float64), np.zeros((2, 1), np.float32)
    loss = (x.sum(-1) ** 2).mean() + 4 * 0.01
    found = backports.compute_loss(model, y=tf.constant(y), y_pred=model(X[:, 0]))
    np.testing.assert_allclose(float(found), loss, rtol=1e-6)
    history = model.fit(X[:, 0], y, verbose=0).history
    np.testing.assert_allclose(history["mae"], abs(x.sum(-1)).mean(), rtol=1e-6)
    assert "mae" in {name for each in [backports.get_metrics_result(model)] for name in each}


# Calls of keras.ops and of NumPy with the same arguments.
SAME = [
    ("mean", (INTEGERS,), {"axis": 1}),
    ("sum", (X,), {"axis": (0, 2), "keepdims": True}),
    ("max", (X,), {"axis": -1}),
    ("std", (X,), {"axis": 0}),
    ("var", (X,), {}),
    ("prod", (INTEGERS + 1,), {"axis": 1}),
    ("argmax", (X,), {"axis": 1}),
    ("argmin", (X,), {}),
    ("any", (X > 1,), {"axis": 0}),
    ("all", (X > 1,), {"axis": 0}),
    ("cumsum", (X,), {"axis": 1}),
    ("transpose", (X,), {}),
    ("transpose", (X, (1, 0, 2)), {}),
    ("reshape", (X, (4, -1)), {}),
    ("expand_dims", (X, 1), {}),
    ("squeeze", (X[:1],), {"axis": 0}),
    ("concatenate", ([X, X],), {"axis": 1}),
    ("stack", ([X, X],), {"axis": 1}),
    ("repeat", (X, 2), {"axis": 1}),
    ("tile", (X, (1, 2, 1)), {}),
    ("flip", (X,), {"axis": 1}),
    ("flip", (X,), {}),
    ("roll", (X, 1), {"axis": 1}),
    ("roll", (X, 2), {}),
    ("take", (X, INTEGERS[0]), {"axis": 1}),
    ("take", (X, INTEGERS), {}),
    ("sort", (-X,), {"axis": 1}),
    ("argsort", (-X,), {"axis": 1}),
    ("take_along_axis", (X, np.argsort(-X, 1)), {"axis": 1}),
    ("swapaxes", (X, 0, 2), {}),
    ("triu", (X,), {}),
    ("tril", (X,), {"k": 1}),
    ("isclose", (X, X + 1e-9), {}),
    ("pad", (X, ((0, 0), (1, 0), (0, 2))), {}),
    ("pad", (X, [[1, 0]] * 3), {"constant_values": 3}),
    ("where", (X > 0, X, 0.0), {}),
    ("clip", (X, -1, 1), {}),
    ("arange", (3,), {}),
    ("arange", (1, 2, 0.25), {}),
    ("linspace", (0.0, 1.0, 5), {}),
    ("linspace", (0.0, 1.0, 5), {"endpoint": False}),
    ("eye", (3, 4), {}),
    ("full", ((2, 3), 7.0), {}),
    ("ones_like", (INTEGERS,), {}),
    ("matmul", (X, np.swapaxes(X, 1, 2)), {}),
    ("dot", (X, X[0].T), {}),
    ("tensordot", (X, X), {"axes": 3}),
    ("einsum", ("abc,abd->cd", X, X), {}),
    ("add", (X, 1), {}),
    ("subtract", (1, X), {}),
    ("multiply", (INTEGERS, 0.5), {}),
    ("divide", (INTEGERS, 2), {}),
    ("power", (X, 2), {}),
    ("mod", (X, 2.0), {}),
    ("maximum", (INTEGERS, 2), {}),
    ("equal", (INTEGERS, 2), {}),
    ("greater", (X, 0), {}),
    ("logical_or", (X > 1, X < 0), {}),
    ("round", (X,), {"decimals": 1}),
    ("sqrt", (abs(X),), {}),
    ("exp", (X,), {}),
    ("log1p", (abs(X),), {}),
    ("log2", (abs(X),), {}),
    ("log2", (INTEGERS + 1,), {}),
    ("square", (INTEGERS,), {}),
    ("isnan", (X,), {}),
]


@pytest.mark.parametrize(("name", "given", "named"), SAME, ids=[f"{n} {i}" for i, (n, _, _) in enumerate(SAME)])
@pytest.mark.parametrize("of", [keras_ops.ops, ops], ids=["own", "tensorflow's"])
def test_functions_of_numpy(of, name, given, named):
    found = np.asarray(getattr(of, name)(*given, **named))
    wanted = getattr(np, name)(*given, **named)
    assert found.shape == wanted.shape
    assert found.dtype.kind == wanted.dtype.kind and (found.dtype.kind != "f" or found.dtype == np.float32)
    np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=1e-5)


@pytest.mark.parametrize("of", [keras_ops.ops, ops], ids=["own", "tensorflow's"])
def test_functions_of_networks(of):
    x = X.astype(np.float64)
    softmax = np.exp(x) / np.exp(x).sum(1, keepdims=True)
    cases = {
        "softmax": (of.softmax(X, axis=1), softmax),
        "log_softmax": (of.log_softmax(X, axis=1), np.log(softmax)),
        "logsumexp": (of.logsumexp(X, axis=1), np.log(np.exp(x).sum(1))),
        "relu": (of.nn.relu(X), np.maximum(x, 0)),
        "sigmoid": (of.sigmoid(X), 1 / (1 + np.exp(-x))),
        "leaky_relu": (of.leaky_relu(X), np.where(x > 0, x, 0.2 * x)),
        "gelu": (of.gelu(X), x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))),
        "norm": (of.norm(X, axis=-1), np.sqrt((x**2).sum(-1))),
        "normalize": (of.normalize(X, axis=1), x / np.sqrt((x**2).sum(1, keepdims=True))),
        "moments": (of.moments(X, axes=[0])[1], x.var(0)),
        "one_hot": (of.one_hot([1, 0], 3), np.eye(3)[[1, 0]]),
        "top_k": (of.top_k(X, 2)[0], np.sort(x)[..., :-3:-1]),
        "split": (of.split(X, [1, 3], axis=2)[1], x[..., 1:3]),
        "where": (of.where(X > 2)[2], np.where(x > 2)[2]),
        "segment_sum": (of.segment_sum(X, np.array([1, 1]), 2)[1], x.sum(0)),
        "resize": (of.image.resize(X[..., None], (6, 8), interpolation="nearest")[:, ::2, ::2], X[..., None]),
        "patches": (of.image.extract_patches(X[:, :2, :, None], 2)[0, 0, 1], x[0, :2, 2:].ravel()),
        "crossentropy": (of.binary_crossentropy([1.0, 0.0], [0.8, 0.4]), -np.log([0.8, 0.6])),
        "fft": (of.fft2((X, 0 * X))[1], np.fft.fft2(x).imag),
        "integers": (of.multiply(INTEGERS, X[0, 0, 0]), INTEGERS * x[0, 0, 0]),
        "divide_no_nan": (of.divide_no_nan(X, [0.0, 1.0, 2.0, 4.0]), x * [0, 1, 0.5, 0.25]),
        "number": (of.convert_to_tensor(0.5), 0.5),
        "list": (of.convert_to_tensor([1, 2]), [1, 2]),
        "ragged": (of.convert_to_tensor(tf.ragged.constant([[1], [2, 3]]), ragged=False), [[1, 0], [2, 3]]),
        "sparse": (of.convert_to_tensor(tf.sparse.from_dense([[1, 0]]), dtype="float32", sparse=False), [[1.0, 0.0]]),
    }
    for name, (found, wanted) in cases.items():
        np.testing.assert_allclose(np.asarray(found), wanted, rtol=2e-5, atol=2e-6, err_msg=name)
    assert of.shape(X) == (2, 3, 4) and of.ndim(X) == 3 and int(of.size(X)) == 24 and of.is_tensor(of.ones([1]))
    assert float(of.cond(True, lambda: 1.0, lambda: 2.0)) == 1.0
    assert [int(n) for n in of.while_loop(lambda n: n < 5, lambda n: [n + 2], [0])] == [6]


def test_functions_take_symbolic_tensors():
    inputs = tf.keras.Input((3, 4))
    x = ops.reshape(inputs, (-1, ops.shape(inputs)[1], 2, 2))
    x = ops.concatenate([ops.mean(x, axis=-1), ops.softmax(ops.maximum(ops.sum(x, axis=-2), 0.5))], axis=-1)
    outputs = ops.expand_dims(x, 1) * 2.0
    model = tf.keras.Model(inputs, outputs)
    assert model(X).shape == (2, 1, 3, 4)
    own = keras_ops.ops
    traced = tf.function(lambda x: own.reshape(x, (own.shape(x)[0], -1)), input_signature=[tf.TensorSpec([None, 3, 4])])
    assert traced(X).shape == (2, 12)


def test_random_numbers():
    drawn = keras_random.random
    for name, arguments in [
        ("normal", ((3, 2), 1.0, 2.0)),
        ("truncated_normal", ((3, 2),)),
        ("uniform", ((3, 2), -1.0, 1.0)),
        ("randint", ((3, 2), 0, 9)),
        ("categorical", (X[0], 5)),
        ("dropout", (X, 0.5)),
    ]:
        generators = [backports.random.SeedGenerator(3), drawn.SeedGenerator(3)]
        own = getattr(drawn, name)
        for seed, same in ((3, 3), generators, generators):
            theirs = getattr(backports.random, name)(*arguments, seed=seed)
            np.testing.assert_allclose(theirs.numpy(), own(*arguments, seed=same).numpy(), rtol=1e-6, err_msg=name)
        first, second = (own(*arguments, seed=generators[1]).numpy() for _ in range(2))
        assert (first != second).any()
        assert (own(*arguments).numpy() != own(*arguments).numpy()).any()
    assert sorted(drawn.shuffle(tf.range(9), seed=1).numpy()) == list(range(9))
    kept = drawn.dropout(tf.ones([10000]), 0.25, seed=2).numpy()
    assert set(kept.round(5)) == {0.0, np.float32(1.33333)} and kept.mean() == pytest.approx(1, abs=0.03)
