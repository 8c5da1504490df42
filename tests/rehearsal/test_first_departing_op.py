"""compare() finds the first op that departs, in functions, models and graphs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from npu_shim.rehearsal import compare
from npu_shim.rehearsal.op_comparison import graphs

pytestmark = pytest.mark.smoke
IS_EAGER = tf.executing_eagerly()  # not in TensorFlow 1.15
SHAPES = {"first": [8, 16], "second": [16, 3]}
X = np.random.RandomState(0).randn(4, 8).astype("f4")


def loss(output: Any) -> Any:
    return tf.reduce_mean(tf.square(output))


def network(cast: bool = False, scale: float = 1.0) -> Any:
    """Return a function with variables of its own, made once."""
    made: dict[str, Any] = {}

    def variable(name: str) -> Any:
        if IS_EAGER:
            return made[name]
        return tf.compat.v1.get_variable(name, initializer=value(SHAPES[name]))

    def value(shape: list[int]) -> np.ndarray:
        return np.random.RandomState(sum(shape)).randn(*shape).astype("f4")

    def function(x: Any) -> Any:
        x = tf.nn.relu(tf.matmul(x, variable("first"), name="dense1"))
        if cast:
            x = tf.cast(tf.cast(x, tf.float16), tf.float32)
        x = tf.matmul(x, variable("second"), name="dense2")
        return x if scale == 1 else slope(x)

    @tf.custom_gradient
    def slope(x: Any) -> Any:
        return tf.identity(x), lambda dy: scale * dy

    if IS_EAGER:
        made.update({name: tf.Variable(value(shape), name=name) for name, shape in SHAPES.items()})
    return function


def test_equal_functions_agree_in_all_stages() -> None:
    found = compare(network(), network(), X, loss)
    assert found.first is None and str(found).endswith("All outputs agree.")
    assert {row.stage for row in found.rows} == {"inference", "loss", "gradient", "update"}


def test_a_cast_is_found_at_the_op_after_it() -> None:
    first = compare(network(), network(cast=True), X, loss).first
    assert first is not None and (first.stage, first.op_type) == ("inference", "MatMul")
    assert "dense2" in first.name and 1e-5 < first.difference < 1e-3


def test_a_wrong_gradient_is_found_after_inference_and_loss_agree() -> None:
    found = compare(network(scale=1.0000001), network(scale=2.0), X, loss)
    assert found.first is not None and found.first.stage == "gradient"
    assert not any(row.departs for row in found.rows if row.stage in ("inference", "loss"))


def test_ops_of_one_function_only_are_listed() -> None:
    found = compare(lambda x: tf.nn.relu(x) + 1, lambda x: tf.maximum(x, 0) + 1, X)
    assert found.first is None and found.unmatched


def test_inf_and_shapes_are_departures() -> None:
    first = compare(lambda x: tf.math.log(tf.abs(x)), lambda x: tf.math.log(tf.abs(x) * 0), X).first
    assert first is not None
    found = compare(lambda x: tf.identity(x, "y"), lambda x: tf.identity(x[:2], "y"), X)
    assert found.unmatched


def test_graphs_compare_below_what_is_fed() -> None:
    def graph(factor: float) -> Any:
        with tf.Graph().as_default() as made:
            x = tf.compat.v1.placeholder(tf.float32, [None, 8], "x")
            tf.compat.v1.placeholder(tf.float32, [], "unused")
            w = tf.compat.v1.get_variable("w", [8, 2])
            tf.multiply(tf.matmul(x, w, name="product"), factor, name="scaled")
        return made

    found = compare(graph(1.0), graph(1.1), {"x:0": X})
    assert found.first is not None and found.first.name == "scaled"
    assert [row.name for row in found.rows] == ["product", "scaled"]
    with pytest.raises(ValueError, match="a tf.Graph compares with a tf.Graph"):
        compare(graph(1.0), network(), {"x:0": X})


def test_functions_that_build_graphs_share_their_first_variables() -> None:
    def build(name: str, shape: list[int]) -> Any:
        return lambda x: tf.matmul(x, tf.compat.v1.get_variable(name, shape))

    variables: dict[str, np.ndarray] = {}
    ours = graphs.function_values(build("a", [8, 2]), [X], None, 0.1, variables)
    theirs = graphs.function_values(build("b", [8, 2]), [X], None, 0.1, variables)
    np.testing.assert_array_equal(ours[-1].value, theirs[-1].value)
    with pytest.raises(ValueError, match="the two have different variables"):
        graphs.function_values(build("a", [8, 3]), [X], None, 0.1, variables)


if IS_EAGER:

    def test_keras_models_compare_with_their_weights() -> None:
        def model() -> Any:
            return tf.keras.Sequential([tf.keras.layers.Dense(5, activation="tanh"), tf.keras.layers.Dense(2)])

        one, other = model(), model()
        one(X), other(X)
        other.set_weights(one.get_weights())
        assert compare(one, other, X, loss).first is None
        other.set_weights([*one.get_weights()[:3], one.get_weights()[3] + 0.1])
        first = compare(one, other, X, loss).first
        assert first is not None and first.op_type in ("ReadVariableOp", "BiasAdd", "AddV2", "Add", "Cast")
