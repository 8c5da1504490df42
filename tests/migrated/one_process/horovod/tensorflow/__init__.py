"""The functions of ``horovod.tensorflow`` on one process."""
from __future__ import annotations

from typing import Any, List

import tensorflow.compat.v1 as tf


class Compression:
    """The ways of sending numbers; on one process none is sent."""
    none = 'none'
    fp16 = 'fp16'


class BroadcastGlobalVariablesHook(tf.train.SessionRunHook):
    """Gives every rank the root's variables; here there is nobody to give them to."""

    def __init__(self, root_rank: int, device: str = '') -> None:
        self.root_rank = root_rank


def init() -> None:
    """Starts."""


def rank() -> int:
    """0."""
    return 0


local_rank = rank


def size() -> int:
    """1."""
    return 1


def DistributedOptimizer(optimizer: Any, **_: Any) -> Any:  # the name that scripts use
    """The optimizer itself."""
    return optimizer


def allreduce(tensor: Any, average: bool = True) -> Any:
    """The tensor's value."""
    return tf.identity(tensor)


def allgather(tensor: Any) -> Any:
    """The tensor's value."""
    return tf.identity(tensor)


def broadcast(tensor: Any, root_rank: int) -> Any:
    """The tensor's value."""
    return tf.identity(tensor)


def broadcast_global_variables(root_rank: int) -> Any:
    """An operation that sets each variable to its own value."""
    assigned: List[Any] = [v.assign(tf.identity(v)) for v in tf.global_variables()]
    return tf.group(*assigned)
