"""Start and stop the device by hand, and read the ranks."""

from __future__ import annotations

from npu_shim._host import host_device
from npu_shim._tensorflow import tf_api
from npu_shim._tensorflow.types import ConfigProto, Operation, Session
from npu_shim.config.session import session_config
from npu_shim.distributed import ranks
from npu_shim.ops.system import initialize_system, shutdown_system


def init_resource(config: ConfigProto | None = None) -> tuple[Session, Operation]:
    """Start the device and the collectives, so that the ranks are known before training begins.

    On the NPU, this runs the vendor's start op. On the CPU, there is nothing to start. Both ops are in the default
    graph, so that later ops have the same random seeds on the NPU and on the CPU; in eager mode they are in a graph of
    their own.

    Args:
        config: a ConfigProto to start from, or None.
    Returns:
        (session, shutdown op), for shutdown_resource.
    Raises:
        TypeError: if config is not a ConfigProto.
        ValueError: if the rank variables contradict each other.
    """
    graph = tf_api.tf.Graph() if tf_api.tf.executing_eagerly() else tf_api.v1.get_default_graph()
    with graph.as_default():
        start, stop = initialize_system(), shutdown_system()
    sess = tf_api.v1.Session(graph=graph, config=session_config(config))
    sess.run(start)
    vendors_util = host_device.find_vendor_module("npu_bridge.estimator.npu.util")
    if vendors_util is not None:
        vendors_util.global_dict_init()
        for function in (get_npu_rank_id, get_npu_local_rank_id, get_npu_rank_size, get_npu_local_rank_size):
            vendors_util.set_value(function.__name__[len("get_") :], function())
    return sess, stop


def shutdown_resource(sess: Session, npu_shutdown: Operation) -> None:
    """Stop the device and the collectives that init_resource started.

    Args:
        sess, npu_shutdown: the results of init_resource. The session stays open; close it with close_session(sess).
    """
    sess.run(npu_shutdown)


def get_npu_rank_id() -> int:
    """Return this process's rank; 0 on one process."""
    return ranks.get_rank_id()


def get_npu_local_rank_id() -> int:
    """Return this process's local rank; 0 on one process."""
    return ranks.get_local_rank_id()


def get_npu_rank_size() -> int:
    """Return the number of ranks; 1 on one process."""
    return ranks.get_rank_size()


def get_npu_local_rank_size() -> int:
    """Return the number of ranks on this server; 1 on one process."""
    return ranks.get_local_rank_size()
