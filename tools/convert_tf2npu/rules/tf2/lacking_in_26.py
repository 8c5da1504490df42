"""Names that TensorFlow 2.6 lacks.

On the NPU, programs of TensorFlow 2 run with TensorFlow 2.6. The rule reports calls of functions and classes,
arguments, and star imports of modules, that exist in TensorFlow 2.15 or Keras 3 and not in 2.6, each once for each file.
NPU124 converts most of them. Code under a test of the version, or in a ``try``, is not reported. The rule also reports a model with a ``compute_loss`` of its own
and no ``train_step``: only later versions call it in ``fit``.

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

Reported::

    import tensorflow as tf
    from tensorflow.keras.ops import *

    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile('adam', 'mse')
    model.fit(images, labels)

Reported::

    import tensorflow as tf

    class Net(tf.keras.Model):
        def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None):
            return tf.reduce_mean((y - y_pred) ** 2)

    Net().fit(images, labels)

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
from typing import Iterator

from ...analysis.device_placement import belongs_to_test
from ...analysis.later_uses import calls_lacking_in_26, star_imports_of_modules_lacking_in_26
from ...analysis.tensorflow_version import is_tf2_program, may_be_tf2
from ...rewrite.later_conversions import conversions_for_26
from ...rewrite.spans import Spans
from ...tf_api.forms_in_26 import ARGUMENT_NAMES, MOVED
from ...tf_api.name_tables import ARGUMENTS_AFTER_26
from ..base import Context, Finding, Message

CODE = "NPU275"
# What TensorFlow 2.6 has in place of names without another spelling.
_INSTEAD = {
    "config.experimental.enable_op_determinism": "the environment variable TF_DETERMINISTIC_OPS=1",
    "data.Dataset.ignore_errors": "dataset.apply(tf.data.experimental.ignore_errors())",
    "data.Dataset.ragged_batch": "dataset.apply(tf.data.experimental.dense_to_ragged_batch(...))",
    "data.Dataset.rejection_resample": "dataset.apply(tf.data.experimental.rejection_resample(...))",
    "data.Dataset.save": "tf.data.experimental.save",
    "function.reduce_retracing": "experimental_relax_shapes=True",
    "keras.layers.LeakyReLU.negative_slope": "alpha",
    "keras.Model.compute_loss": "self.compiled_loss",
    "keras.Model.compute_metrics": "self.compiled_metrics",
    "keras.Model.export": "model.save",
    "keras.Optimizer.apply": "apply_gradients(zip(gradients, variables))",
    "keras.Variable": "tf.Variable",
    "keras.activations.silu": "tf.keras.activations.swish",
    "keras.callbacks.BackupAndRestore": "tf.keras.callbacks.experimental.BackupAndRestore",
    "keras.layers.EinsumDense": "tf.keras.layers.experimental.EinsumDense",
    "keras.layers.Identity": "tf.keras.layers.Lambda(tf.identity)",
    "keras.ops": "tf, tf.math and tf.nn",
    "keras.optimizers.experimental": "the same optimizer of tf.keras.optimizers",
    "keras.optimizers.legacy": "the same optimizer of tf.keras.optimizers",
    "keras.random": "tf.random",
    "keras.tree": "tf.nest",
    "keras.utils.set_random_seed": "random.seed, numpy.random.seed and tf.random.set_seed",
    "io.gfile.join": "os.path.join",
}


def check_last(context: Context, replaced: Spans) -> Iterator[Finding]:
    if not may_be_tf2(context):
        return
    if "def compute_loss" in context.source.text:
        yield from _report_uncalled_losses(context)
    reported: set[str] = set()
    calls = [(call.node, newer) for call, newer in calls_lacking_in_26(context)]
    for node, newer in [*star_imports_of_modules_lacking_in_26(context), *calls]:
        if newer in reported or not is_tf2_program(context) or _is_converted(context, node, replaced):
            continue
        reported.add(newer)
        instead = f"tf.{MOVED[newer]}" if newer in MOVED else _INSTEAD.get(newer, "")
        owner, _, last = newer.rpartition(".")
        what = (
            Message("the argument {0} of tf.{1}", last, owner)
            if last in ARGUMENTS_AFTER_26.get(owner, "").split() or last in ARGUMENT_NAMES.get(owner, ())
            else f"tf.{newer}"
        )
        fix = Message("Use {0}", instead) if instead else "Write it without this name"
        yield Finding(node, "TensorFlow 2.6, which runs on the NPU, lacks {0}. {1}", what, fix)


def _report_uncalled_losses(context: Context) -> Iterator[Finding]:
    """Yield findings for models with a loss of their own that only the training step of later versions calls."""
    names = context.names
    if any(getattr(call.node.func, "attr", "") == "compute_loss" for call in names.calls):
        return  # a loop of the script may call it
    for node in names.places:
        if not isinstance(node, ast.ClassDef) or names.attribute_bindings(node, "train_step"):
            continue
        own = [held.binding.node for held in names.attribute_bindings(node, "compute_loss")]
        is_keras = any("y_pred" in (a.arg for a in f.args.args) for f in own if isinstance(f, ast.FunctionDef))
        if not is_keras or names.outside_ancestors(node).isdisjoint(
            {"tensorflow.keras.Model", "tensorflow.keras.Sequential"}
        ):
            continue
        if is_tf2_program(context) and not belongs_to_test(names, node):
            yield Finding(node, "TensorFlow 2.6 does not call compute_loss of a model. Define train_step and call it")


def _is_converted(context: Context, node: ast.AST, replaced: Spans) -> bool:
    """Return True if NPU124 has converted the function, the method or the argument of a call."""
    parts = {node, *(ast.walk(node.func) if isinstance(node, ast.Call) else ())}
    return any(
        not parts.isdisjoint(conversion.nodes) and all((edit.start, edit.end) in replaced for edit in conversion.edits)
        for conversion in conversions_for_26(context).all
    )
