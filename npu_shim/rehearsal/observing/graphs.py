"""Places where ops are created: eager code, graphs, and functions."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from npu_shim._tensorflow import tf_api, tf_data, tf_graph
from npu_shim.rehearsal.observing import skipped_updates

if TYPE_CHECKING:
    from convert_tf2npu.api import Seen

    from npu_shim._tensorflow.types import Value

tf = tf_api.tf
RANDOM = re.compile("Random|TruncatedNormal|ParameterizedTruncatedNormal|Multinomial")  # types of ops


def context_of_new_ops() -> str:
    """Return where a new op is created: ``eager``, ``graph``, ``function``, or ``data`` for functions of tf.data."""
    if tf_data.is_tracing_dataset_function():
        return "data"
    if tf.executing_eagerly():
        return "eager"
    return "graph" if tf_graph.is_in_plain_graph() else "function"


def note_op(seen: Seen, value: Value) -> Value:
    """Note where the op that returns a value was created, as ``in``, and what runs with an assignment do."""
    seen.note("in", context_of_new_ops())
    skipped_updates.note_if_assignment(seen, value)
    return value
