"""Runs of ops on the CPU as TensorFlow's profilers report them: metadata of sessions, host traces of TensorFlow 2."""

from __future__ import annotations

import pathlib
import re
import tempfile
from typing import ContextManager, Iterator, NamedTuple, Tuple

import tensorflow as tf
from tensorflow.core.framework import types_pb2

from npu_shim._tensorflow.types import JsonObject, Message, Value

ITERATOR = "IteratorGetNext"
Span = Tuple[str, float, float]  # name, begin and end in microseconds
# ops whose own ops have runs of their own, and the ends of functions
_CALLS = re.compile(r"(Stateless)?(Case|If|While)|(Stateful)?PartitionedCall|DatasetToSingleElement|_Arg|_Retval")
_LABEL = re.compile(r".* = (\w+)\((.*)\)", re.DOTALL)  # node = Type(inputs)
_SHAPE = re.compile(r"(\w*)\[([\d,?]*)\]")  # of an input, as in (float[4,4];int32[])
_OP = re.compile(r"[^:]+:\w+")  # name and type
_OWN = "npu_shim "  # begins the names of spans


class OpRun(NamedTuple):
    """A run of an op, a row of the profile's table.

    Attributes:
        name, type: of the op.
        begin, end: in microseconds.
        shapes, types: of its inputs, such as "8,4;4,3" and "FLOAT;FLOAT".
        task: what runs it.
    """

    name: str
    type: str
    begin: float
    end: float
    shapes: str = ""
    types: str = ""
    task: str = "CPU"


def op_runs_of_metadata(metadata: Message) -> list[OpRun]:
    """Return the runs of ops in the metadata of a session's run, in microseconds since 1970."""
    stats = [node for device in metadata.step_stats.dev_stats for node in device.node_stats]
    nodes = [(node, _LABEL.match(node.timeline_label)) for node in stats if node.all_start_nanos]
    outputs = {(node.node_name, output.slot): output.tensor_description for node, _ in nodes for output in node.output}
    runs = []
    for node, label in nodes:
        kind, names = label.groups() if label else ("", "")
        taken = [word.strip().partition(":") for word in names.split(",") if word and word.strip()[:1] != "^"]
        # Collectives wait in such iterators (tf_numpy_function.py). They have rows of their own.
        waits = kind == ITERATOR and "AnonymousIterator" in names
        if kind and not _CALLS.fullmatch(kind) and not waits and node.node_name != "_SOURCE":
            begin, end = node.all_start_nanos / 1e3, (node.all_start_nanos + node.all_end_rel_nanos) / 1e3
            tensors = [outputs.get((name, int(slot or 0))) for name, _, slot in taken]
            shapes = [",".join(str(dim.size) for dim in tensor.shape.dim) if tensor else "" for tensor in tensors]
            types = [types_pb2.DataType.Name(tensor.dtype)[3:] if tensor else "" for tensor in tensors]
            runs.append(
                OpRun(
                    node.node_name, _op_type_without_library_mark(kind), begin, end, ";".join(shapes), ";".join(types)
                )
            )
    return runs


def _op_type_without_library_mark(kind: str) -> str:
    """Return the type of an op without the mark of the library that computes it on the CPU."""
    return re.sub(r"^_(Mkl(Native)?)?", "", kind)


