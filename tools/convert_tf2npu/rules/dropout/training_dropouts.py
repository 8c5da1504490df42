"""Convert dropout functions that drop only in training to the NPU operator under a condition."""

from __future__ import annotations

import ast
import re
from typing import Iterator, NamedTuple

from ...analysis.static_conditions import is_python_value
from ...analysis.tensorflow_version import is_tf2_program
from ...facts.kinds import OP, VALUE
from ...rewrite.call_edits import argument_end, edit_to_rename, rename_keyword, text_with_edits
from ...semantics.model import Call, Where
from ...semantics.module_index import Names
from ...semantics.signatures import Bound
from ...semantics.value_flow import origins
from ...syntax.expressions import boxed_constant, dotted_name_of, last_part, values_of
from ...syntax.source import Edit, Source, one_line
from ..base import Change, Context, Finding, Question, Result

OPERATOR = "npu_ops.dropout"
SWITCH = "npu_convert_dropout"  # its import makes the Dropout layers of graphs use the operator
_REPLACED = "dropout replaced with the NPU operator"
# What makes the tensors that decide about training.
_TENSORS = frozenset(
    "tensorflow." + name
    for name in """Variable cast constant convert_to_tensor equal get_variable greater less logical_and logical_not
logical_or math.equal math.logical_and math.logical_not math.logical_or not_equal placeholder
placeholder_with_default""".split()
)


class Dropout(NamedTuple):
    """A dropout to convert.

    Attributes:
        call: its call.
        bound: the arguments of the call.
        training: the condition under which it drops; None if it always does.
        flag: the keyword argument with this condition; None if an ``arg_scope`` gives it.
        keep: the edits of its rate or keep probability.
        missing: the keep probability, if the call has none.
        renamed: the old and new names of its keywords.
    """

    call: Call
    bound: Bound
    training: ast.AST | None
    flag: ast.keyword | None
    keep: tuple[Edit, ...]
    missing: str
    renamed: tuple[tuple[str, str], ...]


def results_of_dropout(context: Context, dropout: Dropout, name: str, code: str) -> Iterator[Result]:
    """Yield the change to the NPU operator, or what ``switched_or_finding`` yields for it.

    Args:
        context: the file.
        dropout: the dropout.
        name: its name in messages.
        code: of the rule.
    """
    result = _change_or_finding(context, dropout, name, code)
    if isinstance(result, Finding):
        yield from switched_or_finding(context, code, result)
    else:
        yield result


def _change_or_finding(context: Context, dropout: Dropout, name: str, code: str) -> Result:
    source, node = context.source, dropout.call.node
    edits = _edits_to_operator(source, dropout)
    inputs = dropout.bound.args.get("inputs")
    if edits is None or inputs is None:
        return Finding(
            node,
            "{0} has a comment or an argument order that cannot be converted. "
            "Write npu_ops.dropout(x, keep_prob=...) for training",
            name,
        )
    if dropout.training is None or boxed_constant(dropout.training) is not None:
        return Change(node, _REPLACED, tuple(edits), ("npu_ops",))
    value = one_line(text_with_edits(source, node, edits))
    test = one_line(source.segment(dropout.training))
    x = one_line(source.segment(inputs))
    asks = (Question(VALUE, dropout.training),)
    if _is_tensor(context.names, dropout.training, dropout.call.where):
        return Finding(
            node,
            "the condition of {0} is a tensor. Write tf.cond({1}, lambda: {2}, lambda: {3})",
            name,
            test,
            value,
            x,
            asks=asks,
        )
    choice = _conditional_text(test, dropout.training, value, x)
    runs = None
    if not is_python_value(context.names, dropout.training, dropout.call.where):
        seen = context.observed_at(code, VALUE, dropout.training)
        if seen is None or seen.only("is") != "python" or context.once(_has_bool_variable):
            return Finding(
                node,
                "the condition of {0} may be a tensor. Write {1}, or use tf.cond for a tensor",
                name,
                choice,
                asks=asks,
            )
        runs = seen.runs
    if dotted_name_of(inputs) is None:  # another expression may not be written twice
        return Finding(
            node, "the input of {0} is an expression. Assign it to x and write {1}", name, choice.replace(x, "x")
        )
    text = _conditional_text(source.segment(dropout.training), dropout.training, "", source.segment(inputs))
    edits += _edits_to_condition(context, node, text)
    return Change(node, _REPLACED, tuple(edits), ("npu_ops",), runs)


