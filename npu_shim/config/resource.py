"""Starting and stopping the device by hand, and the ranks one gets from it."""

from __future__ import annotations

from typing import Any

from npu_shim import _tf, _tf_session
from npu_shim.config.session import session_config
from npu_shim.distributed import ranks
from npu_shim.ops.system import initialize_system, shutdown_system


def init_resource(config: _tf.ConfigProto | None = None) -> tuple[_tf_session.Session, Any]:
    """Starts the device and the collectives, so that ranks can be asked for before training begins.

    On the card the vendor's start op runs; on the CPU there is nothing to start.

    Args:
        config: a ConfigProto to start from, or None.
    Returns:
        (session, shutdown op), for shutdown_resource.
    Raises:
        TypeError: config is no ConfigProto.
        ValueError: the rank variables contradict each other.
    """
    graph = _tf.tf.Graph()
    with graph.as_default():
        start, stop = initialize_system(), shutdown_system()
    sess = _tf.v1.Session(graph=graph, config=session_config(config))
    sess.run(start)
    return sess, stop


def shutdown_resource(sess: _tf_session.Session, npu_shutdown: Any) -> None:
    """Stops what init_resource started.

    Args:
        sess, npu_shutdown: what init_resource returned. The session stays open; close_session(sess) closes it.
    """
    sess.run(npu_shutdown)


def get_npu_rank_id() -> int:
    """This process's rank; 0 on one process."""
    return ranks.get_rank_id()


def get_npu_local_rank_id() -> int:
    """This process's rank on its server; 0 on one process."""
    return ranks.get_local_rank_id()


def get_npu_rank_size() -> int:
    """Number of ranks; 1 on one process."""
    return ranks.get_rank_size()


def get_npu_local_rank_size() -> int:
    """Number of ranks on this server; 1 on one process."""
    return ranks.get_local_rank_size()
