"""The import of npu_shim: its form and its position.

It is the star import that users write, unless a name of the star means something else in the file. Then only the used
names are imported.
"""

from __future__ import annotations

import ast
from typing import Iterable, Sequence

from ..analysis.preamble import is_flag, is_harmless, is_setting, last_setting
from ..semantics.module_index import Names
from ..syntax.expressions import constant_or
from ..syntax.source import Edit, Source
from ..tf_api.canonical_names import canonical_name
from ..tf_api.npu_init_exports import STAR
from .change import Change

MODULE = "npu_shim.npu_init"
DEVICE_MODULE = "npu_shim.npu_device"
BACKPORTS_MODULE = "npu_shim.backports"
# The imports of their own by the name that they bind: the interface of the device, static shapes, backports, and the
# switch of Keras' dropout. What a change uses may be one of them.
DEVICE_IMPORTS = {
    "npu": f"import {DEVICE_MODULE} as npu",
    "npu_device": "from npu_shim import npu_device",
    "npu_data": "from npu_shim import data as npu_data",
    "backports": "from npu_shim import backports",
    "npu_backports": f"import {BACKPORTS_MODULE} as npu_backports",
    "npu_convert_dropout": "from npu_shim.estimator.npu import npu_convert_dropout",
}
# Objects of the star import that files may import themselves.
_SAME = {
    "os": {"os"},
    "tf": {"tensorflow"},
    "config_pb2": {"tensorflow.core.protobuf.config_pb2"},
    "rewriter_config_pb2": {"tensorflow.core.protobuf.rewriter_config_pb2"},
    "RewriterConfig": {"tensorflow.core.protobuf.rewriter_config_pb2.RewriterConfig"},
    "session": {"tensorflow.python.client.session"},
    "session_run_hook": {"tensorflow.python.training.session_run_hook"},
}


_FRAMEWORKS = frozenset({"tensorflow", "keras", "tf_keras"})


def first_taken_name(uses: Iterable[str], names: Names) -> str | None:
    """Return the first of some names of npu_init that the file binds to something else."""
    foreign = names.once(_names_bound_to_other_objects)
    return next((use for use in uses if use in foreign), None)


def _names_bound_to_other_objects(names: Names) -> frozenset[str]:
    """Return the names that a module, or a function of it, binds to something else than objects of npu_shim."""
    return frozenset(
        name
        for scope in [names.module] + [f.scope for f in names.functions]
        for name, bindings in scope.bindings.items()
        if not all(b.kind == "import" and canonical_name(b.target).startswith("npu_shim.") for b in bindings)
    )


def device_name(names: Names, allows_vendor: bool = False) -> str:
    """Return the name under which a file has, or can have, the interface for TensorFlow 2.

    Args:
        names: of the file.
        allows_vendor: True if the vendor's package, which the file may import, serves as well.
    """
    for name, bindings in names.module.bindings.items():
        if any(
            b.kind == "import" and (canonical_name(b.target) if allows_vendor else b.target) == DEVICE_MODULE
            for b in bindings
        ):
            return name
    bound = names.module.bindings.get("npu", ())
    return "npu_device" if first_taken_name(("npu",), names) or any(b.target == "npu_device" for b in bound) else "npu"


def backports_name(names: Names) -> str:
    """Return the name under which a file has, or can have, the backports."""
    return "npu_backports" if first_taken_name(("backports",), names) else "backports"


def name_of_tensorflow(names: Names) -> str | None:
    """Return the name under which a module has TensorFlow as a whole, or None."""
    for name, bindings in names.module.bindings.items():
        if all(b.kind == "import" and canonical_name(b.target) == "tensorflow" for b in bindings):
            return name
    return None


