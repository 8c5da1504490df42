"""Follow a dataset to the code that reads it: training, evaluation, prediction, preprocessing or another loop.

The search goes from the call that makes the dataset through names, attributes, tuples and dictionaries, the functions
and methods that get or return it, in all files. A read counts, whatever the dataset is called.
"""

from __future__ import annotations

import ast
from typing import Iterable, Tuple

from ..semantics.mentions import Mention, mentions_of_function, reads_of_assigned_attribute, reads_of_assigned_name
from ..semantics.module_index import Definition, Instance, Names
from ..semantics.tf_types import DATASET_METHODS
from ..syntax.expressions import boxed_constant, constant_or, index_of, last_name
from .dataset_reads import FLOWS_ON, HARMLESS, ITERATOR, READS, SHAPES, Use, Uses, phase_of_argument
from .phase_evidence import argument_pairs, is_call_mention, is_in_tests, passed_or_default_phase, passed_phase
from .phase_words import PREPARE, phase_in
from .reading_loops import BY_CALL, PEEK, UNKNOWN, phase_of_loop, phase_of_run, phase_of_step

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_MOST = 400  # expressions of one search
Part = Tuple[object, ...]  # keys of tuples and dictionaries; None for one that is computed
_OPERATION: Part = ("initializer",)  # the operation that lets an iterator begin
_SHAPES: Part = ("shapes",)  # of its elements
_OWN_ITERATORS = (ITERATOR, "make_one_shot_iterator")
_RUN = "session.run"


def uses_of_dataset(node: ast.AST, names: Names, only: str | None = None) -> Uses:
    """Return the reads of the dataset that an expression makes.

    Args:
        node: the expression.
        names: the names of its module.
        only: the phase in which it runs, because of the tests around it. Calls for other phases do not count.
    """
    search = _Search(only, {p for p in names.ancestors(node) if isinstance(p, _FUNCTIONS)})
    search.follow_value(node, names, (), ())
    complete = search.complete and bool(search.reads)
    is_initialized = not search.iterates and all(use.by == _RUN for use in search.reads)
    initialized = tuple(search.initialized) if is_initialized else ()
    is_unread = search.complete and not search.reads
    return Uses(tuple(search.reads), complete, search.undecided, search.shapes_iterators, initialized, is_unread)


