"""Tensors of float64 in graphs: which of those that the tool asks about belong together, and what else they meet."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Iterator

from npu_shim._tensorflow import tf_api, tf_data, tf_recording, tf_session
from npu_shim._tensorflow.op_types import PYTHON_CALLS
from npu_shim.rehearsal.observing.double_values import ADDITIONS, OPTIMIZER, exceeds_float32, is_called_by_files
from npu_shim.rehearsal.observing.eager_doubles import EagerDoubles
from npu_shim.rehearsal.observing.sizes import note_type_and_place
from npu_shim.rehearsal.recording import methods
from npu_shim.rehearsal.recording.saved_graphs import SCOPE, add_note

if TYPE_CHECKING:
    from convert_tf2npu.api import Seen

    from npu_shim._tensorflow.types import FeedDict, Fetches, Function, Graph, Operation, Result, Session, Tensor, Value

tf = tf_api.tf
_FOLLOWS = frozenset({"Const", "RestoreV2", "Restore"})  # their type is that of their user
_VARIABLE_READS = frozenset({"Identity", "ReadVariableOp", "Enter", "Switch", "RefSwitch", "RefEnter"})


def note_dtype(seen: Seen, value: Value) -> Value:
    """Note type and place of a value; of float64 on the NPU see Doubles.note_connected_regions."""
    note_type_and_place(seen, value)
    if not isinstance(value, (tf.Tensor, tf.Variable)) or value.dtype.base_dtype != tf.float64:
        return value
    doubles = doubles_of_run()
    if tf_data.is_tracing_dataset_function():
        seen.note("mixed", True)
    elif tf.executing_eagerly():
        doubles.eager.remember(seen, value)
    elif tf_recording.is_of_graph(value):
        doubles.remember_double(seen, value)
        return _with_note_of_large_integers(seen, value)
    else:
        seen.note("mixed", True)
    return value


def _with_note_of_large_integers(seen: Seen, value: Value) -> Value:
    """Return a tensor that notes as ``large`` when it is made of integers that float32 cannot hold."""
    source = value.op.inputs[0] if value.op.type == "Cast" else None
    if source is None or not source.dtype.is_integer or source.dtype.size < 4:
        return value

    def note(is_large: Value) -> None:
        seen.note("large", bool(is_large))

    with tf.name_scope(SCOPE):
        is_large = tf.reduce_any(tf.greater_equal(tf.abs(tf.cast(source, tf.float32)), 2.0**24))
        with tf.control_dependencies([add_note(note, [is_large], [])]):
            return tf.identity(value)


@functools.lru_cache()
def doubles_of_run() -> Doubles:
    """Return the values of float64 of this run."""
    return Doubles()


class Doubles:
    """The seeds of a run: values of float64 that the tool asks about, by graph, and those of eager code."""

    def __init__(self) -> None:
        self._seeds: dict[Graph, list[tuple[Seen, Operation]]] = {}
        self.eager = EagerDoubles()

    def remember_double(self, seen: Seen, value: Value) -> None:
        """Remember a tensor or a variable of float64 in a graph."""
        self._seeds.setdefault(value.graph, []).append((seen, value.op))

    def watch_feeds(self) -> None:
        """Watch the values that sessions feed to placeholders of float64."""

        def run(
            original: Function,
            session: Session,
            fetches: Fetches,
            feed_dict: FeedDict | None = None,
            *args: object,
            **kwargs: object,
        ) -> Result:
            seeds = {op: seen for seen, op in self._seeds.get(session.graph, ()) if op.type.startswith("Placeholder")}
            for tensor, value in tf_session.fed_values(session, feed_dict) if seeds and feed_dict else ():
                if tensor.op in seeds:
                    seeds[tensor.op].note("large", exceeds_float32(value))
            return original(session, fetches, feed_dict, *args, **kwargs)

        methods.wrap_methods(tf_session.BaseSession, ("run",), run)

    def note_connected_regions(self) -> None:
        """Note of each seed the number of its ``region``, and what there is in that.

        A region has all ops that float64 connects, also through variables. It is ``mixed``, if it has float64 of other
        origin, ``sums``, if something other than an optimizer adds to a variable of it, and ``large``, if it has
        constants that float32 cannot hold.
        """
        number = self.eager.note_regions()
        for seeds in self._seeds.values():
            own = {op for _, seed in seeds for op in _double_ops_of_call(seed)}
            known: dict[Operation, tuple[int, bool, bool, bool]] = {}
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
                    sums, large = any(map(_is_sum, region)), any(map(_is_large_constant, region))
                    known.update(dict.fromkeys(region, (number, mixed, sums, large)))
                    number += 1
                for name, fact in zip(("region", "mixed", "sums", "large"), known[op]):
                    seen.note(name, fact)


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
    if any(result.op is op for result in getattr(op.graph, "outputs", ())):  # of a function, whose caller is unknown
        return True
    makes = any(map(_is_double, op.outputs)) and not any(map(_is_double, op.inputs))
    return makes and op.type not in _FOLLOWS and op not in seed_ops and not _follows_user(op)


def _follows_user(op: Operation) -> bool:
    """Return True for what an optimizer or a tape makes, of the type of its user."""
    return is_called_by_files(_files_of(op))


def _is_sum(op: Operation) -> bool:
    """Return True for an op that adds to a variable of float64, unless an optimizer makes it."""
    if op.type in ADDITIONS:
        adds = True
    elif op.type in ("Assign", "AssignVariableOp"):
        added = op.inputs[1].op
        adds = added.type in ("Add", "AddV2") and _variable_of(op.inputs[0]) in map(_variable_of, added.inputs)
    else:
        return False
    return adds and not is_called_by_files(_files_of(op), (OPTIMIZER,))


def _files_of(op: Operation) -> Iterator[str]:
    """Yield the files that have made an op, the innermost first."""
    return (frame[0] for frame in reversed(list(op.traceback or ())))


def _variable_of(tensor: Tensor) -> Operation:
    """Return the op of the variable that a tensor reads, or that of the tensor."""
    op = tensor.op
    while op.type in _VARIABLE_READS:
        op = op.inputs[0].op
    return op


def _is_large_constant(op: Operation) -> bool:
    return op.type == "Const" and _is_double(op.outputs[0]) and exceeds_float32(tf.make_ndarray(op.get_attr("value")))
