"""Watch the losses that tf.GradientTape differentiates, without an op for it."""

from __future__ import annotations

import tensorflow as tf

from npu_shim._tensorflow.types import Function, GradientTape, Result, Structure
from npu_shim.rehearsal.progress.counted_functions import Functions
from npu_shim.rehearsal.progress.progress import Progress
from npu_shim.rehearsal.recording import methods
from npu_shim.rehearsal.recording.scaled_losses import ScaledLosses


def watch_tapes(progress: Progress, functions: Functions) -> None:
    """Keep the last loss of eager code, and remember the losses of tf.functions."""
    losses = ScaledLosses()
    losses.watch()

    def gradient(original: Function, tape: GradientTape, target: Structure, *args: object, **kwargs: object) -> Result:
        result = original(tape, target, *args, **kwargs)
        if isinstance(target, tf.Tensor) and not progress.is_inside("fit"):
            if tf.executing_eagerly():
                progress.last_loss = losses.unscaled(target)
            elif getattr(target.graph, "building_function", False):
                functions.remember_loss(losses.unscaled(target))
        return result

    methods.wrap_methods(tf.GradientTape, ("gradient",), gradient)
