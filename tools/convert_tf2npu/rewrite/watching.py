"""The edits with which a run of an unmodified script is observed: calls around what is watched. No line moves."""

from __future__ import annotations

import ast
from typing import Iterator, NamedTuple, Sequence

from ..facts.seen import Block, Place
from ..syntax.edits import Edit
from ..syntax.expressions import is_literal_statement, last_name
from ..syntax.source import Source
from ..syntax.walk import walk_nodes

# Builtins of the process that observes. Names that begin and end so are not mangled in classes.
SEEN, RAN = "__npu_shim_seen__", "__npu_shim_ran__"
_SKIPPED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)  # a mark before them would part their decorators
_HEADERS = {"If": "test", "While": "test", "For": "iter", "AsyncFor": "iter", "Match": "subject"}
_BODIES = "body", "orelse", "finalbody"
_CONDITIONS = (ast.If, ast.While, ast.For, ast.AsyncFor, ast.With, ast.AsyncWith)
_EXITS = (ast.Return, ast.Raise, ast.Break, ast.Continue)
# A loop may end with an exception that a caller handles. The consumer of a generator may stop at any yield.
_STOPS = (*_EXITS, ast.For, ast.AsyncFor, ast.While, ast.Yield, ast.YieldFrom, ast.Await)


class WatchedBlock(NamedTuple):
    """A block of a watched script.

    Attributes:
        path: of the script.
        lines: its first and last.
        ends: the last line of each of its statements.
    """

    path: str
    lines: Block
    ends: tuple[int, ...]

    def beginning_until(self, line: int) -> Block:
        """Return the first lines of the block, to the end of the statement at a line."""
        return Block(self.lines.first, min((end for end in self.ends if end >= line), default=self.lines.last))


class Watched:
    """The expressions and blocks of all watched scripts. Their numbers are the arguments of the calls.

    Attributes:
        ran, seen: the builtins that the edits call, with the number of a block, and of an expression and its value.
        places: path and place of each expression.
        codes: the functions that questions define, by the number of the expression.
        blocks: the blocks of all scripts.
    """

    ran, seen = RAN, SEEN

    def __init__(self) -> None:
        self.places: list[tuple[str, Place]] = []
        self.codes: dict[int, str] = {}
        self.blocks: list[WatchedBlock] = []

    def edits(
        self, path: str, raw: bytes, expressions: Sequence[tuple[int, int, Place, str]], has_findings: bool = True
    ) -> list[Edit]:
        """Return the edits of a script, and number what they watch.

        Args:
            path: of the script.
            raw: its bytes.
            expressions: start, end and place of the expressions, and the code of each question.
            has_findings: whether it has findings. A script without any is only watched if it may feed placeholders.
        """
        from ..analysis.fed_values import may_feed  # the door of the tool imports this module, and loads no analysis

        if not has_findings and not may_feed(raw):
            return []
        source = Source(raw)
        edits: list[Edit] = []
        for block, ends, mark in _blocks_with_marks(source.tree.body, 1, source):
            number = len(self.blocks)
            self.blocks.append(WatchedBlock(path, block, ends))
            if isinstance(mark, ast.stmt):
                start = source.start(mark)
                edits.append(Edit(start, start, f"{RAN}({number}); "))
            else:
                edits += _edits_around(source.start(mark), source.end(mark), f"{RAN}({number}) or (")
        for start, end, place, code in sorted(expressions, key=lambda expression: (expression[0], -expression[1])):
            edits += _edits_around(start, end, f"{SEEN}({len(self.places)}, (")
            if code:
                self.codes[len(self.places)] = code
            self.places.append((path, place))
        return edits


def _edits_around(start: int, end: int, opening: str) -> list[Edit]:
    # An inner bracket is for tuples, which may have none.
    return [Edit(start, start, opening), Edit(end, end, ")" * (opening.count("(") - opening.count(")")), closing=True)]


def _blocks_with_marks(
    statements: Sequence[ast.stmt], first: int, source: Source
) -> Iterator[tuple[Block, tuple[int, ...], ast.AST]]:
    """Yield the blocks of some statements and those in them, each with the last lines of its statements and its mark.

    The mark is a statement or an expression. Blocks of one line with what they are in belong to that.

    Args:
        statements: of one body.
        first: its first line.
        source: of the script.
    """
    for part in _parts_without_exits(statements, source):
        mark = _marking_node(part)
        ends = tuple(source.first_and_last_line(statement)[1] for statement in part)
        if mark is not None:
            yield Block(first, ends[-1]), ends, mark
        for statement in part:
            for branch in [statement, *getattr(statement, "handlers", ()), *getattr(statement, "cases", ())]:
                for name in _BODIES:
                    inner = getattr(branch, name, None)
                    if not isinstance(inner, list) or not inner or inner[0].lineno <= first:
                        continue
                    if not _shares_line(inner[0], branch, source):
                        yield from _blocks_with_marks(inner, inner[0].lineno, source)
        first = ends[-1] + 1


def _parts_without_exits(statements: Sequence[ast.stmt], source: Source) -> Iterator[Sequence[ast.stmt]]:
    """Yield the parts of a body: each but the last ends with a statement in which the body may be left.

    A part begins on a line of its own.
    """
    start, may_be_left = 0, False
    for index, (before, statement) in enumerate(zip(statements, statements[1:]), start=1):
        may_be_left = may_be_left or _may_leave(before)
        if (
            may_be_left
            and source.first_and_last_line(before)[1] < statement.lineno
            and _marking_node(statements[start:index])
            and _marking_node(statements[index:])
        ):
            yield statements[start:index]
            start, may_be_left = index, False
    yield statements[start:]


def _may_leave(statement: ast.stmt) -> bool:
    """Return True if a body may be left, or stop, in a statement that is not the end of it."""
    return not isinstance(statement, (*_SKIPPED, *_EXITS)) and any(
        isinstance(node, _STOPS) for node in walk_nodes(statement)
    )


def _shares_line(first: ast.stmt, branch: ast.AST, source: Source) -> bool:
    """Return True if the first statement of a body is on the line of a condition, which may run without the body."""
    arguments = getattr(branch, "args", None)
    if not isinstance(branch, _CONDITIONS) and not (isinstance(arguments, ast.arguments) and arguments.defaults):
        return False
    line, col = source.line_col(source.start(first))
    return source.line(line)[: col - 1].strip(" \t\f:") not in ("", "else", "elif")


def _marking_node(statements: Sequence[ast.stmt]) -> ast.AST | None:
    """Return the statement before which a call can stand, or the expression that is evaluated first; None without."""
    for index, statement in enumerate(statements):
        if isinstance(statement, _SKIPPED) or (
            index == 0 and (is_literal_statement(statement) or _sets_loop_options(statement))
        ):
            continue
        if isinstance(statement, ast.ImportFrom) and statement.module == "__future__":
            continue
        kind = type(statement).__name__
        if kind in _HEADERS:
            header: ast.AST = getattr(statement, _HEADERS[kind])
            return header
        if isinstance(statement, (ast.With, ast.AsyncWith)):
            return statement.items[0].context_expr
        return _marking_node(getattr(statement, "body")) if kind in ("Try", "TryStar") else statement
    return None


def _sets_loop_options(statement: ast.stmt) -> bool:
    """Return True for the call about a loop that AutoGraph wants as the first statement of its body."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(call, ast.Call) and last_name(call.func) == "set_loop_options"
