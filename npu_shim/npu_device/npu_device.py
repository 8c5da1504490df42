"""Open the device and make it the default; settings of the device.

On the CPU an open device is a record: which device and rank this process would have. TensorFlow places the ops of
``/device:NPU:0`` on the CPU by itself, in eager code and in functions (soft placement).
"""

from __future__ import annotations

import atexit
import contextlib
import functools
from typing import Any, Callable, ContextManager, Iterator, MutableMapping

from absl import logging

from npu_shim import _device, _env, _patches, _tf, _tf_numpy_function
from npu_shim.config.device_options import (
    NpuBaseConfig,
    NpuConfig,
    NpuRunContextOptions,
    OptionValue,
    session_options,
)
from npu_shim.npu_device import gen_npu_ops as gen_npu_ops
from npu_shim.npu_device.state import STATE
from npu_shim.npu_device.train import convert_dropout
from npu_shim.npu_device.utils import npu_wrapper as npu_wrapper  # registers the layer of saved models

tf = _tf.tf
NPU = "/job:localhost/replica:0/task:0/device:NPU"
_CPU = "/job:localhost/replica:0/task:0/device:CPU:0"
_VENDOR = "npu_device.npu_device"
_SAT_MODES = (0, 1, 2)  # saturate, infinity and NaN, not set
_function = getattr(tf, "function", None)  # TensorFlow's own, also while tf.function is npu_compat_function


@contextlib.contextmanager
def watch_op_register() -> Iterator[None]:
    """Note the operators that are registered inside as the device's own. No effect on the CPU."""
    if _device.has_npu_device():
        with _device.vendor(_VENDOR).watch_op_register():
            yield
    else:
        yield


@_device.prefer_vendor(_VENDOR)
def stupid_repeat(word: str, times: int) -> None:
    """Log a word several times."""
    for _ in range(times):
        logging.info("%s", word)


@_device.prefer_vendor(_VENDOR)
def set_npu_loop_size(loop_size: int) -> None:
    """Set how many steps of a loop of tf.function the device runs at once; NPU_LOOP_SIZE is its first value.

    The CPU runs loops step by step. There it only checks the number.

    Args:
        loop_size: at least 1. Another int is logged as an error and changes nothing.
    Raises:
        TypeError: loop_size is not an int.
    """
    if not isinstance(loop_size, int):
        raise TypeError(f"loop_size={loop_size!r} is not allowed: it must be an int of at least 1.")
    if loop_size < 1:
        logging.error("npu.set_npu_loop_size: loop_size=%d is not allowed and ignored. Pass an int >= 1.", loop_size)


@_device.prefer_vendor(_VENDOR)
def set_device_sat_mode(mode: int) -> None:
    """Set the result of an overflow: 0 for the largest number, 1 for infinity and NaN.

    The CPU always computes with infinity and NaN; the mode only changes what is_inf_nan_enabled() returns.

    Args:
        mode: 0, 1, or 2 for the default of the device. Another number is logged as an error and changes nothing.
    """
    if mode in _SAT_MODES:
        STATE.sat_mode = mode
    else:
        logging.error("npu.set_device_sat_mode: mode=%r is not allowed and ignored. Pass 0 or 1.", mode)


@_device.prefer_vendor(_VENDOR)
def is_inf_nan_enabled() -> bool:
    """Return True if the mode of set_device_sat_mode is 1, for infinity and NaN. On the CPU it is at first."""
    return STATE.sat_mode == 1


def global_options() -> NpuConfig:
    """Return the options of the device. Set them as attributes, before npu.open().

    Returns:
        The NpuConfig of this process, always the same object.
    """
    with STATE.lock:
        if STATE.options is None:
            STATE.options = NpuConfig()
        return STATE.options


@_device.prefer_vendor(_VENDOR)
def enable_v1() -> None:
    """Switch to graph mode: tf.compat.v1.disable_v2_behavior(). Then use npu_device.compat.v1.npu_init."""
    if STATE.opened is not None:
        _env.process_environ()["ASCEND_DEVICE_ID"] = str(STATE.opened.device_id)
    _tf.v1.disable_v2_behavior()


