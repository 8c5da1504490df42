"""Bottlenecks: which there are, what each costs, which rows show it, and how much a fix gains at most."""

from __future__ import annotations

import collections
import re
from typing import Iterator, NamedTuple

import numpy as np

from npu_shim.profiles import op_kinds
from npu_shim.profiles.devices import GAPS, MOST_ROWS, Device, Evidence, Profile

LEAST = 0.03  # of a step, below which a cost is no finding
_FULL = 0.8  # use of the matrix unit that large products reach
_LOW = 0.5
_TILE = 16  # elements of the matrix unit in each direction
_FEW, _MANY = 2, 32  # messages of gradients in a step
_SMALL_MS = {True: 0.03, False: 0.01}  # that a launch takes, on the CPU and on the NPU
_LOOP_GAPS = 0.05  # of a step, which launches may take in a loop of steps on the device
_SLOW_LINK = 0.6  # of the median bandwidth
_SLOW_RANK = 1.05  # times the work of the others
_SLOW_OP = 2.0  # times the predicted time; two of three ops of unseen models are within it


class Finding(NamedTuple):
    """A bottleneck; times in milliseconds of a step.

    Attributes:
        id: of its kind.
        ms: the time that it costs.
        evidence: the rows that cost most.
        needed: the part of it that a fix does not save.
    """

    id: str
    ms: float
    evidence: list[Evidence]
    needed: float = 0.0


def find_bottlenecks(profile: Profile, device: Device) -> list[Finding]:
    """Return the bottlenecks of a device, those that cost most first."""
    idle_times = {name: device.waits[name].sum(axis=1) for name in (GAPS, op_kinds.HOST)}
    waits, links = _wait_of_ranks(profile), list(_find_slow_links(profile, device))
    elsewhere = sum(link.ms for link in links) + sum(ms for (rank, _), ms in waits.items() if rank == device.name)
    all_findings = [
        *_find_recompiles_and_deduct_them(device, idle_times),
        *_find_slow_ranks(profile, device, waits),
        *links,
        *_find_exposed_communication(device, elsewhere),
        *_find_slow_ops(device),
    ]
    all_findings += [
        *_cost_findings_by_kind(device, idle_times),
        *_find_launch_gaps(device, idle_times),
        *_find_low_matrix_use(device),
    ]
    return sorted(
        (finding for finding in all_findings if finding.ms >= LEAST * device.takes),
        key=lambda finding: (-finding.ms, finding.id),
    )


def _cost_findings_by_kind(device: Device, idle_times: dict[str, np.ndarray]) -> Iterator[Finding]:
    """Yield what ops of one kind cost: the time in which only they run, of the host also that in which none runs."""
    for name in dict.fromkeys([*filter(None, device.kind), "host-bound"]):
        wanted = device.kind == name
        places, spent = np.flatnonzero(wanted), device.exclusive_ms(wanted)
        rows = device.evidence_rows(
            places, lambda place: reason_for_kind(device.signatures[place])
        ) + device.host_functions(name)
        if name == "host-bound":
            spent = device.ms_per_step(idle_times[op_kinds.HOST])
            rows = rows or [Evidence("idle before the forward pass", "", "", 1.0, spent, "no op runs on the device")]
            rows += _suggest_loop_size(device, spent)
        yield Finding(name, spent, rows, min(device.least_ms(places), spent) if op_kinds.KINDS[name].replaced else 0.0)


def reason_for_kind(signature: op_kinds.Signature) -> str:
    """Return why an op belongs to its kind: its types, and on the AI CPU what to use instead."""
    if op_kinds.unit_category(signature) != op_kinds.AI_CPU:
        return signature.core if signature.types in ("", "N/A") else signature.types
    types = sorted(set(re.findall(r"\w*(?:INT64|STRING|COMPLEX|DOUBLE)\w*", signature.types.upper())))
    why = f"on the AI CPU for its type {', '.join(types)}" if types else "no kernel of the AI Core"
    return f"{why}; use {op_kinds.ai_cpu_replacement(signature)}" if op_kinds.ai_cpu_replacement(signature) else why


