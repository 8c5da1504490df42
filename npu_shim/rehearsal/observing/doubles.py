"""Tensors of float64 in graphs: which of those that the tool asks about belong together, and what else they meet."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Iterator

from npu_shim._tensorflow import script_frames, tf_api, tf_graph, tf_recording
from npu_shim._tensorflow.op_types import PYTHON_CALLS
from npu_shim.rehearsal.observing.sizes import note_type_and_place

if TYPE_CHECKING:
    from convert_tf2npu.api import Seen

    from npu_shim._tensorflow.types import Graph, Operation, Tensor, Value

tf = tf_api.tf
_FOLLOWS = frozenset({"Const", "RestoreV2", "Restore"})  # their type is that of their user
# Files of TensorFlow that make ops with the type of a variable: initial values, optimizers and their slots.
_OF_VARIABLES = ("optimizer", "slot_creator", "moving_averages", "variable", "init_ops")


def note_dtype(seen: Seen, value: Value) -> Value:
    """Note type and place of a value; of float64 in a graph see Doubles.end."""
    note_type_and_place(seen, value)
    if isinstance(value, (tf.Tensor, tf.Variable)) and value.dtype.base_dtype == tf.float64:
        if not tf.executing_eagerly() and tf_graph.is_in_plain_graph():
            doubles_of_run().remember_double(seen, value)
        else:
            seen.note("mixed", True)
    return value


@functools.lru_cache()
def doubles_of_run() -> Doubles:
    """Return the values of float64 in the graphs of this run."""
    return Doubles()


class Doubles:
    """The seeds of a run: values of float64 that the tool asks about, by graph."""

    def __init__(self) -> None:
        self._seeds: dict[Graph, list[tuple[Seen, Operation]]] = {}

    def remember_double(self, seen: Seen, value: Value) -> None:
        """Remember a tensor or a variable of float64 in a graph."""
        self._seeds.setdefault(value.graph, []).append((seen, value.op))

    def note_connected_regions(self) -> None:
        """Note of each seed the number of its ``region``, and ``mixed``, if that has float64 of other origin.

        A region has all ops that float64 connects, also through variables.
        """
        number = 0
        for seeds in self._seeds.values():
            own = {op for _, seed in seeds for op in _double_ops_of_call(seed)}
            known: dict[Operation, tuple[int, bool]] = {}
            for seen, op in seeds:
                if op not in known:
                    region = list(_connected_double_ops(op))
                    mixed = any(_is_of_other_origin(member, own) for member in region)
                    members = set(region)
                    files = {
                        tf_recording.creation_line_of_op(seed).rpartition(":")[0]
                        for _, seed in seeds
                        if seed in members
                    }
                    mixed = mixed or len(files) > 1
                    known.update(dict.fromkeys(region, (number, mixed)))
                    number += 1
                seen.note("region", known[op][0])
                seen.note("mixed", known[op][1])


def _double_ops_of_call(seed: Operation) -> Iterator[Operation]:
    """Yield a seed and the ops of float64 that its own call made before it."""
    waiting, visited, line = [seed], {seed}, tf_recording.creation_line_of_op(seed)
    while waiting:
        op = waiting.pop()
        yield op
        for other in (tensor.op for tensor in op.inputs if _is_double(tensor)):
            if other not in visited and tf_recording.creation_line_of_op(other) == line:
                visited.add(other)
                waiting.append(other)


def _connected_double_ops(seed: Operation) -> Iterator[Operation]:
    """Yield the ops that are connected to one by float64."""
    waiting, visited = [seed], {seed}
    while waiting:
        op = waiting.pop()
        yield op
        outputs = [consumer for tensor in op.outputs if _is_double(tensor) for consumer in tensor.consumers()]
        for other in [*outputs, *(tensor.op for tensor in op.inputs if _is_double(tensor))]:
            if other not in visited:
                visited.add(other)
                waiting.append(other)


def _is_double(tensor: Tensor) -> bool:
    """Return True for a tensor of float64, and for the handle of such a variable."""
    is_handle = tensor.op.type == "VarHandleOp" and tensor.op.get_attr("dtype") == tf.float64
    return is_handle or tensor.dtype.base_dtype == tf.float64


def _is_of_other_origin(op: Operation, seed_ops: set[Operation]) -> bool:
    """Return True for an op whose float64 does not come from the seeds, or whose use of it is unknown."""
    if op.type in PYTHON_CALLS or any(attribute.HasField("func") for attribute in op.node_def.attr.values()):
        return True
    makes = any(map(_is_double, op.outputs)) and not any(map(_is_double, op.inputs))
    return makes and op.type not in _FOLLOWS and op not in seed_ops and not _is_of_variable(op)


def _is_of_variable(op: Operation) -> bool:
    """Return True for what an optimizer makes for variables, of their type."""
    files = [frame[0] for frame in op.traceback or () if frame[0].startswith(script_frames.LIBRARIES[0])]
    return any(word in name for name in files for word in _OF_VARIABLES)
