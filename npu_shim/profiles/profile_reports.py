"""The page of a profile as text, and as HTML with a timeline of a typical step; that of a comparison as text."""

from __future__ import annotations

from typing import Callable, Iterator, Sequence

import npu_shim
from npu_shim._tensorflow.types import Value
from npu_shim.distributed.ranktable.model import count_text
from npu_shim.profiles.pages import Bar, Bottleneck, ProfileChanges, ProfilePage
from npu_shim.profiles.steps import WHOLE
from npu_shim.rehearsal.sections import Section, to_html as sections_to_html, to_lines
from npu_shim.rehearsal.web import Html, escape_html, page_html, section_html, verdict_html

_MOST = {"devices": 16, "problems": 12}
_WIDTH = 60  # of a name
_BAR = 760  # width of a timeline


def percent_text(value: float) -> str:
    """Return a share as text."""
    return f"{100 * value:.1f} %"


_FORMATS: dict[str, Callable[[Value], str]] = {  # key of a number -> its text; others are milliseconds
    **dict.fromkeys(("share", "matrix", "vector", "memory"), percent_text),
    **dict.fromkeys(("calls", "predicted_calls"), "{:.4g}".format),
    "steps": str,
    "change": lambda value: f"{100 * value:+.1f} %",
    "p": "{:.2g}".format,
}
_HEADS = {"name": "op", "waits": "of it", "mean_ms": "step ms"}  # the head of another key is the key
_FIGURES = ("calls", "ms", "share", "matrix", "vector", "memory", "bound_ms")
_EVIDENCE = ("what", "type", "line", "calls", "ms", "why")
_CHANGES = ("what", "old_ms", "new_ms", "change", "p", "verdict")
_PAGE = (  # title, key, keys of the columns
    ("the step waits for", "waits", ("what", "ms", "share")),
    ("phases", "phases", ("phase", "ms", "share", "waits")),
    (
        "against the prediction",
        "prediction",
        ("what", "ms", "predicted_ms", "low_ms", "high_ms", "calls", "predicted_calls"),
    ),
    ("devices", "devices", ("device", "steps", "mean_ms", "busy_ms", "communication_ms")),
    ("ops that cost most", "ops", ("name", "type", "line", *_FIGURES)),
    ("types that cost most", "types", ("type", "unit", *_FIGURES)),
)
_COMPARISON = (("waits", "waits", _CHANGES), ("phases", "phases", _CHANGES), ("types of ops", "types", _CHANGES))


def to_text(result: ProfilePage | ProfileChanges) -> str:
    """Return the page of a profile, or of a comparison, as text that ends with a line feed."""
    return "\n".join([*answer_sentences(result), *to_lines(report_sections(result))]) + "\n"


def answer_sentences(result: ProfilePage | ProfileChanges) -> list[str]:
    """Return the sentences that a page begins with."""
    if isinstance(result, ProfileChanges):
        change = result.step
        number_of = f"({change.new_steps} and {change.old_steps} steps)"
        return [f"a step takes {change.new_ms:.3f} ms, before {change.old_ms:.3f} ms: {change.verdict} {number_of}"]
    step = result.step
    if not step:
        return ["no runs of ops: only sums by type can be read. Export op_summary with msprof --export=on"]
    takes = f"takes {step.mean_ms:.3f} ms on device {result.device}"
    if step.source == WHOLE:
        first = f"the profile {takes}: no step trace, so it counts as one step"
    else:
        span = f"median {step.median_ms:.3f}, {step.shortest_ms:.3f} to {step.longest_ms:.3f}"
        first = f"a step {takes}: {span}, {count_text(step.number, 'step')} by {step.source}"
        first += f", without {count_text(step.left_out, 'step')} before them" if step.left_out else ""
    findings = result.findings
    return [first, f"first bottleneck: {_cost_text(findings[0])}" if findings else "no bottleneck costs 3 % of it"]


