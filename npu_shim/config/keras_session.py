"""Sessions with the NPU config for graph-mode Keras."""

from __future__ import annotations

import warnings
from types import ModuleType

from npu_shim._tensorflow import tf_api, tf_session
from npu_shim._tensorflow.types import ConfigProto, Session
from npu_shim.config.graph_passes import config_for_this_device
from npu_shim.config.session import session_config


def set_keras_session_npu_config(config: ConfigProto | None = None) -> Session:
    """Create a session with the NPU config on the default graph and set it as the Keras session.

    Call this before you build the first model.

    Args:
        config: a ConfigProto to start from, or None.
    Returns:
        The tf.compat.v1.Session. Close it with ``close_session(sess)``.
    Raises:
        TypeError: if config is not a ConfigProto.
        RuntimeError: if Keras has no sessions (Keras 3, TF 2.16 and later).
    """
    backend = _backend_with_sessions("set_keras_session_npu_config")
    if tf_api.tf.executing_eagerly():
        warnings.warn(
            "set_keras_session_npu_config has no effect in eager mode. "
            "Call tf.compat.v1.disable_eager_execution() at the start of the script.",
            RuntimeWarning,
            stacklevel=2,
        )
    config = session_config(config)
    sess = tf_api.v1.Session(config=config_for_this_device(config))
    tf_session.set_reported_config(sess, config)
    backend.set_session(sess)
    return sess


def npu_clear_session(config: ConfigProto | None = None) -> None:
    """Clear the Keras state and graph, then set a new Keras session with the NPU config.

    Args:
        config: a ConfigProto to start from, or None.
    Raises:
        TypeError: if config is not a ConfigProto.
        RuntimeError: if Keras has no sessions (Keras 3, TF 2.16 and later).
    """
    new_config = session_config(config)
    _backend_with_sessions("npu_clear_session").clear_session()
    set_keras_session_npu_config(new_config)


def close_session(sess: Session) -> None:
    """Close a session (``sess.close()``)."""
    sess.close()


def _backend_with_sessions(caller: str) -> ModuleType:
    if not tf_api.has_keras_sessions():
        raise RuntimeError(
            f"{caller} needs Keras sessions, which the Keras 3 of TensorFlow {tf_api.tf.__version__} does not have. "
            f"Install tensorflow=={tf_api.LAST_TF_WITH_ESTIMATOR}.*, the last version with them, "
            "or train with tf.compat.v1.Session."
        )
    return tf_api.keras_backend()
