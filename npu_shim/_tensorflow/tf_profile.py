"""Runs of ops on the CPU as TensorFlow's profilers report them: metadata of sessions, host traces of TensorFlow 2."""

from __future__ import annotations

import collections
import glob
import os
import re
import tempfile
from typing import TYPE_CHECKING, Iterator, NamedTuple

import tensorflow as tf

try:
    from tensorflow.tsl.profiler.protobuf import xplane_pb2 as _xplane
except ImportError:
    try:
        from tensorflow.core.profiler.protobuf import xplane_pb2 as _xplane
    except ImportError:  # TF 1.15, which has none
        _xplane = None

if TYPE_CHECKING:
    from npu_shim._tensorflow.types import JsonObject, Message, Value

ITERATOR = "IteratorGetNext"
_CALLS = frozenset(  # types of ops whose own ops have runs of their own, and the ends of functions
    "Case DatasetToSingleElement If PartitionedCall RemoteCall StatefulPartitionedCall StatelessCase StatelessIf "
    "StatelessWhile While _Arg _Retval".split()
)
_LABEL = re.compile(r".* = (\w+)\((.*)\)", re.DOTALL)  # node = Type(inputs)
_SHAPE = re.compile(r"(\w*)\[([\d,?]*)\]$")
_FUNCTION = "__"  # begins the name of an op that calls a tf.function
_PIPELINE = "tf_data_"  # begins the names of threads of datasets


class OpRun(NamedTuple):
    """A run of an op.

    Attributes:
        name, type: of the op.
        begin, end: in microseconds.
        inputs, outputs: type and shape of each, such as ("float32", "8,4"); None if they are unknown.
        task: what runs it.
    """

    name: str
    type: str
    begin: float
    end: float
    inputs: list[tuple[str, str]] | None = None
    outputs: list[tuple[str, str]] | None = None
    task: str = "CPU"


def runs_in(metadata: Message) -> list[OpRun]:
    """Return the runs of ops in the metadata of a session's run, in microseconds since 1970."""
    nodes = [
        (node, _LABEL.match(node.timeline_label))
        for device in metadata.step_stats.dev_stats
        for node in device.node_stats
        if node.all_start_nanos
    ]
    # Collectives wait in such iterators (tf_numpy_function.py). They have rows of their own.
    anonymous = {node.node_name for node, label in nodes if label and label.group(1).startswith("AnonymousIterator")}
    outputs = {(node.node_name, each.slot): _described(each) for node, _ in nodes for each in node.output}
    found = []
    for node, label in nodes:
        kind, names = label.groups() if label else ("", "")
        taken = [each.strip().partition(":") for each in names.split(",") if each and each.strip()[:1] != "^"]
        waits = kind == ITERATOR and any(name in anonymous for name, _, _ in taken)
        if kind and kind not in _CALLS and not waits and node.node_name != "_SOURCE":
            begin, end = node.all_start_nanos / 1e3, (node.all_start_nanos + node.all_end_rel_nanos) / 1e3
            inputs = [outputs.get((name, int(slot or 0)), ("", "")) for name, _, slot in taken]
            described = [_described(each) for each in node.output]
            found.append(OpRun(node.node_name, _plain_type(kind), begin, end, inputs, described))
    return found


def _described(output: Message) -> tuple[str, str]:
    described = output.tensor_description
    shape = ",".join(str(each.size) for each in described.shape.dim)
    return (tf.as_dtype(described.dtype).name if described.dtype else ""), shape


def _plain_type(kind: str) -> str:
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
        options = tf.profiler.experimental.ProfilerOptions(
            host_tracer_level=3, python_tracer_level=0, device_tracer_level=0
        )
        try:
            tf.profiler.experimental.start(self._folder.name, options)
        except tf.errors.AlreadyExistsError:
            raise RuntimeError(
                "the script profiles itself, and TensorFlow has one profiler. Give other --profile-steps, or remove it."
            ) from None

    @staticmethod
    def mark(name: str) -> None:
        """Mark a moment."""
        with tf.profiler.experimental.Trace(name):
            pass

    def stop(self) -> list[Event]:
        """Stop. Return what the threads did, one after the other."""
        tf.profiler.experimental.stop()
        with self._folder as folder:
            (path,) = glob.glob(os.path.join(folder, "**", "*.xplane.pb"), recursive=True)
            space = _xplane.XSpace()
            with open(path, "rb") as stream:
                space.ParseFromString(stream.read())
        planes = [plane for plane in space.planes if plane.name == "/host:CPU"]
        return [event for plane in planes for line in plane.lines for event in _events(plane, line)]


