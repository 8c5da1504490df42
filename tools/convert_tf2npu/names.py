"""What a name is: scopes, bindings, and the bindings that reach a use.

One walk over the tree records every scope with what binds each name in it, every call, and every
function, each with the place where it stands. Afterwards :meth:`Names.resolve` follows imports,
aliases and assignments from an expression to the dotted name of what it refers to. Where bindings
disagree, or one of them is not known, the answer is None: a rule then leaves the code alone.
"""
from __future__ import annotations

import ast
import builtins
from typing import Dict, Iterator, List, NamedTuple, Optional, Tuple, Union

from .signatures import constant
from .tfnames import canonical

FunctionNode = Union[ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda]
# A statement's place in its scope: (block number, index in the block, is the block a loop's body)
Path = Tuple[Tuple[int, int, bool], ...]

# What the star import of npu_shim.npu_init binds (the vendor's interface).
STAR = frozenset('''
os tf config_pb2 rewriter_config_pb2 RewriterConfig session session_run_hook backend NPURunConfig
ProfilingConfig MemoryConfig DumpConfig DynamicInputConfig decorator_tf_session NPUEstimator
NPUEstimatorSpec NPUCheckpointSaverHook NPUOutputTensorHook NPUBroadcastGlobalVariablesHook
SetIterationsVarHook TellMeStepOrLossHook NPUDistributedOptimizer KerasDistributeOptimizer
npu_distributed_optimizer_wrapper NPUOptimizer npu_allreduce NPULossScaleOptimizer
FixedLossScaleManager ExponentialUpdateLossScaleManager NPUBroadcastGlobalVariablesCallback npu_ops
npu_rnn npu_scope keras_to_npu npu_strategy util npu_plugin npu_unary_ops hccl_ops profiler
npu_cpu_ops scoped_graph_manager create_group destroy_group get_rank_size get_local_rank_size
get_rank_id get_local_rank_id get_world_rank_from_group_rank get_group_rank_from_world_rank
set_split_strategy_by_idx set_split_strategy_by_size experimental_options npu_hooks_append
npu_callbacks_append npu_config_proto npu_graph_options npu_optimizer_options npu_run_config_init
set_keras_session_npu_config init_resource shutdown_resource close_session get_npu_rank_id
get_npu_local_rank_id get_npu_rank_size get_npu_local_rank_size NpuEmptyHook npu_keras_optimizer
npu_tf_optimizer npu_clear_session'''.split())
_BUILTINS = frozenset(dir(builtins))


class Scope:
    """A module, class, function, lambda or comprehension."""

    def __init__(self, node: ast.AST, parent: Optional['Scope']) -> None:
        self.node = node
        self.parent = parent
        self.bindings: Dict[str, List[Binding]] = {}
        self.elsewhere: Dict[str, str] = {}  # names declared global or nonlocal

    @property
    def is_class(self) -> bool:
        return isinstance(self.node, ast.ClassDef)


class Where(NamedTuple):
    """The place of a statement: its scope, its path there, the innermost statement."""
    scope: Scope
    path: Path
    statement: Optional[ast.stmt]


class Binding(NamedTuple):
    """One thing that binds a name.

    ``kind`` is ``import`` (``target`` is the dotted name), ``value`` (``node`` is the expression
    assigned), ``def``, ``class``, ``arg`` (``node`` is the definition) or ``other`` (a loop
    variable, ``del``, part of an unpacking ...: not followed).
    """
    kind: str
    where: Where
    node: Optional[ast.AST] = None
    target: str = ''


class Star(NamedTuple):
    """A star import."""
    module: str
    node: ast.ImportFrom


class Call(NamedTuple):
    """A call and the place where it stands."""
    node: ast.Call
    where: Where


class Function(NamedTuple):
    """A function or lambda, the place of its definition, and its own scope."""
    node: FunctionNode
    where: Where
    scope: Scope


