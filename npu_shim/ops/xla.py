"""Functions that XLA compiles on the CPU, and the decision when to use them.

A compiled function reads and writes each element once. The ops that it replaces
each write a new tensor. But its launch, which wakes a thread and waits for it,
costs 50 to 150 microseconds, and each new number of elements needs a
compilation of about 100 milliseconds. Therefore:

    small tensors    TensorFlow's ops; each op knows its threshold
    static shapes    the function, compiled for the number of elements
    dynamic shapes   chosen at run time, as in eager mode. A large tensor is padded to the next of eight sizes between
    and eager mode   two powers of two, so that varying lengths need few compilations. If the system allocates the
                     memory of each large tensor anew, very large tensors run part by part instead of padded. In a
                     graph of more than 1000 ops, dropout of dynamic shapes uses TensorFlow's ops: the choice would
                     double the number of ops, and with it the time of the first run.

Nothing is compiled on a machine with a GPU (which has better kernels for the
ops) and with NPU_SHIM_KERNELS=plain. With one warning, nothing is compiled if
TensorFlow was built without XLA, or the process may not run generated code.
"""

from __future__ import annotations

import ctypes
import functools
import mmap
import threading
import warnings
from typing import Callable, Sequence, Tuple

from npu_shim._host import allocator, host_env
from npu_shim._tensorflow import tf_api, tf_functions, tf_gradients, tf_graph
from npu_shim._tensorflow.types import DType, Function, GraphFunction, Structure, Tensor

DTypes = Tuple[DType, ...]

tf = tf_api.tf

MOST_ELEMENTS = 15 << 27  # the largest padded size in int32, the type of sizes in XLA
_VERY_LARGE = 1 << 23  # 32 MB of float32; above, the C library returns each tensor's memory to the system
_PART = 1 << 20  # elements
_MOST_OPS = 1000  # of a graph to which choices at run time are added
_cache_lock = threading.Lock()


def should_not_compile(like: Tensor) -> bool:
    """Return True for a tensor of dynamic shape in a graph that is large already.

    The choice at run time adds about 200 ops, and the first run of a large graph takes minutes as it is.
    """
    return like.shape.num_elements() is None and tf_graph.script_op_count() > _MOST_OPS


def is_xla_usable() -> bool:
    """Return True if functions are compiled in this process."""
    return host_env.read_environment().kernels == "compiled" and _can_compile()