def import_edits(source: Source, names: Names, changes: Sequence[Change]) -> list[Edit]:
    """Return the edits that import the names that the changes of a file use.

    The import follows that of TensorFlow and the settings of the preamble behind it, in the same block if that one is
    in a try or if statement. If TensorFlow is only imported inside functions, npu_shim is imported there too, so
    importing the file needs no more than before.

    Args:
        source: the file.
        names: name resolution in the file.
        changes: the changes of the file.
    """
    gone = [edit for change in changes for edit in change.edits if edit.start < edit.end]
    changes = [change for change in changes if change.uses]
    starts = [edit.start for change in changes for edit in change.edits]
    first = min(starts or [0])
    top = _last_setting_after_import(source, names, names.tree.body, first)
    # Importing the interface for TensorFlow 2 has no effects.
    beside = _last_tensorflow_import(source, names.tree.body, first)
    wanted: dict[ast.stmt, set[str]] = {}
    for change in changes:
        place: ast.stmt | None = top or _tensorflow_import_in_function(source, names, change)
        if beside is not None and DEVICE_IMPORTS.keys() >= set(change.uses):
            place = beside
        before = _end_of_available_imports(source, names, change)
        uses = {use for use in change.uses if not _is_available(source, use, names, before)}
        if uses:
            wanted.setdefault(place or _last_of_file_head(source, names, first if starts else None), set()).update(uses)
    edits = []
    for place, uses in wanted.items():
        edit = _import_edit(
            source, names, place, uses, any(source.start(place) <= s < source.end(place) for s in starts)
        )
        is_inside = any(e.start < edit.start < e.end for e in gone)
        edits.append(_import_edit(source, names, place, uses, True) if is_inside else edit)
    return edits


def _import_edit(source: Source, names: Names, place: ast.stmt, uses: set[str], inserts_before: bool) -> Edit:
    at_top = isinstance(names.places[place].scope.node, ast.Module)
    others = [DEVICE_IMPORTS[use] for use in sorted(uses) if use in DEVICE_IMPORTS]
    uses = uses.difference(DEVICE_IMPORTS)
    what = "*" if at_top and _star_is_safe(names) else ", ".join(sorted(uses))
    line = "\n".join(others + ([f"from {MODULE} import {what}"] if uses else []))
    if inserts_before or not (
        _is_import_like(place) or _is_string_statement(place) or is_setting(names, place)
    ):  # nothing to follow
        start = source.start_with_decorators(place)
        indent = source.text[source.line_start(start) : start]
        line = line.replace("\n", source.newline + indent if not indent.strip() else "; ")
        return Edit(start, start, line + (source.newline + indent if not indent.strip() else "; "))
    if uses and len(line) > 100:
        line = "\n".join([*others, "from {} import (\n    {})".format(MODULE, ",\n    ".join(sorted(uses)))])
    return edit_adding_after(source, place, line)


def edit_adding_after(source: Source, place: ast.AST, new: str) -> Edit:
    """Return the edit that adds a statement after another one, in a separate line if possible."""
    start, end = source.start(place), source.end(place)
    indent = source.text[source.line_start(start) : start]
    if shares_line(source, place):
        return Edit(end, end, "; " + new.replace("\n", source.newline))
    new = indent + new.replace("\n", source.newline + indent)
    position = source.next_line(end)
    if position == len(source.text) and not source.text.endswith(("\n", "\r")):
        return Edit(position, position, source.newline + new)
    return Edit(position, position, new + source.newline)


def shares_line(source: Source, statement: ast.AST) -> bool:
    """Return True if a part of another statement is in the line of a statement."""
    start = source.start(statement)
    behind = source.skip_blanks(source.end(statement))
    return bool(source.text[source.line_start(start) : start].strip()) or (
        source.text[behind : behind + 1] == ";"
        and source.text[source.skip_blanks(behind + 1) :][:1] not in ("", "\r", "\n", "#")
    )


def _end_of_available_imports(source: Source, names: Names, change: Change) -> int:
    """Return where the imports must begin that a change can use: before a change that runs with the module."""
    functions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
    if any(isinstance(parent, functions) for parent in (change.node, *names.ancestors(change.node))):
        return len(source.text)
    return min((edit.start for edit in change.edits), default=len(source.text))


def _is_available(source: Source, name: str, names: Names, before: int) -> bool:
    if name not in DEVICE_IMPORTS and any(
        canonical_name(star.module) == MODULE and source.start(star.node) < before for star in names.stars
    ):
        return True
    return any(
        b.kind == "import"
        and canonical_name(b.target).startswith("npu_shim.")
        and (b.where.statement is None or source.start(b.where.statement) < before)
        for b in names.module.bindings.get(name, ())
    )


def _star_is_safe(names: Names) -> bool:
    if names.stars:
        return False  # the names of another star import are unknown
    scopes = [names.module] + [f.scope for f in names.functions]
    for scope in scopes:
        for name in STAR.intersection(scope.bindings):
            for binding in scope.bindings[name]:
                if binding.kind != "import" or binding.target not in _SAME.get(name, ()):
                    return False
    unknown = STAR.difference(names.module.bindings)
    # Names without a binding would get one.
    return not any(node.id in unknown and _is_unbound(node, names) for node, _ in names.reads)


