"""What an expression evaluates to, as far as the source tells.

Types are names: a TensorFlow class (``tensorflow.data.Dataset``, ``tensorflow.estimator.RunConfig``,
``tensorflow.keras.Model`` ...), one of npu_shim, or None for "not known". All bindings that reach a
use must agree; one unknown binding makes the whole unknown.
"""
from __future__ import annotations

import ast
from typing import Dict, FrozenSet, Iterable, List, Optional, Tuple

from .names import Names
from .scopes import Binding, Function, Where

DATASET = 'tensorflow.data.Dataset'
RUN_CONFIG = 'tensorflow.estimator.RunConfig'
NPU_RUN_CONFIG = 'npu_shim.npu_init.NPURunConfig'
CONFIG_PROTO = 'tensorflow.ConfigProto'
NPU_CONFIG = 'a session configuration for the NPU'
MODEL = 'tensorflow.keras.Model'
SUPERVISOR = 'tensorflow.train.Supervisor'
SESSION_MANAGER = 'tensorflow.train.SessionManager'
PREPARED = 'a run configuration prepared for the NPU'

_DATASET_MAKERS = frozenset('tensorflow.data.' + name for name in '''
Dataset.from_tensor_slices Dataset.from_tensors Dataset.from_generator Dataset.from_sparse_tensor_slices
Dataset.range Dataset.zip Dataset.list_files Dataset.random Dataset.load Dataset.choose_from_datasets
Dataset.sample_from_datasets TFRecordDataset TextLineDataset FixedLengthRecordDataset
experimental.make_csv_dataset experimental.make_batched_features_dataset experimental.CsvDataset
experimental.SqlDataset experimental.RandomDataset experimental.sample_from_datasets
experimental.choose_from_datasets experimental.from_variant experimental.load'''.split()) | {
    'tensorflow.contrib.data.TFRecordDataset', 'tensorflow.contrib.data.TextLineDataset',
    'tensorflow.contrib.data.sample_from_datasets'}
_DATASET_METHODS = frozenset('''
apply as_numpy batch bucket_by_sequence_length cache concatenate enumerate filter flat_map group_by_window
ignore_errors interleave map map_with_legacy_function padded_batch prefetch ragged_batch rebatch
rejection_resample repeat scan shard shuffle skip snapshot sparse_batch take take_while unbatch unique
window with_options'''.split()) - {'as_numpy'}
_RETURNS: Dict[str, str] = {
    'tensorflow.estimator.RunConfig': RUN_CONFIG,
    'npu_shim.npu_init.NPURunConfig': NPU_RUN_CONFIG,
    'npu_shim.npu_init.npu_run_config_init': PREPARED,
    'tensorflow.ConfigProto': CONFIG_PROTO,
    'npu_shim.npu_init.npu_config_proto': NPU_CONFIG,
    'npu_shim.session_config': NPU_CONFIG,
    'tensorflow.train.Supervisor': SUPERVISOR,
    'tensorflow.train.SessionManager': SESSION_MANAGER,
    'tensorflow.keras.Model': MODEL,
    'tensorflow.keras.Sequential': MODEL,
    'tensorflow.keras.models.load_model': MODEL,
    'tensorflow.keras.models.clone_model': MODEL,
    'tensorflow.keras.models.model_from_json': MODEL,
}
_RETURNS.update((name, DATASET) for name in _DATASET_MAKERS)
_MODEL_BASES: FrozenSet[str] = frozenset({MODEL, 'tensorflow.keras.Sequential'})
# Methods that only a dataset has, among what scripts hand to their functions.
_ONLY_DATASETS = frozenset('''
flat_map interleave make_initializable_iterator make_one_shot_iterator padded_batch prefetch shard
with_options'''.split())
_ANNOTATIONS = {'tensorflow.data.Dataset': DATASET, 'tensorflow.estimator.RunConfig': RUN_CONFIG,
                'tensorflow.keras.Model': MODEL}
_LOOP = 'being inferred'


