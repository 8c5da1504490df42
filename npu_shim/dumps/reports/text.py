"""The report of a comparison as text: answers first, then a table by type, then all tensors."""

from __future__ import annotations

from typing import Iterator

from npu_shim._tensorflow.types import JsonObject
from npu_shim.rehearsal.sections import Section, to_lines

_MOST, _MOST_NAMES = 12, 3  # rows and names without all_rows
_TYPES = ("type", "outputs", "departing", "largest distance", "least cosine")
_TENSORS = ("state", "operator", "type", "tensor", "op of TensorFlow", "types", "distance", "cosine", "cause", "line")


def to_text(result: JsonObject, all_rows: bool = False) -> str:
    """Return the report as text that ends with a line feed.

    Args:
        result: of the comparison.
        all_rows: list all tensors, files and names, not the first of them.
    """
    return "\n".join([*answers(result), *to_lines(sections(result, all_rows), None if all_rows else _MOST)]) + "\n"


def answers(result: JsonObject) -> list[str]:
    """Return the sentences that the report begins with."""
    states, first = result["states"], result["first_departure"]
    compared = states.get("agrees", 0) + states.get("departs", 0)
    lines = ["all outputs agree" if result["verdict"] == "agrees" else "only inputs depart, no output does"]
    if first:
        of_step = f"step {first['step']}: " if first["step"] >= 0 else ""
        line = f"{first['line']}, " if first["line"] else ""
        what = f"{first['operator']} ({first['type']}), {line}inputs {first['inputs']}"
        lines = [f"{of_step}first op that departs in the order of the graph: {what}"]
        lines += [f"  {first['slot']} for {first['op']}: {'; '.join(first['why'])}", f"  {first['cause']}"]
        lines += ["  path: " + " > ".join(f"{row['operator']} ({row['state']})" for row in first["path"])]
    lines.append(f"{compared} tensors compared, {states.get('departs', 0)} depart")
    if states.get("not compared"):
        lines.append(f"{states['not compared']} tensors not compared: see their rows")
    return lines


def sections(result: JsonObject, all_rows: bool = True) -> Iterator[Section]:
    """Yield the tables of the report, at last that of the tensors: without all_rows, those that do not agree."""
    rows = [
        [*(str(of_type[name]) for name in _TYPES[:3]), *_figures(of_type, *_TYPES[3:])] for of_type in result["types"]
    ]
    yield Section("by type", (), _TYPES, rows, (1, 2, 3, 4))
    unpaired = result["unpaired"]
    if unpaired:
        most = None if all_rows else _MOST_NAMES
        rows = [
            [group["side"], group["cause"], str(group["number"]), ", ".join(group["names"][:most])]
            for group in unpaired
        ]
        yield Section("without a pair", (), ("side", "cause", "number", "names"), rows, (2,))
    yield from problems(result)
    title = "all tensors" if all_rows else "tensors that do not agree"
    rows = [_row(tensor) for tensor in result["tensors"] if all_rows or tensor["state"] != "agrees"]
    if rows:
        yield Section(title, (), _TENSORS, rows, (6, 7))


def problems(result: JsonObject) -> Iterator[Section]:
    """Yield the table of the files that were not read, if there are any."""
    rows = [[problem["file"], problem["problem"]] for problem in result["problems"]]
    if rows:
        yield Section("files that were not read", (), ("file", "problem"), rows)


def _row(tensor: JsonObject) -> list[str]:
    types = f"{tensor['device_type']}, {tensor['reference_type']}"
    cells = (tensor[name] for name in ("state", "operator", "type", "slot", "op"))
    figures = _figures(tensor["figures"] or {}, "relative_euclidean", "cosine")
    return [*cells, types, *figures, tensor["cause"] or "; ".join(tensor["why"]), tensor["line"]]


def _figures(values: JsonObject, distance: str, cosine: str) -> list[str]:
    """Return a distance and a cosine as text, empty for none."""
    both = (values.get(name.replace(" ", "_")) for name in (distance, cosine))
    return ["" if value is None else form.format(value) for form, value in zip(("{:.1e}", "{:.6f}"), both)]
