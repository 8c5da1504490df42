"""The likeliest cause of a difference, from the elements of both sides."""

from __future__ import annotations

import itertools

import numpy as np

from npu_shim.dumps.figures import HALF, Figures
from npu_shim.dumps.limits import LARGEST_HALF

_MOST = 1 << 22  # elements that are looked at for a layout or a factor
_FEW = 0.01  # share of elements


def cause(device: np.ndarray, reference: np.ndarray, figures: Figures, device_type: str) -> str:
    """Return what the difference looks like.

    Args:
        device, reference: tensors of one shape.
        figures: of their difference.
        device_type: type on the device.
    """
    with np.errstate(all="ignore"):
        if device.dtype.kind == "c":
            return _spread(device.size, figures)
        return _of_range(device, reference, figures, device_type) or _of_form(device, reference, figures)


def _of_range(device: np.ndarray, reference: np.ndarray, figures: Figures, device_type: str) -> str:
    is_half = device_type == "float16"
    above = np.abs(reference) > LARGEST_HALF if is_half and figures.largest_reference > LARGEST_HALF else None
    if above is not None:
        infinite, saturated = int(np.isinf(device[above]).sum()), int((np.abs(device[above]) == LARGEST_HALF).sum())
        if infinite or saturated:
            what = "float16 overflow" if infinite else "float16 saturation"
            return f"{what}: {infinite or saturated} elements are above 65504 in the reference"
    if figures.only_here:
        return f"Inf or NaN: {figures.only_here} elements, {figures.not_finite} on the device"
    if figures.largest == 0 < figures.largest_reference:
        return "zeros: the device has nothing else"
    return ""


def _of_form(device: np.ndarray, reference: np.ndarray, figures: Figures) -> str:
    if 1 < device.size <= _MOST:
        x, y = device.astype(float), reference.astype(float)
        kept = np.isfinite(x) & np.isfinite(y)
        order = _order(x, y)
        if order:
            return f"layout: the elements are those of the reference with its axes in the order {order}"
        if kept.sum() > 1 and figures.beyond > _FEW:
            x, y = x[kept], y[kept]
            factor, offset = float(x @ y / (y @ y)), float((x - y).mean())
            if _close(x, factor * y):
                return f"factor: the elements are {factor:.4g} times those of the reference"
            if _close(x, y + offset):
                return f"offset: the elements are those of the reference and {offset:.4g}"
    return _spread(device.size, figures)


def _spread(size: int, figures: Figures) -> str:
    beyond = round(figures.beyond * size)
    if figures.beyond <= _FEW and beyond:
        return f"isolated: {beyond} of {size} elements differ, the others agree"
    return f"spread: {figures.beyond:.0%} of the elements differ by more than 16-bit rounding"


def _order(x: np.ndarray, y: np.ndarray) -> tuple[int, ...] | None:
    if not 2 <= x.ndim <= 5 or abs(np.linalg.norm(x) - np.linalg.norm(y)) > 8 * HALF * np.linalg.norm(y):
        return None
    for order in itertools.permutations(range(x.ndim)):
        moved = np.ascontiguousarray(y.transpose(order)).reshape(x.shape)
        if not np.array_equal(moved, y) and _close(x, moved):
            return order
    return None


def _close(x: np.ndarray, y: np.ndarray) -> bool:
    size = np.linalg.norm(y)
    return bool(size > 0 and np.linalg.norm(x - y) <= 8 * HALF * size)
