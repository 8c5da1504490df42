"""Round inputs and outputs of ops to 16 bits; the ops themselves compute in float32, as the device accumulates.

    round(x) = float32(float16(x)),  with saturation float32(float16(min(max(x, -65504), 65504)))

The gradient of the rounding is that of its result, because a device rounds the ops of a finished graph: each op of the
gradient rounds its own inputs and outputs.
"""

from __future__ import annotations

import collections
import contextlib
import functools
import threading
from typing import Iterator, Sequence

import numpy as np
import tensorflow as tf

from npu_shim._tensorflow import tf_op_creation
from npu_shim._tensorflow.op_types import SOURCES
from npu_shim._tensorflow.tf_numpy_function import add_array_function_op
from npu_shim._tensorflow.types import DType, Operation, Tensor, Value
from npu_shim.ops.overflow import OVERFLOW
from npu_shim.rehearsal.assess.work import MATRIX
from npu_shim.rehearsal.half.modes import FLOAT, FOLLOWS, INPUTS, Mode

v1 = tf.compat.v1
_MARK = "_npu_shim_half"  # attribute of eager tensors; no attribute: a constant or an input
_NOT, _RAW, _ROUNDED = range(3)  # its values: not in 16 bits, to be rounded, rounded
_HALF_OPS = "npu_shim_half_ops"  # attribute of a graph: the names of the ops in 16 bits
_SAME = frozenset({"Identity", "ReadVariableOp", "StopGradient", "PreventGradient"})


class _State(threading.local):
    paused = 0
    last = ("", FLOAT)  # the op whose inputs were rounded last, and its precision


