"""Names of GPUs in device scopes, in graphs and in eager code."""

from __future__ import annotations

import functools
import re
from typing import Callable, ContextManager

import tensorflow as tf
from tensorflow.python.eager.context import Context as _Context

from npu_shim._tensorflow import patches
from npu_shim._tensorflow.tf_graph import is_eager_outermost
from npu_shim._tensorflow.types import Device, Function, Graph

_GPU = re.compile(r"(?:(?<=/)|\A)(?:device:)?gpu(?P<index>:(?:\d+|\*))?(?=/|\Z)", re.IGNORECASE)
_CPU, _NPU = "device:CPU:0", "device:NPU:0"  # each process has one


def patch_device_scopes_of_graphs() -> None:
    """Let a scope of a graph that names a GPU name the CPU, from which the NPU takes ops.

    A script that is not for the NPU yet, as one that is observed, keeps its GPUs if TensorFlow has some.
    """
    patches.replace_attribute(tf.Graph, "device", _wrap_graph_device)


def patch_device_scopes_of_eager_code() -> None:
    """Let a scope in eager code, or in its functions, that names a GPU name the NPU. Graphs are as above."""
    patches.replace_attribute(_Context, "device", _wrap_context_device)
    patch_device_scopes_of_graphs()


def _wrap_graph_device(device: Function) -> Function:
    """Wrap tf.Graph.device."""

    @functools.wraps(device)
    def wrapped(self: Graph, device_name_or_function: Device) -> ContextManager[None]:
        new = _CPU
        if self.building_function and is_eager_outermost():
            if not patches.is_replaced(_Context, "device"):
                return device(self, device_name_or_function)
            new = _NPU
        if callable(device_name_or_function):
            return device(self, _function_without_gpus(device_name_or_function, new))
        return device(self, _replace_gpu_in_device(device_name_or_function, new))

    return wrapped


def _wrap_context_device(device: Function) -> Function:
    """Wrap the method of TensorFlow's eager context that enters the scope of a device."""

    @functools.wraps(device)
    def wrapped(self: _Context, name: Device) -> ContextManager[None]:
        return device(self, _replace_gpu_in_device(name, _NPU))

    return wrapped


def _function_without_gpus(choose: Callable[..., Device], new: str) -> Callable[..., Device]:
    @functools.wraps(choose)
    def wrapped(op: object) -> Device:
        return _replace_gpu_in_device(choose(op), new)

    return wrapped


def _replace_gpu_in_device(device: Device, new: str) -> Device:
    """Return the name of a device, or its DeviceSpec, with another device in place of a GPU."""
    name = device.to_string() if hasattr(device, "to_string") else device
    if not isinstance(name, str) or "gpu" not in name.lower() or _keeps_gpus():
        return device
    return _GPU.sub(new, name)


def _keeps_gpus() -> bool:
    """Return True if TensorFlow has a GPU, and the script has not made the NPU its device."""
    is_for_npu = patches.is_replaced(tf.compat.v1.Session, "__init__") or patches.is_replaced(_Context, "device")
    return not is_for_npu and bool(tf.config.experimental.list_physical_devices("GPU"))
