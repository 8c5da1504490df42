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
from dataclasses import dataclass, fields
from typing import Callable, Iterator, Sequence, Tuple

import numpy as np

_BLOCK = 1 << 17  # two of them, and what is computed of them, fit into a cache
_TINY = float(np.finfo(float).eps)
_FLOOR = float(np.finfo(np.float32).eps)  # of the divergence
Pair = Tuple[np.ndarray, np.ndarray]
HALF = 2.0**-11  # unit roundoff of float16


@dataclass
class Figures:
    """The figures of two tensors, NaN where they are not defined.

    Attributes:
        deviations: mean and standard deviation on the device, and in the reference.
        isolated: the largest difference of an element, as a share of its size plus the root mean square.
        not_finite, not_finite_reference, only_here: the numbers of elements that are Inf or NaN on each side, and of
            those that differ by it.
        different: the share of the elements that differ.
        largest, largest_reference: the largest magnitudes.
        beyond: the share of the elements that differ by more than the rounding of 16 bits.
    """

    cosine: float = math.nan
    max_absolute: float = math.nan
    accumulated_relative: float = math.nan
    relative_euclidean: float = math.nan
    divergence: float = math.nan
    mean_absolute: float = math.nan
    root_mean_square: float = math.nan
    max_relative: float = math.nan
    mean_relative: float = math.nan
    deviations: tuple[float, ...] = (math.nan,) * 4
    isolated: float = 0.0
    not_finite: int = 0
    not_finite_reference: int = 0
    only_here: int = 0
    different: float = 0.0
    largest: float = 0.0
    largest_reference: float = 0.0
    beyond: float = 0.0


FIGURES = [field.name for field in fields(Figures)][:9]  # in the order of the vendor's table


def difference_figures_of_tensors(device: np.ndarray, reference: np.ndarray) -> Figures:
    """Return the figures of two tensors of one shape."""
    pair = _flatten_to_real(device), _flatten_to_real(reference)
    with np.errstate(all="ignore"):
        sums, highs = _reduce_blocks(pair, _sums_and_maxima_of_finite)
        number, low = sums[4], -highs[2:4]
        figures = _difference_figures(pair, number, np.sqrt(sums[2:4]), low, highs[:2] - low) if number else Figures()
        if number:
            means = sums[:2] / number
            spread = np.sqrt(np.maximum(sums[2:4] / number - means**2, 0.0))
            figures.deviations = tuple(np.stack([means, spread], 1).reshape(-1).tolist())
    figures.not_finite, figures.not_finite_reference, figures.only_here = map(int, sums[6:])
    figures.different, (figures.largest, figures.largest_reference) = sums[5] / pair[0].size, highs[4:]
    return figures


def _sums_and_maxima_of_finite(
    x: np.ndarray, y: np.ndarray, raw_x: np.ndarray, raw_y: np.ndarray
) -> tuple[Sequence[float], Sequence[float]]:
    sums = [x.sum(), y.sum(), x @ x, y @ y, len(x)]
    highs = [x.max(initial=-np.inf), y.max(initial=-np.inf), -x.min(initial=np.inf), -y.min(initial=np.inf)]
    if len(x) == len(raw_x):
        return [*sums, np.count_nonzero(raw_x != raw_y), 0, 0, 0], [*highs, *np.maximum(highs[:2], highs[2:])]
    bad_x, bad_y, both = ~np.isfinite(raw_x), ~np.isfinite(raw_y), np.isnan(raw_x) & np.isnan(raw_y)
    unequal = (raw_x != raw_y) & ~both
    counts = map(np.count_nonzero, (unequal, bad_x, bad_y, unequal & (bad_x | bad_y)))
    largest = (np.abs(raw[~out].astype(float)).max(initial=0.0) for raw, out in ((raw_x, bad_x), (raw_y, bad_y)))
    return [*sums, *counts], [*highs, *largest]


def _difference_figures(pair: Pair, number: float, norms: np.ndarray, low: np.ndarray, width: np.ndarray) -> Figures:
    rms = norms[1] / math.sqrt(number)

    def differences(x: np.ndarray, y: np.ndarray, *_: np.ndarray) -> tuple[Sequence[float], Sequence[float]]:
        error, magnitude = np.abs(x - y), np.abs(y)
        ratio = x.astype(np.float32) / y.astype(np.float32)
        ratio = np.where(magnitude > _TINY, np.abs(ratio - np.float32(1)), np.float32(0))
        share = np.where(error > 0, error / (magnitude + rms), 0.0)
        scaled = ((side - low[k]) / width[k] if width[k] else side for k, side in enumerate((x, y)))
        p, q = (np.maximum(side, _FLOOR) for side in scaled)
        outside, terms = np.count_nonzero(share > 2 * HALF), p @ np.log(p / q)
        sums = [x @ y, error @ error, error.sum(), ratio.sum(dtype=float), outside, p.sum(), q.sum(), terms]
        return sums, [errors.max(initial=0.0) for errors in (error, ratio, share)]

    sums, highs = _reduce_blocks(pair, differences)
    product, square, absolute, relative, beyond, p_sum, q_sum, logarithms = sums.tolist()
    divergence = logarithms / p_sum + math.log(q_sum / p_sum)
    is_zero = pair[0].size == 1 or norms.max() <= _TINY
    return Figures(
        cosine=1.0 if is_zero else math.nan if norms.min() ** 0.5 <= _TINY else min(product / norms.prod(), 1.0),
        max_absolute=highs[0],
        accumulated_relative=relative,
        relative_euclidean=math.sqrt(square) / norms[1] if norms[1] > _TINY else 0.0,
        divergence=divergence if abs(divergence) >= _TINY else 0.0,
        mean_absolute=absolute / number,
        root_mean_square=math.sqrt(square / number),
        max_relative=highs[1],
        mean_relative=relative / number,
        beyond=beyond / pair[0].size,
        isolated=highs[2],
    )


def _reduce_blocks(pair: Pair, of_block: Callable[..., tuple[Sequence[float], Sequence[float]]]) -> Pair:
    """Return the sums and the largest of what is computed of each block."""
    sums, highs = zip(*(of_block(*block) for block in _finite_blocks(*pair)))
    return np.sum(np.array(sums, float), 0), np.max(np.array(highs, float), 0)


def _finite_blocks(device: np.ndarray, reference: np.ndarray) -> Iterator[tuple[np.ndarray, ...]]:
    """Return blocks of elements that are finite on both sides, in float64 after float32, and all as they are."""
    for place in range(0, max(device.size, 1), _BLOCK):
        raw_x, raw_y = device[place : place + _BLOCK], reference[place : place + _BLOCK]
        x, y = raw_x.astype(np.float32), raw_y.astype(np.float32)
        kept = np.isfinite(x) & np.isfinite(y)
        x, y = (x, y) if kept.all() else (x[kept], y[kept])
        yield x.astype(float), y.astype(float), raw_x, raw_y


def _flatten_to_real(array: np.ndarray) -> np.ndarray:
    flat = np.asarray(array).reshape(-1)
    return flat.view(flat.real.dtype) if flat.dtype.kind == "c" else flat
