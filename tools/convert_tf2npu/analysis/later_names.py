"""Find what a program uses of TensorFlow after 2.6, and what takes its place.

A name gets another spelling, or a name of ``npu_shim.backports``: where it is imported, or else where it is used.
"""

from __future__ import annotations

import ast
import functools
import re
from typing import Iterator, NamedTuple

from ..project.context import Context
from ..rewrite.call_edits import add_argument, behind_closed, inside, rename, rename_keyword, values_of, wrap
from ..rewrite.npu_imports import BACKPORTS_MODULE, backports_name, name_of_tensorflow, statement_behind
from ..semantics.model import Binding, Call, Where
from ..semantics.module_index import Names
from ..semantics.tf_types import Type
from ..syntax.source import Edit, Source
from ..tf_api.canonical_names import canonical
from ..tf_api.later_names import (
    ARGUMENT_NAMES,
    BACKPORTS,
    DEFAULTS,
    MEMBERS,
    MODEL_METHODS,
    MOVED,
    OF_IMAGES,
    OPTIMIZER_ARGUMENTS,
    TRANSFORMATIONS,
    WITHOUT,
)
from ..tf_api.names_after_26 import ARGUMENTS, NAMES
from ..tf_api.private_aliases import public
from ..tf_api.v1_fate import rest_of
from .device_placement import belongs_to_test
from .keras_methods import is_keras_method
from .tensorflow_version import is_two, may_be_two

_ROOT = "tensorflow."
_IMPORT = re.compile(r"\bimport\b")
_METHODS = {
    kind: frozenset(name.rpartition(".")[2] for name in NAMES if name.startswith(owner + "."))
    for kind, owner in ((Type.DATASET, "data.Dataset"), (Type.MODEL, "keras.Model"))
}
_APPLY = "keras.Optimizer.apply"
_ALL_METHODS = frozenset({"apply"}).union(*_METHODS.values())
_TESTS = ("version", "hasattr", "getattr")
_WORDS = re.compile(
    r"\b(?:{})\b".format(
        "|".join(sorted({n.rpartition(".")[2] for n in [*MOVED, *BACKPORTS]} | {"legacy", "experimental"}))
    )
)


class Conversion(NamedTuple):
    """The conversion of one name, call or import.

    Attributes:
        node: the name, its call, or the import statement.
        name: the name after 2.6.
        edits: the edits.
        uses: the names of npu_shim that they use.
        nodes: the name, call or import statement, and the names that an import brings, where they are used.
    """

    node: ast.AST
    name: str
    edits: tuple[Edit, ...]
    uses: tuple[str, ...]
    nodes: frozenset[ast.AST]


class Conversions(NamedTuple):
    """The conversions of a file.

    Attributes:
        all: the conversions.
        nodes: the names and calls that they convert, where they are used.
        bindings: the ids of the bindings whose imports they change.
        gone: the import statements that they replace as a whole.
    """

    all: tuple[Conversion, ...] = ()
    nodes: frozenset[ast.AST] = frozenset()
    bindings: frozenset[int] = frozenset()
    gone: frozenset[ast.AST] = frozenset()


def conversions(context: Context) -> Conversions:
    """Return the conversions of a file of a program of TensorFlow 2."""
    if not may_be_two(context) or context.names.keras_apart or not is_two(context):
        return Conversions()
    return context.once(_conversions)


def later_calls(context: Context) -> list[tuple[Call, str]]:
    """Return the calls of what TensorFlow 2.6 lacks, each with the name, or the name and argument, that it lacks."""
    return context.once(_later_calls)


def _later_calls(context: Context) -> list[tuple[Call, str]]:
    found_calls = []
    for call in context.names.calls:
        name = context.called.get(call.node, "")
        if name.startswith(_ROOT):
            found = _newer(call, name, context.names)
        else:
            found = _method(context, call) if getattr(call.node.func, "attr", "") in _ALL_METHODS else ""
        if found and not _is_left(context.names, context.source, call.node):
            found_calls.append((call, found))
    return found_calls


def later_stars(context: Context) -> list[tuple[ast.AST, str]]:
    """Return the star imports of modules that TensorFlow 2.6 lacks, each with the name of the module."""
    found = [(star.node, _newer_name(canonical(star.module))) for star in context.names.stars]
    return [(node, name) for node, name in found if name and not _is_left(context.names, context.source, node)]


def _is_private(names: Names, call: Call) -> bool:
    """Return True for the call of a name that is imported from a private module of TensorFlow, of whichever version."""
    root = call.node.func
    while isinstance(root, ast.Attribute):
        root = root.value
    found = names.lookup(root.id, call.where) if isinstance(root, ast.Name) else None
    return any(public(each.target) != each.target for each in found or () if each.kind == "import")


