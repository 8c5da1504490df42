"""Callbacks of Keras that decide something in a batch, such as to save after the last one of an epoch."""

from __future__ import annotations

import ast
import re
from typing import Iterator

from ..project.context import Context
from ..semantics.module_index import Names
from .surrounding_files import names_of_surrounding_files

_HOOKS = frozenset({"on_batch_begin", "on_batch_end", "on_train_batch_begin", "on_train_batch_end"})
_HOOK = re.compile(rb"\bon_(?:train_)?batch_(?:begin|end)\b")
_DECISIONS = (ast.Compare, ast.If, ast.IfExp, ast.While, ast.And)


def may_batch_hooks_decide(context: Context) -> bool:
    """Return True if a callback in the files around a file may do in one batch of training what it omits in others."""
    return any(
        isinstance(node, _DECISIONS)
        for names in names_of_surrounding_files(context, lambda raw: bool(_HOOK.search(raw)))
        for hook in _hooks(names)
        for node in ast.walk(hook)
    )


def _hooks(names: Names) -> Iterator[ast.AST]:
    """Yield the methods of callbacks, and the functions and other values that ``LambdaCallback`` is given for them."""
    for node in ast.walk(names.tree):
        if isinstance(node, ast.FunctionDef) and node.name in _HOOKS:
            yield node
        elif isinstance(node, ast.keyword) and node.arg in _HOOKS:
            function = names.definition(node.value, names.place(node.value))
            yield node.value if function is None else function.node
