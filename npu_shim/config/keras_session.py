"""The session of graph-mode Keras, with the NPU config."""

from __future__ import annotations

import warnings
from typing import Any

from npu_shim import _tf, _tf_session
from npu_shim.config.graph_passes import for_this_device
from npu_shim.config.session import session_config


def set_keras_session_npu_config(config: _tf.ConfigProto | None = None) -> _tf_session.Session:
    """Makes a session with the NPU config on the default graph and hands it to Keras.

    Call it before the first model is built, in the script that trains.

    Args:
        config: a ConfigProto to start from, or None.
    Returns:
        The tf.compat.v1.Session; the user closes it (``close_session(sess)``).
    Raises:
        TypeError: config is no ConfigProto.
        RuntimeError: this Keras has no sessions (Keras 3, TF 2.16 and later).
    """
    backend = _backend("set_keras_session_npu_config")
    if _tf.tf.executing_eagerly():
        warnings.warn(
            "set_keras_session_npu_config has no effect while executing eagerly, because Keras then uses no session: "
            "call tf.compat.v1.disable_eager_execution() at the start of the script.",
            RuntimeWarning,
            stacklevel=2,
        )
    config = session_config(config)
    sess = _tf.v1.Session(config=for_this_device(config))
    _tf_session.set_reported_config(sess, config)
    backend.set_session(sess)
    return sess


def npu_clear_session(config: _tf.ConfigProto | None = None) -> None:
    """Clears the Keras state and its graph, then gives Keras a new session with the NPU config.

    Args:
        config: a ConfigProto to start from, or None.
    Raises:
        TypeError: config is no ConfigProto.
        RuntimeError: this Keras has no sessions (Keras 3, TF 2.16 and later).
    """
    new_config = session_config(config)
    _backend("npu_clear_session").clear_session()
    set_keras_session_npu_config(new_config)


def close_session(sess: _tf_session.Session) -> None:
    """Closes a session (``sess.close()``)."""
    sess.close()


def _backend(name: str) -> Any:
    if not _tf.has_keras_sessions():
        raise RuntimeError(
            f"{name} needs Keras sessions, which the Keras 3 of TensorFlow {_tf.tf.__version__} does not have; the "
            f"last TensorFlow that has them is {_tf.LAST_TF_WITH_ESTIMATOR}. Install "
            f"tensorflow=={_tf.LAST_TF_WITH_ESTIMATOR}.*, or train with tf.compat.v1.Session."
        )
    return _tf.keras_backend()
