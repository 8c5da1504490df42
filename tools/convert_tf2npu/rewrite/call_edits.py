"""Edits of calls."""

from __future__ import annotations

import ast
import re
from decimal import Decimal
from typing import Iterable, Sequence

from ..semantics.module_index import Names
from ..syntax.expressions import boxed_constant, values_of
from ..syntax.source import Edit, Source, comments_of, one_line, sort_edits

# Expressions that need parentheses; the first one is new in Python 3.8.
_IN_PARENTHESES = (getattr(ast, "NamedExpr", ast.Yield), ast.Yield, ast.YieldFrom)
_LOW_PRECEDENCE = (ast.IfExp, ast.Lambda, ast.BoolOp, ast.Compare) + _IN_PARENTHESES
_HIGH_PRECEDENCE = (ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.MatMult, ast.Pow)


def edits_to_wrap(source: Source, node: ast.AST, before: str, after: str) -> tuple[Edit, Edit]:
    """Return the edits that put text around an expression."""
    start, end = source.start(node), source.end(node)
    if isinstance(node, _IN_PARENTHESES):  # their parentheses stay around the whole
        before, after = before + "(", ")" + after
    return Edit(start, start, _text_apart_from_keyword(source, start, before)), Edit(end, end, after, closing=True)


def text_with_edits(source: Source, node: ast.AST, edits: Iterable[Edit]) -> str:
    """Return the text of a node with edits applied."""
    done, text = source.start(node), ""
    for edit in sort_edits(edits):
        text += source.text[done : edit.start] + edit.new
        done = edit.end
    return text + source.text[done : source.end(node)]


def edit_to_rename(source: Source, node: ast.AST, new: str) -> Edit:
    """Return the edit that replaces an expression with a name."""
    start = source.start(node)
    return Edit(start, source.end(node), _text_apart_from_keyword(source, start, new))


def _text_apart_from_keyword(source: Source, start: int, text: str) -> str:
    """Return a text for a position, with a space if a keyword is right before it: return(tf).Session()."""
    before = source.text[max(start - 1, 0) : start]
    return " " + text if re.match(r"\w", before) and re.match(r"\w", text) else text


def edit_to_rename_after_root(source: Source, root: ast.expr, node: ast.expr, new: str) -> Edit:
    """Return the edit that replaces what follows the first part of a dotted name: ``tf`` of ``(tf.contrib).rnn``.

    Parentheses that open before this part are kept.
    """
    start, end = source.end(root), source.end(node)
    old = source.text[start:end]
    return Edit(start, end, ")" * (old.count(")") - old.count("(")) + new)


def edit_to_add_argument(source: Source, call: ast.Call, *texts: str) -> Edit | None:
    """Return the edit that adds arguments after the last one of a call, in separate lines if that one has its own.

    Returns:
        The edit; None if the last argument is a bare generator, which must be the only one.
    """
    close = source.end(call) - 1
    values = values_of(call)
    if not values:
        at = after_opening_parenthesis(source, call)
        return Edit(at, at, ", ".join(texts), first=True)
    last = max(values, key=source.end)
    if isinstance(last, ast.GeneratorExp) and source.end(last) > close:
        return None
    end = argument_end(source, call, last)
    start = argument_start(source, call, last)
    before = source.text[source.line_start(start) : start]
    between = source.newline + before if not before.strip() else " "
    return Edit(end, end, "".join("," + between + text for text in texts))


def after_opening_parenthesis(source: Source, call: ast.Call) -> int:
    """Return the position right after the opening parenthesis of a call."""
    return after_closing_parentheses(source, source.end(call.func)) + 1


def argument_start(source: Source, call: ast.Call, value: ast.expr) -> int:
    """Return the start of an argument, with its name or stars and the parentheses around it."""
    start = source.start(value)
    before = [v for v in values_of(call) if source.start(v) < start]
    comma = (
        after_closing_parentheses(source, source.end(max(before, key=source.end))) + 1
        if before
        else after_opening_parenthesis(source, call)
    )
    return source.skip_trivia(comma)


def keyword_value_start(source: Source, call: ast.Call, keyword: ast.keyword) -> int:
    """Return the start of the value of a keyword argument, with the parentheses around it."""
    name = argument_start(source, call, keyword.value) + len(keyword.arg or "")
    return source.skip_trivia(source.skip_trivia(name) + 1)


def after_closing_parentheses(source: Source, end: int) -> int:
    """Return the position of the first token after an expression and the parentheses around it."""
    at = source.skip_trivia(end)
    while source.text[at] == ")":
        at = source.skip_trivia(at + 1)
    return at


def argument_end(source: Source, call: ast.Call, value: ast.expr) -> int:
    """Return the end of an argument, with the parentheses around it."""
    end, close = source.end(value), source.end(call) - 1
    position = source.skip_trivia(end)
    while position < close and source.text[position] == ")":
        end = position + 1
        position = source.skip_trivia(end)
    return end


def name_argument(source: Source, call: ast.Call, value: ast.expr, name: str) -> Edit:
    """Return the edit that writes a name before a positional argument and the parentheses around it."""
    at = argument_start(source, call, value)
    return Edit(at, at, name + "=")


def rename_keyword(source: Source, call: ast.Call, keyword: ast.keyword, new: str) -> Edit:
    """Return the edit that renames a keyword argument."""
    start = argument_start(source, call, keyword.value)
    return Edit(start, start + len(keyword.arg or ""), new)


def loses_comment(source: Source, edits: Sequence[Edit]) -> bool:
    """Return True if edits remove a comment that their new text does not contain."""
    removed = [comment for edit in edits for comment in source.comments(edit.start, edit.end)]
    return removed != [comment for edit in edits for comment in comments_of(edit.new)]


def broken_string(source: Source, scopes: Names, edit: Edit) -> ast.AST | None:
    """Return the f-string that the text of an edit would break, or None.

    Quotes break it, and before Python 3.12 also backslashes and comments. The script may run on such a version.
    """
    if any(char in edit.new for char in "'\"\\\r\n#"):
        for string in set(scopes.strings.values()):
            if source.start(string) < edit.start < source.end(string):
                return string
    return None


def is_one_statement(text: str) -> bool:
    """Return True if all lines of an expression are one statement without parentheses around them."""
    try:
        ast.parse(text, mode="eval")
    except SyntaxError:
        return False
    return True


def edits_to_keep_probability(source: Source, node: ast.expr) -> tuple[Edit, ...]:
    """Return the edits that turn a drop rate into a keep probability, as a person would write it."""
    start, end = source.start(node), source.end(node)
    value = boxed_constant(node)
    if value and isinstance(value[0], (int, float)) and not isinstance(value[0], bool):
        text = source.text[start:end]
        if re.fullmatch(r"[0-9.]+", text):
            return (Edit(start, end, _decimal_text(Decimal(1) - Decimal(text))),)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
        one = boxed_constant(node.left)
        if one and one[0] == 1 and not isinstance(node.right, _LOW_PRECEDENCE):
            # 1 - (1 - keep) is keep, with its parentheses
            right = source.skip_trivia(after_closing_parentheses(source, source.end(node.left)) + 1)
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


def operand_text(source: Source, node: ast.expr) -> str:
    """Return an expression as one line of text that can stand before ``if``."""
    text = one_line(source.segment(node))
    return f"({text})" if isinstance(node, (ast.IfExp, ast.Lambda) + _IN_PARENTHESES) else text


def _decimal_text(value: Decimal) -> str:
    text = format(value.normalize(), "f")
    return text if "." in text else text + ".0"
