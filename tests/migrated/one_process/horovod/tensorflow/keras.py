"""The functions of ``horovod.tensorflow.keras`` on one process."""
from __future__ import annotations

import types

import tensorflow as tf

from horovod.tensorflow import Compression, DistributedOptimizer, init, local_rank, rank, size

__all__ = ['Compression', 'DistributedOptimizer', 'callbacks', 'init', 'local_rank', 'rank', 'size']


class _Broadcast(tf.keras.callbacks.Callback):
    """Gives every rank the root's variables; here there is nobody to give them to."""

    def __init__(self, root_rank: int) -> None:
        super().__init__()
        self.root_rank = root_rank


callbacks = types.SimpleNamespace(BroadcastGlobalVariablesCallback=_Broadcast)
