"""HTML pages in the style of the migration report: no network, light and dark."""

from __future__ import annotations

from typing import Iterable, Iterator, Sequence

from npu_shim.import_hook import tool


class Html(str):
    """A text that is HTML already."""


def page_html(
    title: str, heading: str, about: Sequence[str], main: Iterable[str], footer: str, script: str = ""
) -> str:
    """Return a page.

    Args:
        title: of the window.
        heading: of the page.
        about: the lines below it: script and arguments, and others.
        main: HTML, in parts.
        footer: the last line.
        script: JavaScript that runs at the end; empty for a page without.
    """
    tool.make_importable()
    from convert_tf2npu.api import html_page

    return html_page(title, heading, about, main, footer, script)


def escape_html(text: str) -> str:
    """Return a text escaped for HTML."""
    tool.make_importable()
    from convert_tf2npu.api import html_text

    return html_text(text)


def verdict_html(state: str, first: str, *more: str) -> Iterator[str]:
    """Yield the sentences that a page begins with.

    Args:
        state: ``agree`` or ``differ``, or another one that the style sheet colours.
        first: the answer.
        more: further sentences.
    """
    yield f'<p class="verdict {state}">{escape_html(first)}</p>'
    yield from (f"<p>{escape_html(line)}</p>" for line in more)


def table_html(title: str, heads: Sequence[str], rows: Sequence[Sequence[str]], numbers: Sequence[int] = ()) -> str:
    """Return a table whose first column names the rows.

    Args:
        title: for readers of screens.
        heads: of the columns; none for a table of two columns without them.
        rows: the texts of the cells.
        numbers: the columns that are aligned to the right.
    """
    marks = [' class="n"' if k in numbers else "" for k in range(max(map(len, [heads, *rows])))]
    top = "".join(f'<th scope="col"{mark}>{escape_html(head)}</th>' for mark, head in zip(marks, heads))
    body = "\n".join("<tr>" + "".join(map(_cell_html, range(len(row)), marks, row)) + "</tr>" for row in rows)
    return (
        f'<div class="scroll" tabindex="0" role="group" aria-label="{escape_html(title)}"><table class="plain">'
        f"{f'<thead><tr>{top}</tr></thead>' if heads else ''}<tbody>\n{body}\n</tbody></table></div>"
    )


def section_html(title: str, heads: Sequence[str], rows: Sequence[Sequence[str]], numbers: Sequence[int] = ()) -> str:
    """Return a heading and a table, nothing without rows."""
    if not rows:
        return ""
    return f"<h2>{escape_html(title)}</h2>\n{table_html(title, heads, rows, numbers)}"


def _cell_html(column: int, mark: str, text: str) -> str:
    shown = text if isinstance(text, Html) else escape_html(text)
    return f"<td{mark}>{shown}</td>" if column else f'<th scope="row"{mark}>{shown}</th>'
