"""watch_numerics in graphs, eager code, tf.functions and fit: the op it names, the history, and that it changes nothing."""

from __future__ import annotations

import glob
import pathlib
import re
from typing import Any, Callable

import numpy as np
import pytest
import tensorflow as tf

import npu_shim.rehearsal
from npu_shim.npu_init import ExponentialUpdateLossScaleManager, NPULossScaleOptimizer
from npu_shim.rehearsal.numerics.ops import contents_text, is_finite

v1 = tf.compat.v1
IS_TF2 = tf.__version__ >= "2"
THIS_FILE = "test_numerics.py:"
Watch = Any


def scalars(folder: pathlib.Path) -> dict[str, list[tuple[int, float]]]:
    """Return step and value of each tag in the event file of a folder."""
    found: dict[str, list[tuple[int, float]]] = {}
    for event in v1.train.summary_iterator(glob.glob(f"{folder}/events*")[0]):
        for value in event.summary.value:
            found.setdefault(value.tag, []).append((event.step, value.simple_value))
    return found


def train_in_a_session(
    folder: pathlib.Path, make: Callable[[Any, Any], Any], optimizer: Any, feeds: list[Any]
) -> Watch:
    """Run a step for each fed array, watched. ``make`` returns the loss of the input and a variable."""
    with npu_shim.rehearsal.watch_numerics(str(folder)) as watch, tf.Graph().as_default():
        x = v1.placeholder(tf.float32, [None, 4], name="x")
        weights = v1.get_variable("layer/weights", [4, 3], initializer=v1.ones_initializer())
        loss = make(x, weights)
        train = (optimizer() if callable(optimizer) else optimizer).minimize(loss)
        with v1.Session() as session:
            session.run(v1.global_variables_initializer())
            for array in feeds:
                session.run(train, {x: array})
    return watch


def test_the_log_of_zero_is_named_with_its_line_and_inputs(tmp_path: pathlib.Path) -> None:
    feeds = [np.full((2, 4), value, "f4") for value in (1, 1, -1)]
    watch = train_in_a_session(
        tmp_path,
        lambda x, w: tf.reduce_mean(v1.log(tf.nn.relu(tf.matmul(x, w)))),
        lambda: v1.train.GradientDescentOptimizer(1e-3),
        feeds,
    )
    assert watch.first.op_type == "Log" and THIS_FILE in watch.first.lines[0]
    assert watch.first.outputs == ("6 -Inf of 6",) and watch.first.inputs == ("Relu:0 in [0, 0]",)
    assert [step.is_bad for step in watch.steps] == [False, False, True]
    assert watch.problems[0] == "1 of 3 steps have Inf or NaN in the loss or the gradients."
    page = (tmp_path / "numerics.html").read_text()
    assert "Gradient norms by variable" in page and "Gradient norms by layer" in page
    assert "Log" in page and "://" not in page and ">step 3<" in page
    found = scalars(tmp_path)
    assert [step for step, _ in found["numerics/loss"]] == [1, 2, 3]
    assert found["numerics/gradient_norm/layer/weights"][0][1] == pytest.approx(watch.steps[0].norm)
    assert "numerics/layer_norm/layer" in found


def test_an_op_in_a_loop_is_named(tmp_path: pathlib.Path) -> None:
    def loss_of(x: Any, weights: Any) -> Any:
        y = tf.reduce_sum(tf.matmul(x, weights))
        _, y = v1.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, tf.exp(y)), [0, y])
        return y

    watch = train_in_a_session(
        tmp_path, loss_of, lambda: v1.train.GradientDescentOptimizer(0.1), [np.ones((2, 4), "f4")]
    )
    assert watch.first.op_type == "Exp" and "+Inf" in watch.first.outputs[0]


def test_exploding_gradients_are_a_problem_with_the_variable(tmp_path: pathlib.Path) -> None:
    feeds = [np.full((2, 4), 1e4 if number == 8 else 1, "f4") for number in range(10)]
    watch = train_in_a_session(
        tmp_path,
        lambda x, w: tf.reduce_mean(tf.square(tf.matmul(x, w) - 1)),
        lambda: v1.train.GradientDescentOptimizer(1e-9),
        feeds,
    )
    (problem,) = watch.problems
    assert problem.startswith("The gradients explode: in step 9") and "'layer/weights'" in problem
    assert re.search(r", [1-9]\.\de\+\d\d times the median", problem)


