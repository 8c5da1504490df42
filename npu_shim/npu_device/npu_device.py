"""Open the device and make it the default.

On the CPU an open device is a record: which device and rank this process would have. TensorFlow places the ops of
``/device:NPU:0`` on the CPU by itself, in eager code and in functions (soft placement).
"""

from __future__ import annotations

import atexit
import contextlib
from typing import ContextManager, Iterator

from absl import logging

from npu_shim._host import host_device, host_env
from npu_shim._tensorflow import patches, tf_api, tf_devices
from npu_shim.config.device_options import session_options
from npu_shim.npu_device import gen_npu_ops as gen_npu_ops
from npu_shim.npu_device.functions import (
    CPU,
    TF_FUNCTION,
    NpuCompatEagerFunc as NpuCompatEagerFunc,
    npu_compat_function,
    wrap_cpu_only_api as wrap_cpu_only_api,
)
from npu_shim.npu_device.job_variables import get_ranksize, set_cm_chief_worksize_env, set_rank_table_file_env
from npu_shim.npu_device.settings import (
    as_own_options,
    global_options,
    is_inf_nan_enabled as is_inf_nan_enabled,
    npu_run_context as npu_run_context,
    set_device_sat_mode as set_device_sat_mode,
    set_npu_loop_size as set_npu_loop_size,
)
from npu_shim.npu_device.state import STATE
from npu_shim.npu_device.train import convert_dropout
from npu_shim.npu_device.utils import npu_wrapper as npu_wrapper  # registers the layer of saved models
from npu_shim.ops.cpu_kernels import forms

tf = tf_api.tf
NPU = "/job:localhost/replica:0/task:0/device:NPU"
_VENDOR = "npu_device.npu_device"


@contextlib.contextmanager
def watch_op_register() -> Iterator[None]:
    """Note the operators that are registered inside as the device's own. No effect on the CPU."""
    yield


def stupid_repeat(word: str, times: int) -> None:
    """Log a word several times."""
    for _ in range(times):
        logging.info("%s", word)


def enable_v1() -> None:
    """Switch to graph mode: tf.compat.v1.disable_v2_behavior(). Then use npu_device.compat.v1.npu_init."""
    if STATE.opened is not None:
        host_env.process_environ()["ASCEND_DEVICE_ID"] = str(STATE.opened.device_id)
    tf_api.v1.disable_v2_behavior()


def open(device_id: int | None = None) -> NpuDeviceHandle:
    """Open the device of this process and return its handle. Later calls return the same handle.

    Device scopes that name a GPU then name the NPU, in graphs of TensorFlow 1 the CPU, from which it takes ops. On the
    CPU it finds the rank of this process, and warns once that there is no card (NPU_SHIM_FALLBACK).

    Args:
        device_id: number of the device. If it is None, that which is open, so that each module of a program may open
            it; else that of ASCEND_DEVICE_ID, or 0.
    Raises:
        RuntimeError: another device is open, the variables of the job contradict each other or are incomplete, or there
            is no NPU and NPU_SHIM_FALLBACK=error.
        ValueError: RANK_SIZE and CM_WORKER_SIZE are both set.
    """
    default = global_npu_ctx()
    if device_id is None and default is not None:
        return default
    if host_device.has_npu_device() and tf.executing_eagerly():
        handle = host_device.import_vendor_module(_VENDOR).open(device_id)
        tf_devices.patch_device_scopes_of_eager_code()
        return handle
    size = int(get_ranksize())
    environ = host_env.process_environ()
    chief, table = environ.get("CM_CHIEF_IP"), environ.get("RANK_TABLE_FILE")
    if size > 1 and chief is not None and table is not None:
        raise RuntimeError(
            f"CM_CHIEF_IP={chief!r} and RANK_TABLE_FILE={table!r} are both set, but a job needs only one of them. "
            "Unset RANK_TABLE_FILE, or unset the CM_* variables."
        )
    if size > 1 and chief is not None:
        set_cm_chief_worksize_env({}, chief, size)
    elif size > 1 and table is not None:
        set_rank_table_file_env({}, table)
    host_device.require_device()
    from npu_shim.distributed.ranks import get_rank_id, get_rank_size

    chosen = host_env.read_environment().device_id if device_id is None else device_id
    with STATE.lock:
        if STATE.opened is None:
            STATE.opened = _Handle(None, chosen, {}, get_rank_size(), get_rank_id())
        elif device_id not in (None, STATE.opened.device_id):
            raise RuntimeError(
                f"npu.open({device_id}): device {STATE.opened.device_id} is open, and a process has one device. "
                "Start a process for each device (npu-shim launch)."
            )
    tf_devices.patch_device_scopes_of_eager_code()
    return STATE.opened