class Types:
    """Types of the expressions of one module.

    Args:
        names: its names.
    """

    def __init__(self, names: Names) -> None:
        self._names = names
        self._memo: Dict[Tuple[int, int], Optional[str]] = {}
        self._asked: List[ast.AST] = []  # the definitions being looked into
        self._assigned: Dict[ast.ClassDef, Dict[str, List[Tuple[ast.expr, Where]]]] = {}
        self._functions: Dict[ast.AST, Function] = {f.node: f for f in names.functions}

    def of(self, node: Optional[ast.AST], where: Where) -> Optional[str]:
        """The type of an expression at a place, or None."""
        found = self._of(node, where)
        return None if found == _LOOP else found

    def _of(self, node: Optional[ast.AST], where: Where) -> Optional[str]:
        if node is None:
            return None
        key = (id(node), id(where.scope))
        if key in self._memo:
            return self._memo[key]
        self._memo[key] = _LOOP  # a name that depends on itself adds nothing to the join
        found: Optional[str] = None
        if isinstance(node, ast.Call):
            found = self._call(node, where)
        elif isinstance(node, ast.Name):
            found = self._name(node, where)
        elif isinstance(node, ast.Attribute):
            found = self._attribute(node, where)
        elif isinstance(node, ast.IfExp):
            found = _join([self._of(node.body, where), self._of(node.orelse, where)])
        if found == _LOOP:
            del self._memo[key]
        else:
            self._memo[key] = found
        return found

    def _call(self, node: ast.Call, where: Where) -> Optional[str]:
        name = self._names.resolve(node.func, where)
        if name in _RETURNS:
            return _RETURNS[name]
        if isinstance(node.func, ast.Attribute):
            owner = self._of(node.func.value, where)
            if owner == DATASET and node.func.attr in _DATASET_METHODS:
                return DATASET
            if owner == RUN_CONFIG and node.func.attr == 'replace':
                return owner
            if owner == NPU_RUN_CONFIG and node.func.attr == 'replace':
                return owner
            if owner == _LOOP:
                return _LOOP
        definition, types = self.definition(node.func, where)
        if isinstance(definition, ast.ClassDef):
            return MODEL if types.is_model_class(definition) else None
        if isinstance(definition, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return types.result(definition)
        return None

    def _name(self, node: ast.Name, where: Where) -> Optional[str]:
        bindings = self._names.lookup(node.id, where)
        if not bindings:
            return None
        return _join(self._binding(b) for b in bindings)

    def _binding(self, binding: Binding) -> Optional[str]:
        if binding.kind == 'value':
            return self._of(binding.node, binding.where)
        if binding.kind == 'arg':
            return self._argument(binding)
        return None

    def _argument(self, binding: Binding) -> Optional[str]:
        annotation = getattr(binding.node, 'annotation', None)
        if annotation is None:
            return DATASET if self._used_as_dataset(binding) else None
        function = self._functions.get(binding.where.scope.node)
        where = function.where if function else binding.where
        return _ANNOTATIONS.get(self._names.resolve(annotation, where) or '')

    def _used_as_dataset(self, binding: Binding) -> bool:
        """Whether a parameter's function calls a method on it that only datasets have."""
        name = getattr(binding.node, 'arg', '')
        for call in self._names.calls:
            root: ast.AST = call.node.func
            only = False
            while isinstance(root, (ast.Attribute, ast.Call)):
                only = only or isinstance(root, ast.Attribute) and root.attr in _ONLY_DATASETS
                root = root.value if isinstance(root, ast.Attribute) else root.func
            if only and isinstance(root, ast.Name) and root.id == name and \
                    call.where.scope is binding.where.scope:
                return True
        return False

    def _attribute(self, node: ast.Attribute, where: Where) -> Optional[str]:
        # self.model = tf.keras.Model(...) anywhere in the class
        owner = self._class_of_self(node.value, where)
        if owner is None:
            return None
        values = self._attributes(owner).get(node.attr)
        return _join(self._of(value, at) for value, at in values) if values else None

    def _class_of_self(self, node: ast.AST, where: Where) -> Optional[ast.ClassDef]:
        if not isinstance(node, ast.Name):
            return None
        bindings = self._names.lookup(node.id, where) or []
        if len(bindings) != 1 or bindings[0].kind != 'arg':
            return None
        function = bindings[0].where.scope.node
        parent = self._names.parents.get(function)
        arguments = getattr(function, 'args', None)
        if isinstance(parent, ast.ClassDef) and arguments and arguments.args and \
                arguments.args[0] is bindings[0].node:
            return parent
        return None

    def _attributes(self, owner: ast.ClassDef) -> Dict[str, List[Tuple[ast.expr, Where]]]:
        """What the methods of a class assign to the attributes of its objects."""
        if owner in self._assigned:
            return self._assigned[owner]
        found: Dict[str, List[Tuple[ast.expr, Where]]] = {}
        for method in owner.body:
            if not isinstance(method, (ast.FunctionDef, ast.AsyncFunctionDef)):
                continue
            for assign in [n for n in ast.walk(method) if isinstance(n, ast.Assign)]:
                for target in assign.targets:
                    if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name):
                        found.setdefault(target.attr, []).append(
                            (assign.value, self._names.places[assign]))
        self._assigned[owner] = found
        return found

    def definition(self, node: ast.AST, where: Where) -> Tuple[Optional[ast.AST], Types]:
        """The one function or class that a name refers to, with the types of its module."""
        if isinstance(node, ast.Name):
            bindings = self._names.lookup(node.id, where) or []
            if len(bindings) == 1 and bindings[0].kind in ('def', 'class'):
                return bindings[0].node, self
        path, _, name = (self._names.spelled(node, where) or '').partition(':')
        module = self._names.project.module(path) if name and self._names.project else None
        if module is not None:
            bindings = module.names.module.bindings.get(name, [])
            if len(bindings) == 1:
                return bindings[0].node, module.types
        return None, self

    def is_model_class(self, node: ast.ClassDef) -> bool:
        """Whether a class of this module is a Keras model."""
        if node in self._asked:
            return False  # a class among its own bases
        self._asked.append(node)
        try:
            for found, where in self._names.classes:
                for base in node.bases if found is node else ():
                    if self._names.resolve(base, where) in _MODEL_BASES:
                        return True
                    definition, types = self.definition(base, where)
                    if isinstance(definition, ast.ClassDef) and types.is_model_class(definition):
                        return True
            return False
        finally:
            self._asked.pop()

    def result(self, function: ast.AST) -> Optional[str]:
        """The type of what a function of this module returns."""
        if function in self._asked:
            return _LOOP
        self._asked.append(function)
        try:
            returned = own_returns(function)
            return _join(self._of(r.value, self._names.places[r])
                         for r in returned) if returned else None
        finally:
            self._asked.pop()


def own_returns(function: ast.AST) -> List[ast.Return]:
    """The return statements of a function, those of functions inside it left out."""
    found: List[ast.Return] = []
    for child in ast.iter_child_nodes(function):
        if isinstance(child, ast.Return):
            found.append(child)
        elif not isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.expr)):
            found += own_returns(child)
    return found


def _join(types: Iterable[Optional[str]]) -> Optional[str]:
    """The one type that all have; those still being inferred do not count."""
    found = set(types)
    if found == {_LOOP}:
        return _LOOP
    found.discard(_LOOP)
    return found.pop() if len(found) == 1 else None
