"""Replace loss scaling with the managers and the optimizer of the NPU.

The NPU signals an overflow in its own way, and only ``NPULossScaleOptimizer`` and its managers support this. A
dynamic scale keeps its rule: it is halved at once by an overflow and doubled after a period without one. With ``-d``,
all ranks skip a step if one of them overflows.

The rule reports these calls:

* The file shows only a manager or only an optimizer. Convert both together:
  ``NPULossScaleOptimizer(opt, FixedLossScaleManager(...))``.
* Mixed policies and ``LossScaleOptimizer`` of Keras in graph mode: the NPU has its own mixed precision. Remove them and
  pass ``precision_mode='allow_mix_precision'`` to ``NPURunConfig``, to ``npu_config_proto`` of the session, or to that of
  ``set_keras_session_npu_config(config=npu_config_proto(precision_mode='allow_mix_precision'))``.
* ``enable_mixed_precision_graph_rewrite``, in the same way, unless the rule replaces it: the file makes all sessions of
  the program, and the rewrite certainly comes before them, with an optimizer of ``tf.train`` and a scale that is known.
* A scale that is also passed to the graph rewrite, which accepts only TensorFlow's scales. Remove the rewrite as
  above and write ``NPULossScaleOptimizer(opt, ExponentialUpdateLossScaleManager(...))``.

In programs of TensorFlow 2, ``LossScaleOptimizer`` of Keras becomes ``npu.train.optimizer.NpuLossScaleOptimizer``, and
the mixed precision of the NPU is ``npu.global_options().precision_mode = 'allow_mix_precision'`` before ``npu.open()``.
The rule writes this in place of ``set_global_policy('mixed_float16')`` if that call is part of the settings before the
program's work. With the policy ``compile`` scales the loss by itself, so the rule wraps the optimizers of all its calls.
On the CPU the program then computes in float32. It reports a policy if it does not know these optimizers, if other files
compile models or ask for the policy, if a layer is given it, and with ``-d tf_strategy``. The graph rewrite scales the
loss, too.

Before::

    import tensorflow as tf

    tf.keras.mixed_precision.set_global_policy('mixed_float16')
    optimizer = tf.keras.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.Adam())

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            loss = optimizer.get_scaled_loss(model(x))
        gradients = optimizer.get_unscaled_gradients(tape.gradient(loss, variables))
        optimizer.apply_gradients(zip(gradients, variables))

After::

    import tensorflow as tf
    import npu_shim.npu_device as npu

    npu.global_options().precision_mode = 'allow_mix_precision'
    npu.open().as_default()
    optimizer = npu.train.optimizer.NpuLossScaleOptimizer(tf.keras.optimizers.Adam())

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            loss = optimizer.get_scaled_loss(model(x))
        gradients = optimizer.get_unscaled_gradients(tape.gradient(loss, variables))
        optimizer.apply_gradients(zip(gradients, variables))

Before::

    import tensorflow as tf

    policy = tf.keras.mixed_precision.Policy('mixed_float16')
    tf.keras.mixed_precision.set_global_policy(policy)
    print(policy.compute_dtype)
    optimizer = tf.keras.optimizers.SGD(0.1)
    model = tf.keras.Sequential([tf.keras.layers.Dense(1, dtype='float32')])
    model.compile(optimizer=optimizer, loss='mse')
    model.fit(x, y)
    model.compile('rmsprop', 'mse')
    model.fit(x, y)

After::

    import tensorflow as tf
    import npu_shim.npu_device as npu

    policy = tf.keras.mixed_precision.Policy('mixed_float16')
    npu.global_options().precision_mode = 'allow_mix_precision'
    print(policy.compute_dtype)
    npu.open().as_default()
    optimizer = tf.keras.optimizers.SGD(0.1)
    model = tf.keras.Sequential([tf.keras.layers.Dense(1, dtype='float32')])
    model.compile(optimizer=npu.train.optimizer.NpuLossScaleOptimizer(optimizer), loss='mse')
    model.fit(x, y)
    model.compile(npu.train.optimizer.NpuLossScaleOptimizer(tf.keras.optimizers.RMSprop()), 'mse')
    model.fit(x, y)

Before::

    import tensorflow as tf

    opt = tf.keras.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.Adam(), initial_scale=1024)

    @tf.function
    def step(x):
        return model(x)

After::

    import tensorflow as tf
    import npu_shim.npu_device as npu

    opt = npu.train.optimizer.NpuLossScaleOptimizer(tf.keras.optimizers.Adam(), initial_scale=1024)

    @tf.function
    def step(x):
        return model(x)

Before::

    import tensorflow as tf

    scale = tf.train.experimental.DynamicLossScale(initial_loss_scale=2 ** 20)
    opt = tf.train.experimental.MixedPrecisionLossScaleOptimizer(opt, loss_scale=scale)

After::

    import tensorflow as tf
    from npu_shim.npu_init import *

    scale = ExponentialUpdateLossScaleManager(init_loss_scale=2 ** 20, incr_every_n_steps=2000, decr_every_n_nan_or_inf=1, incr_ratio=2, decr_ratio=0.5)
    opt = NPULossScaleOptimizer(opt, loss_scale_manager=scale)

Before::

    import tensorflow as tf
    from tensorflow.contrib.mixed_precision import FixedLossScaleManager as Fixed, LossScaleOptimizer

    opt = LossScaleOptimizer(opt, Fixed(1024))
    other = tf.train.experimental.MixedPrecisionLossScaleOptimizer(other, 128)

After::

    import tensorflow as tf
    from tensorflow.contrib.mixed_precision import FixedLossScaleManager as Fixed, LossScaleOptimizer
    from npu_shim.npu_init import *

    opt = NPULossScaleOptimizer(opt, FixedLossScaleManager(1024))
    other = NPULossScaleOptimizer(other, FixedLossScaleManager(128))

Before::

    import tensorflow as tf
    from tensorflow.keras import layers

    loss = tf.reduce_mean(tf.square(layers.Dense(1)(features)))
    opt = tf.train.AdamOptimizer(0.01)
    opt = tf.train.experimental.enable_mixed_precision_graph_rewrite(opt)
    train_op = opt.minimize(loss)
    with tf.Session() as sess:
        sess.run(train_op)

After::

    import tensorflow as tf
    from tensorflow.keras import layers
    from npu_shim.npu_init import *

    loss = tf.reduce_mean(tf.square(layers.Dense(1)(features)))
    opt = tf.train.AdamOptimizer(0.01)
    opt = NPULossScaleOptimizer(opt, ExponentialUpdateLossScaleManager(init_loss_scale=2 ** 15, incr_every_n_steps=2000, decr_every_n_nan_or_inf=1, incr_ratio=2, decr_ratio=0.5))
    train_op = opt.minimize(loss)
    with tf.Session(config=npu_config_proto(precision_mode='allow_mix_precision')) as sess:
        sess.run(train_op)

Untouched::

    import tensorflow as tf

    scale = tf.train.experimental.FixedLossScale(128)
    train(scale)

Untouched::

    import tensorflow as tf
    from torch.amp import LossScaleOptimizer

    opt = LossScaleOptimizer(opt, 128)

Untouched::

    import tensorflow as tf

    tf.keras.mixed_precision.experimental.set_policy('mixed_float16')
    opt = tf.keras.mixed_precision.experimental.LossScaleOptimizer(opt, 'dynamic')

Untouched::

    import tensorflow as tf

    def build(x):
        tf.keras.mixed_precision.set_global_policy('mixed_float16')
        model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
        model.compile('adam', 'mse')
        model.fit(x)

Untouched::

    import tensorflow as tf

    @tf.function
    def call(layer, x):
        return layer(x)

    def train(make_optimizer, model):
        tf.keras.mixed_precision.set_global_policy('mixed_float16')
        model.compile(make_optimizer(), 'mse')
        model.fit(x)

Untouched::

    import tensorflow as tf

    opt = tf.train.experimental.enable_mixed_precision_graph_rewrite(opt)

Untouched::

    import tensorflow as tf

    experimental = tf.train.experimental
    scale = experimental.DynamicLossScale(increment_period=1000)
    if FLAGS.rewrite:
        opt = experimental.enable_mixed_precision_graph_rewrite(opt, scale)
    else:
        opt = experimental.MixedPrecisionLossScaleOptimizer(opt, scale)
"""

