"""Convert the start and the end of Horovod to those of the NPU's resources."""

from __future__ import annotations

import ast
from typing import NamedTuple

from ...rewrite.call_edits import rename
from ...rewrite.insertion import at_end, is_main_guard
from ...rewrite.removal import block_of
from ...semantics.module_index import Names
from ..base import Context, Finding
from .calls import Turn, Turned

_INIT = "npu_sess, npu_shutdown = init_resource()"
_END = ("shutdown_resource(npu_sess, npu_shutdown)", "close_session(npu_sess)")
_ENDING = " and ".join(_END)
_USES = ("init_resource", "shutdown_resource", "close_session")


class _Training(NamedTuple):
    """The block that holds the whole training, the condition under which Horovod starts there, and its indentation."""

    body: ast.Module | ast.FunctionDef | ast.If
    condition: str = ""
    indent: str = ""


def turn_init(context: Context, call: ast.Call, started: list[ast.Call], ended: list[ast.Call]) -> Turn:
    """Start the NPU's resources where Horovod starts, and end them where the training does.

    Args:
        context: the file.
        call: the call of ``hvd.init``.
        started: all such calls in the file.
        ended: the calls of ``hvd.shutdown`` in it.
    """
    names = context.names
    statement = names.parents.get(call)
    if call.args or call.keywords or not isinstance(statement, ast.Expr) or not _is_whole(context, statement):
        return Finding(call, f"not a plain statement. Write {_INIT} here and {_ENDING} at the end")
    edits = [rename(context.source, call, _INIT)]
    if ended:
        return Turned(edits, ("init_resource",))
    training = _training(context, statement)
    if training is not None:
        others = [_training(context, names.parents[other]) for other in started if other is not call]
        if any(other is not None and other.body is training.body for other in others):
            return Finding(
                call,
                f"Horovod starts more than once. Write {_INIT} once and {_ENDING} at the end",
            )
        lines = [training.indent + line for line in _END]
        if training.condition:
            lines.insert(0, f"if {training.condition}:")
        end = at_end(context, training.body, *lines)
        if end:
            return Turned(edits + end, _USES)
    return Turned(
        edits,
        ("init_resource",),
        note=f"the end of the training is not known. Write {_ENDING} there",
    )


def turn_shutdown(context: Context, call: ast.Call, started: list[ast.Call]) -> Turn:
    """End the NPU's resources where Horovod ends.

    Args:
        context: the file.
        call: the call of ``hvd.shutdown``.
        started: the calls of ``hvd.init`` in the file.
    """
    names, source = context.names, context.source
    statement = names.parents.get(call)
    together = len(started) == 1 and _function(names, started[0]) is _function(names, call)
    if (
        not together
        or not isinstance(statement, ast.Expr)
        or call.args
        or call.keywords
        or not _is_whole(context, statement)
    ):
        return Finding(call, f"this end cannot be converted. Write {_ENDING} with the results of init_resource()")
    start = source.start(statement)
    indent = source.text[source.line_start(start) : start]
    between = source.newline + indent if not indent.strip() else "; "
    return Turned([rename(source, call, between.join(_END))], _USES[1:])


def _is_whole(context: Context, statement: ast.Expr) -> bool:
    """Return True if an expression statement is not in parentheses, which cannot hold a statement."""
    return context.source.segment(statement) == context.source.segment(statement.value)


def _training(context: Context, statement: ast.AST) -> _Training | None:
    """Return the training for which a statement starts Horovod, or None if it is not known."""
    names, source = context.names, context.source
    condition = indent = ""
    child: ast.AST = statement
    for parent in names.ancestors(statement):
        if isinstance(parent, ast.Module) or is_main_guard(parent):
            return _Training(parent, condition, indent)  # type: ignore[arg-type]
        if isinstance(parent, ast.FunctionDef):
            return _Training(parent, condition, indent) if _is_main(context, parent) else None
        plain = (
            isinstance(parent, ast.If)
            and any(child is s for s in parent.body)
            and all(isinstance(n, (ast.Name, ast.Attribute, ast.expr_context)) for n in ast.walk(parent.test))
        )
        if not plain or condition or source.lines(child)[0] == source.lines(parent)[0]:
            return None
        condition = source.segment(parent.test)  # type: ignore[attr-defined]
        start, outer = source.start(child), source.start(parent)
        indent = source.text[source.line_start(start) : start][outer - source.line_start(outer) :]
        child = parent
    return None


def _is_main(context: Context, function: ast.FunctionDef) -> bool:
    """Return True if a function is the main function of the script.

    It is named main, passed to the run function of an app, or nothing follows its call.
    """
    names = context.names
    if function.name == "main":
        return True
    called = [c for c in names.calls if isinstance(c.node.func, ast.Name) and c.node.func.id == function.name]
    if not called:
        return any(
            (context.resolve(c.node.func, c.where) or "").endswith("app.run")
            and any(
                isinstance(v, ast.Name) and v.id == function.name
                for v in c.node.args + [k.value for k in c.node.keywords]
            )
            for c in names.calls
        )
    for call in called:
        statement = call.where.statement
        if statement is None or call.where.scope is not names.module or block_of(names, statement)[-1] is not statement:
            return False
    return True


def _function(names: Names, node: ast.AST) -> ast.AST | None:
    return next((p for p in names.ancestors(node) if isinstance(p, (ast.FunctionDef, ast.Module))), None)