def _find_slow_ops(device: Device) -> Iterator[Finding]:
    """Yield the time that ops take beyond what is predicted for their shapes."""
    places = np.flatnonzero((device.category == op_kinds.COMPUTE) & (device.calls > 0))
    expected = device.profile.expected
    if expected is None or device.on_cpu:
        return
    estimates = expected.estimate_measured_types([device.signatures[place] for place in places])
    needed, reasons = np.zeros(len(device.ms)), {}
    for place, estimate in zip(places, estimates):
        if estimate is not None:
            needed[place] = 1e3 * estimate.seconds * device.calls[place]
            if device.ms[place] > _SLOW_OP * needed[place]:
                factor, shapes = device.ms[place] / needed[place], device.signatures[place].shapes.strip('"')
                reasons[place] = f"{factor:.1f} times the prediction for {shapes}"
    lost = device.ms - needed
    groups = device.group_signatures(reasons, lost)
    rows = [device.evidence_row(group, reasons[max(group, key=lost.__getitem__)]) for group in groups[:MOST_ROWS]]
    yield Finding("slower-than-predicted", float(lost[list(reasons)].sum()), rows)


def _suggest_loop_size(device: Device, host: float) -> list[Evidence]:
    """Return the number of steps in one call after which the host takes less than 5 % of a step, if it takes more.

    The host works once for each call then. Its work for the data does not go: it belongs into the input pipeline.
    """
    rest = device.takes - host
    if rest <= 0 or host <= _LOOP_GAPS * device.takes:
        return []
    number = int(np.ceil(host * (1 - _LOOP_GAPS) / (_LOOP_GAPS * rest)))
    why = f"{host / number:.3f} ms of a step are left, if tf.data feeds it"
    how = "steps_per_execution of fit, else iterations_per_loop"
    return [Evidence(f"{number} steps in one call", how, "", 1 / number, host / number, why)]


def _find_launch_gaps(device: Device, idle_times: dict[str, np.ndarray]) -> Iterator[Finding]:
    """Yield launch gaps, with the ops that are shorter than a launch if most are."""
    computes, gaps = device.category == op_kinds.COMPUTE, device.ms_per_step(idle_times[GAPS])
    small = computes & (device.ms < _SMALL_MS[device.on_cpu] * device.calls)
    if 2 * device.calls[small].sum() > device.calls[computes].sum():
        groups = device.group_signatures(np.flatnonzero(small), device.calls, ("type",))[:MOST_ROWS]
        means = [1000 * device.ms[group].sum() / device.calls[group].sum() for group in groups]
        rows = [device.evidence_row(group, f"{mean:.1f} us a run") for group, mean in zip(groups, means)]
        yield Finding("small-ops", gaps + float(device.ms[small].sum()), rows)
    else:
        ops = float(device.calls.sum())
        why = f"{ops:.0f} ops in a step"
        yield Finding("launch-gaps", gaps, [Evidence("idle between ops", "", "", ops, gaps, why)])


def _find_recompiles_and_deduct_them(device: Device, idle_times: dict[str, np.ndarray]) -> Iterator[Finding]:
    """Yield what compiling costs, and take it out of the idle times."""
    rows = functions = device.host_functions("recompile")
    for places in device.group_signatures(
        np.flatnonzero(np.isin(device.category, (op_kinds.COMPUTE, op_kinds.AI_CPU))), device.ms
    ):
        shapes = {device.signatures[place].shapes for place in places}
        rows = [*rows, device.evidence_row(places, f"{len(shapes)} shapes")] if len(shapes) > 1 else rows
    if not rows:
        return
    excess = np.where(device.slow, device.length - int(np.median(device.length)), 0)
    if functions and not device.slow.any():
        excess[:] = int(sum(row.ms for row in functions) * 1e6)
    spent = np.zeros(len(excess), np.int64)
    for name in (op_kinds.HOST, GAPS):
        part = np.minimum(idle_times[name], excess - spent)
        idle_times[name], spent = idle_times[name] - part, spent + part
    if device.slow.any():
        why = "3 times the median or more"
        rows = [Evidence("slow steps", "", "", float(device.slow.sum()), device.ms_per_step(spent), why), *rows]
    yield Finding("recompile", device.ms_per_step(spent), rows[:MOST_ROWS])


def _wait_of_ranks(profile: Profile) -> dict[tuple[str, str], float]:
    """Return how long each rank waits for another in the collectives of a step, as communication*.json says.

    A rank waits for the one that waits the least.
    """
    waits: dict[tuple[str, str], float] = collections.defaultdict(float)
    steps = len({step for step, _ in profile.waits})
    for ranks in profile.waits.values():
        awaited = min(ranks, key=ranks.__getitem__)
        for rank in set(ranks) - {awaited}:
            waits[rank, awaited] += (ranks[rank] - ranks[awaited]) / steps
    return waits


