"""Find the files of a project that are started as programs, and how each uses TensorFlow."""

from __future__ import annotations

import ast
import os
import re
from typing import AbstractSet, Iterator, NamedTuple

from ..project.context import Context
from ..semantics.model import Call
from ..semantics.module_index import Definition, Instance, ModuleIndex, Names
from ..semantics.tf_types import TRAINING_METHODS, Type
from ..semantics.version_evidence import may_have_used_gelu
from ..syntax.expressions import is_main_guard
from ..tf_api.canonical_names import canonical_name
from ..tf_api.v1_fate import NEW, V1, fate_of_v1_name
from .command_functions import RUNNERS
from .describing import file_describes_package
from .near_frameworks import is_near_framework
from .preamble import FLAGS, SETTINGS
from .tensorflow_evidence import trains_as_keras

SWITCHES = frozenset({"tensorflow.disable_v2_behavior", "tensorflow.disable_eager_execution"})
# Calls that build a graph, and fail in TensorFlow 2 unless its behavior is disabled.
_ONLY_IN_GRAPHS = frozenset(
    "tensorflow." + name
    for name in (
        "placeholder",
        "Session",
        "InteractiveSession",
        "train.MonitoredTrainingSession",
        "train.MonitoredSession",
        "train.Supervisor",
        "train.SingularMonitoredSession",
        "get_variable",
        "layers.dense",
        "layers.conv2d",
    )
)


class Facts(NamedTuple):
    """Facts about a file.

    Attributes:
        lifted: it is lifted to compat.v1.
        switched: it disables the behavior of TensorFlow 2.
        needs_switch: it fails unless this behavior is disabled.
        works_on_import: it uses TensorFlow when it is imported.
    """

    lifted: bool
    switched: bool
    needs_switch: bool
    works_on_import: bool


def entry_facts(names: Names) -> Facts:
    """Return the facts of a file."""
    called = {names.resolve(call.node.func, call.where) for call in names.calls}
    return Facts(
        names.lift is not None,
        bool(called & SWITCHES),
        _builds_graph_with_compat_v1(names),
        any(
            _is_tensorflow_work(names, call) and not any(is_main_guard(p) for p in names.ancestors(call.node))
            for call in _module_level_calls(names)
        ),
    )


def entry_facts_of_file(project: ModuleIndex, path: str) -> Facts | None:
    """Return the facts of a file of a project, or None if it cannot be read."""
    module = project.module(path) if project.may_concern_rules(project.raw(path), path) else None
    return entry_facts(module.names) if module else None


def entry_facts_with_imports(context: Context) -> Iterator[Facts]:
    """Yield the facts of a file and of all files of the project that it imports."""
    names = context.names
    yield entry_facts(names)
    yield from entry_facts_of_files(names.project, names.imported_files)


def entry_facts_of_files(project: ModuleIndex, paths: AbstractSet[str]) -> Iterator[Facts]:
    """Yield the facts of the files that can be read."""
    for path in paths:
        facts_there = project.once(entry_facts_of_file, path)
        if facts_there is not None:
            yield facts_there


def is_started(context: Context) -> bool:
    """Return True if a file is started as a program, and not only imported."""
    names = context.names
    if context.main:
        return not names.path or os.path.realpath(names.path) == os.path.realpath(context.main)
    return names.once(_is_program)


def is_program(project: ModuleIndex, path: str) -> bool:
    """Return True if a file of a project looks like a program that users start."""
    if b"__main__" in project.raw(path):
        return True
    module = project.module(path) if project.may_concern_rules(project.raw(path), path) else None
    return module is not None and module.names.once(_is_program)


def _is_program(names: Names) -> bool:
    if any(is_main_guard(statement) for statement in names.tree.body):
        return True
    if names.project.direct_importers(names.path):
        return any(_trains_keras_or_own_model(names, call) for call in _module_level_calls(names))
    return any(
        _is_tensorflow_work(names, call)
        or _starts_own_function(names, call)
        or (
            is_near_framework(names)
            and (_is_method_of_model(names, call) or _runs_project_code_with_tensorflow(names, call))
        )
        for call in _module_level_calls(names)
    )


def scripts_importing(project: ModuleIndex, path: str) -> list[str]:
    """Return the files that import a file, directly or not, and that no file imports.

    Tests and packages are left out, and so are scripts that install or document a package.
    """
    return [
        script for script in project.with_importers({path}) - {path} if project.once(_may_be_unimported_program, script)
    ]


