"""Average the gradients of training loops of TensorFlow 2 (with ``-d tf_strategy``).

In programs that apply gradients themselves, ``npu.distribute.distributed_optimizer`` goes around
each Keras optimizer where the script creates it. From then on tapes average the gradients of variables over the ranks,
so that the script clips and logs those of one process. All ranks get the first values of rank 0. A loss scale optimizer
is wrapped itself, not the optimizer inside. Models that ``fit`` trains see NPU307.

In programs with a strategy only optimizers with ``clipnorm``, ``clipvalue`` or ``global_clipnorm`` are wrapped: Keras 3
clips the gradients of each replica, not their sum.

Batch normalization uses the statistics of all ranks, as one process with the whole batch does:
``npu.distribute.sync_batch_norm`` goes around layers that normalize batches, also those of classes of the script, and
around the models of ``tf.keras.applications`` with such layers. With a strategy it stays as the strategy has it. The rule
reports a class that computes the statistics itself.

The rule reports calls that apply gradients with an optimizer of unknown origin, or with one of another library, such as
Sonnet's ``optimizer.apply(gradients, variables)``, and optimizers of the script that
average their gradients with MPI. The latter stay as they are. MPI only has ranks that ``mpirun`` starts.

The loss must be the mean over the batch. If it is a sum, multiply the learning rate by the number of ranks.

Options: -d tf_strategy

Before::

    import tensorflow as tf

    model = tf.keras.Sequential([tf.keras.layers.Dense(8), tf.keras.layers.BatchNormalization()])
    optimizer = tf.keras.optimizers.Adam(0.001)

    @tf.function
    def step(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(x, training=True) - y) ** 2)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))

After::

    import tensorflow as tf
    import npu_shim.npu_device as npu

    npu.open().as_default()
    npu.distribute.share_random_state()
    model = tf.keras.Sequential([tf.keras.layers.Dense(8), npu.distribute.sync_batch_norm(tf.keras.layers.BatchNormalization())])
    optimizer = npu.distribute.distributed_optimizer(tf.keras.optimizers.Adam(0.001))

    @tf.function
    def step(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(x, training=True) - y) ** 2)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))

Before::

    import tensorflow as tf

    class Trainer:
        def __init__(self, name):
            self.optimizer = getattr(tf.keras.optimizers, name)(learning_rate=0.1)

        def step(self, x, y):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((model(x) - y) ** 2)
            self.optimizer.apply_gradients(zip(tape.gradient(loss, model.variables), model.variables))

After::

    import tensorflow as tf
    import npu_shim.npu_device as npu

    class Trainer:
        def __init__(self, name):
            self.optimizer = npu.distribute.distributed_optimizer(getattr(tf.keras.optimizers, name)(learning_rate=0.1))

        def step(self, x, y):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((model(x) - y) ** 2)
            self.optimizer.apply_gradients(zip(tape.gradient(loss, model.variables), model.variables))

Reported::

    import tensorflow as tf

    @tf.function
    def step(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(x, training=True) - y) ** 2)
        settings.optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))

Reported::

    import sonnet as snt
    import tensorflow as tf

    optimizer = snt.optimizers.SGD(0.1)

    @tf.function
    def step(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(x) - y) ** 2)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply(gradients, model.trainable_variables)

Untouched::

    import sonnet as snt
    import tensorflow as tf
    import npu_shim.npu_device as npu

    optimizer = snt.optimizers.SGD(0.1)

    @tf.function
    def step(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(x) - y) ** 2)
        gradients = npu.distribute.all_reduce(tape.gradient(loss, model.trainable_variables))
        optimizer.apply(gradients, model.trainable_variables)

Untouched::

    import tensorflow as tf
    import npu_shim.npu_device as npu

    npu.open().as_default()
    npu.distribute.share_random_state()
    optimizer = npu.distribute.distributed_optimizer(tf.keras.optimizers.Adam(0.001))

    @tf.function
    def step(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(x, training=True) - y) ** 2)
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))

Untouched::

    import tensorflow as tf
    import npu_shim.npu_device as npu

    class Agent:
        def __init__(self):
            self.actor = Actor()
            self.actor.compile(optimizer=npu.distribute.distributed_optimizer(tf.keras.optimizers.Adam(0.001)))

        @tf.function
        def learn(self, states):
            with tf.GradientTape() as tape:
                loss = -tf.reduce_mean(self.actor(states))
            gradients = tape.gradient(loss, self.actor.trainable_variables)
            self.actor.optimizer.apply_gradients(zip(gradients, self.actor.trainable_variables))

Untouched::

    import tensorflow as tf

    def rate(step):
        tf.print(step.numpy())
        return tf.keras.optimizers.Adam(0.1).learning_rate
"""

