"""Average the gradients of optimizers given by name (with ``-d tf_strategy``).

``compile`` accepts the name of an optimizer and creates it. The rule wraps this name.

The rule reports optimizers that other code creates, because nothing averages their gradients:

* A function that creates its optimizer from a name or a class. Pass an optimizer of ``tf.train``, wrapped in
  ``npu_distributed_optimizer_wrapper``.
* A Keras model that is converted to an Estimator, which recreates the optimizer. Compile the model with a wrapped
  optimizer of ``tf.train``.

Options: -d tf_strategy

Before::

    from tensorflow.keras import Sequential
    from tensorflow.keras.layers import Dense

    model = Sequential([Dense(1)])
    model.compile('adam', 'mse')

After::

    from tensorflow.keras import Sequential
    from tensorflow.keras.layers import Dense
    from npu_shim.npu_init import *

    model = Sequential([Dense(1)])
    model.compile(npu_distributed_optimizer_wrapper('adam'), 'mse')

Before::

    import tensorflow as tf

    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile(loss='mse')

After::

    import tensorflow as tf
    from npu_shim.npu_init import *

    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile(loss='mse', optimizer=npu_distributed_optimizer_wrapper('rmsprop'))

Untouched::

    import tensorflow as tf

    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile('adam', 'mse')
    model.load_weights('weights.h5')
    print(model.evaluate(images, labels))

Untouched::

    import re
    import tensorflow as tf

    pattern = re.compile('adam')
    compiled = tf.xla.experimental.compile(step, inputs=[x])

Untouched::

    import tensorflow as tf
    from npu_shim.npu_init import *

    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile(npu_distributed_optimizer_wrapper('adam'), 'mse')

Untouched::

    import tensorflow as tf

    train_op = tf.contrib.layers.optimize_loss(loss, step, 0.1, optimizer='Adam')
"""

from __future__ import annotations

import ast
from typing import Iterator

from ...analysis.device_placement import is_in_test, only_predicts
from ...analysis.optimizers import WRAPPER, optimizer_role
from ...analysis.parallel_training import may_be_eager_program
from ...rewrite.call_edits import edit_to_add_argument, edits_to_wrap
from ...semantics.model import Call
from ...semantics.signatures import bind_arguments
from ...semantics.tf_types import Type, type_of_result
from ...semantics.value_flow import Origin, origins
from ...syntax.expressions import boxed_constant, constant_or, last_part
from ..base import Change, Context, Finding

CODE = "NPU304"
NEEDS = {"distributed": "tf_strategy"}
METHODS = frozenset({"compile"})
_COMPILE = ("optimizer", "loss", "metrics", "loss_weights", "sample_weight_mode", "weighted_metrics", "target_tensors")
_OPTIMIZE_LOSS = ("loss", "global_step", "learning_rate", "optimizer")
_OWN = {
    name: ("dnn_optimizer", "linear_optimizer") if "Combined" in name else ("optimizer",)
    for name in (
        "DNNClassifier",
        "DNNRegressor",
        "DNNEstimator",
        "LinearClassifier",
        "LinearRegressor",
        "LinearEstimator",
        "DNNLinearCombinedClassifier",
        "DNNLinearCombinedRegressor",
        "DNNLinearCombinedEstimator",
    )
}
_MAKERS: dict[str, tuple[str, ...]] = {"tensorflow.contrib.layers.optimize_loss": ("optimizer",)}
_MAKERS.update(("tensorflow.estimator." + name, given) for name, given in _OWN.items())
_TO_ESTIMATOR = frozenset(
    {"tensorflow.keras.estimator.model_to_estimator", "npu_shim.npu_init.keras_to_npu.model_to_npu_estimator"}
)
CALLS = frozenset(_MAKERS) | _TO_ESTIMATOR


def check_method(context: Context, call: Call, method: ast.Attribute) -> Iterator[Change | Finding]:
    if (
        context.types.type_of(method.value, call.where) != Type.MODEL
        or is_in_test(context, call.node)
        or may_be_eager_program(context)
        or only_predicts(context)
    ):
        return
    bound = bind_arguments(call.node, _COMPILE)
    value = bound.args.get("optimizer")
    if value is None:
        added = edit_to_add_argument(context.source, call.node, f"optimizer={WRAPPER}('rmsprop')")
        if bound.hidden or added is None:
            yield Finding(call.node, "the optimizer is not visible. Pass optimizer={0}(...)", WRAPPER)
        else:
            yield Change(
                call.node,
                "gradients of the default optimizer averaged over all ranks",
                (added,),
                (WRAPPER,),
            )
        return
    kinds = {_kind_of_optimizer_argument(origin) for origin in origins(value, call.where, context.names)}
    if kinds == {"name"}:
        yield Change(
            call.node,
            "gradients of this optimizer averaged over all ranks",
            edits_to_wrap(context.source, value, WRAPPER + "(", ")"),
            (WRAPPER,),
        )
    elif not kinds <= {"object"}:
        yield Finding(
            call.node,
            "this optimizer is created elsewhere. If nothing averages its gradients, write {0}({1})",
            WRAPPER,
            context.source.segment(value),
        )


def _kind_of_optimizer_argument(origin: Origin) -> str | None:
    """Return "name" for the name of an optimizer, "object" for one that is wrapped where it is created, else None."""
    if isinstance(constant_or(origin.node, None), str):
        return "name"
    is_optimizer = (
        isinstance(origin.node, ast.Call) and optimizer_role(origin.node, origin.where, origin.names) is not None
    )
    return "object" if is_optimizer else None


def check_call(context: Context, call: Call, name: str) -> Iterator[Finding]:
    if is_in_test(context, call.node):
        return
    short = last_part(name)
    if name in _TO_ESTIMATOR:
        if not _has_tf_optimizer(context):
            yield Finding(
                call.node,
                "{0} recreates the optimizer without averaging. Compile the model with "
                "{1}(tf.train.AdamOptimizer(...))",
                short,
                WRAPPER,
            )
        return
    bound = bind_arguments(call.node, _OPTIMIZE_LOSS if short == "optimize_loss" else ())
    for argument in _MAKERS[name]:
        value = bound.args.get(argument)
        kinds: set[str | None] = (
            {
                _kind_of_optimizer_argument(o) if isinstance(o.node, ast.Call) or boxed_constant(o.node) else "object"
                for o in origins(value, call.where, context.names)
                if not _is_optimizer_class(o)
            }
            if value is not None
            else {None}
        )
        if value is None or not kinds or kinds != {"object"}:
            yield Finding(
                call.node,
                "{0} creates its optimizer without averaging. Pass {1}={2}(...) with an optimizer of tf.train",
                short,
                argument,
                WRAPPER,
            )


def _is_optimizer_class(origin: Origin) -> bool:
    name = origin.resolve() if isinstance(origin.node, (ast.Name, ast.Attribute)) else None
    return type_of_result(name or "") == Type.OPTIMIZER


def _has_tf_optimizer(context: Context) -> bool:
    """Return True if a model is compiled here with an optimizer of tf.train, which an Estimator keeps."""
    for call in context.names.calls:
        function = call.node.func
        if (
            isinstance(function, ast.Attribute)
            and function.attr == "compile"
            and context.types.type_of(function.value, call.where) == Type.MODEL
        ):
            value = bind_arguments(call.node, _COMPILE).args.get("optimizer")
            sources = origins(value, call.where, context.names) if value is not None else []
            if sources and all(
                context.types.type_of(o.node, o.where) == Type.OPTIMIZER
                or type_of_result(o.resolve() or "") == Type.OPTIMIZER
                for o in sources
            ):
                return True
    return False
