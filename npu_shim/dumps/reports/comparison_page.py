"""The report of a comparison as one HTML page with a search box and the path to the first departure drawn."""

from __future__ import annotations

import os
from typing import Iterator, Sequence

import npu_shim
from npu_shim.dumps.comparison_result import (
    AGREES,
    DEPARTS,
    NOT_COMPARED,
    ComparedTensor,
    DumpComparison,
    finite_or_none,
)
from npu_shim.dumps.reports.comparison_text import answer_sentences, report_sections
from npu_shim.rehearsal.sections import to_html as html_of
from npu_shim.rehearsal.web import escape_html, page_html, verdict_html

_COLOURS = {AGREES: "#2e7d32", DEPARTS: "#c62828", NOT_COMPARED: "#757575"}
_SEARCH = """<p><label>Search <input id="search" type="search" placeholder="operator, type, op, line, state"></label>
<span class="quiet" id="found"></span></p>
<div id="tensors">"""


def to_html(result: DumpComparison) -> str:
    """Return the page."""
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "search.js"), encoding="utf-8") as stream:
        script = stream.read()
    about, footer = f"{result.device}, {result.reference}", f"npu-shim dumps compare {npu_shim.__version__}"
    heading = "Dumps of the device and what TensorFlow computes"
    return page_html("Comparison of dumps", heading, [about], _html_body(result), footer, script)


def _html_body(result: DumpComparison) -> Iterator[str]:
    yield from verdict_html("agree" if result.verdict == AGREES else "differ", *answer_sentences(result))
    if result.first_departure:
        yield "<h2>Path to the first departure</h2>"
        yield from _path_boxes(result.first_departure.path)
    *others, tensors = report_sections(result)
    yield from (*html_of(others), _SEARCH, *html_of([tensors]), "</div>")


def _path_boxes(path: Sequence[ComparedTensor]) -> Iterator[str]:
    """Yield the path as boxes, from an input of the graph down to the departure."""
    for place, row in enumerate(path):
        distance = finite_or_none(row.figures.relative_euclidean) if row.figures else None
        detail = [row.type, row.state, "" if distance is None else f"distance {distance:.1e}", row.line]
        style = f"border:2px solid {_COLOURS[row.state]};border-radius:4px;padding:4px 12px;max-width:40rem"
        text = f"{escape_html(row.operator)}<br><small>{escape_html(', '.join(filter(None, detail)))}</small>"
        yield ("<div>&darr;</div>" if place else "") + f'<div class="path" style="{style}">{text}</div>'
