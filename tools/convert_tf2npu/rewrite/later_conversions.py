"""Convert names, calls and imports after TensorFlow 2.6 to the forms that 2.6 has.

A name gets another spelling, or a name of ``npu_shim.backports``: where it is imported, or else where it is used.
"""

from __future__ import annotations

import ast
import re
from typing import Iterator, NamedTuple

from ..analysis.later_uses import (
    APPLY,
    LaterImport,
    LaterUse,
    calls_lacking_in_26,
    has_form_in_26,
    later_uses,
    replaceable_imports_after_26,
)
from ..analysis.tensorflow_version import is_tf2_program, may_be_tf2
from ..project.context import Context
from ..semantics.model import Call
from ..semantics.module_index import Names
from ..semantics.tf_types import Type
from ..syntax.expressions import dotted_name_of, values_of
from ..syntax.source import Edit, Source
from ..tf_api.canonical_names import canonical_name
from ..tf_api.forms_in_26 import ARGUMENT_NAMES, BACKPORTS, DEFAULTS, MODEL_METHODS, MOVED, TRANSFORMATIONS, WITHOUT
from ..tf_api.v1_fate import name_below_tensorflow
from .call_edits import (
    after_closing_parentheses,
    after_opening_parenthesis,
    edit_to_add_argument,
    edit_to_rename,
    edits_to_wrap,
    rename_keyword,
)
from .npu_imports import BACKPORTS_MODULE, backports_name, edit_adding_after, name_of_tensorflow

_IMPORT = re.compile(r"\bimport\b")


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


def conversions_for_26(context: Context) -> Conversions:
    """Return the conversions of a file of a program of TensorFlow 2."""
    if not may_be_tf2(context) or context.names.keras_apart:
        return Conversions()
    of_names = context.once(_find_conversions)
    return of_names if of_names.all and is_tf2_program(context) else Conversions()  # to find the version takes longer


def _find_conversions(context: Context) -> Conversions:
    converted: list[Conversion] = []
    bindings: set[int] = set()
    gone: set[ast.AST] = set()
    uses = list(later_uses(context.names, context.source))
    for statement, replaced in replaceable_imports_after_26(context.names, context.source, uses).items():
        edits = _import_edits(context.source, statement, replaced)
        if edits is not None:
            gone.update([statement] if len(replaced) == len(statement.names) else [])
            brought = {id(replacement.binding) for replacement in replaced}
            bindings |= brought
            nodes = {use.chain[0] for use in uses if id(use.binding) in brought}
            name = ", ".join(replacement.name for replacement in replaced)
            converted.append(Conversion(statement, name, edits, (), frozenset([statement, *nodes])))
    for use in uses:
        if not use.is_imported and has_form_in_26(context.names, use):
            converted += _conversions_of_use(context.names, context.source, use)
    for call, name in calls_lacking_in_26(context):
        converted += _conversions_of_call(context, call, name)
    everywhere = frozenset(node for conversion in converted for node in conversion.nodes)
    return Conversions(tuple(converted), everywhere, frozenset(bindings), frozenset(gone))


def _make_conversion(
    node: ast.AST, name: str, *edits: Edit, uses: tuple[str, ...] = (), name_node: ast.AST | None = None
) -> Conversion:
    return Conversion(node, name, edits, uses, frozenset([name_node or node]))


def _import_statement_for_26(later: LaterImport) -> str:
    """Return the statement that imports a name in the form of 2.6."""
    module, _, last = (MOVED.get(later.name) or f".{BACKPORTS[later.name]}").rpartition(".")
    home = f"tensorflow.{module}" if module else BACKPORTS_MODULE
    local = later.alias.asname or later.alias.name
    return f"from {home} import {last}" + (f" as {local}" if local != last else "")


def _import_edits(source: Source, node: ast.ImportFrom, replaced: list[LaterImport]) -> tuple[Edit, ...] | None:
    """Return the edits that import names from elsewhere, or None if the place of a name in the text is not clear."""
    lines = [_import_statement_for_26(replacement) for replacement in replaced]
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
    gone = {replacement.alias for replacement in replaced}
    edits = []
    kept = [place for alias, place in zip(node.names, places) if alias not in gone]
    for index, alias in enumerate(node.names):
        if alias not in gone:
            continue
        if places[index][0] > kept[-1][0]:  # the last ones, with the comma before them
            edits.append(Edit(places[index - 1][1], places[index][1], ""))
        else:
            edits.append(Edit(places[index][0], places[index + 1][0], ""))
    return (*edits, edit_adding_after(source, node, "\n".join(lines)))


