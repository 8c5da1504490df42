"""Find the uses of tf.contrib in a file, and the statements that bind local names to it."""

from __future__ import annotations

import ast
from typing import NamedTuple, Sequence

from ....rewrite.call_edits import loses_comment
from ....rewrite.spans import Spans
from ....semantics.model import Binding, Scope
from ....syntax.source import Edit
from ....syntax.suppressions import is_suppressed_at
from ....tf_api.v1_fate import V1
from ...base import Context
from ..tensorflow_uses import Use, call_or_expression, tensorflow_uses
from .calls import edits_of_call_arguments
from .replacements import Replacement, canonical_contrib_name, part_with_replacement

CODE = "NPU119"
TENSORFLOW = ("tensorflow", V1)


class ContribBinding(NamedTuple):
    """A statement that binds a local name to ``name`` of tf.contrib."""

    statement: ast.stmt
    scope: Scope
    local: str
    name: str


class ContribUse(NamedTuple):
    """A use of tf.contrib.

    ``part`` is the part of the expression that has a replacement. ``arguments`` are the edits of its call, or None if
    it cannot be converted. ``call`` is the call, or the whole expression. ``site`` binds its first name.
    ``has_comment`` is True if only a comment inside its name or arguments prevents the conversion.
    """

    use: Use
    name: str
    replacement: Replacement | None
    part: ast.expr
    call: ast.expr
    arguments: list[Edit] | None
    site: ContribBinding | None
    has_comment: bool = False

    @property
    def is_movable(self) -> bool:
        """Return True if the use can be converted."""
        return self.replacement is not None and self.arguments is not None and not self.has_comment


def name_below_contrib(spelled: str) -> str | None:
    """Return the name of a dotted name below tf.contrib, "" for tf.contrib itself, and None for all other names."""
    if spelled in ("tensorflow.contrib", V1 + ".contrib"):
        return ""
    return canonical_contrib_name(spelled) or None


def contrib_bindings(context: Context) -> list[ContribBinding]:
    """Return the imports and assignments, except those in a ``try`` statement with a handler."""
    names = context.names
    names_of_contrib: list[ContribBinding] = []
    for scope in {id(where.scope): where.scope for where in names.places.values()}.values():
        for local, bindings in scope.bindings.items():
            for binding in bindings:
                name, statement = _bound_contrib_name(context, binding), binding.where.statement
                if (
                    name is not None
                    and statement is not None
                    and not any(isinstance(p, ast.Try) and p.handlers for p in names.ancestors(statement))
                ):
                    names_of_contrib.append(ContribBinding(statement, scope, local, name))
    return sorted(names_of_contrib, key=lambda site: (site.statement.lineno, site.local))


def _bound_contrib_name(context: Context, binding: Binding) -> str | None:
    if binding.kind == "import":
        return name_below_contrib(binding.target)
    if (
        binding.kind == "value"
        and isinstance(binding.node, (ast.Name, ast.Attribute))
        and isinstance(binding.where.statement, ast.Assign)
        and binding.where.statement.value is binding.node
        and len(binding.where.statement.targets) == 1
    ):
        if part_with_replacement(context.names, binding.node, binding.where) is None:
            return name_below_contrib(context.names.spelled_name(binding.node, binding.where) or "")
    return None


def contrib_uses(context: Context, bindings: Sequence[ContribBinding], replaced: Spans) -> list[ContribUse]:
    """Return the uses, except those that other rewrites replace.

    Args:
        context: the file.
        known: the statements that bind local names.
        replaced: the parts of the text that other rewrites replace.
    """
    source = context.source
    all_uses = []
    for use in tensorflow_uses(context.names):
        start, end = source.start(use.whole), source.end(use.whole)
        if name_below_contrib(use.name) is not None and not replaced.overlaps(start, end, counts_insertions=False):
            all_uses.append(_contrib_use(context, use, bindings))
    return all_uses


def _contrib_use(context: Context, use: Use, bindings: Sequence[ContribBinding]) -> ContribUse:
    names = context.names
    statements = {id(b.where.statement) for b in names.bindings_of_name(use.root.id, use.where) or ()}
    site = next((s for s in bindings if s.local == use.root.id and {id(s.statement)} == statements), None)
    replaceable = part_with_replacement(names, use.whole, use.where)
    if replaceable is None:
        return ContribUse(
            use, name_below_contrib(use.name) or "", None, use.whole, call_or_expression(names, use.whole), None, site
        )
    part, name, replacement = replaceable
    call = call_or_expression(names, part)
    arguments = _argument_edits(context, use, call, replacement)
    source = context.source
    loses = loses_comment(source, arguments or ())
    inside = arguments is not None and bool(source.comments(source.start(part), source.end(part)))
    return ContribUse(use, name, replacement, part, call, None if loses else arguments, site, loses or inside)


def _argument_edits(context: Context, use: Use, call: ast.expr, replacement: Replacement) -> list[Edit] | None:
    source = context.source
    string = context.names.strings.get(use.root)
    if context.names.lift is None or not context.moves_contrib:
        return None  # the file is not lifted, or the rule is not selected
    if (
        string is not None
        and not source.is_position_reliable(use.whole, string)
        or is_suppressed_at(source, call, CODE)
    ):
        return None
    if replacement.is_plain:
        return []
    return edits_of_call_arguments(source, call, replacement) if isinstance(call, ast.Call) else None


def is_binding_used_by_other_files(context: Context, binding: ContribBinding) -> bool:
    """Return True if other files may use the name that a site binds."""
    others = context.names.project.names_imported_from(context.names.path)
    return binding.scope is context.names.module and bool(others & {binding.local, "*"})
