"""The phase of each node of a training step: forward, backward or update."""

from __future__ import annotations

import re
from typing import Sequence

from npu_shim.rehearsal.assess.flat import Node
from npu_shim.rehearsal.assess.training_ops import GRADIENT_SCOPE, UPDATE_OPS
from npu_shim.rehearsal.predict.features import MATRIX

FORWARD, BACKWARD, UPDATE = "forward", "backward", "update"
_ENDS = re.compile(rf"{UPDATE_OPS.pattern}|Assign")
_GRADIENT = re.compile(r"Grad(V\d|WithArgmax|Ext)?$|Backprop(Input|Filter)")


def phases_of_nodes(nodes: Sequence[Node], order: Sequence[int]) -> list[str]:
    """Return the phase of each node.

    Nodes of gradients are those whose name or operator says so, the products behind them, and what lies between these.
    What follows them and leads to no gradient belongs to the update. So does what leads to an update alone, such as a
    learning rate.
    """
    after_gradient = [False] * len(nodes)
    is_gradient = [False] * len(nodes)
    for i in order:
        node = nodes[i]
        before = [source for source, _ in node.inputs] + node.controls
        after_gradient[i] = any(after_gradient[j] or is_gradient[j] for j in before)
        named = bool(GRADIENT_SCOPE.search(node.name) or _GRADIENT.search(node.op))
        is_gradient[i] = not UPDATE_OPS.match(node.op) and (named or after_gradient[i] and bool(MATRIX.search(node.op)))
    leads_to_gradient = _nodes_leading_to(is_gradient, nodes, order)
    leads_to_update = _nodes_leading_to([bool(_ENDS.match(node.op)) for node in nodes], nodes, order)
    return [
        UPDATE
        if UPDATE_OPS.match(node.op)
        else BACKWARD
        if is_gradient[i] or after_gradient[i] and leads_to_gradient[i]
        else UPDATE
        if after_gradient[i] or leads_to_update[i] and not leads_to_gradient[i]
        else FORWARD
        for i, node in enumerate(nodes)
    ]


def _nodes_leading_to(ends: Sequence[bool], nodes: Sequence[Node], order: Sequence[int]) -> list[bool]:
    """Return for each node if it is an end or computes an input of one."""
    leads = list(ends)
    for i in reversed(order):
        if leads[i]:
            for j, _ in nodes[i].inputs:
                leads[j] = True
    return leads