from __future__ import annotations

import ast
import re
from typing import Iterator

from ...analysis.device_placement import is_in_test
from ...analysis.eager_training import texts_of_file_and_importers, trains_eagerly
from ...analysis.graph_rewrites import GRAPH_REWRITES, replaced_graph_rewrites
from ...analysis.mixed_policy import KERAS, KERAS_OPTIMIZERS, Unscaled, unscaled_optimizers
from ...analysis.tensorflow_version import is_tf2_program
from ...rewrite.call_edits import edit_to_add_argument, edit_to_rename, edits_to_wrap
from ...rewrite.loss_scale_edits import CONTRIB, DYNAMIC, FIXED, RENAMED, TRAIN, edits_and_imports_for_loss_scale
from ...rewrite.npu_imports import device_name
from ...rewrite.session_config import PRECISION_MODE
from ...semantics.model import Call, Where
from ...semantics.signatures import bind_arguments
from ...semantics.value_flow import origins
from ...syntax.expressions import boxed_constant, last_part, values_of
from ...syntax.source import Edit
from ..base import Change, Context, Finding, Message

CODE = "NPU116"
DELIBERATE = "replaces the mixed precision of Keras with that of the NPU"
_CONFIG = f"npu_config_proto({PRECISION_MODE})"
_OPTIMIZERS = frozenset({CONTRIB + "LossScaleOptimizer", TRAIN + "MixedPrecisionLossScaleOptimizer"})
_POLICIES = frozenset(home + name for home in KERAS for name in ("set_global_policy", "set_policy")) | {
    "tensorflow.keras.mixed_precision.set_dtype_policy",
    "tensorflow.keras.config.set_dtype_policy",
}
_MANAGERS = frozenset(RENAMED) - _OPTIMIZERS | {FIXED, DYNAMIC}
_NPU = "npu_shim.npu_init.NPULossScaleOptimizer"
_OPTIONS = "tensorflow.config.optimizer.set_experimental_options"
_OPTION = "npu.global_options().precision_mode = 'allow_mix_precision'"
CALLS = {_OPTIONS} | _MANAGERS | _OPTIMIZERS | GRAPH_REWRITES | _POLICIES | KERAS_OPTIMIZERS | {_NPU}
_SESSION = re.compile(rb"[sS]ession\(|Supervisor\(|(?:learning|training)\.train\(|gan_train\(")
_ESTIMATOR = re.compile(rb"(?<!_)(?:Estimator|RunConfig)\(")


