"""Find the ops of a graph whose values follow from the number of elements in a queue, which depends on threads.

Input pipelines watch how full their queue is, as in a summary or in a moving average. Two runs of one script then
compute different values.
"""

from __future__ import annotations

import re
from typing import Iterator

from npu_shim._tensorflow import tf_api, tf_graph
from npu_shim._tensorflow.types import Graph, Operation

_SIZES = ("QueueSize", "QueueSizeV2")
_ASSIGNS = re.compile(r"Assign|(Resource)?Scatter")
# Behind control flow and updates of an optimizer are values of the training itself.
_ENDS = re.compile(r"(Ref)?Switch|(Stateless)?(If|While|Case)|Enter|(Resource)?(Sparse)?Apply")


def ops_from_queue_sizes(graph: Graph) -> set[Operation]:
    """Return the ops whose values follow from sizes of queues, and the variables that receive such values."""
    return set(tf_graph.reachable_nodes([op for op in graph.get_operations() if op.type in _SIZES], _followers))


def _followers(op: Operation) -> Iterator[Operation]:
    assigned = [op.inputs[0].op] if _ASSIGNS.match(op.type) else []
    for follower in (*(consumer for tensor in op.outputs for consumer in tensor.consumers()), *assigned):
        if not _ENDS.match(follower.type):
            yield follower


def scalar_summary_tags(ops: set[Operation]) -> set[str]:
    """Return the tags of the scalar summaries among some ops."""
    texts = [tf_api.static_value(op.inputs[0]) for op in ops if op.type == "ScalarSummary"]
    return {text.item().decode() for text in texts if text is not None and text.ndim == 0}