def _is_left(names: Names, source: Source, node: ast.AST) -> bool:
    """Return True for code of tests, and code that runs only with some versions of TensorFlow."""
    for parent in names.ancestors(node):
        if isinstance(parent, ast.Try):
            return True
        if isinstance(parent, (ast.If, ast.IfExp)) and any(
            word in source.segment(parent.test).lower() for word in _TESTS
        ):
            return True
    return belongs_to_test(names, node)


def _conversions(context: Context) -> Conversions:
    found: list[Conversion] = []
    bindings: set[int] = set()
    gone: set[ast.AST] = set()
    if _WORDS.search(context.source.text):
        uses = list(_uses(context.names, context.source))
        for statement, replaced in _imports(context.names, context.source, uses).items():
            edits = _import_edits(context.source, statement, replaced)
            if edits is not None:
                gone.update([statement] if len(replaced) == len(statement.names) else [])
                brought = {id(each.binding) for each in replaced}
                bindings |= brought
                nodes = {use.chain[0] for use in uses if id(use.binding) in brought}
                name = ", ".join(each.name for each in replaced)
                found.append(Conversion(statement, name, edits, (), frozenset([statement, *nodes])))
        for use in uses:
            if not use.is_imported and _fits(context.names, use):
                found += _of_use(context.names, context.source, use)
    for call, name in later_calls(context):
        found += _of_call(context, call, name)
    everywhere = frozenset(node for each in found for node in each.nodes)
    return Conversions(tuple(found), everywhere, frozenset(bindings), frozenset(gone))


def _conversion(
    node: ast.AST, name: str, *edits: Edit, uses: tuple[str, ...] = (), name_node: ast.AST | None = None
) -> Conversion:
    return Conversion(node, name, edits, uses, frozenset([name_node or node]))


class _Use(NamedTuple):
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


def _uses(names: Names, source: Source) -> Iterator[_Use]:
    for root, where in names.reads:
        chain: list[ast.expr] = [root]
        while isinstance(names.parents.get(chain[-1]), ast.Attribute):
            chain.append(names.parents[chain[-1]])  # type: ignore[arg-type]
        if not any(_WORDS.fullmatch(getattr(part, "attr", "") or getattr(part, "id", "")) for part in chain) and (
            not names.stars and len(chain) < 2
        ):
            continue
        spelled = names.resolve(chain[-1], where) or ""
        name = _known(spelled) if spelled.startswith(_ROOT) else ""
        if not name or _is_left(names, source, root):
            continue
        found = names.lookup(root.id, where) or []
        targets = {canonical(each.target) if each.kind == "import" else "" for each in found}
        binding = found[0] if len(targets) == 1 and "" not in targets else None
        if found and binding is None or binding is not None and public(binding.target) != binding.target:
            continue
        rest = rest_of(spelled)[len(name) + 1 :]
        depth = len(chain) - 1 - (rest.count(".") + 1 if rest else 0)
        is_imported = binding is not None and f"{rest_of(canonical(binding.target))}.".startswith(f"{name}.")
        if depth >= 0:
            yield _Use(chain, name, rest, binding, depth, is_imported)


@functools.lru_cache(maxsize=4096)
def _known(name: str) -> str:
    """Return the name of a table that a dotted name of TensorFlow is, or begins with; "" if none."""
    parts = rest_of(name).split(".")
    return next(
        (
            each
            for each in (".".join(parts[:end]) for end in range(len(parts), 0, -1))
            if each in MOVED or each in BACKPORTS
        ),
        "",
    )


def _fits(names: Names, use: _Use) -> bool:
    """Return True if the new name has what a use needs: the member of a module, the arguments of a call."""
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


class _Replaced(NamedTuple):
    """A name of an import statement that is imported from elsewhere."""

    alias: ast.alias
    binding: Binding
    name: str
    line: str


def _imports(names: Names, source: Source, uses: list[_Use]) -> dict[ast.ImportFrom, list[_Replaced]]:
    """Return the imports of names after 2.6, by their statements."""
    unfit = {id(use.binding) for use in uses if use.binding is not None and not _fits(names, use)}
    found: dict[ast.ImportFrom, list[_Replaced]] = {}
    for scope in {id(where.scope): where.scope for where in names.places.values()}.values():
        for local, bindings in scope.bindings.items():
            for binding in bindings:
                node = binding.node
                if (
                    binding.kind != "import"
                    or not isinstance(node, ast.ImportFrom)
                    or node.level
                    or public(binding.target) != binding.target
                    or id(binding) in unfit
                ):
                    continue
                name = rest_of(canonical(binding.target)) if canonical(binding.target).startswith(_ROOT) else ""
                if len(bindings) > 1 or name not in MOVED and name not in BACKPORTS or _is_left(names, source, node):
                    continue
                alias = next(a for a in node.names if (a.asname or a.name) == local)
                module, _, last = (MOVED.get(name) or f".{BACKPORTS[name]}").rpartition(".")
                home = f"{_ROOT}{module}" if module else BACKPORTS_MODULE
                line = f"from {home} import {last}" + (f" as {local}" if local != last else "")
                found.setdefault(node, []).append(_Replaced(alias, binding, name, line))
    return found


