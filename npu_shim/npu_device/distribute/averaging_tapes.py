"""Gradient tapes whose gradients of variables are averages over the ranks."""

from __future__ import annotations

from typing import Sequence

from npu_shim._host import host_device
from npu_shim._tensorflow import patches, tf_gradients, tf_keras
from npu_shim._tensorflow.tf_api import tf
from npu_shim._tensorflow.types import Function, Gradient, GradientTape, Result, Structure, Tensor
from npu_shim.npu_device.distribute.global_batches import weight_of_rows
from npu_shim.npu_device.distribute.hccl import all_reduce
from npu_shim.npu_device.npu_device import global_npu_ctx
from npu_shim.optimizer.gradient_averaging import is_sparse, mark_averaged, reduce_all, strategy_reduces_gradients

_OF_THIS_RANK = "_npu_shim_gradients_of_this_rank"


def patch_tapes_to_average() -> None:
    """Let every tf.GradientTape of this process average the gradients of variables over the ranks.

    All readers then see those of one process: clipping, logged norms, histograms, accumulators, loss scales.
    Averages of averages are the same, so an optimizer that averages once more changes nothing.

    A tape leaves the gradients of this rank

    * for tensors, as in a gradient penalty;
    * while a tape records them, for a second gradient (meta-learning takes a first one for each task);
    * in a Jacobian, which has the gradient of each row;
    * in a replica of NPUStrategy, which adds up applied gradients as tf.distribute does.
    """
    patches.replace_attribute(tf.GradientTape, "gradient", _wrap_gradient_to_average)
    patches.replace_attribute(tf.GradientTape, "jacobian", _wrap_jacobian_without_average)


def average_over_examples(gradients: Sequence[Gradient]) -> list[Gradient]:
    """Return the averages over the rows of all ranks.

    Args:
        gradients: those of this rank: tensors, tf.IndexedSlices or None.
    """
    weight = weight_of_rows()
    given = list(gradients) if weight is None else [_multiply_by_weight(gradient, weight) for gradient in gradients]
    return all_reduce(given) if host_device.is_npu() else reduce_all(given, "mean")


def _multiply_by_weight(gradient: Gradient, weight: Tensor) -> Gradient:
    if gradient is None:
        return None
    if is_sparse(gradient):
        values = gradient.values * tf.cast(weight, gradient.values.dtype)
        return tf.IndexedSlices(values, gradient.indices, gradient.dense_shape)
    return gradient * tf.cast(weight, gradient.dtype)


def _wrap_gradient_to_average(original: Function) -> Function:
    def gradient(tape: GradientTape, target: Structure, sources: Structure, *args: object, **kwargs: object) -> Result:
        gradients = original(tape, target, sources, *args, **kwargs)
        flat = tf.nest.flatten(gradients)
        variables = [tf_keras.tensorflow_variable(source) for source in tf.nest.flatten(sources)]
        places = [
            index
            for index, variable in enumerate(variables)
            if isinstance(variable, tf.Variable) and flat[index] is not None
        ]
        stays = (
            hasattr(tape, _OF_THIS_RANK)
            or tf_gradients.is_recorded_by_other_tape(tape)
            or strategy_reduces_gradients()
            or global_npu_ctx() is None
        )
        mark_averaged([variables[index] for index in places], not stays)
        if stays or not places:
            return gradients
        for index, average in zip(places, average_over_examples([flat[index] for index in places])):
            flat[index] = average
        return tf.nest.pack_sequence_as(sources, flat)

    return gradient


def _wrap_jacobian_without_average(original: Function) -> Function:
    def jacobian(tape: GradientTape, *args: object, **kwargs: object) -> Result:
        setattr(tape, _OF_THIS_RANK, True)  # it calls gradient() for each row
        try:
            return original(tape, *args, **kwargs)
        finally:
            delattr(tape, _OF_THIS_RANK)

    return jacobian
