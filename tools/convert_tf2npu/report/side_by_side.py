"""A changed file before and after, as rows of an HTML table."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from typing import Iterator, Optional, Sequence, Tuple

from .html.frame import escape_html
from .html.parts import LONGEST

_CONTEXT = 3

Row = Tuple[str, Optional[int], str, Optional[int], str]


def comparison_table(old: list[str], new: list[str], label: str = "Before and after") -> str:
    """Return a table with the changed lines of a file and the lines around them."""
    rows = []
    for kind, old_line, left, new_line, right in _comparison_rows(old, new):
        if kind == "gap":
            rows.append('<tr class="gap"><td colspan="4">&#8943;</td></tr>')
        else:
            rows.append(
                '<tr class="{}"><td class="no">{}</td><td class="old">{}</td>'
                '<td class="no">{}</td><td class="new">{}</td></tr>'.format(
                    kind, old_line or "", left, new_line or "", right
                )
            )
    return (
        '<table class="diff" aria-label="{}"><colgroup><col class="no"><col><col class="no"><col>'
        "</colgroup><tbody>\n{}\n</tbody></table>"
    ).format(label, "\n".join(rows))


def _comparison_rows(old: list[str], new: list[str]) -> Iterator[Row]:
    matcher = _Lines(old, new)
    for number, group in enumerate(matcher.get_grouped_opcodes(_CONTEXT)):
        if number or group[0][1]:
            yield "gap", None, "", None, ""
        for kind, first, last, new_first, new_last in group:
            for index in range(max(last - first, new_last - new_first)):
                left, right = first + index, new_first + index
                has_left, has_right = left < last, right < new_last
                marked = (
                    _mark_differences(old[left], new[right])
                    if kind == "replace" and has_left and has_right
                    else (
                        _shortened_html(old[left]) if has_left else "",
                        _shortened_html(new[right]) if has_right else "",
                    )
                )
                row_kind = kind if kind == "equal" or has_left and has_right else "delete" if has_left else "insert"
                yield (row_kind, left + 1 if has_left else None, marked[0], right + 1 if has_right else None, marked[1])


class _Lines(difflib.SequenceMatcher):
    """The differences of two texts by lines, in time that grows with their length.

    Lines that each text has once, in the same order, divide them. Between two of these, few lines are left to compare.
    """

    def __init__(self, old: list[str], new: list[str]) -> None:
        super().__init__(None, old, new)
        self._old, self._new = old, new

    def get_matching_blocks(self) -> list[difflib.Match]:
        old, new = self._old, self._new
        ones, new_ones = _unique_lines(old), _unique_lines(new)
        matches = [difflib.Match(0, 0, 0)]
        left = right = 0
        for end, new_end in [
            *((at, new_ones[line]) for line, at in ones.items() if line in new_ones),
            (len(old), len(new)),
        ]:
            if new_end < right:
                continue
            between = difflib.SequenceMatcher(None, old[left:end], new[right:new_end]) if left < end else None
            blocks = [(left + a, right + b, size) for a, b, size in (between.get_matching_blocks() if between else ())]
            for a, b, size in [*blocks, (end, new_end, 1 if end < len(old) else 0)]:
                last = matches[-1]
                if (last.a + last.size, last.b + last.size) == (a, b):
                    matches[-1] = last._replace(size=last.size + size)
                elif size:
                    matches.append(difflib.Match(a, b, size))
            left, right = end + 1, new_end + 1
        return [*(match for match in matches if match.size), difflib.Match(len(old), len(new), 0)]


def _unique_lines(lines: Sequence[str]) -> dict[str, int]:
    """Return the lines that a text has once, with their places."""
    count = Counter(lines)
    return {line: at for at, line in enumerate(lines) if count[line] == 1}


def _shortened_html(line: str) -> str:
    return escape_html(line if len(line) <= LONGEST else line[:LONGEST] + " \u2026")


def _mark_differences(old: str, new: str) -> tuple[str, str]:
    """Return two lines with their differences marked."""
    if max(len(old), len(new)) > LONGEST:
        return _shortened_html(old), _shortened_html(new)
    words = re.compile(r"\w+|\s+|.")
    left, right = words.findall(old), words.findall(new)
    sides: tuple[list[str], list[str]] = ([], [])
    for kind, a, b, c, d in difflib.SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        for side, piece, tag in ((sides[0], "".join(left[a:b]), "del"), (sides[1], "".join(right[c:d]), "ins")):
            if piece:
                side.append(escape_html(piece) if kind == "equal" else f"<{tag}>{escape_html(piece)}</{tag}>")
    return "".join(sides[0]), "".join(sides[1])
