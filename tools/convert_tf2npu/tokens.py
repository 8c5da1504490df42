"""The tokens of a Python source, for finding its syntax tree in its text.

`tokenize` reports what depends on the version of Python (f-strings), counts
characters where syntax trees count bytes, and lists much that no node consists
of; `Tokens` is the same for every version and holds nothing but what matters.
"""
from __future__ import annotations

import re
import tokenize
from typing import List, Tuple

Position = Tuple[int, int]

# Stands for every string literal: the text of a literal never matters.
STRING = '"'
OPENING = frozenset('([{')
_CLOSING = frozenset(')]}')
_IGNORED = frozenset({tokenize.NL, tokenize.COMMENT, tokenize.INDENT, tokenize.DEDENT})
# Python 3.12+ splits f-strings into many tokens; older ones have no such types.
_FSTRING_START = getattr(tokenize, 'FSTRING_START', None)
_FSTRING_END = getattr(tokenize, 'FSTRING_END', None)


class Tokens:
    """The significant tokens of a source text, as parallel lists."""

    def __init__(self, text: str) -> None:
        # Not splitlines(): form feeds and the like do not end a line of Python.
        self._lines = re.split('\r\n?|\n', text)
        self._ascii = text.isascii()
        self._line, self._column, self._byte = 1, 0, 0
        self.strings: List[str] = []
        self.starts: List[Position] = []
        self.ends: List[Position] = []
        self._read()
        self.match = self._match_brackets()

    def _read(self) -> None:
        source = iter([line + '\n' for line in self._lines])
        fstring_depth = 0
        previous = tokenize.ENCODING
        for kind, string, start, end, _ in tokenize.generate_tokens(lambda: next(source, '')):
            if kind in _IGNORED:
                continue
            if fstring_depth:
                fstring_depth += (kind == _FSTRING_START) - (kind == _FSTRING_END)
                if not fstring_depth:
                    self.ends[-1] = self._position(end)
                continue
            begin = self._position(start)
            # The tokenizer written in Python does not know some rare characters
            # of identifiers; nothing else is an ERRORTOKEN in legal source.
            if (tokenize.ERRORTOKEN in (previous, kind)
                    and previous in (tokenize.ERRORTOKEN, tokenize.NAME)
                    and kind in (tokenize.ERRORTOKEN, tokenize.NAME, tokenize.NUMBER)
                    and begin == self.ends[-1]):
                previous = tokenize.ERRORTOKEN
                self.ends[-1] = self._position(end)
                continue
            previous = kind
            fstring_depth = int(kind == _FSTRING_START)
            if fstring_depth or kind == tokenize.STRING:
                string = STRING
            elif kind == tokenize.NEWLINE:
                string = '\n'
            self.strings.append(string)
            self.starts.append(begin)
            self.ends.append(self._position(end))

    def _position(self, position: Position) -> Position:
        """Turn characters into bytes; the positions come in ascending order."""
        if self._ascii:
            return position
        line, column = position
        if line != self._line:
            self._line, self._column, self._byte = line, 0, 0
        # The end of the file may be one line behind the last one.
        for text in self._lines[line - 1:line]:
            self._byte += len(text[self._column:column].encode('utf-8'))
        self._column = column
        return line, self._byte

    def _match_brackets(self) -> List[int]:
        """For each bracket the index of its partner, -1 for other tokens."""
        match = [-1] * len(self.strings)
        opened: List[int] = []
        for index, string in enumerate(self.strings):
            if string in OPENING:
                opened.append(index)
            elif string in _CLOSING:
                match[index] = opened.pop()
                match[match[index]] = index
        return match