@functools.lru_cache(maxsize=None)
def _can_compile() -> bool:
    if tf.config.experimental.list_physical_devices("GPU"):
        return False
    if not tf_graph.has_cpu_kernel("XlaLaunch"):
        reason = "this TensorFlow was built without XLA"
    elif not may_run_generated_code():
        reason = (
            "this process may not run generated code, which systemd's MemoryDenyWriteExecute, SELinux "
            "(execmem) and prctl can forbid"
        )
    else:
        return True
    warnings.warn(
        f"npu_shim compiles nothing, because {reason}. gelu and dropout of large tensors run TensorFlow's slower ops. "
        "Set NPU_SHIM_KERNELS=plain to hide this warning.",
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
    """A function of flat tensors that is compiled for each new number of elements.

    Args:
        function: returns a tensor with the length of its first argument, with ops that XLA supports.
        counts: True if its first argument is the length instead, an int32 scalar.
    """

    def __init__(self, function: Callable[..., Tensor], counts: bool = False) -> None:
        self._function = function
        self._counts = counts
        self._variants: dict[tuple[Function, DTypes], Callable[..., Tensor]] = {}

    def __call__(self, *inputs: Tensor) -> Tensor:
        """Return the result, with the shape of the first argument."""
        types = tuple(x.dtype for x in inputs)
        if tf.executing_eagerly():
            return self._compiled_variant(_eager_function, types)(*inputs)
        y = tf_functions.call_compiled(
            self._compiled_variant(tf_functions.trace_graph_function, types), inputs, constants=int(self._counts)
        )
        y.set_shape([None] if self._counts else inputs[0].shape)
        return y

    def call_any_size(self, *inputs: Tensor) -> Tensor:
        """Return the result for large tensors of one dynamic shape; outside control flow only."""
        y = self._compiled_variant(_any_size_function, tuple(x.dtype for x in inputs))(*inputs)
        y.set_shape(inputs[0].shape)
        return y

    def _compiled_variant(self, make: Function, types: DTypes) -> Callable[..., Tensor]:
        with _cache_lock:
            variant = self._variants.get((make, types))
        if variant is None:  # created without the lock, because one variant uses another
            variant = make(self._function if make is tf_functions.trace_graph_function else self, types)
            with _cache_lock:
                variant = self._variants.setdefault((make, types), variant)
        return variant


def _eager_function(function: Compiled, types: DTypes) -> Callable[..., Tensor]:
    """Return the function for eager tensors of these types; traced once for all shapes."""
    return tf.function(function, autograph=False, input_signature=[tf.TensorSpec(None, dtype) for dtype in types])


def _any_size_function(function: Compiled, types: DTypes) -> GraphFunction:
    """Return the function for tensors of any shape. In a graph's library it is one op where it is not called."""
    in_parts = function._compiled_variant(_partwise_function, types)
    limit = MOST_ELEMENTS if allocator.keeps_memory(host_env.process_environ(), tf.__version__) else _VERY_LARGE

    def npu_shim_any_size(*tensors: Tensor) -> Tensor:
        flat = [tf.reshape(x, [-1]) for x in tensors]
        is_long = tf.size(flat[0], out_type=tf.int64) > limit
        y = tf_graph.switch_branches(is_long, flat, in_parts, functools.partial(_call_with_padding, function))
        return tf.reshape(y, tf.shape(tensors[0], out_type=tf.int64))

    return tf_functions.trace_graph_function(npu_shim_any_size, types)


def cond_by_size(like: Tensor, small: Callable[[], Tensor], large: Callable[[], Tensor], least: int) -> Tensor:
    """Return small() or large() by the number of elements of a tensor, now or when the graph runs.

    Args:
        like: the tensor.
        small, large: return tensors of the same type and shape. with_gradient must set their gradient.
        least: number of elements from which a tensor is large.
    """
    count = like.shape.num_elements()
    if not is_xla_usable() or (count is not None and not least <= count <= MOST_ELEMENTS):
        return small()
    if count is not None:
        return large()
    return cond_on_large(is_large(like, least), large, small)


def is_large(like: Tensor, least: int) -> Tensor:
    """Return a bool scalar tensor: True if a tensor is large when the graph runs."""
    count = tf.size(like, out_type=tf.int64)
    return tf.logical_and(count >= least, count <= MOST_ELEMENTS)


def cond_on_large(is_large: Tensor, large: Callable[[], Structure], small: Callable[[], Structure]) -> Structure:
    """Return large() or small() by a bool tensor."""
    with tf_gradients.stop_recording():  # a tape would make the branch keep its intermediate results
        return tf_api.v1.cond(is_large, large, small)


def call_elementwise(function: Compiled, tensors: Sequence[Tensor], small: Callable[..., Tensor], least: int) -> Tensor:
    """Return function(*tensors) or the equal small(*tensors) by the number of elements.

    Args:
        function: an elementwise function.
        tensors: tensors of one shape, static or dynamic.
        small: the same function in TensorFlow's ops.
        least: number of elements from which a tensor is large.
    Returns:
        A tensor with the shape of the tensors. with_gradient must set its gradient.
    """
    first = tensors[0]
    if can_switch_by_size(first):
        return switch_by_size(function.call_any_size, tensors, small, least)
    return cond_by_size(first, lambda: small(*tensors), lambda: call_on_large(function, tensors), least)


def can_switch_by_size(like: Tensor) -> bool:
    """Return True for tensors of switch_by_size: of dynamic shape, and outside control flow."""
    return like.shape.num_elements() is None and is_xla_usable() and tf_graph.is_outside_control_flow()


def switch_by_size(
    large: Callable[..., Structure], tensors: Sequence[Tensor], small: Callable[..., Structure], least: int
) -> Structure:
    """Return large(*tensors) if the first tensor has at least ``least`` elements, else small(*tensors)."""
    return tf_graph.switch_branches(tf.size(tensors[0], out_type=tf.int64) >= least, tensors, large, small)


def call_on_large(function: Compiled, tensors: Sequence[Tensor]) -> Tensor:
    """Return function(*tensors) for large tensors of one shape, static or dynamic.

    Args:
        function: an elementwise function.
        tensors: tensors of the same shape.
    Returns:
        A tensor with the shape of the tensors.
    """
    first = tensors[0]
    if first.shape.num_elements() is not None and not tf.executing_eagerly():
        return function(*tensors)
    flat = [tf.reshape(x, [-1]) for x in tensors]
    y = tf.reshape(_call_with_padding(function, *flat), tf.shape(first))
    y.set_shape(first.shape)
    return y


def generate_like(function: Compiled, like: Tensor, *others: Tensor) -> Tensor:
    """Return function(number of elements, *others) in the shape of a tensor, compiled for few sizes.

    Args:
        function: made with counts=True; each element of the result depends on its position only.
        like: a tensor of static or dynamic shape.
        others: tensors of static shape.
    """
    count = tf.size(like)
    return tf.reshape(function(_bucketed_count(count), *others)[:count], tf.shape(like))  # neither copies


def _call_with_padding(function: Callable[..., Tensor], *flat: Tensor) -> Tensor:
    count = tf.size(flat[0])
    missing = _bucketed_count(count) - count
    return function(*[tf.pad(x, [[0, missing]]) for x in flat])[:count]  # no copy if nothing is missing


def _partwise_function(function: Compiled, types: DTypes) -> GraphFunction:
    """Return the function for long flat tensors, in a graph's library.

    The result has its own memory. Each part is copied to it while it is still
    in the processor's cache.
    """
    dtype = types[0]
    words = tf.float16 if dtype == tf.bfloat16 else dtype  # TF 1.15 has no Empty for bfloat16

    def put(y: Tensor, part: Tensor, *inputs: Tensor) -> Tensor:
        row = tf.bitcast(tf.reshape(function(*inputs), [1, _PART]), words)
        return tf.raw_ops.InplaceUpdate(x=y, i=tf.reshape(tf.cast(part, tf.int32), [1]), v=row)

    def npu_shim_in_parts(*flat: Tensor) -> Tensor:
        count = tf.size(flat[0], out_type=tf.int64)
        parts = count // _PART
        y = tf.raw_ops.Empty(shape=tf.cast(tf.stack([parts + 1, _PART]), tf.int32), dtype=words)

        def step(part: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
            return part + 1, put(y, part, *[tf.reshape(x[part * _PART : (part + 1) * _PART], [_PART]) for x in flat])

        part, y = tf_api.v1.while_loop(
            lambda part, y: part < parts, step, [tf.zeros_like(parts), y], back_prop=False, parallel_iterations=2
        )
        rest = [tf.pad(x[parts * _PART :], [[0, (parts + 1) * _PART - count]]) for x in flat]
        y = put(y, part, *[tf.reshape(x, [_PART]) for x in rest])
        return tf.bitcast(tf.reshape(y, [-1])[:count], dtype)

    return tf_functions.trace_graph_function(npu_shim_in_parts, types)


def _bucketed_count(count: Tensor) -> Tensor:
    """Return the smallest m 2^k >= count with m in 8..15, which is at most an eighth more than count."""
    bits = tf.cast(
        tf.math.floor(tf.math.log(tf.cast(count - 1, tf.float64) + 0.5) / tf.math.log(tf.constant(2.0, tf.float64))),
        tf.int32,
    )
    unit = tf.bitwise.left_shift(1, bits - 3)
    return tf.minimum((count - 1) // unit + 1, MOST_ELEMENTS // unit) * unit
