"""Report shapes that change from run to run: the NPU recompiles a graph for each combination of shapes."""

from __future__ import annotations

import atexit
import collections
import functools
import os
from typing import Counter, NamedTuple, Tuple

import numpy as np

from npu_shim._tensorflow import patches, script_frames, tf_api, tf_data, tf_graph, tf_session
from npu_shim._tensorflow.types import (
    FeedDict,
    Fetches,
    Function,
    Graph,
    Operation,
    Result,
    Session,
    Tensor,
    TensorShape,
    Value,
)
from npu_shim.config import parameter_map
from npu_shim.data.drop_watch import DropWatch, with_counted_drops
from npu_shim.data.fit_watch import FitWatch
from npu_shim.data.pipeline_resources import pipeline_resources
from npu_shim.data.reading_call import ITERATOR, KERAS_MODULES, ReadingCall
from npu_shim.data.retrace_watch import RetraceWatch

tf = tf_api.tf

_MAX_SHAPES_SHOWN = 4  # of one source, in the summary
_WATCH = "npu_shim_watch"  # attribute of the run that a watch puts in the place of a session's
Shape = Tuple[int, ...]


class _Source(NamedTuple):
    """A source of shapes: the placeholders that are fed together, or an iterator."""

    graph: Graph
    kind: str
    names: tuple[str, ...]

    def __str__(self) -> str:
        if self.kind == "fed":
            return f"the feed of {', '.join(name.rpartition(':')[0] for name in self.names)}"
        return f"the iterator {self.names[0]}"


