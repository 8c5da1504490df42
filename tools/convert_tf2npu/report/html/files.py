"""The part of the HTML report that goes by file: what is said of it, and both its sides."""
from __future__ import annotations

from typing import Iterator, Tuple

from ...engine.results import CHANGE, ERROR, FINDING
from .parts import badges, clean, data, file_id, message, section_head, source_line
from .rules import anchor
from ..model import Report, ReportFile
from ..side_by_side import table
from ..text import count, place

# Of all diffs together; a larger page would be slow to open.
_MOST_DIFF_BYTES = 30_000_000


def files(report: Report) -> Iterator[str]:
    """All files of which something is said."""
    told = [file for file in report.files if file.result.diagnostics]
    yield section_head('files', 'Files', len(told))
    left_bytes = _MOST_DIFF_BYTES
    for file in told:
        yield from _said(file)
        difference, left_bytes = _difference(file, left_bytes)
        yield difference
        yield '</details>'
    if len(told) < len(report.files):
        yield '<p class="quiet">%s: nothing to do.</p>' % count(len(report.files) - len(told), 'other file')
    yield '</section>'


def _said(file: ReportFile) -> Iterator[str]:
    said = file.result.diagnostics
    name = clean(file.name)
    yield '<details class="item file" id="%s"><summary><span class="title">%s</span> %s<a class="permalink" ' \
        'href="#%s" aria-label="Link to %s">#</a></summary>\n<ul class="said">' % (
            file_id(file), name, badges((k, sum(1 for d in said if d.kind == k)) for k in (FINDING, ERROR, CHANGE)),
            file_id(file), name)
    for d in said:
        yield '<li %s><span class="place">%s</span> <a class="code" href="#%s">%s</a> <span class="message">%s' \
            '</span>%s</li>' % (data(file, d), clean(place(d)), anchor(d.code, d.kind != CHANGE), d.code,
                                message(d.message), '' if d.kind == CHANGE else ' ' + source_line(file, d))
    yield '</ul>'


def _difference(file: ReportFile, left_bytes: int) -> Tuple[str, int]:
    new = file.new_text()
    if new is None:
        return '', left_bytes
    if left_bytes <= 0:
        return '<p class="quiet">The page is large enough; the command prints this file\'s diff.</p>', 0
    made = table(file.text().lines, new.lines)
    return '<div class="scroll" tabindex="0" role="group" aria-label="Changes of %s">%s</div>' % (
        clean(file.name), made), left_bytes - len(made)
