"""Functions of arrays as ops: tf.numpy_function without the copies that TensorFlow 2.6 and before make."""

from __future__ import annotations

from typing import Any, Callable, Sequence

import numpy as np
import tensorflow as tf
from tensorflow.python.eager import context as _context
from tensorflow.python.framework import ops as _framework_ops
from tensorflow.python.ops import gen_script_ops as _gen_script_ops, script_ops as _script_ops

_COPIES = tuple(map(int, tf.__version__.split(".")[:2])) <= (2, 6)  # what goes into a tf.numpy_function


def array_function(function: Callable[..., list[np.ndarray]], inputs: Sequence[Any], types: Sequence[Any]) -> Any:
    """tf.numpy_function without copies, where TensorFlow makes some.

    Args:
        function: of arrays, which are TensorFlow's own memory: it must not change them. It gives a list of arrays.
        inputs: tensors.
        types: of the results.
    Returns:
        The results; an op where there are none (None where TensorFlow acts eagerly).
    """
    if not _COPIES or tf.executing_eagerly():
        return tf.numpy_function(function, inputs, types)
    made = _ArrayFunction(function, types)
    outermost = graph = tf.compat.v1.get_default_graph()
    while graph is not None:  # the registry has no strong reference: the function lives as long as the graph
        outermost, graph = graph, getattr(graph, "outer_graph", getattr(graph, "_outer_graph", None))
    if not hasattr(outermost, "_py_funcs_used_in_graph"):
        outermost._py_funcs_used_in_graph = []
    outermost._py_funcs_used_in_graph.append(made)
    return _gen_script_ops.eager_py_func(
        input=list(inputs), token=_script_ops._py_funcs.insert(made), is_async=False, Tout=list(types)
    )


class _ArrayFunction(_script_ops.EagerFunc):
    """What TensorFlow calls: it hands over eager tensors, which share the memory of a session's."""

    def __init__(self, function: Callable[..., list[np.ndarray]], types: Sequence[Any]) -> None:
        super().__init__(function, types, is_grad_func=False)

    def __call__(self, device: str | None, token: str, args: Sequence[Any]) -> list[Any]:
        results = self._func(*[arg._numpy() for arg in args])
        with _context.eager_mode():
            here = _context.context().device_name
            return [
                _framework_ops.EagerTensor(result, here, dtype.as_datatype_enum)
                for result, dtype in zip(results, self._out_dtypes)
            ]