class Names:
    """All names of one module.

    Args:
        tree: the module.
    """

    def __init__(self, tree: ast.Module) -> None:
        self.tree = tree
        self.calls: List[Call] = []
        self.functions: List[Function] = []
        self.classes: List[Tuple[ast.ClassDef, Where]] = []
        self.stars: List[Star] = []
        self.parents: Dict[ast.AST, ast.AST] = {}
        self.places: Dict[ast.AST, Where] = {}  # of each statement
        self.module = Scope(tree, None)
        self._blocks = 0
        self._resolving: set = set()
        self._block(tree, tree.body, self.module, (), False)

    # -- the walk ---------------------------------------------------------------------------------

    def _block(self, parent: ast.AST, body: List[ast.stmt], scope: Scope, path: Path,
               loop: bool) -> None:
        self._blocks += 1
        block = self._blocks
        for index, statement in enumerate(body):
            self.parents[statement] = parent
            where = Where(scope, path + ((block, index, loop),), statement)
            self.places[statement] = where
            self._statement(statement, where)

    def _bind(self, name: str, binding: Binding) -> None:
        scope = binding.where.scope
        declared = scope.elsewhere.get(name)
        if declared == 'global':
            scope = self.module
        elif declared == 'nonlocal':
            outer = scope.parent
            while outer and outer.parent and (outer.is_class or name not in outer.bindings):
                outer = outer.parent
            scope = outer or scope
        scope.bindings.setdefault(name, []).append(binding)

    def _statement(self, node: ast.stmt, where: Where) -> None:
        scope = where.scope
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            self._bind(node.name, Binding('def', where, node))
            for child in node.decorator_list + [node.returns]:
                self._expression(child, node, where)
            inner = self._arguments(node, where)
            self._block(node, node.body, inner, (), False)
        elif isinstance(node, ast.ClassDef):
            self._bind(node.name, Binding('class', where, node))
            self.classes.append((node, where))
            for child in node.decorator_list + node.bases + [k.value for k in node.keywords]:
                self._expression(child, node, where)
            self._block(node, node.body, Scope(node, scope), (), False)
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.asname:
                    self._bind(alias.asname, Binding('import', where, node, alias.name))
                else:
                    top = alias.name.split('.')[0]
                    self._bind(top, Binding('import', where, node, top))
        elif isinstance(node, ast.ImportFrom):
            module = '.' * node.level + (node.module or '')
            for alias in node.names:
                if alias.name == '*':
                    self.stars.append(Star(module, node))
                else:
                    dot = '' if module.endswith('.') else '.'
                    self._bind(alias.asname or alias.name,
                               Binding('import', where, node, module + dot + alias.name))
        elif isinstance(node, (ast.Global, ast.Nonlocal)):
            for name in node.names:
                scope.elsewhere[name] = type(node).__name__.lower()
        else:
            self._other_statement(node, where)

    def _other_statement(self, node: ast.stmt, where: Where) -> None:
        if isinstance(node, ast.Assign):
            self._expression(node.value, node, where)
            for target in node.targets:
                self._target(target, node.value, node, where)
        elif isinstance(node, ast.AnnAssign):
            self._expression(node.annotation, node, where)
            if node.value is not None:
                self._expression(node.value, node, where)
                self._target(node.target, node.value, node, where)
            else:
                self._target(node.target, None, node, where)
        elif isinstance(node, ast.AugAssign):
            self._expression(node.value, node, where)
            self._target(node.target, None, node, where)
        elif isinstance(node, (ast.For, ast.AsyncFor)):
            self._expression(node.iter, node, where)
            inside = Where(where.scope, where.path, node)
            self._target(node.target, None, node, inside)
            self._block(node, node.body, where.scope, where.path, True)
            self._block(node, node.orelse, where.scope, where.path, False)
        elif isinstance(node, (ast.With, ast.AsyncWith)):
            for item in node.items:
                self._expression(item.context_expr, node, where)
                if item.optional_vars is not None:
                    self._target(item.optional_vars, None, node, where)
            self._block(node, node.body, where.scope, where.path, False)
        elif isinstance(node, (ast.If, ast.While)):
            self._expression(node.test, node, where)
            self._block(node, node.body, where.scope, where.path, isinstance(node, ast.While))
            self._block(node, node.orelse, where.scope, where.path, False)
        else:
            # Try, Match, Delete, Return, Expr ...: whatever expressions, targets and blocks it has
            for _, value in ast.iter_fields(node):
                for child in value if isinstance(value, list) else [value]:
                    if isinstance(child, ast.expr):
                        self._expression(child, node, where)
                    elif isinstance(child, ast.AST) and hasattr(child, 'body'):
                        self.parents[child] = node
                        if getattr(child, 'name', None):
                            self._bind(child.name, Binding('other', where))
                        for part in ast.iter_child_nodes(child):
                            if isinstance(part, ast.expr):
                                self._expression(part, child, where)
                            elif not isinstance(part, ast.stmt):
                                self._pattern(part, where)
                        self._block(child, child.body, where.scope, where.path, False)
                if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                    self._block(node, value, where.scope, where.path, False)

    def _pattern(self, node: ast.AST, where: Where) -> None:
        for part in ast.walk(node):
            name = getattr(part, 'name', None) or getattr(part, 'rest', None)
            if isinstance(name, str):
                self._bind(name, Binding('other', where))

    def _arguments(self, node: FunctionNode, where: Where) -> Scope:
        inner = Scope(node, where.scope)
        self.functions.append(Function(node, where, inner))
        args = node.args
        for child in args.defaults + args.kw_defaults:
            self._expression(child, node, where)
        at = Where(inner, (), None)
        for arg in getattr(args, 'posonlyargs', []) + args.args + args.kwonlyargs + [
                args.vararg, args.kwarg]:
            if arg is not None:
                self._expression(arg.annotation, node, where)
                self._bind(arg.arg, Binding('arg', at, arg))
        return inner

    def _target(self, target: ast.expr, value: Optional[ast.expr], parent: ast.AST,
                where: Where) -> None:
        if isinstance(target, ast.Name):
            self.parents[target] = parent
            kind = 'value' if value is not None else 'other'
            self._bind(target.id, Binding(kind, where, value))
        elif isinstance(target, (ast.Tuple, ast.List)):
            self.parents[target] = parent
            values: List[Optional[ast.expr]] = [None] * len(target.elts)
            if isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(values) and not \
                    any(isinstance(e, ast.Starred) for e in value.elts + target.elts):
                values = list(value.elts)
            for element, part in zip(target.elts, values):
                self._target(element, part, target, where)
        elif isinstance(target, ast.Starred):
            self._target(target.value, None, target, where)
        else:
            self._expression(target, parent, where)

    def _expression(self, node: Optional[ast.AST], parent: ast.AST, where: Where) -> None:
        if node is None:
            return
        self.parents[node] = parent
        if isinstance(node, ast.Name):
            if isinstance(node.ctx, (ast.Store, ast.Del)):
                self._bind(node.id, Binding('other', where))
            return
        if isinstance(node, ast.Call):
            self.calls.append(Call(node, where))
        elif isinstance(node, ast.Lambda):
            inner = self._arguments(node, where)
            self._expression(node.body, node, Where(inner, (), where.statement))
            return
        elif isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)):
            where = Where(Scope(node, where.scope), (), where.statement)
            for generator in node.generators:
                self._target(generator.target, None, node, where)
        elif type(node).__name__ == 'NamedExpr':
            self._target(node.target, node.value, node, where)  # type: ignore[attr-defined]
        for child in ast.iter_child_nodes(node):
            self._expression(child, node, where)

    # -- questions --------------------------------------------------------------------------------

    def lookup(self, name: str, where: Where) -> Optional[List[Binding]]:
        """The bindings of a name that can reach a place; None when nothing binds it."""
        scope: Optional[Scope] = where.scope
        first = True
        while scope is not None:
            if name in scope.bindings and (first or not scope.is_class):
                bindings = scope.bindings[name]
                return _reaching(bindings, where.path) if first else bindings
            if not isinstance(scope.node, (ast.ListComp, ast.SetComp, ast.GeneratorExp,
                                           ast.DictComp)):
                first = False
            scope = scope.parent
        return None

    def spelled(self, node: ast.AST, where: Where) -> Optional[str]:
        """The dotted name an expression refers to, by the path the script took to it."""
        if isinstance(node, ast.Attribute):
            base = self.spelled(node.value, where)
            return base + '.' + node.attr if base else None
        if not isinstance(node, ast.Name):
            return None
        bindings = self.lookup(node.id, where)
        if bindings is None:
            return self._from_star(node.id)
        # Nothing can be had of None: where a name is used, it is what else it may be.
        found = {self._binding_name(b) for b in bindings if not _is_none(b)}
        if len(found) > 1 and None not in found:
            # import tensorflow.compat.v1 as tf, or plain tensorflow where that fails: one thing
            if len({canonical(f) for f in found if f}) == 1:
                return max(found, key=lambda f: len(f or ''))
        return found.pop() if len(found) == 1 else None

    def resolve(self, node: ast.AST, where: Where) -> Optional[str]:
        """The canonical dotted name of what an expression refers to, or None.

        A call stands for nothing here: ``tf.Session`` has a name, ``tf.Session()`` has not.
        """
        name = self.spelled(node, where)
        return canonical(name) if name else None

    def _binding_name(self, binding: Binding) -> Optional[str]:
        if binding.kind == 'import':
            return binding.target
        if binding.kind == 'value' and isinstance(binding.node, (ast.Name, ast.Attribute)):
            key = id(binding.node)
            if key in self._resolving:
                return None
            self._resolving.add(key)
            try:
                return self.spelled(binding.node, binding.where)
            finally:
                self._resolving.discard(key)
        return None

    def _from_star(self, name: str) -> Optional[str]:
        if name in _BUILTINS or not self.stars:
            return None
        for star in self.stars:
            if canonical(star.module) == 'npu_shim.npu_init':
                if name in STAR:
                    return 'tensorflow' if name == 'tf' else 'npu_shim.npu_init.' + name
        others = [s.module for s in self.stars if canonical(s.module) != 'npu_shim.npu_init']
        if len(others) == 1 and others[0].split('.')[0] in ('tensorflow', 'tensorflow_estimator'):
            return others[0] + '.' + name
        return None

    def handed(self, parameter: Binding) -> Optional[List[Tuple[ast.expr, Where]]]:
        """What the calls in this module hand to a function's parameter, each with its place.

        Returns:
            None where the module does not show all: the function is used otherwise than by calls of
            its name, or never, or a call leaves the parameter out or hides its arguments.
        """
        function = parameter.where.scope.node
        if not isinstance(function, ast.FunctionDef) or parameter.kind != 'arg':
            return None
        parameters = [a.arg for a in function.args.args + function.args.kwonlyargs]
        name = getattr(parameter.node, 'arg', '')
        called = {id(c.node.func): c for c in self.calls}
        values: List[Tuple[ast.expr, Where]] = []
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Attribute) and node.attr == function.name:
                return None
            if not (isinstance(node, ast.Name) and node.id == function.name):
                continue
            call = called.get(id(node))
            if call is None:
                return None
            hidden = any(isinstance(a, ast.Starred) for a in call.node.args)
            given = dict(zip(parameters, call.node.args))
            given.update((k.arg, k.value) for k in call.node.keywords if k.arg)
            if hidden or name not in given:
                return None
            values.append((given[name], call.where))
        return values or None

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        """The nodes around a node, the innermost first."""
        parent = self.parents.get(node)
        while parent is not None:
            yield parent
            parent = self.parents.get(parent)


