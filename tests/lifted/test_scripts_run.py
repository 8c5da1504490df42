"""Scripts of TensorFlow 1 compute on every TensorFlow what they computed, once they are lifted with --compat-v1."""

from __future__ import annotations

import json
import math
import os
import pathlib
from typing import Any, Callable, Dict

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from convert_tf2npu.main import main

from tests.distributed import forks

SCRIPTS = pathlib.Path(__file__).resolve().parent / "scripts"
IS_1 = tf.__version__.startswith("1.")
# TensorFlow 2.16 and later have neither Estimator nor the Keras and the layers of TensorFlow 1.
HAS_LAYERS = hasattr(tf, "estimator")
Result = Dict[str, Any]


def by_descent(gradient: Callable[[np.ndarray], np.ndarray], start: np.ndarray, rate: float, steps: int) -> np.ndarray:
    for _ in range(steps):
        start = start - rate * gradient(start)
    return start


def least_squares() -> Result:
    x, y = np.array([1.0, 3.0, 5.0, 2.0]), np.array([2.0, 4.0, 7.0, 1.0])

    def gradient(w: np.ndarray) -> np.ndarray:
        rest = w[0] * x + w[1] - y  # positive everywhere, so that relu changes nothing
        return np.array([2 * (rest * x).mean(), 2 * rest.mean()])

    kernel, bias = by_descent(gradient, np.array([0.5, 0.0]), 0.01, 20)
    loss = ((kernel * x + bias - y) ** 2).mean()
    return {
        "loss": loss,
        "same": loss,
        "step": 20,
        "kernel": [[kernel]],
        "picked": [[1, 5], [-7, -3]],
        "sums": [[6], [10]],
        "place": [1, 0],
        "saved": True,
    }


def softmax(logits: np.ndarray) -> np.ndarray:
    return np.exp(logits) / np.exp(logits).sum(1, keepdims=True)


def logistic() -> Result:
    features = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 1.0], [1.0, 3.0]])
    labels = np.array([0, 1, 1, 0])
    rows = np.hstack([features, np.ones((4, 1))])
    weights = by_descent(lambda w: rows.T @ (softmax(rows @ w) - np.eye(2)[labels]) / 4, np.zeros((3, 2)), 0.5, 10)
    chances = softmax(rows @ weights)
    return {
        "loss": -np.log(chances[range(4), labels]).mean(),
        "accuracy": (chances.argmax(1) == labels).mean(),
        "step": 10,
        "kernel": weights[:2].tolist(),
        "runs": 10,
    }


def contrib_ops() -> Result:
    logits = np.array([[2.0, 1.0, 0.0], [0.0, 1.0, 3.0]])
    wanted = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    loss = -0.5 * np.log((softmax(logits) * wanted).sum(1)).mean()
    squares = ((logits - wanted) ** 2).mean()
    limit = math.sqrt(6 / 500)
    return {
        "batch": [0, 2, 4, 6],
        "loss": loss,
        "squares": squares,
        "total": loss + squares,
        "accuracy": 0.75,
        "mean": logits.mean(),
        "step": 0,
        "limit": pytest.approx(limit, rel=1e-3),
        "variance": pytest.approx(limit**2 / 3, rel=0.02),
        "wider": pytest.approx(3.0, rel=1e-4),
    }


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def cell() -> Result:
    h = c = 0.0  # both units are alike, because all weights are
    for step in ([1.0, 2.0], [3.0, -1.0], [0.5, 0.0]):
        z = 0.1 * (sum(step) + 2 * h)
        c = c * sigmoid(z + 1) + sigmoid(z) * math.tanh(z)
        h = math.tanh(c) * sigmoid(z)
    return {
        "output": [[h, h]],
        "memory": [[c, c]],
        "flat": [[1, 2, 3, -1, 0.5, 0]],
        "penalty": 0.1 * 4 * 9 / 2,
        "kernel": [[3, 3], [3, 3]],
    }


def keras() -> Result:
    x = np.array([1.0, 2.0, 3.0, 4.0])
    y = 3 * x + 1
    weights, losses = np.zeros(2), []
    for _ in range(3):
        rest = weights[0] * x + weights[1] - y
        losses.append((rest**2).mean())
        weights = weights - 0.05 * 2 * np.array([(rest * x).mean(), rest.mean()])
    h = c = 0.0
    for step in (1.0, -2.0, 0.5):
        z = step + h
        gate = [min(max(0.2 * g + 0.5, 0), 1) for g in (z, z + 1, z)]  # TensorFlow 1 takes the hard sigmoid
        c = gate[1] * c + gate[0] * math.tanh(z)
        h = gate[2] * math.tanh(c)
    return {"kernel": [[weights[0]]], "bias": [weights[1]], "losses": losses, "recurrent": [[h]], "in_graph": True}


def momentum() -> Result:
    factor, speed, losses = 1.0, 0.0, []
    for _ in range(5):
        losses.append((2 * factor - 10) ** 2)
        speed = 0.5 * speed + 4 * (2 * factor - 10)
        factor -= 0.01 * speed
    return {"losses": losses}


def eager() -> Result:
    return {"slope": 6.0, "total": 6, "eager": True}


CASES: dict[str, Callable[[], Result]] = {
    "session.py": least_squares,
    "contrib_ops.py": contrib_ops,
    "project/train.py": momentum,
    "eager.py": eager,
}
if HAS_LAYERS:
    CASES.update({"estimator.py": logistic, "contrib_layers.py": cell, "keras_graph.py": keras})


def result_of(script: pathlib.Path, root: pathlib.Path, log: pathlib.Path) -> Result:
    environment = dict(os.environ, PYTHONPATH=str(root), NPU_SHIM_FALLBACK="silent")
    said = forks.run_script(script, log=log, environ=environment, cwd=script.parent)
    return json.loads([line for line in said.splitlines() if line.startswith("{")][-1])


def same(found: Any, wanted: Any, tolerance: float) -> bool:
    if isinstance(wanted, list):
        return (
            isinstance(found, list)
            and len(found) == len(wanted)
            and all(same(f, w, tolerance) for f, w in zip(found, wanted))
        )
    if isinstance(wanted, (int, float, np.floating)):
        return bool(abs(found - wanted) <= tolerance * max(1, abs(wanted)))
    return bool(found == wanted)


@pytest.fixture(scope="module")
def lifted(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    out: pathlib.Path = tmp_path_factory.mktemp("lifted") / "out"
    assert main(["-i", str(SCRIPTS), "-o", str(out), "--compat-v1"]) == 0
    return out


@pytest.mark.parametrize("name", list(CASES))
def test_a_lifted_script_computes_what_it_did(
    name: str, lifted: pathlib.Path, repo_root: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    found, wanted = result_of(lifted / name, repo_root, tmp_path / "lifted.log"), CASES[name]()
    assert set(found) == set(wanted)
    assert not [(key, found[key], wanted[key]) for key in wanted if not same(found[key], wanted[key], 1e-5)]
    if IS_1:
        original = result_of(SCRIPTS / name, repo_root, tmp_path / "original.log")
        different: list[str] = [key for key in original if not same(found[key], original[key], 1e-6)]
        assert not different


def test_no_manual_change_is_needed_in_them(lifted: pathlib.Path, capsys: pytest.CaptureFixture) -> None:
    main(["-i", str(SCRIPTS), "--check", "--compat-v1", "--select", "NPU100,NPU119,NPU260"])
    assert "not converted:" not in capsys.readouterr().out
    assert main(["-i", str(lifted), "--check", "--compat-v1", "--select", "NPU100,NPU119,NPU260"]) == 0
