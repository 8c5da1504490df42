"""Callbacks of Keras that decide something in a batch, such as to save after the last one of an epoch."""

from __future__ import annotations

import ast
import re
from typing import Iterator

from ..project.context import Context
from ..semantics.module_index import Names
from ..syntax.expressions import last_name
from .surrounding_files import names_of_surrounding_files

_HOOKS = frozenset({"on_batch_begin", "on_batch_end", "on_train_batch_begin", "on_train_batch_end"})
_HOOK = re.compile(rb"\bon_(?:train_)?batch_(?:begin|end)\b")
_DECISIONS = (ast.Compare, ast.If, ast.IfExp, ast.While, ast.And)
_EFFECTS = (
    *(ast.Assert, ast.AsyncFunctionDef, ast.Await, ast.Delete, ast.Global, ast.Import, ast.ImportFrom, ast.Nonlocal),
    *(ast.Raise, ast.Yield, ast.YieldFrom),
)
_CALLBACKS = ("tensorflow.keras.callbacks.Callback", "keras.callbacks.Callback")
_REPORTING = re.compile(
    r"(?:abs|dict|enumerate|float|format|int|len|list|max|min|print|range|round|sorted|str|sum|super|zip)|"
    r"(?:time|datetime|logging|absl\.logging|math)\.[\w.]+|tensorflow\.print|sys\.stdout\.(?:write|flush)|"
    r"numpy\.(?:array|exp|float32|float64|log|max|mean|median|min|round|sqrt|std|sum)"
)
_READING = frozenset("copy debug error format get info items join keys numpy total_seconds values warning".split())
_KEEPING = frozenset({"append", "clear", "extend", "update"})


def may_batch_hooks_decide(context: Context) -> bool:
    """Return True if a callback in the files around a file may do in one batch of training what it omits in others.

    A callback decides nothing if nothing in these files names it, or if it only reports.
    """
    return any(
        any(isinstance(node, _DECISIONS) for node in ast.walk(hook))
        and not _is_unused(context, names, owner)
        and not _only_reports(context, names, hook if owner is None else owner)
        for names in names_of_surrounding_files(context, lambda raw: bool(_HOOK.search(raw)))
        for hook, owner in _hooks(names)
    )


def _hooks(names: Names) -> Iterator[tuple[ast.AST, ast.ClassDef | None]]:
    """Yield the methods of callbacks with their classes, and what ``LambdaCallback`` is given for them."""
    for node in ast.walk(names.tree):
        if isinstance(node, ast.FunctionDef) and node.name in _HOOKS:
            parent = names.parents.get(node)
            yield node, parent if isinstance(parent, ast.ClassDef) else None
        elif isinstance(node, ast.keyword) and node.arg in _HOOKS:
            function = names.definition(node.value, names.place(node.value))
            yield node.value if function is None else function.node, None


def _is_unused(context: Context, names: Names, owner: ast.ClassDef | None) -> bool:
    """Return True if no word of the files around a file names a class but its definition."""
    if owner is None:
        return False
    word = re.compile(rb"\b%s\b" % owner.name.encode())
    others = names_of_surrounding_files(context, lambda raw: bool(word.search(raw)))[1:]
    texts = [context.source.text.encode(), *(names.project.raw(file.path) for file in others)]
    return sum(len(word.findall(text)) for text in texts) == 1


def _only_reports(context: Context, names: Names, code: ast.AST) -> bool:
    """Return True if a callback or a function only prints, and keeps values on which no other code decides."""
    if isinstance(code, ast.ClassDef):
        bases = [names.resolve(base, names.places[code]) for base in code.bases]
        if code.decorator_list or len(bases) != 1 or bases[0] not in _CALLBACKS:
            return False
    inside = set(ast.walk(code))
    kept: set[str] = set()
    for node in inside:
        if isinstance(node, _EFFECTS) or isinstance(node, ast.Call) and not _is_reporting_call(names, node):
            return False
        changed = _changed_object(node)
        if changed is not None and not (_is_own(changed) or changed is node and isinstance(node, ast.Name)):
            return False
        kept.update([changed.attr] if isinstance(changed, ast.Attribute) and not _is_in_init(names, node) else ())
    return not any(
        isinstance(part, ast.Attribute) and part.attr in kept
        for file in names_of_surrounding_files(context, lambda raw: any(word.encode() in raw for word in kept))
        for node in ast.walk(file.tree)
        if isinstance(node, _DECISIONS) and node not in inside
        for part in ast.walk(getattr(node, "test", node))
    )


def _is_reporting_call(names: Names, call: ast.Call) -> bool:
    """Return True if a call prints, logs or computes, or keeps a value."""
    function, where = call.func, names.place(call)
    name = names.resolve(function, where)
    if name is None and isinstance(function, ast.Name) and names.bindings_of_name(function.id, where) is None:
        name = function.id
    if name is not None and _REPORTING.fullmatch(name):
        return True
    if not isinstance(function, ast.Attribute):
        return False
    above = isinstance(function.value, ast.Call) and last_name(function.value.func) == "super"
    return above or function.attr in _READING | _KEEPING


def _changed_object(node: ast.AST) -> ast.expr | None:
    """Return the variable, attribute or container that a node changes, or None."""
    if isinstance(node, (ast.Attribute, ast.Name, ast.Subscript)) and isinstance(node.ctx, ast.Store):
        return node.value if isinstance(node, ast.Subscript) else node
    function = node.func if isinstance(node, ast.Call) else None
    return function.value if isinstance(function, ast.Attribute) and function.attr in _KEEPING else None


def _is_own(node: ast.expr) -> bool:
    """Return True for an attribute of a callback other than those that Keras gives it."""
    owner = node.value if isinstance(node, ast.Attribute) and node.attr not in ("model", "params") else None
    return isinstance(owner, ast.Name) and owner.id == "self"


def _is_in_init(names: Names, node: ast.AST) -> bool:
    return any(isinstance(around, ast.FunctionDef) and around.name == "__init__" for around in names.ancestors(node))
