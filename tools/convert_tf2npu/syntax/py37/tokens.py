"""The tokens of a Python source, for finding its syntax tree in its text.

The source is known to be Python, for it has a tree, and Python 3.7, the only one that does not say where nodes end: one
regular expression that only has to tell tokens apart does so several times faster than `tokenize`, which also finds
what is wrong. Columns are counted in bytes, as in syntax trees, and what no node consists of is left out.
"""

from __future__ import annotations

import re
from typing import Tuple

Position = Tuple[int, int]

# Stands for every string literal: the text of a literal never matters.
STRING = '"'
OPENING = frozenset("([{")
_CLOSING = frozenset(")]}")
_END = ""  # stands behind the last token
# What is quoted goes from one quote or backslash to the next, and not from character to character.
_TOKEN = re.compile(
    r"""[ \t\f]*(?:
    (?P<newline> \r\n|\r|\n)
    | (?P<joined> \\(?:\r\n|\r|\n))
    | (?P<comment> \#[^\r\n]*)
    | (?P<string> [bBfFrRuU]{0,2} (?:
        "{3} [^"\\]* (?:(?:\\.|"(?!"")) [^"\\]*)* "{3} | '{3} [^'\\]* (?:(?:\\.|'(?!'')) [^'\\]*)* '{3}
        | " [^"\\]* (?:\\. [^"\\]*)* " | ' [^'\\]* (?:\\. [^'\\]*)* '))
    | (?P<number> 0[xX][\da-fA-F_]+ | 0[oO][0-7_]+ | 0[bB][01_]+
        | (?:\d[\d_]*\.?[\d_]*|\.\d[\d_]*) (?:[eE][+-]?\d[\d_]*)? [jJ]?)
    | (?P<operator> [()\[\]{},;~] | \.\.\. | -> | != | (?:\*\*|//|>>|<<|[-+*/%@&|^=<>:])=? | \.)
    | (?P<name> [^\s()\[\]{},:;.~\-!*/%@&|^=<>+"'\#\\]+))
""",
    re.DOTALL | re.VERBOSE,
)
_LINE_END = re.compile(r"\r\n|\r|\n")


class Tokens:
    """The significant tokens of a source text, as parallel lists.

    Args:
        text: whole statements.
    """

    def __init__(self, text: str) -> None:
        self._text, self._ascii = text, text.isascii()
        self._line, self._first = 1, 0  # the offset at which the line begins
        self.strings: list[str] = []
        self.starts: list[Position] = []
        self.ends: list[Position] = []
        self._tokenize()
        self.match = self._match_brackets()

    def _tokenize(self) -> None:
        text, strings = self._text, self.strings
        depth = 0
        for match in _TOKEN.finditer(text):
            kind = match.lastgroup or ""
            if kind == "comment":
                continue
            start, end = match.span(kind)
            if kind == "newline" or kind == "joined":
                if kind == "newline" and not depth:
                    self._add_line_end(start)
                self._line, self._first = self._line + 1, end
                continue
            string = STRING if kind == "string" else text[start:end]
            strings.append(string)
            self.starts.append((self._line, start - self._first if self._ascii else self._byte_column(start)))
            if kind == "string":
                for line_end in _LINE_END.finditer(text, start, end):
                    self._line, self._first = self._line + 1, line_end.end()
            elif string in OPENING:
                depth += 1
            elif string in _CLOSING:
                depth -= 1
            self.ends.append((self._line, end - self._first if self._ascii else self._byte_column(end)))
        self._add_line_end(len(text))
        self._add_empty_token(_END, (self._line + 1, 0))

    def _add_line_end(self, offset: int) -> None:
        """Return a token for the end of a line that has others."""
        if self.strings and self.strings[-1] != "\n":
            self._add_empty_token("\n", (self._line, self._byte_column(offset)))

    def _add_empty_token(self, string: str, position: Position) -> None:
        self.strings.append(string)
        self.starts.append(position)
        self.ends.append(position)

    def _byte_column(self, offset: int) -> int:
        return len(self._text[self._first : offset].encode("utf-8"))

    def _match_brackets(self) -> list[int]:
        """Return the index of the partner of each bracket, -1 for other tokens."""
        match = [-1] * len(self.strings)
        opened: list[int] = []
        for index, string in enumerate(self.strings):
            if string in OPENING:
                opened.append(index)
            elif string in _CLOSING:
                match[index] = opened.pop()
                match[match[index]] = index
        return match