class ShapeWatch:
    """Count the distinct shapes that sessions are fed and that iterators return.

    Placeholders are counted by the set that is fed together, iterators by
    ``get_next``. Tensors with a static shape are not counted. Of the steps
    inside a loop in the graph, only the last one is counted. Runs through
    ``session.make_callable``, as in Keras, are not counted. In TensorFlow 2
    the traces of tf.functions and the batches of Keras training are counted,
    too; see RetraceWatch and FitWatch.
    """

    def __init__(self) -> None:
        self.functions = RetraceWatch()
        self.training = FitWatch()
        self.drops = DropWatch()
        self._counts: dict[_Source, Counter[tuple[Shape, ...]]] = collections.defaultdict(collections.Counter)
        self._lines: dict[_Source, str] = {}
        self._reported: set[Operation] = set()
        self._iterator_outputs: dict[tuple[Graph, tuple[str, ...]], list[list[Tensor]]] = {}

    def changes(self) -> list[tuple[str, dict[TensorShape, int]]]:
        """Return the sources whose shapes changed, the functions that were traced again, and the calls of Keras' fit.

        Returns:
            Pairs of a name and the count of each shape or signature.
        """
        changed: list[tuple[str, dict[TensorShape, int]]] = [
            (str(source), dict(counts)) for source, counts in self._counts.items() if len(counts) > 1
        ]
        return changed + self.functions.changes() + self.training.changes()

    def summary(self) -> str:
        """Return the counts as text, or an empty string if no shape changed."""
        changed = [source for source, counts in self._counts.items() if len(counts) > 1]
        lines = []
        for source in changed:
            counts = self._counts[source].most_common()
            shown = ", ".join(
                f"{_shapes_text(shapes)} {count:,} {'time' if count == 1 else 'times'}"
                for shapes, count in counts[:_MAX_SHAPES_SHOWN]
            )
            hidden = len(counts) - _MAX_SHAPES_SHOWN
            more = f" and {hidden:,} more" if hidden > 0 else ""
            lines.append(f"  {source}: {len(counts):,} shapes: {shown}{more} ({self._lines[source]})")
        if lines:
            compiled = sum(len(self._counts[source]) for source in changed)
            lines.insert(0, f"npu_shim: dynamic shapes. The NPU would compile {compiled:,} graphs for them:")
        return "\n".join(lines + [text for text in (self.functions.summary(), self.training.summary()) if text])

    def run(
        self,
        session: Session,
        run: Function,
        fetches: Fetches,
        feed_dict: FeedDict | None,
        options: object,
        metadata: object,
    ) -> Result:
        """Call ``run`` for a session, and count its shapes. Return the fetched values."""
        iterators = self._dynamic_iterator_outputs(session, fetches)
        fetched = {"user": fetches, "iterators": iterators} if iterators else fetches
        values = run(session, fetched, feed_dict, options, metadata)
        if feed_dict:
            self._count_fed(session, feed_dict)
        if not iterators:
            return values
        for outputs, arrays in zip(iterators, values["iterators"]):
            op = outputs[0].op
            self._count_shapes_and_warn(
                _Source(session.graph, "iterator", (op.name,)), tuple(_shape_of_value(a) for a in arrays), op
            )
        return values["user"]

    def _count_fed(self, session: Session, feed_dict: FeedDict) -> None:
        shapes, ops = {}, {}
        for tensor, value in tf_session.fed_values(session, feed_dict):
            if not tensor.shape.is_fully_defined():
                shapes[tensor.name], ops[tensor.name] = _shape_of_value(value), tensor.op
        if shapes:
            names = tuple(sorted(shapes))
            self._count_shapes_and_warn(
                _Source(session.graph, "fed", names), tuple(shapes[name] for name in names), ops[names[0]]
            )

    def _dynamic_iterator_outputs(self, session: Session, fetches: Fetches) -> list[list[Tensor]]:
        """Return the outputs of the iterators behind the fetches whose shapes are not static."""
        elements = tf_session.fetched_elements(session, fetches)
        ops = [element if isinstance(element, tf.Operation) else element.op for element in elements]
        key = (session.graph, tuple(op.name for op in ops))
        if key not in self._iterator_outputs:
            self._check_pipeline(session, ops)
            iterator_ops = [
                op for op in tf_graph.ops_with_ancestors(ops) if op.type in ("IteratorGetNext", "IteratorGetNextSync")
            ]
            self._iterator_outputs[key] = [
                list(op.outputs) for op in iterator_ops if session.graph.is_fetchable(op) and _has_dynamic_outputs(op)
            ]
        return self._iterator_outputs[key]

    def _check_pipeline(self, session: Session, ops: list[Operation]) -> None:
        """Report the variables and tables that datasets of a run read on the host, each once."""
        entry = parameter_map.find_entry(tf_session.reported_config(session))
        mixed = entry is not None and parameter_map.read_options(entry).get("mix_compile_mode") is True
        for op, reason in pipeline_resources(tf_graph.ops_with_ancestors(ops), mixed).items():
            if op not in self._reported:
                self._reported.add(op)
                tf_api.logging.warning(f"npu_shim: {_creation_line_text(op)}: {op.name}: {reason}. Reported once.")

    def _count_shapes_and_warn(self, source: _Source, shapes: tuple[Shape, ...], op: Operation) -> None:
        counts = self._counts[source]
        counts[shapes] += 1
        if source not in self._lines:
            self._lines[source] = _creation_line_text(op)
        elif len(counts) == 2 and counts[shapes] == 1:
            before = next(iter(counts))
            tf_api.logging.warning(
                f"npu_shim: {self._lines[source]}: the shape of {source} changed from {_shapes_text(before)} to "
                f"{_shapes_text(shapes)}, and the NPU recompiles for each new shape. Use static shapes: "
                f"batch(n, drop_remainder=True), npu_shim.data.{_control_flow_advice_text(op.graph)} Reported once."
            )


