"""Figures of the difference between two tensors, as the vendor's comparison defines them.

With x of the device and y of the reference, both in float32:

    CosineSimilarity           sum(x y) / (|x| |y|)
    MaxAbsoluteError           max |x - y|
    AccumulatedRelativeError   sum |x / y - 1|      where |y| > 2.2e-16
    RelativeEuclideanDistance  |x - y| / |y|
    KullbackLeiblerDivergence  sum p log(p / q)     of both scaled to 0 ... 1, then to the sum 1
    StandardDeviation          means and deviations of both
    MeanAbsoluteError, RootMeanSquareError, MaxRelativeError, MeanRelativeError

The vendor divides in float32, so this does, too; sums are in float64. Inf and NaN are counted and left out. Tensors
are read in blocks, so that one of several gigabytes takes little memory.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Iterator

import numpy as np

_BLOCK = 1 << 17  # two of them, and what is computed of them, fit into a cache
_TINY = float(np.finfo(float).eps)
_FLOOR = float(np.finfo(np.float32).eps)  # of the divergence
_NAN = float("nan")
HALF = 2.0**-11  # unit roundoff of float16


@dataclass
class Figures:
    """The figures of a pair; NaN where one is not defined.

    Attributes:
        beyond: share of the elements that differ by more than 16-bit rounding, 2u(|y| + rms y).
        different: share of the elements that are not equal.
        isolated: largest |x - y| / (|y| + rms y).
        not_finite, not_finite_reference: numbers of Inf and NaN.
        only_here: numbers of Inf and NaN where the reference has a number, and of others than it has.
        largest, largest_reference: largest absolute values.
    """

    cosine: float = _NAN
    max_absolute: float = _NAN
    accumulated_relative: float = _NAN
    relative_euclidean: float = _NAN
    divergence: float = _NAN
    deviations: tuple[float, float, float, float] = (_NAN, _NAN, _NAN, _NAN)
    mean_absolute: float = _NAN
    root_mean_square: float = _NAN
    max_relative: float = _NAN
    mean_relative: float = _NAN
    beyond: float = 0.0
    different: float = 0.0
    isolated: float = 0.0
    not_finite: int = 0
    not_finite_reference: int = 0
    only_here: int = 0
    largest: float = 0.0
    largest_reference: float = 0.0


def compare(device: np.ndarray, reference: np.ndarray) -> Figures:
    """Return the figures of two tensors of one shape."""
    made = Figures()
    with np.errstate(all="ignore"):
        _compare(made, _flat(device), _flat(reference))
    return made


def _compare(made: Figures, device: np.ndarray, reference: np.ndarray) -> None:
    sums, low, high, number = np.zeros(4), np.full(2, np.inf), np.full(2, -np.inf), 0
    for x, y, raw_x, raw_y in _blocks(device, reference):
        made.different += np.count_nonzero(raw_x != raw_y) / device.size
        if len(x) < len(raw_x):
            _count_not_finite(made, raw_x, raw_y, device.size)
        if len(x):
            number += len(x)
            sums += [x.sum(), y.sum(), x @ x, y @ y]
            low, high = np.minimum(low, [x.min(), y.min()]), np.maximum(high, [x.max(), y.max()])
    if not number:
        return
    made.largest = max(made.largest, float(max(-low[0], high[0])))
    made.largest_reference = max(made.largest_reference, float(max(-low[1], high[1])))
    means, norms = sums[:2] / number, np.sqrt(sums[2:])
    spread = np.sqrt(np.maximum(sums[2:] / number - means**2, 0.0))
    made.deviations = (float(means[0]), float(spread[0]), float(means[1]), float(spread[1]))
    _differences(made, device, reference, number, norms, low, high - low)
    if device.size == 1 or norms.max() <= _TINY:
        made.cosine = 1.0
    elif norms.min() ** 0.5 <= _TINY:
        made.cosine = _NAN


def _count_not_finite(made: Figures, x: np.ndarray, y: np.ndarray, size: int) -> None:
    bad_x, bad_y, both = ~np.isfinite(x), ~np.isfinite(y), np.isnan(x) & np.isnan(y)
    made.different -= int(both.sum()) / size
    made.not_finite += int(bad_x.sum())
    made.not_finite_reference += int(bad_y.sum())
    made.only_here += int(((bad_x | bad_y) & ~both & (x != y)).sum())
    made.largest = float(np.abs(x[~bad_x].astype(float)).max(initial=made.largest))
    made.largest_reference = float(np.abs(y[~bad_y].astype(float)).max(initial=made.largest_reference))


def _differences(
    made: Figures,
    device: np.ndarray,
    reference: np.ndarray,
    number: int,
    norms: np.ndarray,
    low: np.ndarray,
    width: np.ndarray,
) -> None:
    rms = norms[1] / math.sqrt(number)
    cosine = square = absolute = relative = largest = largest_relative = isolated = 0.0
    p_sum = q_sum = logarithms = 0.0
    beyond = 0
    for x, y, _, _ in _blocks(device, reference):
        if not len(x):
            continue
        size = np.abs(x - y)
        ratio = x.astype(np.float32) / y.astype(np.float32)
        ratio -= np.float32(1)
        np.abs(ratio, out=ratio)
        magnitude = np.abs(y)
        ratio[magnitude <= _TINY] = 0.0
        cosine += float(x @ y)
        square += float(size @ size)
        absolute, relative = absolute + float(size.sum()), relative + float(ratio.sum(dtype=float))
        largest, largest_relative = max(largest, float(size.max())), max(largest_relative, float(ratio.max()))
        magnitude += rms
        share = np.where(size > 0, size / magnitude, 0.0)
        isolated = max(isolated, float(share.max()))
        beyond += np.count_nonzero(share > 2 * HALF)
        p, q = (
            np.maximum((values - low[side]) / width[side] if width[side] else values, _FLOOR)
            for side, values in enumerate((x, y))
        )
        p_sum, q_sum = p_sum + float(p.sum()), q_sum + float(q.sum())
        logarithms += float(p @ np.log(p / q))
    made.cosine = min(cosine / (norms[0] * norms[1]), 1.0) if norms.min() > 0 else 0.0
    made.max_absolute, made.mean_absolute = largest, absolute / number
    made.accumulated_relative, made.max_relative, made.mean_relative = relative, largest_relative, relative / number
    made.root_mean_square = math.sqrt(square / number)
    made.relative_euclidean = math.sqrt(square) / norms[1] if norms[1] > _TINY else 0.0
    made.beyond, made.isolated = beyond / device.size, isolated
    divergence = logarithms / p_sum + math.log(q_sum / p_sum)
    made.divergence = divergence if abs(divergence) >= _TINY else 0.0


def _blocks(device: np.ndarray, reference: np.ndarray) -> Iterator[tuple[np.ndarray, ...]]:
    """Return blocks of elements that are finite on both sides, in float64 after float32, and all as they are."""
    for place in range(0, device.size, _BLOCK):
        raw_x, raw_y = device[place : place + _BLOCK], reference[place : place + _BLOCK]
        x, y = raw_x.astype(np.float32), raw_y.astype(np.float32)
        kept = np.isfinite(x) & np.isfinite(y)
        if not kept.all():
            x, y = x[kept], y[kept]
        yield x.astype(float), y.astype(float), raw_x, raw_y


def _flat(array: np.ndarray) -> np.ndarray:
    flat = np.asarray(array).reshape(-1)
    return flat.view(flat.real.dtype) if flat.dtype.kind == "c" else flat
