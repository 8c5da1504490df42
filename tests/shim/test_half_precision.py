"""half_precision in graphs, eager code and tf.functions: values, gradients, overflow, and the loss scale."""

from __future__ import annotations

import json
import pathlib
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import npu_shim.npu_device as npu
import npu_shim.rehearsal
from npu_shim.estimator.npu import npu_plugin
from npu_shim.npu_init import ExponentialUpdateLossScaleManager, NPULossScaleOptimizer

v1 = tf.compat.v1
IS_TF2 = tf.__version__ >= "2"
RANDOM = np.random.RandomState(0)
X, W = RANDOM.randn(5, 4).astype("f4"), RANDOM.randn(4, 3).astype("f4")


def half(x: Any, dtype: Any = np.float16) -> Any:
    """Round to 16 bits, as NumPy does."""
    with np.errstate(over="ignore"):
        return np.asarray(x, np.float32).astype(dtype).astype(np.float32)


def expected(dtype: Any) -> tuple[Any, Any, Any]:
    """Return output, loss and gradient of the network below, each op rounded."""

    def r(x: Any) -> Any:
        return half(x, dtype)

    y = r(np.tanh(r(r(X) @ r(W))))
    loss = r(y * y).mean()  # Mean is on the list that keeps float32
    # the gradient of Mean is no number in 16 bits; Square's 2 y dy and TanhGrad follow y
    dy = r(r(np.full((5, 3), 1 / 15, "f4")) * r(y * 2))
    return y, loss, r(r(X).T @ r(dy * (1 - y * y)))


def network(x: Any, w: Any) -> tuple[Any, Any]:
    y = tf.tanh(tf.matmul(x, w))
    return y, tf.reduce_mean(tf.square(y))


def in_a_session() -> list[Any]:
    with tf.Graph().as_default(), v1.Session() as session:
        w = v1.get_variable("w", initializer=W)
        y, loss = network(tf.constant(X), w)
        values = [y, loss, tf.gradients(loss, [w])[0]]
        session.run(v1.global_variables_initializer())
        return list(session.run(values))


def in_eager_code(compiled: bool) -> list[Any]:
    if not tf.executing_eagerly():
        v1.enable_eager_execution()
    w = tf.Variable(W)

    def step() -> Any:
        with tf.GradientTape() as tape:
            y, loss = network(tf.constant(X), w)
        return y, loss, tape.gradient(loss, w)

    return [each.numpy() for each in (tf.function(step) if compiled else step)()]


RUNS = {"session": in_a_session}
if IS_TF2:
    RUNS.update(eager=lambda: in_eager_code(False), function=lambda: in_eager_code(True))


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_values_and_gradients_are_those_of_rounded_ops(run: str, dtype: str) -> None:
    with npu_shim.rehearsal.half_precision(dtype) as rehearsal:
        y, loss, gradient = RUNS[run]()
    want_y, want_loss, want_gradient = expected(tf.as_dtype(dtype).as_numpy_dtype)
    epsilon = 2.0**-10 if dtype == "float16" else 2.0**-7
    assert np.array_equal(y, half(y, tf.as_dtype(dtype).as_numpy_dtype)), "the output is rounded"
    np.testing.assert_allclose(y, want_y, rtol=epsilon)
    np.testing.assert_allclose(loss, want_loss, rtol=1e-6 if dtype == "float16" else epsilon)
    np.testing.assert_allclose(gradient, want_gradient, rtol=8 * epsilon, atol=epsilon / 8)
    products = 3 if run == "session" else 2  # tf.gradients also makes the gradient of the input
    assert rehearsal.rounded["MatMul"] == products
    assert rehearsal.rounded["Tanh"] == 1 and "Mean" not in rehearsal.rounded


def test_an_op_in_16_bits_updates_a_variable_by_reference() -> None:
    """As the moving averages of batch normalization do in TensorFlow 1."""
    arguments = dict(precision_mode="force_fp16")
    with npu_shim.rehearsal.half_precision("float16", **arguments), tf.Graph().as_default(), v1.Session() as session:
        w = v1.get_variable("w", initializer=W, use_resource=False)
        added = v1.assign_add(w, tf.square(w))
        session.run(v1.global_variables_initializer())
        np.testing.assert_allclose(session.run(added), W + W * W, rtol=2e-3, atol=2e-3)


def test_numbers_are_float32_again_after_the_rehearsal() -> None:
    with npu_shim.rehearsal.half_precision():
        rounded = in_a_session()[0]
    exact = in_a_session()[0]
    np.testing.assert_allclose(exact, np.tanh(X @ W), rtol=1e-5)
    assert not np.array_equal(rounded, exact)


@pytest.mark.parametrize(
    "mode, counts",
    [
        ("allow_mix_precision", {"MatMul": 3, "Tanh": 1}),
        ("allow_fp32_to_fp16", {"MatMul": 3, "Tanh": 0}),
        ("force_fp16", {"MatMul": 3, "Tanh": 1, "Mean": 1}),
        ("cube_fp16in_fp32out", {"MatMul": 0}),
    ],
)
def test_the_mode_decides_which_ops_are_rounded(mode: str, counts: dict[str, int]) -> None:
    with npu_shim.rehearsal.half_precision(precision_mode=mode) as rehearsal:
        y = in_a_session()[0]
    assert {name: rehearsal.rounded.get(name, 0) for name in counts} == counts
    if mode == "cube_fp16in_fp32out":
        np.testing.assert_allclose(y, np.tanh(half(X) @ half(W)), rtol=1e-5)