def get_ranksize() -> str:
    """Return the text of RANK_SIZE or CM_WORKER_SIZE; "1" without both.

    Raises:
        ValueError: both are set.
    """
    environ = _env.process_environ()
    size, workers = environ.get("RANK_SIZE"), environ.get("CM_WORKER_SIZE")
    if size is not None and workers is not None:
        raise ValueError(
            f"RANK_SIZE={size} and CM_WORKER_SIZE={workers} are both set, but both give the number of ranks. "
            "With a rank table, unset CM_WORKER_SIZE; with a master node, unset RANK_SIZE."
        )
    return size or workers or "1"


def set_cm_chief_worksize_env(
    global_kw_options: MutableMapping[str, str | None],
    env_cm_chief_ip: str | None = None,
    workers_num: int | None = None,
) -> None:
    """Add the options of a job with a master node, from the variables CM_*.

    Args:
        global_kw_options: the options of the device, which are extended.
        env_cm_chief_ip: the value of CM_CHIEF_IP.
        workers_num: the number of ranks.
    Raises:
        RuntimeError: a variable is not set.
    """
    environ = _env.process_environ()
    given = {
        "CM_CHIEF_PORT": environ.get("CM_CHIEF_PORT"),
        "CM_CHIEF_DEVICE": environ.get("CM_CHIEF_DEVICE"),
        "CM_CHIEF_IP": env_cm_chief_ip,
    }
    for name, value in given.items():
        if not value:
            raise RuntimeError(f"A job of several ranks with a master node needs {name}, which is not set. Export it.")
    global_kw_options.update(
        {
            "_distribute.cm_chief_ip": env_cm_chief_ip,
            "_distribute.cm_chief_port": given["CM_CHIEF_PORT"],
            "_distribute.cm_chief_worker_device": given["CM_CHIEF_DEVICE"],
            "_distribute.cm_worker_ip": environ.get("CM_WORKER_IP"),
            "_distribute.cm_worker_size": str(workers_num),
        }
    )


def set_rank_table_file_env(
    global_kw_options: MutableMapping[str, str | None], env_rank_table: str | None = None
) -> None:
    """Add the options of a job with a rank table, from RANK_ID.

    Args:
        global_kw_options: the options of the device, which are extended.
        env_rank_table: the value of RANK_TABLE_FILE.
    Raises:
        RuntimeError: RANK_ID is not set.
    """
    rank = _env.process_environ().get("RANK_ID")
    if not rank:
        raise RuntimeError("A job of several ranks with a rank table needs RANK_ID, which is not set. Export it.")
    global_kw_options.update({"_distribute.rank_table": env_rank_table, "_distribute.rank_id": rank})


def open(device_id: int | None = None) -> NpuDeviceHandle:
    """Open the device of this process and return its handle. Later calls return the same handle.

    On the CPU it finds the rank of this process, and warns once that there is no card (NPU_SHIM_FALLBACK).

    Args:
        device_id: number of the device; that of ASCEND_DEVICE_ID, or 0, if None.
    Raises:
        RuntimeError: another device is open, the variables of the job contradict each other or are incomplete, or there
            is no NPU and NPU_SHIM_FALLBACK=error.
        ValueError: RANK_SIZE and CM_WORKER_SIZE are both set.
    """
    if _device.has_npu_device() and tf.executing_eagerly():
        vendor = _device.vendor(_VENDOR)
        _hand_over(global_options(), vendor.global_options())
        return vendor.open(device_id)
    size = int(get_ranksize())
    environ = _env.process_environ()
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
    _device.resolve()
    from npu_shim.distributed.ranks import get_rank_id, get_rank_size

    chosen = _env.read().device_id if device_id is None else device_id
    with STATE.lock:
        if STATE.opened is None:
            STATE.opened = NpuDeviceHandle(None, chosen, {}, get_rank_size(), get_rank_id())
        elif STATE.opened.device_id != chosen:
            raise RuntimeError(
                f"npu.open({chosen}): device {STATE.opened.device_id} is open, and a process has one device. "
                "Start a process for each device (npu-shim launch)."
            )
        return STATE.opened


