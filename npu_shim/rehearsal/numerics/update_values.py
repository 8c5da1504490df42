"""Read loss, loss scale and gradients of each update, also of updates that are skipped.

The values are read by one op before the update, in the outermost optimizer, because the optimizer inside one with a
loss scale only runs if no gradient has Inf or NaN.
"""

from __future__ import annotations

import itertools
import math
import weakref
from typing import Callable, NamedTuple

import numpy as np
import tensorflow as tf

from npu_shim._tensorflow import tf_graph, tf_op_creation, tf_recording
from npu_shim._tensorflow.tf_numpy_function import add_array_function_op
from npu_shim._tensorflow.types import Function, GradientTape, Graph, Optimizer, Result, Structure, Tensor, Value
from npu_shim.ops.overflow import OVERFLOW
from npu_shim.rehearsal.numerics.history import Update
from npu_shim.rehearsal.recording import methods
from npu_shim.rehearsal.recording.calls import Calls
from npu_shim.rehearsal.recording.digest import squared_norm
from npu_shim.rehearsal.recording.names import plain_name
from npu_shim.rehearsal.recording.scaled_losses import ScaledLosses
from npu_shim.rehearsal.recording.update_hooks import Apply, Pairs, UpdateHooks, optimizer_classes

v1 = tf.compat.v1


class Scale(NamedTuple):
    """A loss scale."""

    value: Value  # a tensor, a variable or a number
    skips: bool  # True if steps with an overflow are skipped
    inside: bool  # True if the gradients are still multiplied by it when they are applied
    asks_flag: bool  # True if the flag of an overflow that saturates skips the step, too


class OptimizerWatch(UpdateHooks):
    """Hooks around the methods of all optimizers of this process, those of classes that are defined later included.

    Args:
        note: called with each update.
        is_open: returns False when the watch is closed.
        order: numbers the ops.
    """

    def __init__(
        self, note: Callable[[Update], None], is_open: Callable[[], bool], order: itertools.count[int]
    ) -> None:
        self._note = note
        self._is_open = is_open
        self._order = order
        self._scaled = ScaledLosses()
        self._losses: weakref.WeakKeyDictionary[Graph, Tensor] = weakref.WeakKeyDictionary()
        self._eager_loss: float | None = None
        self._numbers: weakref.WeakKeyDictionary[Optimizer, int] = weakref.WeakKeyDictionary()
        self._calls = Calls()

    def install(self) -> None:
        """Put the hooks around the methods."""
        super().install()
        for owner in optimizer_classes():
            methods.wrap_methods(owner, ("compute_gradients", "get_gradients"), self.remember_loss)
        methods.wrap_methods(tf.GradientTape, ("gradient",), self.remember_target)
        self._scaled.watch()

    def remember_loss(
        self, original: Function, optimizer: Optimizer, loss: Tensor, *args: object, **kwargs: object
    ) -> Result:
        """Remember the loss that the outermost optimizer differentiates."""
        with self._calls.inside("losses") as outermost:
            if outermost:
                self._remember_unscaled_loss(loss)
            return original(optimizer, loss, *args, **kwargs)

    def remember_target(
        self, original: Function, tape: GradientTape, target: Structure, *args: object, **kwargs: object
    ) -> Result:
        """Remember the value that a tape differentiates."""
        if not self._calls.is_inside("losses"):
            self._remember_unscaled_loss(target)
        return original(tape, target, *args, **kwargs)

    def _remember_unscaled_loss(self, loss: Structure) -> None:
        loss = self._scaled.unscaled(
            next((tensor for tensor in tf.nest.flatten(loss) if isinstance(tensor, tf.Tensor)), None)
        )
        if loss is None:
            return
        if tf.executing_eagerly():
            self._eager_loss = float(np.asarray(loss, np.float64).mean())
        else:
            self._losses[v1.get_default_graph()] = weakref.ref(loss)

    def _apply_and_watch(self, optimizer: Optimizer, pairs: Pairs, apply: Apply, is_reduced: bool = False) -> Result:
        with self._calls.inside("update") as outermost:
            if not outermost or not self._is_open():
                return apply(pairs)
            with tf_op_creation.create_hook_ops(None if tf.executing_eagerly() else v1.get_default_graph()):
                noted = self._read_update(optimizer, [pair for pair in pairs if pair[0] is not None])
            # A function runs ops in the order of their effects, and could not create variables with dependencies.
            with tf.control_dependencies([noted] if tf_graph.is_in_plain_graph() else []):
                return apply(pairs)

    def _read_update(self, optimizer: Optimizer, pairs: Pairs) -> Result:
        """Read the values of an update. Return the op that does it in a graph."""
        number = self._numbers.setdefault(optimizer, len(self._numbers))
        place = next(self._order)
        names = [plain_name(variable) for _, variable in pairs]
        scale = scale_of(optimizer)
        values = [] if scale is None else [tf.convert_to_tensor(scale.value)]
        gradients = [tf.convert_to_tensor(getattr(gradient, "values", gradient)) for gradient, _ in pairs]
        if tf.executing_eagerly():
            arrays = [np.asarray(tensor) for tensor in values + gradients]
            self._record_update(number, names, self._eager_loss, scale, arrays, place)
            return None
        graph = v1.get_default_graph()
        loss_tensor = self._losses.get(graph, lambda: None)()
        loss = [loss_tensor] if loss_tensor is not None and tf_recording.is_reachable(loss_tensor.op, graph) else []

        def record(*arrays: np.ndarray) -> list[np.ndarray]:
            value = float(np.mean(arrays[0], dtype=np.float64)) if loss else None
            self._record_update(number, names, value, scale, list(arrays[len(loss) :]), place)
            return []

        return add_array_function_op(record, loss + values + gradients, [])

    def _record_update(
        self,
        number: int,
        names: list[str],
        loss: float | None,
        scale: Scale | None,
        arrays: list[np.ndarray],
        place: int,
    ) -> None:
        if not self._is_open():
            return
        value = None if scale is None else float(arrays.pop(0))
        factor = value if scale is not None and scale.inside and value else 1.0
        norms: dict[str, float] = {}
        for name, array in zip(names, arrays):
            norms[name] = math.hypot(norms.get(name, 0.0), norm_of(array) / factor)
        overflows = not all(map(math.isfinite, norms.values()))
        overflows |= scale is not None and scale.asks_flag and OVERFLOW.flag
        skipped = scale is not None and scale.skips and overflows
        self._note(Update(number, loss, value, skipped, norms, place))