def check_call(context: Context, call: Call, name: str) -> Iterator[Change | Finding]:
    if name == _NPU:
        shared = _edit_to_share_overflows(context, call.node)
        if shared is not None:
            yield Change(call.node, "all ranks skip a step if one of them overflows", (shared,))
        return
    if call.node in replaced_graph_rewrites(context):
        yield from _convert_manager_or_optimizer(context, call, name)
        return
    if name in GRAPH_REWRITES or name == _OPTIONS:
        if (name in GRAPH_REWRITES or _enables_mixed_precision(call)) and not is_in_test(context, call.node):
            yield Finding(
                call.node,
                "the NPU has its own mixed precision. Remove this call and {0}",
                _mixed_precision_statement(context, True),
            )
        return
    if name in _POLICIES or name in KERAS_OPTIMIZERS:
        if is_tf2_program(context):
            yield from _convert_keras_loss_scale(context, call, name)
        elif not trains_eagerly(context) and (name in KERAS_OPTIMIZERS or _sets_mixed_policy(context, call)):
            yield Finding(
                call.node,
                "the NPU has its own mixed precision. Remove {0} and {1}",
                last_part(name),
                _mixed_precision_statement(context),
            )
        return
    given = (
        bind_arguments(call.node, ("opt", "loss_scale")).args.get("loss_scale") if name in _OPTIMIZERS else call.node
    )
    if _is_used_by_rewrite(context, given, call.where):
        yield Finding(
            call.node,
            "the graph rewrite uses this scale too. Instead of the rewrite, {0}",
            _mixed_precision_statement(context),
        )
        return
    names_called = set(context.called_names.values())
    literal = name == TRAIN + "MixedPrecisionLossScaleOptimizer" and _has_literal_scale(call.node)
    if not literal and not (names_called & _OPTIMIZERS if name in _MANAGERS else names_called & _MANAGERS):
        yield Finding(
            call.node,
            "{0} must be converted together with its optimizer or manager. Write "
            "NPULossScaleOptimizer(opt, FixedLossScaleManager(...))",
            last_part(name),
        )
        return
    yield from _convert_manager_or_optimizer(context, call, name)


def _convert_manager_or_optimizer(context: Context, call: Call, name: str) -> Iterator[Change | Finding]:
    """Convert a manager or an optimizer."""
    edits, uses = edits_and_imports_for_loss_scale(context, call.node, name)
    if edits is None:
        yield Finding(
            call.node,
            "these arguments cannot be converted. Write NPULossScaleOptimizer(opt, manager) with a "
            "FixedLossScaleManager or an ExponentialUpdateLossScaleManager",
        )
        return
    shared = _edit_to_share_overflows(context, call.node) if name in _OPTIMIZERS | GRAPH_REWRITES else None
    yield Change(
        call.node,
        "loss scaling replaced with that of the NPU",
        tuple(edits + ([shared] if shared else [])),
        tuple(uses),
    )


