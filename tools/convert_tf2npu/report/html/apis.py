"""The part of the HTML report by API: calls, places, and NPU support."""

from __future__ import annotations

import json
from typing import Iterator

from ...engine.results import CHANGE, FINDING, UNREACHED
from ..api_table import ApiUse
from ..content import Report
from ..language import Language
from ..support import STATUSES
from .frame import escape_html
from .parts import section_start_html
from .rules import anchor

COLUMNS = (
    ("API", "text"),
    ("Calls", "number"),
    ("Files", "number"),
    ("Fine", "number"),
    ("Rewritten", "number"),
    ("Manual", "number"),
    ("Support", "rank"),
    ("Rules", "text"),
)
_LONGEST = 160  # characters of a line of source
_MOST_LINES = 60_000  # with more calls the places have no source lines


def api_section(report: Report) -> Iterator[str]:
    """Return the table of all APIs that are called; the page's script shows the places of a row."""
    translate = report.translate
    head = "".join(
        f'<th scope="col" data-sort="{sort}"><button type="button">{translate(title)}</button></th>'
        for title, sort in COLUMNS
    )
    statuses = [status for status in STATUSES if any(use.status == status for use in report.apis)]
    legend = "".join(
        f'<dt><span class="support {status}">{translate(STATUSES[status].label)}</span></dt>'
        f"<dd>{translate(STATUSES[status].advice)}</dd>"
        for status in statuses
    )
    yield section_start_html("apis", translate("API support"), len(report.apis))
    if not report.apis:
        yield f'<p class="quiet">{translate("No TensorFlow API is called.")}</p>\n</section>'
        return
    meaning = translate("Meaning of the support labels")
    yield f'<details class="aside legend"><summary>{meaning}</summary><dl>{legend}</dl></details>'
    yield f'<p class="quiet" id="unscripted">{translate("The places of the calls are in report.json.")}</p>'
    note = translate(
        "Every TensorFlow, Keras and Horovod call, by API. Support is from the vendor's list for TensorFlow {0} "
        "and from the rules."
    )
    yield (
        f'<p class="quiet" id="apis-note">{note.format(report.tensorflow)}</p>'
        f'<div class="scroll card" tabindex="0" role="group" aria-label="{translate("API support")}">'
        f'<table class="apis" aria-label="{translate("API support")}" aria-describedby="apis-note"><thead>'
        f"<tr>{head}</tr></thead><tbody>"
    )
    sections: dict[str, set[str]] = {}
    for diagnostic in report.diagnostics:
        sections.setdefault(diagnostic.code, set()).add(diagnostic.kind)
    for number, use in enumerate(report.apis):
        yield _api_row(number, use, sections, translate)
    yield "</tbody></table></div>"
    yield f'<script type="application/json" id="places">{_places_json(report)}</script>'
    yield "</section>"


def _api_row(number: int, use: ApiUse, sections: dict[str, set[str]], translate: Language) -> str:
    status = STATUSES[use.status]
    name = escape_html(use.name)
    order = (FINDING, UNREACHED, CHANGE) if use.calls.left else (CHANGE, FINDING, UNREACHED)
    kinds = {code: next(kind for kind in order if kind in sections[code]) for code in use.codes if code in sections}
    rules = " ".join(f'<a class="code" href="#{anchor(code, kind)}">{code}</a>' for code, kind in kinds.items())
    numbers = "".join(
        f'<td class="n {kind if value else "zero"}">{value}</td>'
        for kind, value in (
            ("", use.calls.total),
            ("", use.files),
            ("", use.calls.fine),
            ("change", use.calls.rewritten),
            ("finding", use.calls.left),
        )
    )
    label = escape_html(use.short_name).replace(".", ".<wbr>")
    return (
        f'<tr id="api-{name}" data-api="{number}" data-name="{name}" data-support="{use.status}"><th scope="row">'
        f'<button type="button" class="expand" aria-expanded="false">{label}</button>'
        f'<a class="permalink" href="#api-{name}" aria-label="{translate("Link to {0}").format(name)}">#</a></th>'
        f"{numbers}"
        f'<td data-rank="{list(STATUSES).index(use.status)}">'
        f'<span class="support {use.status}" title="{translate(status.advice)}">{translate(status.label)}</span></td>'
        f"<td>{rules}</td></tr>"
    )


def _places_json(report: Report) -> str:
    """Return the places of all calls: files, their lines, and for each API (file, line, outcome)."""
    with_source = sum(len(use.places) for use in report.apis) <= _MOST_LINES
    lines: list[dict[tuple[int, int], int]] = [{} for _ in report.files]
    rows = [
        [
            [number, lines[number].setdefault((call.cell, call.line), len(lines[number])), call.outcome]
            for number, call in use.places
        ]
        for use in report.apis
    ]
    listed: list[object] = []
    for file, numbers in zip(report.files, lines):
        if numbers:
            text = file.text() if with_source else None
            listed.append(
                [
                    file.name,
                    file.uri if file.result.diagnostics else None,
                    [[cell, line, text.line(line, cell).strip()[:_LONGEST] if text else ""] for cell, line in numbers],
                ]
            )
        else:
            listed.append(0)
    listing = json.dumps({"files": listed, "apis": rows}, separators=(",", ":"))
    return listing.replace("<", "\\u003c")  # no text can end the element
