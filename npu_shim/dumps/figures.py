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
from typing import Iterator, Tuple

import numpy as np

_BLOCK = 1 << 17  # two of them, and what is computed of them, fit into a cache
_TINY = float(np.finfo(float).eps)
_FLOOR = float(np.finfo(np.float32).eps)  # of the divergence
_NAN = float("nan")
Array = np.ndarray
Pair = Tuple[Array, Array]
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
    made, pair = Figures(), (_flat(device), _flat(reference))
    size = pair[0].size
    with np.errstate(all="ignore"):
        sums, low, high, number = np.zeros(4), np.full(2, np.inf), np.full(2, -np.inf), 0
        for x, y, raw_x, raw_y in _blocks(*pair):
            made.different += np.count_nonzero(raw_x != raw_y) / size
            if len(x) < len(raw_x):
                _count_not_finite(made, raw_x, raw_y, size)
            if len(x):
                number += len(x)
                sums += [x.sum(), y.sum(), x @ x, y @ y]
                low, high = np.minimum(low, [x.min(), y.min()]), np.maximum(high, [x.max(), y.max()])
        if number:
            made.largest = max(made.largest, float(max(-low[0], high[0])))
            made.largest_reference = max(made.largest_reference, float(max(-low[1], high[1])))
            means, norms = sums[:2] / number, np.sqrt(sums[2:])
            spread = np.sqrt(np.maximum(sums[2:] / number - means**2, 0.0))
            made.deviations = (float(means[0]), float(spread[0]), float(means[1]), float(spread[1]))
            _differences(made, pair, number, norms, low, high - low)
    return made


def _count_not_finite(made: Figures, x: np.ndarray, y: np.ndarray, size: int) -> None:
    bad_x, bad_y, both = ~np.isfinite(x), ~np.isfinite(y), np.isnan(x) & np.isnan(y)
    made.different -= int(both.sum()) / size
    made.not_finite += int(bad_x.sum())
    made.not_finite_reference += int(bad_y.sum())
    made.only_here += int(((bad_x | bad_y) & ~both & (x != y)).sum())
    made.largest = float(np.abs(x[~bad_x].astype(float)).max(initial=made.largest))
    made.largest_reference = float(np.abs(y[~bad_y].astype(float)).max(initial=made.largest_reference))


def _differences(made: Figures, pair: Pair, number: int, norms: Array, low: Array, width: Array) -> None:
    rms, size = norms[1] / math.sqrt(number), pair[0].size
    sums, largest = np.zeros(8), np.zeros(3)
    for x, y, _, _ in _blocks(*pair):
        if not len(x):
            continue
        error, magnitude = np.abs(x - y), np.abs(y)
        ratio = x.astype(np.float32) / y.astype(np.float32)
        ratio -= np.float32(1)
        np.abs(ratio, out=ratio)
        ratio[magnitude <= _TINY] = 0.0
        magnitude += rms
        share = np.where(error > 0, error / magnitude, 0.0)
        scaled = ((side - low[k]) / width[k] if width[k] else side for k, side in enumerate((x, y)))
        p, q = (np.maximum(side, _FLOOR) for side in scaled)
        outside, terms = np.count_nonzero(share > 2 * HALF), p @ np.log(p / q)
        sums += [x @ y, error @ error, error.sum(), ratio.sum(dtype=float), outside, p.sum(), q.sum(), terms]
        largest = np.maximum(largest, [error.max(), ratio.max(), share.max()])
    cosine, square, absolute, relative, beyond, p_sum, q_sum, logarithms = map(float, sums)
    made.cosine = min(cosine / (norms[0] * norms[1]), 1.0) if norms.min() > 0 else 0.0
    if size == 1 or norms.max() <= _TINY:
        made.cosine = 1.0
    elif norms.min() ** 0.5 <= _TINY:
        made.cosine = _NAN
    made.max_absolute, made.max_relative, made.isolated = map(float, largest)
    made.mean_absolute, made.accumulated_relative, made.mean_relative = absolute / number, relative, relative / number
    made.root_mean_square = math.sqrt(square / number)
    made.relative_euclidean = math.sqrt(square) / norms[1] if norms[1] > _TINY else 0.0
    made.beyond = beyond / size
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
