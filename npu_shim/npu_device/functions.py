"""Forms of tf.function and tf.py_function on the device, and functions that stay on the host."""

from __future__ import annotations

import functools

from absl import logging

from npu_shim._tensorflow import tf_api, tf_numpy_function
from npu_shim._tensorflow.types import Function, Result

tf = tf_api.tf
CPU = "/job:localhost/replica:0/task:0/device:CPU:0"
TF_FUNCTION = getattr(tf, "function", None)  # TensorFlow's own, also while tf.function is npu_compat_function


def npu_compat_function(func: Function | None = None, *args: object, **kwargs: object) -> Result:
    """Return tf.function(func, ...) without XLA, which the device replaces. tf.function is this after as_default().

    Args:
        func: a Python function; None to get a decorator.
        *args, **kwargs: as for tf.function; jit_compile and experimental_compile become False.
    """
    if TF_FUNCTION is None:
        raise RuntimeError(f"npu.npu_compat_function needs tf.function, which TensorFlow {tf.__version__} lacks.")
    for name in ("jit_compile", "experimental_compile"):
        if kwargs.get(name):
            logging.debug("npu_compat_function: %s=True becomes False", name)
            kwargs[name] = False
    decorate = TF_FUNCTION(*args, **kwargs) if args or kwargs else TF_FUNCTION
    return decorate if func is None else decorate(func)


class NpuCompatEagerFunc(tf_numpy_function.EagerFunc):
    """The function of a tf.py_function; on the NPU it stays on the host, where on the CPU everything is.

    Args:
        *args: as for TensorFlow's EagerFunc.
        **kwargs: as for TensorFlow's EagerFunc.
    """

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)


def wrap_cpu_only_api(func: Function) -> Function:
    """Return a function that calls func with its ops on the host. On the CPU every op is."""

    @functools.wraps(func)
    def on_host(*args: object, **kwargs: object) -> Result:
        with tf.device(CPU):
            return func(*args, **kwargs)

    return on_host
