"""Scopes: one walk over a module that records the bindings of names and their places.

The walk also records every call, use of a name, function and class with its place, the parent of each node, and the
star imports.
"""

from __future__ import annotations

import ast
import functools
from typing import Any, Callable

from ..syntax.walk import LEAVES, NODE_FIELDS, walk_nodes
from .model import COMPREHENSIONS, Binding, Call, Function, FunctionNode, Held, Path, Scope, Star, Where

# Expressions that bind names or start a scope, and f-strings.
_WITH_NAMES = COMPREHENSIONS | {ast.Lambda, ast.JoinedStr, getattr(ast, "NamedExpr", ast.Lambda)}
_BLOCKS = ("body", "handlers", "orelse", "finalbody", "cases")  # in the order of the text
_OF_A_VALUE = frozenset({ast.Attribute, ast.keyword})  # nodes with exactly one expression
# The tuples of which a module has many. This takes half the time of Where(...), Call(...).
_where: Callable[[tuple[object, object, object]], Where] = functools.partial(tuple.__new__, Where)
_call: Callable[[tuple[ast.Call, Where]], Call] = functools.partial(tuple.__new__, Call)
_binding: Callable[[tuple[str, Where, object, str]], Binding] = functools.partial(tuple.__new__, Binding)


class Scopes:
    """The tables of the walk over one module.

    Args:
        tree: the module.
    """

    def __init__(self, tree: ast.Module) -> None:
        self.tree = tree
        self.calls: list[Call] = []
        self.reads: list[tuple[ast.Name, Where]] = []  # the uses of names
        self.strings: dict[ast.AST, ast.AST] = {}  # the f-string around an expression in one
        self.functions: list[Function] = []
        self.classes: list[tuple[ast.ClassDef, Where]] = []
        self.class_scopes: dict[ast.ClassDef, Scope] = {}
        self.attributes: dict[str, list[Held]] = {}  # assigned attributes by name
        self.stars: list[Star] = []
        self.parents: dict[ast.AST, ast.AST] = {}
        self.places: dict[ast.AST, Where] = {}  # of each statement
        self.module = Scope(tree, None)
        self._comprehensions: list[Scope] = []  # kept alive here: places have weak references
        self._blocks = 0
        self._walk_block(tree, tree.body, self.module, (), False)

    def _walk_block(self, parent: ast.AST, body: list[ast.stmt], scope: Scope, path: Path, loop: bool) -> None:
        self._blocks += 1
        block, ref = self._blocks, scope.ref
        for index, statement in enumerate(body):
            self.parents[statement] = parent
            where = self.places[statement] = _where((ref, path + ((block, index, loop),), statement))
            _STATEMENTS.get(type(statement), Scopes._walk_other_statement)(self, statement, where)

    def _bind(self, name: str, binding: Binding) -> None:
        scope = binding.where.scope
        declared = scope.elsewhere.get(name) if scope.elsewhere else None
        if declared == "global":
            scope = self.module
        elif declared == "nonlocal":
            outer = scope.parent
            while outer and outer.parent and (outer.is_class or name not in outer.bindings):
                outer = outer.parent
            scope = outer or scope
        scope.bindings.setdefault(name, []).append(binding)

    # Statements.

    def _walk_function(self, node: ast.FunctionDef, where: Where) -> None:
        self._bind(node.name, Binding("def", where, node))
        for child in node.decorator_list + [node.returns]:
            self._walk_expression(child, node, where)
        inner = self._bind_parameters(node, where)
        self._walk_block(node, node.body, inner, (), False)

    def _walk_class(self, node: ast.ClassDef, where: Where) -> None:
        self._bind(node.name, Binding("class", where, node))
        self.classes.append((node, where))
        for child in node.decorator_list + node.bases + [k.value for k in node.keywords]:
            self._walk_expression(child, node, where)
        self.class_scopes[node] = Scope(node, where.scope)
        self._walk_block(node, node.body, self.class_scopes[node], (), False)

    def _bind_import(self, node: ast.Import, where: Where) -> None:
        for alias in node.names:
            if alias.asname:
                self._bind(alias.asname, Binding("import", where, node, alias.name))
            else:
                top = alias.name.split(".")[0]
                self._bind(top, Binding("import", where, node, top))

    def _bind_import_from(self, node: ast.ImportFrom, where: Where) -> None:
        module = "." * node.level + (node.module or "")
        for alias in node.names:
            if alias.name == "*":
                self.stars.append(Star(module, node))
            else:
                dot = "" if module.endswith(".") else "."
                self._bind(alias.asname or alias.name, Binding("import", where, node, module + dot + alias.name))

    def _note_global_or_nonlocal(self, node: ast.Global | ast.Nonlocal, where: Where) -> None:
        for name in node.names:
            where.scope.elsewhere[name] = type(node).__name__.lower()

    def _walk_value_of_statement(self, node: ast.Expr | ast.Return, where: Where) -> None:
        self._walk_expression(node.value, node, where)

    def _walk_assign(self, node: ast.Assign, where: Where) -> None:
        self._walk_expression(node.value, node, where)
        for target in node.targets:
            self._bind_target(target, _binding(("value", where, node.value, "")), node)

    def _walk_annotated_assign(self, node: ast.AnnAssign, where: Where) -> None:
        self._walk_expression(node.annotation, node, where)
        self._walk_expression(node.value, node, where)
        bound = Binding("other", where) if node.value is None else Binding("value", where, node.value)
        self._bind_target(node.target, bound, node)

    def _walk_augmented_assign(self, node: ast.AugAssign, where: Where) -> None:
        self._walk_expression(node.value, node, where)
        self._bind_target(node.target, Binding("other", where), node)

    def _walk_for(self, node: ast.For, where: Where) -> None:
        self._walk_expression(node.iter, node, where)
        self._bind_target(node.target, Binding("other", where), node)
        self._walk_block(node, node.body, where.scope, where.path, True)
        self._walk_block(node, node.orelse, where.scope, where.path, False)

    def _walk_with(self, node: ast.With, where: Where) -> None:
        for item in node.items:
            self._walk_expression(item.context_expr, node, where)
            if item.optional_vars is not None:
                self._bind_target(item.optional_vars, Binding("with", where, item.context_expr), node)
        self._walk_block(node, node.body, where.scope, where.path, False)

    def _walk_if_or_while(self, node: ast.If | ast.While, where: Where) -> None:
        self._walk_expression(node.test, node, where)
        self._walk_block(node, node.body, where.scope, where.path, isinstance(node, ast.While))
        self._walk_block(node, node.orelse, where.scope, where.path, False)

    def _walk_other_statement(self, node: ast.stmt, where: Where) -> None:
        """Walk the expressions, targets and blocks of Try, Match, Delete, Raise and the like."""
        for _, value in ast.iter_fields(node):
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.expr):
                    self._walk_expression(child, node, where)
                elif hasattr(child, "body") and not isinstance(child, ast.stmt):
                    self.parents[child] = node
                    name = getattr(child, "name", None)
                    if name:  # except E as name
                        self._bind(name, Binding("other", where))
                    for part in ast.iter_child_nodes(child):
                        if isinstance(part, ast.expr):
                            self._walk_expression(part, child, where)
                        elif not isinstance(part, ast.stmt):
                            self._bind_pattern(part, where)
                    self._walk_block(child, child.body, where.scope, where.path, False)
            if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                self._walk_block(node, value, where.scope, where.path, False)

    def _bind_pattern(self, node: ast.AST, where: Where) -> None:
        for part in ast.walk(node):
            name = getattr(part, "name", None) or getattr(part, "rest", None)
            if isinstance(name, str):
                self._bind(name, Binding("other", where))

    def _bind_parameters(self, node: FunctionNode, where: Where) -> Scope:
        inner = Scope(node, where.scope)
        self.functions.append(Function(node, where, inner))
        args = node.args
        for child in args.defaults + args.kw_defaults:
            self._walk_expression(child, node, where)
        at = Where(inner.ref, (), None)
        for arg in getattr(args, "posonlyargs", []) + args.args + args.kwonlyargs + [args.vararg, args.kwarg]:
            if arg is not None:
                self._walk_expression(arg.annotation, node, where)
                self._bind(arg.arg, _binding(("arg", at, arg, "")))
        return inner

    def _bind_target(self, target: ast.expr, bound: Binding, parent: ast.AST) -> None:
        """Bind the target of an assignment, as ``bound`` would bind one name there."""
        if isinstance(target, ast.Name):
            self.parents[target] = parent
            self._bind(target.id, bound)
        elif isinstance(target, (ast.Tuple, ast.List)):
            self.parents[target] = parent
            for element, part in zip(target.elts, _bindings_of_elements(target, bound)):
                self._bind_target(element, part, target)
        elif isinstance(target, ast.Starred):
            self._bind_target(target.value, Binding("other", bound.where), target)
        else:
            self._walk_expression(target, parent, bound.where)
            if isinstance(target, ast.Attribute):
                self.attributes.setdefault(target.attr, []).append(Held(target, bound))

    # Expressions.

    def _walk_expression(self, node: Any, parent: ast.AST, where: Where) -> None:
        if node is None:
            return
        parents = self.parents
        kind = type(node)
        while kind in _OF_A_VALUE:  # without a call for each part of a dotted name
            parents[node] = parent
            node, parent = node.value, node
            kind = type(node)
        parents[node] = parent
        if kind is ast.Name:
            if type(node.ctx) is ast.Load:
                self.reads.append((node, where))
            else:
                self._bind(node.id, Binding("other", where))
            return
        if kind is ast.Call:
            self.calls.append(_call((node, where)))
        elif kind in _WITH_NAMES:
            if kind is ast.Lambda:
                inner = self._bind_parameters(node, where)
                self._walk_expression(node.body, node, Where(inner.ref, (), where.statement))
                return
            if kind is ast.JoinedStr:
                self._walk_fstring(node, where)
                return
            if kind in COMPREHENSIONS:
                scope = Scope(node, where.scope)
                self._comprehensions.append(scope)
                where = Where(scope.ref, (), where.statement)
                for generator in node.generators:
                    self._bind_target(generator.target, Binding("other", where), node)
            else:  # NamedExpr
                self._bind_target(node.target, Binding("value", where, node.value), node)
        for field in NODE_FIELDS[kind]:
            child = getattr(node, field)
            for part in child if type(child) is list else (child,):
                of = type(part)
                if of in LEAVES:  # these two, which are most nodes, without a call too
                    parents[part] = node
                elif of is ast.Name and type(part.ctx) is ast.Load:
                    parents[part] = node
                    self.reads.append((part, where))
                else:
                    self._walk_expression(part, node, where)

    def _walk_fstring(self, node: ast.JoinedStr, where: Where) -> None:
        for child in node.values:
            self._walk_expression(child, node, where)
            for inner in walk_nodes(child):
                self.strings.setdefault(inner, node)


