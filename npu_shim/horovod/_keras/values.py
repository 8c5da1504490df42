"""Collectives on values, as Horovod's Keras modules have them: NumPy arrays in, values out."""

from __future__ import annotations

from npu_shim._tensorflow import tf_api
from npu_shim._tensorflow.tf_api import tf
from npu_shim._tensorflow.types import Tensor, Value
from npu_shim.horovod.tensorflow import mpi_ops, reductions, variables
from npu_shim.horovod.tensorflow.compression import Compression
from npu_shim.horovod.tensorflow.mpi_ops import Average
from npu_shim.horovod.tensorflow.reductions import AnyCompressor
from npu_shim.horovod.tensorflow.util import _executing_eagerly


def broadcast_global_variables(root_rank: int) -> Value:
    """Set the Keras session's variables to those of one rank.

    Args:
        root_rank: the rank whose variables are sent.
    Raises:
        RuntimeError: in eager mode.
    """
    return _evaluate_in_session(variables.broadcast_global_variables(root_rank))


def allreduce(
    value: Value,
    name: str | None = None,
    average: bool | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    op: int | None = None,
    compression: AnyCompressor = Compression.none,
) -> Value:
    """Reduce a value over all ranks.

    Args:
        value: a number or an array, of the same shape on every rank.
        name: the name of the tensor.
        average: True for the mean, False for the sum; replaced by op.
        prescale_factor: multiplies the value before the reduction.
        postscale_factor: multiplies the result.
        op: hvd.Average (the default), Sum, Min, Max or Product.
        compression: as for hvd.allreduce of npu_shim.horovod.tensorflow.
    Returns:
        An array; eagerly a tensor.
    """
    return _evaluate_in_session(
        reductions.allreduce(
            tf.constant(value, name=name or "Const"),
            average=None if op is not None else average,
            prescale_factor=prescale_factor,
            postscale_factor=postscale_factor,
            op=op,
            compression=compression,
        )
    )


def allgather(value: Value, name: str | None = None) -> Value:
    """Return the values of all ranks, concatenated along axis 0; the first dimension may differ between ranks."""
    return _evaluate_in_session(mpi_ops.allgather(tf.constant(value, name=name or "Const")))


def broadcast(value: Value, root_rank: int, name: str | None = None) -> Value:
    """Return the value of one rank on all ranks; it has the same shape on every rank."""
    return _evaluate_in_session(mpi_ops.broadcast(tf.constant(value, name=name or "Const"), root_rank))


def reducescatter(value: Value, name: str | None = None, op: int = Average) -> Value:
    """Reduce a value over all ranks; each rank gets a block of axis 0."""
    return _evaluate_in_session(reductions.reducescatter(tf.constant(value, name=name or "Const"), op=op))


def _evaluate_in_session(result: Tensor) -> Value:
    return result if _executing_eagerly() else tf_api.keras_backend().get_session().run(result)
