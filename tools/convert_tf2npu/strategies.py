"""Strategies of tf.distribute: their kinds, and the run configurations that take them."""
from __future__ import annotations

import ast
from typing import Dict, Optional, Set

from .edits import loses_comment
from .names import Names
from .origins import origins
from .registry import Context
from .removing import remove_arguments
from .scopes import Where
from .signatures import RUN_CONFIG, Bound, bind

REPLICAS, SERVERS, TPU = 'trains replicas in step', 'has parameter servers', 'needs a TPU'
NPU_STRATEGY = 'npu_shim.npu_init.npu_strategy.NPUStrategy'
_HOMES = ('tensorflow.distribute.', 'tensorflow.distribute.experimental.', 'tensorflow.contrib.distribute.')
_KINDS = {'MirroredStrategy': REPLICAS, 'MultiWorkerMirroredStrategy': REPLICAS, 'OneDeviceStrategy': REPLICAS,
          'CollectiveAllReduceStrategy': REPLICAS, 'CentralStorageStrategy': REPLICAS,
          'ParameterServerStrategy': SERVERS, 'ParameterServerStrategyV2': SERVERS, 'TPUStrategy': TPU,
          'TPUStrategyV2': TPU}
NAMES: Dict[str, str] = {home + word: kind for home in _HOMES for word, kind in _KINDS.items()}
_CONFIGS = frozenset({'tensorflow.estimator.RunConfig', 'npu_shim.npu_init.NPURunConfig'})
_TAKES = frozenset({'train_distribute', 'eval_distribute', 'experimental_distribute'})
_DISTRIBUTE_CONFIG = ('train_distribute', 'eval_distribute', 'remote_cluster')


def kinds(node: ast.AST, where: Where, names: Names) -> Set[Optional[str]]:
    """The kinds of strategies that an expression may be; None among them where it may be something else,
    nothing where it is None.

    Args:
        node: the expression.
        where: its place.
        names: the names of its module.
    """
    found: Set[Optional[str]] = set()
    for origin in origins(node, where, names):
        name = origin.resolve() if isinstance(origin.node, ast.Call) else None
        if name is not None and name.endswith('.DistributeConfig') and isinstance(origin.node, ast.Call):
            bound = bind(origin.node, _DISTRIBUTE_CONFIG)
            for argument in _DISTRIBUTE_CONFIG[:2]:
                if argument in bound.args:
                    found |= kinds(bound.args[argument], origin.where, origin.names)
            if bound.hidden or bound.unknown or bound.given('remote_cluster'):
                found.add(None)
        else:
            found.add(REPLICAS if name == NPU_STRATEGY else NAMES.get(name or ''))
    return found


def taken(context: Context, call: ast.Call, where: Where) -> Dict[str, Set[Optional[str]]]:
    """The strategies that a call makes part of a run configuration: their kinds by argument.

    Args:
        context: the file.
        call: any call.
        where: its place.
    """
    bound = bound_configuration(context, call, where)
    found = {name: kinds(bound.args[name], where, context.names) for name in _TAKES.intersection(bound.args)} \
        if bound else {}
    return {name: its_kinds for name, its_kinds in found.items() if its_kinds}


def bound_configuration(context: Context, call: ast.Call, where: Where) -> Optional[Bound]:
    """The arguments of a call that makes a run configuration, or changes one; None for any other call."""
    if any(keyword.arg in _TAKES for keyword in call.keywords) or len(call.args) > RUN_CONFIG.index(
            'train_distribute'):
        if context.resolve(call.func, where) in _CONFIGS or isinstance(
                call.func, ast.Attribute) and call.func.attr == 'replace' and context.types.of(
                    call.func.value, where) in _CONFIGS | {None}:
            return bind(call, RUN_CONFIG)
    return None


def dropped(context: Context, call: ast.Call, where: Where) -> Set[str]:
    """The arguments of a run configuration that go, because ranks take the place of replicas."""
    if context.distributed != 'tf_strategy':
        return set()
    bound = bound_configuration(context, call, where)
    if isinstance(call.func, ast.Attribute) and call.func.attr == 'replace' and context.types.of(
            call.func.value, where) is None:
        return set()  # for all that is known, it replaces something else
    found = {name for name, its_kinds in taken(context, call, where).items()
             if its_kinds == {REPLICAS} and bound and name in bound.keywords}
    edits = remove_arguments(context.source, call, [bound.args[name] for name in found]) if bound else []
    return found if not loses_comment(context.source, edits) else set()
