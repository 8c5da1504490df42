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
    found = []
    if first:
        of_step = f"step {first['step']}: " if first["step"] >= 0 else ""
        found.append(
            f"{of_step}first op that departs in the order of the graph: {first['operator']} ({first['type']}), "
            f"{first['line'] + ', ' if first['line'] else ''}inputs {first['inputs']}"
        )
        found += [f"  {first['slot']} for {first['op']}: {'; '.join(first['why'])}", f"  {first['cause']}"]
    else:
        found.append("all outputs agree" if result["verdict"] == "agrees" else "only inputs depart, no output does")
    found.append(f"{compared} tensors compared, {states.get('departs', 0)} depart")
    if states.get("not compared"):
        found.append(f"{states['not compared']} tensors not compared: see their rows")
    return found


def type_rows(result: JsonObject) -> list[list[str]]:
    """Return the cells of the table by type."""
    return [
        [
            row["type"],
            str(row["outputs"]),
            str(row["departing"]),
            number(row["largest_distance"]),
            number(row["least_cosine"], ".6f"),
        ]
        for row in result["types"]
    ]


def tensor_row(each: JsonObject) -> list[str]:
    """Return the cells of a tensor."""
    figures = each["figures"] or {}
    return [
        each["state"],
        each["operator"],
        each["type"],
        each["slot"],
        each["op"],
        f"{each['device_type']}, {each['reference_type']}",
        number(figures.get("relative_euclidean")),
        number(figures.get("cosine"), ".6f"),
        each["cause"] or "; ".join(each["why"]),
    ]


def number(value: float | None, form: str = ".1e") -> str:
    """Return a figure as text, empty for none."""
    return "" if value is None else format(value, form)


def columns(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return a table as lines."""
    widths = [max(len(row[place]) for row in [heads, *rows]) for place in range(len(heads))]
    return ["  " + "  ".join(map(str.ljust, row, widths)).rstrip() for row in [heads, *rows]]


def _lines(result: JsonObject, most: int) -> Iterator[str]:
    yield from answers(result)
    first = result["first_departure"]
    if first and len(first["path"]) > 1:
        yield "  path: " + " > ".join(f"{each['operator']} ({each['state']})" for each in first["path"])
    for side, what in (("device", "outputs of the device"), ("reference", "outputs of the reference")):
        parts = [f"{each['number']} {each['cause']}" for each in result["unpaired"] if each["side"] == side]
        if parts:
            yield f"{what} without a pair: {', '.join(parts)}"
    if result["problems"]:
        yield f"{len(result['problems'])} files were not read:"
        yield from (f"  {each['file']}: {each['problem']}." for each in result["problems"][:most])
        yield from _rest(len(result["problems"]) - most, "files")
    yield from ["", "by type:", *columns(TYPE_HEADS, type_rows(result)[:most])]
    yield from _rest(len(result["types"]) - most, "types")
    shown = result["tensors"] if most > _MOST else [each for each in result["tensors"] if each["state"] != "agrees"]
    if shown:
        yield from ["", "all tensors:" if most > _MOST else "tensors that do not agree:"]
        yield from columns(TENSOR_HEADS, [tensor_row(each) for each in shown[:most]])
        yield from _rest(len(shown) - most, "tensors")


def _rest(number: int, what: str) -> list[str]:
    return [f"  ... and {number} more {what}: see -r DIR"] if number > 0 else []