def _convert_keras_loss_scale(context: Context, call: Call, name: str) -> Iterator[Change | Finding]:
    """Replace Keras' loss scaling in a program of TensorFlow 2, or report its mixed precision."""
    if name in KERAS_OPTIMIZERS:
        local = device_name(context.names, allows_vendor=True)
        experimental = "Experimental" if ".experimental." in name else ""
        yield Change(
            call.node,
            "loss scaling replaced with that of the NPU",
            (
                edit_to_rename(
                    context.source, call.node.func, f"{local}.train.optimizer.Npu{experimental}LossScaleOptimizer"
                ),
            ),
            (local,),
        )
    elif _sets_mixed_policy(context, call) and not is_in_test(context, call.node):
        unscaled = unscaled_optimizers(context, call)
        if unscaled is not None:
            local = device_name(context.names, allows_vendor=True)
            edits = [edit_to_rename(context.source, call.node, _OPTION.replace("npu", local, 1))]
            for optimizer in unscaled:
                edits += _edits_to_scale_loss(context, optimizer, f"{local}.train.optimizer.NpuLossScaleOptimizer(")
            yield Change(call.node, "mixed precision replaced with that of the NPU", tuple(edits), (local,))
            return
        scales = not KERAS_OPTIMIZERS.isdisjoint(context.called_names.values())
        yield Finding(
            call.node,
            "the NPU has its own mixed precision. Remove this call and {0}",
            _mixed_precision_statement(context, not scales),
        )


def _edits_to_scale_loss(context: Context, optimizer: Unscaled, before: str) -> tuple[Edit, ...]:
    """Return the edits that let an optimizer of compile scale the loss, as Keras does with a policy."""
    if optimizer.written:
        return (edit_to_rename(context.source, optimizer.node, f"{before}{optimizer.written})"),)
    return edits_to_wrap(context.source, optimizer.node, before, ")")


def _enables_mixed_precision(call: Call) -> bool:
    """Return True if the options of the graph optimizer, in a literal, switch on mixed precision."""
    options = call.node.args[0] if call.node.args else None
    return isinstance(options, ast.Dict) and any(
        boxed_constant(key) == ("auto_mixed_precision",) and boxed_constant(value) == (True,)
        for key, value in zip(options.keys, options.values)
    )


def _mixed_precision_statement(context: Context, with_loss_scale: bool = False) -> str:
    """Return how the programs that a file belongs to set the mixed precision of the NPU, and scale the loss."""
    if is_tf2_program(context):
        if with_loss_scale:
            return Message("write {0} before npu.open() and use NpuLossScaleOptimizer", _OPTION)
        return Message("write {0} before npu.open()", _OPTION)
    texts = texts_of_file_and_importers(context)
    if any((b"Estimator(" in raw or b"RunConfig(" in raw) and _ESTIMATOR.search(raw) for raw in texts):
        return "pass precision_mode='allow_mix_precision' to NPURunConfig"
    if any(b".fit" in raw or b".train_on_batch" in raw for raw in texts) and not any(
        _SESSION.search(raw) for raw in texts
    ):
        return Message("write set_keras_session_npu_config(config={0})", _CONFIG)
    return Message("pass {0} to npu_config_proto", PRECISION_MODE)


def _sets_mixed_policy(context: Context, call: Call) -> bool:
    """Return True if a call sets a policy of mixed precision."""
    return any(
        isinstance(text, str) and text.startswith("mixed")
        for argument in values_of(call.node)
        for origin in origins(argument, call.where, context.names)
        for inner in ast.walk(origin.node)
        if isinstance(inner, ast.expr)
        for text in boxed_constant(inner) or ()
    )


def _edit_to_share_overflows(context: Context, node: ast.Call) -> Edit | None:
    """Return the edit that shares overflows between ranks."""
    bound = bind_arguments(node, ("opt", "loss_scale_manager", "is_distributed"))
    if not context.distributed or bound.hidden or "is_distributed" in bound.args:
        return None
    return edit_to_add_argument(context.source, node, "is_distributed=True")


def _is_used_by_rewrite(context: Context, scale: ast.expr | None, where: Where) -> bool:
    """Return True if a scale may also be an argument of the mixed precision graph rewrite.

    The rewrite accepts only TensorFlow's own scales.
    """
    makers = _ids_of_creation_calls(context, scale, where)
    for call in context.names.calls:
        if context.resolve(call.node.func, call.where) in GRAPH_REWRITES:
            given = bind_arguments(call.node, ("opt", "loss_scale")).args.get("loss_scale")
            if given is not None and boxed_constant(given) is None:
                its = _ids_of_creation_calls(context, given, call.where)
                if its is None or makers is None or its & makers:
                    return True
    return False


def _ids_of_creation_calls(context: Context, node: ast.expr | None, where: Where) -> set[int] | None:
    """Return the calls that may have made a value, or None if they are not known."""
    if node is None or boxed_constant(node) is not None:
        return set()
    if isinstance(node, ast.Call):
        return {id(node)}
    bindings = context.names.bindings_of_name(node.id, where) or [] if isinstance(node, ast.Name) else []
    if not bindings or any(b.kind != "value" or not isinstance(b.node, ast.Call) for b in bindings):
        return None
    return {id(b.node) for b in bindings}


def _has_literal_scale(node: ast.Call) -> bool:
    return boxed_constant(bind_arguments(node, ("opt", "loss_scale")).args.get("loss_scale")) is not None
