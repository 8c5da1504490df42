"""The Keras callback that gives every rank the root's variables."""
from __future__ import annotations

from typing import Any, List, Optional, Sequence

from npu_shim import _device, _env, _tf
from npu_shim.distributed.ranks import check_root, require_single_process
from npu_shim.estimator.hooks import NPUBroadcastGlobalVariablesHook


@_device.on_card("npu_bridge.estimator.npu.npu_callbacks")
class NPUBroadcastGlobalVariablesCallback(_tf.tf.keras.callbacks.Callback):
    """Gives every rank the root's variables before the first batch.

    On one process there is nobody to give them to, so it does nothing; on a card
    the vendor's callback does it. With several ranks without cards it raises
    RuntimeError: that is not part of this release.

    Args:
        root_rank: whose variables count.
    """

    def __init__(self, root_rank: int) -> None:
        super().__init__()
        self._root_rank = root_rank

    def on_train_begin(self, logs: Optional[Any] = None) -> None:
        """Checks that there is nobody to give variables to."""
        require_single_process("NPUBroadcastGlobalVariablesCallback")
        check_root(self._root_rank, "NPUBroadcastGlobalVariablesCallback")


def npu_hooks_append(hooks_list: Sequence[Any] = ()) -> List[Any]:
    """A new list: the hooks, and a broadcast hook with root 0.

    Args:
        hooks_list: a list or tuple of hooks, or None; it is not changed.
    Returns:
        A list.
    Raises:
        TypeError: hooks_list is something else.
    """
    return _listed(hooks_list, "hooks_list") + [NPUBroadcastGlobalVariablesHook(0, _env.read().rank_id)]


def npu_callbacks_append(callbacks_list: Sequence[Any] = ()) -> List[Any]:
    """A new list: the callbacks, and a broadcast callback with root 0.

    Args:
        callbacks_list: a list or tuple of Keras callbacks, or None; it is not changed.
    Returns:
        A list.
    Raises:
        TypeError: callbacks_list is something else.
    """
    return _listed(callbacks_list, "callbacks_list") + [NPUBroadcastGlobalVariablesCallback(0)]


def _listed(given: Any, name: str) -> List[Any]:
    if given is None:
        return []
    if not isinstance(given, (list, tuple)):
        raise TypeError(f"{name}={given!r} is {type(given).__name__}, but must be a list or tuple: write [{name}].")
    return list(given)
