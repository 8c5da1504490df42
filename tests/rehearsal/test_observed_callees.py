"""Effects in Python of the layers and metrics that a training step calls."""

from __future__ import annotations

from typing import Any

import pytest
import tensorflow as tf
from tensorflow.python.eager import context

from npu_shim.import_hook import tool
from npu_shim.rehearsal.observing.steps import note_callee

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
        (lambda: Total(), "layer"),
        (lambda: Total().update_state, "layer"),
        (lambda: Listing(), "other"),
        (lambda: print, "other"),
    ],
)
def test_a_callee_of_a_step_is_judged_with_all_its_code(make: Any, kind: str) -> None:
    from convert_tf2npu.api import Seen

    seen = Seen(1, 1)
    with context.eager_mode():
        note_callee(seen, make())
    assert seen.only("is") == kind
