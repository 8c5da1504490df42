"""Limits of a difference, by type, and what a difference beyond them looks like.

A computation in 16 bits rounds each element to a relative u, and the roundings of an operator and of those before it
add up. A pair departs if its relative Euclidean distance is above 32u, or one element differs by more than 64u of its
size and the mean one. A dump does not say in which type an operator computed: of float32, the device computes products
in 16 bits unless the script forbids it. So float32 has the u of float16. A band of the reference takes the place of
32u, which is never above one half: floats of 8 bits have a large u. Whole numbers and booleans depart if one element in
a hundred differs: a comparison of two rounded numbers may turn around.
"""

from __future__ import annotations

import itertools

import numpy as np

from npu_shim.dumps.figures import HALF, Figures

_ROUNDOFF = {"bfloat16": 2.0**-8, "float64": 2.0**-24, "complex128": 2.0**-24, "float8_e8m0": 0.5}
_ROUNDOFF.update({"float8_e4m3fn": 2.0**-4, "hifloat8": 2.0**-4, "float8_e5m2": 2.0**-3})
LARGEST_HALF = 65504.0
_DISTANCE, _ISOLATED, _DIFFERENT = 32, 64, 0.01
_MOST_SEARCHED = 1 << 22  # elements that are looked at for a layout or a factor
_FEW = 0.01  # share of elements
_FLOATS = ("float16", "float32", "complex32", "complex64", *_ROUNDOFF)


def reasons(figures: Figures, device_type: str, band: float | None, tolerance: float) -> list[str]:
    """Return why a pair departs, nothing if it agrees.

    Args:
        figures: of the pair.
        device_type: type on the device.
        band: relative distance that the reference allows; None without one.
        tolerance: a factor of all limits.
    """
    if device_type not in _FLOATS:
        share = _DIFFERENT * tolerance
        return [f"{figures.different:.1%} of its elements differ"] if figures.different > share else []
    unit = _ROUNDOFF.get(device_type, HALF)
    distance, isolated = (
        (band or min(_DISTANCE * unit, 0.5)) * tolerance,
        max(_ISOLATED * unit, 2 * (band or 0.0)) * tolerance,
    )
    found = []
    if figures.only_here:
        found.append(f"{figures.only_here} elements are Inf or NaN on one side")
    if not figures.relative_euclidean <= distance and figures.largest_reference > 0:
        found.append(f"relative distance {figures.relative_euclidean:.2g}, limit {distance:.2g}")
    if device_type == "float16" and figures.largest_reference > LARGEST_HALF:
        found.append(f"{figures.largest_reference:.6g} in the reference is above {LARGEST_HALF:g}, the largest float16")
    if figures.isolated > isolated:
        found.append(f"an element differs by {figures.isolated:.2g} of its size, limit {isolated:.2g}")
    return found


def cause(device: np.ndarray, reference: np.ndarray, figures: Figures, device_type: str) -> str:
    """Return what the difference looks like.

    Args:
        device, reference: tensors of one shape.
        figures: of their difference.
        device_type: type on the device.
    """
    with np.errstate(all="ignore"):
        found = ""
        if device.dtype.kind != "c":
            found = _of_range(device, reference, figures, device_type)
            found = found or (_of_form(device, reference, figures) if 1 < device.size <= _MOST_SEARCHED else "")
    beyond = round(figures.beyond * device.size)
    if found or figures.beyond > _FEW or not beyond:
        return found or f"spread: {figures.beyond:.0%} of the elements differ by more than 16-bit rounding"
    return f"isolated: {beyond} of {device.size} elements differ, the others agree"


def _of_range(device: np.ndarray, reference: np.ndarray, figures: Figures, device_type: str) -> str:
    if device_type == "float16" and figures.largest_reference > LARGEST_HALF:
        there = device[np.abs(reference) > LARGEST_HALF]
        infinite, saturated = int(np.isinf(there).sum()), int((np.abs(there) == LARGEST_HALF).sum())
        if infinite or saturated:
            what = "float16 overflow" if infinite else "float16 saturation"
            return f"{what}: {infinite or saturated} elements are above 65504 in the reference"
    if figures.only_here:
        return f"Inf or NaN: {figures.only_here} elements, {figures.not_finite} on the device"
    return "zeros: the device has nothing else" if figures.largest == 0 < figures.largest_reference else ""


def _of_form(device: np.ndarray, reference: np.ndarray, figures: Figures) -> str:
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
    return ""


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
