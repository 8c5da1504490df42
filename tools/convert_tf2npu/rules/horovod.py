"""Turn Horovod over to the NPU's collectives (with ``-d horovod``).

Every use of Horovod in a file is turned over, or none: a file with a use that has no counterpart stays as
it is, and each such use is told. Without ``-d horovod`` Horovod stays.

Options: -d horovod

Before::

    import tensorflow as tf
    import horovod.tensorflow as hvd

    def main(_):
        hvd.init()
        opt = tf.train.AdamOptimizer(0.001 * hvd.size())
        opt = hvd.DistributedOptimizer(opt, compression=hvd.Compression.none)
        hooks = [hvd.BroadcastGlobalVariablesHook(0)]
        model_dir = FLAGS.model_dir if hvd.rank() == 0 else None
        train(opt, hooks, model_dir)

After::

    import tensorflow as tf
    from npu_shim.npu_init import *

    def main(_):
        npu_sess, npu_shutdown = init_resource()
        opt = tf.train.AdamOptimizer(0.001 * get_npu_rank_size())
        opt = npu_distributed_optimizer_wrapper(opt)
        hooks = [NPUBroadcastGlobalVariablesHook(0, get_npu_rank_id())]
        model_dir = FLAGS.model_dir if get_npu_rank_id() == 0 else None
        train(opt, hooks, model_dir)
        shutdown_resource(npu_sess, npu_shutdown)
        close_session(npu_sess)

Before::

    import os, horovod.tensorflow.keras as hvd
    import tensorflow as tf

    callbacks = [hvd.callbacks.BroadcastGlobalVariablesCallback(0)]
    total = hvd.allreduce(loss, average=False)
    mean = hvd.allreduce(tensor=loss)
    parts = hvd.allgather(rows)

After::

    import os
    import tensorflow as tf
    from npu_shim.npu_init import *

    callbacks = [NPUBroadcastGlobalVariablesCallback(0)]
    total = hccl_ops.allreduce(loss, 'sum')
    mean = (hccl_ops.allreduce(loss, 'sum') / get_npu_rank_size())
    parts = hccl_ops.allgather(rows, get_npu_rank_size())

Untouched::

    import tensorflow as tf
    import horovod.tensorflow as hvd

    hvd.init()
    tape = hvd.DistributedGradientTape(tape)

Untouched::

    import horovod.torch as hvd
    import tensorflow as tf

    hvd.init()

Untouched::

    import tensorflow as tf
    import horovod.tensorflow as hvd

    opt = hvd.DistributedOptimizer(opt, op=hvd.Adasum)
"""
from __future__ import annotations

import ast
from typing import Callable, Dict, Iterator, List, NamedTuple, Optional, Set, Tuple, Union

from ..edits import rename
from ..placing import at_end
from ..registry import Change, Context, Finding, Result
from ..signatures import Bound, bind, constant
from ..source import Edit, Source

CODE = 'NPU301'
_GETTERS = {'horovod.rank': 'get_npu_rank_id', 'horovod.size': 'get_npu_rank_size',
            'horovod.local_rank': 'get_npu_local_rank_id',
            'horovod.local_size': 'get_npu_local_rank_size'}
_OPTIMIZER = ('optimizer', 'name', 'use_locking', 'device_dense', 'device_sparse', 'compression',
              'sparse_as_dense', 'backward_passes_per_step', 'op')
# What says how Horovod carries gradients, and not what the optimizer computes.
_CARRIAGE = frozenset({'name', 'use_locking', 'device_dense', 'device_sparse', 'compression',
                       'sparse_as_dense'})
_SHUTDOWN = ('shutdown_resource(npu_sess, npu_shutdown)', 'close_session(npu_sess)')


class _Use(NamedTuple):
    """One use of Horovod: the expression, its name, and its call if it is called."""
    node: ast.AST
    name: str
    call: Optional[ast.Call]


class _Turned(NamedTuple):
    """A use turned over: the edits, and the names of npu_init in them."""
    edits: List[Edit]
    uses: Tuple[str, ...]


_Turn = Union[_Turned, Finding]


