"""Outputs and inputs of the device's operators, each paired with the output of TensorFlow that it stands for.

An output stands for the op that its dump names; else for the one that the graph of the engine names for it; else for
one of the ops that its operator was made from: a fused operator returns what no other of them takes. An operator
without all these has the name of its op. An input is what its producer returns; operators that the engine adds, like
TransData and Cast, are passed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Iterable, Sequence, Tuple

from npu_shim.dumps.dump import DumpData, Tensor
from npu_shim.dumps.files import name_in_files
from npu_shim.dumps.graph_files import GraphOp, Output
from npu_shim.dumps.reference import Reference

Origin = Tuple[int, str]  # the place in the reference and the layout of what an output stands for
_MOST_PASSED = 8  # added operators between two
_SLICE = re.compile("_lxslice([0-9]+)")
_SUBGRAPH = re.compile("^.*sgt_graph_[0-9]+_(?=.)")  # in front of names of operators in slices
ADDED = "added by the engine"
NO_ORIGINAL = "original op unknown"
NOT_IN_REFERENCE = "original op not in the reference"
FUSED = "inside a fused operator"
NOT_DUMPED = "not dumped"
NOT_ON_DEVICE = "not on the device"


@dataclass
class Pair:
    """A tensor of the device and the output of the reference.

    Attributes:
        operator: of the device.
        slot: "output" or "input".
        index: of the output or input.
        place: of the output in the reference.
        layout: in the original graph; empty if unknown.
    """

    operator: DumpData
    slot: str
    index: int
    tensor: Tensor
    place: int
    layout: str


class Pairing:
    """Pairs the operators of a step with a reference."""

    def __init__(self, dumps: Iterable[DumpData], ops: dict[str, GraphOp], reference: Reference) -> None:
        self.reference, self.ops = reference, ops
        self.order = {op.name: place for place, op in enumerate(ops.values())}
        slices: dict[str, dict[int, DumpData]] = {}
        for data in dumps:
            part, name = _SLICE.search(data.op_name), _SUBGRAPH.sub("", _SLICE.sub("", data.op_name))
            data = replace(data, op_name=name, op=ops.get(name_in_files(name)) or ops.get(data.file.op_name))
            of_operator = slices.setdefault(name_in_files(data.name), {})
            of_operator[int(part[1]) if part else data.file.thread] = data  # the last of several counts
        self.operators = {name: _join_slices([of[place] for place in sorted(of)]) for name, of in slices.items()}

    def pair_outputs_and_list_unpaired(self) -> tuple[list[Pair], list[tuple[str, str, str]]]:
        """Return the pairs in the order of the graph, and the side, cause and name of what has none."""
        pairs: list[Pair] = []
        without = []
        for operator in self.operators.values():
            origins = [self.origin_of_output(operator.name, index) for index in range(len(operator.outputs))]
            outputs = _pairs_with_origins(operator, "output", operator.outputs, origins)
            pairs += outputs
            if origins and not outputs:
                without.append(("device", str(origins[0]), operator.name))
            taken: Sequence[Origin | str | None] = ()
            if operator.op:
                taken = [self._origin_behind_added(*producer) for producer in operator.op.inputs]
            elif outputs and len(operator.originals or ()) < 2:  # else the order of its inputs is not known
                taken = self.origins_of_inputs(outputs[0])
            pairs += _pairs_with_origins(operator, "input", operator.inputs, taken)
        pairs.sort(key=self._sort_key)
        return pairs, without + self._unpaired_outputs({pair.place for pair in pairs if pair.slot == "output"})

    def origin_of_output(self, name: str, index: int) -> Origin | str:
        """Return what an operator's output stands for, or why it has no pair."""
        operator, op = self.operators.get(name_in_files(name)), self.ops.get(name_in_files(name))
        named = op.outputs[index] if op and index < len(op.outputs) else Output()
        tensor = operator.outputs[index] if operator and index < len(operator.outputs) else Tensor()
        originals = operator.originals if operator else op.originals if op else None
        asked = [(name, index)] if self.reference.tensors else []
        for wanted, output in ((tensor.original, tensor.original_output), (named.name, named.output)):
            asked += [(wanted, index if output < 0 else output)] if wanted else []
        asked += [] if asked else self._outputs_returned(originals or [], index, tensor)
        asked += [(name, index)] if originals is None else []
        for output_of in asked:
            place = self.reference.position_of_output(*output_of)
            if place is not None:
                return place, named.layout
        if originals == [] and not tensor.original and not named.name:
            return ADDED
        return NO_ORIGINAL if originals is None and not tensor.original else NOT_IN_REFERENCE

    def _outputs_returned(self, originals: Sequence[str], index: int, tensor: Tensor) -> list[tuple[str, int]]:
        """Return the outputs that an operator made from these ops may return, the likeliest first."""
        if len(originals) < 2:
            return [(name, index) for name in originals]
        known = [name for name in originals if self.reference.position_of_output(name, 0) is not None]
        taken = {name_in_files(of.rpartition(":")[0] or of) for name in known for of in self._inputs_of(name)}
        last = [name for name in known if name_in_files(name) not in taken] or known
        likely = sorted(
            (self._fits_shape(name, tensor), place == index, place, name) for place, name in enumerate(last)
        )
        return [(name, 0) for *_, name in reversed(likely)]

    def _inputs_of(self, name: str) -> list[str]:
        place = self.reference.position_of_output(name, 0)
        return [] if place is None else self.reference.outputs[place].inputs

    def _fits_shape(self, name: str, tensor: Tensor) -> bool:
        try:
            return (
                not tensor.shape
                or self.reference.load_output(self.reference.position_of_output(name, 0) or 0).shape
                == tensor.original_shape
            )
        except ValueError:
            return True

    def origins_of_inputs(self, pair: Pair) -> list[Origin | None]:
        """Return what the ops of a pair take in TensorFlow, in their order; None for what is not known."""
        names = pair.operator.originals or [self.reference.outputs[pair.place].op]
        inside = set(map(name_in_files, names))
        places = [self.reference.position_of_name(of) for name in names for of in self._inputs_of(name)]
        return [
            None if at is None or name_in_files(self.reference.outputs[at].op) in inside else (at, "") for at in places
        ]

    def _origin_behind_added(self, name: str, index: int) -> Origin | str:
        for _ in range(_MOST_PASSED):
            origin, op = self.origin_of_output(name, index), self.ops.get(name_in_files(name))
            if origin != ADDED or not op or not op.inputs:
                break
            name, index = op.inputs[0]
        return origin

    def _sort_key(self, pair: Pair) -> tuple[int, int, int, bool, int]:
        file, last = pair.operator.file, pair.place if self.reference.indexed and not self.ops else 1 << 40
        return self.order.get(pair.operator.name, last), file.time, file.task, pair.slot == "output", pair.index

    def _unpaired_outputs(self, paired: set[int]) -> list[tuple[str, str, str]]:
        dumped = {name_in_files(name) for operator in self.operators.values() for name in operator.originals or []}
        built = {name_in_files(name) for op in self.ops.values() for name in [op.name, *(op.originals or [])]}
        unpaired = []
        for place, output in enumerate(self.reference.outputs):
            if place not in paired:
                name = name_in_files(output.op)
                cause = FUSED if name in dumped else NOT_DUMPED if name in built or not self.ops else NOT_ON_DEVICE
                unpaired.append(("reference", cause, f"{output.op}:{output.output}"))
        return unpaired


def _pairs_with_origins(
    operator: DumpData, slot: str, tensors: Sequence[Tensor], origins: Sequence[Origin | str | None]
) -> list[Pair]:
    both = enumerate(zip(tensors, origins))
    return [Pair(operator, slot, index, tensor, *at) for index, (tensor, at) in both if isinstance(at, tuple)]


def _join_slices(slices: list[DumpData]) -> DumpData:
    """Return an operator with what its slices return; what these take is left out."""
    if len(slices) == 1:
        return slices[0]
    outputs = [replace(parts[0], parts=list(parts)) for parts in zip(*(data.outputs for data in slices))]
    return replace(slices[0], outputs=outputs, inputs=[])
