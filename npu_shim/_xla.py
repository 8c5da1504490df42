"""Functions that XLA compiles, called from graphs: the one place that decides whether and when.

One compiled function reads each element once and writes it once, where the ops
it is made of write a new tensor each. But its launch costs some 50
microseconds, and each new number of elements a compilation of some 100
milliseconds. So:

    small tensors            their ops, one by one
    static in a graph        the function, compiled for their number of elements
    unknown until they come  decided then, and so is what is eager; what is large is padded to the next of
                             eight sizes between two powers of two, so that lengths
                             which vary from step to step meet few compilations

Nothing is compiled on a machine with a GPU (which has better kernels for the
ops) and with NPU_SHIM_KERNELS=plain; nor, as is told once, where TensorFlow was
built without XLA or the process may not run code that it makes.
"""
from __future__ import annotations

import functools
import threading
import warnings
from typing import Any, Callable, Dict, Sequence, Tuple

from npu_shim import _env, _made_code, _tf

tf = _tf.tf

LEAST_ELEMENTS = 40_000  # below, the launch costs more than it saves; from here TensorFlow's ops start threads too
MOST_ELEMENTS = 15 << 27  # the largest size in int32, in which XLA counts
_making = threading.Lock()


def usable() -> bool:
    """Whether this process may compile at all."""
    return _env.read().kernels == "compiled" and _can_compile()


@functools.lru_cache(maxsize=None)
def _can_compile() -> bool:
    if tf.config.experimental.list_physical_devices("GPU"):
        return False
    if not _tf.has_cpu_kernel("XlaLaunch"):
        reason = "this TensorFlow was built without XLA"
    elif not _made_code.is_allowed():
        reason = ("this process may not run code that it makes, which systemd's MemoryDenyWriteExecute, SELinux "
                  "(execmem) and prctl can forbid")
    else:
        return True
    warnings.warn(
        f"npu_shim compiles nothing, because {reason}: gelu and dropout of large tensors take TensorFlow's own ops, which "
        "are several times slower, and dropout draws the masks of tf.nn.dropout. Export NPU_SHIM_KERNELS=plain to have "
        "that without this warning.", RuntimeWarning, stacklevel=4)
    return False


class Compiled:
    """A function of flat tensors, to be compiled for each number of elements that it meets.

    Args:
        function: makes the result, a tensor as long as its first argument, of
            tensors of the ops that XLA knows.
        counts: whether its first argument is that length instead, an int32 scalar.
    """

    def __init__(self, function: Callable[..., Any], counts: bool = False) -> None:
        self._function = function
        self._counts = counts
        self._made: Dict[Tuple[Any, ...], Any] = {}

    def __call__(self, *inputs: Any) -> Any:
        """The result as an op of the default graph; its shape is that of the first argument."""
        types = tuple(x.dtype for x in inputs)
        if tf.executing_eagerly():
            return self._kept(_eager, types)(*inputs)
        y = _tf.call_compiled(self._kept(_tf.graph_function, types), inputs, constants=int(self._counts))
        y.set_shape([None] if self._counts else inputs[0].shape)
        return y

    def _kept(self, make: Callable[..., Any], types: Tuple[Any, ...]) -> Any:
        with _making:
            if (make, types) not in self._made:
                self._made[make, types] = make(self if make is _eager else self._function, types)
            return self._made[make, types]


def _eager(function: Compiled, types: Tuple[Any, ...]) -> Any:
    """The function for eager tensors of these types; traced once, for all shapes."""
    return tf.function(function, autograph=False, input_signature=[tf.TensorSpec(None, dtype) for dtype in types])


def by_size(like: Any, small: Callable[[], Any], large: Callable[[], Any], least: int = LEAST_ELEMENTS) -> Any:
    """The result of small() or of large(), by the number of elements of a tensor, now or when the graph runs.

    Args:
        like: the tensor.
        small, large: make tensors of the same type and shape. Their gradient is for with_gradient to say.
        least: from how many elements on a tensor is large.
    """
    count = like.shape.num_elements()
    if not usable() or (count is not None and not least <= count <= MOST_ELEMENTS):
        return small()
    if count is not None:
        return large()
    return chosen(is_large(like, least), large, small)


def is_large(like: Any, least: int = LEAST_ELEMENTS) -> Any:
    """Whether a tensor is large, as a bool tensor: it is found out when the graph runs."""
    count = tf.size(like, out_type=tf.int64)
    return tf.logical_and(count >= least, count <= MOST_ELEMENTS)


def chosen(is_large: Any, large: Callable[[], Any], small: Callable[[], Any]) -> Any:
    """What large() or small() gives, by a bool tensor."""
    with _tf.no_tape():  # which would make the branch keep what it computes
        return _tf.v1.cond(is_large, large, small)


def over_elements(function: Compiled, tensors: Sequence[Any], *others: Any) -> Any:
    """function(*tensors, *others) of large tensors of one shape, static or not.

    Args:
        function: the result for an element depends on nothing but its place and the elements at its place.
        tensors: of the same shape.
        others: tensors of a fixed shape.
    Returns:
        A tensor with the shape of the tensors.
    """
    first = tensors[0]
    if first.shape.num_elements() is not None and not tf.executing_eagerly():
        return function(*tensors, *others)
    count = tf.size(first)
    missing = _bucket(count) - count
    padded = [tf.pad(tf.reshape(x, [-1]), [[0, missing]]) for x in tensors]
    y = tf.reshape(function(*padded, *others)[:count], tf.shape(first))
    y.set_shape(first.shape)
    return y


def counted(function: Compiled, like: Any, *others: Any) -> Any:
    """A tensor as large as another, of a function of its number of elements, which is compiled for few of them.

    Args:
        function: the result for an element depends on nothing but its place.
        like: a tensor whose shape the run knows.
        others: tensors of a fixed shape.
    """
    count = tf.size(like)
    return tf.reshape(function(_bucket(count), *others)[:count], tf.shape(like))  # neither copies


def _bucket(count: Any) -> Any:
    """The least m 2^k of at least count, with m from 8 to 15: at most an eighth more."""
    bits = tf.cast(tf.math.floor(tf.math.log(tf.cast(count - 1, tf.float64) + 0.5) / tf.math.log(
        tf.constant(2.0, tf.float64))), tf.int32)
    unit = tf.bitwise.left_shift(1, bits - 3)
    return tf.minimum((count - 1) // unit + 1, MOST_ELEMENTS // unit) * unit