def _import_edits(source: Source, node: ast.ImportFrom, replaced: list[_Replaced]) -> tuple[Edit, ...] | None:
    """Return the edits that import names from elsewhere, or None if the place of a name in the text is not clear."""
    lines = [each.line for each in replaced]
    start, end = source.start(node), source.end(node)
    if len(replaced) == len(node.names):
        indent = source.text[source.line_start(start) : start]
        between = source.newline + indent if not indent.strip() else "; "
        return (Edit(start, end, between.join(lines)),)
    text = source.text[start:end]
    keyword = _IMPORT.search(text)  # the name of the module may be spread over blanks and joined lines
    if keyword is None:
        return None
    first, places = keyword.end(), []
    for alias in node.names:
        written = rf"\b{alias.name}\b" + (rf"\s+as\s+{alias.asname}\b" if alias.asname else "")
        match = re.compile(written).search(text, first)
        if match is None:
            return None
        places.append((start + match.start(), start + match.end()))
        first = match.end()
    gone = {each.alias for each in replaced}
    edits = []
    kept = [place for alias, place in zip(node.names, places) if alias not in gone]
    for index, alias in enumerate(node.names):
        if alias not in gone:
            continue
        if places[index][0] > kept[-1][0]:  # the last ones, with the comma before them
            edits.append(Edit(places[index - 1][1], places[index][1], ""))
        else:
            edits.append(Edit(places[index][0], places[index + 1][0], ""))
    return (*edits, statement_behind(source, node, "\n".join(lines)))


def _of_use(names: Names, source: Source, use: _Use) -> Iterator[Conversion]:
    """Yield the conversion of a name where it is used."""
    node, parent = use.chain[use.depth], names.parents.get(use.chain[-1])
    call = parent if isinstance(parent, ast.Call) and parent.func is use.chain[-1] else node
    if use.name in BACKPORTS:
        module = backports_name(names)
        new = rename(source, node, f"{module}.{BACKPORTS[use.name]}")
        yield _conversion(call, use.name, new, uses=(module,), name_node=node)
        return
    path, written = MOVED[use.name].split("."), source.segment(use.chain[0])
    bound = rest_of(canonical(use.binding.target)) if use.binding is not None else None
    have = bound.split(".") if bound else []
    if bound is None or path[: len(have)] != have:
        tensorflow = name_of_tensorflow(names)
        if tensorflow is None:
            return
        have, written = [], tensorflow
    new = rename(source, node, ".".join([written, *path[len(have) :]]))
    default = _default(source, call, use.name) if isinstance(call, ast.Call) else None
    yield _conversion(call, use.name, new, *([default] if default else []), name_node=node)


def _default(source: Source, call: ast.Call, name: str) -> Edit | None:
    """Return the edit that gives an argument its value where the other spelling has another default."""
    before, argument, value = DEFAULTS.get(name, (0, "", ""))
    hides = any(isinstance(each, ast.Starred) for each in call.args) or None in {each.arg for each in call.keywords}
    if not argument or hides or len(call.args) > before or argument in {each.arg for each in call.keywords}:
        return None
    return add_argument(source, call, f"{argument}={value}")


