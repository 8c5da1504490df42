"""Batch normalization with the statistics of the global batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable

from npu_shim import _tf_keras
from npu_shim._tf import tf
from npu_shim.npu_device.distribute.hccl import all_reduce, is_worker

if TYPE_CHECKING:
    from npu_shim._types import KerasModel, Tensor

_MARK = "_npu_shim_synchronizes"


def sync_batch_norm(layer: KerasModel) -> KerasModel:
    """Make batch normalization use the statistics of the batches of all ranks, as one process with the global batch.

    mean = sum(n_r m_r) / n and variance = sum(n_r (v_r + (m_r - mean)^2)) / n with the number of values n_r, the mean
    m_r and the variance v_r of rank r. The class and the configuration of a layer stay, so saved models load anywhere.

    Args:
        layer: a layer or model of Keras, which is changed with all layers inside. Other layers do not change.
    Returns:
        The layer.
    """
    if is_worker("npu.distribute.sync_batch_norm"):
        for inner in _tf_keras.layers_inside(layer):
            if isinstance(inner, _tf_keras.batch_normalizations()) and not hasattr(inner._moments, _MARK):
                _synchronize(inner)
    return layer


def _synchronize(layer: Any) -> None:
    original = layer._moments
    # The fused kernel of Keras 2 sees the batch of one rank only. It multiplies the variance that it keeps by n/(n-1).
    is_fused = getattr(layer, "fused", False) in (None, True)
    state: dict[str, Any] = {}

    def moments(inputs: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        mean, variance = original(inputs, *args, **kwargs)
        if isinstance(mean, tf.Tensor):  # in a functional model under construction it has no value
            count = tf.cast(tf.size(inputs), mean.dtype) / tf.cast(tf.size(mean), mean.dtype)
            total, count_of_all = _sums([mean * count, count])
            mean_of_all = total / count_of_all
            (squares,) = _sums([count * (variance + tf.square(mean - mean_of_all))])
            mean, variance = mean_of_all, squares / count_of_all
            state["correction"] = count_of_all / (count_of_all - 1.0) if is_fused and inputs.shape.rank == 4 else None
        return mean, variance

    setattr(moments, _MARK, True)
    layer._moments = moments
    if is_fused:
        layer.fused = False
        layer._assign_moving_average = _corrected(layer, layer._assign_moving_average, state)


def _sums(values: list[Tensor]) -> list[Tensor]:
    return all_reduce(values, "sum")


def _corrected(layer: Any, original: Callable[..., Any], state: dict[str, Any]) -> Callable[..., Any]:
    """Return _assign_moving_average with the correction of the fused kernel for the variance."""

    def assign(variable: Any, value: Tensor, *args: Any, **kwargs: Any) -> Any:
        correction = state.get("correction")
        if correction is not None and variable is layer.moving_variance:
            value = value * tf.cast(correction, value.dtype)
        return original(variable, value, *args, **kwargs)

    return assign
