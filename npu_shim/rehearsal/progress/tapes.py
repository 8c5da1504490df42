"""Watch the losses that tf.GradientTape differentiates, without an op for it."""

from __future__ import annotations

from typing import Any, Callable

import tensorflow as tf

from npu_shim.rehearsal.progress.functions import Functions
from npu_shim.rehearsal.progress.progress import Progress
from npu_shim.rehearsal.recording import methods
from npu_shim.rehearsal.recording.scaled_losses import ScaledLosses


def watch_tapes(progress: Progress, functions: Functions) -> None:
    """Keep the last loss of eager code, and remember the losses of tf.functions."""
    losses = ScaledLosses()
    losses.watch()

    def gradient(original: Callable[..., Any], tape: Any, target: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(tape, target, *args, **kwargs)
        if isinstance(target, tf.Tensor) and not progress.is_inside("fit"):
            if tf.executing_eagerly():
                progress.last_loss = losses.unscaled(target)
            elif getattr(target.graph, "building_function", False):
                functions.differentiates(losses.unscaled(target))
        return result

    methods.wrap(tf.GradientTape, ("gradient",), gradient)