def _of_call(context: Context, call: Call, name: str) -> Iterator[Conversion]:
    """Yield the conversion of a call of a method, or with an argument, that 2.6 lacks."""
    source, node, function = context.source, call.node, call.node.func
    owner, _, method = name.rpartition(".")
    new = ARGUMENT_NAMES.get(owner, {}).get(method)
    if new is not None:
        keyword = next(each for each in node.keywords if each.arg == method)
        yield _conversion(node, name, rename_keyword(source, node, keyword, new))
    if not isinstance(function, ast.Attribute) or function.attr != method:
        return
    end, closing = source.end(function), source.end(node)
    if name == _APPLY:
        if len(node.args) == 2 and not node.keywords and not any(isinstance(each, ast.Starred) for each in node.args):
            at, dot = inside(source, node), behind_closed(source, source.end(function.value))
            edits = Edit(dot, end, ".apply_gradients"), Edit(at, at, "zip(", first=True)
            yield _conversion(node, name, *edits, Edit(closing - 1, closing - 1, ")", closing=True))
        return
    if owner == "keras.Model" and method in MODEL_METHODS and _is_dotted(function.value):
        if not {keyword.arg for keyword in node.keywords} <= MODEL_METHODS[method]:
            return
        module, at = backports_name(context.names), inside(source, node)
        following = ", " if node.args or node.keywords else ""
        receiver = source.segment(function.value) + (following.rstrip() if source.text[at] in "\r\n" else following)
        edits = rename(source, function, f"{module}.{method}"), Edit(at, at, receiver, first=True)
        yield _conversion(node, name, *edits, uses=(module,))
    if owner != "data.Dataset" or context.types.of(function.value, call.where) != Type.DATASET:
        return
    dot = behind_closed(source, source.end(function.value))
    tensorflow = name_of_tensorflow(context.names)
    if method == "save":
        has_arguments = WITHOUT[name].isdisjoint(keyword.arg or "" for keyword in node.keywords) and values_of(node)
        if has_arguments and tensorflow is not None and ")" not in source.text[source.end(function.value) : dot]:
            opening, _ = wrap(source, function.value, f"{tensorflow}.data.experimental.save(", "")
            yield _conversion(node, name, opening, Edit(source.end(function.value), inside(source, node), ", "))
    elif method == "rebatch":
        yield _conversion(node, name, Edit(dot, end, ".unbatch().batch"))
    elif method in TRANSFORMATIONS and tensorflow is not None:
        at, made = inside(source, node), f"{tensorflow}.data.experimental.{TRANSFORMATIONS[method]}("
        edits = Edit(dot, end, ".apply"), Edit(at, at, made, first=True)
        yield _conversion(node, name, *edits, Edit(closing, closing, ")", closing=True))


def _is_dotted(node: ast.expr) -> bool:
    """Return True for a name, or an attribute of one: what has the same value each time."""
    return isinstance(node, ast.Name) or isinstance(node, ast.Attribute) and _is_dotted(node.value)


@functools.lru_cache(maxsize=4096)
def _newer_name(name: str) -> str:
    """Return the name, or a module or class of it, that TensorFlow 2.6 lacks; "" if it has them."""
    name = rest_of(name)
    above = [name[:end] for end, char in enumerate(name) if char == "."]
    return next((part for part in [*above, name] if part in NAMES), "")


def _newer(call: Call, name: str, names: Names) -> str:
    """Return the name, or the name and argument, that TensorFlow 2.6 lacks; "" if it has them."""
    newer = _newer_name(name)
    if newer and not _is_private(names, call):
        return newer
    name = rest_of(name)
    if name not in ARGUMENTS and name not in ARGUMENT_NAMES:
        return ""
    more = {*ARGUMENTS.get(name, "").split(), *ARGUMENT_NAMES.get(name, ())}
    return next((f"{name}.{keyword.arg}" for keyword in call.node.keywords if keyword.arg in more), "")


def _method(context: Context, call: Call) -> str:
    """Return the method of a dataset or a Keras model that TensorFlow 2.6 lacks."""
    function = call.node.func
    assert isinstance(function, ast.Attribute)
    kind = context.types.of(function.value, call.where)
    if kind in _METHODS and function.attr in _METHODS[kind]:  # type: ignore[index]
        is_own = context.names.definition(function, call.where) is not None or _may_be_own(
            context, function, call.where
        )
        if not is_own and (kind == Type.DATASET or is_keras_method(context, call)):
            return f"{'data.Dataset' if kind == Type.DATASET else 'keras.Model'}.{function.attr}"
    if function.attr == "apply":
        value = function.value
        of_model = isinstance(value, ast.Attribute) and value.attr == "optimizer"
        is_one = of_model and _is_of_model(context, value.value, "optimizer", call.where)  # type: ignore[attr-defined]
        return _APPLY if is_one or kind == Type.KERAS_OPTIMIZER else ""
    if function.attr in _METHODS[Type.MODEL] and _is_of_model(context, function.value, function.attr, call.where):
        return f"keras.Model.{function.attr}"
    return ""


def _is_of_model(context: Context, value: ast.expr, attribute: str, where: Where) -> bool:
    """Return True for an object of a class of the project that has an attribute from a model of Keras."""
    owner = context.names.owner(value, where)
    if owner is None or owner.names.held(owner.node, attribute):
        return False
    bases = owner.names.ancestry(owner.node)
    return not bases.isdisjoint({"tensorflow.keras.Model", "tensorflow.keras.Sequential"})


def _may_be_own(context: Context, method: ast.Attribute, where: Where) -> bool:
    """Return True if the object is a parameter, and a class of the project has a method of this name."""
    bindings = context.names.lookup(method.value.id, where) if isinstance(method.value, ast.Name) else None
    project = context.names.project
    if not project or not any(binding.kind == "arg" for binding in bindings or ()):
        return False
    definition = f"def {method.attr}(".encode()
    return any(definition in project.raw(path) for path in project.paths)
