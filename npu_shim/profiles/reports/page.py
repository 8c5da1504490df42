"""The page of a profile as HTML, with a timeline of a typical step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Iterator

from npu_shim.profiles.reports import text
from npu_shim.rehearsal import sections
from npu_shim.rehearsal.web import Html, clean, page, section

if TYPE_CHECKING:
    from npu_shim._tensorflow.types import JsonObject

_WIDTH = 760


def to_html(result: JsonObject) -> str:
    """Return the page."""
    footer = f"{result['tool']} {result['tool_version']}"
    return page("Profile", "Where the time of a step goes", result["folder"], "", "\n".join(_body(result)), footer)


def _body(result: JsonObject) -> Iterator[str]:
    first, *more = text.answers(result)
    yield f'<p class="verdict {"differ" if result["findings"] else "agree"}">{clean(first)}</p>'
    yield from (f"<p>{clean(line)}</p>" for line in more)
    if result["timeline"]:
        yield timeline(result["timeline"])
    yield from sections.to_html(text.sections(result))


def timeline(bars: list[JsonObject]) -> str:
    """Return what is busy in a step as a table with inline SVG, a row for each unit."""
    until = max(bar["until"] for bar in bars)
    view = f'viewBox="0 0 {until} 1" preserveAspectRatio="none" width="{_WIDTH}" height="20"'
    drawn: dict[str, str] = {}
    for bar in bars:
        took = bar["until"] - bar["from"]
        more = f" and {bar['runs'] - 1} more" if bar["runs"] > 1 else ""
        drawn[bar["what"]] = drawn.get(bar["what"], "") + (
            f'<rect x="{bar["from"]}" width="{max(took, until / _WIDTH / 3)}" height="1" fill="#1565c0">'
            f"<title>{clean(bar['op'] + more)}: {took:.3f} ms</title></rect>"
        )
    rows = [
        (name, Html(f'<svg {view} role="img" aria-label="{clean(name)}">{bar}</svg>')) for name, bar in drawn.items()
    ]
    return section("A typical step", ("", f"0 to {until:.3f} ms"), rows)
