"""Find the ops of a graph whose values follow from the number of elements in a queue, which depends on threads.

Input pipelines watch how full their queue is, as in a summary or in a moving average. Two runs of one script then
compute different values.
"""

from __future__ import annotations

import re
import weakref
from typing import TYPE_CHECKING

from npu_shim._tensorflow import tf_api

if TYPE_CHECKING:
    from npu_shim._tensorflow.types import Graph, Operation

_SIZES = ("QueueSize", "QueueSizeV2")
_ASSIGNS = re.compile(r"Assign|(Resource)?Scatter")
# Behind control flow and updates of an optimizer are values of the training itself.
_ENDS = re.compile(r"(Ref)?Switch|(Stateless)?(If|While|Case)|Enter|(Resource)?(Sparse)?Apply")


class QueueSizes:
    """The ops that follow from sizes of queues, found once for each version of a graph."""

    def __init__(self) -> None:
        self._known: weakref.WeakKeyDictionary[Graph, tuple[int, set[Operation]]] = weakref.WeakKeyDictionary()

    def of(self, graph: Graph) -> set[Operation]:
        """Return the ops. The variables that receive such values are among them."""
        known = self._known.get(graph)
        if known is None or known[0] != graph.version:
            known = self._known[graph] = (graph.version, following(graph))
        return known[1]


def following(graph: Graph) -> set[Operation]:
    """Return the ops whose values follow from sizes of queues, and the variables that receive such values."""
    waiting = [op for op in graph.get_operations() if op.type in _SIZES]
    followers = set(waiting)
    while waiting:
        op = waiting.pop()
        reached = [consumer for tensor in op.outputs for consumer in tensor.consumers()]
        if _ASSIGNS.match(op.type):
            reached.append(op.inputs[0].op)
        for other in reached:
            if other not in followers and not _ENDS.match(other.type):
                followers.add(other)
                waiting.append(other)
    return followers


def tags(ops: set[Operation]) -> set[str]:
    """Return the tags of the scalar summaries among some ops."""
    texts = [tf_api.static_value(op.inputs[0]) for op in ops if op.type == "ScalarSummary"]
    return {text.item().decode() for text in texts if text is not None and text.ndim == 0}