class _Search:
    """One search. It takes each way to an expression once."""

    def __init__(self, only: str | None, makers: set[ast.AST]) -> None:
        self.reads: list[Use] = []
        self.complete = True
        self.undecided = ""
        self.shapes_iterators = False
        self.initialized: list[ast.AST] = []  # arguments of make_initializer()
        self.iterates = False  # iterators of its own read it
        self._only = only
        self._makers = makers  # functions in which the dataset is made
        self._seen: set[tuple[int, tuple[ast.AST, ...], Part]] = set()
        self._calls: dict[ast.AST, ast.Call] = {}  # by the function that the value is followed into
        self._by_call: dict[ast.AST, list[tuple[ast.AST, Names]]] = {}  # reads that depend on the call, by function

    def follow_value(self, node: ast.AST, names: Names, sites: tuple[ast.AST, ...], part: Part) -> None:
        """Follow the value of an expression, or the member ``part`` of it, to its reads."""
        key = id(node), sites, part
        if key in self._seen:
            return
        self._seen.add(key)
        parent = names.parents.get(node)
        if parent is None or len(self._seen) > _MOST or len(sites) > 6:
            self.complete = False
        elif isinstance(parent, ast.Attribute):
            self._follow_attribute_use(parent, names, sites, part)
        elif isinstance(parent, ast.keyword):
            self._follow_as_argument(names.parents[parent], parent, names, sites, part)
        elif isinstance(parent, ast.Starred):
            self.complete = False
        elif isinstance(parent, ast.Call):
            if parent.func is node:
                self.follow_value(parent, names, sites + (parent,), part)
            else:
                self._follow_as_argument(parent, node, names, sites, part)
        elif isinstance(parent, (ast.Assign, ast.AnnAssign)):
            for target in parent.targets if isinstance(parent, ast.Assign) else [parent.target]:
                self._follow_assignment(target, names, sites, part)
        elif isinstance(parent, (ast.Return, ast.Yield)):
            self._follow_returned_value(parent, names, sites, part)
        elif isinstance(parent, (ast.For, ast.AsyncFor, ast.comprehension)):
            self._follow_loop(parent, node, names, sites, part)
        else:
            self._follow_through_expression(parent, node, names, sites, part)

    def _follow_through_expression(
        self, parent: ast.AST, node: ast.AST, names: Names, sites: tuple[ast.AST, ...], part: Part
    ) -> None:
        """Follow a value through an expression that has it as a part."""
        if isinstance(parent, (ast.Tuple, ast.List)):
            self.follow_value(parent, names, sites, (parent.elts.index(node),) + part)  # type: ignore[arg-type]
        elif isinstance(parent, ast.Dict):
            keys = [key for key, value in zip(parent.keys, parent.values) if value is node]
            self.follow_value(parent, names, sites, (constant_or(keys[0], None) if keys else None,) + part)
        elif isinstance(parent, ast.Subscript):
            index = boxed_constant(index_of(parent))
            if not part:
                self.complete = False
            elif index is None or part[0] is None or index[0] == part[0]:
                self.follow_value(parent, names, sites, part[1:])
        elif isinstance(parent, ast.Lambda):
            self.follow_value(parent, names, sites, part)
        elif isinstance(parent, (ast.IfExp, ast.BoolOp)) and node is not getattr(parent, "test", None):
            self.follow_value(parent, names, sites, part)
        elif type(parent).__name__ == "NamedExpr":
            self._follow_assignment(parent.target, names, sites, part)  # type: ignore[attr-defined]
            self.follow_value(parent, names, sites, part)
        elif not isinstance(parent, (ast.Expr, ast.Compare, ast.If, ast.IfExp, ast.Assert, ast.Delete, ast.UnaryOp)):
            self.complete = False

    def _follow_attribute_use(self, node: ast.Attribute, names: Names, sites: tuple[ast.AST, ...], part: Part) -> None:
        call = names.parents.get(node)
        if node.attr in SHAPES:
            self._follow_shapes(node, names, sites)
            return
        if node.attr == "initializer":
            self.follow_value(node, names, sites, _OPERATION)
        elif part or not isinstance(call, ast.Call) or call.func is not node:
            self.complete = False
        elif node.attr == "take" and call.args and boxed_constant(call.args[0]) == (1,) or node.attr in HARMLESS:
            return  # a look at the first batch
        elif node.attr in DATASET_METHODS or node.attr in FLOWS_ON or node.attr == ITERATOR:
            self.iterates |= node.attr in _OWN_ITERATORS
            self.follow_value(call, names, sites, ())
        elif node.attr == "save":
            self._add_read(PREPARE, call, names, "save", sites)
        elif node.attr in READS:
            self._add_read(PREPARE, call, names, node.attr, sites)
        else:
            self.complete = False

    def _follow_shapes(self, node: ast.AST, names: Names, sites: tuple[ast.AST, ...]) -> None:
        """Follow what describes the elements of a dataset to the iterators that are made with it."""
        complete = self.complete
        self.follow_value(node, names, sites, _SHAPES)
        self.complete = complete

    def _add_read(self, phase: str, node: ast.AST, names: Names, reader: str, sites: tuple[ast.AST, ...]) -> None:
        self.reads.append(Use(phase, node, names, reader, sites))

    def _follow_as_argument(
        self, call: ast.AST, argument: ast.AST, names: Names, sites: tuple[ast.AST, ...], part: Part
    ) -> None:
        """Follow a value that a call gets as an argument."""
        if not isinstance(call, ast.Call):
            self.complete = False  # a base class
            return
        word = last_name(call.func)
        value = argument.value if isinstance(argument, ast.keyword) else argument
        if part == _SHAPES:
            self.shapes_iterators |= _reads_several(word, names)
            self._follow_and_tell_if_read(call, value, names, sites, part)
            return
        if word in HARMLESS:
            self._follow_shapes(call, names, sites)
            return
        if word in FLOWS_ON or word in (ITERATOR, "partial"):
            self.iterates |= word in _OWN_ITERATORS
            self.follow_value(call, names, sites, ())
        elif word == "make_initializer":
            self.initialized.append(value)
            self.follow_value(call, names, sites, _OPERATION)
        elif word == "run" and part[-1:] == _OPERATION:
            self._add_read_by_kind(phase_of_run(call, names), call, names, _RUN, sites)
        elif word == "next":
            kind = phase_of_step(call, names)
            self._add_read_by_kind(kind, value, names, "next", sites)
        elif self._follow_and_tell_if_read(call, value, names, sites, part):
            return
        elif word in READS:
            self._add_read(PREPARE, value, names, word, sites)
        else:
            phase = phase_of_argument(call, word, argument)
            if phase and not part:
                by = getattr(argument, "arg", "") or ""
                self._add_read(phase, value, names, by if phase_in(by) else word, sites)
            self.complete = self.complete and bool(phase)

    def _follow_and_tell_if_read(
        self, call: ast.Call, value: ast.AST, names: Names, sites: tuple[ast.AST, ...], part: Part
    ) -> bool:
        """Follow an argument into a function or class of the project. Return True if it is read there."""
        definition = _called_definition(call, names)
        if definition is None:
            return False
        function, theirs = definition
        if isinstance(function, ast.ClassDef):
            initializers = [
                h
                for h in theirs.attribute_bindings(function, "__init__")
                if isinstance(h.binding.node, ast.FunctionDef)
            ]
            if len(initializers) != 1:
                return False
            function, theirs = initializers[0].binding.node, initializers[0].names  # type: ignore[assignment]
        if not isinstance(function, ast.FunctionDef):
            return False
        name = next((word for word, one in argument_pairs(function, call) if one is value), None)
        before = len(self.reads)
        complete, self.complete = self.complete, True
        if function in self._calls and self._calls[function] is not call:
            self._calls[function] = call
            for read, its_names in self._by_call.get(function, ()):  # its names were followed from another call
                self._add_read_by_call(read, its_names, "the loop", sites)
        self._calls[function] = call
        for node in theirs.mentions(name, function) if name else ():
            bindings = theirs.bindings_of_name(name or "", theirs.place(theirs.parents[node])) or ()
            if function in theirs.ancestors(node) and any(
                b.kind == "arg" and b.where.scope.node is function for b in bindings
            ):
                self.follow_value(node, theirs, sites, part)
        is_read = bool(name) and (len(self.reads) > before or self.complete)
        self.complete = complete and self.complete and bool(name)
        return is_read

    def _follow_assignment(self, target: ast.AST, names: Names, sites: tuple[ast.AST, ...], part: Part) -> None:
        """Follow a value to the uses of the name or attribute that it is assigned to."""
        if isinstance(target, (ast.Tuple, ast.List)):
            index = part[0] if part else None
            if isinstance(index, int) and not any(
                isinstance(part_before, ast.Starred) for part_before in target.elts[: index + 1]
            ):
                if index < len(target.elts):
                    self._follow_assignment(target.elts[index], names, sites, part[1:])
            else:
                self.complete = False
        elif isinstance(target, ast.Name):
            self._follow_uses(reads_of_assigned_name(target, names), sites, part)
        elif isinstance(target, ast.Attribute):
            self._follow_uses(reads_of_assigned_attribute(target, names), sites, part)
        elif isinstance(target, ast.Subscript) and isinstance(target.value, (ast.Name, ast.Attribute)):
            key = constant_or(index_of(target), None)
            for use in _reads_of_same_expression(target.value, names):
                self.follow_value(use, names, sites, (key,) + part)
        else:
            self.complete = False

    def _follow_uses(self, uses: Iterable[Mention | None] | None, sites: tuple[ast.AST, ...], part: Part) -> None:
        for use in [None] if uses is None else uses:
            if use is None:
                self.complete = False
            elif not is_in_tests(use):
                self.follow_value(use.node, use.names, sites, part)

    def _follow_returned_value(self, node: ast.AST, names: Names, sites: tuple[ast.AST, ...], part: Part) -> None:
        """Follow the result of a function to its calls, and to the code that gets the function."""
        function = next((p for p in names.ancestors(node) if isinstance(p, _FUNCTIONS)), None)
        uses = mentions_of_function(function, names) if isinstance(function, ast.FunctionDef) else None
        outside_tests = [use for use in uses or () if not is_in_tests(use)]
        self.complete = self.complete and bool(outside_tests)
        for use in outside_tests:
            call = use.names.parents[use.node]
            if not (isinstance(call, ast.Call) and is_call_mention(use)):
                self.follow_value(use.node, use.names, self._with_site(sites, use.node, function, use.names), part)
            elif self._only is None or passed_phase(function, call) == self._only:
                self.follow_value(call, use.names, self._with_site(sites, call, function, use.names), part)

    def _with_site(
        self, sites: tuple[ast.AST, ...], site: ast.AST, function: ast.AST | None, names: Names
    ) -> tuple[ast.AST, ...]:
        """Return the sites with one more, if the function makes a dataset in each call."""
        if function not in self._makers:
            return sites
        self._makers.update(p for p in names.ancestors(site) if isinstance(p, _FUNCTIONS))
        return sites + (site,)

    def _follow_loop(self, loop: ast.AST, node: ast.AST, names: Names, sites: tuple[ast.AST, ...], part: Part) -> None:
        if node is not loop.iter:  # type: ignore[attr-defined]
            return
        if part and isinstance(loop, ast.For) and isinstance(loop.target, ast.Name):  # for dataset in (a, b):
            self._follow_uses(reads_of_assigned_name(loop.target, names), sites, part[1:])
        elif part or isinstance(loop, ast.AsyncFor):
            self.complete = False
        elif isinstance(loop, ast.For):
            if any(isinstance(inner, (ast.Yield, ast.YieldFrom)) for s in loop.body for inner in ast.walk(s)):
                self._follow_returned_value(loop, names, sites, ())
            else:
                self._add_read_by_kind(phase_of_loop(loop, names), node, names, "the loop", sites)
        else:
            around = names.parents[loop]
            self._add_read_by_kind(phase_of_loop(around, names), node, names, "the loop", sites)

    def _add_read_by_kind(
        self, kind: str, node: ast.AST, names: Names, reader: str, sites: tuple[ast.AST, ...]
    ) -> None:
        if kind == UNKNOWN:
            self.complete = False
        elif kind == BY_CALL:
            self._add_read_by_call(node, names, reader, sites)
        elif kind != PEEK:
            self._add_read(kind, node, names, reader, sites)

    def _add_read_by_call(self, node: ast.AST, names: Names, reader: str, sites: tuple[ast.AST, ...]) -> None:
        """Add a read of a function that trains for some of its arguments only."""
        function = next((parent for parent in names.ancestors(node) if isinstance(parent, _FUNCTIONS)), None)
        if function is None:  # only parameters make it depend on the call
            self.complete = False
            return
        call = self._calls.get(function)
        phase = passed_or_default_phase(function, call) if call is not None else None
        if (node, names) not in self._by_call.setdefault(function, []):
            self._by_call[function].append((node, names))
        if phase is None:
            self.complete = False
            self.undecided = function.name
        else:
            self._add_read(phase, node, names, reader, sites)