def _is_unbound(node: ast.Name, names: Names) -> bool:
    """Return True if no known statement binds a name."""
    statement = next((a for a in names.ancestors(node) if a in names.places), None)
    return statement is None or names.bindings_of_name(node.id, names.places[statement]) is None


def _last_tensorflow_import(source: Source, body: list[ast.stmt], first: int) -> ast.stmt | None:
    """Return the last import of TensorFlow in a block before the first change, or before its own position.

    A try or if statement without an alternative is searched too if the file has TensorFlow from nowhere else: without
    TensorFlow it needs no npu_shim. An extension of TensorFlow there may be missing where TensorFlow is not.
    """
    chosen: ast.stmt | None = None
    is_sure = False
    for statement in body:
        packages = {name.split(".")[0] for name in _imported_modules(statement)}
        if any(_is_framework(package) for package in packages):
            if source.start(statement) > first:
                break
            chosen = statement
            is_sure = is_sure or bool(packages & _FRAMEWORKS) and not isinstance(statement, (ast.Try, ast.If))
    if isinstance(chosen, (ast.Try, ast.If)) and not is_sure:
        others = [h.body for h in chosen.handlers] if isinstance(chosen, ast.Try) else [chosen.orelse]
        if not others or not all(_last_tensorflow_import(source, other, len(source.text)) for other in others):
            return _last_tensorflow_import(source, chosen.body, first) or chosen
    return chosen


def _is_framework(root: str) -> bool:
    return root.startswith("tensorflow") or root in _FRAMEWORKS


def _tensorflow_import_in_function(source: Source, names: Names, change: Change) -> ast.stmt | None:
    """Return the import of TensorFlow in the innermost function around a change that has one."""
    start = change.edits[0].start if change.edits else source.start(change.node)
    for parent in names.ancestors(change.node):
        if isinstance(parent, (ast.FunctionDef, ast.AsyncFunctionDef)):
            edit = _last_setting_after_import(source, names, parent.body, start)
            if edit is not None:
                return edit
    return None


def _imported_modules(statement: ast.stmt) -> list[str]:
    """Return the modules that a statement imports, itself or in the blocks of try and if."""
    if isinstance(statement, ast.Import):
        return [alias.name for alias in statement.names]
    if isinstance(statement, ast.ImportFrom):
        return [statement.module or "."]
    modules: list[str] = []
    if isinstance(statement, (ast.Try, ast.If)):
        for node in ast.walk(statement):
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                modules += _imported_modules(node)
    return modules


def _last_setting_after_import(source: Source, names: Names, body: list[ast.stmt], first: int) -> ast.stmt | None:
    """Return the last setting behind the import of TensorFlow in a block, or that import; None without one."""
    chosen = _last_tensorflow_import(source, body, first)
    if chosen not in body:
        return chosen
    return _last_setting_or_first_statement(source, names, body[body.index(chosen) :], first)


def _last_setting_or_first_statement(source: Source, names: Names, body: list[ast.stmt], first: int) -> ast.stmt:
    """Return the last setting before the first change, or the statement at the beginning of a block."""
    end = next((i for i, s in enumerate(body) if source.start(s) >= first or is_flag(names, s)), len(body))
    return body[max(last_setting(names, body[:end]), 0)]


def _last_of_file_head(source: Source, names: Names, first: int | None) -> ast.stmt:
    """Return the last of the leading imports and settings, or the docstring, or the first statement.

    All begin before the first edit, if there is one.
    """
    body = names.tree.body
    chosen = 0
    for index, statement in enumerate(body):
        if first is not None and source.start(statement) >= first:
            break
        if _imported_modules(statement) and not isinstance(statement, ast.If):
            chosen = index
        elif not (is_harmless(names, statement) or _is_string_statement(statement)) or is_flag(names, statement):
            break
    return _last_setting_or_first_statement(source, names, body[chosen:], first or 0)


def _is_import_like(statement: ast.AST) -> bool:
    return isinstance(statement, ast.stmt) and bool(_imported_modules(statement))


def _is_string_statement(statement: ast.AST) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(constant_or(statement.value, None), str)
