"""report.html: one page that needs nothing else, to read a migration in."""
from __future__ import annotations

from typing import Iterable, Iterator, List, Tuple

from ..results import CHANGE, ERROR, FINDING, Calls, Diagnostic
from .explanation import as_html
from .model import Explanation, Report, ReportFile
from .page_script import SCRIPT
from .page_style import STYLE
from .side_by_side import clean, table
from .text import calls_sentence, count, place

_PAGE = '''<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; \
script-src 'unsafe-inline'">
<title>Migration of {source} to Ascend NPUs</title>
<style>
{style}</style>
</head>
<body>
<header>
<h1>Migration to Ascend NPUs</h1>
<p class="source">{source}</p>
</header>
<main>
{overview}
{toolbar}
{rules}
{files}
</main>
<script>
{script}</script>
</body>
</html>
'''
_LABEL = {CHANGE: 'rewritten', FINDING: 'needs you', ERROR: 'not read'}
# Of all diffs together; a larger page would be slow to open.
_MOST_DIFF_BYTES = 30_000_000


def to_html(report: Report) -> str:
    """The HTML page of a run."""
    return _PAGE.format(source=clean(report.source), style=STYLE, script=SCRIPT,
                        overview=_overview(report), toolbar=_toolbar(report), rules=_rules(report),
                        files=_files(report))


def _overview(report: Report) -> str:
    calls = report.calls
    changed = sum(1 for f in report.files if f.result.new is not None)
    unreadable = sum(1 for f in report.files if f.result.unreadable)
    cards: List[Tuple[str, str, str]] = [
        ('%d' % len(report.files), 'scripts and notebooks read', ''),
        ('%d' % changed, 'files changed', ''),
        ('%d' % report.count(CHANGE), 'rewrites', CHANGE),
        ('%d' % report.count(FINDING), 'places that need you', FINDING if report.count(FINDING) else '')]
    if unreadable:
        cards.append(('%d' % unreadable, 'files that cannot be read', ERROR))
    made = ['<section id="overview" aria-label="Overview">', '<div class="cards">']
    made += ['<div class="card %s"><strong>%s</strong><span>%s</span></div>' % (kind, number, label)
             for number, label, kind in cards]
    made += ['</div>', _bar(calls, sum(1 for f in report.files if f.result.calls.total))]
    for paths, label in ((report.excluded, 'Excluded, left as they are'),
                         (report.left_out, 'Not part of the migration')):
        if paths:
            made.append('<details class="aside"><summary>%s: %d</summary><ul>%s</ul></details>' % (
                label, len(paths), ''.join('<li><code>%s</code></li>' % clean(p) for p in paths)))
    return '\n'.join(made + ['</section>'])


def _bar(calls: Calls, files: int) -> str:
    if not calls.total:
        return '<p class="calls">No call of TensorFlow was found.</p>'
    text = calls_sentence(calls, files)
    pieces = ''.join('<span class="%s" style="flex-grow:%d"></span>' % (kind, number) for number, kind in (
        (calls.fine, 'fine'), (calls.rewritten, CHANGE), (calls.left, FINDING)) if number)
    return '<p class="calls">%s</p>\n<div class="bar" role="img" aria-label="%s">%s</div>' % (
        text, text, pieces)


def _toolbar(report: Report) -> str:
    kinds = [k for k in (CHANGE, FINDING, ERROR) if report.count(k)]
    chips = ''.join('<button type="button" class="chip %s" data-kind="%s" aria-pressed="true">%s '
                    '<b>%d</b></button>' % (k, k, _LABEL[k], report.count(k)) for k in kinds)
    options = ''.join('<option value="%s">%s: %s</option>' % (r.code, r.code, clean(r.title))
                      for r in report.rules)
    return '''<nav id="toolbar" aria-label="Search and filter">
<input id="search" type="search" placeholder="Search files, rules, messages  ( / )" aria-label="Search" \
autocomplete="off" spellcheck="false">
<select id="rule" aria-label="Rule"><option value="">all rules</option>%s</select>
%s
<button type="button" id="toggle">Open all</button>
<output id="shown" aria-live="polite"></output>
<span class="keys"><kbd>/</kbd> search <kbd>j</kbd> <kbd>k</kbd> next, previous <kbd>Enter</kbd> open \
<kbd>Esc</kbd> clear</span>
</nav>''' % (options, chips)


