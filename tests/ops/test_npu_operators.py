"""The operators of npu.gen_npu_ops against NumPy, and their gradients against differences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import npu_shim.npu_device as npu
from npu_shim.ops.npu_only import OnlyOnNPU

ops = npu.gen_npu_ops
random = np.random.RandomState(0)


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def made(*shape: int) -> Any:
    return random.randn(*shape).astype(np.float32)


def lstm(x: Any, h: Any, c: Any, w: Any, b: Any, forget_bias: float) -> tuple[Any, Any]:
    i, j, f, o = np.split(np.concatenate([x, h], 1) @ w + b, 4, axis=1)
    c = c * sigmoid(f + forget_bias) + sigmoid(i) * np.tanh(j)
    return c, np.tanh(c) * sigmoid(o)


def test_basic_lstm_cell(run: Any) -> None:
    x, h, c, w, b = made(2, 3), made(2, 4), made(2, 4), made(7, 16), made(16)
    ct, ht, *gates = run(lambda: list(ops.basic_lstm_cell(x, h, c, w, b)))
    wanted = lstm(x, h, c, w, b, 1.0)
    np.testing.assert_allclose(ct, wanted[0], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(ht, wanted[1], rtol=1e-5, atol=1e-6)
    assert len(gates) == 5 and all(gate.shape == (2, 4) for gate in gates)
    with pytest.raises(ValueError, match="activation='relu' is not supported"):
        ops.basic_lstm_cell(x, h, c, w, b, activation="relu")


@pytest.mark.parametrize("direction", ["UNIDIRECTIONAL", "REDIRECTIONAL"])
@pytest.mark.parametrize("lengths", [None, [5, 2]])
def test_dynamic_rnn(lengths: Any, direction: str, run: Any) -> None:
    x, w, b, h, c = made(5, 2, 3), made(7, 16), made(16), made(1, 2, 4), made(1, 2, 4)
    y, output_h, output_c, *gates = run(
        lambda: list(ops.dynamic_rnn(x, w, b, lengths, h, c, direction=direction, forget_bias=0.5))
    )
    state_h, state_c = h[0], c[0]
    steps = range(5) if direction == "UNIDIRECTIONAL" else range(4, -1, -1)
    for step in steps:
        new_c, new_h = lstm(x[step], state_h, state_c, w, b, 0.5)
        lives = np.array([[step < length] for length in (lengths or [5, 5])])
        state_h, state_c = np.where(lives, new_h, state_h), np.where(lives, new_c, state_c)
        np.testing.assert_allclose(output_h[step], state_h, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(output_c[step], state_c, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(y[step], np.where(lives, state_h, 0), rtol=1e-4, atol=1e-5)
    assert len(gates) == 5
    if lengths is None:
        again = run(lambda: ops.dynamic_rnn_v2(x, w, b, h, c, direction=direction, forget_bias=0.5)[0])
        np.testing.assert_array_equal(again, y)


@pytest.mark.parametrize("gate_order", ["zrh", "rzh"])
@pytest.mark.parametrize("reset_after", [True, False])
@pytest.mark.parametrize("attention", [False, True])
def test_dynamic_gru(attention: bool, reset_after: bool, gate_order: str, run: Any) -> None:
    x, w_x, w_h, b_x, b_h, h = made(4, 2, 3), made(3, 15), made(5, 15), made(15), made(15), made(1, 2, 5)
    a = random.rand(4, 2).astype(np.float32)
    settings: Any = {"gate_order": gate_order, "reset_after": reset_after}
    if attention:
        results = run(lambda: list(ops.dynamic_augru(x, w_x, w_h, a, b_x, b_h, None, h, **settings)))
    else:
        results = run(lambda: list(ops.dynamic_gru_v2(x, w_x, w_h, b_x, b_h, None, h, **settings)))
    assert len(results) == (7 if attention else 6)
    state = h[0]
    for step in range(4):
        from_x = dict(zip(gate_order, np.split(x[step] @ w_x + b_x, 3, 1)))
        from_h = dict(zip(gate_order, np.split(state @ w_h + b_h, 3, 1)))
        z, r = sigmoid(from_x["z"] + from_h["z"]), sigmoid(from_x["r"] + from_h["r"])
        place = gate_order.index("h") * 5
        inner = (r * state) @ w_h[:, place : place + 5] + b_h[place : place + 5]
        n = np.tanh(from_x["h"] + (r * from_h["h"] if reset_after else inner))
        z = z * (1 - a[step][:, None]) if attention else z
        state = (1 - z) * n + z * state
        np.testing.assert_allclose(results[0][step], state, rtol=1e-4, atol=1e-5)
        np.testing.assert_array_equal(results[0][step], results[1][step])
    with pytest.raises(ValueError, match="gate_order='hzr'"):
        ops.dynamic_gru_v2(x, w_x, w_h, b_x, b_h, None, h, gate_order="hzr")
    with pytest.raises(ValueError, match="direction='BOTH'"):
        ops.dynamic_gru_v2(x, w_x, w_h, b_x, b_h, None, h, direction="BOTH")


@pytest.mark.parametrize("use_clip", [False, True])
def test_lars(use_clip: bool, run: Any) -> None:
    w, g = made(3, 4), made(3, 4)
    found = run(lambda: ops.lars_v2(w, g, 0.1, 0.002, use_clip=use_clip))
    rate = 0.001 * np.linalg.norm(w) / (np.linalg.norm(g) + 0.1 * np.linalg.norm(w) + 1e-5)
    rate = min(rate / 0.002, 1.0) if use_clip else rate
    np.testing.assert_allclose(found, rate * (g + 0.1 * w), rtol=1e-5)
    np.testing.assert_array_equal(run(lambda: ops.lars_v2(np.zeros_like(w), g, 0.1, 0.002)), g)


def variables(values: list[Any]) -> list[Any]:
    return [tf.Variable(value) for value in values]


def test_adam_and_lamb() -> None:
    g, v, m, w = made(3), np.abs(made(3)), made(3), made(3)
    new_m, new_v = 0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g * g
    adam = new_m / (np.sqrt(new_v) + 1e-6)
    lamb = new_m / (1 - 0.9**2) / (np.sqrt(new_v / (1 - 0.99**2)) + 1e-6) + 0.5 * w
    ratio = np.linalg.norm(w) / np.linalg.norm(lamb)

    def adam_step(v_: Any, m_: Any, w_: Any) -> Any:
        return ops.adam_apply_one_assign(g, v_, m_, w_, 0.1, 0.9, 0.1, 0.99, 0.01, 1e-6)

    def decay_step(v_: Any, m_: Any, w_: Any) -> Any:
        return ops.adam_apply_one_with_decay_assign(g, v_, m_, w_, 0.1, 0.9, 0.1, 0.99, 0.01, 0.5, 1e-6)

    def lamb_step(v_: Any, m_: Any, w_: Any) -> Any:
        update, _, _ = ops.lamb_apply_optimizer_assign(g, v_, m_, w_, 0.9, 0.1, 0.99, 0.01, 1e-6, 2.0, 1.0, 0.5)
        norms = tf.norm(tf.convert_to_tensor(w)), tf.norm(update)
        return ops.lamb_apply_weight_assign(*norms, 0.1, update, w_)

    for step, new_w in (
        (adam_step, w - 0.1 * adam),
        (decay_step, w - 0.1 * (adam + 0.5 * w)),
        (lamb_step, w - 0.1 * ratio * lamb),
    ):
        for came in in_graph(step, [v, m, w]), eagerly(step, [v, m, w]):
            for found, wanted in zip(came, (new_v, new_m, new_w)):
                np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-6)
    with pytest.raises(TypeError, match="input1=.* is updated in place"):
        ops.adam_apply_one_assign(g, v, m, w, 0.1, 0.9, 0.1, 0.99, 0.01, 1e-6)


def in_graph(step: Any, values: list[Any]) -> list[Any]:
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        held = [tf.compat.v1.Variable(value, use_resource=True) for value in values]
        op = step(*held)
        session.run(tf.compat.v1.global_variables_initializer())
        session.run(op)
        return session.run(held)


def eagerly(step: Any, values: list[Any]) -> list[Any]:
    if not tf.executing_eagerly():
        return []
    held = [tf.Variable(value) for value in values]
    step(*held)
    return [each.numpy() for each in held]


@pytest.mark.parametrize("form", ["", "_v3", "_v4"])
def test_dropout_masks(form: str, run: Any) -> None:
    x = np.abs(made(40, 50)) + 1
    make = getattr(ops, "drop_out_gen_mask" + form)
    apply = getattr(ops, "drop_out_do_mask" + form.replace("4", "3"))

    def both() -> list[Any]:
        mask = make([40, 50], 0.75, 1, 2)
        return [mask, apply(x, mask, 0.75), apply(2 * x, mask, 0.75)]

    mask, y, twice = run(both)
    assert mask.dtype == np.uint8 and mask.shape == ((256,) if not form else (40, 50))
    assert 0.7 < (y > 0).mean() < 0.8
    np.testing.assert_allclose(y[y > 0], (x / 0.75)[y > 0], rtol=1e-6)
    np.testing.assert_array_equal(twice > 0, y > 0)
    if not form:
        np.testing.assert_array_equal(np.unpackbits(mask, bitorder="little")[:2000].reshape(40, 50) > 0, y > 0)
    np.testing.assert_array_equal(run(both)[0], mask)  # the same seeds


def test_small_operators(run: Any) -> None:
    x, weight = made(2, 3, 4), np.array([0.1, 0.2, 0.3], np.float32)
    np.testing.assert_allclose(run(lambda: ops.fast_gelu(x)), x * sigmoid(1.702 * x), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(
        run(lambda: ops.fast_gelu_grad(np.ones_like(x), x)),
        (fast(x + 1e-2) - fast(x - 1e-2)) / 2e-2,
        atol=1e-3,
    )
    np.testing.assert_allclose(run(lambda: ops.gelu(x)), tanh_gelu(x), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(
        run(lambda: ops.p_relu(x, weight)), np.where(x > 0, x, x * weight[None, :, None]), rtol=1e-6
    )
    np.testing.assert_allclose(run(lambda: ops.centralization(x, [1, 2])), x - x.mean((1, 2), keepdims=True), atol=1e-6)
    gamma, beta = made(4), made(4)
    y, mean, variance = run(lambda: list(ops.fused_layer_norm(x, gamma, beta, 2, 2, 1e-5)))
    wanted = (x - x.mean(2, keepdims=True)) / np.sqrt(x.var(2, keepdims=True) + 1e-5) * gamma + beta
    np.testing.assert_allclose(y, wanted, rtol=1e-4, atol=1e-5)
    assert mean.shape == variance.shape == (2, 3, 1)


def fast(x: Any) -> Any:
    return x * sigmoid(1.702 * x)


def tanh_gelu(x: Any) -> Any:
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def test_other_operators() -> None:
    with pytest.raises(OnlyOnNPU, match=r"npu\.gen_npu_ops\.ge_op exists on the NPU only: it runs a graph on the NPU"):
        ops.ge_op()
    with pytest.raises(AttributeError, match="Did you mean lars_v2"):
        ops.lars_v3  # noqa: B018
