"""NPUOptimizer: gradient averaging over ranks and loss scaling in one wrapper."""

from __future__ import annotations

import contextlib
from typing import Callable, Sequence

from npu_shim._tensorflow import tf_api
from npu_shim._tensorflow.types import LossScaleManager, Operation, Optimizer, Tensor, Variable
from npu_shim.distributed.world import world_size
from npu_shim.optimizer.gradient_averaging import (
    GradientAndVariable,
    GradientsAndVariables,
    average_gradients,
    gradients_marked_as_reduced,
)
from npu_shim.optimizer.loss_scale_optimizer import apply_if_finite, scale_loss, unscale_gradient
from npu_shim.optimizer.wrapper import WrappingOptimizer, check_optimizer

_GATE_OP: int = tf_api.v1.train.Optimizer.GATE_OP


class NPUOptimizer(WrappingOptimizer):
    """Wrap an optimizer with gradient averaging over ranks (is_distributed) and loss scaling (is_loss_scale).

    Without both it behaves as the wrapped optimizer.

    Args:
        opt: a tf.compat.v1.train.Optimizer.
        loss_scale_manager: required with is_loss_scale.
        is_distributed: average the gradients over all ranks; no effect on one process.
        is_loss_scale: scale the loss, and skip steps that overflow.
        is_tailing_optimization: overlap on the NPU; changes no number.
        name: name of the optimizer.
    Raises:
        TypeError: if opt is not an optimizer.
        ValueError: if is_loss_scale is True without a manager.
    """

    def __init__(
        self,
        opt: Optimizer,
        loss_scale_manager: LossScaleManager | None = None,
        is_distributed: bool = False,
        is_loss_scale: bool = False,
        is_tailing_optimization: bool = False,
        name: str | None = None,
    ) -> None:
        check_optimizer("opt", opt)
        if is_loss_scale and loss_scale_manager is None:
            raise ValueError(
                "NPUOptimizer with is_loss_scale=True needs loss_scale_manager. Pass a FixedLossScaleManager or an "
                "ExponentialUpdateLossScaleManager."
            )
        super().__init__(opt, name or "NPUOptimizer" + type(opt).__name__)
        self._manager = loss_scale_manager if is_loss_scale else None
        self._is_distributed = is_distributed
        self._is_loss_scale = is_loss_scale  # as the vendor's, which npu-shim run --numerics reads

    def compute_gradients(
        self,
        loss: Tensor | Callable[[], Tensor],
        var_list: Sequence[Variable] | None = None,
        gate_gradients: int = _GATE_OP,
        aggregation_method: int | None = None,
        colocate_gradients_with_ops: bool = False,
        grad_loss: Tensor | None = None,
    ) -> list[GradientAndVariable]:
        """Return the wrapped optimizer's gradients, unscaled and averaged."""
        scale = None if self._manager is None else self._manager.get_loss_scale()
        given: dict[str, object] = {"gate_gradients": gate_gradients} if gate_gradients != _GATE_OP else {}
        given.update(var_list=var_list, aggregation_method=aggregation_method, grad_loss=grad_loss)
        given.update(colocate_gradients_with_ops=colocate_gradients_with_ops or None)
        given = {name: value for name, value in given.items() if value is not None}  # the wrapped one may take fewer
        pairs = self._opt.compute_gradients(loss if scale is None else scale_loss(loss, scale), **given)
        if self._is_distributed and world_size() > 1:
            pairs = average_gradients(pairs)
        return pairs if scale is None else [(unscale_gradient(g, scale), v) for g, v in pairs]

    def apply_gradients(
        self, grads_and_vars: GradientsAndVariables, global_step: Variable | None = None, name: str | None = None
    ) -> Operation:
        """Apply gradients with the wrapped optimizer; with loss scaling, only if all gradients are finite."""
        pairs = tuple(grads_and_vars)
        with gradients_marked_as_reduced() if self._is_distributed else contextlib.ExitStack():
            if self._manager is None:
                return self._opt.apply_gradients(pairs, global_step=global_step, name=name)
            return apply_if_finite(self._opt, self._manager, pairs, global_step, name, self._is_distributed)
