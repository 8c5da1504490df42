"""Parts of a text, in order, so that what lies in a part is found without a look at all of them."""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import Iterable


class Spans:
    """The parts of a text (start, end) that edits replace. They do not overlap; a part of no length is an insertion."""

    def __init__(self, spans: Iterable[tuple[int, int]] = ()) -> None:
        self._spans = sorted(spans)

    def __contains__(self, span: tuple[int, int]) -> bool:
        at = bisect_left(self._spans, span)
        return self._spans[at : at + 1] == [span]

    def add(self, start: int, end: int) -> None:
        insort(self._spans, (start, end))

    def copy(self) -> Spans:
        return Spans(self._spans)

    def overlaps(self, start: int, end: int, counts_insertions: bool = True) -> bool:
        """Return True if a part has text between two places, or is an insertion between them.

        Args:
            start, end: the places; equal ones are in a part if it has text on both sides.
            counts_insertions: False to count only parts with text.
        """
        for at in range(bisect_left(self._spans, (end,)) - 1, -1, -1):
            first, last = self._spans[at]
            if start < last and (counts_insertions or first < last):
                return True
            if last < start:
                return False
        return False