def norm_of(array: np.ndarray) -> float:
    """Return the Euclidean norm of an array; Inf or NaN if it has them."""
    flat = array.reshape(-1)
    if flat.dtype.kind != "f" or flat.dtype.itemsize < 4:
        flat = flat.astype(np.float32)
    with np.errstate(all="ignore"):
        square = squared_norm(flat)
        if math.isfinite(square) or not np.isfinite(flat).all():
            return math.sqrt(square) if square >= 0 else square
        return math.sqrt(squared_norm(flat.astype(np.float64)))


def scale_of(optimizer: Optimizer) -> Scale | None:
    """Return the loss scale of an optimizer: npu_shim's, the vendor's form in tf.contrib, TensorFlow's or Keras'."""
    outer = optimizer
    while optimizer is not None:
        own = vars(optimizer)
        manager = own.get("_loss_scale_manager") or (own.get("_is_loss_scale") and own.get("_manager"))
        if manager:
            skips = getattr(manager, "get_enable_overflow_check", lambda: True)()
            return Scale(manager.get_loss_scale(), skips, False, OVERFLOW.saturates)
        optimizer = own.get("_opt") or own.get("_optimizer")
    if not hasattr(outer, "inner_optimizer"):
        return None
    is_own = hasattr(outer, "last_step_finite")  # npu_shim's
    asks_flag = is_own and OVERFLOW.saturates
    if not hasattr(outer, "loss_scale"):  # Keras 3, whose apply() takes scaled gradients
        return Scale(getattr(outer, "dynamic_scale", outer.initial_scale), True, True, asks_flag)
    return Scale(outer.loss_scale, bool(outer.dynamic) or is_own, False, asks_flag)