def check_file(context: Context) -> Iterator[Result]:
    if context.distributed != 'horovod' or 'horovod' not in context.source.text:
        return
    uses, imports = _uses(context), _imports(context.names.tree)
    if not uses or not imports:
        return
    results = [_turn(context, use) for use in uses]
    left = [result for result in results if isinstance(result, Finding)]
    if left:
        yield from left
        yield Finding(imports[0], 'Horovod stays in this file, because %d of its uses have no counterpart'
                      % len(left))
        return
    edits: List[Edit] = []
    names: Set[str] = set()
    for result in results:
        if isinstance(result, _Turned):
            edits += result.edits
            names.update(result.uses)
    dropped = [e for e in edits if e.end > e.start]  # what stands in a dropped argument goes with it
    edits = [e for e in edits if not any(
        d is not e and d.start <= e.start < d.end and e.end <= d.end and (
            e.end > e.start or e.start > d.start) for d in dropped)]
    for statement in imports:
        edits.append(_without_horovod(context.source, statement))
    yield Change(imports[0], 'Horovod becomes the collectives of the NPU', tuple(edits),
                 tuple(sorted(names)))


def _uses(context: Context) -> List[_Use]:
    """Every expression that stands for something of Horovod's, as long as it goes."""
    names = context.names
    found: List[_Use] = []
    for node in ast.walk(names.tree):
        parent = names.parents.get(node)
        if not isinstance(node, (ast.Name, ast.Attribute)) or isinstance(parent, ast.Attribute) or \
                not isinstance(node.ctx, ast.Load):
            continue
        statement = next((a for a in names.ancestors(node) if a in names.places), None)
        name = names.resolve(node, names.places[statement]) if statement is not None else None
        if name and (name == 'horovod' or name.startswith('horovod.')):
            call = parent if isinstance(parent, ast.Call) and parent.func is node else None
            found.append(_Use(node, name, call))
    return found


def _imports(tree: ast.Module) -> List[ast.stmt]:
    found: List[ast.stmt] = []
    for node in ast.walk(tree):
        modules = [a.name for a in node.names] if isinstance(node, ast.Import) else \
            [node.module or ''] if isinstance(node, ast.ImportFrom) else []
        if any(module.split('.')[0] == 'horovod' for module in modules):
            found.append(node)  # type: ignore[arg-type]
    return found


def _turn(context: Context, use: _Use) -> _Turn:
    source = context.source
    string = context.names.strings.get(use.node)
    if string is not None and not source.is_placed(use.node, string):
        return Finding(string, '%s stands inside an f-string, where it cannot be reached; write it in a '
                       'line of its own' % use.name.replace('horovod', 'hvd', 1))
    if use.name in _GETTERS:
        return _Turned([rename(source, use.node, _GETTERS[use.name])], (_GETTERS[use.name],))
    if use.name.startswith('horovod.Compression.'):
        for parent in context.names.ancestors(use.node):
            if isinstance(parent, ast.keyword) and parent.arg == 'compression':
                return _Turned([], ())  # goes with the optimizer's other arguments
    short = use.name.replace('horovod', 'hvd', 1)
    if use.name == 'horovod.init' and use.call is not None:
        return _init(context, use.call)
    turn = _CALLS.get(use.name)
    if turn is None or use.call is None:
        return Finding(use.node, '%s has no counterpart on the NPU' % short)
    signature, make = turn
    bound = bind(use.call, signature)
    if bound.hidden or bound.unknown:
        return Finding(use.call, 'the arguments of %s are not all to be seen' % short)
    return make(source, use.call, bound)


def _init(context: Context, call: ast.Call) -> _Turn:
    statement = context.names.parents.get(call)
    body = context.names.parents.get(statement) if statement is not None else None
    in_body = isinstance(body, (ast.Module, ast.FunctionDef, ast.If)) and statement in body.body
    if call.args or call.keywords or not isinstance(statement, ast.Expr) or not in_body or body is None:
        return Finding(call, 'write npu_sess, npu_shutdown = init_resource() here, and at the end '
                       + ' and '.join(_SHUTDOWN))
    edits = [rename(context.source, call, 'npu_sess, npu_shutdown = init_resource()')]
    for text in _SHUTDOWN:
        edits += at_end(context, body, text)
    return _Turned(edits, ('init_resource', 'shutdown_resource', 'close_session')
                   if len(edits) > 1 else ('init_resource',))


