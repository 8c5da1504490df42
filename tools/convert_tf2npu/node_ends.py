"""Positions of AST nodes for Python 3.7, as Python 3.9+ reports them.

The converter edits source text between the start and the end of a node.
Python 3.7 has no ``end_lineno`` / ``end_col_offset``, and several of its start
positions are wrong (multi-line strings, parenthesised tuples, decorated
definitions, ...).  Patching each quirk would leave the unknown ones, so
`add_ends` reads no position of the tree at all: the tree says which node comes
next, the token stream says where it is, and one walk over both, in source
order, places every node.  It takes linear time.

The only real ambiguity is which node a parenthesis belongs to.  It belongs to
the innermost node that it encloses exactly: ``(a)`` to the name, ``(a + b) * c``
to the sum.  A node may claim only a '(' that was reached while walking that
node, hence the '(' of a call, consumed by the call before it walks its
arguments, cannot be mistaken for a parenthesis around an argument.
"""
from __future__ import annotations

import ast
import re
import tokenize
from typing import Callable, Dict, Iterator, List, Tuple

_Position = Tuple[int, int]

# Every string literal is represented by this token: its text never matters.
_STRING = '"'
_IGNORED = {tokenize.NL, tokenize.COMMENT, tokenize.INDENT, tokenize.DEDENT}
# Python 3.12 splits f-strings into many tokens; older versions have no such types.
_FSTRING_START = getattr(tokenize, "FSTRING_START", None)
_FSTRING_END = getattr(tokenize, "FSTRING_END", None)
_CLOSING = {")": "(", "]": "[", "}": "{"}

# What may stand between a node and the next expression.  None of these can begin
# an expression, so they are skipped without asking which construct they are in.
_BEFORE_EXPR = frozenset(
    ", : = := -> @ ** and or if else for in async as from with "
    "+= -= *= /= //= %= @= &= |= ^= >>= <<= **=".split()
) | {"\n"}
_BEFORE_STMT = frozenset(["\n", ";", ":", "else", "finally"])

# Nodes that begin with a child, and that child.
_LEFTMOST = {
    "Attribute": "value", "BinOp": "left", "BoolOp": "values", "Call": "func",
    "Compare": "left", "GeneratorExp": "elt", "IfExp": "body", "NamedExpr": "target",
    "Subscript": "value", "Tuple": "elts",
}
# Nodes whose own text includes the parentheses around them.
_OWN_PARENTHESES = frozenset(["GeneratorExp", "Tuple"])

# The children, in source order, of the nodes that need no code of their own
# (what follows the leftmost child, for the nodes above).
_BRACKETED = {
    "List": ("elts",), "Set": ("elts",), "ListComp": ("elt", "generators"),
    "SetComp": ("elt", "generators"), "DictComp": ("key", "value", "generators"),
}
_PREFIXED = {
    "Await": ("value",), "Starred": ("value",), "UnaryOp": ("operand",),
    "Yield": ("value",), "YieldFrom": ("value",), "Lambda": ("args", "body"),
}
_INFIX = {
    "GeneratorExp": ("generators",), "IfExp": ("test", "orelse"), "NamedExpr": ("value",),
}
_PARTS = {
    "comprehension": ("target", "iter", "ifs"), "withitem": ("context_expr", "optional_vars"),
}
# Simple statements that begin with an expression; all others begin with a keyword.
_EXPR_FIRST = {
    "AnnAssign": ("target", "annotation", "value"), "Assign": ("targets", "value"),
    "AugAssign": ("target", "value"), "Expr": ("value",),
}
_SIMPLE = {
    "Assert": ("test", "msg"), "Delete": ("targets",), "Raise": ("exc", "cause"),
    "Return": ("value",),
}
_LOOP = ("target", "iter", "body", "orelse")
_TRY = ("body", "handlers", "orelse", "finalbody")
_COMPOUND = {
    "AsyncFor": _LOOP, "For": _LOOP, "If": ("test", "body", "orelse"),
    "Match": ("subject", "cases"), "Try": _TRY, "TryStar": _TRY,
    "While": ("test", "body", "orelse"),
}


def add_ends(tree: ast.Module, text: str) -> None:
    """Set start and end of every statement, expression, argument and keyword.

    *tree* is the result of ``ast.parse(text)``; *text* has no byte order mark.
    Lines count from 1, columns are UTF-8 byte offsets.  All that is inside an
    f-string gets the position of the f-string.

    Raises ValueError if *tree* and *text* do not belong together.
    """
    walker = _Walker(text)
    walker.children(tree, ("body",))
    walker.finish()


