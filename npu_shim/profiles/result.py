"""The pages of a profile and of two as data: what the schemas in docs/ describe and all reports are made of."""

from __future__ import annotations

import math
from collections import Counter
from typing import Callable, Iterator, Mapping, Sequence

import numpy as np

from npu_shim._tensorflow.types import JsonObject
from npu_shim.profiles import findings, kinds
from npu_shim.profiles.devices import OP, WAITS, Device, Profile
from npu_shim.profiles.forms import number
from npu_shim.profiles.steps import PHASES
from npu_shim.rehearsal.reports import about

_MOST = 10  # ops
_MOST_BARS = 2000
_RATIOS = ("matrix", "vector", "memory")
_LENGTHS: dict[str, Callable[[Sequence[float]], float]] = {
    "mean_ms": np.mean,
    "median_ms": np.median,
    "shortest_ms": np.min,
    "longest_ms": np.max,
}
_LISTS = ("waits", "phases", "ops", "findings", "timeline")
_NAMES = {kinds.COMMUNICATION: "communication that nothing overlaps", kinds.TRANSFER: "copies"}
FASTER, SLOWER, SAME, UNKNOWN = "faster", "slower", "no significant difference", "too few steps"
_LEVEL = 0.01  # of significance
_LEAST_STEPS = 5
_MOST_TYPES = 20


def slowest(profile: Profile, folder: str) -> Device:
    """Return the device that works longest in a step, for which others wait.

    Raises:
        ValueError: there is none.
    """
    if not profile.devices:
        raise ValueError(f"{folder} has no runs of ops. Export op_summary with msprof --export=on")
    return max(profile.devices, key=lambda device: device.takes - device.alone)


def to_result(profile: Profile, folder: str, by_gain: bool = False) -> JsonObject:
    """Return the page.

    Args:
        profile: that was read.
        folder: as given.
        by_gain: rank findings by what a fix saves at most.
    """
    none: JsonObject = {"device": None, "step": None, **{name: [] for name in _LISTS}, "types": _totals(profile)}
    shown = _shown(profile, slowest(profile, folder), by_gain) if profile.devices else none
    files, devices = Counter(file.kind for file in profile.files), [_device(file) for file in profile.devices]
    product = profile.product.name if profile.product else None
    return page(profile, folder=folder, product=product, files=dict(files), devices=devices, **shown)


def page(*profiles: Profile, **content: object) -> JsonObject:
    """Return a result with what all have."""
    problems = [{"file": path, "problem": text} for profile in profiles for path, text in profile.problems.items()]
    return {**about("profile"), **content, "problems": problems}


def _shown(profile: Profile, device: Device, by_gain: bool) -> JsonObject:
    device_findings, length = findings.search(profile, device), device.length / 1e6
    if by_gain:
        device_findings.sort(key=lambda finding: (finding.needed - finding.ms, -finding.ms, finding.id))
    waits = {label(device, name): spent for name, spent in device.waits.items() if spent.any()}
    step = {"source": device.steps.source, "number": len(length), "left_out": device.steps.left_out}
    return {
        "device": device.name,
        "step": {**step, "slow": int(device.slow.sum()), **{name: float(of(length)) for name, of in _LENGTHS.items()}},
        "waits": [{"what": name, **_share(device, spent)} for name, spent in waits.items()],
        "phases": list(_phases(device, waits)),
        "ops": _ops(device, OP),
        "types": _ops(device, ("type",)),
        "findings": [_finding(device, finding) for finding in device_findings],
        "timeline": _timeline(device),
    }


def _phases(device: Device, waits: Mapping[str, np.ndarray]) -> Iterator[JsonObject]:
    for place in np.flatnonzero(device.phases.any(axis=0)):
        of_phase = {name: device.total(spent[:, place]) for name, spent in waits.items() if spent[:, place].any()}
        yield {"phase": PHASES[place], **_share(device, device.phases[:, place]), "waits": of_phase}


def _finding(device: Device, finding: findings.Finding) -> JsonObject:
    left = device.takes - (finding.ms - finding.needed)  # with a fix
    texts = {key: kinds.KINDS[finding.id][key] for key in ("title", "fix", "see")}
    figures = {"ms": finding.ms, "share": finding.ms / device.takes, "gain": device.takes / left if left > 0 else None}
    return {"id": finding.id, **texts, **figures, "evidence": [row._asdict() for row in finding.evidence]}


def _share(device: Device, nanoseconds: np.ndarray) -> JsonObject:
    ms = device.total(nanoseconds)
    return {"ms": ms, "share": ms / device.takes}


def _device(device: Device) -> JsonObject:
    numbers = {"steps": len(device.length), "runs": len(device.code)}
    times = {"mean_ms": device.takes, "busy_ms": device.total(device.busy), "communication_ms": device.alone}
    return {"device": device.name, **numbers, **times}


