"""Broadcast of the root rank's variables to all ranks: as an op and as a session hook."""

from __future__ import annotations

from npu_shim._tensorflow import tf_api
from npu_shim._tensorflow.types import Operation, Session
from npu_shim.distributed.ranks import check_rank_exists
from npu_shim.distributed.world import world_size

tf = tf_api.tf


def broadcast_global_variables(root_rank: int) -> Operation:
    """Return an op that sets the default graph's global variables to those of the root rank.

    Args:
        root_rank: the rank whose variables are sent.
    Returns:
        An op. In a graph without variables it does nothing.
    """
    from npu_shim.distributed import hccl_ops

    variables = tf_api.v1.global_variables()
    return tf.group(*hccl_ops.broadcast(variables, root_rank)) if variables else tf.group()


class NPUBroadcastGlobalVariablesHook(tf_api.SessionRunHook):
    """Broadcast the root rank's variables in each new session, after they are initialized or restored.

    All global variables are broadcast, including the global step and the statistics of batch normalization. A rank
    with another step or other statistics would diverge. On one process the hook does nothing.

    Args:
        root_rank: the rank whose variables are sent.
        index: this process's rank; unused, as in the vendor's class.
    Raises:
        ValueError: in begin(), if the job has no such rank.
    """

    def __init__(self, root_rank: int | None = None, index: int | None = None) -> None:
        self._root_rank = 0 if root_rank is None else root_rank
        self._broadcast: Operation | None = None

    def begin(self) -> None:
        """Create the op before the graph is finalized."""
        check_rank_exists(self._root_rank, "NPUBroadcastGlobalVariablesHook")
        self._broadcast = broadcast_global_variables(self._root_rank) if world_size() > 1 else None

    def after_create_session(self, session: Session, coord: object) -> None:
        """Broadcast the variables in the new session."""
        if self._broadcast is not None:
            session.run(self._broadcast)
