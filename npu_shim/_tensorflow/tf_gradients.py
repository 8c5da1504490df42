"""Gradients of one's own that hold in loops, branches and functions of every TensorFlow version."""

from __future__ import annotations

from typing import Callable, ContextManager, Sequence

import tensorflow as tf

from npu_shim._tensorflow.tf_graph import is_in_plain_graph
from npu_shim._tensorflow.types import Function, GradientTape, Operation, Tensor

try:
    from tensorflow.python.eager import record as _tape
except ImportError:  # TF 2.6 and before
    from tensorflow.python.eager import tape as _tape
try:
    from tensorflow.python.framework.ops import gradient_registry as _gradients
except ImportError:  # TF 1.15
    from tensorflow.python.framework.ops import _gradient_registry as _gradients


def with_registered_gradient(y: Tensor, inputs: Sequence[Tensor], gradient: str) -> Tensor:
    """Return y with a registered gradient instead of that of the ops that made it.

    The gradient reads only the inputs of its op. Therefore it also holds inside loops, branches and functions, in
    control flow v1 and v2 and in every TensorFlow version. TensorFlow 1.15's control flow v2 loses a function's own
    Python gradient.

    Args:
        y: the result.
        inputs: the tensors that y is a function of.
        gradient: name in tf.RegisterGradient; see gradient_of.
    """
    with _tape.stop_recording():
        (result,) = with_registered_gradients([y], inputs, gradient)
    if not is_in_plain_graph():  # a tape inside a function follows what is recorded, and not the ops

        def backward(dy: Tensor) -> list[Tensor]:
            return _gradients.lookup(gradient)(result.op, dy)[1:]

        _tape.record_operation(gradient, [result], list(inputs), backward)
    return result


def with_registered_gradients(ys: Sequence[Tensor], inputs: Sequence[Tensor], gradient: str) -> list[Tensor]:
    """Return several results of the same inputs with a registered gradient, as with_gradient does for one."""
    with tf.compat.v1.get_default_graph().gradient_override_map({"IdentityN": gradient}):
        return tf.identity_n(list(ys) + list(inputs))[: len(ys)]


def make_registrable_gradient(function: Callable[..., Sequence[Tensor | None]]) -> Callable[..., list[Tensor | None]]:
    """Return a gradient to register for with_gradient.

    Args:
        function: called as ``function(*inputs, dy)``; returns one gradient for each input.
    """

    def registered(op: Operation, dy: Tensor, *unused: Tensor) -> list[Tensor | None]:
        return [None] + list(function(*op.inputs[1:], dy))

    return registered


def compute_gradients(
    compute: Callable[[], Sequence[Tensor]], points: Sequence[Tensor], upstream: Sequence[Tensor]
) -> list[Tensor | None]:
    """Return the gradients of computed results at points, in a graph or eagerly; None where nothing depends on a point.

    Args:
        compute: returns the results.
        points: the tensors that it computes with.
        upstream: the gradients of the results.
    """
    if not tf.executing_eagerly():
        return list(tf.compat.v1.gradients(compute(), points, upstream))
    with tf.GradientTape() as tape:
        tape.watch(points)
        results = compute()
    return list(tape.gradient(results, points, output_gradients=upstream))


def stop_recording() -> ContextManager[None]:
    """Return a context manager inside which no gradient tape records; the caller gives the gradient."""
    return _tape.stop_recording()


def is_recorded_by_other_tape(tape: GradientTape) -> bool:
    """Return True if another tape than this one records what is computed now."""
    if tape._recording:
        with tape.stop_recording():
            return bool(_tape.could_possibly_record())
    return bool(_tape.could_possibly_record())


def record_on_tapes(
    op_type: str, results: Sequence[Tensor], sources: Sequence[Tensor], backward: Callable[..., list[Tensor | None]]
) -> None:
    """Let the tapes of this thread take results as a function of their sources.

    Args:
        op_type: a name for it.
        results, sources: the tensors.
        backward: returns the gradients of the sources from those of the results.
    """
    _tape.record_operation(op_type, list(results), list(sources), backward)


def registered_gradient(op_type: str) -> Function | None:
    """Return the gradient of an op type; None if it has none."""
    try:
        return _gradients.lookup(op_type)
    except LookupError:
        return None


def unregister_gradient(op_type: str) -> None:
    """Remove the gradient of an op type, so that another may be registered; a type without one is left as it is."""
    _gradients._registry.pop(op_type, None)
