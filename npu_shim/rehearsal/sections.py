"""Sections of a report: titles, sentences and tables, as text and as HTML."""

from __future__ import annotations

from typing import Iterable, Iterator, NamedTuple, Sequence

from npu_shim.rehearsal.web import escape_html, table_html


class Section(NamedTuple):
    """A part of a page: a title, sentences, and a table with heads, rows, and the columns that are numbers."""

    title: str
    lines: Sequence[str] = ()
    heads: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    numbers: Sequence[int] = ()


def to_lines(sections: Iterable[Section], most: int | None = None) -> Iterator[str]:
    """Yield the lines of sections, and of each table at most some rows."""
    for section in sections:
        yield from ("", section.title if section.title[0].isdigit() else f"{section.title}:", *section.lines)
        rows = section.rows[:most]
        yield from table_lines([section.heads, *rows], "  ") if rows else ()
        if len(rows) < len(section.rows):
            yield f"  ... and {len(section.rows) - len(rows)} more: see -r DIR"


def to_html(sections: Iterable[Section]) -> Iterator[str]:
    """Yield sections as HTML."""
    for section in sections:
        yield f"<h2>{escape_html(section.title[0].upper() + section.title[1:])}</h2>"
        yield from (f"<p>{escape_html(line.strip())}</p>" for line in section.lines)
        yield table_html(section.title, section.heads, section.rows, section.numbers) if section.rows else ""


def table_lines(rows: Sequence[Sequence[str]], indent: str = "") -> Iterator[str]:
    """Yield a table as lines."""
    widths = [max(map(len, column)) for column in zip(*rows)]
    yield from (indent + "  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)


def first_names_text(names: Sequence[str], most: int = 3, count: int | None = None) -> str:
    """Return the first names, and the number of others among `count`, by default all that are given."""
    others = (len(names) if count is None else count) - len(names[:most])
    return ", ".join(names[:most]) + (f" and {others} more" if others else "")
