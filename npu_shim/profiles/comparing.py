"""Two profiles compared: their steps, waits and types of ops, with the significance over the steps."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from npu_shim.profiles.breakdown import WAITS, step_of
from npu_shim.profiles.findings import Case
from npu_shim.profiles.profile import NothingToRead, Profile
from npu_shim.profiles.result import cases_of, label, page, slowest
from npu_shim.profiles.steps import PHASES

if TYPE_CHECKING:
    from npu_shim._tensorflow.types import JsonObject

FASTER, SLOWER, SAME, UNKNOWN = "faster", "slower", "no significant difference", "too few steps"
_LEVEL = 0.01
_LEAST = 5  # steps
_MOST = 20


def compare(old: Profile, new: Profile, folders: tuple[str, str]) -> JsonObject:
    """Return the comparison, which docs/profile_comparison.schema.json describes.

    Raises:
        NothingToRead: a profile has no runs of ops.
    """
    sides = []
    for each, folder in zip((old, new), folders):
        cases = cases_of(each, None)
        if not cases:
            raise NothingToRead(f"{folder} has no runs of ops. Export op_summary with msprof --export=on")
        sides.append(cases[slowest(cases)])
    length = [case.found.length for case in sides]
    types = sorted({each.type for case in sides for each in case.device.signatures})
    spent = [_by_type(case, types) for case in sides]
    rows = [_row(name, spent[0][:, place], spent[1][:, place]) for place, name in enumerate(types)]
    rows = [row for row in rows if row["old_ms"] or row["new_ms"]]
    return page(
        (old, new),
        old=folders[0],
        new=folders[1],
        step={**_row("step", *length), "old_steps": len(length[0]), "new_steps": len(length[1])},
        waits=[
            _row(label(sides[1], name), *[case.found.waits[name].sum(axis=1) for case in sides])
            for name in WAITS
            if any(case.found.waits[name].any() for case in sides)
        ],
        phases=[_row(name, *[case.found.phases[:, place] for case in sides]) for place, name in enumerate(PHASES)],
        types=sorted(rows, key=lambda row: (-abs(row["new_ms"] - row["old_ms"]), row["what"]))[:_MOST],
    )


def significance(old: np.ndarray, new: np.ndarray) -> float | None:
    """Return the probability of such a difference by chance, by the rank-sum test of Mann and Whitney.

    None with too few steps. Equal values share their rank, and the variance is reduced for them.
    """
    many, more = len(old), len(new)
    if min(many, more) < _LEAST:
        return None
    values, inverse, ties = np.unique(np.concatenate([old, new]), return_inverse=True, return_counts=True)
    ranks = (np.cumsum(ties) - (ties - 1) / 2)[inverse.reshape(-1)]
    both = many + more
    statistic = float(ranks[:many].sum()) - many * (many + 1) / 2
    variance = many * more / 12 * (both + 1 - float((ties.astype(float) ** 3 - ties).sum()) / (both * (both - 1)))
    if len(values) == 1 or variance <= 0:
        return 1.0
    distance = max(abs(statistic - many * more / 2) - 0.5, 0.0)
    return math.erfc(distance / math.sqrt(2 * variance))


def _row(what: str, old: np.ndarray, new: np.ndarray) -> JsonObject:
    before, after = float(old.mean()) / 1e6, float(new.mean()) / 1e6
    chance = significance(old, new)
    verdict = UNKNOWN if chance is None else SAME if chance >= _LEVEL else FASTER if after < before else SLOWER
    change = after / before - 1 if before else None
    return {"what": what, "old_ms": before, "new_ms": after, "change": change, "p": chance, "verdict": verdict}


def _by_type(case: Case, types: list[str]) -> np.ndarray:
    """Return the nanoseconds of each type in each step."""
    place = {name: number for number, name in enumerate(types)}
    of_signature = np.array([place[each.type] for each in case.device.signatures])
    step = step_of(case.device)
    kept = step >= 0
    cell = step[kept] * len(types) + of_signature[case.code]
    return np.bincount(cell, case.took, case.steps * len(types)).reshape(case.steps, len(types))
