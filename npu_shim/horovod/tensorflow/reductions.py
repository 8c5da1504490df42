"""allreduce and reducescatter with compression, and sparse tensors."""

from __future__ import annotations

from typing import Sequence, Type

from npu_shim._tensorflow.tf_api import tf
from npu_shim._tensorflow.types import Gradient, Tensor
from npu_shim.horovod.common.process_sets import ProcessSet, global_process_set
from npu_shim.horovod.tensorflow.compression import Compression, Compressor
from npu_shim.horovod.tensorflow.mpi_ops import (
    Average,
    Sum,
    _allreduce,
    _grouped_allreduce,
    _reducescatter,
    grouped_allgather,
    handle_average_backwards_compatibility,
    reduction_name,
)

AnyCompressor = Type[Compressor]


def allreduce(
    tensor: Gradient,
    average: bool | None = None,
    device_dense: str = "",
    device_sparse: str = "",
    compression: AnyCompressor = Compression.none,
    op: int | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
    ignore_name_scope: bool = False,
) -> Gradient:
    """Reduce a tensor over all ranks; every rank gets the result.

    Args:
        tensor: a tensor or variable of any shape, the same on every rank; or tf.IndexedSlices, whose number of rows
            may differ between ranks.
        average: True for Average, False for Sum; replaced by op.
        device_dense: unused: the device of the tensor.
        device_sparse: unused.
        compression: Compression.none, Compression.fp16 or a Compressor.
        op: Average (the default), Sum, Min, Max or Product.
        prescale_factor: multiplies the tensor before the reduction.
        postscale_factor: multiplies the result.
        name: the name of the collective; in a graph by default that of the tensor.
        process_set: the ranks that take part.
        ignore_name_scope: True if name is the same in every name scope.
    Returns:
        A tensor of the same shape and type. For tf.IndexedSlices the rows of all ranks, for Average divided by the
        number of ranks.
    Raises:
        NotImplementedError: op is Adasum; or the tensor is sparse, and op or a factor is not allowed for it.
    """
    reduction = handle_average_backwards_compatibility(op, average)
    if isinstance(tensor, tf.IndexedSlices):
        return _gather_slices(
            [tensor], reduction, prescale_factor, postscale_factor, name, process_set, ignore_name_scope
        )[0]
    sent, context = compression.compress(tf.convert_to_tensor(tensor))
    received = _allreduce(sent, name, reduction, prescale_factor, postscale_factor, ignore_name_scope, process_set)
    return compression.decompress(received, context)


def grouped_allreduce(
    tensors: Sequence[Gradient],
    average: bool | None = None,
    device_dense: str = "",
    device_sparse: str = "",
    compression: AnyCompressor = Compression.none,
    op: int | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
    ignore_name_scope: bool = False,
    name: str | None = None,
) -> list[Gradient]:
    """Reduce several tensors in one message for each type. See allreduce.

    Returns:
        A list of the same length.
    """
    reduction = handle_average_backwards_compatibility(op, average)
    results: list[Gradient] = [None] * len(tensors)
    sparse = [index for index, tensor in enumerate(tensors) if isinstance(tensor, tf.IndexedSlices)]
    dense = [index for index in range(len(tensors)) if index not in sparse]
    if sparse:
        slices = [tensors[index] for index in sparse]
        gathered = _gather_slices(
            slices, reduction, prescale_factor, postscale_factor, name, process_set, ignore_name_scope
        )
        for index, value in zip(sparse, gathered):
            results[index] = value
    if dense:
        sent = [compression.compress(tf.convert_to_tensor(tensors[index])) for index in dense]
        reduced = _grouped_allreduce(
            [tensor for tensor, _ in sent],
            name,
            reduction,
            prescale_factor,
            postscale_factor,
            ignore_name_scope,
            process_set,
        )
        for index, (_, context), value in zip(dense, sent, reduced):
            results[index] = compression.decompress(value, context)
    return results


def reducescatter(
    tensor: Tensor,
    device_dense: str = "",
    compression: AnyCompressor = Compression.none,
    op: int = Average,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
    ignore_name_scope: bool = False,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> Tensor:
    """Reduce a tensor; each rank gets a block of axis 0.

    Args:
        tensor: [d0, ...], of the same shape on every rank. The first d0 % size ranks get one row more than the others.
        device_dense: unused: the device of the tensor.
        compression: as for allreduce.
        op: Average or Sum.
        name: as for allreduce.
        process_set: the ranks that take part.
        ignore_name_scope: as for allreduce.
        prescale_factor: as for allreduce.
        postscale_factor: as for allreduce.
    Returns:
        [rows of this rank, ...].
    """
    sent, context = compression.compress(tf.convert_to_tensor(tensor))
    block = _reducescatter(sent, name, op, ignore_name_scope, process_set, prescale_factor, postscale_factor)
    return compression.decompress(block, context)


def grouped_reducescatter(
    tensors: Sequence[Tensor],
    device_dense: str = "",
    compression: AnyCompressor = Compression.none,
    op: int = Average,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> list[Tensor]:
    """Run reducescatter on each of several tensors."""
    return [
        reducescatter(
            tensor,
            device_dense,
            compression,
            op,
            process_set=process_set,
            prescale_factor=prescale_factor,
            postscale_factor=postscale_factor,
        )
        for tensor in tensors
    ]


def _gather_slices(
    slices: Sequence[Gradient],
    op: int,
    prescale_factor: float,
    postscale_factor: float,
    name: str | None,
    process_set: ProcessSet,
    ignore_name_scope: bool,
) -> list[Gradient]:
    """Return the rows of all ranks: a variable updated with them gets the sum or mean of the slices."""
    reduction_name(op, "hvd.allreduce")
    if op not in (Sum, Average):
        raise NotImplementedError("hvd.allreduce: of tf.IndexedSlices only op=hvd.Sum and hvd.Average are supported.")
    if prescale_factor != 1.0 or postscale_factor != 1.0:
        raise NotImplementedError(
            "hvd.allreduce: prescale_factor and postscale_factor are not supported with tf.IndexedSlices. Pass "
            "tf.convert_to_tensor(slices)."
        )
    names = (None, None) if name is None else (f"{name}_values", f"{name}_indices")
    values = grouped_allgather([gradient.values for gradient in slices], names[0], ignore_name_scope, process_set)
    indices = grouped_allgather([gradient.indices for gradient in slices], names[1], ignore_name_scope, process_set)
    ranks = len(process_set.ranks)
    return [
        tf.IndexedSlices(
            rows / tf.cast(ranks, rows.dtype) if op == Average else rows, places, dense_shape=gradient.dense_shape
        )
        for gradient, rows, places in zip(slices, values, indices)
    ]


__all__ = ["allreduce", "grouped_allreduce", "grouped_reducescatter", "reducescatter"]