def _rules(report: Report) -> str:
    made = ['<section id="rules"><h2>By rule</h2>']
    for rule in report.rules:
        places = [(number, file, d) for number, file in enumerate(report.files)
                  for d in file.result.diagnostics if d.code == rule.code]
        made.append('<details class="item rule"><summary><code class="code">%s</code> <span class="title">%s'
                    '</span> %s</summary>' % (rule.code, clean(rule.title), _rule_badges(rule)))
        made.append('<details class="explanation"><summary>What it does, and why</summary>\n%s\n'
                    '</details>' % as_html(rule.doc))
        made.append('<ul class="said">')
        made += ['<li %s><a href="#file-%d">%s</a> <span class="message">%s</span></li>' % (
            _data(file, d), number, clean(file.name + _colon(d)), _message(d)) for number, file, d in places]
        made.append('</ul></details>')
    return '\n'.join(made + ['</section>'])


def _rule_badges(rule: Explanation) -> str:
    return _badges([(CHANGE, rule.rewrites), (FINDING, rule.findings), (ERROR, rule.errors)])


def _badges(counts: Iterable[Tuple[str, int]]) -> str:
    return ''.join('<span class="badge %s">%d %s</span>' % (
        kind, number, 'need you' if kind == FINDING and number > 1 else _LABEL[kind])
        for kind, number in counts if number)


def _files(report: Report) -> str:
    made = ['<section id="files"><h2>By file</h2>']
    left_bytes = _MOST_DIFF_BYTES
    for number, file in enumerate(report.files):
        if file.result.diagnostics:
            made += _file_head(number, file)
            difference, left_bytes = _difference(file, left_bytes)
            made += [difference, '</details>']
    quiet = sum(1 for f in report.files if not f.result.diagnostics)
    if quiet:
        made.append('<p class="quiet">%s: nothing to do.</p>' % count(quiet, 'other file'))
    return '\n'.join(made + ['</section>'])


def _file_head(number: int, file: ReportFile) -> Iterator[str]:
    said = file.result.diagnostics
    badges = _badges((k, sum(1 for d in said if d.kind == k)) for k in (CHANGE, FINDING, ERROR))
    yield '<details class="item file" id="file-%d"><summary><span class="title">%s</span> %s</summary>' % (
        number, clean(file.name), badges)
    yield '<ul class="said">'
    for d in said:
        yield '<li %s><span class="place">%s</span> <code class="code">%s</code> <span class="message">%s' \
              '</span></li>' % (_data(file, d), clean(place(d)), d.code, _message(d))
    yield '</ul>'


def _difference(file: ReportFile, left_bytes: int) -> Tuple[str, int]:
    new = file.new_text
    if new is None:
        return '', left_bytes
    if left_bytes <= 0:
        return '<p class="quiet">The page is large enough; the command prints this file\'s diff.</p>', 0
    made = table(file.text.lines, new.lines)
    return '<div class="scroll" tabindex="0" role="group" aria-label="Changes">%s</div>' % made, \
        left_bytes - len(made)


def _data(file: ReportFile, diagnostic: Diagnostic) -> str:
    return 'class="%s" data-kind="%s" data-rule="%s" data-path="%s"' % (
        diagnostic.kind, diagnostic.kind, diagnostic.code, clean(file.name))


def _colon(diagnostic: Diagnostic) -> str:
    where = place(diagnostic)
    return ':' + where if where else ''


def _message(diagnostic: Diagnostic) -> str:
    return clean(diagnostic.message)
