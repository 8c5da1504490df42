"""Adam with decoupled weight decay, for TensorFlow 2.6.

Source: arXiv:1711.05101, algorithm 2. As in Keras, the learning rate is the schedule
multiplier.
"""

from __future__ import annotations

import re
from typing import Callable, Sequence

from npu_shim._tensorflow.tf_api import tf
from npu_shim._tensorflow.types import DType, JsonObject, Operation, Tensor, Variable


@tf.keras.utils.register_keras_serializable("npu_shim")
class AdamW(tf.keras.optimizers.Adam):
    """Multiply each variable by 1 - learning_rate * weight_decay, then apply a step of Adam.

    The decay does not pass through the moments of Adam. A variable with a sparse gradient decays as a whole.

    Args:
        learning_rate: a number, a schedule, or a function without arguments.
        weight_decay: the decay, a number.
        beta_1, beta_2, epsilon, amsgrad: as those of Adam.
        clipnorm, clipvalue, global_clipnorm: how gradients are clipped; None does not clip.
        use_ema: only False, which keeps no moving average of the variables.
        ema_momentum, ema_overwrite_frequency: have no effect without an average.
        jit_compile: has no effect on the values.
        name: the name of the optimizer.
        kwargs: other arguments of Adam.
    Raises:
        ValueError: if use_ema is True, or weight_decay is None.
    """

    def __init__(
        self,
        learning_rate: float | Callable[[], Tensor] = 0.001,
        weight_decay: float = 0.004,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-7,
        amsgrad: bool = False,
        clipnorm: float | None = None,
        clipvalue: float | None = None,
        global_clipnorm: float | None = None,
        use_ema: bool = False,
        ema_momentum: float = 0.99,
        ema_overwrite_frequency: int | None = None,
        jit_compile: bool = True,
        name: str = "AdamW",
        **kwargs: object,
    ) -> None:
        if use_ema:
            raise ValueError(
                "AdamW keeps no moving average with TensorFlow 2.6. Use tf.train.ExponentialMovingAverage."
            )
        if weight_decay is None:
            raise ValueError("AdamW: weight_decay is None. Give a number, or use Adam.")
        clips = {"clipnorm": clipnorm, "clipvalue": clipvalue, "global_clipnorm": global_clipnorm}
        kwargs.update({key: value for key, value in clips.items() if value is not None})
        super().__init__(learning_rate, beta_1, beta_2, epsilon, amsgrad, name=name, **kwargs)
        self.weight_decay = weight_decay
        self._excluded: list[int] = []
        self._excluded_names: list[str] = []

    def exclude_from_weight_decay(
        self, var_list: Sequence[Variable] | None = None, var_names: Sequence[str] | None = None
    ) -> None:
        """Let variables keep their values but for the steps of Adam. Call it before the first step.

        Args:
            var_list: the variables.
            var_names: regular expressions; a variable is left out if one matches a part of its name.
        """
        self._excluded = [id(variable) for variable in var_list or ()]
        self._excluded_names = list(var_names or ())

    def get_config(self) -> JsonObject:
        """Return the arguments of the optimizer."""
        return {**super().get_config(), "weight_decay": self.weight_decay}

    def _decay_ops(self, variable: Variable, apply_state: dict[tuple[str, DType], JsonObject]) -> list[Operation]:
        if id(variable) in self._excluded or any(re.search(name, variable.name) for name in self._excluded_names):
            return []
        rate = apply_state[variable.device, variable.dtype.base_dtype]["lr_t"]
        factor = rate * tf.cast(self.weight_decay, rate.dtype)
        return [variable.assign_sub(factor * variable, read_value=False)]

    def _resource_apply_dense(
        self, grad: Tensor, var: Variable, apply_state: dict[tuple[str, DType], JsonObject]
    ) -> Operation:
        with tf.control_dependencies(self._decay_ops(var, apply_state)):
            return super()._resource_apply_dense(grad, var, apply_state)

    def _resource_apply_sparse(
        self, grad: Tensor, var: Variable, indices: Tensor, apply_state: dict[tuple[str, DType], JsonObject]
    ) -> Operation:
        with tf.control_dependencies(self._decay_ops(var, apply_state)):
            return super()._resource_apply_sparse(grad, var, indices, apply_state)
