"""Compute the page of a profile, and the comparison of two."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from typing import Iterator, Mapping, Sequence

import numpy as np

from npu_shim.dumps.files import problem_list
from npu_shim.profiles import findings, op_kinds, pages
from npu_shim.profiles.devices import OP, WAITS, Device, Profile
from npu_shim.profiles.steps import PHASES
from npu_shim.profiles.table_forms import finite_number
from npu_shim.rehearsal.predict.op_times import without_version

_MOST = 10  # ops
_MOST_BARS = 2000
_RATIOS = ("matrix", "vector", "memory")
_NAMES = {op_kinds.COMMUNICATION: "communication that nothing overlaps", op_kinds.TRANSFER: "copies"}
_LEVEL = 0.01  # of significance
_LEAST_STEPS = 5
_MOST_TYPES = 20


def slowest_device(profile: Profile, folder: str) -> Device:
    """Return the device that works longest in a step, for which others wait.

    Raises:
        ValueError: there is none.
    """
    if not profile.devices:
        raise ValueError(f"{folder} has no runs of ops. Export op_summary with msprof --export=on")
    return max(profile.devices, key=lambda device: device.takes - device.alone)


def to_page(profile: Profile, folder: str, by_gain: bool = False) -> pages.ProfilePage:
    """Return the page.

    Args:
        profile: that was read.
        folder: as given.
        by_gain: rank findings by what a fix saves at most.
    """
    page = pages.ProfilePage(
        folder=folder,
        product=profile.product.name if profile.product else None,
        files=dict(Counter(file.kind for file in profile.files)),
        devices=[_device_times(device) for device in profile.devices],
        types=_op_type_costs(profile),
        problems=problem_list(profile.problems),
    )
    return _with_step_costs(page, slowest_device(profile, folder), by_gain) if profile.devices else page


def _with_step_costs(page: pages.ProfilePage, device: Device, by_gain: bool) -> pages.ProfilePage:
    """Return a page with what a step of a device costs."""
    bottlenecks, length = findings.find_bottlenecks(device.profile, device), device.length / 1e6
    if by_gain:
        bottlenecks.sort(key=lambda finding: (finding.needed - finding.ms, -finding.ms, finding.id))
    waits = {category_label(device, name): spent for name, spent in device.waits.items() if spent.any()}
    return replace(
        page,
        device=device.name,
        step=pages.StepLength(
            source=device.steps.source,
            number=len(length),
            left_out=device.steps.left_out,
            slow=int(device.slow.sum()),
            mean_ms=float(np.mean(length)),
            median_ms=float(np.median(length)),
            shortest_ms=float(np.min(length)),
            longest_ms=float(np.max(length)),
        ),
        waits=[pages.Wait(name, *_ms_and_share(device, spent)) for name, spent in waits.items()],
        phases=list(_phases_of_step(device, waits)),
        ops=_op_costs(device, OP),
        types=_op_costs(device, ("type",)),
        findings=[_to_bottleneck(device, finding) for finding in bottlenecks],
        prediction=list(_rows_against_prediction(device)),
        timeline=_median_step_bars(device),
    )


def _phases_of_step(device: Device, waits: Mapping[str, np.ndarray]) -> Iterator[pages.Phase]:
    for place in np.flatnonzero(device.phases.any(axis=0)):
        of_phase = {name: device.ms_per_step(spent[:, place]) for name, spent in waits.items() if spent[:, place].any()}
        yield pages.Phase(PHASES[place], *_ms_and_share(device, device.phases[:, place]), of_phase)


def _to_bottleneck(device: Device, finding: findings.Finding) -> pages.Bottleneck:
    left = device.takes - (finding.ms - finding.needed)  # with a fix
    kind, gain = op_kinds.KINDS[finding.id], device.takes / left if left > 0 else None
    share = finding.ms / device.takes
    return pages.Bottleneck(finding.id, kind.title, kind.fix, kind.see, finding.ms, share, gain, finding.evidence)


def _rows_against_prediction(device: Device) -> Iterator[pages.AgainstPrediction]:
    """Yield the times of a step beside the prediction, and the types of ops whose time differs most from it."""
    expected, profile = device.profile.expected, device.profile
    if expected is None:
        return
    places = np.flatnonzero(np.isin(device.category, (op_kinds.COMPUTE, op_kinds.AI_CPU)))
    ops = float(device.ms[places].sum())
    exposed = expected.exposed.get(len(profile.devices))
    parts = (("step", device.takes, expected.step, exposed or 0.0), ("ops of the device", ops, expected.ops, 0.0))
    for what, ms, of_step, waits in parts:
        predicted, low, high = (time + waits for time in (of_step.ms, of_step.low, of_step.high))
        yield pages.AgainstPrediction(what, ms, predicted, low, high, None, None)
    if exposed is not None:
        alone = _NAMES[op_kinds.COMMUNICATION]
        yield pages.AgainstPrediction(alone, device.alone, exposed, None, None, None, None)
    types = {type: [0.0, 0.0] for type in expected.types}
    for place in places:
        sums = types.setdefault(without_version(device.signatures[place].type), [0.0, 0.0])
        sums[0], sums[1] = sums[0] + float(device.ms[place]), sums[1] + float(device.calls[place])
    rows = [
        pages.AgainstPrediction(type, ms, predicted, None, None, calls, runs)
        for type, (ms, calls) in types.items()
        for runs, predicted in [expected.types.get(type, (0, 0.0))]
    ]
    yield from sorted(rows, key=lambda row: (-abs(row.ms - row.predicted_ms), row.what))[:_MOST]


def _ms_and_share(device: Device, nanoseconds: np.ndarray) -> tuple[float, float]:
    """Return milliseconds of a step, and their share of it."""
    ms = device.ms_per_step(nanoseconds)
    return ms, ms / device.takes


def _device_times(device: Device) -> pages.DeviceTimes:
    steps, busy = len(device.length), device.ms_per_step(device.busy)
    return pages.DeviceTimes(device.name, steps, len(device.code), device.takes, busy, device.alone)


def category_label(device: Device, name: str) -> str:
    """Return what a page calls a category."""
    return ("ops on the CPU" if device.on_cpu else "AI Core") if name == op_kinds.COMPUTE else _NAMES.get(name, name)


def _op_costs(device: Device, keys: Sequence[str]) -> list[pages.OpCost]:
    """Return the ops, or types of ops, those that cost most first."""
    rows = []
    for places in device.group_signatures(range(len(device.signatures)), device.ms, keys)[:_MOST]:
        most, ms = max(places, key=lambda place: device.ms[place]), float(device.ms[places].sum())
        signature = device.signatures[most]
        rows.append(
            pages.OpCost(
                name=signature.name if "name" in keys else "",
                type=signature.type,
                line=device.line_of_op(most),
                unit=category_label(device, str(device.category[most])),
                shapes=signature.shapes.strip('"'),
                calls=float(device.calls[places].sum()),
                ms=ms,
                share=ms / device.takes,
                bound_ms=device.least_ms(places) if device.profile.product else None,
                **{
                    name: _weighted_mean(ratio[places], device.ms[places])
                    for name, ratio in zip(_RATIOS, device.ratios)
                },
            )
        )
    return rows


def _weighted_mean(ratio: np.ndarray, weight: np.ndarray) -> float | None:
    known = np.isfinite(ratio) & (weight > 0)
    return float(np.average(ratio[known], weights=weight[known])) if known.any() else None


def _median_step_bars(device: Device) -> list[pages.Bar]:
    """Return what is busy in the step of the median length, in milliseconds from its start; short runs are joined."""
    middle = np.argsort(device.length, kind="stable")[(len(device.length) - 1) // 2]
    start, end = device.steps.edges[middle, [0, -1]].tolist()
    least = (end - start) / 1e6 / _MOST_BARS
    bars: list[pages.Bar] = []
    last: dict[str, pages.Bar] = {}  # bar by category
    for run in np.flatnonzero((device.start < end) & (device.end > start)).tolist():
        category = str(device.category[device.code[run]])
        begin, until = ((min(max(int(edge[run]), start), end) - start) / 1e6 for edge in (device.start, device.end))
        bar = last.get(category)
        if bar and begin - bar.until < least and min(until - begin, bar.until - bar.start) < least:
            bar.until, bar.runs = max(bar.until, until), bar.runs + 1
        else:
            name = device.signatures[device.code[run]].name
            last[category] = pages.Bar(category_label(device, category), name, begin, until)
            bars.append(last[category])
    return bars[: 2 * _MOST_BARS]


def _op_type_costs(profile: Profile) -> list[pages.OpCost]:
    """Return the op types of tables without single runs."""
    sums = [
        (sum(row.times["total"]) / 1e6, float(int(finite_number(row.cells["count"]))), row.cells, table)
        for table in ("op_statistic", "communication_statistic")
        for row in profile.rows[table]
    ]
    total = sum(ms for ms, *_ in sums) or 1.0
    rows = [
        pages.OpCost("", cells["type"], "", cells.get("core") or table, "", calls, ms, ms / total)
        for ms, calls, cells, table in sums
    ]
    return sorted(rows, key=lambda row: (-row.ms, row.type))[:_MOST]


def compare_profiles(old: Profile, new: Profile, folders: tuple[str, str]) -> pages.ProfileChanges:
    """Return the comparison.

    Raises:
        ValueError: a profile has no runs of ops.
    """
    sides = [slowest_device(old, folders[0]), slowest_device(new, folders[1])]
    types = sorted({signature.type for side in sides for signature in side.signatures})
    spent = zip(types, *(side.time_by_type(types) for side in sides))
    changes = [_time_change(name, *of_sides) for name, *of_sides in spent if any(map(np.any, of_sides))]
    changes.sort(key=lambda change: (-abs(change.new_ms - change.old_ms), change.what))
    idle = [(category_label(sides[1], name), [side.waits[name].sum(axis=1) for side in sides]) for name in WAITS]
    before, after = (side.length for side in sides)
    return pages.ProfileChanges(
        old=folders[0],
        new=folders[1],
        step=pages.StepChange(**vars(_time_change("step", before, after)), old_steps=len(before), new_steps=len(after)),
        waits=[_time_change(name, *of_sides) for name, of_sides in idle if any(map(np.any, of_sides))],
        phases=[_time_change(name, *[side.phases[:, place] for side in sides]) for place, name in enumerate(PHASES)],
        types=changes[:_MOST_TYPES],
        problems=[*problem_list(old.problems), *problem_list(new.problems)],
    )


def probability_by_chance(old: np.ndarray, new: np.ndarray) -> float | None:
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


def _time_change(quantity: str, old: np.ndarray, new: np.ndarray) -> pages.Change:
    before, after = float(old.mean()) / 1e6, float(new.mean()) / 1e6
    chance = probability_by_chance(old, new)
    verdict = pages.FASTER if after < before else pages.SLOWER
    if chance is None or chance >= _LEVEL:
        verdict = pages.UNKNOWN if chance is None else pages.SAME
    return pages.Change(quantity, before, after, after / before - 1 if before else None, chance, verdict)
