"""Plan the rewrites of tf.contrib names in a lifted file, and list the names that need a manual change.

An imported or assigned module of tf.contrib is replaced by one other module if that has all names that the file uses.
Otherwise each name is replaced on its own, and the import is removed once nothing needs it.
"""

from __future__ import annotations

import ast
from typing import NamedTuple, Sequence

from ....analysis.v2_behavior import place_of_switch
from ....rewrite.call_edits import edit_to_rename, edit_to_rename_after_root
from ....rewrite.spans import Spans
from ....semantics.model import Where
from ....syntax.source import Edit
from ....syntax.suppressions import is_suppressed_at
from ....tf_api.v1_fate import V1, needs_compat_v1
from ...base import Change, Context, Message
from .contrib_uses import (
    CODE,
    TENSORFLOW,
    ContribBinding,
    ContribUse,
    contrib_bindings,
    contrib_uses,
    is_binding_used_by_other_files,
)
from .import_lines import edit_to_import_from_elsewhere, import_statement_of
from .replacements import replacement_of, shared_module_of_replacements


class Remaining(NamedTuple):
    """A name below ``tf.contrib`` that is not converted, and its node. ``has_comment``: only a comment prevents it."""

    node: ast.AST
    name: str
    has_comment: bool = False


class Plan(NamedTuple):
    """The rewrites of a file, the names not converted, and the calls and expressions that are converted."""

    changes: tuple[Change, ...] = ()
    remaining: tuple[Remaining, ...] = ()
    moved: frozenset[ast.AST] = frozenset()


class _Moved(NamedTuple):
    """The decision for a site: the new binding of its name (None: as before), the uses converted and not converted."""

    line: str | None
    moved: Sequence[ContribUse] = ()
    stay: Sequence[ContribUse] = ()


def plan_contrib_rewrites(context: Context, replaced: Spans) -> Plan:
    """Return the plan for a file.

    Args:
        context: the file.
        replaced: the parts of its text that other rewrites replace.
    """
    known = contrib_bindings(context)
    uses = contrib_uses(context, known, replaced)
    changes: list[Change] = []
    remaining: list[Remaining] = []
    moved = {used.call for used in uses if used.site is None and used.is_movable}
    lines: dict[ast.stmt, dict[str, str]] = {}
    for used in uses:
        if used.site is None:
            _append_plan_of_full_name(context, used, known, changes, remaining)
    for site in known:
        its = [used for used in uses if used.site is site]
        result = _decide_move(context, site, its)
        changes += [_change_to_convert_use(used, _edits_to_convert_use(context, used)) for used in result.moved]
        moved.update(used.call for used in (result.moved if result.line is None else its))
        if result.line is None:
            remaining.append(
                Remaining(site.statement, site.name, context.moves_contrib and _has_comment(context, site.statement))
            )
            remaining += [
                Remaining(used.call, used.name, used.has_comment) for used in result.stay if not used.is_movable
            ]
        elif isinstance(site.statement, ast.Assign) and result.line:
            changes.append(
                Change(
                    site.statement,
                    Message("tf.contrib.{0} replaced by tf.{1}", site.name, result.line),
                    (_edit_to_replace_after_tf(context, site.statement.value, result.line),),
                )
            )
        else:
            lines.setdefault(site.statement, {})[site.local] = result.line
    for statement, its_lines in lines.items():
        changes.append(
            Change(
                statement,
                "imported from outside tf.contrib"
                if any(its_lines.values())
                else "unused import of tf.contrib removed",
                (edit_to_import_from_elsewhere(context.source, context.names, statement, its_lines),),
            )
        )
    return Plan(tuple(changes), tuple(remaining), frozenset(moved))


def is_call_converted(context: Context, call: ast.Call) -> bool:
    """Return True if a call of tf.contrib is converted to its replacement."""
    return context.moves_contrib and context.names.lift is not None and call in context.once(_converted_nodes)


def _converted_nodes(context: Context) -> frozenset[ast.AST]:
    return plan_contrib_rewrites(context, Spans()).moved


def _append_plan_of_full_name(
    context: Context,
    use: ContribUse,
    bindings: Sequence[ContribBinding],
    changes: list[Change],
    remaining: list[Remaining],
) -> None:
    """Plan a use that starts with TensorFlow: ``tf.contrib.rnn.LSTMCell`` becomes ``tf.nn.rnn_cell.LSTMCell``."""
    if _tensorflow_root(context, use.use.whole, use.use.where) is None:
        return  # its first name has a site of its own
    if use.is_movable:
        changes.append(_change_to_convert_use(use, _edits_to_convert_use(context, use)))
        return
    parent = context.names.parents.get(use.use.whole)
    if not any(site.statement is parent for site in bindings):
        remaining.append(Remaining(use.call, use.name, use.has_comment))


