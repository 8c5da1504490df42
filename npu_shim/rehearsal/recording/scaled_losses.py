"""Find the loss behind one that an optimizer has multiplied by its loss scale, for a tape to differentiate."""

from __future__ import annotations

import weakref
from typing import Callable

import tensorflow as tf

from npu_shim._tensorflow import tf_keras
from npu_shim._tensorflow.types import Function, Optimizer, Result, Tensor
from npu_shim.rehearsal.recording import methods


class ScaledLosses:
    """Hooks around the methods of Keras' optimizers that scale a loss. They keep the last loss."""

    def __init__(self) -> None:
        self._scaled: Callable[[], Result] = lambda: None
        self._plain: Callable[[], Result] = lambda: None

    def watch(self) -> None:
        """Put the hooks around the methods of all optimizers of this process."""
        for owner in tf_keras.optimizer_classes():
            methods.wrap_methods(owner, ("get_scaled_loss", "scale_loss"), self._remember_scaled)

    def unscaled(self, loss: Tensor) -> Tensor:
        """Return the loss before it was scaled; the loss itself if no optimizer has scaled it."""
        plain = self._plain() if loss is not None and self._scaled() is loss else None
        return loss if plain is None else plain

    def _remember_scaled(
        self, original: Function, optimizer: Optimizer, loss: Tensor, *args: object, **kwargs: object
    ) -> Result:
        result = original(optimizer, loss, *args, **kwargs)
        if isinstance(loss, tf.Tensor) and isinstance(result, tf.Tensor):
            self._scaled = weakref.ref(result)
            # Scripts reuse the name of an eager loss for the scaled one. A graph keeps its tensors.
            self._plain = (lambda: loss) if tf.executing_eagerly() else weakref.ref(loss)
        return result