def _hand_over(options: NpuBaseConfig, vendor: Any) -> None:
    """Set the vendor's options to those that the script has changed."""
    for name in options.names():
        part = getattr(options, name)
        if isinstance(part, NpuBaseConfig):
            _hand_over(part, getattr(vendor, name))
        elif isinstance(part, OptionValue) and part.is_changed:
            setattr(vendor, name, part.given)


@_device.prefer_vendor(_VENDOR)
def close() -> None:
    """Close the device; also done when Python ends. On the CPU, close the Keras session of graph mode."""
    with STATE.lock:
        if STATE.keras_session is not None:
            STATE.keras_session.close()
        STATE.opened = STATE.default = STATE.keras_session = None


@_device.prefer_vendor(_VENDOR)
def global_npu_ctx() -> NpuDeviceHandle | None:
    """Return the handle on which as_default() was called; None before."""
    return STATE.default


def npu_compat_function(func: Callable[..., Any] | None = None, *args: Any, **kwargs: Any) -> Any:
    """Return tf.function(func, ...) without XLA, which the device replaces. tf.function is this after as_default().

    Args:
        func: a Python function; None to get a decorator.
        *args, **kwargs: as for tf.function; jit_compile and experimental_compile become False.
    """
    if _device.has_npu_device():
        return _device.vendor(_VENDOR).npu_compat_function(func, *args, **kwargs)
    if _function is None:
        raise RuntimeError(f"npu.npu_compat_function needs tf.function, which TensorFlow {tf.__version__} lacks.")
    for name in ("jit_compile", "experimental_compile"):
        if kwargs.get(name):
            logging.debug("npu_compat_function: %s=True becomes False", name)
            kwargs[name] = False
    decorate = _function(*args, **kwargs) if args or kwargs else _function
    return decorate if func is None else decorate(func)


@_device.use_vendor_class(_VENDOR)
class NpuCompatEagerFunc(_tf_numpy_function.EagerFunc):
    """The function of a tf.py_function; on the NPU it stays on the host, where on the CPU everything is."""


@_device.prefer_vendor(_VENDOR)
def wrap_cpu_only_api(func: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that calls func with its ops on the host. On the CPU every op is."""

    @functools.wraps(func)
    def on_host(*args: Any, **kwargs: Any) -> Any:
        with tf.device(_CPU):
            return func(*args, **kwargs)

    return on_host


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
        return _CPU

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
        config (npu_shim.install).
        """
        STATE.default = self
        if tf.executing_eagerly():
            tf.config.set_soft_device_placement(True)  # for the NPU's device name; off if a graph came first
            for owner in (tf, tf.compat.v2):
                if _function is not None and "function" in vars(owner) and hasattr(tf, "config"):
                    _patches.replace_attribute(owner, "function", lambda original: npu_compat_function)
            convert_dropout.dropout_api_convert()
        elif STATE.keras_session is None and _tf.has_keras_sessions():
            from npu_shim._install import install
            from npu_shim.config.keras_session import set_keras_session_npu_config
            from npu_shim.config.session import session_config

            install()  # for sessions that follow, such as that of Keras after clear_session()
            STATE.keras_session = set_keras_session_npu_config(session_config(**session_options(global_options())))
            atexit.register(close)
        return self


@contextlib.contextmanager
def npu_run_context(options: NpuRunContextOptions | None = None) -> Iterator[None]:
    """Run the graphs inside with options of their own, such as which results are recomputed. No effect on the CPU.

    Args:
        options: npu.configs.run_context_options(); its defaults if None.
    Raises:
        ValueError: options is something else.
    """
    if options is not None and not isinstance(options, NpuRunContextOptions):
        raise ValueError(f"options={options!r} is not allowed. Pass npu.configs.run_context_options().")
    options = options or NpuRunContextOptions()
    if _device.has_npu_device():
        own = _device.vendor("npu_device.configs.npu_run_context_option").NpuRunContextOptions()
        _hand_over(options, own)
        with _device.vendor(_VENDOR).npu_run_context(own):
            yield
        return
    STATE.run_options = options
    try:
        yield
    finally:
        STATE.run_options = None