class Rounding(tf_op_creation.OpHook):
    """The hook that rounds.

    Args:
        dtype: tf.float16 or tf.bfloat16.
        mode: the precision of each op type.

    Attributes:
        counts: number of ops that were rounded, by type.
        casts: number of float32 values that a device casts for these ops, by True for convolutions and matrix products
            and False for others.
        overflows: with saturation, the number of times that an op's values saturated, by type and name.
    """

    def __init__(self, dtype: DType, mode: Mode) -> None:
        self._dtype = dtype
        self._mode = functools.lru_cache(maxsize=None)(mode.precision_of)
        self._largest = float(dtype.max)
        self._state = _State()
        self.counts: collections.Counter[str] = collections.Counter()
        self.casts = {True: 0, False: 0}
        self.overflows: collections.Counter[str] = collections.Counter()

    @contextlib.contextmanager
    def rounding_paused(self) -> Iterator[None]:
        """Return a context manager inside which nothing is rounded in this thread."""
        self._state.paused += 1
        try:
            yield
        finally:
            self._state.paused -= 1

    def replace_inputs(self, op_type: str, inputs: Sequence[Value]) -> list[Value]:
        """Round the float32 inputs of an op that computes in 16 bits."""
        precision = FLOAT if self._state.paused else self._mode(op_type)
        if precision == FOLLOWS and not self._first_input_is_half(inputs):
            precision = FLOAT
        if precision != FLOAT:
            inputs = [self._round_input(op_type, value) for value in inputs]
        self._state.last = (op_type, precision)
        return list(inputs)

    def replace_outputs(
        self, op_type: str, op: Operation | None, inputs: Sequence[Value], outputs: Sequence[Value]
    ) -> list[Value]:
        """Round the float32 outputs of an op that computes in 16 bits."""
        last, precision = self._state.last
        self._state.last = ("", FLOAT)
        is_half = last == op_type and precision not in (FLOAT, INPUTS) and any(map(_is_float32, outputs))
        results = list(outputs)
        if is_half:
            self.counts[op_type] += 1
            name = f"{op_type} {op.name}" if op is not None else op_type
            if op is not None:
                names: set[str] = getattr(op.graph, _HALF_OPS, set())
                names.add(op.name)
                setattr(op.graph, _HALF_OPS, names)
            results = [self.convert_output(output, name) if _is_float32(output) else output for output in results]
        if op is None:
            self._mark_outputs(op_type, inputs, outputs, is_half)
        return results

    @staticmethod
    def _mark_outputs(op_type: str, inputs: Sequence[Value], outputs: Sequence[Value], is_half: bool) -> None:
        """Mark the outputs of an op in eager mode, which gradients read."""
        mark: int | None = _RAW if is_half else _NOT
        if op_type in _SAME:
            mark = getattr(inputs[0], _MARK, None) if inputs else None
        for output in outputs:
            if mark is not None and _is_float32(output):
                setattr(output, _MARK, mark)

    def _round_input(self, op_type: str, value: Value) -> Value:
        if isinstance(value, tf.Variable):
            if value.dtype.base_dtype != tf.float32:
                return value
            value = tf.convert_to_tensor(value)
        if not _is_float32(value) or value.dtype != tf.float32 or _is_rounded(value):
            return value  # a reference is what the op updates
        is_cast = not _is_half(value)
        self.casts[bool(MATRIX.match(op_type))] += is_cast
        return self.convert_input(value, op_type, is_cast)

    def convert_input(self, tensor: Tensor, op_type: str, is_cast: bool) -> Tensor:
        """Return the tensor that an op in 16 bits gets instead of a float32 one.

        Args:
            tensor: the float32 tensor.
            op_type: of the op.
            is_cast: True if no op in 16 bits has made the tensor, so that a device casts it here.
        """
        return self._round_tensor(tensor, op_type)

    def convert_output(self, tensor: Tensor, name: str) -> Tensor:
        """Return the tensor that an op in 16 bits returns instead of a float32 one."""
        return self._round_tensor(tensor, name)

    def _round_tensor(self, tensor: Tensor, name: str) -> Tensor:
        graph = None if tf.executing_eagerly() else v1.get_default_graph()
        with tf_op_creation.create_hook_ops(graph):
            value = tensor
            if OVERFLOW.saturates:
                value = self._saturate(tensor, name)
            result = tf.cast(tf.cast(value, self._dtype), tf.float32)
        return show_to_tapes(result, tensor)

    def _saturate(self, tensor: Tensor, name: str) -> Tensor:
        """Return a tensor with the largest numbers in the place of larger ones, and set the flag if there are any."""

        def note(largest: np.ndarray) -> list[np.ndarray]:
            if largest > self._largest:
                OVERFLOW.flag = True
                self.overflows[name] += 1
            return []

        largest = tf.reduce_max(tf.abs(tensor))
        if tf.executing_eagerly():
            note(np.asarray(largest))
            noted: list[Value] = []
        else:
            noted = [add_array_function_op(note, [largest], [])]
        with tf.control_dependencies(noted):
            return tf.raw_ops.ClipByValue(t=tensor, clip_value_min=-self._largest, clip_value_max=self._largest)

    def _first_input_is_half(self, inputs: Sequence[Value]) -> bool:
        """Return True if the first float32 input that is no constant, variable or input of the step is in 16 bits."""
        for value in inputs:
            if isinstance(value, tf.Tensor) and _is_float32(value) and not _is_source(value):
                return _is_half(value)
        return False


def show_to_tapes(result: Tensor, source: Tensor) -> Tensor:
    """Return a result of create_hook_ops() that replaces a source. In eager mode, mark it and record it on tapes."""
    if tf.executing_eagerly():
        setattr(result, _MARK, _ROUNDED)
    return tf_op_creation.record_identity_gradient(result, source)


def _is_float32(value: Value) -> bool:
    return isinstance(value, tf.Tensor) and value.dtype.base_dtype == tf.float32


def _making_op(tensor: Tensor) -> Operation:
    """Return the op that makes a tensor of a graph; of one that is only handed on, the op before."""
    op = tensor.op
    while op.type in _SAME and op.inputs:
        op = op.inputs[0].op
    return op


def _is_rounded(tensor: Tensor) -> bool:
    if tf.executing_eagerly():
        return getattr(tensor, _MARK, _NOT) == _ROUNDED
    op = _making_op(tensor)
    return op.type in ("Cast", "Mul") and tf_op_creation.SCOPE in op.name  # Mul: of a perturbation


def _is_half(tensor: Tensor) -> bool:
    if tf.executing_eagerly():
        return getattr(tensor, _MARK, _NOT) != _NOT
    op = _making_op(tensor)
    return _is_rounded(tensor) or op.name in getattr(op.graph, _HALF_OPS, ())


def _is_source(tensor: Tensor) -> bool:
    if tf.executing_eagerly():
        return not hasattr(tensor, _MARK)
    return _making_op(tensor).type in SOURCES