def test_an_input_that_is_not_finite_is_reported_as_such(tmp_path: pathlib.Path) -> None:
    feeds = [np.full((2, 4), value, "f4") for value in (1, np.nan)]
    watch = train_in_a_session(
        tmp_path, lambda x, w: tf.reduce_mean(tf.matmul(x, w)), lambda: v1.train.GradientDescentOptimizer(0.1), feeds
    )
    assert watch.first.op_type == "MatMul" and watch.first.inputs[0] == "x:0 8 NaN of 8"
    cells = re.findall(r"<t[dh][^>]*>([^<]*)</t[dh]>", (tmp_path / "numerics.html").read_text())
    norms = cells[cells.index("layer/weights") + 1 :][:4]  # of the first step, their median, the largest, of the last
    assert norms == [f"{watch.steps[0].norm:.4g}"] * 3 + ["nan"]
    assert watch.problems[1].endswith(
        "Its input has them already: look at what is fed, and at the update of the step before."
    )


def test_the_op_of_an_update_is_named_that_gives_variables_inf(tmp_path: pathlib.Path) -> None:
    class Squares(v1.train.Optimizer):  # its update overflows before the loss does
        def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: Any = None) -> Any:
            return tf.group(*[v1.assign_add(v, tf.square(tf.square(g))) for g, v in grads_and_vars])

    feeds = [np.full((2, 4), value, "f4") for value in (1e-3, 1e12, 1)]
    watch = train_in_a_session(
        tmp_path, lambda x, w: tf.reduce_mean(tf.matmul(x, w)), lambda: Squares(False, "squares"), feeds
    )
    assert [step.is_bad for step in watch.steps] == [False, False, True]
    assert watch.first == watch.steps[2].ops[0]
    assert watch.first.op_type == "Square" and not watch.first.has_bad_input


def test_a_loss_scale_that_adapts_is_no_problem_and_one_that_does_not_recover_is(tmp_path: pathlib.Path) -> None:
    def half(x: Any, weights: Any) -> Any:
        y = tf.matmul(tf.cast(x, tf.float16), tf.cast(weights, tf.float16))
        return tf.reduce_mean(tf.square(tf.cast(y, tf.float32)))

    def optimizer() -> Any:
        manager = ExponentialUpdateLossScaleManager(2.0**20, 1000, decr_every_n_nan_or_inf=1, decr_ratio=0.5)
        return NPULossScaleOptimizer(v1.train.GradientDescentOptimizer(1e-3), manager)

    watch = train_in_a_session(tmp_path / "adapts", half, optimizer, [np.ones((2, 4), "f4")] * 12)
    assert watch.problems == [] and watch.first is not None
    scales = [step.scale for step in watch.steps]
    skipped = sum(step.skipped for step in watch.steps)
    assert 0 < skipped < 8
    assert scales[: skipped + 1] == [2.0 ** (20 - n) for n in range(skipped + 1)]
    assert [value for _, value in scalars(tmp_path / "adapts")["numerics/skipped"]] == [1.0] * skipped + [0.0] * (
        12 - skipped
    )
    lost = train_in_a_session(tmp_path / "lost", half, optimizer, [np.full((2, 4), 6e4, "f4")] * 30)
    assert all(step.skipped for step in lost.steps)
    assert any("The loss scale does not recover: the last 30 steps were skipped" in each for each in lost.problems)
    assert lost.first.op_type == "MatMul"


def test_inf_that_does_not_reach_the_loss_is_no_problem(tmp_path: pathlib.Path) -> None:
    def loss_of(x: Any, weights: Any) -> Any:
        y = tf.matmul(x, weights)
        return tf.reduce_mean(v1.where(y > 100, tf.stop_gradient(v1.log(y * 0)), y))

    watch = train_in_a_session(tmp_path, loss_of, lambda: v1.train.AdamOptimizer(1e-3), [np.ones((2, 4), "f4")] * 2)
    assert watch.problems == [] and watch.first is None
    assert "Inf or NaN while the loss and the gradients were finite" in (tmp_path / "numerics.html").read_text()


def trained(watched: bool, folder: pathlib.Path) -> Any:
    with tf.Graph().as_default():
        tf.compat.v1.set_random_seed(1)
        watch = npu_shim.rehearsal.watch_numerics(str(folder)) if watched else None
        x = tf.random.normal([8, 4])
        hidden = v1.nn.dropout(tf.tanh(tf.matmul(x, v1.get_variable("a", [4, 6]))), rate=0.5)
        loss = tf.reduce_mean(tf.square(tf.matmul(hidden, v1.get_variable("b", [6, 1]))))
        train = v1.train.AdamOptimizer(0.01).minimize(loss)
        with v1.Session() as session:
            session.run(v1.global_variables_initializer())
            for _ in range(5):
                session.run(train)
            values = session.run(v1.trainable_variables())
        if watch is not None:
            watch.close()
    return values


