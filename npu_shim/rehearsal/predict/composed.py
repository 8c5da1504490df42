"""Nodes that are one op of the device: those of an operator of npu_shim, and of a layer normalization."""

from __future__ import annotations

import os
import re
from typing import Iterable, NamedTuple, Sequence

from npu_shim._tensorflow import tf_graph
from npu_shim._tensorflow.types import Operation
from npu_shim.rehearsal.assess.flat import Node
from npu_shim.rehearsal.assess.linked_groups import representatives
from npu_shim.rehearsal.assess.training_ops import GRADIENT_SCOPE
from npu_shim.rehearsal.predict.phases import BACKWARD

LAYER_NORM, DROPOUT = "LayerNorm", "DropOut"
_PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_OPS = os.path.join(_PACKAGE, "ops") + os.sep
_DROPOUTS = ("dropout", "dropout_masks", "dropout_bytes", "keras_dropout")
# The modules of npu_shim.ops whose operators are made of TensorFlow's on the CPU.
_MODULES = frozenset({"gelu", "fast_gelu", "layer_norm", "optimizer_updates", "prelu", *_DROPOUTS})
# The scopes of tf.nn.moments and tf.nn.batch_normalization, which the compiler's ScopeLayerNormPass fuses.
_NORM_SCOPE = re.compile(r"(.*?(?:^|/))(?:moments|batchnorm)(?:_\d+)?(?:_grad)?/")


class Composed(NamedTuple):
    """An op of the device, and the places of its nodes."""

    type: str
    nodes: list[int]


def composed_ops(nodes: Sequence[Node], phases: Sequence[str]) -> list[Composed]:
    """Return the ops that are made of several nodes. Neighbours of the same kind and side of the loss are one op."""
    kinds = _kinds_of_nodes(nodes)
    links = (
        (source, i)
        for i, kind in kinds.items()
        for source, _ in nodes[i].inputs
        if kinds.get(source) == kind and (phases[source] == BACKWARD) == (phases[i] == BACKWARD)
    )
    members: dict[int, list[int]] = {}
    for i, representative in representatives(kinds, links).items():
        members.setdefault(representative, []).append(i)
    ops = []
    for places in members.values():
        kind = kinds[places[0]].partition(" ")[0]
        side = "Grad" if phases[places[0]] == BACKWARD else ""
        if len(places) > 1:
            ops.append(Composed(kind + side, places))
    return ops


def _kinds_of_nodes(nodes: Sequence[Node]) -> dict[int, str]:
    """Return the kind of op that nodes belong to. A gradient is found by the operation that it belongs to."""
    kinds: dict[int, str] = {}
    scopes: dict[str, str] = {}
    known: dict[Operation | None, str] = {None: ""}
    for i, node in enumerate(nodes):
        original = tf_graph.original_op_of_gradient(node.source)
        for op in (node.source, original):
            if op not in known:
                known[op] = _kind_of_operation(op)
        kind = known[node.source] or known[original]
        if kind:
            kinds[i] = kind
            scopes.setdefault(os.path.dirname(node.name), kind)
    normed: dict[str, list[int]] = {}
    for i, node in enumerate(nodes):
        name = GRADIENT_SCOPE.sub(r"\1", node.name)
        if i not in kinds and name != node.name:
            kind = next((scopes[scope] for scope in _scopes_of(name) if scope in scopes), "")
            if kind:
                kinds[i] = kind
        match = _NORM_SCOPE.match(name)
        if i not in kinds and match:
            normed.setdefault(match.group(1), []).append(i)
    for scope, places in normed.items():
        types = {nodes[i].op for i in places}
        is_of_layer = _reduces_last_axis(nodes, places) and types >= {"SquaredDifference", "Rsqrt"}
        kinds.update((i, f"{LAYER_NORM} {scope}") for i in places if is_of_layer)
    for i, node in enumerate(nodes):  # the parts of a gradient
        parts = {kinds.get(source, "") for source, _ in node.inputs} if node.op == "AddN" else set()
        if len(parts) == 1 and i not in kinds and parts != {""}:
            kinds[i] = parts.pop()
    return kinds


def _scopes_of(name: str) -> Iterable[str]:
    while "/" in name:
        name = os.path.dirname(name)
        yield name.replace("_grad", "")


def _kind_of_operation(op: Operation) -> str:
    for frame in op.traceback or ():
        if frame[0].startswith(_OPS):
            module = os.path.splitext(frame[0][len(_OPS) :])[0]
            if module in _DROPOUTS:
                return DROPOUT
            if module == "layer_norm":
                return LAYER_NORM
            if module in _MODULES:
                name = frame[2] if module == "optimizer_updates" else module
                return "".join(word.capitalize() for word in name.strip("_").split("_"))
    return ""


def _reduces_last_axis(nodes: Sequence[Node], places: Sequence[int]) -> bool:
    """Return True if a mean is that of the last axis only."""
    for i in places:
        if nodes[i].op == "Mean" and nodes[i].inputs:
            source, output = nodes[i].inputs[0]
            before, after = nodes[source].shapes[output], nodes[i].shapes[0]
            if before and after is not None and after in (before[:-1], (*before[:-1], 1)):
                return True
    return False
