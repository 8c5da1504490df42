"""Strategies of tf.distribute: their kinds, and the run configurations that contain them."""

from __future__ import annotations

import ast
import re

from ..project.context import Context
from ..semantics.model import Where
from ..semantics.module_index import Names
from ..semantics.signatures import RUN_CONFIG, Bound, bind_arguments
from ..semantics.tf_types import Type
from ..semantics.value_flow import origins
from .program_calls import program_has_call

REPLICAS, SERVERS, TPU = "trains synchronous replicas", "uses parameter servers", "requires a TPU"
NPU_STRATEGY = "npu_shim.npu_init.NPUStrategy"
_HOMES = ("tensorflow.distribute.", "tensorflow.distribute.experimental.", "tensorflow.contrib.distribute.")
_KINDS = {
    "MirroredStrategy": REPLICAS,
    "MultiWorkerMirroredStrategy": REPLICAS,
    "OneDeviceStrategy": REPLICAS,
    "CollectiveAllReduceStrategy": REPLICAS,
    "CentralStorageStrategy": REPLICAS,
    "ParameterServerStrategy": SERVERS,
    "ParameterServerStrategyV2": SERVERS,
    "TPUStrategy": TPU,
    "TPUStrategyV2": TPU,
}
NAMES: dict[str, str] = {home + word: kind for home in _HOMES for word, kind in _KINDS.items()}
ONE_DEVICE = frozenset(home + "OneDeviceStrategy" for home in _HOMES)
_MADE = frozenset(name for name, kind in NAMES.items() if kind == REPLICAS) | {NPU_STRATEGY}
_CONFIGS = frozenset({"tensorflow.estimator.RunConfig", "npu_shim.npu_init.NPURunConfig"})
_STRATEGY = re.compile(rb"Strategy")
_TAKES = frozenset({"train_distribute", "eval_distribute", "experimental_distribute"})
_DISTRIBUTE_CONFIG = ("train_distribute", "eval_distribute", "remote_cluster")


def creates_custom_strategy(names: Names, call: ast.Call, where: Where) -> bool:
    """Return True if a call makes a strategy with synchronous replicas whose class is of the project, or of Sonnet."""
    if names.resolve(call.func, where) == "sonnet.distribute.Replicator":
        return True
    its_class = names.class_definition(call.func, where)
    return its_class is not None and any(
        NAMES.get(name) == REPLICAS for name in its_class.names.outside_ancestors(its_class.node)
    )


def strategy_kinds(node: ast.AST, where: Where, names: Names) -> set[str | None]:
    """Return the kinds of strategies that an expression may be.

    The set contains None if the expression may be something else, and is empty if the expression is None.

    Args:
        node: the expression.
        where: its place.
        names: the names of its module.
    """
    possible: set[str | None] = set()
    for origin in origins(node, where, names):
        name = origin.resolve() if isinstance(origin.node, ast.Call) else None
        if name is not None and name.endswith(".DistributeConfig") and isinstance(origin.node, ast.Call):
            bound = bind_arguments(origin.node, _DISTRIBUTE_CONFIG)
            for argument in _DISTRIBUTE_CONFIG[:2]:
                if argument in bound.args:
                    possible |= strategy_kinds(bound.args[argument], origin.where, origin.names)
            if bound.hidden or bound.unknown or bound.is_given("remote_cluster"):
                possible.add(None)
        else:
            possible.add(REPLICAS if name == NPU_STRATEGY else NAMES.get(name or ""))
    return possible


def strategies_by_argument(context: Context, call: ast.Call, where: Where) -> dict[str, set[str | None]]:
    """Return the kinds of strategies that a call adds to a run configuration, by argument.

    Args:
        context: the file.
        call: any call.
        where: its place.
    """
    bound = bound_configuration(context, call, where)
    by_argument = (
        {name: strategy_kinds(bound.args[name], where, context.names) for name in _TAKES.intersection(bound.args)}
        if bound
        else {}
    )
    return {name: its_kinds for name, its_kinds in by_argument.items() if its_kinds}


def bound_configuration(context: Context, call: ast.Call, where: Where) -> Bound | None:
    """Return the arguments of a call that creates or changes a run configuration; None for any other call."""
    if any(keyword.arg in _TAKES for keyword in call.keywords) or len(call.args) > RUN_CONFIG.index("train_distribute"):
        if (
            context.resolve(call.func, where) in _CONFIGS
            or isinstance(call.func, ast.Attribute)
            and call.func.attr == "replace"
            and context.types.type_of(call.func.value, where) in (None, Type.RUN_CONFIG, Type.NPU_RUN_CONFIG)
        ):
            return bind_arguments(call, RUN_CONFIG)
    return None


def converted_arguments(context: Context, call: ast.Call, where: Where) -> set[str]:
    """Return the arguments of a run configuration whose strategies are converted to the NPU."""
    if context.distributed != "tf_strategy":
        return set()
    return {name for name, its_kinds in strategies_by_argument(context, call, where).items() if its_kinds == {REPLICAS}}


def programs_create_strategy(names: Names) -> bool:
    """Return True if the programs of a file create a strategy with synchronous replicas, which shards the data.

    Args:
        names: name resolution in the file. If nothing imports it, all files of the project count.
    """
    return program_has_call(names, _creates_strategy, _STRATEGY.search)


def _creates_strategy(names: Names) -> bool:
    return any(names.resolve(call.node.func, call.where) in _MADE for call in names.calls)
