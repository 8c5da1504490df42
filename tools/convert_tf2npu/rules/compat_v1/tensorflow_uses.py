"""The imports and uses of TensorFlow in a file."""

from __future__ import annotations

import ast
from typing import Iterator, NamedTuple

from ...semantics.model import Binding, Scope, Where
from ...semantics.module_index import Names
from ...tf_api.v1_fate import NEW, NOWHERE, V1, fate_of_v1_name, is_compat_v1_module, name_below_tensorflow

# Parts of the package that can be imported although tf.compat.v1 does not have them.
NOT_IN_V1 = frozenset({"python", "core", "examples", "tools", "compiler", "contrib", "compat"})


class Use(NamedTuple):
    """A dotted name of TensorFlow in an expression.

    Attributes:
        root: its first part.
        whole: the whole dotted name.
        where: its place.
        name: what it refers to.
    """

    root: ast.Name
    whole: ast.expr
    where: Where
    name: str


class Import(NamedTuple):
    """A binding of a local name to something of TensorFlow by an import statement."""

    scope: Scope
    local: str
    binding: Binding

    @property
    def is_bare(self) -> bool:
        """True for ``import tensorflow`` and ``import tensorflow.keras``, which bind the root itself."""
        return isinstance(self.binding.node, ast.Import) and any(
            a.asname is None and a.name.partition(".")[0] == self.local for a in self.binding.node.names
        )

    @property
    def is_bare_part(self) -> bool:
        """True for ``import tensorflow.keras``, with or without ``import tensorflow``."""
        return self.is_bare and any(
            a.asname is None and a.name.startswith("tensorflow.")
            for a in self.binding.node.names  # type: ignore[union-attr]
        )


def tensorflow_uses(names: Names) -> Iterator[Use]:
    """Yield the dotted names of TensorFlow in a file, each in its full length."""
    for root, where in names.reads:
        whole: ast.expr = root
        parent = names.parents.get(whole)
        while isinstance(parent, ast.Attribute) and parent.value is whole:
            whole, parent = parent, names.parents.get(parent)
        name = names.spelled_name(whole, where)
        if name and name.partition(".")[0] == "tensorflow":
            yield Use(root, whole, where, name)


def tensorflow_imports(names: Names, excluded_parts: frozenset[str]) -> Iterator[Import]:
    """Yield the imports of TensorFlow in a file, except those of some parts of it and those with a version."""
    for scope in scopes_with_statements(names):
        for local, bindings in scope.bindings.items():
            if any(b.kind == "import" and b.target.startswith(V1) for b in bindings):
                continue  # the file chooses the version itself
            for binding in bindings:
                if (
                    binding.kind == "import"
                    and binding.target.partition(".")[0] == "tensorflow"
                    and name_below_tensorflow(binding.target).partition(".")[0] not in excluded_parts
                ):
                    yield Import(scope, local, binding)


def scopes_with_statements(names: Names) -> list[Scope]:
    """Return the scopes of a file that contain statements."""
    return list({id(where.scope): where.scope for where in names.places.values()}.values())


def call_or_expression(names: Names, node: ast.expr) -> ast.expr:
    """Return the call of an expression, or the expression if it is not called."""
    parent = names.parents.get(node)
    return parent if isinstance(parent, ast.Call) and parent.func is node else node


def is_liftable_alias(alias: ast.alias, module: str = "") -> bool:
    """Return True if tf.compat.v1 has a name in an import statement, too.

    Args:
        alias: the name.
        module: the module of ``from module import``; empty for ``import``.
    """
    name = module + "." + alias.name if module else alias.name
    return (
        name.partition(".")[0] == "tensorflow"
        and name_below_tensorflow(name).partition(".")[0] not in NOT_IN_V1
        and (fate_of_v1_name(name) not in (NEW, NOWHERE) if module else is_compat_v1_module(name))
    )
