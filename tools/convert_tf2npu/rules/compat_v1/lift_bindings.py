"""The names of a file after it is lifted to tf.compat.v1."""

from __future__ import annotations

import ast
import re

from ...semantics.model import Binding
from ...semantics.module_index import Names
from ...syntax.source import Edit
from ...tf_api.v1_fate import V1, compat_v1_spelling, fate_of_v1_name, is_compat_v1_module, name_below_tensorflow
from .tensorflow_uses import NOT_IN_V1, scopes_with_statements

_DOTTED = re.compile(r"(?<![\w.])([A-Za-z_]\w*)((?:\.\w+)+)")


def rebind_lifted_names(names: Names, statements: list[ast.stmt], added: list[ast.stmt]) -> None:
    """Change the bindings of a file to those after lifting.

    Args:
        names: name resolution in the file.
        statements: the imports that import from tf.compat.v1 instead.
        added: the imports after which ``tf`` is imported.
    """
    chosen = set(statements)

    def binding_after_lifting(binding: Binding) -> Binding:
        target = binding.target
        whole = target == "tensorflow" or isinstance(binding.node, ast.ImportFrom) or is_compat_v1_module(target)
        is_chosen = (
            binding.node in chosen
            and target.partition(".")[0] == "tensorflow"
            and name_below_tensorflow(target).partition(".")[0] not in NOT_IN_V1
        )
        return binding._replace(target=compat_v1_spelling(target)) if is_chosen and whole else binding

    names.forget_resolved_names()
    for scope in scopes_with_statements(names):
        for local, bindings in scope.bindings.items():
            scope.bindings[local] = [binding_after_lifting(b) for b in bindings]
    names.stars = [s._replace(module=compat_v1_spelling(s.module)) if s.node in chosen else s for s in names.stars]
    for statement in added:
        names.module.bindings.setdefault("tf", []).append(Binding("import", names.places[statement], statement, V1))


def edit_after_lifting(names: Names, edit: Edit, node: ast.AST) -> Edit:
    """Return an edit of another rule at a node with the names that the file has after lifting."""
    if names.lift is None or not edit.new:
        return edit
    where = next((names.places[n] for n in (node, *names.ancestors(node)) if n in names.places), None)

    def lifted_match(match: re.Match[str]) -> str:
        root, rest = match.group(1), match.group(2)
        bound = (names.bindings_of_name(root, where) if where else names.module.bindings.get(root)) or []
        bound = [b for b in bound if b.node is node] or bound  # after an import it is the binding of that import
        if bound and all(b.target == V1 for b in bound) and rest.startswith(".compat.v1."):
            return root + rest[len(".compat.v1") :]
        if (
            names.by_name
            and not rest.startswith(".compat.")
            and any(b.target == "tensorflow" for b in bound)
            and fate_of_v1_name("tensorflow" + rest) in names.by_name
        ):
            return root + ".compat.v1" + rest
        return match.group()

    return edit._replace(new=_DOTTED.sub(lifted_match, edit.new))
