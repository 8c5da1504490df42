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

_BLOCK = 1 << 20
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
    sums, low, high, number = np.zeros(4), [math.inf] * 2, [-math.inf] * 2, 0
    for x, y, raw_x, raw_y in _blocks(device, reference):
        bad_x, bad_y = ~np.isfinite(raw_x), ~np.isfinite(raw_y)
        same = (raw_x == raw_y) | (np.isnan(raw_x) & np.isnan(raw_y)) if bad_x.any() or bad_y.any() else raw_x == raw_y
        made.not_finite += int(bad_x.sum())
        made.not_finite_reference += int(bad_y.sum())
        made.only_here += int(((bad_x | bad_y) & ~same).sum())
        made.largest = max(made.largest, _largest(raw_x, bad_x))
        made.largest_reference = max(made.largest_reference, _largest(raw_y, bad_y))
        made.different += float((~same).sum()) / device.size
        if x.size:
            number += x.size
            sums += [x.sum(), y.sum(), x @ x, y @ y]
            low = [min(low[0], x.min()), min(low[1], y.min())]
            high = [max(high[0], x.max()), max(high[1], y.max())]
    if not number:
        return
    norms = np.sqrt(sums[2:])
    _differences(made, device, reference, number, norms)
    _divergence(made, device, reference, low, high)
    if device.size == 1 or norms.max() <= _TINY:
        made.cosine = 1.0
    elif norms.min() ** 0.5 <= _TINY:
        made.cosine = _NAN
    means = sums[:2] / number
    squares = np.zeros(2)
    for x, y, _, _ in _blocks(device, reference):
        squares += [((x - means[0]) ** 2).sum(), ((y - means[1]) ** 2).sum()]
    spread = np.sqrt(squares / number)
    made.deviations = (float(means[0]), float(spread[0]), float(means[1]), float(spread[1]))


def _largest(values: np.ndarray, bad: np.ndarray) -> float:
    kept = values[~bad] if bad.any() else values
    return max(abs(float(kept.max())), abs(float(kept.min()))) if kept.size else 0.0


def _differences(made: Figures, device: np.ndarray, reference: np.ndarray, number: int, norms: np.ndarray) -> None:
    rms = norms[1] / math.sqrt(number)
    cosine = square = absolute = relative = largest = largest_relative = isolated = 0.0
    beyond = 0
    for x, y, _, _ in _blocks(device, reference):
        if not x.size:
            continue
        size = np.abs(x - y)
        ratio = np.abs(x.astype(np.float32) / y.astype(np.float32) - np.float32(1)).astype(float)
        ratio[np.abs(y) <= _TINY] = 0.0
        cosine += float((x / norms[0]) @ (y / norms[1])) if norms.min() > 0 else 0.0
        square += float(size @ size)
        absolute, relative = absolute + float(size.sum()), relative + float(ratio.sum())
        largest, largest_relative = max(largest, float(size.max())), max(largest_relative, float(ratio.max()))
        share = np.divide(size, np.abs(y) + rms, out=np.where(size > 0, math.inf, 0.0), where=np.abs(y) + rms > 0)
        isolated = max(isolated, float(share.max()))
        beyond += int((share > 2 * HALF).sum())
    made.cosine = min(cosine, 1.0)
    made.max_absolute, made.mean_absolute = largest, absolute / number
    made.accumulated_relative, made.max_relative, made.mean_relative = relative, largest_relative, relative / number
    made.root_mean_square = math.sqrt(square / number)
    made.relative_euclidean = math.sqrt(square) / norms[1] if norms[1] > _TINY else 0.0
    made.beyond, made.isolated = beyond / device.size, isolated


def _divergence(made: Figures, device: np.ndarray, reference: np.ndarray, low: list[float], high: list[float]) -> None:
    def scaled(values: np.ndarray, side: int) -> np.ndarray:
        width = high[side] - low[side]
        return np.maximum((values - low[side]) / width if width else values, _FLOOR)

    totals, found = np.zeros(2), 0.0
    for x, y, _, _ in _blocks(device, reference):
        totals += [scaled(x, 0).sum(), scaled(y, 1).sum()]
    for x, y, _, _ in _blocks(device, reference):
        p, q = scaled(x, 0) / totals[0], scaled(y, 1) / totals[1]
        found += float((p * np.log(p / q)).sum())
    made.divergence = found if abs(found) >= _TINY else 0.0


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
