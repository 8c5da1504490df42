"""Gives every rank the root's variables."""

from __future__ import annotations

from typing import Any

from npu_shim import _tf

tf = _tf.tf


def broadcast_global_variables(root_rank: int) -> Any:
    """An op that gives every rank the root's global variables of the default graph.

    Args:
        root_rank: the root.
    Returns:
        An op; of a graph without variables one that does nothing.
    """
    from npu_shim.distributed import hccl_ops

    variables = _tf.v1.global_variables()
    return tf.group(*hccl_ops.broadcast(variables, root_rank)) if variables else tf.group()
