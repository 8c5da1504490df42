"""The broadcast of all variables: as an op and as a session hook."""

from __future__ import annotations

from npu_shim._tensorflow import tf_api
from npu_shim._tensorflow.tf_api import tf
from npu_shim._tensorflow.types import Operation, Session
from npu_shim.horovod.tensorflow.functions import broadcast_variables
from npu_shim.horovod.tensorflow.util import _executing_eagerly


def broadcast_global_variables(root_rank: int) -> Operation:
    """Return an op that sets the default graph's global variables to those of one rank.

    Args:
        root_rank: the rank whose variables are sent.
    Raises:
        RuntimeError: in eager mode, where there are no global variables.
    """
    if _executing_eagerly():
        raise RuntimeError(
            "hvd.broadcast_global_variables() does not support eager execution. Use hvd.broadcast_variables(variables, "
            "root_rank=0) with the variables of the model and of the optimizer."
        )
    return broadcast_variables(tf_api.v1.global_variables(), root_rank)


class BroadcastGlobalVariablesHook(tf_api.SessionRunHook):
    """Broadcast all global variables in each new session, after they are initialized or restored.

    Args:
        root_rank: the rank whose variables are sent.
        device: unused: the device of the variables.
    """

    def __init__(self, root_rank: int, device: str = "") -> None:
        super().__init__()
        self.root_rank, self.device = root_rank, device
        self.bcast_op: Operation | None = None

    def begin(self) -> None:
        """Create the op before the graph is finalized."""
        if self.bcast_op is None or self.bcast_op.graph is not tf_api.v1.get_default_graph():
            with tf.device(self.device):
                self.bcast_op = broadcast_global_variables(self.root_rank)

    def after_create_session(self, session: Session, coord: object) -> None:
        """Broadcast the variables in the new session."""
        session.run(self.bcast_op)


__all__ = ["BroadcastGlobalVariablesHook", "broadcast_global_variables"]
