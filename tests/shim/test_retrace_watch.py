"""Traces of tf.functions that watch_shapes() reports."""

from __future__ import annotations

import inspect
import pathlib
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

    def test_a_function_without_a_module_is_watched(watch: Any) -> None:
        names: dict[str, Any] = {"tf": tf}
        exec("def double(x):\n    return 2 * x", names)
        assert names["double"].__module__ is None
        double = tf.function(names["double"])
        assert [float(tf.reduce_sum(double(tf.ones([rows])))) for rows in (1, 2)] == [2, 4]
        assert traces(watch) == {"double": {"float32 [1]": 1, "float32 [2]": 1}}

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

    def model() -> Any:
        model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
        model.compile("sgd", "mse")
        return model

    def line_of(text: str) -> int:
        """Return the number of the line of this file that contains a comment."""
        with open(__file__, encoding="utf-8") as file:
            return next(number for number, line in enumerate(file, 1) if line.rstrip().endswith(f"# {text}"))

    def test_batches_of_fit_are_counted_by_the_line_of_the_call(watch: Any, log: Any) -> None:
        x = np.ones([10, 3], np.float32)
        data = tf.data.Dataset.from_tensor_slices((x, x[:, :1]))
        trained = model()
        trained.fit(data.batch(5, drop_remainder=True), epochs=2, verbose=0)
        assert watch.changes() == [] and log() == []
        trained.fit(data.batch(4), epochs=2, validation_data=data.batch(3), verbose=0)  # fit of batches of 4
        whole, last = "float32 [4, 3], float32 [4, 1]", "float32 [2, 3], float32 [2, 1]"
        source = f"fit ({__file__}:{line_of('fit of batches of 4')})"
        assert watch.changes() == [(source, {whole: 4, last: 2})]
        (said,) = log()
        assert said.startswith(
            f"npu_shim: {source} trains on a batch of ({last}) after ({whole}), and the NPU compiles"
        )
        assert f"  {source}: 6 batches: ({whole}) 4x; ({last}) 2x" in watch.summary()
        trained.evaluate(data.batch(4), verbose=0)
        trained.predict(x, batch_size=4, verbose=0)
        assert len(watch.changes()) == 1

    def test_batches_of_arrays_and_generators_are_counted(watch: Any) -> None:
        x = np.ones([10, 3], np.float32)
        before = model()
        before.fit(x, x[:, :1], batch_size=4, shuffle=False, verbose=0)
        before.fit(({"a": x[:size]}["a"], x[:size, :1]) for size in (4, 4, 3))  # a generator
        found = [sorted(counts.values()) for _, counts in watch.changes()]
        assert found == [[1, 2], [1, 2]]

    def test_train_on_batch_is_counted(watch: Any) -> None:
        x = np.ones([10, 3], np.float32)
        trained = model()
        for size in 4, 4, 3:
            trained.train_on_batch(x[:size], x[:size, :1])
        (found,) = watch.changes()
        assert found[0].startswith(f"train_on_batch ({__file__}:") and sorted(found[1].values()) == [1, 2]

    def test_training_is_the_same_under_the_watch() -> None:
        x = np.random.RandomState(0).rand(10, 3).astype(np.float32)

        def weights() -> Any:
            tf.keras.utils.set_random_seed(1) if hasattr(tf.keras.utils, "set_random_seed") else tf.random.set_seed(1)
            trained = model()
            trained.build([None, 3])
            trained.set_weights([np.ones([3, 1], np.float32), np.zeros([1], np.float32)])
            trained.fit(x, x[:, :1], batch_size=4, shuffle=False, epochs=2, verbose=0)
            return trained.get_weights()

        plain = weights()
        watch_shapes(summary_at_exit=False)
        try:
            np.testing.assert_array_equal(weights()[0], plain[0])
        finally:
            npu_shim.uninstall()

    def test_uninstall_restores_functions() -> None:
        kind = type(tf.function(lambda: None))
        before = kind.__call__
        watch_shapes(summary_at_exit=False)
        assert kind.__call__ is not before
        npu_shim.uninstall()
        assert kind.__call__ is before

    SCRIPT = """import numpy as np
import tensorflow as tf

@tf.function
def step(x):
    return x + 1

for size in 2, 3:
    step(tf.ones([size]))
x = np.ones([10, 3], np.float32)
model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.fit(x, x[:, :1], batch_size=4, verbose=0)
"""

    @pytest.mark.once
    def test_npu_shim_run_reports_traces_and_batches(tmp_path: pathlib.Path, python: Any) -> None:
        script = tmp_path / "train.py"
        script.write_text(SCRIPT)
        done = python(tmp_path, "-m", "npu_shim", "run", str(script))
        text = done.stdout
        assert done.returncode == 0, text
        assert f"step ({script}:4): 2 traces: (float32 [2]) 1x; (float32 [3]) 1x" in text
        assert f"fit ({script}:13): 3 batches: (float32 [4, 3], float32 [4, 1]) 2x; (float32 [2, 3]" in text
