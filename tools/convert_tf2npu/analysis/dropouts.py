"""What dropout functions that only drop while they train become: the NPU's operator under a test."""

from __future__ import annotations

import ast
import re
from typing import NamedTuple

from ..project.context import Context
from ..rewrite.call_edits import outer_end, rename, rename_keyword
from ..rewrite.change import Change, Finding, Result
from ..semantics.model import Call
from ..semantics.signatures import Bound
from ..syntax.expressions import constant
from ..syntax.source import Edit, Source, ordered
from .static_conditions import decided

OPERATOR = "npu_ops.dropout"


class Dropout(NamedTuple):
    """A dropout to be turned over.

    ``call`` and ``bound`` are its call; ``training`` is the test under which it drops (None: always), ``flag`` the keyword
    argument that gives it (None where an ``arg_scope`` does), ``keep`` the edits of its rate or keep
    probability, ``missing`` that argument where it is left out, ``renamed`` the keywords with other names.
    """

    call: Call
    bound: Bound
    training: ast.AST | None
    flag: ast.keyword | None
    keep: tuple[Edit, ...]
    missing: str
    renamed: tuple[tuple[str, str], ...]


def turn(context: Context, dropout: Dropout, what: str) -> Result:
    """The operator of the NPU for a dropout, or what to write.

    Args:
        context: the file.
        dropout: the dropout.
        what: its name in words.
    """
    source, node = context.source, dropout.call.node
    edits = _operator(source, dropout)
    inputs = dropout.bound.args.get("inputs")
    if edits is None or inputs is None:
        return Finding(
            node,
            f"{what} stays as it is, because a comment or the order of its arguments is in the way; "
            "write npu_ops.dropout(x, keep_prob=...) where it trains",
        )
    if dropout.training is None or constant(dropout.training) is not None:
        return Change(node, "dropout becomes the operator of the NPU", tuple(edits), ("npu_ops",))
    value, test, x = (
        _flat(written(source, node, edits)),
        _flat(source.segment(dropout.training)),
        _flat(source.segment(inputs)),
    )
    by_python, by_tensor = _choices(test, dropout.training, value, x)
    if not decided(context.names, dropout.training, dropout.call.where):
        return Finding(
            node,
            f"{what} stays as it is, because its test {test} may be a tensor; write {by_python}, or, where it is "
            f"one, {by_tensor}",
        )
    if not _is_plain(inputs):
        return Finding(
            node,
            "{} stays as it is, because its input is computed in the call; give that a name and write {}".format(
                what, by_python.replace(x, "x")
            ),
        )
    text = _choices(source.segment(dropout.training), dropout.training, "", source.segment(inputs))[0]
    edits += _choice(context, node, text)
    return Change(node, "dropout becomes the operator of the NPU", tuple(edits), ("npu_ops",))


def _choices(test: str, node: ast.AST, value: str, otherwise: str) -> tuple[str, str]:
    """The text of a choice by a test: as Python decides it, and as a tensor does."""
    inner = f"({test})" if isinstance(node, (ast.IfExp, ast.Lambda)) else test
    return (f"{value} if {inner} else {otherwise}", f"tf.cond({test}, lambda: {value}, lambda: {otherwise})")


def written(source: Source, node: ast.AST, edits: list[Edit]) -> str:
    """The text of a node with some edits made in it."""
    done, text = source.start(node), ""
    for edit in ordered(edits):
        text += source.text[done : edit.start] + edit.new
        done = edit.end
    return text + source.text[done : source.end(node)]


def _operator(source: Source, dropout: Dropout) -> list[Edit] | None:
    """The edits that make the call that of the operator; None where they cannot be made."""
    node = dropout.call.node
    edits = [rename(source, node.func, OPERATOR)] + list(dropout.keep)
    for old, new in dropout.renamed:
        if old in dropout.bound.keywords:
            edits.append(rename_keyword(source, node, dropout.bound.keywords[old], new))
    missing = dropout.missing
    if dropout.flag is not None:
        removed = _without(source, node, dropout.flag, missing)
        if removed is None:
            return None
        edits.append(removed)
    elif missing:
        last = outer_end(source, node, max(node.args + [k.value for k in node.keywords], key=source.end))
        edits.append(Edit(last, last, ", " + missing))
    return edits


def _choice(context: Context, node: ast.Call, tail: str) -> list[Edit]:
    """The edits that put a call under a test, in parentheses where what is around it needs them."""
    source = context.source
    start, end = source.start(node), source.end(node)
    parent = context.names.parents[node]
    argument = isinstance(parent, (ast.Call, ast.keyword)) and getattr(parent, "func", None) is not node
    # a test of several lines needs something that holds them together
    around = not argument and (
        bool(re.search(r"[\r\n]", tail)) or not isinstance(parent, (ast.Assign, ast.AnnAssign, ast.Return, ast.Expr))
    )
    edits = [Edit(start, start, "(")] if around else []
    return edits + [Edit(end, end, tail + (")" if around else ""), closing=True)]


def _without(source: Source, node: ast.Call, keyword: ast.keyword, instead: str) -> Edit | None:
    """Take a keyword argument out of a call, with the comma before it."""
    values = list(node.args) + [k.value for k in node.keywords]
    before = [v for v in values if source.start(v) < source.start(keyword.value)]
    start = outer_end(source, node, max(before, key=source.start)) if before else 0
    if not before or "#" in source.text[start : source.start(keyword.value)]:
        return None
    return Edit(start, outer_end(source, node, keyword.value), ", " + instead if instead else "")


def _is_plain(node: ast.AST) -> bool:
    """Whether an expression only names something, so that it may stand in two places."""
    return isinstance(node, ast.Name) or isinstance(node, ast.Attribute) and _is_plain(node.value)


def _flat(text: str) -> str:
    return " ".join(text.split())
