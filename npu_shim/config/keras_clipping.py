"""Clipping by Keras optimizers of TensorFlow 1.15, which must see the averages over the ranks."""

from __future__ import annotations

import functools
from typing import Iterable

from npu_shim._tensorflow import patches, tf_api
from npu_shim._tensorflow.types import Function, Gradient, Optimizer, Result, Variable
from npu_shim.distributed.world import world_size

_CLIPS_LATER = "_npu_shim_clips_later"


def patch_gradient_clipping() -> None:
    """Let Keras optimizers of TensorFlow 1.15 clip where they apply gradients, as those of later versions do.

    There clipnorm and clipvalue clip what get_gradients() computes, before the vendor's wrappers and those of npu_shim
    average it, so each rank would scale its gradients by another factor. On one process nothing changes, nor for an
    optimizer of Horovod, which has that order.
    """
    if tf_api.tf.__version__.startswith("1."):
        for name in ("get_gradients", "_compute_gradients"):
            patches.replace_attribute(tf_api.tf.keras.optimizers.Optimizer, name, _wrap_without_clipping)
        patches.replace_attribute(tf_api.tf.keras.optimizers.Optimizer, "apply_gradients", _wrap_with_clipping)


def _wrap_without_clipping(original: Function) -> Function:
    @functools.wraps(original)
    def gradients(self: Optimizer, *args: object, **kwargs: object) -> Result:
        own: Result = vars(self)
        clips = {name: own[name] for name in ("clipnorm", "clipvalue") if name in own}
        if not clips or world_size() == 1 or hasattr(self, "is_horovod"):
            return original(self, *args, **kwargs)
        for name in clips:
            del own[name]
        try:
            return original(self, *args, **kwargs)
        finally:
            own.update(clips, **{_CLIPS_LATER: True})

    return gradients


def _wrap_with_clipping(original: Function) -> Function:
    @functools.wraps(original)
    def apply(
        self: Optimizer, grads_and_vars: Iterable[tuple[Gradient, Variable]], *args: object, **kwargs: object
    ) -> Result:
        own: Result = vars(self)
        if own.pop(_CLIPS_LATER, False):
            grads_and_vars = [(_clip_gradient(self, gradient), variable) for gradient, variable in grads_and_vars]
        return original(self, grads_and_vars, *args, **kwargs)

    return apply


def _clip_gradient(optimizer: Optimizer, gradient: Gradient) -> Gradient:
    norm, value = (vars(optimizer).get(name) for name in ("clipnorm", "clipvalue"))
    if gradient is not None and norm is not None:
        gradient = tf_api.tf.clip_by_norm(gradient, norm)
    if gradient is not None and value is not None:
        gradient = tf_api.tf.clip_by_value(gradient, -value, value)
    return gradient