class _Tokens:
    """The significant tokens of a source text, as parallel lists."""

    def __init__(self, text: str) -> None:
        # Not splitlines(): form feeds and the like do not end a line of Python.
        self._lines = re.split("\r\n?|\n", text)
        self._ascii = text.isascii()
        self._line, self._column, self._byte = 1, 0, 0
        self.strings: List[str] = []
        self.starts: List[_Position] = []
        self.ends: List[_Position] = []
        self._read()
        self.match = self._match_brackets()

    def _read(self) -> None:
        source = iter([line + "\n" for line in self._lines])
        fstring_depth = 0
        previous = tokenize.ENCODING
        for kind, string, start, end, _ in tokenize.generate_tokens(lambda: next(source, "")):
            if kind in _IGNORED:
                continue
            if kind == _FSTRING_END:
                fstring_depth -= 1
                if not fstring_depth:
                    self.ends[-1] = self._position(end)
                continue
            if fstring_depth:
                fstring_depth += kind == _FSTRING_START
                continue
            if kind == _FSTRING_START:
                fstring_depth = 1
            elif kind == tokenize.NEWLINE:
                string = "\n"
            begin = self._position(start)
            # The tokenizer in pure Python does not know a few rare characters of
            # identifiers; in legal source nothing else is an ERRORTOKEN.
            if (
                tokenize.ERRORTOKEN in (kind, previous)
                and previous in (tokenize.ERRORTOKEN, tokenize.NAME)
                and kind in (tokenize.ERRORTOKEN, tokenize.NAME, tokenize.NUMBER)
                and begin == self.ends[-1]
            ):
                previous = tokenize.ERRORTOKEN
                self.strings[-1] += string
                self.ends[-1] = self._position(end)
                continue
            previous = kind
            is_string = kind == tokenize.STRING or kind == _FSTRING_START
            self.strings.append(_STRING if is_string else string)
            self.starts.append(begin)
            self.ends.append(self._position(end))

    def _position(self, position: _Position) -> _Position:
        """Columns of tokens are characters; positions are asked for in order."""
        if self._ascii:
            return position
        line, column = position
        if line != self._line:
            self._line, self._column, self._byte = line, 0, 0
        if line <= len(self._lines):
            passed = self._lines[line - 1][self._column : column]
            self._byte += len(passed.encode("utf-8"))
        self._column = column
        return line, self._byte

    def _match_brackets(self) -> List[int]:
        match = [-1] * len(self.strings)
        opened: List[int] = []
        for index, string in enumerate(self.strings):
            if string in ("(", "[", "{"):
                opened.append(index)
            elif string in _CLOSING:
                match[index] = opened.pop()
                match[match[index]] = index
        return match


class _Walker:
    """Walks tree and tokens side by side; ``at`` is the next token to consume."""

    def __init__(self, text: str) -> None:
        tokens = _Tokens(text)
        self.tokens, self.match = tokens.strings, tokens.match
        self.starts, self.ends = tokens.starts, tokens.ends
        self.at = 0

    def finish(self) -> None:
        while self.tokens[self.at] in _BEFORE_STMT:
            self.at += 1
        if self.at != len(self.tokens) - 1:
            raise ValueError("the syntax tree does not belong to this text")

    def place(self, node: ast.AST, first: int) -> None:
        """The node begins with token *first* and ends with the one before ``at``."""
        node.lineno, node.col_offset = self.starts[first]
        node.end_lineno, node.end_col_offset = self.ends[self.at - 1]

    def children(self, node: ast.AST, fields: Tuple[str, ...]) -> None:
        for field in fields:
            value = getattr(node, field)
            for child in value if isinstance(value, list) else (value,):
                if isinstance(child, ast.expr):
                    self.expr(child)
                elif isinstance(child, ast.stmt):
                    self.stmt(child)
                elif child is not None:
                    self.part(child)

    def part(self, node: ast.AST) -> None:
        kind = type(node).__name__
        if kind in _PARTS:
            self.children(node, _PARTS[kind])
        else:
            _PART_CODE[kind](self, node)

    # ---- expressions

    def expr(self, node: ast.expr) -> None:
        """Place an expression; ``at`` ends up behind it and its parentheses."""
        tokens, match = self.tokens, self.match
        while tokens[self.at] in _BEFORE_EXPR:
            self.at += 1
        start = self.at
        # A loop down the left edge instead of recursion: 'a' + 'b' + ... and
        # chains of calls may be very deep there.
        outer: List[ast.expr] = []
        kind = type(node).__name__
        while kind in _LEFTMOST:
            child = getattr(node, _LEFTMOST[kind])
            if isinstance(child, list):
                if not child:
                    break
                child = child[0]
            outer.append(node)
            node = child
            kind = type(node).__name__
        while tokens[self.at] == "(" and match[self.at] != self.at + 1:
            self.at += 1
        first = self.at
        if kind in _HEAD_CODE:
            _HEAD_CODE[kind](self, node)
        else:
            self.atom()
        while True:
            if kind in _OWN_PARENTHESES and first > start and match[self.at] == first - 1:
                first -= 1
                self.at += 1
            self.place(node, first)
            while first > start and match[self.at] == first - 1:
                first -= 1
                self.at += 1
            if not outer:
                return
            node = outer.pop()
            kind = type(node).__name__
            _TAIL_CODE[kind](self, node)
