"""Compare one process on the global batch with the ranks of a job, and the ranks with each other."""

from __future__ import annotations

import dataclasses
from typing import Sequence

import numpy as np

from npu_shim.rehearsal.comparing.comparison import Comparison, compare_recordings
from npu_shim.rehearsal.comparing.half_band import HalfBand
from npu_shim.rehearsal.comparing.matching import match_streams
from npu_shim.rehearsal.comparing.read_recording import Recording, Stream
from npu_shim.rehearsal.comparing.tolerances import Limits
from npu_shim.rehearsal.recording.digest import HEAD, NORM, scalar_from_digest
from npu_shim.rehearsal.recording.kinds import FINAL, GRADIENT, LOSS, METRIC, PREDICTION, RATE, TAPE, VARIABLE

# Each rank computes these from its share of the batch; their mean is that of the global batch.
_MEANS = (LOSS, TAPE)
KINDS = (LOSS, TAPE, GRADIENT, RATE, VARIABLE, METRIC, PREDICTION, FINAL)
# Ranks add in another order than one process. Where a small gradient is the sum of large ones, as that of a bias, this
# is 2e-5 of it in an Estimator of 2.15. A ReLU or a maximum near a tie enlarges the rounding at once, by 1e-3 of a
# gradient in the samples, so after three steps only large differences count.
_LIMITS = Limits(loose_from=4, enlarged=10.0)
_APART, _NEAR = 1e-3, 0.1  # metrics of shares: relative to their mean, and to the distance of two ranks
_EQUAL = (GRADIENT, RATE, VARIABLE)  # on all ranks


def mean_recording_of_ranks(ranks: list[Recording], whole: Recording) -> Recording:
    """Return the recording of rank 0 with the mean over all ranks of losses and of gradients before averaging.

    Replicas of a tf.distribute strategy divide their losses by the global batch size, so these and their gradients are
    added.

    A script may evaluate a share of the data on each rank, and average the metrics after the last step.

    Args:
        ranks: the recordings of all ranks.
        whole: that of one process on the global batch.
    """
    first = ranks[0]
    factor = len(ranks) if _sums_losses_over_ranks(ranks, whole) else 1
    shares = metrics_equal_only_in_mean(whole, ranks) if first.end and first.end.reduced else []
    streams = {
        key: _scaled_mean(
            [rank.streams[key] for rank in ranks if key in rank.streams], factor if stream.kind in _MEANS else 1
        )
        if stream.kind in _MEANS or (stream.kind == METRIC and stream.name in shares)
        else stream
        for key, stream in first.streams.items()
    }
    return dataclasses.replace(first, streams=streams)


def _sums_losses_over_ranks(ranks: list[Recording], whole: Recording) -> bool:
    """Return True if the sum of the first losses of all ranks is nearer to that of one process than their mean."""
    for key, stream in whole.streams.items():
        is_scalar = stream.kind == LOSS and stream.values and stream.values[0].shape == ()
        if is_scalar and all(key in rank.streams for rank in ranks):
            first, *parts = (
                scalar_from_digest(recording.streams[key].values[0].digest) for recording in (whole, *ranks)
            )
            return bool(abs(sum(parts) - first) < abs(sum(parts) / len(parts) - first))
    return False


def metrics_equal_only_in_mean(whole: Recording, ranks: Sequence[Recording]) -> list[str]:
    """Return the metrics, by their names in rank 0, that differ between ranks and whose mean is that of one process."""
    names = []
    for one, other in match_streams(whole, ranks[0]).pairs:
        several = [rank.streams.get((METRIC, other.name)) for rank in ranks]
        if one.kind != METRIC or one.values[-1].shape or not all(several):
            continue
        numbers = [scalar_from_digest(stream.values[-1].digest) for stream in several if stream]
        spread = max(numbers) - min(numbers)
        distance = abs(np.mean(numbers) - scalar_from_digest(one.values[-1].digest))
        if spread > _APART * abs(np.mean(numbers)) and distance < _NEAR * spread:
            names.append(other.name)
    return names


def compare_with_one(
    whole: Recording, ranks: list[Recording], tolerance: float, band: HalfBand | None = None
) -> Comparison:
    """Compare one process on the global batch with the ranks of a job.

    Args:
        whole, ranks: the recordings.
        tolerance: see tolerances.
        band: of perturbed runs of the one process; None without them.
    """
    limits = dataclasses.replace(band, beyond=_LIMITS) if band else _LIMITS
    return compare_recordings(whole, mean_recording_of_ranks(ranks, whole), tolerance, KINDS, False, limits)


def _scaled_mean(streams: list[Stream], factor: int) -> Stream:
    """Return `factor` times the mean of streams.

    Digests are linear, but for their norm, which is estimated.
    """
    values = []
    for several in zip(*(stream.values for stream in streams)):
        if len({value.shape for value in several}) > 1:
            break
        mean = factor * np.mean([value.digest for value in several], axis=0)
        mean[NORM] = np.linalg.norm(mean[HEAD:])
        values.append(several[0]._replace(digest=mean))
    return dataclasses.replace(streams[0], values=values or streams[0].values)


def compare_ranks(ranks: list[Recording], tolerance: float) -> list[tuple[int, Comparison]]:
    """Compare what is equal on all ranks of a job: gradients after averaging, rates, variables.

    Returns:
        Number and comparison with rank 0 of each rank that departs.
    """
    comparisons = [
        (rank, compare_recordings(ranks[0], other, tolerance, _EQUAL, False))
        for rank, other in enumerate(ranks)
        if rank
    ]
    return [(rank, comparison) for rank, comparison in comparisons if comparison.departures]