def programs_importing(project: ModuleIndex, path: str) -> list[str]:
    """Return the files of :func:`scripts_importing`, and those that others import and users start."""
    return sorted(project.once(_program_files).intersection(project.with_importers({path})) - {path})


def _program_files(project: ModuleIndex) -> frozenset[str]:
    return frozenset(
        path
        for path in project.paths
        if project.once(_may_be_unimported_program, path)
        or b"__main__" in project.raw(path)
        and _may_be_program(project, path)
    )


def _may_be_unimported_program(project: ModuleIndex, path: str) -> bool:
    return not project.direct_importers(path) and _may_be_program(project, path)


def _may_be_program(project: ModuleIndex, path: str) -> bool:
    words = set(re.split(r"[\W_]+", os.path.basename(path)))
    return words.isdisjoint(("test", "init")) and not project.once(file_describes_package, path)


def _module_level_calls(names: Names) -> Iterator[Call]:
    """Yield the calls at module level, except those in decorators and default arguments."""
    for call in names.calls:
        if call.where.scope is names.module and not isinstance(
            call.where.statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
        ):
            yield call


def _is_tensorflow_work(names: Names, call: Call) -> bool:
    name = names.resolve(call.node.func, call.where) or ""
    return name.startswith("tensorflow.") and not name.startswith(SETTINGS + FLAGS)


def _is_method_of_model(names: Names, call: Call) -> bool:
    function = call.node.func
    if not isinstance(function, ast.Attribute):
        return False
    return names.types.type_of(function.value, call.where) == Type.MODEL or trains_as_keras(names, call)


def _trains_keras_or_own_model(names: Names, call: Call) -> bool:
    """Return True if a call trains a Keras model, or an object of a class of the project."""
    function = call.node.func
    if not isinstance(function, ast.Attribute) or function.attr not in TRAINING_METHODS:
        return False
    kind = names.types.type_of(function.value, call.where)
    return kind == Type.MODEL or isinstance(kind, Instance) or trains_as_keras(names, call)


def _starts_own_function(names: Names, call: Call) -> bool:
    """Return True if a call is a whole statement and calls a function of the project, or a runner as absl's."""
    function = call.node.func
    if not isinstance(call.where.statement, ast.Expr):
        return False
    if names.resolve(function, call.where) in RUNNERS - {"sys.exit"}:
        return True
    own = names.module.bindings.get(function.id, ()) if isinstance(function, ast.Name) else ()
    name = names.resolved_name(function, call.where)
    return (name is not None and name.is_definition) or any(b.kind in ("def", "import") for b in own)


def _runs_project_code_with_tensorflow(names: Names, call: Call) -> bool:
    """Return True if a call runs a function of the project, or makes or uses an object of a class, with TensorFlow."""
    function = call.node.func
    definition = names.definition(function, call.where)
    if definition is None and isinstance(function, ast.Attribute):
        kind = names.types.type_of(function.value, call.where)
        definition = Definition(kind.owner, kind.names) if isinstance(kind, Instance) else None
    if definition is None or not isinstance(definition.node, (ast.FunctionDef, ast.ClassDef)):
        return False
    theirs = definition.names
    return any(
        _is_tensorflow_work(theirs, inner) and definition.node in theirs.ancestors(inner.node) for inner in theirs.calls
    )


def _builds_graph_with_compat_v1(names: Names) -> bool:
    """Return True if a file that uses compat.v1 already builds a graph outside of ``tf.Graph().as_default()``."""
    if may_have_used_gelu(names) and any(b.target == "tensorflow" for bs in names.module.bindings.values() for b in bs):
        return False  # as before its gelu of TensorFlow 2 was replaced
    builds_graph = False
    for call in names.calls:
        spelled = names.spelled_name(call.node.func, call.where) or ""
        if fate_of_v1_name(spelled) == NEW:
            return False
        builds_graph = (
            builds_graph
            or spelled.startswith(V1)
            and canonical_name(spelled) in _ONLY_IN_GRAPHS
            and not any(
                isinstance(parent, (ast.With, ast.AsyncWith)) and "as_default" in ast.dump(parent.items[0])
                for parent in names.ancestors(call.node)
            )
        )
    return builds_graph
