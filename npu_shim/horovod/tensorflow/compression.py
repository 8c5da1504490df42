"""Compression of what ranks send each other."""

from __future__ import annotations

from npu_shim._tensorflow.tf_api import tf
from npu_shim._tensorflow.types import DType, Tensor


class Compressor:
    """Interface of a compression: compress() returns a tensor and what decompress() needs to restore it."""

    @staticmethod
    def compress(tensor: Tensor) -> tuple[Tensor, DType | None]:
        """Return the tensor to send, and a context."""
        raise NotImplementedError

    @staticmethod
    def decompress(tensor: Tensor, ctx: DType | None) -> Tensor:
        """Return a received tensor in its original form."""
        raise NotImplementedError


class NoneCompressor(Compressor):
    """Sends tensors as they are."""

    @staticmethod
    def compress(tensor: Tensor) -> tuple[Tensor, DType | None]:
        """Return the tensor and None."""
        return tensor, None

    @staticmethod
    def decompress(tensor: Tensor, ctx: DType | None) -> Tensor:
        """Return the tensor."""
        return tensor


class FP16Compressor(Compressor):
    """Sends floating-point tensors as float16, and others as they are."""

    @staticmethod
    def compress(tensor: Tensor) -> tuple[Tensor, DType | None]:
        """Return the tensor as float16, and its type."""
        return (tf.cast(tensor, tf.float16) if tensor.dtype.is_floating else tensor), tensor.dtype

    @staticmethod
    def decompress(tensor: Tensor, ctx: DType | None) -> Tensor:
        """Return the tensor in its original type."""
        return tf.cast(tensor, ctx) if ctx is not None and ctx.is_floating else tensor


class Compression:
    """The compressions to choose from: ``hvd.Compression.fp16``."""

    none = NoneCompressor
    fp16 = FP16Compressor
