"""The values that the graph of a step decides: constants, sizes, what is fed, and what follows from these."""

from __future__ import annotations

from typing import Iterable, Sequence

import numpy as np

from npu_shim._tensorflow import tf_capture, tf_graph
from npu_shim._tensorflow.op_types import LOOPS
from npu_shim._tensorflow.tf_api import tf
from npu_shim._tensorflow.types import Value
from npu_shim.rehearsal.assess.flat import Node
from npu_shim.rehearsal.assess.held_tensors import Key, holder_of, reads_of_held
from npu_shim.rehearsal.assess.sizes import element_count

_LENGTHS = frozenset({"TensorArraySizeV3", "TensorListLength"})
_SIZES = frozenset({"Shape", "ShapeN", "Size", "Rank"})
_NEVER = frozenset({"Placeholder", "NoOp", "Enter", "Exit", "Merge", "Switch", "NextIteration", "LoopCond"})
_MOST_ELEMENTS = 10_000  # of a tensor that is computed for this


def known_values(nodes: Sequence[Node], keys: Iterable[Key], with_variables: bool = False) -> dict[Key, Value]:
    """Return the values of those tensors that the graph decides, with the integers that this run gives it.

    Args:
        nodes: of a step.
        keys: of the tensors.
        with_variables: True to take the value that an integer variable has now.
    """
    known = _KnownTensors(nodes, with_variables)
    wanted = [key for key in dict.fromkeys(keys) if known.is_known(key)]
    definition, names = tf.compat.v1.GraphDef(), {}
    for place, output in tf_graph.reachable_nodes(wanted, known.before):
        value = known.value((place, output))
        names[place, output] = f"{nodes[place].name}:{output}" if value is None else f"value_{place}_{output}:0"
        if value is not None:
            constant = definition.node.add(name=f"value_{place}_{output}", op="Const")
            dtype = tf.as_dtype(nodes[place].dtypes[output])
            constant.attr["dtype"].type = dtype.as_datatype_enum
            constant.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(value, dtype))
    for place in dict.fromkeys(place for place, output in names if known.value((place, output)) is None):
        copied = definition.node.add()
        copied.CopyFrom(nodes[place].definition)
        if known.hands_on(place):
            copied.op = "Identity"
            copied.attr.clear()
            copied.attr["T"].type = tf.as_dtype(nodes[place].dtypes[0]).as_datatype_enum
        if copied.op != "Const":
            del copied.input[:]
            copied.input.extend(names[key] for key in known.inputs(place))
    return dict(zip(wanted, tf_capture.values_of_tensors(definition, [names[key] for key in wanted]))) if wanted else {}


def is_inside(place: str, loop: str) -> bool:
    """Return True if the name of the innermost loop or branch around a node is that of a loop or lies in it."""
    return place == loop or place.startswith(loop + "/")


class LoopVariables:
    """The tensors that loops are given for what changes in each of their runs: the nodes of a body read these."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self._by_loop = {
            node.name: {given for given, result in zip(node.inputs, node.results) if given != result}
            for node in nodes
            if node.op in LOOPS
        }

    def are_read(self, node: Node) -> bool:
        """Return True if a node reads a variable of a loop around it."""
        loops = [loop for loop in self._by_loop if is_inside(node.inside, loop)]
        return any(key in self._by_loop[loop] for loop in loops for key in node.inputs)


class _KnownTensors:
    def __init__(self, nodes: Sequence[Node], with_variables: bool) -> None:
        self._nodes, self._with_variables = nodes, with_variables
        self._variables = LoopVariables(nodes)
        self._known: dict[Key, bool] = {}
        self._lengths: dict[int, int | None] = {}  # of lists that a tensor is made
        self._handed_on = {
            place: [read.written] for place, read in reads_of_held(nodes).items() if _is_pop(nodes[place])
        }
        for place, node in enumerate(nodes):
            holder = nodes[holder_of(nodes, node.inputs[0][0])] if node.op in _LENGTHS and node.inputs else node
            if node.op == "Enter" and node.definition.attr["is_constant"].b or node.op in _LENGTHS:
                self._handed_on[place] = holder.inputs[holder.op == "TensorListReserve" :][:1]
            if node.op in _LENGTHS and holder.op == "TensorListFromTensor":
                self._handed_on[place] = []
                source, output = holder.inputs[0]
                self._lengths[place] = (nodes[source].shapes[output] or (None,))[0]

    def is_known(self, key: Key) -> bool:
        """Return True if TensorFlow can compute a tensor from constants."""
        stack = [key]
        while stack:
            last = stack[-1]
            before = self.before(last)
            waiting = [source for source in before if source not in self._known]
            if last not in self._known and waiting:
                self._known[last] = False  # for loops
                stack += waiting
                continue
            self._known[last] = self._may_be_known(last) and all(self._known[source] for source in before)
            stack.pop()
        return self._known[key]

    def before(self, key: Key) -> list[Key]:
        """Return the tensors from which a tensor is computed."""
        is_last = not self._may_be_known(key) or self.value(key) is not None
        return [] if is_last else self.inputs(key[0])

    def inputs(self, place: int) -> list[Key]:
        """Return the tensors that a node reads, or the one that it hands on: what it pops, or the size of its array."""
        return self._handed_on.get(place, self._nodes[place].inputs)

    def hands_on(self, place: int) -> bool:
        """Return True if a node has the value of one of another node."""
        return place in self._handed_on

    def _may_be_known(self, key: Key) -> bool:
        node = self._nodes[key[0]]
        if node.definition.op == "Const" or self.value(key) is not None:
            return True
        if self.hands_on(key[0]):
            return len(node.shapes) == 1 and bool(self.inputs(key[0]))
        is_same = node.definition.op == node.source.type and not node.source.op_def.is_stateful
        is_pure = is_same or node.definition.op == "Identity"
        is_small = all((element_count(shape) or 0) <= _MOST_ELEMENTS for shape in node.shapes)
        is_alone = not self._variables.are_read(node)
        return is_pure and is_small and is_alone and bool(node.inputs) and node.op not in _NEVER | _SIZES

    def value(self, key: Key) -> Value | None:
        """Return the value that a tensor has by this run or by the sizes of its input; None for others."""
        place, output = key
        node = self._nodes[place]
        if self._lengths.get(place) is not None:
            return np.array(self._lengths[place])
        number = output if node.op == "ShapeN" else 0
        source, position = node.inputs[number] if node.inputs else (place, 0)
        if node.op == "OptionalHasValue":
            return np.array(True)  # strategies ask if there is a batch
        if node.op == "ReadVariableOp":
            return self._nodes[source].values.get(0) if self._with_variables else None
        if node.op == "VariableShape" and self._nodes[source].op == "VarHandleOp":
            return np.array([dim.size for dim in self._nodes[source].definition.attr["shape"].shape.dim])
        if node.definition.op == "Const" or node.op == "VarHandleOp":
            return None
        shape = self._nodes[source].shapes[position] if node.op in _SIZES else None
        if shape is None:
            return node.values.get(output)
        if node.op == "Rank":
            return np.array(len(shape))
        elements = element_count(shape)
        return None if elements is None else np.array(elements if node.op == "Size" else shape)


def _is_pop(node: Node) -> bool:
    return node.op == "StackPopV2"
