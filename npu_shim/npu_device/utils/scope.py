"""Scopes that mark the ops created inside for the NPU's compiler. The CPU ignores the marks."""

from __future__ import annotations

from typing import ContextManager

from npu_shim._host import host_device
from npu_shim._tensorflow import tf_graph
from npu_shim.ops.scopes import keep_dtype_scope as keep_dtype_scope, npu_optimizer_scope as npu_optimizer_scope


def npu_gradients_scope() -> ContextManager[None]:
    """Mark ops as part of the backward pass. No effect on the CPU."""
    return tf_graph.attr_scope({"_backward": True})


def npu_recompute_scope() -> ContextManager[None]:
    """Recompute the results of ops in the backward pass to save memory. No effect on the CPU."""
    return tf_graph.attr_scope({"_recompute": True})


host_device.copy_vendor_names(__name__)