class HostTrace:
    """TensorFlow 2's trace of this process, from start() to stop()."""

    def start(self) -> None:
        """Start.

        Raises:
            RuntimeError: the script profiles itself.
        """
        self._folder = tempfile.TemporaryDirectory(prefix="npu_shim_profile_")
        levels = {"host_tracer_level": 3, "python_tracer_level": 0, "device_tracer_level": 0}
        try:
            tf.profiler.experimental.start(self._folder.name, tf.profiler.experimental.ProfilerOptions(**levels))
        except tf.errors.AlreadyExistsError:
            raise RuntimeError("the script profiles itself. TensorFlow has one profiler: remove the other.") from None

    def span(self, name: str) -> ContextManager[object]:
        """Return a context whose begin and end stop() returns."""
        return tf.profiler.experimental.Trace(_OWN + name)

    def stop(self) -> tuple[list[OpRun], list[Span], list[Span]]:
        """Stop. Return the runs of ops, the spans, and the tracings of tf.functions."""
        try:
            from tensorflow.tsl.profiler.protobuf import xplane_pb2
        except ImportError:  # TF 2.6
            from tensorflow.core.profiler.protobuf import xplane_pb2
        tf.profiler.experimental.stop()
        with self._folder as folder:
            (path,) = pathlib.Path(folder).rglob("*.xplane.pb")
            space = xplane_pb2.XSpace.FromString(path.read_bytes())
        planes = [plane for plane in space.planes if plane.name == "/host:CPU"]
        events = [event for plane in planes for line in plane.lines for event in _events(plane, line)]
        spans = [(event.name[len(_OWN) :], event.begin, event.end) for event in events if event.name.startswith(_OWN)]
        traced = [event for event in events if str(event.stats.get("tf_function_call", "")).startswith("traced")]
        return _op_runs_of_events(events), spans, [(event.name, event.begin, event.end) for event in traced]


class Event(NamedTuple):
    """A call or an op on a thread.

    Attributes:
        thread: its name.
        name: of the event.
        begin, end: in microseconds.
        stats: what is known of it.
        step: the number of the executor's run around it, None for another event.
    """

    thread: str
    name: str
    begin: float
    end: float
    stats: JsonObject
    step: int | None


def _events(plane: Message, line: Message) -> Iterator[Event]:
    """Yield the events of a thread in the order of their begin."""
    around: list[Event] = []
    for event in sorted(line.events, key=lambda raw: (raw.offset_ps, -raw.duration_ps)):
        begin = line.timestamp_ns / 1e3 + event.offset_ps / 1e6
        while around and around[-1].end <= begin:
            around.pop()
        stats = {plane.stat_metadata[stat.metadata_id].name: _stat_value(plane, stat) for stat in event.stats}
        name = plane.event_metadata[event.metadata_id].name
        step = around[-1].stats.get("id") if around and around[-1].name == "ExecutorState::Process" else None
        seen = Event(line.name, name, begin, begin + event.duration_ps / 1e6, stats, step)
        around.append(seen)
        yield seen


def _stat_value(plane: Message, stat: Message) -> Value:
    kind = stat.WhichOneof("value")
    return plane.stat_metadata[stat.ref_value].name if kind == "ref_value" else getattr(stat, kind or "str_value")


def _op_runs_of_events(events: list[Event]) -> list[OpRun]:
    """Return the runs of ops in a trace, without those inside of datasets."""
    functions = [event for event in events if event.name.startswith("InstantiatedCapturedFunction")]
    others = {None, *(event.stats.get("id") for event in functions)}  # runs of datasets' functions
    runs = []
    for event in events:
        if event.name == "IteratorGetNextOp::DoCompute":
            runs.append(OpRun(ITERATOR, ITERATOR, event.begin, event.end))
        elif event.name.startswith("EagerLocalExecute: "):
            kind = event.name.partition(" ")[2]
            if kind != ITERATOR and not kind.startswith("__"):  # the call of a tf.function
                runs.append(OpRun(kind, kind, event.begin, event.end))
        elif _OP.fullmatch(event.name) and event.step not in others and not event.thread.startswith("tf_data_"):
            name, _, kind = event.name.rpartition(":")
            if not _CALLS.fullmatch(kind) and kind != ITERATOR:
                inputs = _SHAPE.findall(event.stats.get("shape", ""))
                shapes = ";".join(shape.replace("?", "-1") for _, shape in inputs)
                types = ";".join(dtype.upper() for dtype, _ in inputs)
                runs.append(OpRun(name, _op_type_without_library_mark(kind), event.begin, event.end, shapes, types))
    return runs