def test_a_watch_changes_no_number_and_no_seed(tmp_path: pathlib.Path) -> None:
    for one, other in zip(trained(False, tmp_path), trained(True, tmp_path)):
        assert np.array_equal(one, other)


if IS_TF2:

    @pytest.mark.parametrize("kind", ["eager", "function", "fit"])
    def test_the_op_is_named_in_tensorflow_2(kind: str, tmp_path: pathlib.Path) -> None:
        if not tf.executing_eagerly():
            v1.enable_eager_execution()
        watch = npu_shim.rehearsal.watch_numerics(str(tmp_path))
        x, y = np.ones((8, 4), "f4"), np.ones((8, 1), "f4")
        model = tf.keras.Sequential([tf.keras.layers.Dense(1, kernel_initializer="ones", name="out")])
        optimizer = tf.keras.optimizers.SGD(1e-6)

        def loss_of(labels: Any, predicted: Any) -> Any:
            return tf.reduce_mean(tf.exp(predicted * labels))

        def step(inputs: Any, labels: Any) -> None:
            with tf.GradientTape() as tape:
                loss = loss_of(labels, model(inputs))
            gradients = tape.gradient(loss, model.trainable_variables)
            optimizer.apply_gradients(zip(gradients, model.trainable_variables))

        if kind == "fit":
            model.compile(optimizer, loss_of)
            call: Any = model.train_on_batch
        else:
            call = tf.function(step) if kind == "function" else step
        call(tf.constant(x), tf.constant(y))
        call(tf.constant(x), tf.constant(y * 100))
        watch.close()
        assert watch.first.op_type == "Exp" and THIS_FILE in watch.first.lines[0]
        assert "in [400" in watch.first.inputs[0]
        assert [step.is_bad for step in watch.steps] == [False, True]
        assert len(watch.steps[0].norms) == 2

    def test_the_loss_scale_of_keras_is_recorded(tmp_path: pathlib.Path) -> None:
        if not tf.executing_eagerly():
            v1.enable_eager_execution()
        variable = tf.Variable([1.0, 2.0], name="v")
        with npu_shim.rehearsal.watch_numerics(str(tmp_path)) as watch:
            optimizer = tf.keras.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.SGD(0.1))
            for factor in (1.0, float("inf"), 1.0):
                with tf.GradientTape() as tape:
                    loss = tf.reduce_sum(variable * factor)
                    get_scaled_loss = getattr(optimizer, "get_scaled_loss", None) or optimizer.scale_loss
                    scaled = get_scaled_loss(loss)
                gradients = tape.gradient(scaled, [variable])
                unscale = getattr(optimizer, "get_unscaled_gradients", lambda gradients: gradients)
                optimizer.apply_gradients(zip(unscale(gradients), [variable]))
        assert [step.scale for step in watch.steps] == [2.0**15, 2.0**15, 2.0**14]
        assert [step.skipped for step in watch.steps] == [False, True, False]
        assert watch.steps[0].norm == pytest.approx(2**0.5)
        assert watch.steps[0].loss == 3.0  # not that times the scale


def test_contents_are_the_counts_and_the_range_of_the_rest() -> None:
    assert contents_text(np.array([1.0, np.nan, np.inf, -np.inf, -2.5])) == (
        "1 NaN and 1 +Inf and 1 -Inf of 5, the rest in [-2.5, 1]"
    )
    assert contents_text(np.array([np.nan], np.float16)) == "1 NaN of 1" and contents_text(np.zeros(0)) == "empty"
    assert contents_text(np.array([True, False])) == "in [0, 1]"


def test_finite_elements_whose_sum_overflows_are_finite() -> None:
    assert is_finite(np.full(4, 3e38, np.float32)) and not is_finite(np.array([np.inf, -np.inf], np.float32))
    assert is_finite(np.full(9, 6e4, np.float16)) and not is_finite(np.array([1, np.nan], np.float16))


def test_a_wrong_interval_is_an_error(tmp_path: pathlib.Path) -> None:
    with pytest.raises(ValueError, match="every=0 is not allowed: it must be an integer of at least 1."):
        npu_shim.rehearsal.watch_numerics(str(tmp_path), every=0)
