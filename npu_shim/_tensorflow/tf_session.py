"""Private parts of TensorFlow's sessions: what a run fetches and is fed, and the config a session reports."""

from __future__ import annotations

import os

import tensorflow as tf
from tensorflow.python.client import session as session_module
from tensorflow.python.training.saver import BulkSaverBuilder as BulkSaverBuilder

from npu_shim._tensorflow import types
from npu_shim._tensorflow.types import ConfigProto, FeedDict, Fetches, Operation, Tensor

BaseSession = session_module.BaseSession
SessionInterface = session_module.SessionInterface
Session = session_module.Session
InteractiveSession = session_module.InteractiveSession
HIDDEN_RUNS = ("make_callable", "_make_callable_from_options", "partial_run_setup")  # methods that run without run()
FUNCTION = type(tf.function(lambda: None))  # the class of tf.functions
# The folder of TensorFlow's own files, with a separator at its end; in TensorFlow 1.15 it is not that of the package
TENSORFLOW_FOLDER = os.path.abspath(session_module.__file__).partition(os.path.join("python", "client"))[0]


def fetched_elements(session: types.Session, fetches: Fetches) -> list[Operation | Tensor]:
    """Return the ops and tensors that ``session.run(fetches)`` asks for, with names and nesting resolved."""
    with session.graph.as_default():
        return session_module._FetchMapper.for_fetch(fetches).unique_fetches()


def fed_values(session: types.Session, feed_dict: FeedDict | None) -> list[tuple[Tensor, object]]:
    """Return the tensors to which a feed_dict gives values, and the values. A sparse tensor has several."""
    fed: list[tuple[Tensor, object]] = []
    for key, value in session_module.nest.flatten_dict_items(feed_dict or {}).items():
        feed = next(feed for kind, _, feed, _ in session_module._REGISTERED_EXPANSIONS if isinstance(key, kind))
        fed += [(session.graph.as_graph_element(part), component) for part, component in feed(key, value)]
    return fed


def raw_session(session: types.Session) -> types.Session:
    """Return the tf.compat.v1.Session inside a monitored session, or the session itself."""
    inside = getattr(session, "_tf_sess", None)
    return inside() if inside is not None else session


def is_remote(session: types.Session) -> bool:
    """Return True if a session runs in another process."""
    return bool(session.sess_str)


def silence_failed_session(session: types.Session) -> None:
    """Let a session whose constructor failed be deleted without a warning."""
    session._session, session._closed, session._default_session = None, True, None


def set_reported_config(session: types.Session, config: ConfigProto) -> None:
    """Make an open session report this config, whatever config TensorFlow was given; other objects do not change."""
    if hasattr(session, "_config"):
        session._config = config


def reported_config(session: types.Session) -> ConfigProto | None:
    """Return the config with which a session was created, or None."""
    return session._config
