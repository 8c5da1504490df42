"""Functions that XLA compiles, called from graphs: the one place that decides whether and when.

One compiled function reads each element once and writes it once, where the ops
it is made of write a new tensor each. But its launch, which wakes a thread and
waits for it, costs 50 to 150 microseconds by machine, and each new number of
elements a compilation of some 100 milliseconds. So:

    small tensors            their ops, one by one; from what size on another form is better, the op knows
    static in a graph        the function, compiled for their number of elements
    unknown until they come  decided then, and so is what is eager; what is large is padded to the next of
                             eight sizes between two powers of two, so that lengths
                             which vary from step to step meet few compilations.
                             Where the system makes the memory of each large tensor
                             anew, very large ones go part by part, not padded

Nothing is compiled on a machine with a GPU (which has better kernels for the
ops) and with NPU_SHIM_KERNELS=plain; nor, as is told once, where TensorFlow was
built without XLA or the process may not run code that it makes.
"""

from __future__ import annotations

import ctypes
import functools
import mmap
import threading
import warnings
from typing import Any, Callable, Sequence

from npu_shim import _allocator, _env, _tf, _tf_functions, _tf_gradients, _tf_graph

tf = _tf.tf

MOST_ELEMENTS = 15 << 27  # the largest size in int32, in which XLA counts
_VERY_LARGE = 1 << 23  # 32 MB of float32: beyond, the C library gives each tensor's memory back to the system
_PART = 1 << 20
_making = threading.Lock()


def usable() -> bool:
    """Whether this process may compile at all."""
    return _env.read().kernels == "compiled" and _can_compile()


@functools.lru_cache(maxsize=None)
def _can_compile() -> bool:
    if tf.config.experimental.list_physical_devices("GPU"):
        return False
    if not _tf_graph.has_cpu_kernel("XlaLaunch"):
        reason = "this TensorFlow was built without XLA"
    elif not may_run_generated_code():
        reason = (
            "this process may not run code that it makes, which systemd's MemoryDenyWriteExecute, SELinux "
            "(execmem) and prctl can forbid"
        )
    else:
        return True
    warnings.warn(
        f"npu_shim compiles nothing, because {reason}: gelu and dropout of large tensors take TensorFlow's own ops, "
        "which are several times slower, and dropout draws the masks of tf.nn.dropout. Export "
        "NPU_SHIM_KERNELS=plain to have that without this warning.",
        RuntimeWarning,
        stacklevel=4,
    )
    return False


