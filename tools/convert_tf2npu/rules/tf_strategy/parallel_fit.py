"""Train Keras models of TensorFlow 2 on global batches (with ``-d tf_strategy``).

Each rank runs the whole script. ``npu.distribute.data_parallel(model)`` makes ``fit`` and ``train_on_batch`` train on
this rank's part of each batch, average the gradients and the metrics, synchronize batch normalization, and write files
of callbacks on rank 0. The result is that of one process with the same batches. Shuffled data needs a seed.

A model made in the scope of a strategy keeps what the strategy does (see NPU302); there the call only changes the
callbacks.

Objects of unknown type are reported.

Options: -d tf_strategy

Before::

    import tensorflow as tf

    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile('adam', 'mse')
    model.fit(
        images[:n],
        labels[:n],
        callbacks=[tf.keras.callbacks.ModelCheckpoint('weights.h5')])

After::

    import tensorflow as tf
    import npu_shim.npu_device as npu

    npu.open().as_default()
    npu.distribute.share_random_state()
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile('adam', 'mse')
    npu.distribute.data_parallel(model).fit(
        images[:n],
        labels[:n],
        callbacks=[tf.keras.callbacks.ModelCheckpoint('weights.h5')])

Reported::

    import tensorflow as tf

    def train(model, dataset: tf.data.Dataset):
        model.compile(optimizer=tf.keras.optimizers.Adam(), loss='mse')
        model.fit(dataset)

Untouched::

    import tensorflow as tf

    class Net(tf.keras.Model):
        def fit(self, batches, epochs):
            for batch in batches:
                self.step(batch)

    def train(batches):
        model = Net()
        model.fit(batches, 3)

Untouched::

    import tensorflow as tf
    import npu_shim.npu_device as npu

    npu.open().as_default()
    npu.distribute.share_random_state()
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile('adam', 'mse')
    npu.distribute.data_parallel(model).fit(dataset)

Untouched::

    import tensorflow as tf
    from sklearn.linear_model import Ridge

    model = Ridge()
    model.fit(tf.ones([2, 2]).numpy(), labels)
"""

from __future__ import annotations

import ast
from typing import Iterator

from ...analysis.compiled_models import is_compiled
from ...analysis.device_placement import is_in_test
from ...analysis.keras_methods import is_keras_method
from ...analysis.parallel_training import DISTRIBUTE, trains_on_ranks
from ...analysis.tensorflow_evidence import trains_as_keras
from ...rewrite.call_edits import edits_to_wrap
from ...rewrite.npu_imports import device_name
from ...semantics.model import Call
from ...semantics.tf_types import TRAINING_METHODS
from ..base import Change, Context, Finding, Message

CODE = "NPU307"
NEEDS = {"distributed": "tf_strategy"}
METHODS = TRAINING_METHODS


def check_method(context: Context, call: Call, method: ast.Attribute) -> Iterator[Change | Finding]:
    if not trains_on_ranks(context) or is_in_test(context, call.node):
        return
    name = device_name(context.names)
    model = method.value
    if isinstance(model, ast.Call) and context.resolve(model.func, call.where) == DISTRIBUTE + "data_parallel":
        return
    if is_keras_method(context, call):
        yield Change(
            call.node,
            Message("{0} trains on this rank's part of each batch", method.attr),
            edits_to_wrap(context.source, model, f"{name}.distribute.data_parallel(", ")"),
            (name,),
        )
    elif context.types.type_of(model, call.where) is None and (
        trains_as_keras(context.names, call) or is_compiled(context.names, model, call.where)
    ):
        text = context.source.segment(model)
        yield Finding(
            call.node,
            "each rank trains on its own. Write {0}.distribute.data_parallel({1}).{2}(...)",
            name,
            text,
            method.attr,
        )