from __future__ import annotations

import ast
from typing import Iterator

from ...analysis.applied_optimizers import MPI, is_optimizer_known
from ...analysis.device_placement import is_in_test
from ...analysis.optimizers import (
    CREATES_OPTIMIZER,
    WRAPS_OPTIMIZER,
    Key,
    creates_keras_optimizer,
    creates_mpi_optimizer,
    optimizer_role,
    wrapped_optimizers,
)
from ...analysis.parallel_training import (
    has_custom_training_loop,
    has_own_strategy,
    is_application,
    is_in_train_step,
    trains_on_ranks,
)
from ...rewrite.call_edits import edits_to_wrap
from ...rewrite.npu_imports import device_name
from ...semantics.model import Call
from ...semantics.tf_types import Type
from ...semantics.value_flow import origins
from ...syntax.expressions import last_name, last_part, values_of
from ..base import Change, Context, Finding

CODE = "NPU308"
NEEDS = {"distributed": "tf_strategy"}
_NORMALIZATIONS = frozenset({"tensorflow.keras.layers.BatchNormalization", "tensorflow.BatchNormalization"})
_APPLICATIONS = "tensorflow.keras.applications."
_WITHOUT = ("VGG", "ConvNeXt")  # applications without batch normalization
_SYNCHRONIZED = "npu_shim.npu_device.distribute.sync_batch_norm"


def check_file(context: Context) -> Iterator[Change | Finding]:
    if not trains_on_ranks(context):
        return
    reduces = has_own_strategy(context)
    name = device_name(context.names)
    for call in context.names.calls:
        if not reduces and _applies_to_non_keras_optimizer(context, call) and not is_in_test(context, call.node):
            yield Finding(
                call.node,
                "the gradients belong to one rank. Apply {0}.distribute.all_reduce(gradients), and loop over "
                "{1}.distribute.shard_batches(dataset)",
                name,
                name,
            )
    if not has_custom_training_loop(context):
        return
    inside = _calls_with_averaged_results(context)
    for call in context.names.calls:
        if is_in_test(context, call.node) or context.names.call_key(call.node) in inside:
            continue
        its_role = optimizer_role(call.node, call.where, context.names)
        if reduces and (its_role != CREATES_OPTIMIZER or not _clips_gradients(call.node)):
            continue
        if its_role in (CREATES_OPTIMIZER, WRAPS_OPTIMIZER) and creates_keras_optimizer(
            call.node, call.where, context.names
        ):
            if _is_in_parameter_default(context, call.node):
                yield Finding(
                    call.node,
                    "this default is made before the device is open. Make the optimizer in the function and write "
                    "{0}.distribute.distributed_optimizer(...) there",
                    name,
                )
                continue
            yield Change(
                call.node,
                "gradients of this optimizer averaged over all ranks",
                edits_to_wrap(context.source, call.node, f"{name}.distribute.distributed_optimizer(", ")"),
                (name,),
            )
        elif creates_mpi_optimizer(call.node, call.where, context.names):
            yield Finding(call.node, MPI)
        elif _normalizes_batches(context, call):
            if not _has_statistics_of_keras(context, call):
                yield Finding(
                    call.node,
                    "this layer computes the statistics of one rank. Average them in its method call with "
                    "{0}.distribute.all_reduce",
                    name,
                )
                continue
            yield Change(
                call.node,
                "batch normalization with the statistics of all ranks",
                edits_to_wrap(context.source, call.node, f"{name}.distribute.sync_batch_norm(", ")"),
                (name,),
            )

        elif (
            is_application(call.node)
            and not is_in_train_step(context.names, call.node)
            and not is_optimizer_known(context, call)
        ):
            yield Finding(
                call.node,
                "the gradients belong to one rank. Write {0}.distribute.distributed_optimizer(...) where the "
                "optimizer is created",
                name,
            )


