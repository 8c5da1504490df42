"""The part of the HTML report that goes by rule: what needs the user, and what was rewritten."""
from __future__ import annotations

from typing import Dict, List, Sequence, Tuple

from ..results import CHANGE, ERROR, FINDING, Diagnostic
from .explanation import as_html
from .html_parts import badges, clean, data, file_id, message, section_head, source_line, where
from .model import Explanation, Report, ReportFile

_Place = Tuple[ReportFile, Diagnostic]


def needs_you(report: Report) -> str:
    """What the user has to look at, rule by rule, and what could not be read."""
    made = _section('needs-you', 'Needs you', report.count(FINDING), _items(report, FINDING) or [
        '<p class="quiet">Nothing that the tool knows of.</p>'])
    if report.count(ERROR):
        made += '\n' + _section('not-read', 'Not read', report.count(ERROR), _items(report, ERROR))
    return made


def rewritten(report: Report) -> str:
    """What was rewritten, rule by rule."""
    return _section('rewritten', 'Rewritten', report.count(CHANGE), _items(report, CHANGE))


def anchor(code: str, left: bool) -> str:
    """The anchor of a rule in one of the two sections."""
    return ('needs-' if left else 'done-') + code


def _section(name: str, title: str, number: int, content: Sequence[str]) -> str:
    return '\n'.join([section_head(name, title, number)] + list(content) + ['</section>'])


def _items(report: Report, kind: str) -> List[str]:
    places: Dict[str, List[_Place]] = {}
    for file in report.files:
        for diagnostic in file.result.diagnostics:
            if diagnostic.kind == kind:
                places.setdefault(diagnostic.code, []).append((file, diagnostic))
    return [_item(rule, kind, places[rule.code]) for rule in report.rules
            if rule.code in places]


def _item(rule: Explanation, kind: str, places: Sequence[_Place]) -> str:
    by_message: Dict[str, List[_Place]] = {}
    for file, diagnostic in places:
        by_message.setdefault(diagnostic.message, []).append((file, diagnostic))
    name = anchor(rule.code, kind != CHANGE)
    made = ['<details class="item rule" id="%s"><summary><code class="code">%s</code> <span class="title">%s'
            '</span> %s<a class="permalink" href="#%s" aria-label="Link to %s">#</a></summary>' % (
                name, rule.code, clean(rule.title), badges([(kind, len(places))]), name, rule.code)]
    for text, said in by_message.items():
        made.append('<div class="told"><p class="message">%s</p><ul class="said">' % message(text))
        made += ['<li %s><a href="#%s">%s</a> %s</li>' % (
            data(file, d), file_id(file), where(file, d), source_line(file, d)) for file, d in said]
        made.append('</ul></div>')
    made.append('<details class="explanation"><summary>What the rule does, and why</summary>\n%s\n'
                '</details></details>' % as_html(rule.doc))
    return '\n'.join(made)
