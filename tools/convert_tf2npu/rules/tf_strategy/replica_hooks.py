"""Broadcast the variables of rank 0 before training (with ``-d tf_strategy``).

Each rank initializes its own variables. The rule adds a hook to Estimators and to ``MonitoredTrainingSession``, and a
callback to Keras models, that broadcasts the variables of rank 0 when the training starts. Other hooks and callbacks
of the script stay.

The rule reports a call if it cannot see the arguments, or if the object may be something else than an Estimator. Pass
``hooks=npu_hooks_append(hooks_list=...)`` or ``callbacks=npu_callbacks_append(callbacks_list=...)``.

Options: -d tf_strategy

Before::

    import tensorflow as tf

    def main(_):
        estimator = tf.estimator.Estimator(model_fn, FLAGS.model_dir)
        estimator.train(input_fn, hooks=[logger])
        spec = tf.estimator.TrainSpec(input_fn, max_steps=1000)
        tf.estimator.train_and_evaluate(estimator, spec, tf.estimator.EvalSpec(eval_fn, None, 'e', None))

After::

    import tensorflow as tf
    from npu_shim.npu_init import *

    def main(_):
        estimator = NPUEstimator(model_fn, FLAGS.model_dir, config=NPURunConfig())
        estimator.train(input_fn, hooks=npu_hooks_append(hooks_list=[logger]))
        spec = tf.estimator.TrainSpec(input_fn, max_steps=1000, hooks=npu_hooks_append())
        tf.estimator.train_and_evaluate(estimator, spec, tf.estimator.EvalSpec(eval_fn, None, 'e', npu_hooks_append()))

Before::

    import tensorflow as tf

    with tf.train.MonitoredTrainingSession(hooks=hooks) as sess:
        sess.run(train_op)

After::

    import tensorflow as tf
    from npu_shim.npu_init import *

    with tf.train.MonitoredTrainingSession(hooks=npu_hooks_append(hooks_list=hooks), config=npu_config_proto()) as sess:
        sess.run(train_op)

Untouched::

    import tensorflow as tf
    from npu_shim.npu_init import *

    spec = tf.estimator.TrainSpec(input_fn, hooks=npu_hooks_append(hooks_list=hooks))

Untouched::

    import statsmodels.api as sm
    import tensorflow as tf

    found = sm.OLS(y, x).fit()
    railway.train(carriages)

Untouched::

    import tensorflow as tf

    spec = tf.estimator.TrainSpec(**arguments)
"""

from __future__ import annotations

import ast
from typing import Iterator

from ...analysis.device_placement import is_in_test, trains_with_imports
from ...analysis.keras_methods import is_keras_method
from ...analysis.parallel_training import may_be_eager_program
from ...rewrite.call_edits import edit_to_add_argument, edit_to_rename, edits_to_wrap
from ...semantics.model import Call
from ...semantics.module_index import AnyType
from ...semantics.signatures import bind_arguments
from ...semantics.tf_types import Type
from ...semantics.value_flow import origins
from ...syntax.expressions import is_none, last_part
from ..base import Change, Context, Finding, Message

CODE = "NPU306"
NEEDS = {"distributed": "tf_strategy"}
_HOOKS, _CALLBACKS = "npu_hooks_append", "npu_callbacks_append"
_LIST = {_HOOKS: "hooks_list", _CALLBACKS: "callbacks_list"}
_MONITORED = "tensorflow.train.MonitoredTrainingSession"
_FUNCTIONS: dict[str, tuple[str, ...]] = {
    "tensorflow.estimator.TrainSpec": ("input_fn", "max_steps", "hooks", "saving_listeners"),
    "tensorflow.estimator.EvalSpec": (
        "input_fn",
        "steps",
        "name",
        "hooks",
        "exporters",
        "start_delay_secs",
        "throttle_secs",
    ),
    _MONITORED: ("master", "is_chief", "checkpoint_dir", "scaffold", "hooks"),
    "tensorflow.contrib.training.train": ("train_op", "logdir", "master", "is_chief", "scaffold", "hooks"),
}
_METHODS: dict[tuple[AnyType | None, str], tuple[str, ...]] = {
    (Type.ESTIMATOR, "train"): ("input_fn", "hooks", "steps", "max_steps", "saving_listeners"),
    (Type.MODEL, "fit"): ("x", "y", "batch_size", "epochs", "verbose", "callbacks"),
    (Type.MODEL, "fit_generator"): ("generator", "steps_per_epoch", "epochs", "verbose", "callbacks"),
}
_BROADCASTS = frozenset(
    "npu_shim.npu_init." + name
    for name in (_HOOKS, _CALLBACKS, "NPUBroadcastGlobalVariablesHook", "NPUBroadcastGlobalVariablesCallback")
) | {"horovod.BroadcastGlobalVariablesHook", "horovod.callbacks.BroadcastGlobalVariablesCallback"}
CALLS = frozenset(_FUNCTIONS)
METHODS = frozenset(method for _, method in _METHODS)


def check_call(context: Context, call: Call, name: str) -> Iterator[Change | Finding]:
    if name != _MONITORED or trains_with_imports(context):
        yield from _append_broadcast(context, call, "hooks", _FUNCTIONS[name], last_part(name))


def check_method(context: Context, call: Call, method: ast.Attribute) -> Iterator[Change | Finding]:
    kind = context.types.type_of(method.value, call.where)
    signature = _METHODS.get((kind, method.attr))
    if signature is not None and (kind != Type.MODEL or is_keras_method(context, call)):
        yield from _append_broadcast(
            context, call, "hooks" if kind == Type.ESTIMATOR else "callbacks", signature, method.attr
        )
    elif kind is None and method.attr == "train" and any(k.arg == "input_fn" for k in call.node.keywords):
        yield Finding(
            call.node, "this may be the train method of an Estimator. If it is, pass hooks={0}(hooks_list=...)", _HOOKS
        )


def _append_broadcast(
    context: Context, call: Call, argument: str, signature: tuple[str, ...], short: str
) -> Iterator[Change | Finding]:
    if is_in_test(context, call.node) or argument == "callbacks" and may_be_eager_program(context):
        return
    append = _HOOKS if argument == "hooks" else _CALLBACKS
    bound = bind_arguments(call.node, signature)
    value = bound.args.get(argument)
    message = Message("{0} broadcasts the variables of rank 0", short)
    if value is None:
        added = edit_to_add_argument(context.source, call.node, f"{argument}={append}()")
        if bound.hidden or added is None:
            yield Finding(
                call.node,
                "some arguments of {0} are not visible. Pass {1}={2}({3}=...) to broadcast the variables of rank 0",
                short,
                argument,
                append,
                _LIST[append],
            )
        else:
            yield Change(call.node, message, (added,), (append,))
    elif is_none(value):
        yield Change(call.node, message, (edit_to_rename(context.source, value, append + "()"),), (append,))
    elif not _broadcasts_variables(context, value, call):
        yield Change(
            call.node, message, edits_to_wrap(context.source, value, f"{append}({_LIST[append]}=", ")"), (append,)
        )


def _broadcasts_variables(context: Context, value: ast.expr, call: Call) -> bool:
    """Return True if one of the hooks or callbacks already broadcasts the variables."""
    for origin in origins(value, call.where, context.names):
        members = [origin.node] + list(getattr(origin.node, "elts", ()))
        for member in members:
            if isinstance(member, ast.Call) and origin.names.resolve(member.func, origin.where) in _BROADCASTS:
                return True
    return False
