"""Batch normalization with the statistics of the global batch."""

from __future__ import annotations

from typing import Callable

from npu_shim._tensorflow import tf_keras
from npu_shim._tensorflow.tf_api import tf
from npu_shim._tensorflow.types import KerasLayer, KerasModel, Tensor, Value
from npu_shim.npu_device.distribute.global_batches import weight_of_rows
from npu_shim.npu_device.distribute.hccl import all_reduce, is_worker


def sync_batch_norm(layer: KerasModel) -> KerasModel:
    """Make batch normalization use the statistics of the batches of all ranks, as one process with the global batch.

    mean = sum(n_r m_r) / n and variance = sum(n_r (v_r + (m_r - mean)^2)) / n with the number of values n_r, the mean
    m_r and the variance v_r of rank r. The class and the configuration of a layer stay, so saved models load anywhere.

    The loss is L = sum(w_r L_r) / ranks, and an optimizer multiplies the gradients of rank r by its weight w_r. So the
    gradient of rank r through a sum s over the ranks is sum(w_q dL_q/ds) / w_r. In fit() of data_parallel() w_r is the
    share of rank r in the rows of a batch, and 1 in a loop.

    Args:
        layer: a layer or model of Keras, which is changed with all layers inside. Other layers do not change.
    Returns:
        The layer.
    """
    if is_worker("npu.distribute.sync_batch_norm"):
        for inner in tf_keras.layer_and_sublayers(layer):
            if isinstance(inner, tf_keras.batch_normalization_classes()) and not tf_keras.has_replaced_moments(inner):
                _synchronize_layer(inner)
    return layer


def _synchronize_layer(layer: KerasLayer) -> None:
    # The fused kernel of Keras 2 sees the batch of one rank only. It multiplies the variance that it keeps by n/(n-1).
    is_fused = getattr(layer, "fused", False) in (None, True)
    state: dict[str, Value] = {}

    def of_all(inputs: Tensor, mask: Tensor | None, mean: Tensor, variance: Tensor) -> tuple[Tensor, Tensor]:
        weight = weight_of_rows()
        count = tf.cast(tf.size(inputs), mean.dtype) / tf.cast(tf.size(mean), mean.dtype)
        if mask is not None:
            count *= tf.reduce_mean(tf.cast(mask, mean.dtype))
        if weight is not None:
            count *= tf.cast(weight > 0.0, mean.dtype)  # a row of another rank does not count
        total, count_of_all = _sums_over_ranks([mean * count, count], weight)
        center = mean_of_all = total / count_of_all
        in_kernel = is_fused and inputs.shape.rank in (4, 5)
        if mask is None:
            # tf.nn.moments takes the mean for a constant, which makes gradients of gradients wrong: those of one
            # process, too, except in the fused kernel. The value of this square is 0.
            variance -= tf.square(mean - tf.stop_gradient(mean))
            center = mean_of_all if in_kernel else tf.stop_gradient(mean_of_all)
        (squares,) = _sums_over_ranks([count * (variance + tf.square(mean - center))], weight)
        state["correction"] = count_of_all / (count_of_all - 1.0) if in_kernel else None
        return mean_of_all, squares / count_of_all

    def kept(variance: Tensor) -> Tensor:
        correction = state.get("correction")
        return variance if correction is None else variance * tf.cast(correction, variance.dtype)

    tf_keras.replace_moments(layer, of_all)
    if is_fused:
        layer.fused = False
        tf_keras.change_moving_variance(layer, kept)


def _sums_over_ranks(values: list[Tensor], weight: Tensor | None) -> list[Tensor]:
    """Return the sums over the ranks, whose gradients count by the weights of the ranks."""
    if weight is None:
        return list(all_reduce(values, "sum"))
    inverse = tf.math.divide_no_nan(1.0, weight)
    sums = all_reduce([_with_gradient_times(value, inverse) for value in values], "sum")
    return [_with_gradient_times(value, weight) for value in sums]


@tf.custom_gradient
def _with_gradient_times(value: Tensor, factor: Tensor) -> tuple[Tensor, Callable[[Tensor], tuple[Tensor, None]]]:
    return tf.identity(value), lambda dy: (dy * tf.cast(factor, dy.dtype), None)