def test_a_mixlist_moves_ops(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "mixlist.json"
    path.write_text(json.dumps({"black-list": {"to-add": ["Tanh"]}}))
    with npu_shim.rehearsal.half_precision(mixlist=str(path)) as rehearsal:
        in_a_session()
    assert rehearsal.rounded["MatMul"] == 3 and "Tanh" not in rehearsal.rounded


def exponential(watch_folder: pathlib.Path, saturate: bool) -> Any:
    """exp(14) is more than float16 holds, and float32 holds it."""
    with npu_shim.rehearsal.half_precision(saturate=saturate) as rehearsal:
        with npu_shim.rehearsal.watch_numerics(str(watch_folder)) as watch, tf.Graph().as_default():
            w = v1.get_variable("w", initializer=np.full((1, 1), 14, "f4"))
            y = tf.exp(tf.matmul(tf.ones([2, 1]), w))
            train = v1.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_mean(y))
            with v1.Session() as session:
                session.run(v1.global_variables_initializer())
                value = session.run([y, train])[0]
    return value, watch, rehearsal


def test_an_exponential_that_overflows_is_infinity_and_named(tmp_path: pathlib.Path) -> None:
    value, watch, _ = exponential(tmp_path, False)
    assert np.isinf(value).all()
    assert watch.first.op_type == "Exp" and watch.first.inputs == ("MatMul:0 in [14, 14]",)


def test_with_saturation_it_is_the_largest_number(tmp_path: pathlib.Path) -> None:
    value, watch, rehearsal = exponential(tmp_path, True)
    assert (value == 65504).all() and watch.first is None
    assert rehearsal.saturated["Exp Exp"] == 1


def scales(saturate: bool) -> list[float]:
    """Return the loss scale after each step. The scaled gradients overflow at first."""
    with npu_shim.rehearsal.half_precision(saturate=saturate), tf.Graph().as_default():
        w = v1.get_variable("w", initializer=np.ones((4, 1), "f4"))
        loss = tf.reduce_sum(tf.square(tf.matmul(tf.ones([2, 4]), w)))
        manager = ExponentialUpdateLossScaleManager(2.0**16, 1000, decr_every_n_nan_or_inf=1, decr_ratio=0.5)
        train = NPULossScaleOptimizer(v1.train.GradientDescentOptimizer(1e-3), manager).minimize(loss)
        found = []
        with v1.Session() as session:
            session.run(v1.global_variables_initializer())
            for _ in range(6):
                before = session.run(w)
                session.run(train)
                found.append(float(session.run(manager.get_loss_scale())))
                is_skipped = np.array_equal(before, session.run(w))
                assert is_skipped == (found[-1] < (found[-2] if len(found) > 1 else 2.0**16))
    return found


@pytest.mark.parametrize("saturate", [False, True], ids=["infinity", "saturation"])
def test_an_overflow_skips_the_step_and_halves_the_scale(saturate: bool) -> None:
    found = scales(saturate)
    assert found[0] == 2.0**15 and found[-1] == found[-2] < 2.0**14


def test_set_device_sat_mode_saturates_in_a_rehearsal() -> None:
    assert npu_plugin.is_inf_nan_enabled()
    with npu_shim.rehearsal.half_precision():
        npu_plugin.set_device_sat_mode(0)
        assert not npu_plugin.is_inf_nan_enabled()
        npu.set_device_sat_mode(1)
        assert npu_plugin.is_inf_nan_enabled()
    with pytest.raises(ValueError, match=r"set_device_sat_mode\(0\) is not possible on the CPU.*npu-shim run --half"):
        npu_plugin.set_device_sat_mode(0)


if IS_TF2:

    def test_the_flag_skips_the_step_of_a_keras_optimizer() -> None:
        if not tf.executing_eagerly():
            v1.enable_eager_execution()
        w = tf.Variable(np.ones((4, 1), "f4"))
        with npu_shim.rehearsal.half_precision(saturate=True):
            optimizer = npu.train.optimizer.NpuLossScaleOptimizer(tf.keras.optimizers.SGD(0.1))
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(tf.matmul(tf.fill([2, 4], 6e4), w))
            optimizer.apply_gradients([(tape.gradient(loss, w), w)])
        assert np.array_equal(w.numpy(), np.ones((4, 1))) and not optimizer.last_step_finite.numpy()


@pytest.mark.parametrize(
    "arguments, text",
    [
        ({"dtype": "float8"}, "dtype='float8' is not allowed: it must be one of float16, bfloat16."),
        ({"precision_mode": "fast"}, "precision_mode='fast' is not allowed: it must be one of allow_mix_precision, "),
        ({"mixlist": "missing.json"}, "missing.json"),
    ],
)
def test_wrong_arguments_are_errors(arguments: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        npu_shim.rehearsal.half_precision(**arguments)
