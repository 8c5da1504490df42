"""The page of a profile as HTML, with a timeline of a typical step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Iterator

from npu_shim.profiles.reports import text
from npu_shim.rehearsal import sections
from npu_shim.rehearsal.web import clean, page

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
    yield from sections.to_html(text.sections(result))


def timeline(bars: list[JsonObject]) -> str:
    """Return what is busy in a step as inline SVG, a line for each unit."""
    names = list(dict.fromkeys(bar["what"] for bar in bars))
    until = max(bar["until"] for bar in bars) or 1.0
    height, scale = len(names) * _HEIGHT + 24, (_WIDTH - _LEFT - 10) / until
    labels = [(_LEFT - 8, line * _HEIGHT + 17, "end", name) for line, name in enumerate(names)]
    for share, anchor in ((0, "start"), (0.5, "middle"), (1, "end")):
        labels.append((int(_LEFT + share * until * scale), height - 6, anchor, f"{share * until:.3f} ms"))
    parts = [f'<svg viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="busy units in {until:.3f} ms">']
    parts += [
        f'<text x="{x}" y="{y}" text-anchor="{anchor}" font-size="12" fill="currentColor">{clean(label)}</text>'
        for x, y, anchor, label in labels
    ]
    for bar in bars:
        line, took = names.index(bar["what"]), bar["until"] - bar["from"]
        more = f" and {bar['runs'] - 1} more" if bar["runs"] > 1 else ""
        parts.append(
            f'<rect x="{_LEFT + bar["from"] * scale:.2f}" y="{line * _HEIGHT + 3}" height="{_HEIGHT - 6}" '
            f'width="{max(took * scale, 0.3):.2f}" fill="{_COLOURS[line % len(_COLOURS)]}">'
            f"<title>{clean(bar['op'] + more)}: {took:.3f} ms</title></rect>"
        )
    return "".join(parts) + "</svg>"