def close() -> None:
    """Close the device; also done when Python ends. On the CPU, close the Keras session of graph mode."""
    with STATE.lock:
        if STATE.keras_session is not None:
            STATE.keras_session.close()
        STATE.opened = STATE.default = STATE.keras_session = None


def global_npu_ctx() -> NpuDeviceHandle | None:
    """Return the handle on which as_default() was called; None before."""
    return STATE.default


class NpuDeviceHandle:
    """An open device.

    Args:
        ctx: the context of TensorFlow; None on the CPU.
        device_id: number of the device.
        device_options: options of the device, which the vendor's package fills.
        workers_num: the number of ranks.
        worker_id: the rank of this process.
    """

    def __init__(
        self, ctx: object, device_id: int, device_options: dict[str, str], workers_num: int, worker_id: int
    ) -> None:
        self._ctx = ctx
        self._device_options = device_options
        self.device_id = device_id
        self.workers_num = workers_num
        self.worker_id = worker_id

    def name(self) -> str:
        """Return the name of TensorFlow's device: that of tensors and variables, so on the CPU the CPU's."""
        return CPU

    def scope(self) -> ContextManager[None]:
        """Return a context manager that puts ops on the device."""
        return tf.device(self.name())

    def is_cluster_worker(self) -> bool:
        """Return True if the job has more than one rank and this process is one of them."""
        return self.workers_num > 1 and 0 <= self.worker_id < self.workers_num

    def as_default(self) -> NpuDeviceHandle:
        """Make the device the default of this process, and return the handle.

        In eager code and tf.function: XLA is switched off (jit_compile), and with TensorFlow 2.6 tf.nn.dropout becomes
        npu_ops.dropout in functions, as on the NPU; npu_shim.uninstall() restores both. In graph mode (TensorFlow 1,
        or v2 behavior disabled): Keras gets a session, closed when Python ends, and all new sessions have the NPU
        config (npu_shim.install). In both, ops that only GPUs and NPUs compute run in another form on the CPU.
        """
        STATE.default = self
        forms.use_cpu_forms()
        if tf.executing_eagerly():
            tf.config.set_soft_device_placement(True)  # for the NPU's device name; off if a graph came first
            for owner in (tf, tf.compat.v2):
                if TF_FUNCTION is not None and "function" in vars(owner) and hasattr(tf, "config"):
                    patches.replace_attribute(owner, "function", lambda original: npu_compat_function)
            convert_dropout.dropout_api_convert()
        elif STATE.keras_session is None and tf_api.has_keras_sessions():
            from npu_shim.config.install import install
            from npu_shim.config.keras_session import set_keras_session_npu_config
            from npu_shim.config.session import session_config

            install()  # for sessions that follow, such as that of Keras after clear_session()
            STATE.keras_session = set_keras_session_npu_config(
                session_config(**session_options(as_own_options(global_options())))
            )
            atexit.register(_close)
        return self


_close = close
_Handle = NpuDeviceHandle  # of graph mode, also where NpuDeviceHandle is the vendor's
host_device.copy_vendor_names(__name__, own="open")  # open() also knows graph mode