def _cost_text(finding: Bottleneck, colon: str = ",") -> str:
    return f"{finding.title}{colon} {finding.ms:.3f} ms, {percent_text(finding.share)} of the step"


def report_sections(result: ProfilePage | ProfileChanges) -> Iterator[Section]:
    """Yield the sections of a page."""
    for title, key, keys in _PAGE if isinstance(result, ProfilePage) else _COMPARISON:
        rows = getattr(result, key)
        if len(rows) > (key == "devices"):
            yield _table_section(_title_of_first(title, key, rows), (), keys, rows[: _MOST.get(key)])
    for place, finding in enumerate(result.findings if isinstance(result, ProfilePage) else (), 1):
        faster = f"; a fix makes the step at most {finding.gain:.2f} times as fast" if finding.gain else ""
        title = f"{place}. {_cost_text(finding, ':')} [{finding.id}]{faster}"
        yield _table_section(title, [f"   {finding.fix} ({finding.see})"], _EVIDENCE, finding.evidence)
    problems = [f"  {unread.file}: {unread.problem}." for unread in result.problems]
    if problems:
        yield Section(_title_of_first("files with problems", "problems", problems), problems[: _MOST["problems"]])


def _title_of_first(title: str, key: str, rows: Sequence[object]) -> str:
    number, most = len(rows), _MOST.get(key, len(rows))
    return f"{title}, the first {most} of {number}" if number > most else title


def _table_section(title: str, lines: Sequence[str], keys: Sequence[str], rows: Sequence[object]) -> Section:
    heads = [_HEADS.get(key, key.replace("_", " ")) for key in keys]
    cells = [vars(row) for row in rows]
    numbers = [place for place, key in enumerate(keys) if not any(isinstance(row[key], (str, dict)) for row in cells)]
    return Section(title, lines, heads, [[_cell_text(key, row[key]) for key in keys] for row in cells], numbers)


def _cell_text(key: str, value: Value) -> str:
    if value is None:
        return "new" if key == "change" else ""
    if isinstance(value, dict):
        value = ", ".join(f"{name} {ms:.3f}" for name, ms in value.items())
    elif not isinstance(value, str):
        return _FORMATS.get(key, "{:.3f}".format)(value)
    return value if len(value) <= _WIDTH or key not in ("what", "why", "name") else "..." + value[3 - _WIDTH :]


def to_html(result: ProfilePage) -> str:
    """Return the page."""
    footer = f"npu-shim profile {npu_shim.__version__}"
    return page_html("Profile", "Where the time of a step goes", [result.folder], _html_body(result), footer)


def _html_body(result: ProfilePage) -> Iterator[str]:
    yield from verdict_html("differ" if result.findings else "agree", *answer_sentences(result))
    if result.timeline:
        yield timeline_html(result.timeline)
    yield from sections_to_html(report_sections(result))


def timeline_html(bars: Sequence[Bar]) -> str:
    """Return what is busy in a step as a table with inline SVG, a row for each unit."""
    until = max(bar.until for bar in bars)
    view = f'viewBox="0 0 {until} 1" preserveAspectRatio="none" width="{_BAR}" height="20" role="img"'
    drawn: dict[str, str] = {}
    for bar in bars:
        took = bar.until - bar.start
        more = f" and {bar.runs - 1} more" if bar.runs > 1 else ""
        box = f'<rect x="{bar.start}" width="{max(took, until / _BAR / 3)}" height="1" fill="#1565c0">'
        title = f"<title>{escape_html(bar.op + more)}: {took:.3f} ms</title>"
        drawn[bar.what] = f"{drawn.get(bar.what, '')}{box}{title}</rect>"
    rows = [(name, Html(f'<svg {view} aria-label="{escape_html(name)}">{bar}</svg>')) for name, bar in drawn.items()]
    return section_html("A typical step", ("unit", f"0 to {until:.3f} ms"), rows)
