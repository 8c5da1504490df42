"""Code of the vendor's names that a training step needs, with the operators of one rank."""

from __future__ import annotations

import functools
import os
from typing import Any, Callable

import tensorflow as tf

from npu_shim._tensorflow import tf_api, tf_graph
from vendor_code import CODE, ops

v1 = tf_api.v1
_WORLD = "hccl_world_group"


def _code(path: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a function as the code of a name, below the package."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        CODE[path] = function
        return function

    return register


def _rank_size() -> int:
    return int(os.environ.get("RANK_SIZE") or 1)


# --- operators -------------------------------------------------------------------
@_code("estimator.npu_ops.dropout")
def _dropout(x: Any, keep_prob: Any, noise_shape: Any, seed: Any, name: Any) -> Any:
    keep = tf.cast(keep_prob, tf.convert_to_tensor(x).dtype)
    mask = ops().drop_out_gen_mask(tf.shape(x) if noise_shape is None else noise_shape, keep, seed=seed or 0)
    return ops().drop_out_do_mask(x, mask, keep, name=name)


@_code("estimator.npu_aicore_ops.dropout_v3")
def _dropout_v3(x: Any, keep_prob: Any, noise_shape: Any, seed: Any, name: Any) -> Any:
    keep = tf.cast(keep_prob, tf.convert_to_tensor(x).dtype)
    mask = ops().drop_out_gen_mask_v3(tf.shape(x) if noise_shape is None else noise_shape, keep, seed=seed or 0)
    return ops().drop_out_do_mask_v3(x, mask, keep, name=name)


@tf.RegisterGradient("DropOutDoMask")
def _dropout_gradient(op: Any, gradient: Any) -> list[Any]:
    return [ops().drop_out_do_mask(gradient, op.inputs[1], op.inputs[2]), None, None]


@tf.RegisterGradient("DropOutDoMaskV3")
def _dropout_v3_gradient(op: Any, gradient: Any) -> list[Any]:
    return [ops().drop_out_do_mask_v3(gradient, op.inputs[1], op.inputs[2]), None, None]


@tf.RegisterGradient("Gelu")
def _gelu_gradient(op: Any, gradient: Any) -> Any:
    return ops().gelu_grad(gradient, op.inputs[0], op.outputs[0])


@tf.RegisterGradient("FastGelu")
def _fast_gelu_gradient(op: Any, gradient: Any) -> Any:
    return ops().fast_gelu_grad(gradient, op.inputs[0])


@tf.RegisterGradient("HcomAllReduce")
def _all_reduce_gradient(op: Any, gradient: Any) -> Any:
    return _all_reduce(gradient, "sum")


def _all_reduce(tensor: Any, reduction: str) -> Any:
    return ops().hcom_all_reduce(tensor, reduction=reduction, group=_WORLD, fusion=1, fusion_id=-1)


@_code("estimator.npu.npu_optimizer.npu_allreduce")
def _npu_allreduce(values: Any, reduction: str, **unused: Any) -> Any:
    if isinstance(values, (list, tuple)):
        return [_npu_allreduce(value, reduction) for value in values]
    if values is None:
        return None
    reduced = _all_reduce(tf.convert_to_tensor(values), "sum" if reduction == "mean" else reduction)
    return reduced / _rank_size() if reduction == "mean" else reduced


# --- optimizers ------------------------------------------------------------------
@_code("estimator.npu.npu_optimizer.NPUDistributedOptimizer.__init__")
def _wrap(self: Any, optimizer: Any, name: Any, **unused: Any) -> None:
    v1.train.Optimizer.__init__(self, False, name or "Distributed")
    self._opt, self._reduces, self._manager = optimizer, _rank_size() > 1, None


@_code("estimator.npu.npu_optimizer.NPUOptimizer.__init__")
def _wrap_scaled(self: Any, opt: Any, loss_scale_manager: Any, is_distributed: bool, name: Any, **unused: Any) -> None:
    v1.train.Optimizer.__init__(self, False, name or "NPUOptimizer")
    self._opt, self._reduces, self._manager = opt, is_distributed, loss_scale_manager


@_code("estimator.npu.npu_loss_scale_optimizer.NPULossScaleOptimizer.__init__")
def _wrap_loss_scale(self: Any, opt: Any, loss_scale_manager: Any, is_distributed: bool) -> None:
    _wrap_scaled(self, opt, loss_scale_manager, is_distributed, "NPULossScaleOptimizer")


def compute(self: Any, loss: Any, *args: Any, **kwargs: Any) -> list[Any]:
    """Return the gradients of the wrapped optimizer, unscaled and averaged over the ranks."""
    kwargs = {key: value for key, value in kwargs.items() if value is not None}
    scale = self._manager.get_loss_scale() if self._manager else 1.0
    pairs = self._opt.compute_gradients(loss * scale, *args, **kwargs)
    pairs = [(None if gradient is None else gradient / scale, variable) for gradient, variable in pairs]
    return [(_npu_allreduce(gradient, "mean"), variable) for gradient, variable in pairs] if self._reduces else pairs


def _apply(self: Any, grads_and_vars: Any, global_step: Any = None, name: Any = None) -> Any:
    if self._manager is None:
        return self._opt.apply_gradients(grads_and_vars, global_step=global_step, name=name)
    finite = tf.equal(tf.reduce_sum(ops().npu_get_float_status_v2()), 0)
    with tf.control_dependencies([self._manager.update_loss_scale(finite) or tf.no_op()]):
        return self._opt.apply_gradients(grads_and_vars, global_step=global_step, name=name)


for _optimizer in (
    "estimator.npu.npu_optimizer.NPUDistributedOptimizer",
    "estimator.npu.npu_optimizer.NPUOptimizer",
    "estimator.npu.npu_loss_scale_optimizer.NPULossScaleOptimizer",
):
    CODE[_optimizer + ".compute_gradients"] = compute
    CODE[_optimizer + ".apply_gradients"] = _apply
    CODE[_optimizer + ".get_slot"] = lambda self, *args, **kwargs: self._opt.get_slot(*args, **kwargs)
    CODE[_optimizer + ".get_slot_names"] = lambda self, *args, **kwargs: self._opt.get_slot_names(*args, **kwargs)
    CODE[_optimizer + ".variables"] = lambda self, *args, **kwargs: self._opt.variables(*args, **kwargs)


@_code("estimator.npu.npu_optimizer.npu_distributed_optimizer_wrapper")
def _wrapper(optimizer: Any) -> Any:
    compute = optimizer.compute_gradients
    optimizer.compute_gradients = lambda *args, **kwargs: [
        (_npu_allreduce(gradient, "mean"), variable) for gradient, variable in compute(*args, **kwargs)
    ]
    return optimizer


@_code("estimator.npu.npu_loss_scale_manager.FixedLossScaleManager.__init__")
@_code("estimator.npu.npu_loss_scale_manager.ExponentialUpdateLossScaleManager.__init__")
def _manager(self: Any, loss_scale: float = 0.0, init_loss_scale: float = 0.0, **unused: Any) -> None:
    self.get_loss_scale = lambda: tf.constant(float(loss_scale or init_loss_scale))
    self.update_loss_scale = lambda finite_grads: tf.no_op()


# --- loops, ranks, scopes ----------------------------------------------------------
@_code("estimator.npu.util.set_iteration_per_loop")
def _loop(sess: Any, train_op: Any, iterations_per_loop: int) -> Any:
    return train_op


@_code("estimator.npu.util.IterationPerLoop.create_iteration_per_loop_var")
def _loop_variable(self: Any, train_op: Any) -> Any:
    return train_op


CODE["manage.api.get_rank_size"] = lambda group: _rank_size()
CODE["manage.api.get_rank_id"] = lambda group: int(os.environ.get("RANK_ID") or 0)


for _scope, _attributes in {
    "keep_dtype_scope": {"_keep_dtype": 1},
    "npu_optimizer_scope": {"_optimizer": True},
    "npu_gradients_scope": {"_backward": True},
    "npu_recompute_scope": {"_recompute": True},
    "without_npu_compile_scope": {"_without_npu_compile": True},
}.items():
    CODE["estimator.npu.npu_scope." + _scope] = functools.partial(tf_graph.attr_scope, _attributes)
    CODE["utils.scope." + _scope] = functools.partial(tf_graph.attr_scope, _attributes)