def watch_shapes(summary_at_exit: bool = True) -> ShapeWatch:
    """Watch the shapes of sessions and Keras training, and the traces of tf.functions, until npu_shim.uninstall().

    The first change of each source is logged as a warning, with the line that
    defines the placeholder, iterator or function. Values, fetches and errors of
    ``session.run`` do not change. ``npu-shim run`` watches by default.

    Args:
        summary_at_exit: log a summary with all counts when the process ends.
    Returns:
        The ShapeWatch with the counts. A second call returns that of the first.
    """
    running: ShapeWatch | None = getattr(tf_session.BaseSession.run, _WATCH, None)
    if running:
        return running
    watch = ShapeWatch()

    def watched(original: Function) -> Function:
        @functools.wraps(original)
        def run(
            self: Session,
            fetches: Fetches,
            feed_dict: FeedDict | None = None,
            options: object = None,
            run_metadata: object = None,
        ) -> Result:
            return watch.run(self, original, fetches, feed_dict, options, run_metadata)

        setattr(run, _WATCH, watch)
        return run

    def counted_function_call(original: Function) -> Function:
        @functools.wraps(original)
        def call(self: Value, *args: object, **kwargs: object) -> Result:
            # A function that exec has defined has None as its module.
            if (getattr(self.python_function, "__module__", None) or "").startswith(KERAS_MODULES):
                watch.training.count_call((args, kwargs))
            return watch.functions.call_and_count(self, original, args, kwargs)

        return call

    def checked_and_counted_iter(original: Function) -> Function:
        @functools.wraps(original)
        def __iter__(self: Value) -> Result:
            if tf.executing_eagerly():
                watch.drops.check(self)
            return watch.training.count_and_iterate(self, original)

        return __iter__

    def checked_iterator_maker(original: Function) -> Function:
        @functools.wraps(original)
        def make(self: Value, *args: object, **kwargs: object) -> Result:
            frame = next(script_frames.running_frames(), None)
            if frame is not None:
                watch.drops.check(self, ReadingCall(ITERATOR, f"{frame.f_code.co_filename}:{frame.f_lineno}"))
            return original(self, *args, **kwargs)

        return make

    patches.replace_attribute(tf_session.BaseSession, "run", watched)
    for name in tf_data.ITERATOR_MAKERS:
        patches.replace_attribute(tf.compat.v1.data.Dataset, name, checked_iterator_maker)
    if not tf.__version__.startswith("1."):
        patches.replace_attribute(tf_session.FUNCTION, "__call__", counted_function_call)
        patches.replace_attribute(tf.compat.v2.data.Dataset, "__iter__", checked_and_counted_iter)
        for name in ("batch", "padded_batch"):
            patches.replace_attribute(tf.compat.v2.data.Dataset, name, with_counted_drops)
    if summary_at_exit:
        atexit.register(_log_summary, watch)
    return watch


def _log_summary(watch: ShapeWatch) -> None:
    text = watch.summary()
    if text:
        tf_api.logging.warning("%s", text)


def _control_flow_advice_text(graph: Graph) -> str:
    """Return what loops and conditions of TensorFlow 1 in a graph with dynamic shapes need."""
    if not any(op.type in tf_graph.OLD_CONTROL_FLOW for op in graph.get_operations()):
        return ""
    return (
        " Loops and conditions of TensorFlow 1 in it fail then: call tf.enable_control_flow_v2() and "
        "tf.enable_resource_variables() after the import."
    )


def _has_dynamic_outputs(op: Operation) -> bool:
    """Return True if the shapes of an iterator may change and its values can be fetched."""
    return any(not output.shape.is_fully_defined() for output in op.outputs) and not any(
        output.dtype in (tf.variant, tf.resource) for output in op.outputs
    )


def _shape_of_value(value: Value) -> Shape:
    if isinstance(value, (tf_api.v1.SparseTensorValue)):
        return tuple(int(n) for n in value.dense_shape)
    shape = getattr(value, "shape", None)
    return tuple(shape) if shape is not None else np.shape(value)


def _shapes_text(shapes: tuple[Shape, ...]) -> str:
    return ", ".join(str(list(shape)) for shape in shapes)


def _creation_line_text(op: Operation) -> str:
    """Return the innermost line outside TensorFlow and this package that created an op; TensorFlow records it."""
    for frame in reversed(list(op.traceback)):
        path, line = frame[0], frame[1]
        if script_frames.is_starter_of_script(path):
            break
        if not os.path.abspath(path).startswith(script_frames.LIBRARIES):
            return f"{path}:{line}"
    return "an unknown line"
