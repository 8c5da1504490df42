"""Two profiles compared: their steps, waits and types of ops, with the significance over the steps."""

from __future__ import annotations

import math

import numpy as np

from npu_shim._tensorflow.types import JsonObject
from npu_shim.profiles.devices import WAITS, Profile
from npu_shim.profiles.result import label, page, slowest
from npu_shim.profiles.steps import PHASES

FASTER, SLOWER, SAME, UNKNOWN = "faster", "slower", "no significant difference", "too few steps"
_LEVEL = 0.01
_LEAST = 5  # steps
_MOST = 20


def compare(old: Profile, new: Profile, folders: tuple[str, str]) -> JsonObject:
    """Return the comparison, which docs/profile_comparison.schema.json describes.

    Raises:
        ValueError: a profile has no runs of ops.
    """
    sides = [slowest(old, folders[0]), slowest(new, folders[1])]
    types = sorted({each.type for side in sides for each in side.signatures})
    spent = zip(types, *(side.by_type(types) for side in sides))
    rows = [_row(name, *of_sides) for name, *of_sides in spent if any(each.any() for each in of_sides)]
    rows.sort(key=lambda row: (-abs(row["new_ms"] - row["old_ms"]), row["what"]))
    idle = [(label(sides[1], name), [side.waits[name].sum(axis=1) for side in sides]) for name in WAITS]
    waits = [_row(name, *both) for name, both in idle if any(each.any() for each in both)]
    phases = [_row(name, *[side.phases[:, place] for side in sides]) for place, name in enumerate(PHASES)]
    before, after = (side.length for side in sides)
    step = {**_row("step", before, after), "old_steps": len(before), "new_steps": len(after)}
    what = {"old": folders[0], "new": folders[1]}
    return page(old, new, **what, step=step, waits=waits, phases=phases, types=rows[:_MOST])


def significance(old: np.ndarray, new: np.ndarray) -> float | None:
    """Return the probability of such a difference by chance, by the rank-sum test of Mann and Whitney.

    It counts the pairs in which the second step is longer. Returns None for too few steps.
    """
    many, more, both = len(old), len(new), len(old) + len(new)
    if min(many, more) < _LEAST:
        return None
    ties = np.unique(np.concatenate([old, new]), return_counts=True)[1].astype(float)
    variance = many * more / 12 * (both + 1 - float((ties**3 - ties).sum()) / (both * (both - 1)))
    longer = sum(np.searchsorted(np.sort(old), new, side).sum() for side in ("left", "right")) / 2
    distance = max(abs(longer - many * more / 2) - 0.5, 0.0)
    return math.erfc(distance / math.sqrt(2 * variance)) if variance > 0 else 1.0


def _row(what: str, old: np.ndarray, new: np.ndarray) -> JsonObject:
    before, after = float(old.mean()) / 1e6, float(new.mean()) / 1e6
    chance = significance(old, new)
    verdict = UNKNOWN if chance is None else SAME if chance >= _LEVEL else FASTER if after < before else SLOWER
    change = after / before - 1 if before else None
    return {"what": what, "old_ms": before, "new_ms": after, "change": change, "p": chance, "verdict": verdict}
