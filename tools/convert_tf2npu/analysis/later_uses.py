"""Find the names, calls and imports of a program that TensorFlow 2.6 lacks."""

from __future__ import annotations

import ast
import functools
from typing import Iterator, NamedTuple

from ..project.context import Context
from ..semantics.model import Binding, Call, Where
from ..semantics.module_index import Names
from ..semantics.tf_types import Type
from ..syntax.source import Source
from ..syntax.words import words_in
from ..tf_api.canonical_names import canonical_name
from ..tf_api.forms_in_26 import (
    ARGUMENT_NAMES,
    BACKPORTS,
    DEFAULTS,
    MEMBERS,
    MOVED,
    OF_IMAGES,
    OPTIMIZER_ARGUMENTS,
    WITHOUT,
)
from ..tf_api.name_tables import ARGUMENTS_AFTER_26, NAMES_AFTER_26
from ..tf_api.private_aliases import public_name
from ..tf_api.v1_fate import name_below_tensorflow
from .device_placement import belongs_to_test
from .keras_methods import is_keras_method

_ROOT = "tensorflow."
_METHODS = {
    kind: frozenset(name.rpartition(".")[2] for name in NAMES_AFTER_26 if name.startswith(owner + "."))
    for kind, owner in ((Type.DATASET, "data.Dataset"), (Type.MODEL, "keras.Model"))
}
APPLY = "keras.Optimizer.apply"
_ALL_METHODS = frozenset({"apply"}).union(*_METHODS.values())
_TESTS = ("version", "hasattr", "getattr")
_WORDS = frozenset({n.rpartition(".")[2] for n in [*MOVED, *BACKPORTS]} | {"legacy", "experimental"})
_WORDS_IN_BYTES = frozenset(word.encode("ascii") for word in _WORDS)


def calls_lacking_in_26(context: Context) -> list[tuple[Call, str]]:
    """Return the calls of what TensorFlow 2.6 lacks, each with the name, or the name and argument, that it lacks."""
    return context.once(_calls_lacking_in_26)


def _calls_lacking_in_26(context: Context) -> list[tuple[Call, str]]:
    lacking_calls = []
    for call in context.names.calls:
        name = context.called_names.get(call.node, "")
        if name.startswith(_ROOT):
            lacking = _name_or_argument_lacking_in_26(call, name, context.names)
        else:
            lacking = (
                _method_lacking_in_26(context, call) if getattr(call.node.func, "attr", "") in _ALL_METHODS else ""
            )
        if lacking and not _is_in_test_or_version_branch(context.names, context.source, call.node):
            lacking_calls.append((call, lacking))
    return lacking_calls


def star_imports_of_modules_lacking_in_26(context: Context) -> list[tuple[ast.AST, str]]:
    """Return the star imports of modules that TensorFlow 2.6 lacks, each with the name of the module."""
    stars = [(star.node, _name_lacking_in_26(canonical_name(star.module))) for star in context.names.stars]
    return [
        (node, name)
        for node, name in stars
        if name and not _is_in_test_or_version_branch(context.names, context.source, node)
    ]


def _is_private(names: Names, call: Call) -> bool:
    """Return True for the call of a name that is imported from a private module of TensorFlow, of whichever version."""
    root = call.node.func
    while isinstance(root, ast.Attribute):
        root = root.value
    bindings = names.bindings_of_name(root.id, call.where) if isinstance(root, ast.Name) else None
    return any(public_name(binding.target) != binding.target for binding in bindings or () if binding.kind == "import")


def _is_in_test_or_version_branch(names: Names, source: Source, node: ast.AST) -> bool:
    """Return True for code of tests, and code that runs only with some versions of TensorFlow."""
    for parent in names.ancestors(node):
        if isinstance(parent, ast.Try):
            return True
        if isinstance(parent, (ast.If, ast.IfExp)) and any(
            word in source.segment(parent.test).lower() for word in _TESTS
        ):
            return True
    return belongs_to_test(names, node)


