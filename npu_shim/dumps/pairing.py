"""Outputs and inputs of the device's operators, each paired with the output of TensorFlow that it stands for.

An output stands for the op that its dump names; else for the one that the graph of the engine names for it; else for
one of the ops that its operator was made from: a fused operator returns what no other of them takes. An operator
without all these has the name of its op. An input is what its producer returns; operators that the engine adds, like
TransData and Cast, are passed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Sequence, Tuple

from npu_shim.dumps.dump import DumpData, Tensor
from npu_shim.dumps.files import DumpFile
from npu_shim.dumps.graph_files import Graph, GraphOp, Output
from npu_shim.dumps.reference import Reference, flat

Origin = Tuple[int, str]  # the place in the reference and the layout of what an output stands for
_MOST_PASSED = 8  # added operators between two
ADDED = "added by the engine"
NO_ORIGINAL = "original op unknown"
NOT_IN_REFERENCE = "original op not in the reference"
FUSED = "inside a fused operator"
NOT_DUMPED = "not dumped"
NOT_ON_DEVICE = "not on the device"


@dataclass
class Operator:
    """An operator of the device.

    Attributes:
        file, data: of its dump.
        name: in the graph.
        op: in the graph; None if there is no graph, or it lacks the operator.
        originals: the ops that it was made from; None if unknown, empty for one that the engine added.
    """

    file: DumpFile
    data: DumpData
    name: str
    op: GraphOp | None = None
    originals: list[str] | None = None

    @property
    def type(self) -> str:
        """The type in the graph, else that in the name of the file."""
        return self.op.op_type if self.op else self.file.op_type


@dataclass
class Pair:
    """A tensor of the device and the output of the reference.

    Attributes:
        slot: "output" or "input".
        index: of the output or input.
        place: of the output in the reference.
        layout: in the original graph; empty if unknown.
    """

    operator: Operator
    slot: str
    index: int
    tensor: Tensor
    place: int
    layout: str = ""


class Pairing:
    """Pairs the operators of a step with a reference."""

    def __init__(self, dumps: Sequence[tuple[DumpFile, DumpData]], graph: Graph, reference: Reference) -> None:
        self.reference = reference
        self.ops = {flat(op.name): op for op in graph.ops.values()}
        self.operators = {}
        for file, data in dumps:  # the last of several counts
            op = self.ops.get(flat(data.op_name) or file.op_name) or self.ops.get(file.op_name)
            originals = op.originals if op and op.originals is not None else data.originals or None
            name = op.name if op else data.op_name or file.op_name
            self.operators[flat(name)] = Operator(file, data, name, op, originals)

    def pairs(self) -> tuple[list[Pair], list[tuple[str, str, str]]]:
        """Return the pairs in the order of the graph, and the side, cause and name of what has none."""
        found: list[Pair] = []
        without = []
        for operator in self.operators.values():
            outputs, tensors = [], operator.data.outputs
            origins = [self.origin(operator.name, index) for index in range(len(tensors))]
            for index, (tensor, origin) in enumerate(zip(tensors, origins)):
                if not isinstance(origin, str):
                    outputs.append(Pair(operator, "output", index, tensor, *origin))
            found += outputs
            if origins and not outputs:
                without.append(("device", str(origins[0]), operator.name))
            if operator.op or (outputs and len(operator.originals or ()) < 2):  # else their order is not known
                taken = self.taken(operator, outputs[0].place if outputs else None)
                for index, (tensor, source) in enumerate(zip(operator.data.inputs, taken)):
                    if source:
                        found.append(Pair(operator, "input", index, tensor, *source))
        found.sort(key=self._order)
        return found, without + self._without_pair({pair.place for pair in found if pair.slot == "output"})

    def origin(self, name: str, index: int) -> Origin | str:
        """Return what an operator's output stands for, or why it has no pair."""
        operator, op = self.operators.get(flat(name)), self.ops.get(flat(name))
        named = op.outputs[index] if op and index < len(op.outputs) else Output()
        tensor = operator.data.outputs[index] if operator and index < len(operator.data.outputs) else Tensor()
        originals = operator.originals if operator else op.originals if op else None
        asked = [(name, index)] if self.reference.tensors else []
        for wanted, output in ((tensor.original, tensor.original_output), (named.name, named.output)):
            asked += [(wanted, index if output < 0 else output)] if wanted else []
        asked += [] if asked else self._returned(originals or [], index, tensor)
        asked += [(name, index)] if originals is None else []
        for wanted, output in asked:
            place = self.reference.place(wanted, output)
            if place is not None:
                return place, named.layout
        if originals == [] and not tensor.original and not named.name:
            return ADDED
        return NO_ORIGINAL if originals is None and not tensor.original else NOT_IN_REFERENCE

    def _returned(self, originals: Sequence[str], index: int, tensor: Tensor) -> list[tuple[str, int]]:
        """Return the outputs that an operator made from these ops may return, the likeliest first."""
        if len(originals) < 2:
            return [(name, index) for name in originals]
        known = [name for name in originals if self.reference.place(name, 0) is not None]
        taken = {flat(of.rpartition(":")[0] or of) for name in known for of in self._inputs_of(name)}
        last = [name for name in known if flat(name) not in taken] or known
        fitting = [name for name in last if self._fits(name, tensor)]
        if len(last) > 1 and index < len(last) and last[index] in fitting:
            return [(last[index], 0)]
        return [(name, 0) for name in reversed(fitting or last)]

    def _inputs_of(self, name: str) -> list[str]:
        place = self.reference.place(name, 0)
        return [] if place is None else self.reference.outputs[place].inputs

    def _fits(self, name: str, tensor: Tensor) -> bool:
        place = self.reference.place(name, 0)
        try:
            shape = None if place is None else self.reference.load(place).shape
        except ValueError:
            return True
        return shape is None or not tensor.shape or tuple(shape) == tensor.original_shape

    def taken(self, operator: Operator, place: int | None) -> list[Origin | None]:
        """Return what the inputs of an operator stand for.

        Args:
            operator: the operator.
            place: of what it returns in the reference.
        """
        if operator.op:
            return [self._produced(*each) for each in operator.op.inputs]
        names = operator.originals or ([] if place is None else [self.reference.outputs[place].op])
        inside = set(map(flat, names))
        places = [self.reference.place_of(each) for name in names for each in self._inputs_of(name)]
        return [None if at is None or flat(self.reference.outputs[at].op) in inside else (at, "") for at in places]

    def _produced(self, name: str, index: int) -> Origin | None:
        for _ in range(_MOST_PASSED):
            origin = self.origin(name, index)
            if not isinstance(origin, str):
                return origin
            op = self.ops.get(flat(name))
            if origin != ADDED or not op or not op.inputs:
                return None
            name, index = op.inputs[0]
        return None

    def _order(self, pair: Pair) -> tuple[int, int, int, bool, int]:
        op, file = pair.operator.op, pair.operator.file
        in_graph = op.order if op else pair.place if self.reference.indexed and not self.ops else 1 << 40
        return in_graph, file.time, file.task, pair.slot == "output", pair.index

    def _without_pair(self, paired: set[int]) -> list[tuple[str, str, str]]:
        dumped = {flat(name) for operator in self.operators.values() for name in operator.originals or []}
        built = {flat(name) for op in self.ops.values() for name in [op.name, *(op.originals or [])]}
        found = []
        for place, output in enumerate(self.reference.outputs):
            if place not in paired:
                name = flat(output.op)
                cause = FUSED if name in dumped else NOT_DUMPED if name in built or not self.ops else NOT_ON_DEVICE
                found.append(("reference", cause, f"{output.op}:{output.output}"))
        return found
