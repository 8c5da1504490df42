"""Find the statements of a training step in the body of a loop, and decide if they can be a function of their own.

The function gets as arguments the names that the statements read and that change, and returns the names that they bind
and that later code reads. It is defined before the outermost loop, so that TensorFlow traces it once.
"""

from __future__ import annotations

import ast
from typing import Iterator, NamedTuple

from ..project.context import Context
from ..semantics.mentions import mentions_of_function, reads_of_assigned_name
from ..semantics.module_index import Names
from ..semantics.tf_types import UPDATING_METHODS
from .changing_values import RATES, adds_layers, never_changes
from .command_functions import RUNNERS
from .device_placement import belongs_to_test
from .traceable_steps import are_without_effects, is_tried_in_loop, stored_names

_LOOPS = (ast.For, ast.While)
_BODIES = "body", "orelse", "finalbody"
_STATEMENTS = (ast.With, ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.For)
_UPDATES = UPDATING_METHODS | {"assign_sub"}
_OF_FRAMES = frozenset({"eval", "exec", "globals", "locals", "vars"})


class StepBlock(NamedTuple):
    """Statements that compute and apply gradients, and that may run in a tf.function.

    Attributes:
        statements: in one body, one after the other.
        loop: the outermost loop around them.
        parameters: the names that they read and that may change between two steps.
        results: the names that they bind and that other statements read, or the next step.
        callees: what they call and the source does not show.
    """

    statements: list[ast.stmt]
    loop: ast.stmt
    parameters: list[str]
    results: list[str]
    callees: list[ast.expr]


def step_block(context: Context, tape: ast.Call) -> StepBlock | None:
    """Return the statements from the tape to the last update of a step in a loop; None if they cannot be a function.

    Args:
        context: the file.
        tape: the call that makes the tape, in a with statement.
    """
    names = context.names
    loops = list(_loops_around(names, tape))
    statement = names.parents.get(tape)
    while statement is not None and not isinstance(statement, ast.stmt):
        statement = names.parents.get(statement)
    if not loops or not isinstance(statement, ast.With):
        return None
    scope = names.places[statement].scope
    if not _defines_once(names, scope.node) or _changes_attributes(loops[-1]) or adds_layers(loops[-1]):
        return None
    if is_tried_in_loop(names, tape):
        return None
    for statements in _possible_statements(statement, names):
        block = _Block(names, statements, loops[0])
        parameters = block.parameters()
        callees: list[ast.expr] = []
        if not are_without_effects(context, names, block.nodes, block.stored | {*parameters}, callees, set()):
            continue
        results = block.results(parameters)
        if results is not None:
            return StepBlock(statements, loops[-1], parameters, results, callees)
    return None


def _possible_statements(first: ast.stmt, names: Names) -> Iterator[list[ast.stmt]]:
    """Yield the statements of a body from a tape to an update of variables, the most first."""
    parent = names.parents[first]
    body = next(part for name in _BODIES for part in [getattr(parent, name, [])] if first in part)
    following, numbers = body[body.index(first) :], []
    for number, statement in enumerate(following, start=1):
        nodes = list(ast.walk(statement))
        if not isinstance(statement, _STATEMENTS) or any(isinstance(node, ast.Return) for node in nodes):
            break
        called = [node.func for node in nodes if isinstance(node, ast.Call)]
        if any(isinstance(function, ast.Attribute) and function.attr in _UPDATES for function in called):
            numbers.append(number)
    for number in reversed(numbers):
        yield following[:number]


