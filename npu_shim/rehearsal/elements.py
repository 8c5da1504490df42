"""The elements of the first tensor that departs.

A recording has digests. Those of up to 32 elements contain the elements. For a larger tensor both scripts run again up
to the value that departs, and write it as it is.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Callable

import numpy as np

from npu_shim._tensorflow.types import Value
from npu_shim.rehearsal.comparing.comparison import Comparison
from npu_shim.rehearsal.failures import run_again
from npu_shim.rehearsal.recording.digest import elements_from_digest
from npu_shim.rehearsal.recording.kinds import PRINT
from npu_shim.rehearsal.recording.writer import KEPT
from npu_shim.rehearsal.reproducing import AGAIN
from npu_shim.rehearsal.result import Element
from npu_shim.rehearsal.running import Run

_MOST = 10


def rerun_for_largest_differences(
    comparison: Comparison, original: Run, migrated: Run, report: Callable[[str], None]
) -> list[Element]:
    """Return the elements that differ most of the first tensor that departs.

    Args:
        comparison: it has a departure.
        original, migrated: the runs.
        report: prints a line about the progress.
    Returns:
        Index and both values of up to ten elements, the largest difference first. An empty list for scalars and for
        values without a partner, on several ranks, and if the second run does not compute them again.
    Raises:
        NotRepeated: if a script ends otherwise than before.
    """
    first = comparison.first_departure
    if first is None or first.number is None:
        return []
    pair = next(
        pair for pair in comparison.compared if (pair.original.kind, pair.original.name) == (first.kind, first.name)
    )
    number = first.number
    a, b = pair.original.values[number], pair.migrated.values[min(number, len(pair.migrated.values) - 1)]
    if a.shape == () or a.shape != b.shape or first.kind == PRINT:
        return []
    few = elements_from_digest(a.digest, a.shape), elements_from_digest(b.digest, b.shape)
    if few[0] is not None and few[1] is not None:
        return most_different_elements(few[0], few[1])
    if migrated.ranks is not None:
        return []
    report(f"running the migrated script again until step {first.step}, for the elements of {first.kind} {first.name}")
    ours = a.load_tensor()
    if ours is None:
        ours = _load_kept_tensor(original)
    if ours is None and original.can_repeat:  # nothing has compared the original with itself
        ours = _rerun_for_tensor(original, (first.kind, pair.original.name, number))
    theirs = _rerun_for_tensor(migrated, (first.kind, pair.migrated.name, number))
    return (
        most_different_elements(ours, theirs)
        if ours is not None and theirs is not None and ours.shape == theirs.shape
        else []
    )


def most_different_elements(ours: np.ndarray, theirs: np.ndarray) -> list[Element]:
    """Return index and values of the elements of two arrays that differ most."""
    one, other = ours.astype(np.complex128).reshape(-1), theirs.astype(np.complex128).reshape(-1)
    with np.errstate(invalid="ignore"):
        apart = np.abs(one - other)
    apart[np.isnan(apart)] = np.inf  # Inf or NaN in one of the two
    apart[(ours == theirs).reshape(-1) | (np.isnan(one) & np.isnan(other))] = 0
    largest = [int(place) for place in np.argsort(-apart, kind="stable")[:_MOST] if apart[place]]
    return [
        Element(
            [int(coordinate) for coordinate in np.unravel_index(place, ours.shape)],
            _value_text(ours.reshape(-1)[place]),
            _value_text(theirs.reshape(-1)[place]),
        )
        for place in largest
    ]


def _value_text(value: Value) -> str:
    return f"{value:.9g}" if isinstance(value, (float, np.floating)) else str(value)


def _rerun_for_tensor(run: Run, keep: tuple[str, str, int]) -> np.ndarray | None:
    run_again(replace(run, folder=os.path.join(run.folder, AGAIN), keep=keep))
    return _load_kept_tensor(run)


def _load_kept_tensor(run: Run) -> np.ndarray | None:
    path = os.path.join(run.folder, AGAIN, KEPT)
    return np.load(path, allow_pickle=False) if os.path.exists(path) else None
