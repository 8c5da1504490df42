"""The Keras callback that gives every rank the root's variables."""

from __future__ import annotations

from typing import Any, Sequence

from npu_shim import _device, _env, _tf
from npu_shim.distributed.ranks import check_root
from npu_shim.distributed.world import world_size
from npu_shim.training.broadcasting import NPUBroadcastGlobalVariablesHook, broadcast_global_variables


@_device.on_card("npu_bridge.estimator.npu.npu_callbacks")
class NPUBroadcastGlobalVariablesCallback(_tf.tf.keras.callbacks.Callback):
    """Gives every rank the root's variables once, when training begins.

    Of a model that is built by its first batch, they are given after that batch.
    On one process there is nobody to give them to, so it does nothing.

    Args:
        root_rank: whose variables count.
    Raises:
        ValueError: in on_train_begin(), the job has no such rank.
    """

    def __init__(self, root_rank: int) -> None:
        super().__init__()
        self._root_rank = root_rank
        self._done = False

    def on_train_begin(self, logs: Any | None = None) -> None:
        """Gives the variables that are there."""
        check_root(self._root_rank, "NPUBroadcastGlobalVariablesCallback")
        if self._done or world_size() == 1:
            self._done = True
        elif not _tf.tf.executing_eagerly():
            session = _tf.keras_backend().get_session()  # which initialises what is not initialised yet
            with session.graph.as_default():
                session.run(broadcast_global_variables(self._root_rank))
            self._done = True
        elif self.model.variables:
            self._give()

    def on_train_batch_end(self, batch: int, logs: Any | None = None) -> None:
        """Gives the variables of a model that its first batch has built."""
        if not self._done:
            self._give()

    def _give(self) -> None:
        from npu_shim.distributed import hccl_ops

        kept = self.model.optimizer.variables
        hccl_ops.broadcast(self.model.variables + list(kept() if callable(kept) else kept), self._root_rank)
        self._done = True


def npu_hooks_append(hooks_list: Sequence[Any] = ()) -> list[Any]:
    """A new list: the hooks, and a broadcast hook with root 0.

    Args:
        hooks_list: a list or tuple of hooks, or None; it is not changed.
    Returns:
        A list.
    Raises:
        TypeError: hooks_list is something else.
    """
    return _listed(hooks_list, "hooks_list") + [NPUBroadcastGlobalVariablesHook(0, _env.read().rank_id)]


def npu_callbacks_append(callbacks_list: Sequence[Any] = ()) -> list[Any]:
    """A new list: the callbacks, and a broadcast callback with root 0.

    Args:
        callbacks_list: a list or tuple of Keras callbacks, or None; it is not changed.
    Returns:
        A list.
    Raises:
        TypeError: callbacks_list is something else.
    """
    return _listed(callbacks_list, "callbacks_list") + [NPUBroadcastGlobalVariablesCallback(0)]


def _listed(given: Any, name: str) -> list[Any]:
    if given is None:
        return []
    if not isinstance(given, (list, tuple)):
        raise TypeError(f"{name}={given!r} is {type(given).__name__}, but must be a list or tuple: write [{name}].")
    return list(given)