class Event(NamedTuple):
    """A call or an op on a thread.

    Attributes:
        thread: its name.
        name: of the event.
        begin, end: in microseconds.
        stats: what is known of it.
        around: the events around it, the outermost first.
    """

    thread: str
    name: str
    begin: float
    end: float
    stats: JsonObject
    around: tuple[Event, ...]


def _events(plane: Message, line: Message) -> Iterator[Event]:
    """Yield the events of a thread in the order of their begin."""
    around: list[Event] = []
    for event in sorted(line.events, key=lambda each: (each.offset_ps, -each.duration_ps)):
        begin = line.timestamp_ns / 1e3 + event.offset_ps / 1e6
        while around and around[-1].end <= begin:
            around.pop()
        stats = {plane.stat_metadata[each.metadata_id].name: _value(plane, each) for each in event.stats}
        name = plane.event_metadata[event.metadata_id].name
        made = Event(line.name, name, begin, begin + event.duration_ps / 1e6, stats, tuple(around))
        around.append(made)
        yield made


def _value(plane: Message, stat: Message) -> Value:
    kind = stat.WhichOneof("value")
    return plane.stat_metadata[stat.ref_value].name if kind == "ref_value" else getattr(stat, kind or "str_value")


def runs_of(events: list[Event]) -> list[OpRun]:
    """Return the runs of ops in a trace, without those inside of datasets, in the order of their begin."""
    of_datasets = {event.stats.get("id") for event in events if event.name.startswith("InstantiatedCapturedFunction")}
    done = collections.defaultdict(list)  # when the asynchronous ops ended
    for event in events:
        if event.name == "ExecutorState::ProcessAsync::Done":
            done[event.stats.get("name"), event.stats.get("step_id")].append(event.begin)
    found = []
    for event in events:
        if event.name == "IteratorGetNextOp::DoCompute":
            found.append(OpRun(ITERATOR, ITERATOR, event.begin, event.end))
        elif event.name.startswith("EagerLocalExecute: "):
            kind = event.name.partition(" ")[2]
            if kind != ITERATOR and not kind.startswith(_FUNCTION):
                found.append(OpRun(kind, kind, event.begin, event.end))
        elif re.search(r"^[^:]+:\w+$", event.name) and not event.thread.startswith(_PIPELINE):
            name, _, kind = event.name.rpartition(":")
            outer = {each.name for each in event.around}
            step = next((each.stats["id"] for each in reversed(event.around) if "id" in each.stats), None)
            is_inside = any(each.startswith("ExecutorState::Process") for each in outer) and step not in of_datasets
            if is_inside and "EagerKernelExecute" not in outer | {name} and kind not in _CALLS | {ITERATOR}:
                end = next((each for each in done[name, step] if each >= event.begin), 0.0)
                inputs = _shapes(event.stats.get("shape"))
                found.append(OpRun(name, _plain_type(kind), event.begin, max(event.end, end), inputs))
    return sorted(found, key=lambda each: each.begin)


def _shapes(text: str | None) -> list[tuple[str, str]] | None:
    """Return what ``(float[4,4];int32[])`` says; None if there is nothing."""
    if not text or text == "()":
        return None
    parts = [_SHAPE.match(part) for part in text.strip("()").split(";")]
    return [(part.group(1), part.group(2).replace("?", "-1")) if part else ("", "") for part in parts]


def tracings(events: list[Event]) -> list[tuple[str, float, float]]:
    """Return name, begin and end of the tf.functions that were traced."""
    traced = [event for event in events if str(event.stats.get("tf_function_call", "")).startswith("traced")]
    return [(event.name, event.begin, event.end) for event in traced]