def switched_or_finding(context: Context, code: str, finding: Finding) -> Iterator[Result]:
    """Yield the import that switches the dropout of layers, if observed runs called this one in graphs; else a finding.

    The library then decides when the layer is called: the condition may be a tensor or a value of Python.

    Args:
        context: the file.
        code: of the rule.
        finding: about the call of the layer.
    """
    if is_switched(context):
        return
    seen = context.observed_at(code, OP, finding.node)
    if seen is not None and seen.only("in") == "graph" and not is_tf2_program(context):
        yield Change(finding.node, _REPLACED, (), (SWITCH,), seen.runs)
    else:
        yield finding._replace(asks=(*finding.asks, Question(OP, finding.node)))


def is_switched(context: Context) -> bool:
    """Return True if the file imports the switch, and not only in a comment."""
    return context.once(_imports_switch)


def _imports_switch(context: Context) -> bool:
    if SWITCH not in context.source.text:
        return False
    imports = (node for node in ast.walk(context.source.tree) if isinstance(node, (ast.Import, ast.ImportFrom)))
    return any(last_part(alias.name) == SWITCH for node in imports for alias in node.names)


def _has_bool_variable(context: Context) -> bool:
    """Return True if a file makes a variable of bools. In graphs of TensorFlow 1 it is always true in Python."""
    for call in context.names.calls:
        if context.called_names.get(call.node) in ("tensorflow.Variable", "tensorflow.get_variable"):
            values = [*call.node.args, *(k.value for k in call.node.keywords if k.arg in ("dtype", "initial_value"))]
            first = boxed_constant(values[0]) if values else None
            if first in ((True,), (False,)) or any(context.resolve(v, call.where) == "tensorflow.bool" for v in values):
                return True
    return False


def _conditional_text(condition: str, node: ast.AST, value: str, otherwise: str) -> str:
    """Return the text of a conditional expression."""
    inner = f"({condition})" if isinstance(node, (ast.IfExp, ast.Lambda)) else condition
    return f"{value} if {inner} else {otherwise}"


def _edits_to_operator(source: Source, dropout: Dropout) -> list[Edit] | None:
    """Return the edits that make the call a call of the operator, or None if that is not possible."""
    node = dropout.call.node
    edits = [edit_to_rename(source, node.func, OPERATOR)] + list(dropout.keep)
    for old, new in dropout.renamed:
        if old in dropout.bound.keywords:
            edits.append(rename_keyword(source, node, dropout.bound.keywords[old], new))
    missing = dropout.missing
    if dropout.flag is not None:
        removed = _edit_to_remove_keyword(source, node, dropout.flag, missing)
        if removed is None:
            return None
        edits.append(removed)
    elif missing:
        last = argument_end(source, node, max(values_of(node), key=source.end))
        edits.append(Edit(last, last, ", " + missing))
    return edits


def _edits_to_condition(context: Context, node: ast.Call, tail: str) -> list[Edit]:
    """Return the edits that put a call under a condition, in parentheses if the code around it needs them."""
    source = context.source
    start, end = source.start(node), source.end(node)
    parent = context.names.parents[node]
    argument = isinstance(parent, (ast.Call, ast.keyword)) and getattr(parent, "func", None) is not node
    # a condition of several lines needs parentheses
    around = not argument and (
        bool(re.search(r"[\r\n]", tail)) or not isinstance(parent, (ast.Assign, ast.AnnAssign, ast.Return, ast.Expr))
    )
    edits = [Edit(start, start, "(")] if around else []
    return edits + [Edit(end, end, tail + (")" if around else ""), closing=True)]


def _edit_to_remove_keyword(source: Source, node: ast.Call, keyword: ast.keyword, instead: str) -> Edit | None:
    """Return the edit that removes a keyword argument and the comma before it; None if a comment is in between."""
    values = values_of(node)
    before = [v for v in values if source.start(v) < source.start(keyword.value)]
    start = argument_end(source, node, max(before, key=source.start)) if before else 0
    if not before or "#" in source.text[start : source.start(keyword.value)]:
        return None
    return Edit(start, argument_end(source, node, keyword.value), ", " + instead if instead else "")


def _is_tensor(names: Names, node: ast.AST, where: Where) -> bool:
    """Return True if an expression is certainly a tensor."""
    sources = list(origins(node, where, names))
    return bool(sources) and all(
        isinstance(o.node, ast.Call) and o.names.resolve(o.node.func, o.where) in _TENSORS for o in sources
    )