class LaterUse(NamedTuple):
    """A dotted name after 2.6 in an expression.

    Attributes:
        chain: its parts, from the first word to the whole.
        name: the name after 2.6, which a table has.
        rest: what follows it in the whole.
        binding: the import of the first word, or None.
        depth: the place of the part of the chain that spells the name.
        is_imported: True if the import brings the name, or what follows it.
    """

    chain: list[ast.expr]
    name: str
    rest: str
    binding: Binding | None
    depth: int
    is_imported: bool


def later_uses(names: Names, source: Source) -> Iterator[LaterUse]:
    """Yield the uses of names after 2.6 that TensorFlow 2.6 has in another form."""
    if _WORDS_IN_BYTES.isdisjoint(words_in(source.raw)):
        return
    imported = {
        alias.asname or alias.name.partition(".")[0]
        for statement in names.places
        if isinstance(statement, (ast.Import, ast.ImportFrom))
        for alias in statement.names
    }
    for root, where in names.reads:
        if root.id not in imported and not names.stars:
            continue
        is_alone = not isinstance(names.parents.get(root), ast.Attribute)
        if is_alone and not names.stars and root.id not in _WORDS:
            continue
        bindings = names.bindings_of_name(root.id, where) or []
        if any(bound.kind != "import" for bound in bindings) or len({canonical_name(b.target) for b in bindings}) > 1:
            continue
        binding = bindings[0] if bindings else None
        if binding is not None and public_name(binding.target) != binding.target:
            continue
        chain: list[ast.expr] = [root]
        while isinstance(names.parents.get(chain[-1]), ast.Attribute):
            chain.append(names.parents[chain[-1]])  # type: ignore[arg-type]
        spelled = names.resolve(chain[-1], where) or ""
        name = _table_name_in(spelled) if spelled.startswith(_ROOT) else ""
        if not name or _is_in_test_or_version_branch(names, source, root):
            continue
        rest = name_below_tensorflow(spelled)[len(name) + 1 :]
        depth = len(chain) - 1 - (rest.count(".") + 1 if rest else 0)
        is_imported = binding is not None and f"{name_below_tensorflow(canonical_name(binding.target))}.".startswith(
            f"{name}."
        )
        if depth >= 0:
            yield LaterUse(chain, name, rest, binding, depth, is_imported)


@functools.lru_cache(maxsize=4096)
def _table_name_in(name: str) -> str:
    """Return the name of a table that a dotted name of TensorFlow is, or begins with; "" if none."""
    parts = name_below_tensorflow(name).split(".")
    return next(
        (
            candidate
            for candidate in (".".join(parts[:end]) for end in range(len(parts), 0, -1))
            if candidate in MOVED or candidate in BACKPORTS
        ),
        "",
    )


def has_form_in_26(names: Names, use: LaterUse) -> bool:
    """Return True if the form of 2.6 has what a use needs: the member of a module, the arguments of a call."""
    backport = BACKPORTS.get(use.name, "")
    if backport in MEMBERS:
        parts = use.rest.split(".")
        if parts[0] == "image":
            return parts[-1] in OF_IMAGES
        return parts[-1] in MEMBERS[backport] and (len(parts) == 1 or parts[0] in ("nn", "numpy"))
    call = names.parents.get(use.chain[-1])
    is_called = not use.rest and isinstance(call, ast.Call) and call.func is use.chain[-1]
    given = {keyword.arg for keyword in call.keywords} if is_called else set()  # type: ignore[union-attr]
    if use.name.startswith(("keras.optimizers.legacy", "keras.optimizers.experimental")) and not backport:
        return is_called and given <= OPTIMIZER_ARGUMENTS
    return given.isdisjoint(WITHOUT.get(use.name, ())) and (is_called or use.name not in DEFAULTS)


class LaterImport(NamedTuple):
    """A name after 2.6 that a statement imports."""

    alias: ast.alias
    binding: Binding
    name: str