def _reads_several(word: str, names: Names) -> bool:
    """Return True if an iterator that a function makes with the shapes of one dataset may read others, too."""
    initialized = sum(last_name(call.node.func) == "make_initializer" for call in names.calls)
    return word == "from_string_handle" or word == "from_structure" and initialized > 1


def _called_definition(call: ast.Call, names: Names) -> Definition | None:
    """Return the function or class of the project that a call names, or the method of an object."""
    function, where = call.func, names.place(call)
    if not isinstance(function, (ast.Name, ast.Attribute)):
        return None
    definition = names.definition(function, where)
    kind = names.types.type_of(function.value, where) if isinstance(function, ast.Attribute) else None
    if definition is None and isinstance(function, ast.Attribute) and isinstance(kind, Instance):
        held = kind.names.attribute_bindings(kind.owner, function.attr)
        if len(held) == 1 and held[0].binding.node is not None:
            return Definition(held[0].binding.node, held[0].names)
    return definition


def _reads_of_same_expression(value: ast.AST, names: Names) -> list[ast.AST]:
    """Return the uses of a dictionary in the function that puts a dataset into it, and in those inside it."""
    text, where = ast.dump(value), names.place(value)
    return [
        use
        for use in names.mentions(last_name(value), where.scope.node)
        if use is not value and ast.dump(use) == text and isinstance(getattr(use, "ctx", None), ast.Load)
    ]