def _applies_to_non_keras_optimizer(context: Context, call: Call) -> bool:
    """Return True if a call gives the gradients of a tape to the method apply of an object that is no Keras optimizer."""
    function = call.node.func
    if not isinstance(function, ast.Attribute) or function.attr != "apply" or len(call.node.args) != 2:
        return False
    if context.types.type_of(function.value, call.where) == Type.KERAS_OPTIMIZER or is_optimizer_known(context, call):
        return False
    sources = origins(call.node.args[0], call.where, context.names)
    return any(isinstance(one.node, ast.Call) and last_name(one.node.func) == "gradient" for one in sources)


def _is_in_parameter_default(context: Context, node: ast.Call) -> bool:
    """Return True for a call in the default of a parameter, which Python runs where the function is defined."""
    inner: ast.AST = node
    for around in context.names.ancestors(node):
        if isinstance(around, ast.FunctionDef):
            return inner in (*around.args.defaults, *around.args.kw_defaults)
        if isinstance(around, (ast.Lambda, ast.stmt)):
            return False
        inner = around if isinstance(around, ast.expr) else inner
    return False


def _clips_gradients(call: ast.Call) -> bool:
    """Return True if a call passes an argument with which a Keras optimizer clips gradients."""
    return any((keyword.arg or "").startswith(("clip", "global_clip")) for keyword in call.keywords)


def _normalizes_batches(context: Context, call: Call) -> bool:
    """Return True if a call makes a layer or a model of Keras that normalizes batches."""
    layer = context.names.definition(call.node.func, call.where)
    if layer is not None:
        return isinstance(layer.node, ast.ClassDef) and not _NORMALIZATIONS.isdisjoint(
            layer.names.outside_ancestors(layer.node)
        )
    name = context.resolve(call.node.func, call.where) or ""
    word = last_part(name) if name.startswith(_APPLICATIONS) else ""
    return name in _NORMALIZATIONS or word[:1].isupper() and not word.startswith(_WITHOUT)


def _has_statistics_of_keras(context: Context, call: Call) -> bool:
    """Return False for a class of the project whose method call does not call that of its base."""
    layer = context.names.class_definition(call.node.func, call.where)
    own = layer.names.attribute_bindings(layer.node, "call") if layer else []
    return all(
        method.binding.node is None
        or any(isinstance(node, ast.Attribute) and node.attr == "call" for node in ast.walk(method.binding.node))
        for method in own
    )


def _calls_with_averaged_results(context: Context) -> set[Key]:
    """Return the calls whose results other calls already average or synchronize, or are made for loss scaling only."""
    wrapped = set(wrapped_optimizers(context.names))
    for call in context.names.calls:
        values = values_of(call.node)
        if optimizer_role(call.node, call.where, context.names) == WRAPS_OPTIMIZER:
            wrapped.update(context.names.call_key(value) for value in values if isinstance(value, ast.Call))
        elif context.resolve(call.node.func, call.where) == _SYNCHRONIZED:
            for value in values:
                inner = origins(value, call.where, context.names)
                wrapped.update(
                    origin.names.call_key(origin.node) for origin in inner if isinstance(origin.node, ast.Call)
                )
    return wrapped
