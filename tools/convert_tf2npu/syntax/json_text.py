"""The text of a JSON file: where its values stand, and the strings that hold lines of code."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from typing import Iterator, Sequence, Tuple

_BLANK = re.compile(r"[ \t\r\n]*")
_UNIT = re.compile(r"\\u[dD][89abAB]..\\u[dD][c-fC-F]..|\\u....|\\.|.", re.DOTALL)
Span = Tuple[int, int]


def spans_of_members(text: str, offset: int) -> Iterator[tuple[str, Span]]:
    """Yield the key (empty in an array) and the span of each value of the JSON object or array at an offset."""
    decode = json.JSONDecoder().raw_decode
    blank = _BLANK.match
    offset = blank(text, offset).end()  # type: ignore[union-attr]
    is_object = text[offset] == "{"
    offset = blank(text, offset + 1).end()  # type: ignore[union-attr]
    while text[offset] not in "]}":
        key = ""
        if is_object:
            key, offset = decode(text, offset)
            colon = blank(text, offset).end()  # type: ignore[union-attr]
            offset = blank(text, colon + 1).end()  # type: ignore[union-attr]
        _, end = decode(text, offset)
        yield key, (offset, end)
        offset = blank(text, end).end()  # type: ignore[union-attr]
        if text[offset] == ",":
            offset = blank(text, offset + 1).end()  # type: ignore[union-attr]


class LineStrings:
    """The JSON strings that hold the lines of a cell.

    Args:
        text: the notebook.
        spans: the place of each string, with its quotes.
    """

    def __init__(self, text: str, spans: Sequence[Span]) -> None:
        self._text = text
        self._spans = spans
        self._units = [
            [start + 1 + m.start() for m in _UNIT.finditer(text[start + 1 : end - 1])] + [end - 1]
            for start, end in spans
        ]
        self._starts = [0]
        for units in self._units:
            self._starts.append(self._starts[-1] + len(units) - 1)
        self._break = self._text_between_lines()

    def _text_between_lines(self) -> str:
        """Return the text between the strings of two lines; empty if all lines are in one string."""
        first = self._spans[0][0]
        if len(self._spans) > 1:
            return '"' + self._text[self._spans[0][1] : self._spans[1][0]] + '"'
        before = len(self._text[:first].rstrip(" \t\r\n"))
        if self._text[before - 1] != "[":
            return ""
        return '",' + (self._text[before:first] or " ") + '"'

    def replacement(self, start: int, end: int, new: str) -> tuple[int, int, str]:
        """Return the span in the notebook and the new text for a replacement in the cell."""
        (string, first), (_, last) = self._string_and_offset(start), self._string_and_offset(end)
        units = self._units[string]
        lines = new.split("\n")
        written = [json.dumps(line, ensure_ascii=self._text.isascii())[1:-1] for line in lines]
        joint = "\\n" + self._break
        result = joint.join(written)
        if self._break and new.endswith("\n") and self._text[last] == '"':
            result = result[: -len(self._break)]  # the string ends here anyway
        if self._break and new and first == units[-1] and self._text[units[0] : first].endswith("\\n"):
            result = self._break + result
        return first, last, result

    def _string_and_offset(self, offset: int) -> tuple[int, int]:
        """Return the number of the string and the offset in the notebook for an offset in the cell."""
        index = min(bisect_right(self._starts, offset) - 1, len(self._spans) - 1)
        return index, self._units[index][offset - self._starts[index]]
