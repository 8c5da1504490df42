"""Ranks and sizes as ops."""

from __future__ import annotations

from npu_shim._tensorflow.tf_api import tf
from npu_shim._tensorflow.types import Tensor
from npu_shim.horovod.common import process_sets as sets
from npu_shim.horovod.common.basics import basics


def size_op(process_set_id: int = 0, name: str | None = None) -> Tensor:
    """Return the number of ranks in a process set as an int32 scalar."""
    basics.size()
    return tf.constant(len(sets.process_set_by_id(process_set_id).ranks), tf.int32, name=name or "HorovodSize")


def process_set_included_op(process_set_id: int = 0, name: str | None = None) -> Tensor:
    """Return 1 if this process is in a process set, else 0, as an int32 scalar."""
    included = basics.rank() in sets.process_set_by_id(process_set_id).ranks
    return tf.constant(int(included), tf.int32, name=name or "HorovodProcessSetIncluded")


def rank_op(name: str | None = None) -> Tensor:
    """Return the rank of this process as an int32 scalar."""
    return tf.constant(basics.rank(), tf.int32, name=name or "HorovodRank")


def local_rank_op(name: str | None = None) -> Tensor:
    """Return the number of this process among the ranks of its host as an int32 scalar."""
    return tf.constant(basics.local_rank(), tf.int32, name=name or "HorovodLocalRank")


def local_size_op(name: str | None = None) -> Tensor:
    """Return the number of ranks on this host as an int32 scalar."""
    return tf.constant(basics.local_size(), tf.int32, name=name or "HorovodLocalSize")
