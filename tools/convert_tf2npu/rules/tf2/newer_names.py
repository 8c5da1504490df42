"""Names that TensorFlow 2.6 lacks.

On the NPU, programs of TensorFlow 2 run with TensorFlow 2.6. The rule reports calls of functions and classes, and
arguments, that exist in TensorFlow 2.15 or Keras 3 and not in 2.6, each once for each file. Code under a test of the version, or
in a ``try``, is not reported.

Reported::

    import tensorflow as tf

    tf.keras.utils.set_random_seed(1)
    optimizer = tf.keras.optimizers.AdamW(1e-3)

Reported::

    import tensorflow as tf

    @tf.function(reduce_retracing=True)
    def step(x):
        return model(x)

Reported::

    from tensorflow import keras
    from tensorflow.keras import ops
    import npu_shim.npu_device as npu

    npu.open().as_default()
    model = keras.Sequential([keras.layers.Dense(1)])
    model.fit(ops.ones((8, 4)), labels)

Untouched::

    import tensorflow as tf

    @tf.function(experimental_relax_shapes=True)
    def step(x):
        return model(x)

    def optimizers():
        return tf.keras.optimizers.Adam(1e-3)

Untouched::

    import tensorflow as tf

    @tf.function
    def step(x):
        return model(x)

    def optimizer():
        if hasattr(tf.keras.optimizers, 'legacy'):
            return tf.keras.optimizers.legacy.Adam(1e-3)
        return tf.keras.optimizers.Adam(1e-3)
"""

from __future__ import annotations

import ast
import functools
from typing import Iterator

from ...analysis.device_placement import in_test
from ...analysis.keras_methods import is_keras_method
from ...analysis.tensorflow_version import is_two, may_be_two
from ...semantics.model import Call, Where
from ...semantics.tf_types import Type
from ...tf_api.names_after_26 import ARGUMENTS, NAMES
from ...tf_api.v1_fate import rest_of
from ..base import Context, Finding, Result

CODE = "NPU275"
_ROOT = "tensorflow."
# The names of TensorFlow 2.6 for the same thing.
_INSTEAD = {
    "config.experimental.enable_op_determinism": "the environment variable TF_DETERMINISTIC_OPS=1",
    "data.Dataset.choose_from_datasets": "tf.data.experimental.choose_from_datasets",
    "data.Dataset.ignore_errors": "dataset.apply(tf.data.experimental.ignore_errors())",
    "data.Dataset.load": "tf.data.experimental.load",
    "data.Dataset.ragged_batch": "dataset.apply(tf.data.experimental.dense_to_ragged_batch(...))",
    "data.Dataset.rejection_resample": "dataset.apply(tf.data.experimental.rejection_resample(...))",
    "data.Dataset.sample_from_datasets": "tf.data.experimental.sample_from_datasets",
    "data.Dataset.save": "tf.data.experimental.save",
    "function.reduce_retracing": "experimental_relax_shapes=True",
    "keras.Initializer": "tf.keras.initializers.Initializer",
    "keras.InputSpec": "tf.keras.layers.InputSpec",
    "keras.Layer": "tf.keras.layers.Layer",
    "keras.Loss": "tf.keras.losses.Loss",
    "keras.Metric": "tf.keras.metrics.Metric",
    "keras.Model.compute_loss": "self.compiled_loss",
    "keras.Model.compute_metrics": "self.compiled_metrics",
    "keras.Model.export": "model.save",
    "keras.Optimizer": "tf.keras.optimizers.Optimizer",
    "keras.Regularizer": "tf.keras.regularizers.Regularizer",
    "keras.Variable": "tf.Variable",
    "keras.activations.silu": "tf.keras.activations.swish",
    "keras.callbacks.BackupAndRestore": "tf.keras.callbacks.experimental.BackupAndRestore",
    "keras.layers.EinsumDense": "tf.keras.layers.experimental.EinsumDense",
    "keras.layers.Identity": "tf.keras.layers.Lambda(tf.identity)",
    "keras.mixed_precision.set_dtype_policy": "tf.keras.mixed_precision.set_global_policy",
    "keras.ops": "tf, tf.math and tf.nn",
    "keras.optimizers.LossScaleOptimizer": "tf.keras.mixed_precision.LossScaleOptimizer",
    "keras.optimizers.experimental": "the same optimizer of tf.keras.optimizers",
    "keras.optimizers.legacy": "the same optimizer of tf.keras.optimizers",
    "keras.random": "tf.random",
    "keras.tree": "tf.nest",
    "keras.utils.PyDataset": "tf.keras.utils.Sequence",
    "keras.utils.clear_session": "tf.keras.backend.clear_session",
    "keras.utils.pad_sequences": "tf.keras.preprocessing.sequence.pad_sequences",
    "keras.utils.set_random_seed": "random.seed, numpy.random.seed and tf.random.set_seed",
    "io.gfile.join": "os.path.join",
}
_METHODS = {
    kind: frozenset(name.rpartition(".")[2] for name in NAMES if name.startswith(owner + "."))
    for kind, owner in ((Type.DATASET, "data.Dataset"), (Type.MODEL, "keras.Model"))
}
_ALL_METHODS = frozenset().union(*_METHODS.values())
_TESTS = ("version", "hasattr", "getattr")


