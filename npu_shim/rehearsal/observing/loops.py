"""Recurrent layers that loop over time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from npu_shim._tensorflow import tf_api, tf_graph
from npu_shim.rehearsal.observing.graphs import RANDOM, context_of_new_ops

if TYPE_CHECKING:
    from convert_tf2npu.api import Seen

    from npu_shim._tensorflow.types import Operation, Value

tf = tf_api.tf


def note_loop(seen: Seen, value: Value) -> Value:
    """Note of what a loop over time returns the ``dimensions`` of its outputs, and if its steps have random ops.

    The dimensions are those that the graph knows. Random ops are noted as ``draws``.
    """
    place = context_of_new_ops()
    seen.note("in", place)
    outputs, state = value
    if place == "graph" and isinstance(outputs, tf.Tensor):
        seen.note("dimensions", tuple(outputs.shape.as_list()) if outputs.shape.rank is not None else None)
        seen.note("draws", _has_random_ops(tf.nest.flatten(state)[0].op))
    return value


def _has_random_ops(last: Operation) -> bool:
    """Return False if no step of a loop has random ops; True also for a loop that is not of TensorFlow 1.

    Args:
        last: that returns a state of the last step.
    """
    if last.type != "Exit":
        return True
    ops = last.graph.get_operations()  # not by their names: layers that are used again keep the scope of the first use
    return any(RANDOM.match(op.type) and tf_graph.is_in_same_loop(op, last.inputs[0].op) for op in ops)
