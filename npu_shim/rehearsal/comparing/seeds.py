"""Compare several pairs of runs with different random numbers, by their means.

    | mean(original) - mean(migrated) | <= t * sqrt(var(original) / n + var(migrated) / n)

t is the two-sided quantile of Student's distribution with 2 n - 2 degrees of freedom at 99 %. Of ten quantities of a
faultless migration, one is outside its band in one of ten comparisons. With few seeds the band is wide: it finds a
dropout that does nothing, and not a learning rate that is one percent off.

Source: Welch, "The generalization of Student's problem", Biometrika 34, 1947.
"""

from __future__ import annotations

import math
import statistics
from typing import Sequence

from npu_shim.rehearsal.comparing import TOLERANCE
from npu_shim.rehearsal.comparing.read_recording import Recording, Stream
from npu_shim.rehearsal.recording.digest import scalar_from_digest
from npu_shim.rehearsal.recording.kinds import FETCH, LOG, LOSS, METRIC, RESULT, SUMMARY
from npu_shim.rehearsal.result import MeanBand

# Quantiles 0.995 for 1, 2, 3 ... degrees of freedom
_QUANTILES = (
    63.657, 9.925, 5.841, 4.604, 4.032, 3.707, 3.499, 3.355, 3.25, 3.169, 3.106, 3.055, 3.012, 2.977, 2.947,
    2.921, 2.898, 2.878, 2.861, 2.845, 2.831, 2.819, 2.807, 2.797, 2.787, 2.779, 2.771, 2.763, 2.756, 2.75,
)  # fmt: skip
_MANY = 2.75  # for more degrees of freedom; a little wider than exact


def mean_bands(originals: Sequence[Recording], migrated: Sequence[Recording]) -> list[MeanBand]:
    """Return the bands of the quantities that all runs have.

    Args:
        originals, migrated: a recording for each seed, at least two of each.
    Returns:
        For losses, logs, summaries and scalars that sessions fetch: the mean over the second half of the run. For
        metrics: the last value. With an Inf or a NaN in one of them, the mean and the band are None.
    """
    ours = [_mean_quantities(recording) for recording in originals]
    theirs = [_mean_quantities(recording) for recording in migrated]
    shared = []
    for key in ours[0]:
        if all(key in quantities for quantities in ours + theirs):
            shared.append(
                _mean_band_of_runs(
                    key, [quantities[key] for quantities in ours], [quantities[key] for quantities in theirs]
                )
            )
    return shared


def _mean_band_of_runs(key: tuple[str, str], ours: list[float], theirs: list[float]) -> MeanBand:
    count = len(ours)
    degrees = 2 * count - 2
    quantile = _QUANTILES[degrees - 1] if degrees <= len(_QUANTILES) else _MANY
    spread = math.sqrt((statistics.variance(ours) + statistics.variance(theirs)) / count)
    one, other = statistics.mean(ours), statistics.mean(theirs)
    return mean_band(key[0], key[1], one, other, quantile * spread + TOLERANCE * max(abs(one), abs(other)))


def mean_band(kind: str, name: str, original: float, migrated: float, band: float) -> MeanBand:
    """Return the means of a quantity and the band of their difference; NaN in both scripts is inside."""
    is_nan = math.isnan(original), math.isnan(migrated)
    inside = all(is_nan) if any(is_nan) else abs(original - migrated) <= band
    one, other, width = (value if math.isfinite(value) else None for value in (original, migrated, band))
    return MeanBand(kind, name, one, other, width, inside)


def _mean_quantities(recording: Recording) -> dict[tuple[str, str], float]:
    quantities = {}
    for kind in (LOSS, FETCH, SUMMARY, LOG, RESULT, METRIC):
        for stream in recording.streams_of_kind(kind):
            if stream.values[0].shape == () and stream.dtype.startswith("float"):
                quantities[kind, stream.name] = _mean_of_second_half(stream)
    return quantities


def _mean_of_second_half(stream: Stream) -> float:
    values = [scalar_from_digest(value.digest) for value in stream.values if value.shape == ()]
    return values[-1] if stream.kind in (RESULT, METRIC) else statistics.mean(values[len(values) // 2 :])
