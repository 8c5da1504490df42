"""Which files of a project are started as programs, and where the behaviour of TensorFlow 2 is switched off there.

It is switched off once, before anything makes a graph: where the script imports TensorFlow, unless a module of the
project that is imported before makes one while it is imported.
"""
from __future__ import annotations

import ast
import os
from typing import Iterator, List, NamedTuple, Optional, Set, Union

from .import_graph import importers, reached
from .names import Names
from .placing import SETTINGS, is_main_guard, line_before
from .project import Module
from .registry import Context
from .scopes import Call
from .source import Edit
from .imports import statement_behind
from .tfnames import canonical
from .versions import NEW, V1, became

SWITCH = 'disable_v2_behavior()'
_SWITCHES = frozenset({'tensorflow.disable_v2_behavior', 'tensorflow.disable_eager_execution'})
# What makes a graph as TensorFlow 1 does, and fails in TensorFlow 2 unless the behaviour is switched off.
_ONLY_IN_GRAPHS = frozenset('tensorflow.' + name for name in (
    'placeholder', 'Session', 'InteractiveSession', 'train.MonitoredTrainingSession', 'train.MonitoredSession',
    'train.Supervisor', 'train.SingularMonitoredSession', 'get_variable', 'layers.dense', 'layers.conv2d'))


class Switch(NamedTuple):
    """Where the switch is put, and the edits that do it; none where it has to be done by hand."""
    node: ast.AST
    edits: List[Edit]


def switch(context: Context) -> Optional[Switch]:
    """The switch for a file that is started; None where it needs none."""
    names = context.names
    if not is_started(context):
        return None
    modules = list(_modules(context))
    if any(_calls(m, _SWITCHES) for m in modules) or not any(m.lift or _needs_graph(m) for m in modules):
        return None
    early = _early_import(context)
    place = _module_import(names)
    if place is not None and (early is None or place.lineno < early.lineno):
        name = _local_name(names, place)
        if name:
            return Switch(place, [statement_behind(context.source, place, '%s.%s' % (name, SWITCH))])
        return Switch(place, _import_too(context, place, early))
    if early is not None:
        return Switch(early, _import_too(context, None, early))
    inside = [s for s in _imports(names) if _local_name(names, s)]
    if len({id(names.places[s].scope) for s in inside}) == 1:
        return Switch(inside[0], [statement_behind(context.source, inside[0], '%s.%s' % (
            _local_name(names, inside[0]), SWITCH))])
    return Switch(inside[0] if inside else names.tree.body[0], [])


def is_started(context: Context) -> bool:
    """Whether a file is started as a program, and not only imported."""
    names = context.names
    if context.main:
        return not names.path or os.path.realpath(names.path) == os.path.realpath(context.main)
    if any(is_main_guard(statement) for statement in names.tree.body):
        return True
    if names.project and names.path and names.path in importers(names.project):
        return False
    return any(_works(context, call) for call in _calls_at_top(names))


def _works(context: Context, call: Call) -> bool:
    """Whether a call at the top of a file does something that a program does: with TensorFlow, or with a function
    of its own as a whole statement."""
    name = context.resolve(call.node.func, call.where) or ''
    if name.startswith('tensorflow.'):
        return not name.startswith(SETTINGS)
    statement, function = call.where.statement, call.node.func
    if not isinstance(statement, ast.Expr) or statement.value is not call.node:
        return False
    own = context.names.module.bindings.get(function.id, ()) if isinstance(function, ast.Name) else ()
    return ':' in name or any(b.kind in ('def', 'import') for b in own)