_STATEMENTS: dict[type, Callable[[Scopes, Any, Where], None]] = {
    ast.AnnAssign: Scopes._walk_annotated_assign,
    ast.Assign: Scopes._walk_assign,
    ast.AsyncFor: Scopes._walk_for,
    ast.AsyncFunctionDef: Scopes._walk_function,
    ast.AsyncWith: Scopes._walk_with,
    ast.AugAssign: Scopes._walk_augmented_assign,
    ast.ClassDef: Scopes._walk_class,
    ast.Expr: Scopes._walk_value_of_statement,
    ast.For: Scopes._walk_for,
    ast.FunctionDef: Scopes._walk_function,
    ast.Global: Scopes._note_global_or_nonlocal,
    ast.If: Scopes._walk_if_or_while,
    ast.Import: Scopes._bind_import,
    ast.ImportFrom: Scopes._bind_import_from,
    ast.Nonlocal: Scopes._note_global_or_nonlocal,
    ast.Return: Scopes._walk_value_of_statement,
    ast.While: Scopes._walk_if_or_while,
    ast.With: Scopes._walk_with,
}


def _bindings_of_elements(target: ast.Tuple | ast.List, bound: Binding) -> list[Binding]:
    """Return the binding of each element of an unpacking target."""
    value, count = bound.node, len(target.elts)
    starred = any(isinstance(e, ast.Starred) for e in target.elts)
    if bound.kind == "value" and isinstance(value, (ast.Tuple, ast.List)):
        if len(value.elts) == count and not starred and not any(isinstance(e, ast.Starred) for e in value.elts):
            return [Binding("value", bound.where, element) for element in value.elts]
    elif bound.kind in ("value", "part") and not starred:
        return [Binding("part", bound.where, value, f"{bound.target}.{i}".lstrip(".")) for i in range(count)]
    return [Binding("other", bound.where)] * count


def own_returns(function: ast.AST) -> list[ast.Return]:
    """Return the return statements of a function, without those of functions inside it."""
    returns: list[ast.Return] = []
    for field in _BLOCKS:
        block = getattr(function, field, None)
        for child in block if type(block) is list else ():
            if isinstance(child, ast.Return):
                returns.append(child)
            elif not isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                returns += own_returns(child)
    return returns