def may_run_generated_code() -> bool:
    """Return True if this process may run code that it has generated, as every compiler at run time does.

    Hardened systems forbid it: systemd's MemoryDenyWriteExecute, SELinux without the permission execmem, a process
    itself by prctl. XLA does not check it in any version of TensorFlow: the process ends with a segmentation fault.
    The check writes to a page of memory and makes it executable. It takes microseconds and runs nothing.
    """
    if not hasattr(mmap, "PROT_EXEC"):  # a system without mprotect
        return True
    page = mmap.mmap(-1, mmap.PAGESIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    page[:] = bytes(mmap.PAGESIZE)
    address = ctypes.addressof(ctypes.c_char.from_buffer(page))
    mprotect = ctypes.CDLL(None).mprotect
    mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    refused = mprotect(address, mmap.PAGESIZE, mmap.PROT_READ | mmap.PROT_EXEC)
    page.close()
    return not refused


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
        self._made: dict[tuple[Any, ...], Any] = {}

    def __call__(self, *inputs: Any) -> Any:
        """The result as an op of the default graph; its shape is that of the first argument."""
        types = tuple(x.dtype for x in inputs)
        if tf.executing_eagerly():
            return self._kept(_eager, types)(*inputs)
        y = _tf_functions.call_compiled(
            self._kept(_tf_functions.graph_function, types), inputs, constants=int(self._counts)
        )
        y.set_shape([None] if self._counts else inputs[0].shape)
        return y

    def of_any_size(self, *inputs: Any) -> Any:
        """The result for large tensors of one shape that is not known, and no others; outside control flow only."""
        y = self._kept(_any_size, tuple(x.dtype for x in inputs))(*inputs)
        y.set_shape(inputs[0].shape)
        return y

    def _kept(self, make: Callable[..., Any], types: tuple[Any, ...]) -> Any:
        with _making:
            made = self._made.get((make, types))
        if made is None:  # made without the lock, as one is made of another
            made = make(self._function if make is _tf_functions.graph_function else self, types)
            with _making:
                made = self._made.setdefault((make, types), made)
        return made


def _eager(function: Compiled, types: tuple[Any, ...]) -> Any:
    """The function for eager tensors of these types; traced once, for all shapes."""
    return tf.function(function, autograph=False, input_signature=[tf.TensorSpec(None, dtype) for dtype in types])


def _any_size(function: Compiled, types: tuple[Any, ...]) -> Any:
    """The function for tensors of any shape, as one of a graph's library: where it is not called it is but one op."""
    in_parts = function._kept(_in_parts, types)
    limit = MOST_ELEMENTS if _allocator.keeps(_env.process_environ(), tf.__version__) else _VERY_LARGE

    def npu_shim_any_size(*tensors: Any) -> Any:
        flat = [tf.reshape(x, [-1]) for x in tensors]
        is_long = tf.size(flat[0], out_type=tf.int64) > limit
        y = _tf_graph.switch(is_long, flat, in_parts, functools.partial(_padded, function))
        return tf.reshape(y, tf.shape(tensors[0], out_type=tf.int64))

    return _tf_functions.graph_function(npu_shim_any_size, types)


def by_size(like: Any, small: Callable[[], Any], large: Callable[[], Any], least: int) -> Any:
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


def is_large(like: Any, least: int) -> Any:
    """Whether a tensor is large, as a bool tensor: it is found out when the graph runs."""
    count = tf.size(like, out_type=tf.int64)
    return tf.logical_and(count >= least, count <= MOST_ELEMENTS)


def chosen(is_large: Any, large: Callable[[], Any], small: Callable[[], Any]) -> Any:
    """What large() or small() gives, by a bool tensor."""
    with _tf_gradients.stop_recording():  # which would make the branch keep what it computes
        return _tf.v1.cond(is_large, large, small)


def of_each(function: Compiled, tensors: Sequence[Any], small: Callable[..., Any], least: int) -> Any:
    """function(*tensors), or small(*tensors) which is the same, by the number of elements.

    Args:
        function: the result for an element depends on nothing but the elements at its place.
        tensors: of one shape, static or not.
        small: the same in TensorFlow's ops.
        least: from how many elements on a tensor is large.
    Returns:
        A tensor with the shape of the tensors. Its gradient is for with_gradient to say.
    """
    first = tensors[0]
    if is_switched(first):
        return switched(function.of_any_size, tensors, small, least)
    return by_size(first, lambda: small(*tensors), lambda: over_elements(function, tensors), least)


def is_switched(like: Any) -> bool:
    """Whether switched takes tensors like this one: their number is not known, and they stand in no control flow."""
    return like.shape.num_elements() is None and usable() and _tf_graph.outside_control_flow()


def switched(large: Callable[..., Any], tensors: Sequence[Any], small: Callable[..., Any], least: int) -> Any:
    """large(*tensors) or small(*tensors), in one structure, by whether the first one has at least so many elements."""
    return _tf_graph.switch(tf.size(tensors[0], out_type=tf.int64) >= least, tensors, large, small)


def over_elements(function: Compiled, tensors: Sequence[Any]) -> Any:
    """function(*tensors) of large tensors of one shape, static or not.

    Args:
        function: the result for an element depends on nothing but the elements at its place.
        tensors: of the same shape.
    Returns:
        A tensor with the shape of the tensors.
    """
    first = tensors[0]
    if first.shape.num_elements() is not None and not tf.executing_eagerly():
        return function(*tensors)
    flat = [tf.reshape(x, [-1]) for x in tensors]
    y = tf.reshape(_padded(function, *flat), tf.shape(first))
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


def _padded(function: Callable[..., Any], *flat: Any) -> Any:
    count = tf.size(flat[0])
    missing = _bucket(count) - count
    return function(*[tf.pad(x, [[0, missing]]) for x in flat])[:count]  # not copied where nothing is missing


def _in_parts(function: Compiled, types: tuple[Any, ...]) -> Any:
    """The function for long flat tensors, in a graph's library.

    The result has memory of its own, to which each part's is copied while the
    processor still has it in its cache.
    """
    dtype = types[0]
    words = tf.float16 if dtype == tf.bfloat16 else dtype  # TF 1.15 makes no bfloat16 without values

    def put(y: Any, part: Any, *inputs: Any) -> Any:
        row = tf.bitcast(tf.reshape(function(*inputs), [1, _PART]), words)
        return tf.raw_ops.InplaceUpdate(x=y, i=tf.reshape(tf.cast(part, tf.int32), [1]), v=row)

    def npu_shim_in_parts(*flat: Any) -> Any:
        count = tf.size(flat[0], out_type=tf.int64)
        parts = count // _PART
        y = tf.raw_ops.Empty(shape=tf.cast(tf.stack([parts + 1, _PART]), tf.int32), dtype=words)

        def step(part: Any, y: Any) -> tuple[Any, Any]:
            return part + 1, put(y, part, *[tf.reshape(x[part * _PART : (part + 1) * _PART], [_PART]) for x in flat])

        part, y = _tf.v1.while_loop(
            lambda part, y: part < parts, step, [tf.zeros_like(parts), y], back_prop=False, parallel_iterations=2
        )
        rest = [tf.pad(x[parts * _PART :], [[0, (parts + 1) * _PART - count]]) for x in flat]
        y = put(y, part, *[tf.reshape(x, [_PART]) for x in rest])
        return tf.bitcast(tf.reshape(y, [-1])[:count], dtype)

    return _tf_functions.graph_function(npu_shim_in_parts, types)


def _bucket(count: Any) -> Any:
    """The least m 2^k of at least count, with m from 8 to 15: at most an eighth more."""
    bits = tf.cast(
        tf.math.floor(tf.math.log(tf.cast(count - 1, tf.float64) + 0.5) / tf.math.log(tf.constant(2.0, tf.float64))),
        tf.int32,
    )
    unit = tf.bitwise.left_shift(1, bits - 3)
    return tf.minimum((count - 1) // unit + 1, MOST_ELEMENTS // unit) * unit