def _one_argument(source: Source, call: ast.Call, kept: Optional[ast.expr], new: str, after: str,
                  uses: Tuple[str, ...]) -> _Turn:
    """Rename a call and keep one of its arguments, with other text behind it."""
    if kept is None:
        return Finding(call, 'an argument is missing')
    opening, close = source.text.index('(', source.end(call.func)) + 1, source.end(call) - 1
    start, end = source.start(kept), source.end(kept)
    if isinstance(kept, (ast.Yield, ast.YieldFrom)) or source.comments(opening, start) + source.comments(end, close):
        return Finding(call, 'a comment or a yield stands among its arguments; write %s' % new)
    return _Turned([rename(source, call.func, new), Edit(opening, start, ''), Edit(end, close, after)],
                   uses)


def _optimizer(source: Source, call: ast.Call, bound: Bound) -> _Turn:
    foreign = [a for a in bound.args if a != 'optimizer' and a not in _CARRIAGE and not (
        a == 'backward_passes_per_step' and constant(bound.args[a]) == (1,))]
    if foreign:
        return Finding(call, 'DistributedOptimizer with %s has no counterpart; write '
                       'npu_distributed_optimizer_wrapper(optimizer)' % ', '.join(foreign))
    name = 'npu_distributed_optimizer_wrapper'
    return _one_argument(source, call, bound.args.get('optimizer'), name, '', (name,))


def _hook(source: Source, call: ast.Call, bound: Bound) -> _Turn:
    name = 'NPUBroadcastGlobalVariablesHook'
    return _one_argument(source, call, bound.args.get('root_rank'), name, ', get_npu_rank_id()',
                         (name, 'get_npu_rank_id'))


def _callback(source: Source, call: ast.Call, bound: Bound) -> _Turn:
    name = 'NPUBroadcastGlobalVariablesCallback'
    return _one_argument(source, call, bound.args.get('root_rank'), name, '', (name,))


def _allreduce(source: Source, call: ast.Call, bound: Bound) -> _Turn:
    average = constant(bound.args.get('average'))
    if bound.given('op') or 'average' in bound.args and average not in ((True,), (False,), (None,)):
        return Finding(call, "how it reduces is not to be seen; write hccl_ops.allreduce(tensor, 'sum')")
    result = _one_argument(source, call, bound.args.get('tensor'), 'hccl_ops.allreduce', ", 'sum'",
                           ('hccl_ops',))
    if isinstance(result, _Turned) and average != (False,):  # the mean is what Horovod does by itself
        start, end = source.start(call), source.end(call)
        return _Turned([Edit(start, start, '(')] + result.edits + [
            Edit(end, end, ' / get_npu_rank_size())', closing=True)], ('get_npu_rank_size', 'hccl_ops'))
    return result


def _allgather(source: Source, call: ast.Call, bound: Bound) -> _Turn:
    return _one_argument(source, call, bound.args.get('tensor'), 'hccl_ops.allgather',
                         ', get_npu_rank_size()', ('get_npu_rank_size', 'hccl_ops'))


def _without_horovod(source: Source, statement: ast.stmt) -> Edit:
    """Take Horovod out of an import; with its whole line where nothing else stands there."""
    start, end = source.start(statement), source.end(statement)
    others = [a for a in statement.names if a.name.split('.')[0] != 'horovod'] if isinstance(
        statement, ast.Import) else []
    if others:
        return Edit(start, end, 'import ' + ', '.join(
            a.name + (' as ' + a.asname if a.asname else '') for a in others))
    first, following = source.line_start(start), source.next_line(end)
    alone = not source.text[first:start].strip() and not source.text[end:following].strip()
    return Edit(first, following, '') if alone and not source.text[first:start] else \
        Edit(start, end, 'pass')


_TENSOR = ('tensor', 'average', 'device_dense', 'device_sparse', 'compression', 'op')
_CALLS: Dict[str, Tuple[Tuple[str, ...], Callable[[Source, ast.Call, Bound], _Turn]]] = {
    'horovod.DistributedOptimizer': (_OPTIMIZER, _optimizer),
    'horovod.BroadcastGlobalVariablesHook': (('root_rank', 'device'), _hook),
    'horovod.callbacks.BroadcastGlobalVariablesCallback': (('root_rank', 'device'), _callback),
    'horovod.allreduce': (_TENSOR, _allreduce),
    'horovod.allgather': (('tensor', 'name'), _allgather),
}
