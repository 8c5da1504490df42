"""The device of a process: its options, the open and the default one."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from npu_shim._tensorflow.types import NpuDevice, Session
from npu_shim.config.device_options import NpuConfig, NpuRunContextOptions


@dataclass
class DeviceState:
    """The record.

    Attributes:
        lock: guards the open device and the options.
        options: those of npu.global_options(); None before its first call.
        opened: the handle of npu.open(); None before.
        default: the handle on which as_default() was called; None before.
        keras_session: that of graph mode, made by as_default().
        sat_mode: the result of an overflow; see npu.set_device_sat_mode.
        run_options: those of the current npu.npu_run_context; None outside.
    """

    lock: threading.Lock = field(default_factory=threading.Lock)
    options: NpuConfig | None = None
    opened: NpuDevice | None = None
    default: NpuDevice | None = None
    keras_session: Session | None = None
    sat_mode: int = 1
    run_options: NpuRunContextOptions | None = None


STATE = DeviceState()