def label(device: Device, name: str) -> str:
    """Return what a page calls a category."""
    return ("ops on the CPU" if device.on_cpu else "AI Core") if name == kinds.COMPUTE else _NAMES.get(name, name)


def _ops(device: Device, keys: Sequence[str]) -> list[JsonObject]:
    """Return the ops, or types of ops, those that cost most first."""
    rows = []
    for places in device.groups(range(len(device.signatures)), device.ms, keys)[:_MOST]:
        most, ms = max(places, key=lambda place: device.ms[place]), float(device.ms[places].sum())
        signature = device.signatures[most]
        names = {"name": signature.name if "name" in keys else "", "type": signature.type, "line": device.line(most)}
        names.update(unit=label(device, str(device.category[most])), shapes=signature.shapes.strip('"'))
        figures = {"calls": float(device.calls[places].sum()), "ms": ms, "share": ms / device.takes}
        ratios = {name: _mean(ratio[places], device.ms[places]) for name, ratio in zip(_RATIOS, device.ratios)}
        bound = device.bound(places) if device.profile.product else None
        rows.append({**names, **figures, **ratios, "bound_ms": bound})
    return rows


def _mean(ratio: np.ndarray, weight: np.ndarray) -> float | None:
    known = np.isfinite(ratio) & (weight > 0)
    return float(np.average(ratio[known], weights=weight[known])) if known.any() else None


def _timeline(device: Device) -> list[JsonObject]:
    """Return what is busy in the step of the median length, in milliseconds from its start; short runs are joined."""
    middle = np.argsort(device.length, kind="stable")[(len(device.length) - 1) // 2]
    start, end = device.steps.edges[middle, [0, -1]].tolist()
    least = (end - start) / 1e6 / _MOST_BARS
    bars: list[JsonObject] = []
    last: dict[str, JsonObject] = {}  # bar by category
    for run in np.flatnonzero((device.start < end) & (device.end > start)).tolist():
        category = str(device.category[device.code[run]])
        begin, until = ((min(max(int(edge[run]), start), end) - start) / 1e6 for edge in (device.start, device.end))
        bar = last.get(category)
        if bar and begin - bar["until"] < least and min(until - begin, bar["until"] - bar["from"]) < least:
            bar["until"], bar["runs"] = max(bar["until"], until), bar["runs"] + 1
        else:
            name = device.signatures[device.code[run]].name
            last[category] = {"what": label(device, category), "op": name, "from": begin, "until": until, "runs": 1}
            bars.append(last[category])
    return bars[: 2 * _MOST_BARS]


def _totals(profile: Profile) -> list[JsonObject]:
    """Return the op types of tables without single runs."""
    none = {**dict.fromkeys((*_RATIOS, "bound_ms")), **dict.fromkeys(("shapes", "line", "name"), "")}
    rows: list[JsonObject] = []
    for table in ("op_statistic", "communication_statistic"):
        for row in profile.rows[table]:
            figures = {"calls": float(int(number(row["count"]))), "ms": sum(row["total"]) / 1e6}
            rows.append({**none, "type": row["type"], "unit": row.get("core") or table, **figures})
    total = sum(row["ms"] for row in rows) or 1.0
    rows = [{**row, "share": row["ms"] / total} for row in rows]
    return sorted(rows, key=lambda row: (-row["ms"], row["type"]))[:_MOST]


def compare(old: Profile, new: Profile, folders: tuple[str, str]) -> JsonObject:
    """Return the comparison, which docs/profile_comparison.schema.json describes.

    Raises:
        ValueError: a profile has no runs of ops.
    """
    sides = [slowest(old, folders[0]), slowest(new, folders[1])]
    types = sorted({signature.type for side in sides for signature in side.signatures})
    spent = zip(types, *(side.by_type(types) for side in sides))
    rows = [
        _row(name, *of_sides) for name, *of_sides in spent if any(spent_of_side.any() for spent_of_side in of_sides)
    ]
    rows.sort(key=lambda row: (-abs(row["new_ms"] - row["old_ms"]), row["what"]))
    idle = [(label(sides[1], name), [side.waits[name].sum(axis=1) for side in sides]) for name in WAITS]
    waits = [_row(name, *both) for name, both in idle if any(idle_of_side.any() for idle_of_side in both)]
    phases = [_row(name, *[side.phases[:, place] for side in sides]) for place, name in enumerate(PHASES)]
    before, after = (side.length for side in sides)
    step = {**_row("step", before, after), "old_steps": len(before), "new_steps": len(after)}
    content = {"step": step, "waits": waits, "phases": phases, "types": rows[:_MOST_TYPES]}
    return page(old, new, old=folders[0], new=folders[1], **content)


def significance(old: np.ndarray, new: np.ndarray) -> float | None:
    """Return the probability of such a difference by chance, by the rank-sum test of Mann and Whitney.

    It counts the pairs in which the second step is longer. Returns None for too few steps.
    """
    many, more, both = len(old), len(new), len(old) + len(new)
    if min(many, more) < _LEAST_STEPS:
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
