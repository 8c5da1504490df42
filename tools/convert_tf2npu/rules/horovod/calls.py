"""Convert calls of Horovod to NPU collectives."""

from __future__ import annotations

import ast
from typing import Callable, NamedTuple, Union

from ...rewrite.call_edits import inside, rename
from ...rewrite.npu_imports import name_of_tensorflow
from ...semantics.module_index import Names
from ...semantics.signatures import Bound, bind
from ...syntax.expressions import constant
from ...syntax.source import Edit, Source
from ..base import Finding
from .uses import Use, is_horovod

_OPTIMIZER = (
    "optimizer",
    "name",
    "use_locking",
    "device_dense",
    "device_sparse",
    "compression",
    "sparse_as_dense",
    "backward_passes_per_step",
    "op",
    "gradient_predivide_factor",
    "average_aggregated_gradients",
    "num_groups",
    "groups",
    "process_set",
)
# Arguments about the transport of gradients. They do not change the result.
_CARRIAGE = frozenset(
    {
        "name",
        "use_locking",
        "device_dense",
        "device_sparse",
        "compression",
        "sparse_as_dense",
        "gradient_predivide_factor",
        "average_aggregated_gradients",
        "num_groups",
        "groups",
    }
)
_ALLREDUCE = (
    "tensor",
    "average",
    "device_dense",
    "device_sparse",
    "compression",
    "op",
    "prescale_factor",
    "postscale_factor",
    "name",
    "process_set",
)
_REDUCTIONS = {
    "horovod.Average": "mean",
    "horovod.Sum": "sum",
    "horovod.Min": "min",
    "horovod.Max": "max",
    "horovod.Product": "prod",
}
GETTERS = {
    "horovod.rank": "get_npu_rank_id",
    "horovod.size": "get_npu_rank_size",
    "horovod.local_rank": "get_npu_local_rank_id",
    "horovod.local_size": "get_npu_local_rank_size",
}


class Turned(NamedTuple):
    """A converted use: the edits, the names of npu_init in them, the expressions that they remove, and a note."""

    edits: list[Edit]
    uses: tuple[str, ...]
    dropped: tuple[ast.AST, ...] = ()
    note: str = ""


class File(NamedTuple):
    """A script whose uses of Horovod are converted."""

    source: Source
    names: Names


Turn = Union[Turned, Finding]


def turn_call(file: File, use: Use) -> Turn | None:
    """Convert a call.

    Returns:
        The converted call; a finding if it cannot be converted; None if the call is unsupported on the NPU.
    """
    if use.call is None or use.name not in _CALLS:
        return None
    signature, make = _CALLS[use.name]
    bound = bind(use.call, signature)
    if bound.hidden or bound.unknown:
        return Finding(use.call, f"{use.short} hides arguments behind * or **. Pass them by name")
    return make(file, use, use.call, bound)


def _kept(
    file: File, use: Use, argument: str, bound: Bound, new: str, after: str, uses: tuple[str, ...], before: str = ""
) -> Turn:
    """Rename a call and keep one of its arguments, with other text around it."""
    source, call, kept = file.source, use.call, bound.args.get(argument)
    assert call is not None
    if kept is None:
        return Finding(call, f"the argument {argument} is missing. Pass it")
    opening, close = inside(source, call), source.end(call) - 1
    start, end = source.start(kept), source.end(kept)
    if isinstance(kept, (ast.Yield, ast.YieldFrom)) or source.comments(opening, start) + source.comments(end, close):
        return Finding(call, f"a comment or yield among the arguments prevents the conversion. Write {new}")
    dropped = tuple(value for value in bound.args.values() if value is not kept)
    return Turned(
        [rename(source, call.func, new), Edit(opening, start, before), Edit(end, close, after)], uses, dropped
    )


def _optimizer(file: File, use: Use, call: ast.Call, bound: Bound) -> Turn:
    foreign = [
        a
        for a in bound.args
        if a != "optimizer"
        and a not in _CARRIAGE
        and not (a == "backward_passes_per_step" and constant(bound.args[a]) == (1,))
        and not (a == "op" and _reduction(file, use, bound) == "mean")
    ]
    if foreign:
        return Finding(
            call,
            f"DistributedOptimizer with {', '.join(foreign)} is unsupported on the NPU. "
            "Write npu_distributed_optimizer_wrapper(optimizer)",
        )
    name = "npu_distributed_optimizer_wrapper"
    return _kept(file, use, "optimizer", bound, name, "", (name,))


def _hook(file: File, use: Use, call: ast.Call, bound: Bound) -> Turn:
    name = "NPUBroadcastGlobalVariablesHook"
    return _kept(file, use, "root_rank", bound, name, ", get_npu_rank_id()", (name, "get_npu_rank_id"))


def _callback(file: File, use: Use, call: ast.Call, bound: Bound) -> Turn:
    name = "NPUBroadcastGlobalVariablesCallback"
    return _kept(file, use, "root_rank", bound, name, "", (name,))