class _Block:
    """Statements, and what their names are bound to."""

    def __init__(self, names: Names, statements: list[ast.stmt], loop: ast.stmt) -> None:
        self._names = names
        self.nodes = [node for statement in statements for node in ast.walk(statement)]
        self.stored = stored_names(self.nodes)
        self._inside = frozenset(self.nodes)
        self._places = {node: where for node, where in names.reads if node in self._inside}
        target = getattr(loop, "target", None)
        self._of_loop = stored_names(ast.walk(target)) if target is not None else set()
        scope = names.places[statements[0]].scope
        self._deleted = {  # by other statements, for which they need a value
            node.id
            for node in ast.walk(scope.node)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Del) and node not in self._inside
        }
        self._certain: set[str] = set()  # names that the block binds in any case
        self._exposed: list[ast.Name] = []  # reads of what other code has bound
        for statement in statements:
            self._walk(statement, self._certain)

    def _walk(self, node: ast.AST, bound: set[str]) -> None:
        """Note the reads in a statement or an expression of what other code has bound, and add what it binds."""
        if isinstance(node, ast.Name):
            if node.id not in bound and isinstance(node.ctx, ast.Load) and not self._is_of_comprehension(node):
                self._exposed.append(node)
            elif not isinstance(node.ctx, ast.Load):
                bound.add(node.id)
            return
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name) and node.target.id not in bound:
            self._exposed.append(node.target)
        if isinstance(node, (ast.For, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
            bound = set(bound)  # what they bind may have no value after them
        for part in _in_order_of_evaluation(node):
            self._walk(part, bound)

    def _is_of_comprehension(self, node: ast.Name) -> bool:
        bindings = self._names.bindings_of_name(node.id, self._places[node]) or ()
        return any(binding.where.scope.is_comprehension for binding in bindings)

    def parameters(self) -> list[str]:
        """Return the names that the block reads, and that may change between two steps."""
        exposed = (node for node in self._exposed if self._may_change(node))
        return list(dict.fromkeys(node.id for node in exposed))

    def _may_change(self, node: ast.Name) -> bool:
        is_bound = self._names.bindings_of_name(node.id, self._names.place(node)) is not None
        return is_bound and (node.id in self.stored or not never_changes(self._names, node))

    def results(self, parameters: list[str]) -> list[str] | None:
        """Return the names that the block binds and that code after it, or the next step, reads.

        None if that is not known, or a name may be bound elsewhere or not at all.
        """
        declared = {
            name
            for node in ast.walk(self._names.tree)
            if isinstance(node, (ast.Global, ast.Nonlocal))
            for name in node.names
        }
        if not declared.isdisjoint(self.stored):
            return None
        results: dict[str, None] = {}
        for target in self.nodes:
            if not isinstance(target, ast.Name) or isinstance(target.ctx, ast.Load) or target.id in results:
                continue
            if any(isinstance(parent, ast.comprehension) for parent in self._names.ancestors(target)):
                continue
            reads = reads_of_assigned_name(target, self._names)
            if reads is None:
                return None
            carried = target.id in parameters and target.id not in self._of_loop
            if (
                carried
                or target.id in self._deleted
                or any(read.names is not self._names or read.node not in self._inside for read in reads)
            ):
                results[target.id] = None
        return list(results) if self._certain.issuperset({*results} - {*parameters}) else None


def _in_order_of_evaluation(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the parts of a statement or an expression: values and generators before what they are bound to."""
    first = ("value", "iter", "generators", "context_expr", "items")
    for name in sorted(node._fields, key=lambda name: (name not in first, node._fields.index(name))):
        value = getattr(node, name, None)
        yield from (part for part in (value if isinstance(value, list) else [value]) if isinstance(part, ast.AST))


def _loops_around(names: Names, node: ast.AST) -> Iterator[ast.stmt]:
    """Yield the loops of a function or module around an expression in it, the innermost first."""
    for parent in names.ancestors(node):
        if isinstance(parent, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            return
        if isinstance(parent, _LOOPS):
            yield parent


def _changes_attributes(loop: ast.stmt) -> bool:
    """Return True if a loop assigns to attributes, which layers may read."""
    return any(
        isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load) and node.attr not in RATES
        for node in ast.walk(loop)
    )


def _defines_once(names: Names, scope: ast.AST) -> bool:
    """Return True if a function that is defined in a scope is defined once in a run, and its names are plain ones."""
    if any(isinstance(node, ast.Name) and node.id in _OF_FRAMES for node in ast.walk(scope)):
        return False
    return scope is names.tree or isinstance(scope, ast.FunctionDef) and runs_once(names, scope, set())


def runs_once(names: Names, function: ast.FunctionDef, seen: set[ast.AST]) -> bool:
    """Return True if a program calls a function once, as far as names show."""
    uses = mentions_of_function(function, names, of_objects=True)
    uses = [use for use in uses or () if not belongs_to_test(use.names, use.node)]
    if function in seen or len(uses) != 1:
        return False
    seen.add(function)
    use = uses[0]
    call = use.names.parents.get(use.node)
    if not isinstance(call, ast.Call) or any(_loops_around(use.names, call)):
        return False
    if call.func is not use.node and use.names.resolve(call.func, use.names.place(call)) not in RUNNERS:
        return False
    around = next((p for p in use.names.ancestors(call) if isinstance(p, (ast.FunctionDef, ast.Lambda))), None)
    return around is None or isinstance(around, ast.FunctionDef) and runs_once(use.names, around, seen)
