"""Edits of a text and their order."""

from __future__ import annotations

from typing import Iterable, NamedTuple


class Edit(NamedTuple):
    """A replacement of ``text[start:end]`` by ``new``.

    Insertions at one position have an order. Closing ones come first, the innermost before the outermost. Whole lines
    follow, the further indented ones first, because they belong to a block that ends there. Opening ones come last, the
    outermost first.

    Attributes:
        start: the offset of the first character that is replaced.
        end: the offset after the last one.
        new: the new text.
        closing: True for an insertion that closes what another one opens.
        first: True for an argument of a call without arguments, where a second one needs a comma before it.
    """

    start: int
    end: int
    new: str
    closing: bool = False
    first: bool = False


def sort_edits(edits: Iterable[Edit]) -> list[Edit]:
    """Return edits by position; see :class:`Edit` for insertions at one position."""

    def sort_key(item: tuple[int, Edit]) -> tuple[int, int, int, int]:
        index, edit = item
        if edit.closing:
            return edit.start, 0, 0, -index
        if edit.start == edit.end and (edit.new.endswith(("\n", "\r")) or edit.new.startswith(("\n", "\r"))):
            line = edit.new.lstrip("\r\n")
            return edit.start, 1, len(line.lstrip()) - len(line), index
        return edit.start, 2 if edit.start == edit.end else 3, 0, index

    in_order = [edit for _, edit in sorted(enumerate(edits), key=sort_key)]
    return [
        edit._replace(new=", " + edit.new)
        if edit.first and index and in_order[index - 1][:1] == edit[:1] and in_order[index - 1].first
        else edit
        for index, edit in enumerate(in_order)
    ]
