"""Outputs and inputs of the device's operators, each paired with the output of TensorFlow that it stands for.

An output stands for the op that its dump names; else for the one that the graph of the engine names for it; else for
one of the ops that its operator was made from: a fused operator returns what no other of them takes. An operator
without all these has the name of its op. An input is what its producer returns; operators that the engine adds, like
TransData and Cast, are passed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Iterator, Sequence

from npu_shim.dumps.files import DumpFile
from npu_shim.dumps.graph_files import Graph, GraphOp, Output
from npu_shim.dumps.dump import DumpData, Tensor
from npu_shim.dumps.reference import Reference, flat

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


@dataclass
class Pairs:
    """The pairs of a step in the order of the graph, and what has none: (name, cause)."""

    pairs: list[Pair] = field(default_factory=list)
    of_device: list[tuple[str, str]] = field(default_factory=list)
    of_reference: list[tuple[str, str]] = field(default_factory=list)


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

    def pairs(self) -> Pairs:
        """Return all pairs."""
        found = Pairs()
        for operator in self.operators.values():
            causes, outputs = [], []
            for index, tensor in enumerate(operator.data.outputs):
                origin = self.origin(operator.name, index)
                if isinstance(origin, str):
                    causes.append(origin)
                else:
                    outputs.append(Pair(operator, "output", index, tensor, *origin))
            found.pairs += outputs
            for index, tensor in enumerate(operator.data.inputs):
                taken = self._taken(operator, outputs, index)
                if taken:
                    found.pairs.append(Pair(operator, "input", index, tensor, *taken))
            if causes and not outputs:
                found.of_device.append((operator.name, causes[0]))
        found.pairs.sort(key=self._order)
        found.of_reference = list(self._without_pair({pair.place for pair in found.pairs if pair.slot == "output"}))
        return found

    def origin(self, name: str, index: int) -> tuple[int, str] | str:
        """Return the place in the reference and the layout of what an operator's output stands for, or why none."""
        operator, op = self.operators.get(flat(name)), self.ops.get(flat(name))
        named = op.outputs[index] if op and index < len(op.outputs) else Output()
        tensor = operator.data.outputs[index] if operator and index < len(operator.data.outputs) else Tensor()
        originals = operator.originals if operator else op.originals if op else None
        asked = [(name, index)] if self.reference.of_device else []
        if tensor.original:
            asked.append((tensor.original, index if tensor.original_output < 0 else tensor.original_output))
        if named.name:
            asked.append((named.name, index if named.output < 0 else named.output))
        asked += [] if asked else self._returned(originals or [], index, tensor)
        if originals is None:
            asked.append((name, index))
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
        shape = None if place is None else self.reference.shape(place)
        return shape is None or not tensor.shape or tuple(shape) == tensor.original_shape

    def _taken(self, operator: Operator, outputs: list[Pair], index: int) -> tuple[int, str] | None:
        """Return what an operator's input stands for."""
        if operator.op is None or self.reference.of_device:
            inputs = self.reference.outputs[outputs[0].place].inputs if outputs else []
            name, _, output = inputs[index].rpartition(":") if index < len(inputs) else ("", "", "")
            place = self.reference.place(name or output, int(output) if name and output.isdigit() else 0)
            return None if place is None or len(operator.originals or "1") > 1 else (place, "")
        if index >= len(operator.op.inputs):
            return None
        return self._produced(*operator.op.inputs[index])

    def _produced(self, name: str, index: int) -> tuple[int, str] | None:
        for _ in range(_MOST_PASSED):
            origin = self.origin(name, index)
            if not isinstance(origin, str):
                return origin
            op = self.ops.get(flat(name))
            if origin != ADDED or not op or not op.inputs:
                return None
            name, index = op.inputs[0]
        return None

    def producers(self, pair: Pair) -> set[int]:
        """Return the places in the reference of what an operator takes."""
        operator = pair.operator
        if operator.op:
            origins = [self._produced(*taken) for taken in operator.op.inputs]
            return {origin[0] for origin in origins if origin} - {pair.place}
        found: set[int] = set()
        names = {flat(name) for name in operator.originals or [self.reference.outputs[pair.place].op]}
        for name in names:
            for taken in self._inputs_of(name):
                producer, _, output = taken.rpartition(":")
                place = self.reference.place(producer or output, int(output) if producer and output.isdigit() else 0)
                if place is not None and flat(producer or output) not in names:
                    found.add(place)
        return found - {pair.place}

    def _order(self, pair: Pair) -> tuple[int, int, int, bool, int]:
        op, file = pair.operator.op, pair.operator.file
        in_graph = op.order if op else pair.place if self.reference.indexed and not self.ops else 1 << 40
        return in_graph, file.time, file.task, pair.slot == "output", pair.index

    def _without_pair(self, paired: set[int]) -> Iterator[tuple[str, str]]:
        dumped = {flat(name) for operator in self.operators.values() for name in operator.originals or []}
        built = {flat(name) for op in self.ops.values() for name in [op.name, *(op.originals or [])]}
        for place, output in enumerate(self.reference.outputs):
            if place not in paired:
                name = flat(output.op)
                cause = FUSED if name in dumped else NOT_DUMPED if name in built or not self.ops else NOT_ON_DEVICE
                yield f"{output.op}:{output.output}", cause
