"""Give the ranks of the NPU the place of a strategy's replicas (with ``-d tf_strategy``).

On NPUs each rank runs the whole script on one card. A strategy in a run configuration of Estimators goes,
because the Estimator of each rank trains one replica; the optimizer averages the gradients (see NPU303).
Anywhere else, for its scope, its number of replicas or its datasets, a strategy that trains replicas in step
becomes ``npu_strategy.NPUStrategy()``. In a scope TensorFlow divides the loss by the number of replicas, which
is that of the ranks, and averaging divides once more; this is told. Strategies with parameter servers or for
TPUs are told. Without ``-d tf_strategy`` strategies stay (see NPU250).

Options: -d tf_strategy

Before::

    import tensorflow as tf

    def main(_):
        strategy = tf.distribute.MirroredStrategy(devices=['/gpu:0', '/gpu:1'])
        config = tf.estimator.RunConfig(
            train_distribute=strategy,
            eval_distribute=strategy,
            save_checkpoints_steps=500)
        estimator = tf.estimator.Estimator(model_fn, FLAGS.model_dir, config)

After::

    import tensorflow as tf
    from npu_shim.npu_init import *

    def main(_):
        config = NPURunConfig(
            save_checkpoints_steps=500)
        estimator = NPUEstimator(model_fn, FLAGS.model_dir, config)

Before::

    import tensorflow as tf

    strategy = tf.contrib.distribute.MirroredStrategy(num_gpus=4)
    batch_size = 32 * strategy.num_replicas_in_sync
    with strategy.scope():
        model = build()

After::

    import tensorflow as tf
    from npu_shim.npu_init import *

    strategy = npu_strategy.NPUStrategy()
    batch_size = 32 * strategy.num_replicas_in_sync
    with strategy.scope():
        model = build()

Untouched::

    import tensorflow as tf

    strategy = tf.distribute.experimental.ParameterServerStrategy()

Untouched::

    from mycompany.games import MirroredStrategy
    import tensorflow as tf

    strategy = MirroredStrategy(2)

Untouched::

    import tensorflow as tf

    def is_mirrored(strategy):
        return isinstance(strategy, tf.distribute.MirroredStrategy)
"""
from __future__ import annotations

import ast
from typing import Iterator, List, Optional, Set

from ..edits import loses_comment, rename
from ..callers import users
from ..registry import Change, Context, Finding, Result
from ..removing import block_of, remove_arguments, remove_statements
from ..scopes import Call
from ..strategies import NAMES, REPLICAS, SERVERS, bound_configuration, dropped, kinds, taken
from ..whereabouts import in_test
from .keras_session import uses_eager

CODE = 'NPU302'
NEEDS = {'distributed': 'tf_strategy'}
_NEW = 'npu_strategy.NPUStrategy()'
_SERVERS = ('for parameter servers write NPURunConfig(distribute=ParameterServerStrategy(), mix_compile_mode=True, '
            'iterations_per_loop=1) and NPUEstimator')


def check_file(context: Context) -> Iterator[Result]:
    if context.distributed != 'tf_strategy' or not any(
            word in context.source.text for word in ('Strategy', '_distribute')):
        return
    eager = uses_eager(context)
    gone: Set[ast.AST] = set()
    for call in context.names.calls:
        yield from _configuration(context, call, gone)
    yield from _divided_twice(context)
    for call in context.names.calls:
        kind = NAMES.get(context.resolve(call.node.func, call.where) or '')
        if kind is None or call.node in gone or in_test(context, call.node):
            continue
        if kind != REPLICAS:
            yield Finding(call.node, 'a strategy that %s has no counterpart here; %s' % (
                kind, _SERVERS if kind == SERVERS else 'for cards that train in step write ' + _NEW))
        elif eager:
            yield Finding(call.node, 'this strategy seems to be used eagerly; on the NPU it trains in graph mode: '
                          'tf.compat.v1.disable_v2_behavior() at the start, then ' + _NEW)
        else:
            yield _replaced(context, call, gone)


def _divided_twice(context: Context) -> Iterator[Result]:
    """The first scope of a strategy that trains replicas in step."""
    for call in context.names.calls:
        function = call.node.func
        if isinstance(function, ast.Attribute) and function.attr == 'scope' and not in_test(
                context, call.node) and kinds(function.value, call.where, context.names) == {REPLICAS}:
            yield Finding(call.node, 'in this scope TensorFlow divides the loss by the number of ranks, and the average '
                          'of the gradients is divided by it once more; multiply the learning rate by get_rank_size(), '
                          'unless the optimizer scales its steps itself, as Adam does')
            return


def _configuration(context: Context, call: Call, gone: Set[ast.AST]) -> Iterator[Result]:
    """Take the strategies out of a run configuration; what goes with them is noted."""
    found = taken(context, call.node, call.where)
    going = dropped(context, call.node, call.where)
    bound = bound_configuration(context, call.node, call.where)
    for argument in sorted(set(found) - going):
        why = 'each rank trains one replica, so that %s has no meaning; leave it out' if found[argument] == {
            REPLICAS} else 'it is not to be seen that %s only trains replicas in step; where it does, leave it out'
        beside = ' by hand, for a comment stands beside it' if found[argument] == {REPLICAS} and bound and \
            argument in bound.keywords and context.source.comments(
                context.source.start(call.node), context.source.end(call.node)) else ''
        yield Finding(call.node, '%s%s, and %s' % (why % argument, beside, _SERVERS))
    values = [bound.args[argument] for argument in going] if bound else []
    if not values:
        return
    gone.update(node for value in values for node in ast.walk(value))
    edits = remove_arguments(context.source, call.node, values)
    yield Change(call.node, 'each rank trains one replica, without %s' % ', '.join(sorted(going)), tuple(edits))


def _replaced(context: Context, call: Call, gone: Set[ast.AST]) -> Result:
    statement = _unused(context, call, gone)
    edits = remove_statements(context.source, context.names, [statement] if statement else [])
    if edits and not loses_comment(context.source, edits):
        return Change(call.node, 'the strategy goes, because nothing uses it any more', tuple(edits))
    return Change(call.node, 'the strategy of the NPU takes the place of this one',
                  (rename(context.source, call.node, _NEW),), ('npu_strategy',))


def _unused(context: Context, call: Call, gone: Set[ast.AST]) -> Optional[ast.stmt]:
    """The assignment of a strategy that only arguments used which go."""
    names, statement = context.names, call.where.statement
    if not isinstance(statement, ast.Assign) or statement.value is not call.node or len(
            statement.targets) != 1 or not isinstance(statement.targets[0], ast.Name):
        return None
    word, scope = statement.targets[0].id, call.where.scope
    mentions: List[ast.AST] = names.mentions(word)
    seen = scope is names.module and users(names, word) != []
    if not mentions or seen or len(scope.bindings.get(word, ())) != 1 or not gone.issuperset(mentions) or len(
            block_of(names, statement)) == 1:
        return None
    return statement
