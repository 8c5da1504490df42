"""Settings of the device: its options, the options of a context, the result of an overflow, steps of a loop."""

from __future__ import annotations

import contextlib
from typing import Iterator

from absl import logging

from npu_shim.config.device_options import NpuBaseConfig, NpuConfig, NpuRunContextOptions
from npu_shim.npu_device.state import STATE
from npu_shim.ops.overflow import OVERFLOW

_SAT_MODES = (0, 1, 2)  # saturate, infinity and NaN, not set


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


def set_device_sat_mode(mode: int) -> None:
    """Set the result of an overflow: 0 for the largest number, 1 for infinity and NaN.

    The CPU computes with infinity and NaN; the mode changes what is_inf_nan_enabled() returns, and rehearsals of half
    precision.

    Args:
        mode: 0, 1, or 2 for the default of the device. Another number is logged as an error and changes nothing.
    """
    if mode in _SAT_MODES:
        STATE.sat_mode = mode
        OVERFLOW.set_mode(mode)
    else:
        logging.error("npu.set_device_sat_mode: mode=%r is not allowed and ignored. Pass 0 or 1.", mode)


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
        STATE.options.set_read(STATE.default is not None)
        return STATE.options


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
    STATE.run_options = options
    try:
        yield
    finally:
        STATE.run_options = None


def as_own_options(options: object) -> NpuConfig:
    """Return the options of npu.global_options() as a NpuConfig of npu_shim, on an NPU as a copy of the vendor's."""
    if isinstance(options, NpuConfig):
        return options
    own = NpuConfig()
    copy_vendor_options(own, options)
    return own


def copy_vendor_options(options: NpuBaseConfig, vendor: object) -> None:
    """Set the options to those that the script has changed in the vendor's options."""
    for name in options.names():
        part = getattr(vendor, name, None)
        if isinstance(getattr(options, name), NpuBaseConfig):
            copy_vendor_options(getattr(options, name), part)
        elif part is not None and part.value is not None:
            given = vars(part)["_OptionValue__value"]  # its property value is a text
            if given != part.default:
                setattr(options, name, given)
