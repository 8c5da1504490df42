"""Trace gradients back to the code that computes them."""

from __future__ import annotations

import ast
from typing import Iterator, NamedTuple

from ..semantics.call_sites import values_passed_to_parameter
from ..semantics.model import Binding, Call, Where
from ..semantics.module_index import Names
from ..semantics.scopes import own_returns
from ..semantics.value_flow import origins
from ..syntax.expressions import is_none, last_name, tuple_element, values_of
from .optimizers import NPU

BY_HAND, BY_OPTIMIZER, AVERAGED, BY_TAPE, UNKNOWN = (
    "computed by hand",
    "computed by an optimizer",
    "averaged",
    "computed by a tape",
    "not known",
)
# Functions of TensorFlow that return their argument in another form. Those of the second set return it in a tuple.
_THROUGH = frozenset(
    "tensorflow." + name
    for name in """clip_by_value clip_by_norm clip_by_average_norm identity
cast multiply math.multiply div divide math.divide realdiv truediv scalar_mul math.scalar_mul check_numerics
debugging.check_numerics where verify_tensor_all_finite convert_to_tensor stop_gradient reshape
contrib.training.clip_gradient_norms contrib.training.multiply_gradients
contrib.slim.learning.clip_gradient_norms contrib.slim.learning.multiply_gradients""".split()
)
_IN_TUPLES = frozenset({"tensorflow.clip_by_global_norm"})
SAME_LENGTH = frozenset({"zip", "list", "tuple", "sorted", "reversed", "enumerate"})
_COMPUTING = frozenset({"compute_gradients", "get_gradients"})
AVERAGES = frozenset(
    {NPU + "npu_allreduce", "horovod.allreduce", "horovod.grouped_allreduce", NPU + "hccl_ops.allreduce"}
)


class GradientSource(NamedTuple):
    """Code that computes gradients: one of the kinds above, the expression, its place, the names of its module."""

    kind: str
    node: ast.AST
    where: Where
    names: Names

    @property
    def key(self) -> tuple[str, int] | None:
        """The file and the number of the call that computes the gradients; None if it is not known."""
        return self.names.call_key(self.node) if isinstance(self.node, ast.Call) else None


