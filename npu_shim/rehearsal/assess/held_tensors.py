"""The tensors that stacks, arrays and lists hold between the runs of a loop, of one shape, and those in optionals."""

from __future__ import annotations

from typing import Mapping, NamedTuple, Sequence, Tuple

from npu_shim.rehearsal.assess.flat import Node, Shape

Key = Tuple[int, int]  # the place of a node, and its output
# Operators that write: the place of what they write among their inputs, and the number of its axes that count elements.
_WRITES = {
    "StackPushV2": (1, 0),
    "TensorArrayWriteV3": (2, 0),
    "TensorArrayScatterV3": (2, 1),
    "TensorListPushBack": (1, 0),
    "TensorListSetItem": (2, 0),
    "TensorListFromTensor": (0, 1),
}
_READS = {"StackPopV2": 0, "TensorArrayReadV3": 0, "TensorListPopBack": 1, "TensorListGetItem": 0}
WHOLE = frozenset({"TensorArrayGatherV3", "TensorListStack"})  # they read all elements
_HAND_ON = frozenset({"Enter", "RefEnter", "Identity", "TensorArrayGradV3", *_WRITES, *_READS, *WHOLE})

_SUMS = ("AddN", "ZerosLike")
_Written = Mapping[int, Tuple[Key, int]]  # by what holds it: a tensor, and the number of its axes that count elements


class Read(NamedTuple):
    """A read of elements: the output, the tensor that is written, and the number of its axes that count elements."""

    output: int
    written: Key
    axes: int

    def shape(self, nodes: Sequence[Node]) -> Shape:
        """Return the shape of an element; None if it is not known."""
        shape = nodes[self.written[0]].shapes[self.written[1]]
        return None if shape is None else shape[self.axes :]


def reads_of_held(nodes: Sequence[Node]) -> dict[int, Read]:
    """Return what nodes read from stacks, arrays, lists and optionals, by their places."""
    written: dict[int, tuple[Key, int]] = {}
    for place, node in enumerate(nodes):
        position, axes = _WRITES.get(node.op, (0, 0))
        if node.op in _WRITES and len(node.inputs) > position:
            written.setdefault(holder_of(nodes, place), (node.inputs[position], axes))
    reads = {}
    for place, node in enumerate(nodes):
        if node.op in _READS or node.op in WHOLE:
            held = written.get(holder_of(nodes, place))
            if held is not None:
                reads[place] = Read(_READS.get(node.op, 0), *held)
        elif node.op == "OptionalGetValue" and node.inputs:
            kept = _in_optional(nodes, node.inputs[0], written)
            if kept is not None:
                reads[place] = Read(0, kept, 0)
    return reads


def _in_optional(nodes: Sequence[Node], key: Key, written: _Written) -> Key | None:
    """Return the tensor in an optional, in which a condition keeps it for its gradient; a loop has a list of them."""
    seen: set[Key] = set()
    while nodes[key[0]].op != "OptionalFromValue":
        node = nodes[key[0]]
        held = written.get(holder_of(nodes, key[0])) if key[1] == _READS.get(node.op) else None
        seen.add(key)
        key = held[0] if held else node.inputs[0] if _hands_on(node) and node.inputs else key
        if key in seen:
            return None
    return nodes[key[0]].inputs[0]


def _hands_on(node: Node) -> bool:
    """Return True for a node that gives on what it is given, as sums of lists do, which gradients have."""
    return node.op in _HAND_ON and node.op != "TensorListFromTensor" or node.op in _SUMS and node.dtypes == ["variant"]


def holder_of(nodes: Sequence[Node], place: int) -> int:
    """Return the node that creates the stack, array or list of a node."""
    seen = set()
    while _hands_on(nodes[place]) and nodes[place].inputs and place not in seen:
        seen.add(place)
        place = nodes[place].inputs[0][0]
    return place
