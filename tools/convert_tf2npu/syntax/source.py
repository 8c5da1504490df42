"""A Python file as bytes, text and tree, and byte-exact edits of it.

The text is decoded as Python decodes it (byte order mark, coding cookie), edited at the positions of tree nodes, and
encoded back. All bytes outside the edits stay the same.
"""

from __future__ import annotations

import ast
import re
import sys
import warnings
from bisect import bisect_right
from itertools import accumulate
from typing import Iterable

from ..files.message import Message
from .decoding import BOM, SourceError, decode_body, encoding_of
from .edits import Edit, sort_edits
from .py37.start_positions import starts_as_recorded

_LINE_END = re.compile(r"\r\n|\r|\n")
_JOINED = re.compile(r"\\(?:\r\n|\r|\n)\Z")
_BLANKS = re.compile(r"(?:[ \t\f]|\\(?:\r\n|\r|\n))*")
_INSIDE_BRACKETS = re.compile(r"(?<=[(\[{]) | (?=[)\]}])")
_STRING_OR_COMMENT = re.compile(
    r'"""(?:\\.|[^\\])*?"""|"(?:\\.|[^"\\])*"|' r"'''(?:\\.|[^\\])*?'''|'(?:\\.|[^'\\])*'|" r"#[^\r\n]*", re.DOTALL
)
_PYTHON2_HINT = re.compile(
    r"print|exec|backtick|leading zeros|invalid token|exception group|"
    r"multiple exception types|except|raise|<>"
)


