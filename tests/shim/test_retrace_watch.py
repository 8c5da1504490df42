"""Traces of tf.functions that watch_shapes() reports."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import npu_shim
from npu_shim.data import watch_shapes


@pytest.fixture
def watch() -> Any:
    yield watch_shapes(summary_at_exit=False)
    npu_shim.uninstall()


def traces(watch: Any) -> dict[str, dict[str, int]]:
    """Return the traces by the name of the function."""
    return {name.partition(" (")[0]: counts for name, counts in watch.changes()}


if tf.__version__ >= "2":

    def test_shapes_and_python_values_are_traced_again(watch: Any, log: Any) -> None:
        @tf.function
        def step(x: Any, rate: Any) -> Any:
            return x * rate

        line = inspect.getsourcelines(step.python_function)[1]
        for x, rate in (tf.ones([2]), 1), (tf.ones([2]), 1), (tf.ones([3]), 1), (tf.ones([2]), 2):
            step(x, rate)
        assert traces(watch) == {"step": {"float32 [2], 1": 1, "float32 [3], 1": 1, "float32 [2], 2": 1}}
        (said,) = log()
        assert said.startswith(f"npu_shim: {__file__}:{line}: step is traced again, for (float32 [3], 1) after")
        assert "step (" in watch.summary() and "3 traces: (float32 [2], 1) 1x; (float32 [3], 1) 1x" in watch.summary()

    def test_a_function_that_is_created_anew_is_traced_again(watch: Any) -> None:
        for number in range(3):
            tf.function(lambda x: x + number)(tf.constant(1.0))
        assert traces(watch) == {"<lambda>": {"float32 []": 3}}

    def test_a_function_traced_once_is_not_reported(watch: Any, log: Any) -> None:
        variable: list[Any] = []

        @tf.function
        def inner(x: Any) -> Any:
            return x + 1

        @tf.function
        def outer(x: Any) -> Any:
            if not variable:
                variable.append(tf.Variable(1.0))  # TensorFlow traces such a function twice
            return inner(x) + inner(tf.reshape(x, [1, -1]))

        for _ in range(3):
            outer(tf.ones([2]))
        assert watch.changes() == [] and watch.summary() == "" and log() == []

    def test_batches_of_unknown_size_in_fit(watch: Any) -> None:
        x = np.ones([10, 3], np.float32)
        model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
        model.compile("sgd", "mse")
        data = tf.data.Dataset.from_tensor_slices((x, x[:, :1]))
        model.fit(data.batch(5, drop_remainder=True), verbose=0)
        assert watch.changes() == []
        model.fit(data.batch(4), verbose=0)
        (found,) = watch.changes()
        assert found[0].startswith("Keras ") and "float32 [None, 3], float32 [None, 1]" in found[1]

    def test_uninstall_restores_functions() -> None:
        kind = type(tf.function(lambda: None))
        before = kind.__call__
        watch_shapes(summary_at_exit=False)
        assert kind.__call__ is not before
        npu_shim.uninstall()
        assert kind.__call__ is before
