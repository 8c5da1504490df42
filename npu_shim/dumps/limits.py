"""Limits of a difference, by type, and what a difference beyond them looks like.

A computation in 16 bits rounds each element to a relative u, and the roundings of an operator and of those before it
add up. A pair departs if its relative Euclidean distance is above 32u, or one element differs by more than 64u of its
size plus the root mean square of the reference. A dump does not say in which type an operator computed: of float32,
the device computes products in 16 bits unless the script forbids it. So float32 has the u of float16. A band of the
reference takes the place of 32u, which is never above one half: floats of 8 bits have a large u. Whole numbers and
booleans depart if one element in a hundred differs: a comparison of two rounded numbers may turn around.
"""

from __future__ import annotations

import itertools

import numpy as np

from npu_shim.dumps.figures import HALF, Figures

_ROUNDOFF = {"bfloat16": 2.0**-8, "float64": 2.0**-24, "complex128": 2.0**-24, "float8_e8m0": 0.5}
_ROUNDOFF.update({"float8_e4m3fn": 2.0**-4, "hifloat8": 2.0**-4, "float8_e5m2": 2.0**-3})
_ROUNDOFF.update(dict.fromkeys(("float16", "float32", "complex32", "complex64"), HALF))
LARGEST_HALF = 65504.0
_DISTANCE, _ISOLATED, _DIFFERENT = 32, 64, 0.01
_MOST_SEARCHED = 1 << 22  # elements that are looked at for a layout or a factor
_FEW = 0.01  # share of elements


def departure_reasons(figures: Figures, device_type: str, band: float | None, tolerance: float) -> list[str]:
    """Return why a pair departs, nothing if it agrees.

    Args:
        figures: of the pair.
        device_type: type on the device.
        band: relative distance that the reference allows; None without one.
        tolerance: a factor of all limits.
    """
    unit, here, largest = _ROUNDOFF.get(device_type), figures.isolated, figures.largest_reference
    if unit is None:
        share = figures.different
        return [f"{share:.1%} of its elements differ"] if share > _DIFFERENT * tolerance else []
    distance = (band or min(_DISTANCE * unit, 0.5)) * tolerance
    isolated = max(_ISOLATED * unit, 2 * (band or 0.0)) * tolerance
    far, is_above = figures.relative_euclidean, device_type == "float16" and largest > LARGEST_HALF
    limits = (
        (figures.only_here, f"{figures.only_here} elements are Inf or NaN on one side"),
        (largest > 0 and not far <= distance, f"relative distance {far:.2g}, limit {distance:.2g}"),
        (is_above, f"{largest:.6g} in the reference is above {LARGEST_HALF:g}, the largest float16"),
        (here > isolated, f"an element differs by {here:.2g} of its size, limit {isolated:.2g}"),
    )
    return [text for holds, text in limits if holds]


def departure_cause(device: np.ndarray, reference: np.ndarray, figures: Figures, device_type: str) -> str:
    """Return what the difference looks like.

    Args:
        device, reference: tensors of one shape.
        figures: of their difference.
        device_type: type on the device.
    """
    beyond, look = round(figures.beyond * device.size), ""
    with np.errstate(all="ignore"):
        if device.dtype.kind != "c":
            look = _range_cause(device, reference, figures, device_type)
            look = look or (_layout_cause(device, reference, figures) if 1 < device.size <= _MOST_SEARCHED else "")
    if look or figures.beyond > _FEW or not beyond:
        return look or f"spread: {figures.beyond:.0%} of the elements differ by more than 16-bit rounding"
    return f"isolated: {beyond} of {device.size} elements differ, the others agree"


def _range_cause(device: np.ndarray, reference: np.ndarray, figures: Figures, device_type: str) -> str:
    if device_type == "float16" and figures.largest_reference > LARGEST_HALF:
        there = np.abs(device[np.abs(reference) > LARGEST_HALF])
        for what, elements in (("overflow", np.isinf(there)), ("saturation", there == LARGEST_HALF)):
            if elements.any():
                return f"float16 {what}: {elements.sum()} elements are above 65504 in the reference"
    if figures.only_here:
        return f"Inf or NaN: {figures.only_here} elements, {figures.not_finite} on the device"
    return "zeros: the device has nothing else" if figures.largest == 0 < figures.largest_reference else ""


def _layout_cause(device: np.ndarray, reference: np.ndarray, figures: Figures) -> str:
    x, y = device.astype(float), reference.astype(float)
    is_same_size = 2 <= x.ndim <= 5 and abs(np.linalg.norm(x) - np.linalg.norm(y)) <= 8 * HALF * np.linalg.norm(y)
    for order in itertools.permutations(range(x.ndim)) if is_same_size else ():
        moved = np.ascontiguousarray(y.transpose(order)).reshape(x.shape)
        if not np.array_equal(moved, y) and _is_close(x, moved):
            return f"layout: the elements are those of the reference with its axes in the order {order}"
    kept = np.isfinite(x) & np.isfinite(y)
    if kept.sum() > 1 and figures.beyond > _FEW:
        x, y = x[kept], y[kept]
        factor, offset = float(x @ y / (y @ y)), float((x - y).mean())
        if _is_close(x, factor * y):
            return f"factor: the elements are {factor:.4g} times those of the reference"
        if _is_close(x, y + offset):
            return f"offset: the elements are those of the reference and {offset:.4g}"
    return ""


def _is_close(x: np.ndarray, y: np.ndarray) -> bool:
    size = np.linalg.norm(y)
    return bool(size > 0 and np.linalg.norm(x - y) <= 8 * HALF * size)
