"""Functions of arrays as TensorFlow ops: without the copies of TensorFlow 2.6 and earlier, and on other threads."""

from __future__ import annotations

from typing import Callable, Sequence

import numpy as np
import tensorflow as tf
from tensorflow.python.eager import context as _context
from tensorflow.python.framework import function as _function, ops as _framework_ops
from tensorflow.python.ops import gen_script_ops as _gen_script_ops, script_ops as _script_ops

from npu_shim._tensorflow.types import DType, EagerTensor, Operation, Tensor

EagerFunc = _script_ops.EagerFunc  # the function object of tf.py_function
BACKGROUND = "npu_shim_background_function"  # the name of datasets that are no input pipeline
_COPIES = tuple(map(int, tf.__version__.split(".")[:2])) <= (2, 6)  # True if tf.numpy_function copies its inputs
# True if DatasetToSingleElement still uses the session's function library after it has returned its results, which
# crashes the process if the session is closed meanwhile.
_EARLY_DONE = tf.__version__.startswith("1.")


def add_array_function_op(
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


def add_stateless_function_op(function: Callable[..., np.ndarray], inputs: Sequence[Tensor], dtype: DType) -> Tensor:
    """Add an op that calls a function of arrays, and that an iterator can have whose state a checkpoint saves.

    Args:
        function: called with arrays; returns one.
        inputs: tensors of any shapes and types.
        dtype: type of the result.
    """
    return _script_ops.py_func_common(function, list(inputs), dtype, stateful=False)


def add_background_function_op(
    function: Callable[..., list[np.ndarray]], inputs: Sequence[Tensor], types: Sequence[DType]
) -> list[Tensor] | Operation:
    """Add an op of a graph that calls a function of arrays, and holds no thread of the session while it runs.

    TensorFlow computes the elements of a dataset on a thread that it starts for it. A function of the dataset that does
    not use the session's threads runs on the same thread.

    Args:
        function: as for add_array_function_op.
        inputs: as for add_array_function_op.
        types: as for add_array_function_op.
    Returns:
        The results, of unknown shape; without results, the op.
    """
    given = list(inputs) or [tf.constant(0)]  # a dataset has at least one component
    output_types = list(types) or [tf.int32]

    def run(*arrays: np.ndarray) -> list[np.ndarray]:
        results = function(*arrays[: len(inputs)])
        return results if types else [np.array(0, np.int32)]

    @_function.Defun(*[tensor.dtype.base_dtype for tensor in given])
    def call(*tensors: Tensor) -> list[Tensor]:
        results = add_array_function_op(run, tensors, output_types)
        return results if isinstance(results, list) else [results]

    dataset = tf.raw_ops.MapDataset(
        input_dataset=tf.raw_ops.TensorDataset(
            components=given, output_shapes=[tensor.shape for tensor in given], name=BACKGROUND
        ),
        other_arguments=[],
        f=call,
        output_types=output_types,
        output_shapes=[tf.TensorShape(None)] * len(output_types),
        use_inter_op_parallelism=False,
    )
    results = _only_element(dataset, output_types)
    return results if types else results[0].op


def _only_element(dataset: Tensor, types: Sequence[DType]) -> list[Tensor]:
    kind = {"output_types": types, "output_shapes": [tf.TensorShape(None)] * len(types)}
    if not _EARLY_DONE:
        return tf.raw_ops.DatasetToSingleElement(dataset=dataset, **kind)
    iterator, deleter = tf.raw_ops.AnonymousIteratorV2(**kind)
    with tf.control_dependencies([tf.raw_ops.MakeIterator(dataset=dataset, iterator=iterator)]):
        results = tf.raw_ops.IteratorGetNext(iterator=iterator, **kind)
    with tf.control_dependencies(results):
        deleted = tf.raw_ops.DeleteIterator(handle=iterator, deleter=deleter)
    with tf.control_dependencies([deleted]):
        return [tf.identity(result) for result in results]


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