class Source:
    """One Python file.

    Args:
        raw: the bytes of the file.

    Raises:
        SourceError: the bytes are not text in the declared encoding, or the text is not Python 3.
    """

    def __init__(self, raw: bytes) -> None:
        self.raw = raw
        self._bom = BOM if raw.startswith(BOM) else b""
        self.encoding = encoding_of(raw)
        self.text = decode_body(raw[len(self._bom) :], self.encoding)
        self._starts: list[int] | None = None
        self.tree = self._parse()
        self._has_ends = sys.version_info >= (3, 8)

    @property
    def _line_starts(self) -> list[int]:
        """The offset of each line, computed when it is first asked for: most files need none."""
        if self._starts is None:
            if "\r" in self.text:
                self._starts = [0] + [m.end() for m in _LINE_END.finditer(self.text)]
            else:  # the same, but faster
                self._starts = list(accumulate([0] + [len(line) + 1 for line in self.text.split("\n")[:-1]]))
        return self._starts

    def _parse(self) -> ast.Module:
        nul = self.text.find("\0")
        if nul >= 0:
            raise SourceError("it holds a NUL character", *self.line_col(nul))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # do not report invalid escapes
                tree = ast.parse(self.text)
        except SyntaxError as error:
            version = "{}.{}".format(*sys.version_info)
            message = Message("not Python {0}: {1}", version, error.msg)
            if _PYTHON2_HINT.search("{} {}".format(error.msg, error.text or "")):
                message = Message("not Python {0}: {1} (Python 2? convert it with 2to3 first)", version, error.msg)
            raise SourceError(message, error.lineno or 0, error.offset or 0)
        except (RecursionError, MemoryError):
            raise SourceError("its code is nested too deeply for the Python parser")
        except ValueError as error:
            raise SourceError(str(error))
        return tree

    def _ensure_end_position(self, node: ast.AST) -> None:
        """Make sure that a node has its end position, which Python 3.7 does not record.

        Raises:
            SourceError: nodes and text do not match.
        """
        if self._has_ends or hasattr(node, "end_lineno"):
            return
        from .py37.node_ends import add_ends  # with expressions that take long to compile

        try:
            add_ends(self.tree, self.text)
        except ValueError as error:
            raise SourceError(Message("its nodes cannot be placed: {0}", error))
        self._has_ends = True

    def is_position_reliable(self, node: ast.AST, string: ast.AST) -> bool:
        """Return True if the position of an expression inside an f-string is reliable.

        Before Python 3.12 the parser records correct positions of such expressions only in simple cases.

        Args:
            node: the expression.
            string: the f-string.
        """
        if sys.version_info >= (3, 12):
            return True
        try:
            parsed = ast.parse(f"({self.segment(node)})", mode="eval").body
        except (SyntaxError, ValueError, IndexError):
            return False
        return ast.dump(parsed) == ast.dump(node) and "\n" not in self.segment(string)

    @property
    def newline(self) -> str:
        """The line end that the file uses (of its first line)."""
        first = _LINE_END.search(self.text)
        return first.group() if first else "\n"

    def line_col(self, offset: int) -> tuple[int, int]:
        """Return the 1-based line and column (in characters) of a text offset."""
        line = bisect_right(self._line_starts, offset)
        return line, offset - self._line_starts[line - 1] + 1

    def line_col_of_node(self, node: ast.AST) -> tuple[int, int]:
        """Return the 1-based line and column (in characters) of the start of a node outside f-strings."""
        col: int = getattr(node, "col_offset", -1)
        if sys.version_info < (3, 8) and col >= 0 and not hasattr(node, "end_lineno"):
            recorded = self._offset(node.lineno, col)  # type: ignore[attr-defined]
            if starts_as_recorded(node, self.text, recorded):
                return self.line_col(recorded)
        return self.line_col(self.start(node))

    def line(self, number: int) -> str:
        """Return the text of a 1-based line, with its line end."""
        ends = self._line_starts[number : number + 1]
        return self.text[self._line_starts[number - 1] : ends[0] if ends else len(self.text)]

    def line_start(self, offset: int) -> int:
        """Return the start of the line of ``offset``, or of the first line that backslashes join to it."""
        index = bisect_right(self._line_starts, offset) - 1
        while index:
            before = self.text[self._line_starts[index - 1] : self._line_starts[index]]
            if "#" in before or not _JOINED.search(before):
                break
            index -= 1
        return self._line_starts[index]

    def next_line(self, offset: int) -> int:
        """Return the start of the line after that of ``offset`` and after those that backslashes join to it.

        It is the end of the text for the last line.
        """
        for position in self._line_starts[bisect_right(self._line_starts, offset) :]:
            rest = self.text[offset:position]
            if "#" in rest or not _JOINED.search(rest):
                return position
        return len(self.text)

    def _offset(self, line: int, byte_col: int) -> int:
        start = self._line_starts[line - 1]
        piece = self.text[start : start + byte_col]
        if piece.isascii():
            return start + len(piece)
        return start + len(self.line(line).encode("utf-8")[:byte_col].decode("utf-8"))

    def first_and_last_line(self, node: ast.AST) -> tuple[int, int]:
        """Return the first and the last line of a node, 1-based."""
        self._ensure_end_position(node)
        return node.lineno, node.end_lineno  # type: ignore[attr-defined]

    def start(self, node: ast.AST) -> int:
        """Return the text offset of a node's first character."""
        self._ensure_end_position(node)
        return self._offset(node.lineno, node.col_offset)  # type: ignore[attr-defined]

    def end(self, node: ast.AST) -> int:
        """Return the text offset after a node's last character."""
        self._ensure_end_position(node)
        return self._offset(node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]

    def start_with_decorators(self, statement: ast.stmt) -> int:
        """Return the text offset of a statement's first character, which may be the @ of a decorator."""
        start = self.start(statement)
        decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
        return self.text.rindex("@", 0, self.start(decorators[0])) if decorators else start

    def segment(self, node: ast.AST) -> str:
        """Return the text of a node."""
        return self.text[self.start(node) : self.end(node)]

    def skip_blanks(self, offset: int) -> int:
        """Return the first offset from ``offset`` on that is not blank, on the same line or one joined to it."""
        return _BLANKS.match(self.text, offset).end()  # type: ignore[union-attr]

    def skip_trivia(self, offset: int) -> int:
        """Return the first offset from ``offset`` on that is not blank, a line continuation or a comment."""
        text = self.text
        while offset < len(text):
            char = text[offset]
            if char == "#":
                line_end = _LINE_END.search(text, offset)
                offset = line_end.end() if line_end else len(text)
            elif char.isspace() or char == "\\":
                offset += 1
            else:
                break
        return offset

    def comments(self, start: int, end: int) -> list[str]:
        """Return the comments of a part of the text that starts and ends outside of strings."""
        return comments_of(self.text[start:end])

    def bytes_with_edits(self, edits: Iterable[Edit]) -> bytes:
        """Return the file's bytes with the edits made.

        Raises:
            ValueError: two edits overlap.
            UnicodeEncodeError: the file's encoding cannot represent the new text.
        """
        pieces: list[str] = []
        done = 0
        for edit in sort_edits(edits):
            if edit.start < done:
                raise ValueError(Message("edits overlap at offset {0}", edit.start))
            pieces += [self.text[done : edit.start], edit.new]
            done = edit.end
        pieces.append(self.text[done:])
        return self._bom + "".join(pieces).encode(self.encoding)


def comments_of(code: str) -> list[str]:
    """Return the comments of some code."""
    pieces = _STRING_OR_COMMENT.findall(code) if "#" in code else []
    return [piece for piece in pieces if piece.startswith("#")]


def one_line(text: str) -> str:
    """Return code on one line, for a message: blanks and line ends become one space, and none inside brackets."""
    return _INSIDE_BRACKETS.sub("", " ".join(text.split()))