def check_file(context: Context) -> Iterator[Result]:
    if not may_be_two(context):
        return
    reported: set[str] = set()
    called = context.called
    for call in context.names.calls:
        name = called.get(call.node, "")
        if name.startswith(_ROOT):
            found = _newer(call, name)
        else:
            found = _method(context, call) if getattr(call.node.func, "attr", "") in _ALL_METHODS else ""
        if not found:
            continue
        if found in reported or _is_tested(context, call.node) or in_test(context, call.node) or not is_two(context):
            continue
        reported.add(found)
        instead = _INSTEAD.get(found, "")
        owner, _, last = found.rpartition(".")
        what = f"the argument {last} of tf.{owner}" if last in ARGUMENTS.get(owner, "").split() else f"tf.{found}"
        yield Finding(
            call.node,
            f"TensorFlow 2.6, which runs on the NPU, lacks {what}. "
            + (f"Use {instead}" if instead else "Write it without this name"),
        )


@functools.lru_cache(maxsize=4096)
def _newer_name(name: str) -> str:
    """Return the name, or a module or class of it, that TensorFlow 2.6 lacks; "" if it has them."""
    name = rest_of(name)
    above = [name[:end] for end, char in enumerate(name) if char == "."]
    return next((part for part in [*above, name] if part in NAMES), "")


def _newer(call: Call, name: str) -> str:
    """Return the name, or the name and argument, that TensorFlow 2.6 lacks; "" if it has them."""
    newer = _newer_name(name)
    if newer or not call.node.keywords:
        return newer
    name = rest_of(name)
    arguments = ARGUMENTS.get(name)
    more = arguments.split() if arguments else ()
    return next((f"{name}.{keyword.arg}" for keyword in call.node.keywords if keyword.arg in more), "")


def _method(context: Context, call: Call) -> str:
    """Return the method of a dataset or a Keras model that TensorFlow 2.6 lacks."""
    function = call.node.func
    assert isinstance(function, ast.Attribute)
    kind = context.types.of(function.value, call.where)
    if kind in _METHODS and function.attr in _METHODS[kind]:  # type: ignore[index]
        is_own = context.names.definition(function, call.where) is not None or _may_be_own(
            context, function, call.where
        )
        if not is_own and (kind == Type.DATASET or is_keras_method(context, call)):
            return f"{'data.Dataset' if kind == Type.DATASET else 'keras.Model'}.{function.attr}"
    owner = context.names.owner(function.value, call.where)
    if (
        owner is not None
        and function.attr in _METHODS[Type.MODEL]
        and not owner.names.held(owner.node, function.attr)
        and any(
            base in ("tensorflow.keras.Model", "tensorflow.keras.Sequential")
            for base in owner.names.ancestry(owner.node)
        )
    ):
        return f"keras.Model.{function.attr}"
    return ""


def _may_be_own(context: Context, method: ast.Attribute, where: Where) -> bool:
    """Return True if the object is a parameter, and a class of the project has a method of this name."""
    bindings = context.names.lookup(method.value.id, where) if isinstance(method.value, ast.Name) else None
    project = context.names.project
    if not project or not any(binding.kind == "arg" for binding in bindings or ()):
        return False
    definition = f"def {method.attr}(".encode()
    return any(definition in project.raw(path) for path in project.paths)


def _is_tested(context: Context, node: ast.AST) -> bool:
    """Return True if code runs only with some versions of TensorFlow."""
    for parent in context.names.ancestors(node):
        if isinstance(parent, ast.Try):
            return True
        if isinstance(parent, (ast.If, ast.IfExp)) and any(
            word in context.source.segment(parent.test).lower() for word in _TESTS
        ):
            return True
    return False
