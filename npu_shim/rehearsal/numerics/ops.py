"""Check the outputs of all ops of a run for Inf and NaN.

In a graph, each op with an output of floating-point numbers gets an op beside it that looks at its outputs and inputs,
and what follows waits for it. So an op is checked wherever it runs: in loops, branches, functions and gradients. In
eager mode, the outputs are looked at when the op has run.
"""

from __future__ import annotations

import itertools
import math
import os
from typing import Callable, Iterable, Sequence

import numpy as np
import tensorflow as tf

from npu_shim._tensorflow import script_frames, tf_graph, tf_op_creation
from npu_shim._tensorflow.tf_numpy_function import add_array_function_op
from npu_shim._tensorflow.types import Operation, Tensor, Value
from npu_shim.rehearsal.assess.lines import creating_lines, relative_path
from npu_shim.rehearsal.assess.op_types import op_types_in_table
from npu_shim.rehearsal.numerics.history import BadOp, History

# These hand values on, read them from the outside, hold variables, or run other ops, which are checked themselves.
_NO_CHECK = op_types_in_table("not checked for Inf and NaN")
_FUNCTION = "__"  # begins the type of an op that calls a tf.function
_MOST_INPUTS = 6


class OpWatch(tf_op_creation.OpHook):
    """The hook that adds the checks.

    Args:
        history: receives the ops with Inf or NaN.
        is_open: returns False when the watch is closed.
        order: numbers the ops.
    """

    def __init__(self, history: History, is_open: Callable[[], bool], order: itertools.count[int]) -> None:
        self._history = history
        self._is_open = is_open
        self._order = order
        self._folder = os.getcwd()

    def replace_outputs(
        self, op_type: str, op: Operation | None, inputs: Sequence[Value], outputs: Sequence[Value]
    ) -> list[Value]:
        """Check the outputs of an op."""
        checked = (
            []
            if op_type in _NO_CHECK or op_type.startswith(_FUNCTION)
            else [output for output in outputs if _is_float_to_check(output)]
        )
        if not checked:
            return list(outputs)
        if op is None:
            self._check_eager_outputs(op_type, inputs, checked)
            return list(outputs)
        others = [value for value in inputs if _is_numeric_tensor(value)][:_MOST_INPUTS]
        with tf_op_creation.create_hook_ops(op.graph):
            noted = add_array_function_op(self._checking_function(op, others, len(checked)), checked + others, [])
            with tf.control_dependencies([noted]):
                return [tf.identity(output) if _is_float_to_check(output) else output for output in outputs]

    def _checking_function(
        self, op: Operation, inputs: Sequence[Tensor], count: int
    ) -> Callable[..., list[np.ndarray]]:
        order = next(self._order)
        names = [tf_op_creation.original_tensor_name(tensor) for tensor in inputs]

        def check(*arrays: np.ndarray) -> list[np.ndarray]:
            if self._is_open() and not all(map(is_finite, arrays[:count])):
                lines = tuple(creating_lines(op, self._folder))
                self._note_bad_op(op.name, op.type, lines, arrays[:count], names, arrays[count:], order)
            return []

        return check

    def _check_eager_outputs(self, op_type: str, inputs: Sequence[Value], outputs: Sequence[Value]) -> None:
        order = next(self._order)
        arrays = [np.asarray(output) for output in outputs]
        if all(map(is_finite, arrays)):
            return
        lines = tuple(
            f"{relative_path(frame.f_code.co_filename, self._folder)}:{frame.f_lineno}"
            for frame in itertools.islice(script_frames.running_frames(), 3)
        )
        with tf_op_creation.create_hook_ops(None):
            given = [np.asarray(value) for value in inputs if _is_numeric_tensor(value)][:_MOST_INPUTS]
        names = [f"input {number}" for number in range(len(given))]
        self._note_bad_op("", op_type, lines, arrays, names, given, order)

    def _note_bad_op(
        self,
        name: str,
        op_type: str,
        lines: tuple[str, ...],
        outputs: Iterable[np.ndarray],
        names: Sequence[str],
        inputs: Sequence[np.ndarray],
        order: int,
    ) -> None:
        given = tuple(f"{input_name} {contents_text(value)}" for input_name, value in zip(names, inputs))
        from_outside = not all(map(is_finite, inputs))
        self._history.note_bad_op(
            BadOp(name, op_type, lines, tuple(map(contents_text, outputs)), given, order, from_outside)
        )


def is_finite(array: np.ndarray) -> bool:
    """Return True if an array has no Inf and no NaN; that of another type than floats has none."""
    if array.dtype.kind not in "fc" or array.dtype.itemsize < 4:
        if array.dtype.kind in "biuSO":
            return True
        return bool(np.isfinite(array.astype(np.float32)).all())
    with np.errstate(all="ignore"):
        total = array.sum()
    # a sum of finite elements may overflow
    return math.isfinite(abs(total)) or bool(np.isfinite(array).all())


def contents_text(array: np.ndarray) -> str:
    """Return the number of Inf and NaN of an array, and the range of its finite elements, in words."""
    values = array.astype(np.float32) if array.dtype.kind not in "biufc" or array.dtype.itemsize < 4 else array
    if values.dtype.kind == "c":
        values = abs(values)
    finite = np.isfinite(values)
    counts = [
        f"{number} {word}"
        for word, number in (
            ("NaN", np.count_nonzero(np.isnan(values))),
            ("+Inf", np.count_nonzero(np.isposinf(values))),
            ("-Inf", np.count_nonzero(np.isneginf(values))),
        )
        if number
    ]
    inside = values[finite]
    span = f"in [{inside.min():.4g}, {inside.max():.4g}]" if inside.size else "without a finite element"
    if not array.size:
        return "empty"
    return (
        f"{' and '.join(counts)} of {array.size}, the rest {span}"
        if counts and inside.size
        else (f"{' and '.join(counts)} of {array.size}" if counts else span)
    )


def _is_numeric_tensor(value: Value) -> bool:
    dtype = getattr(value, "dtype", None)
    dtype = None if dtype is None else tf.as_dtype(dtype)
    is_number = dtype is not None and (dtype.is_floating or dtype.is_integer or dtype.is_bool)
    return is_number and not (isinstance(value, tf.Tensor) and tf_graph.is_variable_reference(value))


def _is_float_to_check(value: Value) -> bool:
    return bool(value.dtype.is_floating or value.dtype.is_complex) and not tf_graph.is_variable_reference(value)
