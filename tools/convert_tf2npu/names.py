"""What a name is.

:meth:`Names.resolve` follows imports, aliases and assignments from an expression to the dotted name of
what it refers to. Where the bindings that reach a use disagree, or one of them is not known, the answer
is None: a rule then leaves the code alone.
"""
from __future__ import annotations

import ast
import builtins
from typing import TYPE_CHECKING, Iterator, List, Optional, Set, Tuple

from .scopes import Binding, Path, Scope, Scopes, Where
from .signatures import constant
from .tfnames import canonical

if TYPE_CHECKING:
    from .project import Project

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


class Names(Scopes):
    """All names of one module.

    Args:
        tree: the module.
        project: the files among which it stands, for names that it imports from them.
        path: its own file.
    """

    def __init__(self, tree: ast.Module, project: Optional[Project] = None, path: str = '') -> None:
        super().__init__(tree)
        self.project = project
        self.path = path
        self._resolving: Set[int] = set()

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
            if base and self.project:
                return self.project.attribute(base, node.attr)
            return base + '.' + node.attr if base else None
        if not isinstance(node, ast.Name):
            return None
        bindings = self.lookup(node.id, where)
        if bindings is None:
            return self._from_star(node.id)
        return self._one(bindings)

    def exported(self, name: str) -> Optional[str]:
        """What a module-level name is to the modules that import it."""
        bindings = self.module.bindings.get(name)
        return self._one(bindings) if bindings else self._from_star(name)

    def _one(self, bindings: List[Binding]) -> Optional[str]:
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
            return self.project.follow(binding.target, self.path) if self.project else binding.target
        if binding.kind in ('def', 'class') and self.path and binding.where.scope is self.module:
            return '%s:%s' % (self.path, getattr(binding.node, 'name', ''))
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
        known: Set[Optional[str]] = set()
        for star in self.stars:
            if canonical(star.module) == 'npu_shim.npu_init':
                continue
            module = self.project.find(star.module, self.path) if self.project else None
            if module and self.project:
                found = self.project.attribute(module, name)
                if found:
                    known.add(found)
            elif star.module.split('.')[0] in ('tensorflow', 'tensorflow_estimator'):
                known.add(star.module + '.' + name)
            else:
                known.add(None)  # what it brings is not known
        return known.pop() if len(known) == 1 else None

    def handed(self, parameter: Binding) -> Optional[List[Tuple[ast.expr, Where]]]:
        """What the calls in this module hand to a function's parameter, each with its place.

        Returns:
            None where that is not all: the function is used otherwise than by calls of its name, or
            never, or by other modules, or a call leaves the parameter out or hides its arguments.
        """
        function = parameter.where.scope.node
        if not isinstance(function, ast.FunctionDef) or parameter.kind != 'arg':
            return None
        if self.project and self.path and self.project.used_elsewhere(function.name, self.path):
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
