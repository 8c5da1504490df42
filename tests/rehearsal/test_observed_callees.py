"""Effects in Python of the layers and metrics that a training step calls."""

from __future__ import annotations

import functools
from typing import Any

import pytest
import tensorflow as tf
from tensorflow.python.eager import context

from npu_shim.import_hook import tool
from npu_shim.rehearsal.observing.steps import note_callee, note_step, trace_steps

tool.make_importable()
pytestmark = pytest.mark.smoke


class Net(tf.keras.layers.Layer):
    count = 0

    def call(self, x: Any) -> Any:
        return tf.nn.relu(x)

    def encode(self, x: Any) -> Any:
        return self.call(x) * 2.0

    def call_and_count(self, x: Any) -> Any:
        self.count += 1
        return self.call(x)


class Counting(Net):
    def call(self, x: Any) -> Any:
        return self.call_and_count(x)


class Total(tf.keras.metrics.Metric):
    def __init__(self) -> None:
        super().__init__(name="total")
        self.total = self.add_weight(name="total", shape=(), initializer="zeros")

    def update_state(self, values: Any) -> None:
        self.total.assign_add(tf.reduce_sum(values))

    def result(self) -> Any:
        return self.total * 1.0


class Listing(Total):
    def update_state(self, values: Any) -> None:
        self.values.append(values)


class Scaling(Net):
    def __init__(self, held: Any) -> None:
        super().__init__()
        self.held = held

    def call(self, x: Any) -> Any:
        for part in self.held:
            x = x * part
        return x


class Above(Counting):
    def call(self, x: Any) -> Any:
        return super().call(x) * 2.0


class Around(Net):
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.count += 1
        return super().__call__(*args, **kwargs)


SCALES = [1.0]


class WithDefault(Net):
    def call(self, x: Any, scales: Any = SCALES) -> Any:
        return x * scales[0]


class Applying(Net):
    def __init__(self, held: Any) -> None:
        super().__init__()
        self.held = held

    def call(self, x: Any) -> Any:
        return self.held(x)


class Weighing(Applying):
    def call(self, x: Any) -> Any:
        return x * self.held.weight()


class Reading(Applying):
    def call(self, x: Any) -> Any:
        return x * self.held.scale


class Annealing:
    scale = 1.0

    def weight(self) -> float:
        return self.scale


class Projecting(Applying):
    """A layer that calls a method of another one."""

    def call(self, x: Any) -> Any:
        return self.held.call_and_count(x)


class Encoding(Applying):
    def call(self, x: Any) -> Any:
        return self.held.encode(x)


SCALE = 1.0


def scaled(x: Any) -> Any:
    return x * SCALE


def doubled(x: Any) -> Any:
    return tf.nn.relu(x) * 2.0


class Choosing(Net):
    """A layer that calls one of two others."""

    def __init__(self) -> None:
        super().__init__()
        self.narrow, self.wide = tf.keras.layers.Dense(1), tf.keras.layers.Dense(1)

    def call(self, x: Any) -> Any:
        return self.wide(x) if x.shape[-1] > 2 else self.narrow(x)


class Slope:
    def __call__(self, x: Any) -> Any:
        return x * 2.0


class Schedule(tf.keras.optimizers.schedules.LearningRateSchedule):
    def __call__(self, step: Any) -> Any:
        return 0.1


def optimizer_of(schedule: Any) -> Any:
    is_keras_3 = hasattr(tf.keras, "ops")
    return (tf.keras.optimizers if is_keras_3 else getattr(tf.keras.optimizers, "legacy", tf.keras.optimizers)).SGD(
        schedule
    )


@pytest.mark.parametrize(
    "make, kind",
    [
        (lambda: tf.nn.relu, "library"),
        (lambda: tf.keras.metrics.Mean(), "library"),
        (lambda: tf.keras.metrics.Mean().update_state, "library"),
        (lambda: Net(), "layer"),
        (lambda: Net().encode, "layer"),
        (lambda: Net().call_and_count, "other"),
        (lambda: Counting(), "other"),
        (lambda: Above(), "other"),
        (lambda: Around(), "other"),
        (lambda: WithDefault(), "other"),
        (lambda: Applying(tf.nn.relu), "layer"),
        (lambda: Applying(doubled), "layer"),
        (lambda: Applying(scaled), "other"),
        (lambda: Applying(Slope()), "other"),
        (lambda: Weighing(Annealing()), "other"),
        (lambda: Reading(Annealing()), "layer"),
        (lambda: Projecting(Net()), "other"),
        (lambda: Encoding(Net()), "layer"),
        (lambda: Total(), "layer"),
        (lambda: Total().update_state, "layer"),
        (lambda: Listing(), "other"),
        (lambda: print, "other"),
        (lambda: Scaling((1.0, 2.0)), "layer"),
        (lambda: Scaling([1.0, 2.0]), "other"),
        (lambda: tf.keras.layers.Dense(1, activation=tf.nn.relu), "library"),
        (lambda: tf.keras.layers.Dense(1, activation=Slope()), "other"),
        (lambda: tf.keras.layers.Dense(1, activation=functools.partial(tf.nn.leaky_relu, alpha=0.1)), "library"),
        (lambda: tf.keras.layers.Dense(1, activity_regularizer="l2"), "other"),
        (lambda: optimizer_of(0.1).apply_gradients, "library"),
        (lambda: optimizer_of(Schedule()).apply_gradients, "other"),
        (lambda: optimizer_of(lambda: 0.1).apply_gradients, "other"),
        (lambda: tf.keras.Sequential([tf.keras.layers.Dense(1)]).get_weights, "other"),
        (lambda: tf.keras.callbacks.History().on_train_begin, "other"),
    ],
)
def test_a_callee_of_a_step_is_judged_with_all_its_code(make: Any, kind: str) -> None:
    from convert_tf2npu.api import Seen

    seen = Seen(1, 1)
    with context.eager_mode():
        note_callee(seen, make())
    assert seen.only("is") == kind


def test_lists_of_layers_and_settings_of_regularizers_are_noted() -> None:
    from convert_tf2npu.api import Seen

    seen, regularized = Seen(1, 1), tf.keras.layers.Dense(1, kernel_regularizer=tf.keras.regularizers.l2(0.1))
    with context.eager_mode():
        note_callee(seen, Scaling([tf.Variable(2.0)]))
        assert (seen.only("is"), seen.only("lists")) == ("layer", ("held",))
        seen = Seen(1, 1)
        note_callee(seen, regularized)
    assert {"activation", "l2", "trainable", "units"}.issubset(seen.only("reads"))  # type: ignore[arg-type]


def test_a_layer_that_is_not_built_after_the_first_step_is_of_another_kind() -> None:
    from convert_tf2npu.api import Seen

    for sizes, kinds in ((2,), ("layer", "other")), ((2, 4), ("layer",)):
        seen, layer = Seen(1, 1), Choosing()
        with context.eager_mode():
            for size in sizes:
                note_callee(seen, layer)(tf.ones([1, size]))
            trace_steps()
        assert seen.all("is") == kinds


def test_a_wrapper_of_a_step_may_pass_other_arguments_on() -> None:
    from convert_tf2npu.api import Seen

    def step(scale: float, x: Any) -> Any:
        return scale * x

    @functools.wraps(step)
    def scaled(x: Any) -> Any:
        return step(0.5, x)

    with context.eager_mode():
        seen = Seen()
        assert float(note_step(seen, scaled)(tf.constant(4.0))) == 2.0
        assert seen.only("numbers") == ()
