"""Training steps in a loop: what an observed run notes of them, and a program in which one becomes a tf.function."""

from __future__ import annotations

import argparse
import builtins
import collections
import json
import pathlib
import subprocess
import sys
from typing import Any, Callable

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.eager import context

from npu_shim.import_hook import tool
from npu_shim.rehearsal.observing import steps
from npu_shim.rehearsal.observing.observation import CodeInFrame
from npu_shim.rehearsal.observing.step_blocks import note_block
from samples import training

tool.make_importable()

STEP = """def train_step(x, y):
    with tf.GradientTape() as tape:
        loss = {}
    weight.assign_sub(tape.gradient(loss, weight))
    return loss
"""


@pytest.fixture()
def seen(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The answers about a tape, with the functions that watched code calls."""
    from convert_tf2npu.api import Seen, Watched

    monkeypatch.setattr(builtins, Watched.ran, lambda number: None, raising=False)
    monkeypatch.setattr(builtins, Watched.seen, lambda number, value: value, raising=False)
    return Seen(1)


def loop_over(seen: Any, code: str, batches: list[tuple[Any, Any]]) -> None:
    weight = tf.Variable([[1.0], [2.0]])
    for x, y in batches:
        seen.times += 1
        assert note_block(seen, CodeInFrame(code, sys._getframe(), "a tape")) == "a tape"
        weight.assign_add(tf.zeros([2, 1]) * x[0, 0] * y[0, 0])
    steps.trace_steps()


@pytest.mark.smoke
@pytest.mark.parametrize(
    "loss, traces, returns",
    [
        ("tf.reduce_sum(x @ weight - y)", True, ("tensor",)),
        ("tf.reduce_sum(x @ weight - y) * (1.0 if tf.reduce_sum(y) > 0 else 2.0)", True, ("tensor",)),
        ("tf.reduce_sum(x @ weight - y).numpy() * tf.reduce_sum(weight)", False, None),
        ("tf.reduce_sum(x @ weight - missing)", False, None),
        ("tf.reduce_sum(x @ weight - y); loss = loss if y is None else tape", False, None),
    ],
)
def test_a_step_in_a_loop_is_traced_with_what_its_names_were(
    seen: Any, loss: str, traces: bool, returns: tuple[str, ...] | None
) -> None:
    with context.eager_mode():
        batches = [(tf.ones([size, 2]), tf.ones([size, 1])) for size in (4, 4, 3)]
        loop_over(seen, STEP.format(loss), batches)
    assert (seen.only("eager"), seen.only("traces"), seen.all("returns")) == (True, traces, returns)
    assert seen.all("arguments") == ("tensor",) and seen.only("constant") is True
    assert seen.all("shapes") == ("float32[4, 2] float32[4, 1]", "float32[3, 2] float32[3, 1]")


@pytest.mark.smoke
def test_a_step_whose_condition_decides_what_has_a_gradient_counts_as_not_traced(seen: Any) -> None:
    with context.eager_mode():
        batches = [(tf.ones([4, 2]), tf.ones([4, 1]))] * 2
        loop_over(seen, STEP.format("tf.reduce_sum(x @ weight) if tf.reduce_sum(y) > 0 else tf.zeros([])"), batches)
    assert seen.only("traces") is tf.__version__.startswith("1.")  # for which the tool does not ask about steps


@pytest.mark.smoke
@pytest.mark.parametrize(
    "loss, narrowed",
    [("tf.reduce_sum(x @ weight - y)", ("x", "y")), ("tf.reduce_sum(tf.cast(x, 'float32') @ weight)", ())],
)
def test_arrays_of_float64_are_narrowed_only_if_the_step_is_not_traced_with_them(
    seen: Any, loss: str, narrowed: tuple[str, ...]
) -> None:
    with context.eager_mode():
        loop_over(seen, STEP.format(loss), [(np.ones([4, 2]), np.ones([4, 1]))] * 2)
    assert (seen.only("traces"), seen.only("narrowed")) == (True, narrowed)


ARRAY = np.ones([2, 1], "f4")


class Scale:
    """A number that operators read, and an attribute with an array."""

    held: Any = ARRAY

    def __rmul__(self, other: Any) -> Any:
        return other * 2.0


class Holder:
    """Attributes, and a method that reads them."""

    def __init__(self, held: Any) -> None:
        self.held = held

    def read(self) -> Any:
        return self.held


class Computed:
    """An attribute that is computed each time."""

    def __getattr__(self, name: str) -> Any:
        return 2.0


def with_default(held: Any = ARRAY) -> Any:
    return held


@pytest.mark.smoke
@pytest.mark.parametrize(
    "expression, held, changes",
    [
        ("held", ARRAY, True),
        ("held['a']", {"a": ARRAY}, True),
        ("held['a']", {"a": 2.0}, True),
        ("held[0]", [2.0], True),
        ("held[0]", (2.0,), False),
        ("held[0]", [tf.constant([[1.0], [2.0]])], False),
        ("held()", lambda: ARRAY, True),
        ("held()", with_default, True),
        ("held", Scale(), True),
        ("held.read()", Holder(ARRAY), True),
        ("held.read()", Holder(2.0), False),
        ("held.held", Holder([2.0]), True),
        ("held.held", argparse.Namespace(held=2.0), False),
        ("held.held", Computed(), True),
        ("held[0]", collections.deque([2.0]), True),
        ("held()", lambda: tf.constant([[1.0], [2.0]]), False),
    ],
)
def test_values_that_a_function_would_keep_and_code_may_change_are_noted(
    seen: Any, expression: str, held: Any, changes: bool
) -> None:
    code = STEP.format(f"tf.reduce_sum(x * {expression})").replace(
        "weight.assign_sub(tape.gradient(loss, weight))", "y"
    )
    with context.eager_mode():
        for _ in range(2):
            x, y = tf.ones([2, 1]), tf.ones([4, 1])
            seen.times += 1
            note_block(seen, CodeInFrame(code, sys._getframe(), (x, y, held)))
        steps.trace_steps()
    assert (seen.only("traces"), seen.all("arguments")) == (True, ("tensor", *["other"] * changes))


@pytest.mark.smoke
def test_all_names_of_lists_that_a_step_reads_are_noted(seen: Any) -> None:
    code = STEP.format("tf.reduce_sum(x * held[0] * holder.other[0])").replace(
        "weight.assign_sub(tape.gradient(loss, weight))", "y"
    )
    with context.eager_mode():
        for _ in range(2):
            x, y, held = tf.ones([2, 1]), tf.ones([4, 1]), [tf.constant(2.0)]
            holder = argparse.Namespace(other=held)
            seen.times += 1
            note_block(seen, CodeInFrame(code, sys._getframe(), (x, y, holder)))
        steps.trace_steps()
    assert (seen.only("arguments"), seen.only("lists")) == ("tensor", ("held", "other"))


@pytest.mark.smoke
def test_a_layer_with_a_function_of_the_script_and_the_settings_of_others_are_noted(seen: Any) -> None:
    own = tf.keras.layers.Dense(1, activation=lambda x: x * 2)
    steps.note_callee(seen, own)
    assert seen.all("is") == ("other",)
    steps.note_callee(seen, tf.keras.layers.GaussianNoise(0.5))
    assert seen.all("is") == ("other", "library") and "stddev" in (seen.all("reads") or [()])[-1]


@pytest.mark.smoke
@pytest.mark.parametrize("returned, kind", [("3.0", "number"), ("None", "none"), ("[loss]", "tensor")])
def test_results_that_are_no_tensors_are_noted(seen: Any, returned: str, kind: str) -> None:
    code = STEP.format("tf.reduce_sum(x @ weight - y)").replace("return loss", f"return {returned}")
    with context.eager_mode():
        loop_over(seen, code, [(tf.ones([4, 2]), tf.ones([4, 1]))] * 2)
    assert (seen.only("traces"), seen.only("returns")) == (True, kind)


@pytest.mark.smoke
@pytest.mark.parametrize("number", [lambda step: step, lambda step: 1])
def test_numbers_of_python_are_noted_if_they_change(seen: Any, number: Callable[[int], int]) -> None:
    code = STEP.format("tf.reduce_sum(x @ weight - y)")
    with context.eager_mode():
        for step in range(2):
            x, y = tf.ones([4, 2]), number(step)
            note_block(seen, CodeInFrame(code, sys._getframe(), x))
            assert seen.all("constant") == ((True,) if y == number(0) else (True, False))
            assert seen.only("numbers") == ("y",)
    assert seen.all("arguments") == ("tensor", "number")


@pytest.mark.smoke
def test_nothing_is_noted_of_a_step_that_builds_a_graph(seen: Any) -> None:
    with tf.Graph().as_default():
        assert note_block(seen, CodeInFrame("", sys._getframe(), "a tape")) == "a tape"
    assert (seen.only("eager"), seen.all("arguments")) == (False, None)


SCRIPT = """import numpy as np
import tensorflow as tf

tf.random.set_seed(3)
model = tf.keras.Sequential([
    tf.keras.layers.Dense(8, activation="relu", input_shape=(4,)),
    tf.keras.layers.Dropout(0.4),
    tf.keras.layers.Dense(1),
])
optimizer = tf.keras.optimizers.SGD(0.05)
rows = np.random.RandomState(0).rand(32, 4).astype("float32")
dataset = tf.data.Dataset.from_tensor_slices((rows, rows.sum(1, keepdims=True))).batch(8)
losses = []
for epoch in range(2):
    for step, (x, y) in enumerate(dataset):
        noise = tf.random.uniform([8, 4], 0.0, 0.01)
        with tf.GradientTape() as tape:
            out = model(x + noise, training=True) + tf.random.normal([8, 1], stddev=0.01)
            loss = tf.reduce_mean(tf.square(out - y))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        losses.append(loss.numpy())
print(losses)
"""


@pytest.mark.once
def test_a_step_with_random_numbers_is_moved_into_a_function_and_agrees(tmp_path: pathlib.Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    command = [sys.executable, "-m", "npu_shim", "migrate", "-q", "-o", "out", "train.py"]
    done = subprocess.run(command, cwd=str(tmp_path), env=training.environment(), capture_output=True, text=True)
    assert done.returncode == 0 and "The two scripts agree." in done.stdout, done.stdout + done.stderr
    text = (tmp_path / "out" / "train.py").read_text()
    assert "@tf.function\ndef train_step(x, noise, y):\n" in text and "        loss = train_step(x, noise, y)\n" in text
    report = json.loads((tmp_path / "out_report" / "migrate.json").read_text())
    assert [each["basis"] for each in report["rewrites"] if each["code"] == "NPU247"] == ["facts"]