def _is_none(binding: Binding) -> bool:
    return binding.kind == 'value' and constant(binding.node) == (None,)


def _reaching(bindings: List[Binding], use: Path) -> List[Binding]:
    """The bindings that can have run last before a use in the same scope."""
    if len(bindings) == 1:
        return bindings
    reaching = [b for b in bindings if not b.where.path]  # arguments
    for depth in range(len(use) - 1, -1, -1):
        block, index, loop = use[depth]
        here = [b for b in bindings
                if len(b.where.path) > depth and b.where.path[depth][0] == block]
        inside = len(use) > depth + 1  # the use stands in a block of the statement at this depth
        before = [b for b in here if b.where.path[depth][1] < index or (
            inside and b.where.path[depth][1] == index and len(b.where.path) == depth + 1)]
        after = [b for b in here if b.where.path[depth][1] >= index] if loop else []
        certain = [b for b in before if len(b.where.path) == depth + 1]
        if certain:
            last = max(certain, key=lambda b: b.where.path[depth][1])
            place = last.where.path[depth][1]
            return _join(reaching, [last], [b for b in before if b.where.path[depth][1] > place],
                         after, arguments=False)
        reaching = _join(reaching, before, after, arguments=True)
    return reaching or bindings


def _join(*groups: List[Binding], arguments: bool) -> List[Binding]:
    joined: List[Binding] = []
    for group in groups:
        for binding in group:
            if binding not in joined and (arguments or binding.where.path):
                joined.append(binding)
    return joined