def replaceable_imports_after_26(
    names: Names, source: Source, uses: list[LaterUse]
) -> dict[ast.ImportFrom, list[LaterImport]]:
    """Return the imports of names after 2.6 all of whose uses have a form in 2.6, by their statements."""
    unfit = {id(use.binding) for use in uses if use.binding is not None and not has_form_in_26(names, use)}
    by_statement: dict[ast.ImportFrom, list[LaterImport]] = {}
    for scope in {id(where.scope): where.scope for where in names.places.values()}.values():
        for local, bindings in scope.bindings.items():
            for binding in bindings:
                node = binding.node
                if (
                    binding.kind != "import"
                    or not isinstance(node, ast.ImportFrom)
                    or node.level
                    or public_name(binding.target) != binding.target
                    or id(binding) in unfit
                ):
                    continue
                name = (
                    name_below_tensorflow(canonical_name(binding.target))
                    if canonical_name(binding.target).startswith(_ROOT)
                    else ""
                )
                if (
                    len(bindings) > 1
                    or name not in MOVED
                    and name not in BACKPORTS
                    or _is_in_test_or_version_branch(names, source, node)
                ):
                    continue
                alias = next(a for a in node.names if (a.asname or a.name) == local)
                by_statement.setdefault(node, []).append(LaterImport(alias, binding, name))
    return by_statement


@functools.lru_cache(maxsize=4096)
def _name_lacking_in_26(name: str) -> str:
    """Return the name, or a module or class of it, that TensorFlow 2.6 lacks; "" if it has them."""
    name = name_below_tensorflow(name)
    above = [name[:end] for end, char in enumerate(name) if char == "."]
    return next((part for part in [*above, name] if part in NAMES_AFTER_26), "")


def _name_or_argument_lacking_in_26(call: Call, name: str, names: Names) -> str:
    """Return the name, or the name and argument, that TensorFlow 2.6 lacks; "" if it has them."""
    newer = _name_lacking_in_26(name)
    if newer and not _is_private(names, call):
        return newer
    name = name_below_tensorflow(name)
    if name not in ARGUMENTS_AFTER_26 and name not in ARGUMENT_NAMES:
        return ""
    more = {*ARGUMENTS_AFTER_26.get(name, "").split(), *ARGUMENT_NAMES.get(name, ())}
    return next((f"{name}.{keyword.arg}" for keyword in call.node.keywords if keyword.arg in more), "")


def _method_lacking_in_26(context: Context, call: Call) -> str:
    """Return the method of a dataset or a Keras model that TensorFlow 2.6 lacks."""
    function = call.node.func
    assert isinstance(function, ast.Attribute)
    kind = context.types.type_of(function.value, call.where)
    if kind in _METHODS and function.attr in _METHODS[kind]:  # type: ignore[index]
        is_own = context.names.definition(function, call.where) is not None or _may_be_method_of_project(
            context, function, call.where
        )
        if not is_own and (kind == Type.DATASET or is_keras_method(context, call)):
            return f"{'data.Dataset' if kind == Type.DATASET else 'keras.Model'}.{function.attr}"
    if function.attr == "apply":
        value = function.value
        of_model = isinstance(value, ast.Attribute) and value.attr == "optimizer"
        is_one = of_model and _has_attribute_of_keras_model(context, value.value, "optimizer", call.where)  # type: ignore[attr-defined]
        return APPLY if is_one or kind == Type.KERAS_OPTIMIZER else ""
    if function.attr in _METHODS[Type.MODEL] and _has_attribute_of_keras_model(
        context, function.value, function.attr, call.where
    ):
        return f"keras.Model.{function.attr}"
    return ""


def _has_attribute_of_keras_model(context: Context, value: ast.expr, attribute: str, where: Where) -> bool:
    """Return True for an object of a class of the project that has an attribute from a model of Keras."""
    owner = context.names.owner_class(value, where)
    if owner is None or owner.names.attribute_bindings(owner.node, attribute):
        return False
    bases = owner.names.outside_ancestors(owner.node)
    return not bases.isdisjoint({"tensorflow.keras.Model", "tensorflow.keras.Sequential"})


def _may_be_method_of_project(context: Context, method: ast.Attribute, where: Where) -> bool:
    """Return True if the object is a parameter, and a class of the project has a method of this name."""
    bindings = context.names.bindings_of_name(method.value.id, where) if isinstance(method.value, ast.Name) else None
    project = context.names.project
    if not any(binding.kind == "arg" for binding in bindings or ()):
        return False
    definition = f"def {method.attr}(".encode()
    return any(definition in project.raw(path) for path in project.paths)