def _decide_move(context: Context, binding: ContribBinding, uses: Sequence[ContribUse]) -> _Moved:
    source, statement = context.source, binding.statement
    if not context.moves_contrib or is_suppressed_at(source, statement, CODE) or _has_comment(context, statement):
        return _Moved(None, (), uses)
    shared = is_binding_used_by_other_files(context, binding)
    replacement = replacement_of(binding.name)
    if replacement is not None:
        line = import_statement_of(replacement.name, binding.local)
        if line and all(used.is_movable for used in uses) and (replacement.is_plain or not shared):
            return _Moved(line, [used for used in uses if used.arguments])
    elif not shared:
        line = _import_of_shared_module(context, binding, uses)
        if line:
            return _Moved(line)
    moved = [used for used in uses if used.is_movable and _local_name_of_tensorflow(context, used.use.where)]
    stay = [used for used in uses if used not in moved]
    if uses and not shared:
        line = _import_of_shared_module(context, binding, stay)
        if line or not stay:
            return _Moved(line, moved)
    return _Moved(None, moved, stay)


def _has_comment(context: Context, statement: ast.stmt) -> bool:
    source = context.source
    return bool(source.comments(source.start(statement), source.end(statement)))


def _import_of_shared_module(context: Context, binding: ContribBinding, uses: Sequence[ContribUse]) -> str:
    """Return the binding of the local name of a site to the one module that has its uses; "" if there is none."""
    module, statement = _shared_module_of_uses(uses), binding.statement
    if isinstance(statement, ast.Assign):
        return module if _tensorflow_root(context, statement.value, context.names.places[statement]) else ""
    return import_statement_of(module, binding.local) if module else ""


def _shared_module_of_uses(uses: Sequence[ContribUse]) -> str:
    """Return the module that has all used names under the same names; "" if there is none."""
    if not all(
        used.arguments is not None and isinstance(used.part, ast.Attribute) and used.part.value is used.use.root
        for used in uses
    ):
        return ""
    return shared_module_of_replacements(
        (used.part.attr, used.replacement) for used in uses if isinstance(used.part, ast.Attribute)
    )


def _change_to_convert_use(use: ContribUse, edits: list[Edit]) -> Change:
    assert use.replacement is not None
    return Change(use.call, Message("tf.contrib.{0} replaced by tf.{1}", use.name, use.replacement.name), tuple(edits))


def _edits_to_convert_use(context: Context, use: ContribUse) -> list[Edit]:
    """Return the edits that convert a use, unless the binding of its first name converts it."""
    assert use.replacement is not None and use.arguments is not None
    root = _tensorflow_root(context, use.part, use.use.where)
    if root is not None:
        return [_edit_to_replace_after_tf(context, use.part, use.replacement.name, root)] + use.arguments
    line = use.site and replacement_of(use.site.name) and import_statement_of(use.replacement.name, use.site.local)
    if use.part is use.use.root and line:
        return use.arguments
    new = _local_name_of_tensorflow(context, use.use.where) + _suffix_below_tf(context, use.replacement.name)
    return [edit_to_rename(context.source, use.part, new)] + use.arguments


def _edit_to_replace_after_tf(context: Context, node: ast.expr, replacement: str, root: ast.expr | None = None) -> Edit:
    """Return the edit that replaces the name after ``tf`` in an expression."""
    where = context.names.places.get(node)
    if root is None:
        statement = next(p for p in context.names.ancestors(node) if p in context.names.places)
        root = _tensorflow_root(context, node, where or context.names.places[statement])
    assert root is not None
    return edit_to_rename_after_root(context.source, root, node, _suffix_below_tf(context, replacement))


def _suffix_below_tf(context: Context, replacement: str) -> str:
    lifted = context.names.by_name and needs_compat_v1("tensorflow." + replacement)
    return (".compat.v1." if lifted else ".") + replacement


def _tensorflow_root(context: Context, node: ast.expr, where: Where) -> ast.expr | None:
    """Return ``tf`` of ``tf.contrib.rnn``; None if a dotted name does not start with TensorFlow itself."""
    while context.names.spelled_name(node, where) not in TENSORFLOW:
        if not isinstance(node, ast.Attribute):
            return None
        node = node.value
    return node


def _local_name_of_tensorflow(context: Context, where: Where) -> str:
    """Return the local name of TensorFlow at a place; "" if there is none."""
    names = context.names
    wanted = "tensorflow" if names.by_name else V1
    locals_of_tensorflow = [
        local
        for local, bindings in names.module.bindings.items()
        if any(b.kind == "import" and b.target == wanted for b in bindings)
    ]
    known = next(
        (
            local
            for local in sorted(locals_of_tensorflow, key=lambda name: name != "tf")
            if names.spelled_name(ast.Name(local, ast.Load()), where) == wanted
        ),
        "",
    )
    place = place_of_switch(context) if not known and not names.by_name else None
    return place.local if place and not place.is_before else known
