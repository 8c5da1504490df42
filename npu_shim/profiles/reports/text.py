"""The page of a profile as text, and that of a comparison."""

from __future__ import annotations

from typing import TYPE_CHECKING, Iterator

from npu_shim.dumps.reports.text import columns

if TYPE_CHECKING:
    from npu_shim._tensorflow.types import JsonObject

OP_HEADS = ("op", "type", "line", "calls", "ms", "share", "matrix", "vector", "memory", "bound ms")
TYPE_HEADS = ("type", "unit", "calls", "ms", "share", "matrix", "vector", "memory", "bound ms")
WAIT_HEADS = ("what", "ms", "share")
PHASE_HEADS = ("phase", "ms", "share", "of it")
DEVICE_HEADS = ("device", "steps", "step ms", "busy ms", "communication ms")
EVIDENCE_HEADS = ("what", "type", "line", "calls", "ms", "why")
CHANGE_HEADS = ("what", "old ms", "new ms", "change", "p", "verdict")
_MOST_PROBLEMS = 12
_MOST_DEVICES = 16
_WIDTH = 60  # of a name


def to_text(result: JsonObject) -> str:
    """Return the page as text that ends with a line feed."""
    return "\n".join(_lines(result)) + "\n"


def answers(result: JsonObject) -> list[str]:
    """Return the sentences that a page begins with."""
    step = result["step"]
    if not step:
        return ["no runs of ops: only sums by type can be read. Export op_summary with msprof --export=on"]
    if step["source"] == "the whole profile":
        what = f"the profile takes {step['mean_ms']:.3f} ms on device {result['device']}"
        first = f"{what}: no step trace, so it counts as one step"
    else:
        first = (
            f"a step takes {step['mean_ms']:.3f} ms on device {result['device']}: median {step['median_ms']:.3f}, "
            f"{step['shortest_ms']:.3f} to {step['longest_ms']:.3f}, {step['number']} "
            f"{'steps' if step['number'] > 1 else 'step'} by {step['source']}"
        )
    found = result["findings"]
    if not found:
        return [first, "no bottleneck costs 3 % of it"]
    return [
        first,
        f"first bottleneck: {found[0]['title']}, {found[0]['ms']:.3f} ms, {percent(found[0]['share'])} of the step",
    ]


def percent(value: float | None) -> str:
    """Return a share as text, empty for none."""
    return "" if value is None else f"{100 * value:.1f} %"


def number(value: float | None) -> str:
    """Return milliseconds as text, empty for none."""
    return "" if value is None else f"{value:.3f}"


def wait_rows(result: JsonObject) -> list[list[str]]:
    """Return the cells of the waits."""
    return [[each["what"], number(each["ms"]), percent(each["share"])] for each in result["waits"]]


def phase_rows(result: JsonObject) -> list[list[str]]:
    """Return the cells of the phases."""
    return [
        [
            each["phase"],
            number(each["ms"]),
            percent(each["share"]),
            ", ".join(f"{name} {ms:.3f}" for name, ms in each["waits"].items()),
        ]
        for each in result["phases"]
    ]


def op_rows(result: JsonObject) -> list[list[str]]:
    """Return the cells of the ops."""
    return [[short(each["name"]), each["type"], each["line"], *_figures(each)] for each in result["ops"]]


def type_rows(result: JsonObject) -> list[list[str]]:
    """Return the cells of the types of ops."""
    return [[each["type"], each["unit"], *_figures(each)] for each in result["types"]]


def device_rows(result: JsonObject) -> list[list[str]]:
    """Return the cells of the devices."""
    return [
        [
            each["device"],
            str(each["steps"]),
            number(each["mean_ms"]),
            number(each["busy_ms"]),
            number(each["communication_ms"]),
        ]
        for each in result["devices"]
    ]


def evidence_rows(finding: JsonObject) -> list[list[str]]:
    """Return the cells of the evidence of a finding."""
    return [
        [short(row["what"]), row["type"], row["line"], f"{row['calls']:.4g}", number(row["ms"]), short(row["why"])]
        for row in finding["evidence"]
    ]


def gain(finding: JsonObject) -> str:
    """Return what a fix gains at most."""
    return "" if finding["gain"] is None else f"; a fix makes the step at most {finding['gain']:.2f} times as fast"


def change_rows(rows: list[JsonObject]) -> list[list[str]]:
    """Return the cells of a comparison."""
    return [
        [
            each["what"],
            number(each["old_ms"]),
            number(each["new_ms"]),
            f"{100 * (each['new_ms'] / each['old_ms'] - 1):+.1f} %" if each["old_ms"] else "new",
            "" if each["p"] is None else f"{each['p']:.2g}",
            each["verdict"],
        ]
        for each in rows
    ]


def comparison_text(result: JsonObject) -> str:
    """Return a comparison as text that ends with a line feed."""
    step = result["step"]
    lines = [
        f"a step takes {step['new_ms']:.3f} ms, before {step['old_ms']:.3f} ms: {step['verdict']} "
        f"({step['new_steps']} and {step['old_steps']} steps)"
    ]
    for title, rows in (("waits", result["waits"]), ("phases", result["phases"]), ("types of ops", result["types"])):
        lines += ["", f"{title}:", *columns(CHANGE_HEADS, change_rows(rows))]
    return "\n".join([*lines, *_problems(result)]) + "\n"


def short(name: str) -> str:
    """Return a name that fits in a column; its end says more than its beginning."""
    return name if len(name) <= _WIDTH else "..." + name[3 - _WIDTH :]


def _figures(each: JsonObject) -> list[str]:
    shares = [percent(each[name]) for name in ("share", "matrix", "vector", "memory")]
    return [f"{each['calls']:.4g}", number(each["ms"]), *shares, number(each["bound_ms"])]


def _lines(result: JsonObject) -> Iterator[str]:
    yield from answers(result)
    if result["waits"]:
        yield from ["", "the step waits for:", *columns(WAIT_HEADS, wait_rows(result))]
        yield from ["", "phases:", *columns(PHASE_HEADS, phase_rows(result))]
    if len(result["devices"]) > 1:
        yield from ["", "devices:", *columns(DEVICE_HEADS, device_rows(result)[:_MOST_DEVICES])]
        if len(result["devices"]) > _MOST_DEVICES:
            yield f"  ... and {len(result['devices']) - _MOST_DEVICES} more devices: see --json"
    if result["ops"]:
        yield from ["", "ops that cost most:", *columns(OP_HEADS, op_rows(result))]
    if result["types"]:
        yield from ["", "types that cost most:", *columns(TYPE_HEADS, type_rows(result))]
    for place, each in enumerate(result["findings"], 1):
        yield ""
        cost = f"{number(each['ms'])} ms, {percent(each['share'])} of the step"
        yield f"{place}. {each['title']}: {cost} [{each['id']}]{gain(each)}"
        yield f"   {each['fix']} ({each['see']})"
        yield from columns(EVIDENCE_HEADS, evidence_rows(each))
    yield from _problems(result)


def _problems(result: JsonObject) -> Iterator[str]:
    if result["problems"]:
        yield from ["", f"{len(result['problems'])} files have problems:"]
        yield from (f"  {each['file']}: {each['problem']}." for each in result["problems"][:_MOST_PROBLEMS])
        if len(result["problems"]) > _MOST_PROBLEMS:
            yield f"  ... and {len(result['problems']) - _MOST_PROBLEMS} more files: see --json"
