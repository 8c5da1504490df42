"""The report of a comparison as one HTML page with a search box and the path to the first departure drawn."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Iterator

from npu_shim.dumps.reports.text import TENSOR_HEADS, TYPE_HEADS, answers, number, tensor_row, type_rows
from npu_shim.rehearsal.web import Html, clean, page, section

if TYPE_CHECKING:
    from npu_shim._tensorflow.types import JsonObject

_WIDTH, _HEIGHT, _GAP = 640, 44, 22
_COLOURS = {"agrees": "#2e7d32", "departs": "#c62828", "not compared": "#757575"}


def to_html(result: JsonObject) -> str:
    """Return the page."""
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "search.js"), encoding="utf-8") as stream:
        script = stream.read()
    about, footer = f"{result['device']}, {result['reference']}", f"{result['tool']} {result['tool_version']}"
    heading = "Dumps of the device and what TensorFlow computes"
    return page("Comparison of dumps", heading, about, "", "\n".join(_body(result)), footer, script)


def _body(result: JsonObject) -> Iterator[str]:
    first, *more = answers(result)
    state = "agree" if result["verdict"] == "agrees" else "differ"
    yield f'<p class="verdict {state}">{clean(first)}</p>'
    yield from (f"<p>{clean(line)}</p>" for line in more)
    if result["first_departure"]:
        yield "<h2>Path to the first departure</h2>\n" + _drawn(result["first_departure"]["path"])
    yield section("By type", TYPE_HEADS, type_rows(result), (1, 2, 3, 4))
    unpaired, heads = result["unpaired"], ("side", "cause", "number", "names")
    rows = [[each["side"], each["cause"], str(each["number"]), ", ".join(each["names"][:20])] for each in unpaired]
    yield section("Without a pair", heads, rows, (2,)) if rows else ""
    rows = [[each["file"], each["problem"]] for each in result["problems"]]
    yield section("Files that were not read", ("file", "problem"), rows) if rows else ""
    yield '<p><label>Search <input id="search" type="search" placeholder="operator, type, op, line, state"></label>'
    yield '<span class="quiet" id="found"></span></p>\n<div id="tensors">'
    rows = [[_state(each), *tensor_row(each)[1:], each["line"]] for each in result["tensors"]]
    yield section("All tensors", [*TENSOR_HEADS, "line"], rows, (6, 7)) + "</div>"


def _state(each: JsonObject) -> Html:
    return Html(f'<span style="color:{_COLOURS[each["state"]]}">{clean(each["state"])}</span>')


def _drawn(path: list[JsonObject]) -> str:
    """Return the path as a picture, from an input of the graph down to the departure."""
    height, label = len(path) * (_HEIGHT + _GAP), f"{len(path)} operators, the last departs"
    box = f'viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" style="max-width:100%"'
    parts = [f'<svg {box} role="img" aria-label="{label}">']
    for place, each in enumerate(path):
        top = place * (_HEIGHT + _GAP) + 1
        distance = number((each["figures"] or {}).get("relative_euclidean"))
        detail = [each["type"], each["state"], distance and f"distance {distance}", each["line"]]
        if place:
            parts.append(f'<path d="M20 {top - _GAP} v{_GAP}" stroke="currentColor" fill="none"/>')
        style = f'rx="4" fill="none" stroke="{_COLOURS[each["state"]]}" stroke-width="2"'
        parts.append(f'<rect x="1" y="{top}" width="{_WIDTH - 2}" height="{_HEIGHT - 2}" {style}/>')
        for text, line, size in ((each["operator"], 18, 14), (", ".join(filter(None, detail)), 35, 12)):
            parts.append(f'<text x="12" y="{top + line}" fill="currentColor" font-size="{size}">{clean(text)}</text>')
    return "".join(parts) + "</svg>"
