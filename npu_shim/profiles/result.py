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
_RATIOS = ("matrix", "vector", "memory")
_NAMES = {kinds.COMMUNICATION: "communication that nothing overlaps", kinds.TRANSFER: "copies"}


def cases_of(profile: Profile, product: Product | None) -> list[Case]:
    """Return the devices of a profile with their breakdowns."""
    return [Case(profile, device, breakdown(device), product) for device in profile.devices]


def slowest(cases: Sequence[Case]) -> int:
    """Return the place of the device that works longest in a step, for which others wait."""
    return max(range(len(cases)), key=lambda place: cases[place].length - cases[place].alone)


def to_result(profile: Profile, folder: str, product: Product | None = None, by_gain: bool = False) -> JsonObject:
    """Return the page.

    Args:
        profile: that was read.
        folder: as given.
        product: for bounds.
        by_gain: rank findings by what a fix saves at most.
    """
    cases = cases_of(profile, product)
    none = {"device": None, "step": None, "types": _totals(profile)}
    none.update((name, []) for name in ("waits", "phases", "ops", "findings", "timeline"))
    return page(
        [profile],
        folder=folder,
        product=product.name if product else None,
        files=dict(Counter(each.kind for each in profile.files)),
        devices=[_device(case) for case in cases],
        **(none if not cases else {**none, **_shown(profile, cases, by_gain)}),
    )


def page(profiles: Sequence[Profile], **content: Any) -> JsonObject:
    """Return a result with what all have."""
    problems = [{"file": path, "problem": text} for each in profiles for path, text in each.problems.items()]
    about = {"schema_version": 1, "tool": "npu-shim profile", "tool_version": npu_shim.__version__}
    return {**about, **content, "problems": problems}


def _shown(profile: Profile, cases: Sequence[Case], by_gain: bool) -> JsonObject:
    shown = slowest(cases)
    case = cases[shown]
    found = findings.search(profile, cases, shown)
    if by_gain:
        found.sort(key=lambda each: (-each.saved, -each.ms, each.id))
    return {
        "device": case.device.name,
        "step": _step(case),
        "waits": [{"what": label(case, name), **_share(case, each)} for name, each in _some(case.found.waits)],
        "phases": [_phase(case, place) for place in range(len(PHASES)) if case.found.phases[:, place].any()],
        "ops": _ops(case, findings.OP),
        "types": _ops(case, ("type",)),
        "findings": [_finding(case, each) for each in found],
        "timeline": _timeline(case),
    }


def _some(waits: dict[str, np.ndarray]) -> list[tuple[str, np.ndarray]]:
    return [(name, waits[name]) for name in WAITS if waits[name].any()]


def _share(case: Case, nanoseconds: np.ndarray) -> JsonObject:
    ms = case.mean(nanoseconds)
    return {"ms": ms, "share": ms / case.length}


def _device(case: Case) -> JsonObject:
    return {
        "device": case.device.name,
        "steps": case.steps,
        "runs": len(case.device.code),
        "mean_ms": case.length,
        "busy_ms": case.mean(case.found.busy),
        "communication_ms": case.alone,
    }


def _step(case: Case) -> JsonObject:
    length = case.found.length / 1e6
    figures = {"mean": length.mean(), "median": np.median(length), "shortest": length.min(), "longest": length.max()}
    return {
        "source": case.device.steps.source,
        "number": case.steps,
        "left_out": case.device.steps.left_out,
        **{f"{name}_ms": float(figure) for name, figure in figures.items()},
        "slow": int(case.found.slow().sum()),
    }


def label(case: Case, name: str) -> str:
    """Return what a page calls a category."""
    return ("ops on the CPU" if case.on_cpu else "AI Core") if name == kinds.COMPUTE else _NAMES.get(name, name)


def _phase(case: Case, place: int) -> JsonObject:
    waits = _some({name: each[:, place] for name, each in case.found.waits.items()})
    parts = {label(case, name): case.mean(each) for name, each in waits}
    return {"phase": PHASES[place], **_share(case, case.found.phases[:, place]), "waits": parts}


def _ops(case: Case, keys: Sequence[str]) -> list[JsonObject]:
    """Return the ops, or types of ops, those that cost most first."""
    every = range(len(case.device.signatures))
    return [_op(case, "name" in keys, places) for places in case.groups(every, case.ms, keys)[:_MOST]]


def _op(case: Case, is_named: bool, places: list[int]) -> JsonObject:
    most, ms = max(places, key=lambda place: case.ms[place]), float(case.ms[places].sum())
    each = case.device.signatures[most]
    return {
        "name": each.name if is_named else "",
        "type": each.type,
        "unit": label(case, str(case.device.category[most])),
        "line": case.profile.lines.of(each.name, each.type),
        "calls": float(case.calls[places].sum()),
        "ms": ms,
        "share": ms / case.length,
        **{name: _ratio(case, which, places) for which, name in enumerate(_RATIOS)},
        "bound_ms": sum(case.bound(place) for place in places) if case.product else None,
        "shapes": each.shapes.strip('"'),
    }


def _ratio(case: Case, which: int, places: Sequence[int]) -> float | None:
    ratio, weight = case.device.ratios[which][places], case.ms[places]
    known = np.isfinite(ratio) & (weight > 0)
    return float((ratio[known] * weight[known]).sum() / weight[known].sum()) if known.any() else None


def _finding(case: Case, each: findings.Finding) -> JsonObject:
    kind, length = kinds.KINDS[each.id], case.length
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
        if bar and begin - bar["until"] < least and min(until - begin, bar["until"] - bar["from"]) < least:
            bar["until"], bar["runs"] = max(bar["until"], until), bar["runs"] + 1
        else:
            made = {"what": label(case, category), "op": signature.name, "from": begin, "until": until, "runs": 1}
            open_bars[category] = made
            bars.append(made)
    times = ({name: (bar[name] - int(start)) / 1e6 for name in ("from", "until")} for bar in bars)
    return [{**bar, **time} for bar, time in zip(bars[: 2 * _MOST_BARS], times)]


def _totals(profile: Profile) -> list[JsonObject]:
    """Return the op types of tables without single runs."""
    total = sum(each[4] for each in profile.totals) or 1.0
    none = {**dict.fromkeys((*_RATIOS, "bound_ms")), **dict.fromkeys(("shapes", "line", "name"), "")}
    rows: list[JsonObject] = [
        {**none, "type": of_type, "unit": core or table, "calls": float(count), "ms": ms, "share": ms / total}
        for table, of_type, core, count, ms in profile.totals
    ]
    return sorted(rows, key=lambda row: (-row["ms"], row["type"]))[:_MOST]
