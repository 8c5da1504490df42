"""The Keras callback that broadcasts the variables of a model once, when training begins.

On an NPU it is a subclass of the vendor's, whose own method is defined inside its constructor and therefore never runs.
"""

from __future__ import annotations

from typing import Sequence

from npu_shim._host import host_device
from npu_shim._tensorflow.types import KerasCallback, Logs
from npu_shim.training import callbacks

NPUBroadcastGlobalVariablesCallback: type[KerasCallback] = callbacks.NPUBroadcastGlobalVariablesCallback

if host_device.has_npu_device():
    _Base: type[KerasCallback] = host_device.import_vendor_module(
        "npu_device.distribute.npu_callbacks"
    ).NPUBroadcastGlobalVariablesCallback

    class _BroadcastCallback(_Base):
        broadcast_done: bool  # set by the vendor's constructor

        def on_batch_begin(self, batch: int, logs: Logs = None) -> None:
            """Broadcast the trainable variables before the first batch."""
            if not self.broadcast_done:
                host_device.import_vendor_module("npu_device.distribute.hccl").broadcast(
                    self.model.trainable_variables, self.root_rank
                )
                self.broadcast_done = True

    _BroadcastCallback.__name__ = _BroadcastCallback.__qualname__ = _Base.__name__
    NPUBroadcastGlobalVariablesCallback = _BroadcastCallback


def npu_callbacks_append(callbacks_list: Sequence[KerasCallback] = ()) -> list[KerasCallback]:
    """Return a new list: the callbacks, and a broadcast callback with root 0. See training.callbacks."""
    return [*callbacks.copy_as_list(callbacks_list, "callbacks_list"), NPUBroadcastGlobalVariablesCallback(0)]