def _conversions_of_use(names: Names, source: Source, use: LaterUse) -> Iterator[Conversion]:
    """Yield the conversion of a name where it is used."""
    node, parent = use.chain[use.depth], names.parents.get(use.chain[-1])
    call = parent if isinstance(parent, ast.Call) and parent.func is use.chain[-1] else node
    if use.name in BACKPORTS:
        module = backports_name(names)
        new = edit_to_rename(source, node, f"{module}.{BACKPORTS[use.name]}")
        yield _make_conversion(call, use.name, new, uses=(module,), name_node=node)
        return
    path, written = MOVED[use.name].split("."), source.segment(use.chain[0])
    bound = name_below_tensorflow(canonical_name(use.binding.target)) if use.binding is not None else None
    have = bound.split(".") if bound else []
    if bound is None or path[: len(have)] != have:
        tensorflow = name_of_tensorflow(names)
        if tensorflow is None:
            return
        have, written = [], tensorflow
    new = edit_to_rename(source, node, ".".join([written, *path[len(have) :]]))
    default = _edit_for_default(source, call, use.name) if isinstance(call, ast.Call) else None
    yield _make_conversion(call, use.name, new, *([default] if default else []), name_node=node)


def _edit_for_default(source: Source, call: ast.Call, name: str) -> Edit | None:
    """Return the edit that gives an argument its arg where the other spelling has another default."""
    before, argument, arg = DEFAULTS.get(name, (0, "", ""))
    hides = any(isinstance(arg, ast.Starred) for arg in call.args) or None in {keyword.arg for keyword in call.keywords}
    if not argument or hides or len(call.args) > before or argument in {keyword.arg for keyword in call.keywords}:
        return None
    return edit_to_add_argument(source, call, f"{argument}={arg}")


def _conversions_of_call(context: Context, call: Call, name: str) -> Iterator[Conversion]:
    """Yield the conversion of a call of a method, or with an argument, that 2.6 lacks."""
    source, node, function = context.source, call.node, call.node.func
    owner, _, method = name.rpartition(".")
    new = ARGUMENT_NAMES.get(owner, {}).get(method)
    if new is not None:
        keyword = next(keyword for keyword in node.keywords if keyword.arg == method)
        yield _make_conversion(node, name, rename_keyword(source, node, keyword, new))
    if not isinstance(function, ast.Attribute) or function.attr != method:
        return
    end, closing = source.end(function), source.end(node)
    if name == APPLY:
        if len(node.args) == 2 and not node.keywords and not any(isinstance(value, ast.Starred) for value in node.args):
            at = after_opening_parenthesis(source, node)
            dot = after_closing_parentheses(source, source.end(function.value))
            edits = Edit(dot, end, ".apply_gradients"), Edit(at, at, "zip(", first=True)
            yield _make_conversion(node, name, *edits, Edit(closing - 1, closing - 1, ")", closing=True))
        return
    if owner == "keras.Model" and method in MODEL_METHODS and dotted_name_of(function.value):
        if not {keyword.arg for keyword in node.keywords} <= MODEL_METHODS[method]:
            return
        module, at = backports_name(context.names), after_opening_parenthesis(source, node)
        following = ", " if node.args or node.keywords else ""
        receiver = source.segment(function.value) + (following.rstrip() if source.text[at] in "\r\n" else following)
        edits = edit_to_rename(source, function, f"{module}.{method}"), Edit(at, at, receiver, first=True)
        yield _make_conversion(node, name, *edits, uses=(module,))
    if owner != "data.Dataset" or context.types.type_of(function.value, call.where) != Type.DATASET:
        return
    dot = after_closing_parentheses(source, source.end(function.value))
    tensorflow = name_of_tensorflow(context.names)
    if method == "save":
        has_arguments = WITHOUT[name].isdisjoint(keyword.arg or "" for keyword in node.keywords) and values_of(node)
        if has_arguments and tensorflow is not None and ")" not in source.text[source.end(function.value) : dot]:
            opening, _ = edits_to_wrap(source, function.value, f"{tensorflow}.data.experimental.save(", "")
            yield _make_conversion(
                node, name, opening, Edit(source.end(function.value), after_opening_parenthesis(source, node), ", ")
            )
    elif method == "rebatch":
        yield _make_conversion(node, name, Edit(dot, end, ".unbatch().batch"))
    elif method in TRANSFORMATIONS and tensorflow is not None:
        at = after_opening_parenthesis(source, node)
        call_begin = f"{tensorflow}.data.experimental.{TRANSFORMATIONS[method]}("
        edits = Edit(dot, end, ".apply"), Edit(at, at, call_begin, first=True)
        yield _make_conversion(node, name, *edits, Edit(closing, closing, ")", closing=True))
