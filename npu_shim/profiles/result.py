"""The page of a profile as data: what docs/profile.schema.json describes and all reports are made of."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Sequence

import numpy as np

import npu_shim
from npu_shim.profiles import findings, kinds
from npu_shim.profiles.breakdown import WAITS, breakdown
from npu_shim.profiles.findings import Case
from npu_shim.profiles.profile import Profile
from npu_shim.profiles.steps import PHASES
from npu_shim.rehearsal.assess.products import Product

if TYPE_CHECKING:
    from npu_shim._tensorflow.types import JsonObject

_MOST = 10  # ops
_MOST_BARS = 2000
_NAMES = {kinds.COMMUNICATION: "communication that nothing overlaps", kinds.TRANSFER: "copies"}


def cases_of(profile: Profile, product: Product | None) -> list[Case]:
    """Return the devices of a profile with their breakdowns."""
    return [Case(profile, device, breakdown(device), product) for device in profile.devices]


def slowest(cases: Sequence[Case]) -> int:
    """Return the place of the device that works longest in a step, for which others wait."""
    return max(
        range(len(cases)), key=lambda place: cases[place].mean(cases[place].found.length) - findings.alone(cases[place])
    )


def to_result(profile: Profile, folder: str, product: Product | None = None, by_gain: bool = False) -> JsonObject:
    """Return the page.

    Args:
        profile: that was read.
        folder: as given.
        product: for bounds.
        by_gain: rank findings by what a fix saves at most.
    """
    cases = cases_of(profile, product)
    made: JsonObject = {
        "schema_version": 1,
        "tool": "npu-shim profile",
        "tool_version": npu_shim.__version__,
        "folder": folder,
        "product": product.name if product else None,
        "files": dict(Counter(each.kind for each in profile.files)),
        "devices": [_device(case) for case in cases],
        "device": None,
        "step": None,
        "waits": [],
        "phases": [],
        "ops": [],
        "types": _totals(profile),
        "findings": [],
        "timeline": [],
        "problems": [{"file": path, "problem": text} for path, text in profile.problems.items()],
    }
    if not cases:
        return made
    shown = slowest(cases)
    case = cases[shown]
    found = findings.search(profile, cases, shown)
    if by_gain:
        found.sort(key=lambda each: (-each.saved, -each.ms, each.id))
    made.update(
        {
            "device": case.device.name,
            "step": _step(case),
            "waits": [_wait(case, name) for name in WAITS if case.found.waits[name].any()],
            "phases": [_phase(case, place) for place in range(len(PHASES)) if case.found.phases[:, place].any()],
            "ops": _ops(case, ("name", "type")),
            "types": _ops(case, ("type",)),
            "findings": [_finding(case, each) for each in found],
            "timeline": _timeline(case),
        }
    )
    return made


def _device(case: Case) -> JsonObject:
    length = case.mean(case.found.length)
    return {
        "device": case.device.name,
        "steps": case.steps,
        "runs": len(case.device.code),
        "mean_ms": length,
        "busy_ms": case.mean(case.found.busy),
        "communication_ms": findings.alone(case),
    }


def _step(case: Case) -> JsonObject:
    length = case.found.length / 1e6
    return {
        "source": case.device.steps.source,
        "number": case.steps,
        "left_out": case.device.steps.left_out,
        "mean_ms": float(length.mean()),
        "median_ms": float(np.median(length)),
        "shortest_ms": float(length.min()),
        "longest_ms": float(length.max()),
        "slow": int(case.found.slow().sum()),
    }


def label(case: Case, name: str) -> str:
    """Return what a page calls a category."""
    return ("ops on the CPU" if case.on_cpu else "AI Core") if name == kinds.COMPUTE else _NAMES.get(name, name)


def _wait(case: Case, name: str) -> JsonObject:
    ms = case.mean(case.found.waits[name])
    return {"what": label(case, name), "ms": ms, "share": ms / case.mean(case.found.length)}


def _phase(case: Case, place: int) -> JsonObject:
    ms = case.mean(case.found.phases[:, place])
    waits = {
        label(case, name): case.mean(each[:, place]) for name, each in case.found.waits.items() if each[:, place].any()
    }
    return {"phase": PHASES[place], "ms": ms, "share": ms / case.mean(case.found.length), "waits": waits}


def _ops(case: Case, keys: Sequence[str]) -> list[JsonObject]:
    """Return the ops, or types of ops, those that cost most first."""
    groups: dict[tuple[str, ...], list[int]] = {}
    for place in np.flatnonzero(case.calls > 0):
        groups.setdefault(tuple(getattr(case.device.signatures[place], key) for key in keys), []).append(int(place))
    sums = {key: float(case.ms[places].sum()) for key, places in groups.items()}
    first = sorted(groups, key=lambda key: (-sums[key], key[::-1]))[:_MOST]
    return [_op(case, dict(zip(keys, key)), groups[key], sums[key]) for key in first]


def _op(case: Case, of_group: dict[str, str], places: list[int], ms: float) -> JsonObject:
    most = max(places, key=lambda place: case.ms[place])
    return {
        "name": of_group.get("name", ""),
        "type": of_group["type"],
        "unit": label(case, str(case.device.category[most])),
        "line": case.profile.lines.of(case.device.signatures[most].name, of_group["type"]),
        "calls": float(case.calls[places].sum()),
        "ms": ms,
        "share": ms / case.mean(case.found.length),
        "matrix": _ratio(case, 0, places),
        "vector": _ratio(case, 1, places),
        "memory": _ratio(case, 2, places),
        "bound_ms": sum(case.bound(place) for place in places) if case.product else None,
        "shapes": case.device.signatures[most].shapes.strip('"'),
    }


def _ratio(case: Case, which: int, places: Sequence[int]) -> float | None:
    ratio, weight = case.device.ratios[which][places], case.ms[places]
    known = np.isfinite(ratio) & (weight > 0)
    return float((ratio[known] * weight[known]).sum() / weight[known].sum()) if known.any() else None


def _finding(case: Case, each: findings.Finding) -> JsonObject:
    kind, length = kinds.KINDS[each.id], case.mean(case.found.length)
    return {
        "id": each.id,
        "title": kind.title,
        "ms": each.ms,
        "share": each.ms / length,
        "gain": length / (length - each.saved) if each.saved < length else None,
        "fix": kind.fix,
        "see": kind.see,
        "evidence": [row._asdict() for row in each.evidence],
    }


def _timeline(case: Case) -> list[JsonObject]:
    """Return what is busy in the step of the median length, in milliseconds from its start; short runs are joined."""
    device, length = case.device, case.found.length
    start, *_, end = device.steps.edges[int(np.argsort(length, kind="stable")[(len(length) - 1) // 2])]
    first, last = np.searchsorted(device.start, [start, end])
    inside = np.flatnonzero(device.end[:last] > start) if first else np.arange(last)
    least = (end - start) / _MOST_BARS
    bars: list[JsonObject] = []
    open_bars: dict[str, Any] = {}
    for run in inside.tolist():
        signature, category = device.signatures[device.code[run]], str(device.category[device.code[run]])
        begin, until = max(int(device.start[run]), int(start)), min(int(device.end[run]), int(end))
        bar = open_bars.get(category)
        if bar and begin - bar["until"] < least and (until - begin < least or bar["until"] - bar["from"] < least):
            bar["until"], bar["runs"] = max(bar["until"], until), bar["runs"] + 1
            continue
        open_bars[category] = {
            "what": label(case, category),
            "op": signature.name,
            "from": begin,
            "until": until,
            "runs": 1,
        }
        bars.append(open_bars[category])
    return [
        {**bar, "from": (bar["from"] - int(start)) / 1e6, "until": (bar["until"] - int(start)) / 1e6}
        for bar in bars[: 2 * _MOST_BARS]
    ]


def _totals(profile: Profile) -> list[JsonObject]:
    """Return the op types of tables without single runs."""
    total = sum(each[4] for each in profile.totals) or 1.0
    none = {"matrix": None, "vector": None, "memory": None, "bound_ms": None, "shapes": "", "line": "", "name": ""}
    rows: list[JsonObject] = [
        {**none, "type": of_type, "unit": core or table, "calls": float(count), "ms": ms, "share": ms / total}
        for table, of_type, core, count, ms in profile.totals
    ]
    return sorted(rows, key=lambda row: (-row["ms"], row["type"]))[:_MOST]