def _calls_at_top(names: Names) -> Iterator[Call]:
    """The calls that are made when a file is read, apart from decorators and default arguments."""
    for call in names.calls:
        if call.where.scope is names.module and not isinstance(
                call.where.statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield call


def _modules(context: Context) -> Iterator[Names]:
    """The file and all of the project that it imports."""
    names = context.names
    yield names
    if names.project and names.path:
        for path in sorted(reached(names.project).get(names.path, ())):
            module: Optional[Module] = names.project.module(path) if path != names.path else None
            if module is not None:
                yield module.names


def _calls(names: Names, wanted: Union[Set[str], frozenset]) -> bool:
    return any(names.resolve(call.node.func, call.where) in wanted for call in names.calls)


def _needs_graph(names: Names) -> bool:
    """Whether a file that is on compat.v1 already makes a graph outside a graph of its own."""
    found = False
    for call in names.calls:
        spelled = names.spelled(call.node.func, call.where) or ''
        if became(spelled) == NEW:
            return False
        found = found or spelled.startswith(V1) and canonical(spelled) in _ONLY_IN_GRAPHS and not any(
            isinstance(parent, (ast.With, ast.AsyncWith)) and 'as_default' in ast.dump(parent.items[0])
            for parent in names.ancestors(call.node))
    return found


def _module_import(names: Names) -> Optional[ast.stmt]:
    """The first import of TensorFlow at the top of a file."""
    found = [s for s in _imports(names) if names.places[s].scope is names.module]
    return min(found, key=lambda s: s.lineno) if found else None


def _imports(names: Names) -> List[ast.stmt]:
    """The imports that bind something of TensorFlow."""
    return [s for s, where in names.places.items() if isinstance(s, (ast.Import, ast.ImportFrom)) and any(
        b.node is s and b.target.partition('.')[0] == 'tensorflow'
        for bindings in where.scope.bindings.values() for b in bindings)]


def _local_name(names: Names, statement: ast.stmt) -> str:
    """The name by which a statement binds what has the switch, spelled so that it can be called."""
    for local, bindings in names.places[statement].scope.bindings.items():
        for binding in bindings:
            if binding.node is statement and binding.target in ('tensorflow', V1):
                return local if binding.target == V1 else local + '.compat.v1'
    return ''


def _early_import(context: Context) -> Optional[ast.stmt]:
    """The first import of a module of the project that makes something of TensorFlow while it is imported, or the
    first one with TensorFlow at all where the file imports none itself."""
    names = context.names
    project = names.project
    if not project or not names.path:
        return None
    own = _module_import(names) is not None
    for statement in names.tree.body:
        if isinstance(statement, (ast.Import, ast.ImportFrom)):
            paths = {p for place in imported_by(context, statement) for p in reached(project).get(place, ())}
            modules = [m.names for m in map(project.module, sorted(paths)) if m is not None]
            if any(_makes_graph(m) if own else m.lift for m in modules):
                return statement
    return None


def imported_by(context: Context, statement: ast.stmt) -> List[str]:
    """The files of the project that an import statement names."""
    names = context.names
    assert names.project
    if isinstance(statement, ast.Import):
        dotted = [alias.name for alias in statement.names]
    else:
        assert isinstance(statement, ast.ImportFrom)
        base = '.' * statement.level + (statement.module or '')
        dotted = [base] + [base + ('' if base.endswith('.') else '.') + a.name for a in statement.names]
    found = [names.project.find(name, names.path) for name in dotted]
    return [path for path in found if path]


def _makes_graph(names: Names) -> bool:
    for call in _calls_at_top(names):
        name = names.resolve(call.node.func, call.where) or ''
        if name.startswith('tensorflow.') and not name.startswith(SETTINGS) and not any(
                is_main_guard(parent) for parent in names.ancestors(call.node)):
            return True
    return False


def _import_too(context: Context, place: Optional[ast.stmt], early: Optional[ast.stmt]) -> List[Edit]:
    """Import TensorFlow for the sake of the switch: behind an import of parts of it, or before an early one."""
    names, source = context.names, context.source
    # What the file uses and nothing binds must not mean something all of a sudden.
    used = set(names.module.bindings) | {root.id for root, _ in names.reads}
    local = 'tf' if 'tf' not in used or early is not None else 'tensorflow'
    lines = ['import %s as %s' % (V1, local), '%s.%s' % (local, SWITCH)]
    if early is not None:
        found = line_before(context, early)
        if found is None:
            return []
        position, indent = found
        return [Edit(position, position, ''.join(indent + line + source.newline for line in lines))]
    assert place is not None
    return [statement_behind(source, place, line) for line in lines]
