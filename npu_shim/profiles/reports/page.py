"""The page of a profile as HTML, with a timeline of a typical step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Iterator

from npu_shim.profiles.reports import text
from npu_shim.rehearsal.web import clean, page, section, table

if TYPE_CHECKING:
    from npu_shim._tensorflow.types import JsonObject

_WIDTH, _LEFT, _HEIGHT = 960, 190, 26
_COLOURS = ("#1565c0", "#ef6c00", "#6a1b9a", "#2e7d32", "#c62828", "#00838f", "#757575")


def to_html(result: JsonObject) -> str:
    """Return the page."""
    footer = f"{result['tool']} {result['tool_version']}"
    return page("Profile", "Where the time of a step goes", result["folder"], "", "\n".join(_body(result)), footer)


def _body(result: JsonObject) -> Iterator[str]:
    first, *more = text.answers(result)
    yield f'<p class="verdict {"differ" if result["findings"] else "agree"}">{clean(first)}</p>'
    yield from (f"<p>{clean(line)}</p>" for line in more)
    if result["timeline"]:
        yield "<h2>A typical step</h2>\n" + timeline(result["timeline"])
    if result["waits"]:
        yield section("What the step waits for", text.WAIT_HEADS, text.wait_rows(result), (1, 2))
        yield section("Phases", text.PHASE_HEADS, text.phase_rows(result), (1, 2))
    for each in result["findings"]:
        yield f"<h2>{clean(each['title'])}</h2>"
        yield f"<p>{text.number(each['ms'])} ms, {text.percent(each['share'])} of the step{clean(text.gain(each))}.</p>"
        yield f"<p>{clean(each['fix'])} ({clean(each['see'])})</p>"
        yield table(each["title"], text.EVIDENCE_HEADS, text.evidence_rows(each), (3, 4))
    if len(result["devices"]) > 1:
        yield section("Devices", text.DEVICE_HEADS, text.device_rows(result), (1, 2, 3, 4))
    yield section("Ops that cost most", text.OP_HEADS, text.op_rows(result), tuple(range(3, 10)))
    yield section("Types that cost most", text.TYPE_HEADS, text.type_rows(result), tuple(range(2, 9)))
    if result["problems"]:
        rows = [[each["file"], each["problem"]] for each in result["problems"]]
        yield section("Files with problems", ["file", "problem"], rows)


def timeline(bars: list[JsonObject]) -> str:
    """Return what is busy in a step as inline SVG, a line for each unit."""
    names = list(dict.fromkeys(bar["what"] for bar in bars))
    until = max(bar["until"] for bar in bars) or 1.0
    height = len(names) * _HEIGHT + 24
    scale = (_WIDTH - _LEFT - 10) / until
    parts = [f'<svg viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="busy units in {until:.3f} ms">']
    for line, name in enumerate(names):
        parts.append(
            f'<text x="{_LEFT - 8}" y="{line * _HEIGHT + 17}" text-anchor="end" font-size="12" fill="currentColor">'
            f"{clean(name)}</text>"
        )
    for bar in bars:
        top, left = names.index(bar["what"]) * _HEIGHT + 3, _LEFT + bar["from"] * scale
        more = f" and {bar['runs'] - 1} more" if bar["runs"] > 1 else ""
        title = f"{bar['op']}{more}: {bar['until'] - bar['from']:.3f} ms"
        colour = _COLOURS[names.index(bar["what"]) % len(_COLOURS)]
        parts.append(
            f'<rect x="{left:.2f}" y="{top}" width="{max((bar["until"] - bar["from"]) * scale, 0.3):.2f}" '
            f'height="{_HEIGHT - 6}" fill="{colour}"><title>{clean(title)}</title></rect>'
        )
    for share, anchor in ((0, "start"), (0.5, "middle"), (1, "end")):
        parts.append(
            f'<text x="{_LEFT + share * until * scale:.0f}" y="{height - 6}" text-anchor="{anchor}" font-size="12" '
            f'fill="currentColor">{share * until:.3f} ms</text>'
        )
    return "".join(parts) + "</svg>"
