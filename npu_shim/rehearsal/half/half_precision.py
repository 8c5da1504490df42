"""Rehearse half precision, from one call at the top of a script."""

from __future__ import annotations

import tensorflow as tf

from npu_shim._tensorflow import tf_op_creation
from npu_shim._tensorflow.types import Function, Optimizer, Result
from npu_shim.ops.overflow import OVERFLOW
from npu_shim.rehearsal.half.modes import Mode
from npu_shim.rehearsal.half.rounding import Rounding
from npu_shim.rehearsal.precision_modes import MIXED
from npu_shim.rehearsal.recording import methods
from npu_shim.rehearsal.recording.update_hooks import optimizer_classes

TYPES = ("float16", "bfloat16")


class HalfPrecision:
    """A running rehearsal; a context manager. half_precision() makes it."""

    def __init__(self, rounding: Rounding) -> None:
        self._rounding = rounding

    def start(self, saturate: bool) -> HalfPrecision:
        """Round the ops that are made from now on."""
        OVERFLOW.rehearsed = True
        OVERFLOW.set_mode(0 if saturate else 1)
        tf_op_creation.add_hook(self._rounding)
        for owner in optimizer_classes():
            methods.wrap_methods(owner, ("apply_gradients", "apply"), self._apply_in_float32)
        return self

    @property
    def rounded(self) -> dict[str, int]:
        """The number of ops that were made in 16 bits, by type."""
        return dict(self._rounding.counts)

    @property
    def casts(self) -> dict[bool, int]:
        """The number of values that a device casts: True for convolutions and matrix products, False for others."""
        return dict(self._rounding.casts)

    @property
    def saturated(self) -> dict[str, int]:
        """With saturation, how often the values of an op were larger than the largest number, by type and name."""
        return dict(self._rounding.overflows)

    def close(self) -> None:
        """End the rehearsal: ops that are made from now on are not rounded."""
        tf_op_creation.remove_hook(self._rounding)
        OVERFLOW.rehearsed = OVERFLOW.saturates = False

    def __enter__(self) -> HalfPrecision:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _apply_in_float32(self, original: Function, optimizer: Optimizer, *args: object, **kwargs: object) -> Result:
        """Apply gradients in float32, in which the device keeps the ops of updates."""
        with self._rounding.rounding_paused():
            return original(optimizer, *args, **kwargs)


def half_precision(
    dtype: str = "float16", precision_mode: str = MIXED, mixlist: str | None = None, saturate: bool = False
) -> HalfPrecision:
    """Compute the ops of the mixed-precision list in 16 bits on the CPU, to see what a card's half precision does.

    Call it before the script makes its graph or calls its tf.functions. Tensors stay float32; the inputs and outputs of
    these ops are rounded. Updates of variables are computed in float32.

    Args:
        dtype: "float16" or "bfloat16".
        precision_mode: "allow_mix_precision": the ops of the list, and those that follow them and are on neither list.
            "allow_fp32_to_fp16": convolutions and matrix products. "force_fp16": all ops of the device.
            "cube_fp16in_fp32out": the inputs of convolutions and matrix products.
        mixlist: a file with changes of the lists, as for the option modify_mixlist.
        saturate: True if an overflow results in the largest number and sets a flag, False if it results in infinity.
            ``set_device_sat_mode`` changes it for the ops that are made after it.
    Returns:
        The rehearsal: it ends with the process, with close(), or at the end of a ``with`` block.
    Raises:
        ValueError: an argument is not allowed.

    Example::

        import npu_shim.rehearsal

        with npu_shim.rehearsal.half_precision("bfloat16") as half:
            train()
        print(half.rounded)
    """
    if dtype not in TYPES:
        raise ValueError(f"dtype={dtype!r} is not allowed: it must be one of {', '.join(TYPES)}.")
    return HalfPrecision(Rounding(tf.as_dtype(dtype), Mode(precision_mode, mixlist))).start(saturate)