def _allreduce(file: File, use: Use, call: ast.Call, bound: Bound) -> Turn:
    if use.is_keras:
        return _runs_at_once(use, call, "npu_allreduce(tf.constant(value))")
    reduction = _reduction(file, use, bound)
    scaled = [
        a
        for a in ("prescale_factor", "postscale_factor")
        if constant(bound.args.get(a)) not in (None, (1,), (1.0,))
        or a in bound.args
        and constant(bound.args[a]) is None
    ]
    if reduction is None or scaled or bound.given("process_set"):
        return Finding(
            call,
            "the reduction is not known. Write npu_allreduce(tensor, reduction) with "
            "'mean', 'sum', 'max', 'min' or 'prod'",
        )
    return _kept(
        file,
        use,
        "tensor",
        bound,
        "npu_allreduce",
        "" if reduction == "mean" else f", '{reduction}'",
        ("npu_allreduce",),
    )


def _reduction(file: File, use: Use, bound: Bound) -> str | None:
    """Return the reduction of a call as npu_allreduce names it, or None if it is not known."""
    op, average = bound.args.get("op"), bound.args.get("average")
    if op is not None and bound.given("op"):
        name = file.names.resolve(op, use.where)
        return _REDUCTIONS.get(name or "") if not bound.given("average") else None
    value = (None,) if average is None else constant(average)
    return {(None,): "mean", (True,): "mean", (False,): "sum"}.get(value) if value else None


def _allgather(file: File, use: Use, call: ast.Call, bound: Bound) -> Turn:
    if use.is_keras:
        return _runs_at_once(use, call, "hccl_ops.allgather(tf.constant(value), get_npu_rank_size())")
    turned = _kept(
        file, use, "tensor", bound, "hccl_ops.allgather", ", get_npu_rank_size()", ("get_npu_rank_size", "hccl_ops")
    )
    if isinstance(turned, Finding):
        return turned
    return turned._replace(
        note="hccl_ops.allgather needs tensors of the same shape on all ranks. Pad them if their lengths may differ"
    )


def _broadcast(file: File, use: Use, call: ast.Call, bound: Bound) -> Turn:
    if use.is_keras:
        return _runs_at_once(use, call, "hccl_ops.broadcast([tf.constant(value)], root_rank)[0]")
    root = _text(file, bound, "root_rank", "")
    if not root:
        return Finding(call, "the argument root_rank is missing. Pass it")
    turned = _kept(file, use, "tensor", bound, "hccl_ops.broadcast", f"], {root}", ("hccl_ops",), "[")
    if isinstance(turned, Finding):
        return turned
    end = file.source.end(call)
    return turned._replace(edits=turned.edits + [Edit(end, end, "[0]", closing=True)])


def _broadcast_variables(file: File, use: Use, call: ast.Call, bound: Bound) -> Turn:
    """Convert to an operation that assigns each variable its value on the root rank."""
    tf = name_of_tensorflow(file.names)
    given = bound.args.get("variables")
    if use.name == "horovod.broadcast_global_variables":
        variables = f"{tf}.global_variables()"
    elif given is None:
        return Finding(call, "the argument variables is missing. Pass it")
    else:
        variables = file.source.segment(given)
    text = "{}.group(*[v.assign(hccl_ops.broadcast([v], {})[0]) for v in {}])".format(
        tf or "tf", _text(file, bound, "root_rank", "0"), variables
    )
    if use.is_keras:
        return _runs_at_once(use, call, text)
    if tf is None or file.source.comments(file.source.start(call), file.source.end(call)):
        return Finding(call, f"this call cannot be replaced in place. Write {text}")
    return Turned([rename(file.source, call, text)], ("hccl_ops",), (call,))


def _runs_at_once(use: Use, call: ast.Call, text: str) -> Finding:
    return Finding(call, f"{use.short} of Horovod for Keras runs immediately. Write backend.get_session().run({text})")


def _text(file: File, bound: Bound, argument: str, default: str) -> str:
    value = bound.args.get(argument)
    if value is None:
        return default
    name = (
        file.names.resolve(value.func, file.names.places[_statement(file.names, value)])
        if isinstance(value, ast.Call)
        else None
    )
    return GETTERS[name] + "()" if name in GETTERS else file.source.segment(value)


def _statement(names: Names, node: ast.AST) -> ast.AST:
    return next(a for a in names.ancestors(node) if a in names.places)


def is_option(name: str) -> bool:
    """Return True if a name of Horovod is only used as an argument of its other calls."""
    return is_horovod(name) and (".Compression" in name or name in _REDUCTIONS)


_ROOT = ("root_rank", "device")
_CALLS: dict[str, tuple[tuple[str, ...], Callable[[File, Use, ast.Call, Bound], Turn]]] = {
    "horovod.DistributedOptimizer": (_OPTIMIZER, _optimizer),
    "horovod.BroadcastGlobalVariablesHook": (_ROOT, _hook),
    "horovod.callbacks.BroadcastGlobalVariablesCallback": (_ROOT, _callback),
    "horovod.allreduce": (_ALLREDUCE, _allreduce),
    "horovod.allgather": (("tensor", "name"), _allgather),
    "horovod.broadcast": (("tensor", "root_rank", "name"), _broadcast),
    "horovod.broadcast_variables": (("variables", "root_rank"), _broadcast_variables),
    "horovod.broadcast_global_variables": (("root_rank",), _broadcast_variables),
}
