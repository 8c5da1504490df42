"""tf.numpy_function without the copies of TensorFlow 2.6 and earlier."""

from __future__ import annotations

from typing import TYPE_CHECKING, Callable, Sequence

import numpy as np
import tensorflow as tf
from tensorflow.python.eager import context as _context
from tensorflow.python.framework import ops as _framework_ops
from tensorflow.python.ops import gen_script_ops as _gen_script_ops, script_ops as _script_ops

if TYPE_CHECKING:
    from npu_shim._types import DType, EagerTensor, Operation, Tensor

_COPIES = tuple(map(int, tf.__version__.split(".")[:2])) <= (2, 6)  # True if tf.numpy_function copies its inputs


def array_function(
    function: Callable[..., list[np.ndarray]], inputs: Sequence[Tensor], types: Sequence[DType]
) -> list[Tensor] | Operation | None:
    """Add an op that calls a function of arrays, like tf.numpy_function but without copies.

    Args:
        function: called with arrays in TensorFlow's own memory, which it must not change. Returns a list of arrays.
        inputs: tensors of any shapes and types.
        types: types of the results.
    Returns:
        The results; without results, the op (None in eager mode).
    """
    if not _COPIES or tf.executing_eagerly():
        return tf.numpy_function(function, inputs, types)
    eager_function = _ArrayFunction(function, types)
    outermost = graph = tf.compat.v1.get_default_graph()
    while graph is not None:  # the registry holds a weak reference, so the graph keeps the function alive
        outermost, graph = graph, getattr(graph, "outer_graph", getattr(graph, "_outer_graph", None))
    if not hasattr(outermost, "_py_funcs_used_in_graph"):
        outermost._py_funcs_used_in_graph = []
    outermost._py_funcs_used_in_graph.append(eager_function)
    return _gen_script_ops.eager_py_func(
        input=list(inputs), token=_script_ops._py_funcs.insert(eager_function), is_async=False, Tout=list(types)
    )


class _ArrayFunction(_script_ops.EagerFunc):
    """The function that TensorFlow calls with eager tensors, which share memory with those of the session."""

    def __init__(self, function: Callable[..., list[np.ndarray]], types: Sequence[DType]) -> None:
        super().__init__(function, types, is_grad_func=False)

    def __call__(self, device: str | None, token: str, args: Sequence[EagerTensor]) -> list[EagerTensor]:
        results = self._func(*[arg._numpy() for arg in args])
        with _context.eager_mode():
            here = _context.context().device_name
            return [
                _framework_ops.EagerTensor(result, here, dtype.as_datatype_enum)
                for result, dtype in zip(results, self._out_dtypes)
            ]
