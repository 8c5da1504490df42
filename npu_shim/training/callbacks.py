"""The Keras callback that broadcasts the root rank's variables."""

from __future__ import annotations

from typing import Sequence, TypeVar

from npu_shim._host import host_device, host_env
from npu_shim._tensorflow import tf_api
from npu_shim._tensorflow.types import KerasCallback, SessionRunHook
from npu_shim.distributed.ranks import check_rank_exists
from npu_shim.distributed.world import world_size
from npu_shim.training.broadcasting import NPUBroadcastGlobalVariablesHook, broadcast_global_variables

T = TypeVar("T")


class BroadcastGlobalVariablesCallbackImpl:
    """A part of a callback of graph-mode Keras: broadcast all variables before the first batch.

    On one process it does nothing.

    Args:
        root_rank: the rank whose variables are sent.
        *args: arguments of the other base class.
    """

    def __init__(self, root_rank: int, *args: object) -> None:
        super().__init__(*args)
        self.root_rank = root_rank
        self.broadcast_done = False

    def on_batch_begin(self, batch: int, logs: dict[str, float] | None = None) -> None:
        """Broadcast the variables once."""
        if not self.broadcast_done and world_size() > 1:
            check_rank_exists(self.root_rank, type(self).__name__)
            _broadcast_in_session(self.root_rank)
        self.broadcast_done = True


class NPUBroadcastGlobalVariablesCallback(tf_api.tf.keras.callbacks.Callback):
    """Broadcast the root rank's variables to all ranks once, when training begins.

    For a model that its first batch builds, the broadcast follows that batch.
    On one process it does nothing.

    Args:
        root_rank: the rank whose variables are sent.
    Raises:
        ValueError: in on_train_begin(), if the job has no such rank.
    """

    def __init__(self, root_rank: int) -> None:
        super().__init__()
        self._root_rank = root_rank
        self._done = False

    def on_train_begin(self, logs: dict[str, float] | None = None) -> None:
        """Broadcast the variables that exist."""
        check_rank_exists(self._root_rank, "NPUBroadcastGlobalVariablesCallback")
        if self._done or world_size() == 1:
            self._done = True
        elif not tf_api.tf.executing_eagerly():
            _broadcast_in_session(self._root_rank)
            self._done = True
        elif self.model.variables:
            self._broadcast_variables()

    def on_train_batch_end(self, batch: int, logs: dict[str, float] | None = None) -> None:
        """Broadcast the variables of a model that its first batch has built."""
        if not self._done:
            self._broadcast_variables()

    def _broadcast_variables(self) -> None:
        from npu_shim.distributed import hccl_ops

        slots = self.model.optimizer.variables  # a method before Keras 2.11
        hccl_ops.broadcast(self.model.variables + list(slots() if callable(slots) else slots), self._root_rank)
        self._done = True


def _broadcast_in_session(root_rank: int) -> None:
    session = tf_api.keras_backend().get_session()  # also initializes uninitialized variables
    with session.graph.as_default():
        session.run(broadcast_global_variables(root_rank))


def npu_hooks_append(hooks_list: Sequence[SessionRunHook] = ()) -> list[SessionRunHook]:
    """Return a new list: the hooks, and a broadcast hook with root 0.

    Args:
        hooks_list: a list or tuple of hooks, or None; it does not change.
    Returns:
        A list.
    Raises:
        TypeError: if hooks_list is something else.
    """
    return copy_as_list(hooks_list, "hooks_list") + [
        host_device.vendor_object_or(NPUBroadcastGlobalVariablesHook, "npu_bridge.estimator.npu.npu_hook")(
            0, host_env.read_environment().rank_id
        )
    ]


def npu_callbacks_append(callbacks_list: Sequence[KerasCallback] = ()) -> list[KerasCallback]:
    """Return a new list: the callbacks, and a broadcast callback with root 0.

    Args:
        callbacks_list: a list or tuple of Keras callbacks, or None; it does not change.
    Returns:
        A list.
    Raises:
        TypeError: if callbacks_list is something else.
    """
    return copy_as_list(callbacks_list, "callbacks_list") + [
        host_device.vendor_object_or(NPUBroadcastGlobalVariablesCallback, "npu_bridge.estimator.npu.npu_callbacks")(0)
    ]


def copy_as_list(values: Sequence[T] | None, argument: str) -> list[T]:
    """Return a list of the hooks or callbacks in an argument; raise TypeError if it is no list or tuple."""
    if values is None:
        return []
    if not isinstance(values, (list, tuple)):
        raise TypeError(
            f"{argument}={values!r} is {type(values).__name__}, but must be a list or tuple: write [{argument}]."
        )
    return list(values)
