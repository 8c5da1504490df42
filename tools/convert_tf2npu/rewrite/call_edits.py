"""The few ways in which rules edit a call."""

from __future__ import annotations

import ast
import re
from decimal import Decimal
from typing import Iterable

from ..semantics.module_index import Names
from ..syntax.expressions import constant
from ..syntax.source import Edit, Source, comments_of

# What stands only in parentheses; the first one is new in Python 3.8.
_IN_PARENTHESES = (getattr(ast, "NamedExpr", ast.Yield), ast.Yield, ast.YieldFrom)
_LOW_PRECEDENCE = (ast.IfExp, ast.Lambda, ast.BoolOp, ast.Compare) + _IN_PARENTHESES
_HIGH_PRECEDENCE = (ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.MatMult, ast.Pow)


def wrap(source: Source, node: ast.AST, before: str, after: str) -> tuple[Edit, Edit]:
    """Put text around an expression."""
    start, end = source.start(node), source.end(node)
    if isinstance(node, _IN_PARENTHESES):  # theirs stay around the whole
        before, after = before + "(", ")" + after
    return Edit(start, start, _apart(source, start, before)), Edit(end, end, after, closing=True)


def rename(source: Source, node: ast.AST, new: str) -> Edit:
    """Write another name where an expression stands."""
    start = source.start(node)
    return Edit(start, source.end(node), _apart(source, start, new))


def _apart(source: Source, start: int, text: str) -> str:
    """Text for a place, apart from a keyword that may stand right before it: return(tf).Session()."""
    before = source.text[max(start - 1, 0) : start]
    return " " + text if re.match(r"\w", before) and re.match(r"\w", text) else text


def rename_behind(source: Source, root: ast.expr, node: ast.expr, new: str) -> Edit:
    """Write something else behind the first part of a dotted name, ``tf`` of ``(tf.contrib).rnn``, and behind the
    parentheses that open before it."""
    start, end = source.end(root), source.end(node)
    old = source.text[start:end]
    return Edit(start, end, ")" * (old.count(")") - old.count("(")) + new)


def add_argument(source: Source, call: ast.Call, *texts: str) -> Edit | None:
    """Add arguments behind the last one of a call, each in a line of its own where that one has one.

    Returns:
        the edit; None where the last argument is a bare generator, behind which none may stand.
    """
    close = source.end(call) - 1
    values = values_of(call)
    if not values:
        at = inside(source, call)
        return Edit(at, at, ", ".join(texts), first=True)
    last = max(values, key=source.end)
    if isinstance(last, ast.GeneratorExp) and source.end(last) > close:
        return None
    end = outer_end(source, call, last)
    start = argument_start(source, call, last)
    before = source.text[source.line_start(start) : start]
    between = source.newline + before if not before.strip() else " "
    return Edit(end, end, "".join("," + between + text for text in texts))


def values_of(call: ast.Call) -> list[ast.expr]:
    """The values of a call's arguments, those with names last."""
    return call.args + [keyword.value for keyword in call.keywords]


def inside(source: Source, call: ast.Call) -> int:
    """Where the arguments of a call start, right behind its parenthesis."""
    return _behind_closed(source, source.end(call.func)) + 1


def argument_start(source: Source, call: ast.Call, value: ast.expr) -> int:
    """Where an argument of a call starts, with its name or stars and the parentheses around it."""
    start = source.start(value)
    before = [v for v in values_of(call) if source.start(v) < start]
    comma = _behind_closed(source, source.end(max(before, key=source.end))) + 1 if before else inside(source, call)
    return source.skip_trivia(comma)


def keyword_value(source: Source, call: ast.Call, keyword: ast.keyword) -> int:
    """Where the value of a keyword argument starts, with the parentheses around it."""
    name = argument_start(source, call, keyword.value) + len(keyword.arg or "")
    return source.skip_trivia(source.skip_trivia(name) + 1)


def _behind_closed(source: Source, end: int) -> int:
    """What stands behind an expression and the parentheses around it: a comma, or what opens or closes a call."""
    at = source.skip_trivia(end)
    while source.text[at] == ")":
        at = source.skip_trivia(at + 1)
    return at


def outer_end(source: Source, call: ast.Call, value: ast.expr) -> int:
    """Where an argument of a call ends, with the parentheses around it."""
    end, close = source.end(value), source.end(call) - 1
    position = source.skip_trivia(end)
    while position < close and source.text[position] == ")":
        end = position + 1
        position = source.skip_trivia(end)
    return end


def name_argument(source: Source, call: ast.Call, value: ast.expr, name: str) -> Edit:
    """Write its name before a positional argument, and before the parentheses around it."""
    at = argument_start(source, call, value)
    return Edit(at, at, name + "=")


def rename_keyword(source: Source, call: ast.Call, keyword: ast.keyword, new: str) -> Edit:
    """Give a keyword argument another name."""
    start = argument_start(source, call, keyword.value)
    return Edit(start, start + len(keyword.arg or ""), new)


def loses_comment(source: Source, edits: Iterable[Edit]) -> bool:
    """Whether a comment stands in what some edits replace, and not in what takes its place."""
    return any(source.comments(edit.start, edit.end) != comments_of(edit.new) for edit in edits)


def broken_string(source: Source, scopes: Names, edit: Edit) -> ast.AST | None:
    """The f-string that new text inside it may end: text with quotes, or with what f-strings refuse before
    Python 3.12, which may be the one that runs the script."""
    if any(char in edit.new for char in "'\"\\\r\n#"):
        for string in set(scopes.strings.values()):
            if source.start(string) < edit.start < source.end(string):
                return string
    return None


def holds_together(text: str) -> bool:
    """Whether all lines of an expression are one statement without parentheses around them."""
    try:
        ast.parse(text, mode="eval")
    except SyntaxError:
        return False
    return True


def one_minus(source: Source, node: ast.expr) -> tuple[Edit, ...]:
    """Turn a drop rate into a keep probability: 1 - rate, as a person would write it."""
    start, end = source.start(node), source.end(node)
    value = constant(node)
    if value and isinstance(value[0], (int, float)) and not isinstance(value[0], bool):
        text = source.text[start:end]
        if re.fullmatch(r"[0-9.]+", text):
            return (Edit(start, end, _plain(Decimal(1) - Decimal(text))),)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
        one = constant(node.left)
        if one and one[0] == 1 and not isinstance(node.right, _LOW_PRECEDENCE):
            # 1 - keep: what is left once more is keep, with whatever parentheses it had
            right = source.skip_trivia(source.text.index("-", source.end(node.left)) + 1)
            return (Edit(start, right, ""),)
    if (
        isinstance(node, _LOW_PRECEDENCE)
        or isinstance(node, ast.UnaryOp)
        and isinstance(node.op, ast.Not)
        or isinstance(node, ast.BinOp)
        and not isinstance(node.op, _HIGH_PRECEDENCE)
    ):
        return Edit(start, start, "1 - ("), Edit(end, end, ")", closing=True)
    return (Edit(start, start, "1 - "),)


def operand(source: Source, node: ast.expr) -> str:
    """The text of an expression on one line, as it can stand before ``if``."""
    text = " ".join(source.segment(node).split())
    return f"({text})" if isinstance(node, (ast.IfExp, ast.Lambda) + _IN_PARENTHESES) else text


def _plain(value: Decimal) -> str:
    text = format(value.normalize(), "f")
    return text if "." in text else text + ".0"
