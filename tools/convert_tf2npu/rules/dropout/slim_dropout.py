"""Replace the dropout of slim and contrib.layers with the NPU operator.

``slim.dropout`` drops if ``is_training`` is true. The call or an ``arg_scope`` around it gives this argument. If
Python evaluates it while the graph is built, the rule writes the NPU operator under this condition. Without
``is_training`` and without any ``arg_scope``, the call always drops.

The rule reports a call whose ``is_training`` may be a tensor or may come from the ``arg_scope`` of a caller. Write
``npu_ops.dropout`` in a conditional expression, or in ``tf.cond`` for a tensor. With facts of ``npu-shim observe`` the
rule writes the conditional expression if ``is_training`` was a value of Python in all observed runs. It imports
``npu_convert_dropout`` for other calls that ran in a graph, which makes the Dropout layers of all graphs in the process use
the NPU operator, under a condition of either kind.

Before::

    import tensorflow as tf
    from tensorflow.contrib import slim

    def net_fn(features, labels, mode):
        training = mode == tf.estimator.ModeKeys.TRAIN
        net = slim.dropout(features, 0.8, is_training=training, scope='dropout6')
        with slim.arg_scope([slim.batch_norm, slim.dropout], is_training=training):
            net = slim.dropout(net, keep_prob=FLAGS.keep)
        return tf.contrib.layers.dropout(net, FLAGS.keep, is_training=True)

After::

    import tensorflow as tf
    from tensorflow.contrib import slim
    from npu_shim.npu_init import *

    def net_fn(features, labels, mode):
        training = mode == tf.estimator.ModeKeys.TRAIN
        net = npu_ops.dropout(features, 0.8, name='dropout6') if training else features
        with slim.arg_scope([slim.batch_norm, slim.dropout], is_training=training):
            net = npu_ops.dropout(net, keep_prob=FLAGS.keep) if training else net
        return npu_ops.dropout(net, FLAGS.keep)

Before::

    from tensorflow.contrib import layers

    fc = layers.dropout(layers.fully_connected(x, 512), keep_prob=keep, scope='drop')

After::

    from tensorflow.contrib import layers
    from npu_shim.npu_init import *

    fc = npu_ops.dropout(layers.fully_connected(x, 512), keep_prob=keep, name='drop')

Untouched::

    import tensorflow as tf
    from tensorflow.contrib import slim

    with slim.arg_scope([slim.dropout], is_training=False):
        net = slim.dropout(net, 0.5, scope='dropout7')

Untouched::

    import tensorflow as tf
    from tensorflow.contrib import slim

    def vgg(net, is_training):
        with slim.arg_scope(vgg_arg_scope()):
            net = slim.dropout(net, 0.5, is_training=is_training)
            return slim.dropout(net, 0.5)

Untouched::

    import mylayers as slim
    import tensorflow as tf

    net = slim.dropout(net, 0.5, is_training=True)
"""

from __future__ import annotations

import ast
from typing import Iterator

from ...semantics.model import Call
from ...semantics.module_index import Names
from ...semantics.signatures import Bound, bind_arguments
from ...syntax.expressions import boxed_constant
from ..base import Change, Context, Finding
from .training_dropouts import Dropout, results_of_dropout, switched_or_finding

CODE = "NPU118"
_DROPOUT = "tensorflow.contrib.layers.dropout"
CALLS = frozenset({_DROPOUT})
_SCOPES = frozenset({"tensorflow.contrib.slim.arg_scope", "tensorflow.contrib.framework.arg_scope"})
_SIGNATURE = ("inputs", "keep_prob", "noise_shape", "is_training", "outputs_collections", "scope", "seed")
_NAME = "slim.dropout"


def check_call(context: Context, call: Call, name: str) -> Iterator[Change | Finding]:
    bound = bind_arguments(call.node, _SIGNATURE)
    scopes = _arg_scopes_with_dropout_around(context, call)
    training: ast.AST | None = bound.args.get("is_training")
    if training is None and not bound.hidden:
        training = next((k.value for scope in scopes for k in scope.keywords if k.arg == "is_training"), None)
    literal = boxed_constant(training)
    if literal and not literal[0]:
        return  # without training it never drops
    complete = training is not None and "keep_prob" in bound.args or not _may_be_in_arg_scope(context.names)
    reason = ""
    if bound.hidden or bound.unknown or "inputs" not in bound.args or len(bound.positional) > 2:
        reason = "has arguments that cannot be converted"
    elif bound.is_given("noise_shape") or bound.is_given("outputs_collections"):
        reason = "has a noise_shape or collects its output"
    elif not complete or any(k.arg != "is_training" for scope in scopes for k in scope.keywords):
        reason = "may get more arguments from an arg_scope"
    if reason:
        finding = _finding_of_dropout(context, bound, call, reason)
        if bound.hidden or bound.is_given("noise_shape"):  # which the library leaves to the layer
            yield finding
        else:
            yield from switched_or_finding(context, CODE, finding)
        return
    yield from results_of_dropout(
        context,
        Dropout(
            call,
            bound,
            training,
            bound.keywords.get("is_training"),
            (),
            "" if "keep_prob" in bound.args else "keep_prob=0.5",
            (("inputs", "x"), ("scope", "name")),
        ),
        _NAME,
        CODE,
    )


def _finding_of_dropout(context: Context, bound: Bound, call: Call, reason: str) -> Finding:
    x, keep = (
        context.source.segment(bound.args[name]) if name in bound.args else default
        for name, default in (("inputs", "x"), ("keep_prob", "0.5"))
    )
    return Finding(
        call.node,
        "{0} {1}. Write npu_ops.dropout({2}, keep_prob={3}) if is_training else {4}",
        _NAME,
        reason,
        x,
        keep,
        x,
    )


def _may_be_in_arg_scope(names: Names) -> bool:
    """Return True if this file, or a file that imports it, uses arg_scope, which may apply to any call."""
    if not names.is_in_project:
        return bool(names.mentions("arg_scope"))
    return any(b"arg_scope" in names.project.raw(path) for path in {names.path, *names.importing_files})


def _arg_scopes_with_dropout_around(context: Context, call: Call) -> list[ast.Call]:
    """Return the arg_scopes around a call that pass arguments to dropout, innermost first."""
    scopes = []
    for parent in context.names.ancestors(call.node):
        if isinstance(parent, (ast.FunctionDef, ast.Lambda)):
            break
        for item in reversed(parent.items) if isinstance(parent, ast.With) else ():
            scope = item.context_expr
            where = context.names.places[parent]
            if (
                isinstance(scope, ast.Call)
                and scope.args
                and isinstance(scope.args[0], (ast.List, ast.Tuple))
                and context.resolve(scope.func, where) in _SCOPES
                and any(context.resolve(e, where) == _DROPOUT for e in scope.args[0].elts)
            ):
                scopes.append(scope)
    return scopes
