"""The report of a comparison as text: answers first, then a table by type, then all tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Iterator, Sequence

if TYPE_CHECKING:
    from npu_shim._tensorflow.types import JsonObject

_MOST = 12  # rows without all_rows
TYPE_HEADS = ("type", "outputs", "departing", "largest distance", "least cosine")
TENSOR_HEADS = ("state", "operator", "type", "tensor", "op of TensorFlow", "types", "distance", "cosine", "cause")


def to_text(result: JsonObject, all_rows: bool = False) -> str:
    """Return the report as text that ends with a line feed.

    Args:
        result: of the comparison.
        all_rows: list all tensors, files and names, not the first of them.
    """
    return "\n".join(_lines(result, len(result["tensors"]) + len(result["problems"]) if all_rows else _MOST)) + "\n"


def answers(result: JsonObject) -> list[str]:
    """Return the sentences that the report begins with."""
    states, first = result["states"], result["first_departure"]
    compared = states.get("agrees", 0) + states.get("departs", 0)
    found = ["all outputs agree" if result["verdict"] == "agrees" else "only inputs depart, no output does"]
    if first:
        of_step = f"step {first['step']}: " if first["step"] >= 0 else ""
        line = f"{first['line']}, " if first["line"] else ""
        what = f"{first['operator']} ({first['type']}), {line}inputs {first['inputs']}"
        found = [f"{of_step}first op that departs in the order of the graph: {what}"]
        found += [f"  {first['slot']} for {first['op']}: {'; '.join(first['why'])}", f"  {first['cause']}"]
    found.append(f"{compared} tensors compared, {states.get('departs', 0)} depart")
    if states.get("not compared"):
        found.append(f"{states['not compared']} tensors not compared: see their rows")
    return found


def type_rows(result: JsonObject) -> list[list[str]]:
    """Return the cells of the table by type."""
    return [
        [*(str(row[name]) for name in TYPE_HEADS[:3]), number(row["largest_distance"]), number(row["least_cosine"], 6)]
        for row in result["types"]
    ]


def tensor_row(each: JsonObject) -> list[str]:
    """Return the cells of a tensor."""
    figures, types = each["figures"] or {}, f"{each['device_type']}, {each['reference_type']}"
    values = number(figures.get("relative_euclidean")), number(figures.get("cosine"), 6)
    cells = (each[name] for name in ("state", "operator", "type", "slot", "op"))
    return [*cells, types, *values, each["cause"] or "; ".join(each["why"])]


def number(value: float | None, places: int = 0) -> str:
    """Return a figure as text, empty for none; ``places`` of 0 stands for the form with an exponent."""
    return "" if value is None else f"{value:.{places}f}" if places else f"{value:.1e}"


def columns(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return a table as lines."""
    widths = [max(len(row[place]) for row in [heads, *rows]) for place in range(len(heads))]
    return ["  " + "  ".join(map(str.ljust, row, widths)).rstrip() for row in [heads, *rows]]


def _lines(result: JsonObject, most: int) -> Iterator[str]:
    yield from answers(result)
    first = result["first_departure"]
    if first and len(first["path"]) > 1:
        yield "  path: " + " > ".join(f"{each['operator']} ({each['state']})" for each in first["path"])
    for side in ("device", "reference"):
        parts = [f"{each['number']} {each['cause']}" for each in result["unpaired"] if each["side"] == side]
        if parts:
            yield f"outputs of the {side} without a pair: {', '.join(parts)}"
    yield from problems(result, most)
    shown, title = result["tensors"], "all tensors:"
    if most <= _MOST:
        shown, title = [each for each in shown if each["state"] != "agrees"], "tensors that do not agree:"
    yield from _table("by type:", TYPE_HEADS, type_rows(result), most, "types")
    if shown:
        yield from _table(title, TENSOR_HEADS, [tensor_row(each) for each in shown], most, "tensors")


def problems(result: JsonObject, most: int) -> Iterator[str]:
    """Yield a line for each file that was not read."""
    if result["problems"]:
        yield f"{len(result['problems'])} files were not read:"
        yield from _first([f"  {each['file']}: {each['problem']}." for each in result["problems"]], most, "files")


def _table(title: str, heads: Sequence[str], rows: list[list[str]], most: int, what: str) -> list[str]:
    lines = columns(heads, rows[:most])
    return ["", title, lines[0], *_first(lines[1:] + [""] * (len(rows) - most), most, what)]


def _first(lines: list[str], most: int, what: str) -> list[str]:
    more = [f"  ... and {len(lines) - most} more {what}: see -r DIR"] if len(lines) > most else []
    return lines[:most] + more