class GradientTrace:
    """One trace. An expression that depends on itself adds no sources."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int, str], list[GradientSource]] = {}

    def sources_of(self, node: ast.AST, where: Where, names: Names, part: str = "") -> list[GradientSource]:
        """Return the sources of an expression, or of one element if it is a tuple."""
        key = (id(node), id(where.scope), part)
        if key not in self._known:
            self._known[key] = []
            self._known[key] = list(
                {id(s.node): s for s in self._sources_of_expression(node, where, names, part)}.values()
            )
        return self._known[key]

    def _sources_of_expression(self, node: ast.AST, where: Where, names: Names, part: str) -> Iterator[GradientSource]:
        if isinstance(node, ast.Name):
            for binding in names.bindings_of_name(node.id, where) or [Binding("other", where)]:
                yield from self._sources_of_binding(binding, node, names, part)
        elif isinstance(node, ast.Call):
            yield from self._sources_of_call(node, where, names, part)
        elif isinstance(node, (ast.ListComp, ast.GeneratorExp)):
            yield from self._sources_of_comprehension(node, where, names)
        elif isinstance(node, ast.IfExp):
            yield from self.sources_of(node.body, where, names, part)
            yield from self.sources_of(node.orelse, where, names, part)
        elif isinstance(node, ast.BinOp):
            yield from self._sources_of_operands([node.left, node.right], node, where, names)
        elif isinstance(node, ast.Attribute):
            yield from self._sources_of_attribute(node, where, names)
        elif isinstance(node, (ast.List, ast.Tuple)):
            first = _gradient_of_pair(node)
            for member in node.elts if first is node else [first]:
                yield from self.sources_of(_gradient_of_pair(member), where, names)
        elif isinstance(node, ast.Starred):
            yield from self.sources_of(node.value, where, names)
        elif isinstance(node, ast.Subscript):
            yield from self.sources_of(node.value, where, names, "0")
        elif not is_none(node):
            yield GradientSource(UNKNOWN, node, where, names)

    def _sources_of_call(self, node: ast.Call, where: Where, names: Names, part: str) -> Iterator[GradientSource]:
        name, word = names.resolve(node.func, where) or "", last_name(node.func)
        kind = self._kind_of_gradient_call(node, where, names)
        if kind is not None:
            yield GradientSource(kind, node, where, names)
            return
        if name in _IN_TUPLES and part in ("0", "") and node.args:
            yield from self.sources_of(node.args[0], where, names)
        elif name in _THROUGH and node.args:
            yield from self._sources_of_operands(list(node.args), node, where, names)
        elif word in SAME_LENGTH and isinstance(node.func, ast.Name) and node.args:
            yield from self.sources_of(node.args[0], where, names)  # zip(*pairs) separates gradients and variables
        else:
            yield from self._sources_of_function_result(node, where, names, part)

    def _kind_of_gradient_call(self, node: ast.AST, where: Where, names: Names) -> str | None:
        """Return the kind of the gradients that a call computes itself, None for other calls."""
        if not isinstance(node, ast.Call):
            return None
        name = names.resolve(node.func, where) or ""
        if name == "tensorflow.gradients":
            return BY_HAND
        if name in AVERAGES:
            return AVERAGED
        if self._is_tape_gradient_call(node, where, names):
            return BY_TAPE
        return BY_OPTIMIZER if isinstance(node.func, ast.Attribute) and node.func.attr in _COMPUTING else None

    def _is_tape_gradient_call(self, node: ast.Call, where: Where, names: Names) -> bool:
        function = node.func
        if not isinstance(function, ast.Attribute) or function.attr != "gradient":
            return False
        bindings = (
            names.bindings_of_name(function.value.id, where) or [] if isinstance(function.value, ast.Name) else []
        )
        return any(
            b.node is not None
            and isinstance(b.node, ast.Call)
            and (names.resolve(b.node.func, b.where) or "").endswith("GradientTape")
            for b in bindings
        )

    def _sources_of_function_result(
        self, node: ast.Call, where: Where, names: Names, part: str
    ) -> Iterator[GradientSource]:
        """Return the sources of the results of a project function."""
        sources: list[GradientSource] = []
        returns = [
            (returned, origin.names)
            for origin in origins(node.func, where, names)
            if isinstance(origin.node, ast.FunctionDef)
            for returned in own_returns(origin.node)
        ]
        for returned, its_names in returns:
            value, place = tuple_element(returned.value, part), its_names.places[returned]
            if value is not None:
                sources += self.sources_of(value, place, its_names)
            elif isinstance(returned.value, (ast.Name, ast.Call)):
                sources += self.sources_of(returned.value, place, its_names, part)
        if returns and (not sources or any(source.kind == UNKNOWN for source in sources)):
            given = [self.sources_of(value, where, names) for value in values_of(node)]
            handed_in = [s for group in given for s in group if s.kind != UNKNOWN]
            sources = handed_in or sources  # it computes gradients from others, such as their mean
        yield from sources or [GradientSource(UNKNOWN, node, where, names)]

    def _sources_of_operands(
        self, nodes: list[ast.expr], whole: ast.AST, where: Where, names: Names
    ) -> Iterator[GradientSource]:
        """Return the sources among the operands; factors and limits have none."""
        sources = [source for node in nodes for source in self.sources_of(node, where, names)]
        known = [source for source in sources if source.kind != UNKNOWN]
        yield from known or [GradientSource(UNKNOWN, whole, where, names)]

    def _sources_of_attribute(self, node: ast.Attribute, where: Where, names: Names) -> Iterator[GradientSource]:
        owner = names.owner_class(node.value, where)
        held = owner[1].attribute_bindings(owner[0], node.attr) if owner else []
        for binding, its_names in held:
            yield from self._sources_of_binding(binding, node, its_names)
        if not held:
            yield GradientSource(UNKNOWN, node, where, names)

    def _sources_of_binding(
        self, binding: Binding, use: ast.expr, names: Names, part: str = ""
    ) -> Iterator[GradientSource]:
        value, where = binding.node, binding.where
        if binding.kind == "value" and isinstance(value, ast.List) and not value.elts:
            yield from self._sources_of_appended(binding, use, names)
        elif binding.kind == "value" and value is not None:
            yield from self.sources_of(value, where, names, part)
        elif binding.kind == "part" and value is not None:
            yield from self.sources_of(value, where, names, binding.target)
        elif binding.kind == "arg":
            values = values_passed_to_parameter(binding, names)
            for given in values or ():
                yield from self.sources_of(given.value, given.where, given.names)
            if values is None:
                yield GradientSource(UNKNOWN, use, where, names)
        elif isinstance(use, ast.Name):
            yield from self._sources_of_loop_variable(use, where, names)

    def _sources_of_appended(self, binding: Binding, use: ast.expr, names: Names) -> Iterator[GradientSource]:
        """Return the sources of the elements that are appended to an empty list."""
        filled = False
        for call in names.once(_append_calls_by_scope).get(id(binding.where.scope), ()):
            function = call.node.func
            if call.node.args and ast.dump(function.value) == ast.dump(use):  # type: ignore[attr-defined]
                filled = True
                value = call.node.args[0]
                is_one = last_name(function) == "append"
                yield from self.sources_of(_gradient_of_pair(value) if is_one else value, call.where, names)
        if not filled:
            yield GradientSource(UNKNOWN, use, binding.where, names)

    def _sources_of_comprehension(self, node: ast.AST, where: Where, names: Names) -> Iterator[GradientSource]:
        """Return the sources of a list that is made from others."""
        value = _gradient_of_pair(node.elt)  # type: ignore[attr-defined]
        if self._kind_of_gradient_call(value, where, names) or self._calls_gradient_function(value, where, names):
            yield from self.sources_of(value, where, names)
            return
        loops = {
            target: generator
            for generator in node.generators  # type: ignore[attr-defined]
            for target in _names_in_target(generator.target)
        }
        is_followed = False
        for name in [n for n in ast.walk(value) if isinstance(n, ast.Name) and n.id in loops]:
            is_followed = True
            generator = loops[name.id]
            yield from self._sources_from_iterable(generator.target, generator.iter, name.id, where, names)
        if not is_followed:
            yield from self.sources_of(value, where, names)

    def _calls_gradient_function(self, node: ast.AST, where: Where, names: Names) -> bool:
        """Return True for a call of a function of the project that computes gradients itself."""
        callees = origins(node.func, where, names) if isinstance(node, ast.Call) else []
        return bool(callees) and all(
            isinstance(callee.node, ast.FunctionDef)
            and any(
                self._kind_of_gradient_call(part, callee.names.place(part), callee.names)
                for part in ast.walk(callee.node)
            )
            for callee in callees
        )

    def _sources_of_loop_variable(self, use: ast.Name, where: Where, names: Names) -> Iterator[GradientSource]:
        """Return the sources of a loop variable."""
        statement = where.statement
        if isinstance(statement, ast.For) and use.id in _names_in_target(statement.target):
            yield from self._sources_from_iterable(statement.target, statement.iter, use.id, where, names)
        else:
            yield GradientSource(UNKNOWN, use, where, names)

    def _sources_from_iterable(
        self, target: ast.expr, iterated: ast.expr, name: str, where: Where, names: Names
    ) -> Iterator[GradientSource]:
        """Return what a loop variable takes from the iterable: with zip, the list at its position."""
        if isinstance(iterated, ast.Call) and isinstance(iterated.func, ast.Name) and isinstance(target, ast.Tuple):
            place = next((i for i, t in enumerate(target.elts) if name in _names_in_target(t)), 0)
            if iterated.func.id == "zip" and place < len(iterated.args):
                yield from self.sources_of(iterated.args[place], where, names)
                return
            if iterated.func.id == "enumerate" and place == 1 and iterated.args:
                yield from self._sources_from_iterable(target.elts[1], iterated.args[0], name, where, names)
                return
        yield from self.sources_of(iterated, where, names)


def _append_calls_by_scope(names: Names) -> dict[int, list[Call]]:
    """Return the calls that add to lists by the ids of their scopes."""
    by_scope: dict[int, list[Call]] = {}
    for call in names.calls:
        if isinstance(call.node.func, ast.Attribute) and call.node.func.attr in ("append", "extend"):
            by_scope.setdefault(id(call.where.scope), []).append(call)
    return by_scope


def _gradient_of_pair(node: ast.expr) -> ast.expr:
    """Return the gradient of a pair of gradient and variable; other expressions are returned unchanged."""
    return node.elts[0] if isinstance(node, ast.Tuple) and len(node.elts) == 2 else node


def _names_in_target(node: ast.expr) -> dict[str, None]:
    return {n.id: None for n in ast.walk(node) if isinstance(n, ast.Name)}