def _find_slow_ranks(profile: Profile, slowest: Device, waits: dict[tuple[str, str], float]) -> Iterator[Finding]:
    """Yield what ranks wait for a slower one: by their own work, and in their collectives."""
    devices, rows, ms = profile.devices, [], 0.0
    own = {device: device.takes - device.alone for device in devices}
    if len(devices) > 1 and own[slowest] >= _SLOW_RANK * float(np.median(list(own.values()))):
        waiting = {device: max(device.alone - slowest.alone, 0.0) for device in devices}
        ms = sum(waiting.values()) / (len(devices) - 1)
        for device in sorted(devices, key=lambda device: (waiting[device] > 0, -waiting[device], device.name))[
            :MOST_ROWS
        ]:
            why = f"{own[device]:.3f} ms of its own work, waits {waiting[device]:.3f} ms"
            rows.append(Evidence(f"rank {device.name}", "", "", 1.0, device.alone, why))
    if waits:
        ms = max(ms, sum(waits.values()) / (len({rank for pair in waits for rank in pair}) - 1))
    for (rank, awaited), wait in sorted(waits.items(), key=lambda item: (-item[1], item[0]))[:MOST_ROWS]:
        rows.append(Evidence(f"rank {rank}", "", "", 1.0, wait, f"waits for rank {awaited}"))
    yield Finding("slow-rank", ms, rows)


def _find_slow_links(profile: Profile, device: Device) -> Iterator[Finding]:
    """Yield what a link costs that is slower than others of its transport."""
    links = [(*key, *link) for runs in profile.runs.values() for key, link in runs.links.items() if link[1] > 0]
    rows = []
    for transport in {link[2] for link in links}:
        alike = [(source, target, size, took) for source, target, other, size, took in links if other == transport]
        usual = float(np.median([size / took for *_, size, took in alike]))
        for source, target, size, took in alike:
            if size / took < _SLOW_LINK * usual:
                why = f"{size / took:.1f} GB/s, the median is {usual:.1f}"
                ms = device.ms_per_step(took - size / usual)
                rows.append(Evidence(f"rank {source} to {target}", transport, "", 1.0, ms, why))
    if rows:
        rows.sort(key=lambda row: (-row.ms, row))
        yield Finding("slow-link", min(rows[0].ms, device.alone), rows[:MOST_ROWS])


def _find_exposed_communication(device: Device, elsewhere: float) -> Iterator[Finding]:
    """Yield the communication that nothing overlaps, without the time for a slower rank and slow links."""
    wanted = device.category == op_kinds.COMMUNICATION
    number, total = float(device.calls[wanted].sum()), float(device.ms[wanted].sum())
    if number:
        name = "many-messages" if number >= _MANY else "few-messages" if number <= _FEW else "communication"
        why = f"{number:.0f} messages in a step, {100 * (1 - device.alone / total) if total else 0:.0f} % overlapped"
        yield Finding(
            name, max(device.alone - elsewhere, 0.0), device.evidence_rows(np.flatnonzero(wanted), lambda place: why)
        )


def _find_low_matrix_use(device: Device) -> Iterator[Finding]:
    """Yield what products and convolutions lose by a low use of the matrix unit, by its likely reason."""
    lost: dict[str, dict[int, float]] = collections.defaultdict(dict)
    for place in np.flatnonzero((device.calls > 0) & (device.kind == "")):
        signature, ms = device.signatures[place], device.ms[place]
        if op_kinds.is_matrix(signature) and signature.core.upper() != "CPU":
            used, bound = float(device.ratios[0][place]), device.least_ms([place])
            used = bound / ms if bound and not np.isfinite(used) else used
            if used < _LOW:
                lost[_why_low_matrix_use(signature)][place] = ms * (1 - used / _FULL)
    for name, members in lost.items():
        yield Finding(
            name, sum(members.values()), device.evidence_rows(members, lambda place: _matrix_use_text(device, place))
        )


def _matrix_use_text(device: Device, place: int) -> str:
    signature, used = device.signatures[place], float(device.ratios[0][place])
    known = f"{100 * used:.0f} % of the matrix unit, " if np.isfinite(used) else ""
    return f"{known}{signature.types} {signature.shapes.strip(chr(34))}"


def _why_low_matrix_use(signature: op_kinds.Signature) -> str:
    shapes = [tensor.matrix_shape() for tensor in op_kinds.device_op(signature).inputs[:2]]
    if re.search(r"(^|;)(DT_)?FLOAT(32)?(;|$)", signature.types, re.I):
        return "matrix-float32"
    if any(size % _TILE and size > 1 for shape in shapes for size in shape[-2:]):
        return "matrix-sizes"
    return (
        "matrix-batch"
        if shapes and shapes[0] and np.prod(shapes[0][:-1], dtype=np.int64) < 8 * _TILE
        else "matrix-unit"
    )
