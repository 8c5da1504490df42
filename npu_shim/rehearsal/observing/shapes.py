"""Shapes of arrays, and of what is fed to placeholders."""

from __future__ import annotations

from typing import TYPE_CHECKING, Iterable

import numpy as np

from npu_shim._tensorflow import tf_api, tf_session
from npu_shim._tensorflow.types import CallableOptions, FeedDict, Fetches, Function, Result, Session, Value
from npu_shim.rehearsal.recording import methods

if TYPE_CHECKING:
    from convert_tf2npu.api import Seen

tf = tf_api.tf
_SEEN = "npu_shim_placeholders"  # attribute of a graph: the notes by the name of a placeholder
_FED = "_npu_shim_fed"  # attribute of a session: the first shapes by what a run fetches and feeds, and the placeholder


def note_shape(seen: Seen, value: Value) -> Value:
    """Note the shape of a value as ``shape``, of a placeholder that of what it is fed, and a number as ``number``.

    A placeholder ``changes`` if runs that fetch and feed the same tensors, which the NPU compiles as one graph, feed it
    several shapes, or if something feeds it whose shapes are not seen. A list of several may have ``arrays``. Of an
    iterator of images, the shape is their number, ``batch`` the size of a full batch, and ``mixed`` if it shuffles.
    """
    if isinstance(value, tf.SparseTensor):
        note_shape(seen, value.values)
    elif isinstance(value, tf.Tensor) and hasattr(value, "graph") and not tf.executing_eagerly():
        placeholders: dict[str, Seen] = getattr(value.graph, _SEEN, None) or {}
        placeholders[value.name] = seen
        setattr(value.graph, _SEEN, placeholders)
    elif hasattr(value, "shape") and None not in tuple(value.shape):
        seen.note("shape", _shape_of(value))
    elif isinstance(value, (int, float)):
        seen.note("number", value)
    elif isinstance(value, (list, tuple)):
        seen.note("shape", (len(value),))
        seen.note("arrays", any(bool(getattr(part, "shape", ())) for part in value[:1]))
    elif tf.executing_eagerly() and isinstance(value, tf.keras.preprocessing.image.Iterator):
        seen.note("shape", (int(value.n),))
        seen.note("batch", int(value.batch_size))
        seen.note("mixed", bool(value.shuffle))
    return value


def watch_feeds() -> None:
    """Watch what sessions are fed."""

    def run(
        original: Function,
        session: Session,
        fetches: Fetches,
        feed_dict: FeedDict | None = None,
        *args: object,
        **kwargs: object,
    ) -> Result:
        placeholders = getattr(session.graph, _SEEN, None)
        if placeholders and feed_dict:
            fed = tf_session.fed_values(session, feed_dict)
            fetched = sorted(element.name for element in tf_session.fetched_elements(session, fetches))
            graph = (*fetched, "", *sorted(tensor.name for tensor, _ in fed))
            first: dict[tuple[str, ...], tuple[int, ...]] = session.__dict__.setdefault(_FED, {})
            for tensor, value in fed:
                if tensor.name in placeholders:
                    shape = _shape_of(value)
                    placeholders[tensor.name].note("shape", shape)
                    is_new = first.setdefault((tensor.name, *graph), shape) != shape
                    placeholders[tensor.name].note("changes", is_new)
        return original(session, fetches, feed_dict, *args, **kwargs)

    methods.wrap_methods(tf_session.BaseSession, ("run",), run)
    methods.wrap_methods(tf_session.BaseSession, ("_make_callable_from_options",), _note_feeds_of_callable)
    methods.wrap_methods(tf_session.BaseSession, ("partial_run_setup",), _note_feeds_of_partial_run)


def _note_feeds_of_callable(
    original: Function, session: Session, options: CallableOptions, *args: object, **kwargs: object
) -> Result:
    """Note the placeholders that a function of Keras feeds."""
    _note_unseen_feeds(session, options.feed)
    return original(session, options, *args, **kwargs)


def _note_feeds_of_partial_run(
    original: Function, session: Session, fetches: Fetches, feeds: Fetches | None = None
) -> Result:
    _note_unseen_feeds(session, [feed if isinstance(feed, str) else feed.name for feed in tf.nest.flatten(feeds or ())])
    return original(session, fetches, feeds)


def _note_unseen_feeds(session: Session, names: Iterable[str]) -> None:
    placeholders: dict[str, Seen] = getattr(session.graph, _SEEN, None) or {}
    for name in placeholders.keys() & set(names):
        placeholders[name].note("changes", True)


def _shape_of(value: Value) -> tuple[int, ...]:
    shape = getattr(value, "shape", None)
    return tuple(int(size) for size in (np.shape(value) if shape is None else shape))
