"""Tells when shapes change from run to run: the card compiles a graph for each combination it sees."""

from __future__ import annotations

import atexit
import collections
import functools
import os
import sys
import traceback
from typing import Any, Callable, Counter, NamedTuple, Tuple

import numpy as np

from npu_shim import _patches, _tf, _tf_session

tf = _tf.tf

_SHOWN = 4  # shapes of one source in the summary
_OWN = tuple(
    os.path.dirname(os.path.abspath(module.__file__ or "")) + os.sep for module in (tf, sys.modules["npu_shim"])
)
Shape = Tuple[int, ...]


class _Source(NamedTuple):
    """What gives shapes: the placeholders of one kind of run, or an iterator."""

    graph: Any
    kind: str
    names: tuple[str, ...]


class ShapeWatch:
    """Counts the distinct shapes that sessions are fed and that iterators yield.

    Placeholders are counted by the set that is fed together, iterators by
    ``get_next``; tensors whose static shape is fully known are passed over.
    Steps inside a loop in the graph are seen by their last one. What runs
    through ``session.make_callable``, as Keras does, is not seen.
    """

    def __init__(self) -> None:
        self._seen: dict[_Source, Counter[tuple[Shape, ...]]] = collections.defaultdict(collections.Counter)
        self._where: dict[_Source, str] = {}
        self._watched: dict[Any, list[Any]] = {}

    def changes(self) -> list[tuple[str, dict[tuple[Shape, ...], int]]]:
        """What changed its shapes: pairs of a text that names it and the counts of its shapes."""
        return [(_told(source), dict(counts)) for source, counts in self._seen.items() if len(counts) > 1]

    def summary(self) -> str:
        """The counts as text; empty where no shape changed."""
        changed = [source for source, counts in self._seen.items() if len(counts) > 1]
        lines = []
        for source in changed:
            counts = self._seen[source].most_common()
            shown = ", ".join(
                f"{_shapes(shapes)} {count:,} {'time' if count == 1 else 'times'}" for shapes, count in counts[:_SHOWN]
            )
            more = f" and {len(counts) - _SHOWN:,} more" if len(counts) > _SHOWN else ""
            lines.append(f"  {_told(source)}: {len(counts):,} shapes: {shown}{more} ({self._where[source]})")
        if not lines:
            return ""
        compiled = sum(len(self._seen[source]) for source in changed)
        return "\n".join([f"npu_shim: shapes that change; a card would compile {compiled:,} graphs for them:"] + lines)

    def run(
        self, session: Any, run: Callable[..., Any], fetches: Any, feed_dict: Any, options: Any, metadata: Any
    ) -> Any:
        """Does ``run`` for a session, and looks at its shapes."""
        watched = self._iterators(session, fetches)
        values = run(
            session, {"user": fetches, "watched": watched} if watched else fetches, feed_dict, options, metadata
        )
        if feed_dict:
            self._see_fed(session, feed_dict)
        if not watched:
            return values
        for outputs, got in zip(watched, values["watched"]):
            self._see(_Source(session.graph, "iterator", (outputs[0].op.name,)), tuple(_shape(v) for v in got))
        return values["user"]

    def _see_fed(self, session: Any, feed_dict: Any) -> None:
        fed = {}
        for key, value in feed_dict.items():
            tensor = session.graph.as_graph_element(tf.compat.as_str(key)) if isinstance(key, (str, bytes)) else key
            if isinstance(tensor, tf.Tensor) and not tensor.shape.is_fully_defined():
                fed[tensor.name] = _shape(value)
        if fed:
            names = tuple(sorted(fed))
            self._see(_Source(session.graph, "fed", names), tuple(fed[name] for name in names))

    def _iterators(self, session: Any, fetches: Any) -> list[list[Any]]:
        """The outputs of the iterators behind some fetches whose shapes are not known."""
        asked = [
            one if isinstance(one, tf.Operation) else one.op for one in _tf_session.fetched_elements(session, fetches)
        ]
        key = (session.graph, tuple(op.name for op in asked))
        if key not in self._watched:
            found = [op for op in _ancestors(asked) if op.type in ("IteratorGetNext", "IteratorGetNextSync")]
            self._watched[key] = [list(op.outputs) for op in found if session.graph.is_fetchable(op) and _is_open(op)]
        return self._watched[key]

    def _see(self, source: _Source, shapes: tuple[Shape, ...]) -> None:
        counts = self._seen[source]
        counts[shapes] += 1
        if source not in self._where:
            self._where[source] = _users_line()
        elif len(counts) == 2 and counts[shapes] == 1:
            before = next(iter(counts))
            _tf.logging.warning(
                "npu_shim: %s: %s gives %s after %s. A card would compile the graph again for each new shape; give it a "
                "fixed one (batch(n, drop_remainder=True), npu_shim.data). Said once; all shapes are counted.",
                _users_line(),
                _told(source),
                _shapes(shapes),
                _shapes(before),
            )


def watch_shapes(summary_at_exit: bool = True) -> ShapeWatch:
    """Begins to watch the shapes of all sessions, until npu_shim.uninstall().

    The first change of each source is a warning that names the line of the
    user's script; a summary with all counts is logged when the process ends.
    Values, fetches and errors of ``session.run`` stay as they are. It is on
    under ``npu-shim run``.

    Args:
        summary_at_exit: log the summary when the process ends.
    Returns:
        The watch, which can be asked for its counts.
    """
    watch = ShapeWatch()

    def watched(original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def run(self: Any, fetches: Any, feed_dict: Any = None, options: Any = None, run_metadata: Any = None) -> Any:
            return watch.run(self, original, fetches, feed_dict, options, run_metadata)

        return run

    _patches.replace_attribute(_tf_session.BaseSession, "run", watched)
    if summary_at_exit:
        atexit.register(_log_summary, watch)
    return watch


def _log_summary(watch: ShapeWatch) -> None:
    text = watch.summary()
    if text:
        _tf.logging.warning("%s", text)


def _is_open(op: Any) -> bool:
    """Whether an iterator's shapes may change, and its values can be fetched."""
    return any(not output.shape.is_fully_defined() for output in op.outputs) and not any(
        output.dtype in (tf.variant, tf.resource) for output in op.outputs
    )


def _ancestors(ops: list[Any]) -> list[Any]:
    found: dict[Any, None] = {}
    waiting = list(ops)
    while waiting:
        op = waiting.pop()
        if op not in found:
            found[op] = None
            waiting += [tensor.op for tensor in op.inputs] + list(op.control_inputs)
    return list(found)


def _shape(value: Any) -> Shape:
    if isinstance(value, (_tf.v1.SparseTensorValue)):
        return tuple(int(n) for n in value.dense_shape)
    shape = getattr(value, "shape", None)
    return tuple(shape) if shape is not None else np.shape(value)


def _shapes(shapes: tuple[Shape, ...]) -> str:
    return ", ".join(str(list(shape)) for shape in shapes)


def _told(source: _Source) -> str:
    if source.kind == "fed":
        return f"what is fed to {', '.join(name.rpartition(':')[0] for name in source.names)}"
    return f"the iterator {source.names[0]}"


def _users_line() -> str:
    """The innermost line outside TensorFlow and this package."""
    for frame in reversed(traceback.extract_stack()):
        if not os.path.abspath(frame.filename).startswith(_OWN):
            return f"{frame.filename}:{frame.lineno}"
    return "an unknown line"
