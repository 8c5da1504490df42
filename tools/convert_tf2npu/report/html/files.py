"""The part of the HTML report by file: diagnostics, and the file before and after."""

from __future__ import annotations

from typing import Iterator

from ...engine.results import CHANGE, ERROR, FINDING, UNREACHED
from ..content import Report, ReportFile
from ..language import Language
from ..side_by_side import comparison_table
from ..text import count_text, place_text
from .frame import escape_html
from .parts import badges_html, file_id, filter_attributes, message_html, section_start_html, source_line_html
from .rules import anchor

# Of all diffs together: a larger page is slow to open.
_MOST_DIFF_BYTES = 30_000_000


def files_section(report: Report) -> Iterator[str]:
    """Return the section of all files with diagnostics."""
    translate = report.translate
    reported = [file for file in report.files if file.result.diagnostics]
    yield section_start_html("files", translate("Files"), len(reported))
    left_bytes = _MOST_DIFF_BYTES
    for file in reported:
        yield from _file_html(file, translate)
        difference, left_bytes = _difference_html_and_left_bytes(file, left_bytes, translate)
        yield difference
        yield "</details>"
    if len(reported) < len(report.files):
        others = count_text(len(report.files) - len(reported), "other file", translate)
        yield f'<p class="quiet">{translate("{0}: nothing to do.").format(others)}</p>'
    yield "</section>"


def _file_html(file: ReportFile, translate: Language) -> Iterator[str]:
    said = file.result.diagnostics
    name = escape_html(file.name)
    counts = badges_html(
        ((k, sum(1 for d in said if d.kind == k)) for k in (FINDING, ERROR, CHANGE, UNREACHED)), translate
    )
    yield (
        f'<details class="item file" id="{file_id(file)}"><summary><span class="title">{name}</span> {counts}'
        f'<a class="permalink" href="#{file_id(file)}" aria-label="{translate("Link to {0}").format(name)}">#</a>'
        '</summary>\n<ul class="said">'
    )
    for d in said:
        yield (
            '<li {}><span class="place">{}</span> <a class="code" href="#{}">{}</a> <span class="message">{}'
            "</span>{}</li>".format(
                filter_attributes(file, d),
                escape_html(place_text(d, translate)),
                anchor(d.code, d.kind),
                d.code,
                message_html(d.message, translate),
                "" if d.kind == CHANGE else " " + source_line_html(file, d),
            )
        )
    yield "</ul>"


def _difference_html_and_left_bytes(file: ReportFile, left_bytes: int, translate: Language) -> tuple[str, int]:
    new = file.new_text()
    if new is None:
        return "", left_bytes
    if left_bytes <= 0:
        omitted = translate("Diff omitted to keep the page small. Run the command without -o to print it.")
        return f'<p class="quiet">{omitted}</p>', 0
    comparison = comparison_table(file.text().lines, new.lines, translate("Before and after"))
    label = translate("Changes of {0}").format(escape_html(file.name))
    return (
        f'<div class="scroll" tabindex="0" role="group" aria-label="{label}">{comparison}</div>',
        left_bytes - len(comparison),
    )
