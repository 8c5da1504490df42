"""Limits of a difference, by type.

A computation in 16 bits rounds each element to a relative u, and the roundings of an operator and of those before it
add up. A pair departs if its relative Euclidean distance is above 32u, or one element differs by more than 64u of its
size and the mean one. A dump does not say in which type an operator computed: of float32, the device computes products
in 16 bits unless the script forbids it. So float32 has the u of float16. A band of the reference takes the place of
32u. Whole numbers and booleans depart if one element in a hundred differs: a comparison of two rounded numbers may
turn around.
"""

from __future__ import annotations

from npu_shim.dumps.figures import HALF, Figures

_ROUNDOFF = {"bfloat16": 2.0**-8, "float64": 2.0**-24, "complex128": 2.0**-24}
LARGEST_HALF = 65504.0
_DISTANCE, _ISOLATED, _DIFFERENT = 32, 64, 0.01
_FLOATS = ("float16", "bfloat16", "float32", "float64", "complex64", "complex128")


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
    distance, isolated = distance_limit(device_type, band), _ISOLATED * _ROUNDOFF.get(device_type, HALF)
    found = []
    if figures.only_here:
        found.append(f"{figures.only_here} elements are Inf or NaN on one side")
    if not figures.relative_euclidean <= distance * tolerance and figures.largest_reference > 0:
        found.append(f"relative distance {figures.relative_euclidean:.2g}, limit {distance * tolerance:.2g}")
    if device_type == "float16" and figures.largest_reference > LARGEST_HALF:
        found.append(f"{figures.largest_reference:.6g} in the reference is above {LARGEST_HALF:g}, the largest float16")
    limit = max(isolated, 2 * (band or 0.0)) * tolerance
    if figures.isolated > limit:
        found.append(f"an element differs by {figures.isolated:.2g} of its size, limit {limit:.2g}")
    return found


def distance_limit(device_type: str, band: float | None) -> float:
    """Return the largest relative Euclidean distance of a pair that agrees."""
    return band if band else _DISTANCE * _ROUNDOFF.get(device_type, HALF)
