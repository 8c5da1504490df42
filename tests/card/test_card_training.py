"""On a card, programs train with the vendor's operators in their graphs; here these compute on the CPU."""

from __future__ import annotations

import importlib
from typing import Any, Callable

import numpy as np
import pytest
import tensorflow as tf
from conftest import FACE

from npu_shim._tensorflow import tf_api
from npu_shim.npu_init import (
    FixedLossScaleManager,
    NPUDistributedOptimizer,
    NPULossScaleOptimizer,
    NPUOptimizer,
    npu_config_proto,
    npu_ops,
    npu_tf_optimizer,
    npu_unary_ops,
)

v1 = tf_api.v1
X = np.linspace(-1, 1, 32, dtype=np.float32).reshape(8, 4)


def _train(wrap: Callable[[Any], Any], steps: int = 10) -> tuple[float, float, set[str]]:
    """Train a regression; return the first loss, the last one, and the types of the graph's operators."""
    with tf.Graph().as_default() as graph:
        v1.set_random_seed(7)
        weights = v1.get_variable("w", [4, 1], initializer=v1.zeros_initializer())
        hidden = npu_unary_ops.gelu(tf.matmul(npu_ops.dropout(tf.constant(X), 0.9, seed=3), weights) + 0.1)
        loss = tf.reduce_mean(tf.square(hidden - 1.0))
        train = wrap(v1.train.GradientDescentOptimizer(0.2)).minimize(loss, v1.train.get_or_create_global_step())
        with v1.Session(config=npu_config_proto()) as session:
            session.run(v1.global_variables_initializer())
            losses = [session.run([loss, train])[0] for _ in range(steps)]
        return losses[0], losses[-1], {node.op for node in graph.as_graph_def().node}


WRAPPERS = {
    "NPUDistributedOptimizer": (NPUDistributedOptimizer, {"HcomAllReduce"}),
    "npu_tf_optimizer": (npu_tf_optimizer, {"HcomAllReduce"}),
    "NPUOptimizer": (lambda opt: NPUOptimizer(opt, is_distributed=True), {"HcomAllReduce"}),
}
if FACE == "npu_bridge":
    WRAPPERS["NPULossScaleOptimizer"] = (
        lambda opt: NPULossScaleOptimizer(opt, FixedLossScaleManager(128.0), is_distributed=True),
        {"HcomAllReduce", "NpuGetFloatStatusV2"},
    )


@pytest.mark.parametrize("wrap, operators", WRAPPERS.values(), ids=WRAPPERS)
def test_a_session_trains_with_the_vendors_operators(monkeypatch, wrap, operators) -> None:
    monkeypatch.setenv("RANK_SIZE", "2")
    monkeypatch.setenv("RANK_ID", "0")
    first, last, found = _train(wrap)
    assert last < first
    assert {"DropOutGenMask", "DropOutDoMask", "Gelu", "GeluGrad", *operators} <= found


def test_a_subclass_of_an_optimizer_uses_the_cards_collectives(monkeypatch) -> None:
    monkeypatch.setenv("RANK_SIZE", "2")
    monkeypatch.setenv("RANK_ID", "0")

    class Mine(NPUDistributedOptimizer):  # type: ignore[misc,valid-type]
        pass

    assert isinstance(NPUDistributedOptimizer(v1.train.GradientDescentOptimizer(0.1)), NPUDistributedOptimizer)
    assert "HcomAllReduce" in _train(Mine)[2]


def test_gelu_and_dropout_compute_the_formulas() -> None:
    with tf.Graph().as_default(), v1.Session() as session:
        x = tf.constant(X)
        y, kept = session.run([npu_unary_ops.gelu(x), npu_ops.dropout(tf.ones([1000]), 0.75, seed=1)])
    expected = X / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (X + 0.044715 * X**3)))
    np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-6)
    assert set(np.unique(kept)) == {np.float32(0), np.float32(1) / np.float32(0.75)}
    assert 680 < np.count_nonzero(kept) < 820  # 750 plus or minus five standard deviations


@pytest.mark.parametrize("module", ["estimator.npu_ops", "hccl.hccl_ops", "estimator.npu.npu_scope"])
def test_graph_mode_uses_the_modules_of_its_package(calls, module) -> None:
    below = "npu_bridge" if FACE == "npu_bridge" else "npu_device.compat.v1"
    assert importlib.import_module(f"{below}.{module}").__name__ == f"{below}.{module}"
