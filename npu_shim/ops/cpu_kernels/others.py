"""Ops with kernels for GPUs only that other ops compute on the CPU."""

from __future__ import annotations

from typing import TYPE_CHECKING, Callable, Sequence

import tensorflow as tf

from npu_shim._tensorflow.types import Tensor

if TYPE_CHECKING:
    from npu_shim._tensorflow.tf_op_forms import AskedOp

# The same op by its later name.
LATER_NAMES = {
    "BatchFFT": "FFT",
    "BatchFFT2D": "FFT2D",
    "BatchFFT3D": "FFT3D",
    "BatchIFFT": "IFFT",
    "BatchIFFT2D": "IFFT2D",
    "BatchIFFT3D": "IFFT3D",
}
# Counts of the bytes of a GPU, in tf.contrib.memory_stats. TensorFlow does not count those of the CPU.
BYTES = ("BytesInUse", "BytesLimit", "MaxBytesInUse")


def zero_bytes_form(asked: AskedOp) -> Callable[[], Sequence[Tensor]] | None:
    """Return the form of an op of BYTES: zero."""
    return lambda: [tf.zeros([], tf.int64)]


def later_op_form(asked: AskedOp) -> Callable[[], Sequence[Tensor]] | None:
    """Return the form of an op of LATER_NAMES."""
    return lambda: asked.run({}, LATER_NAMES[asked.type])


def ctc_loss_form(asked: AskedOp) -> Callable[[], Sequence[Tensor]] | None:
    """Return the form of CTCLossV2: CTCLoss, whose blank is the last class and not the first."""

    def compute() -> list[Tensor]:
        changes = {
            "inputs": tf.roll(asked.inputs["inputs"], -1, 2),
            "labels_values": asked.inputs["labels_values"] - 1,
        }
        loss, gradient = asked.run(changes, "CTCLoss")
        return [loss, tf.roll(gradient, 1, 2)]

    return compute


def max_pool_second_gradient_form(asked: AskedOp) -> Callable[[], Sequence[Tensor]] | None:
    """Return the form of MaxPoolGradGradWithArgmax: the gradient at each maximum."""

    def compute() -> list[Tensor]:
        gradient, places = asked.inputs["grad"], asked.inputs["argmax"]
        if asked.attributes["include_batch_in_index"]:
            return [tf.gather(tf.reshape(gradient, [-1]), places)]
        batch = tf.shape(gradient)[0]
        gathered = tf.gather(tf.reshape(gradient, [batch, -1]), tf.reshape(places, [batch, -1]), batch_dims=1)
        return [tf.reshape(gathered, tf.shape(places))]

    return compute
