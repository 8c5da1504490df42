"""Open the NPU device in programs of TensorFlow 2.

Eager code, tf.function and Keras run on the NPU once the device is the default. The rule adds two lines to the script
that starts the training: the import, and ``npu.open().as_default()`` behind flags, settings, seeds and all that runs
before TensorFlow is imported, and before the first tensor, dataset, model or strategy, also before a module of the
project that makes a model when it is imported. Modules that are only imported and tests stay unchanged. In a program
of several commands (click, typer, fire) each command that uses TensorFlow opens the device.

A program is one of TensorFlow 2 if it shows this, for example by tf.GradientTape, tf.function, ``loss.numpy()`` or a
name that TensorFlow 1 does not have, in code that the script reaches. The message names the first evidence. A program
that only trains a Keras model shows nothing; there the two lines work with both versions: in graph mode they give Keras
a session for the NPU. Programs that build graphs get sessions for the NPU (NPU101, NPU105). ``--tf 1`` or ``--tf 2``
overrules the evidence, and with ``--compat-v1`` all programs are of TensorFlow 1.

With ``-d tf_strategy`` a line follows that gives all ranks the random numbers of rank 0, unless the program sets the
seeds that it needs. Ranks must shuffle alike. A program that opens the device itself gets this line, too, unless
it calls ``npu.distribute`` already.

The rule reports a program of both versions that computes gradients eagerly, unless the script disables eager execution
under a condition before its work begins: the two lines then work in both cases.

Before::

    import tensorflow as tf

    tf.random.set_seed(1)
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile('adam', 'mse')
    model.fit(images, labels)

After::

    import tensorflow as tf
    import npu_shim.npu_device as npu

    tf.random.set_seed(1)
    npu.open().as_default()
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile('adam', 'mse')
    model.fit(images, labels)

Before::

    from tensorflow.keras.models import Sequential
    from tensorflow.keras.layers import Dense

    # the model
    model = Sequential([Dense(1)])
    model.compile('adam', 'mse')
    model.fit(images, labels)

After::

    from tensorflow.keras.models import Sequential
    from tensorflow.keras.layers import Dense
    import npu_shim.npu_device as npu

    npu.open().as_default()
    # the model
    model = Sequential([Dense(1)])
    model.compile('adam', 'mse')
    model.fit(images, labels)

Before::

    from absl import app, flags
    import tensorflow as tf

    FLAGS = flags.FLAGS
    flags.DEFINE_integer('steps', 10, 'Steps.')

    @tf.function
    def step(model, optimizer, x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(x) - y) ** 2)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))

    def main(_):
        steps = FLAGS.steps
        # the model
        model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
        optimizer = tf.keras.optimizers.SGD(0.1)
        for _ in range(steps):
            step(model, optimizer, x, y)

    if __name__ == '__main__':
        app.run(main)

After::

    from absl import app, flags
    import tensorflow as tf
    import npu_shim.npu_device as npu

    FLAGS = flags.FLAGS
    flags.DEFINE_integer('steps', 10, 'Steps.')

    @tf.function
    def step(model, optimizer, x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(x) - y) ** 2)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))

    def main(_):
        steps = FLAGS.steps
        npu.open().as_default()
        # the model
        model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
        optimizer = tf.keras.optimizers.SGD(0.1)
        for _ in range(steps):
            step(model, optimizer, x, y)

    if __name__ == '__main__':
        app.run(main)

Before::

    import tensorflow as tf

    if mode == 'graph':
        tf.compat.v1.disable_eager_execution()

    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    if mode == 'graph':
        loss = model(tf.compat.v1.placeholder(tf.float32, [4, 3]))
    else:
        with tf.GradientTape() as tape:
            loss = model(x)

After::

    import tensorflow as tf
    import npu_shim.npu_device as npu

    if mode == 'graph':
        tf.compat.v1.disable_eager_execution()

    npu.open().as_default()
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    if mode == 'graph':
        loss = model(tf.compat.v1.placeholder(tf.float32, [4, 3]))
    else:
        with tf.GradientTape() as tape:
            loss = model(x)

Before::

    import tensorflow as tf

    count = 3; images = tf.ones([count, 2]); labels = images > 1
    model = tf.keras.Sequential([tf.keras.layers.Dense(2)]); model.compile('adam', 'mse')
    model.fit(images[:n], labels[:n])

After::

    import tensorflow as tf
    import npu_shim.npu_device as npu

    npu.open().as_default()
    count = 3; images = tf.ones([count, 2]); labels = images > 1
    model = tf.keras.Sequential([tf.keras.layers.Dense(2)]); model.compile('adam', 'mse')
    model.fit(images[:n], labels[:n])

Before::

    import tensorflow as tf; images = tf.ones([3, 2])

    def main(): model = tf.keras.Sequential([tf.keras.layers.Dense(2)]); model.fit(images[:n], images[:n])

    if __name__ == '__main__': main()

After::

    import tensorflow as tf; import npu_shim.npu_device as npu; npu.open().as_default(); images = tf.ones([3, 2])

    def main(): model = tf.keras.Sequential([tf.keras.layers.Dense(2)]); model.fit(images[:n], images[:n])

    if __name__ == '__main__': main()

Reported::

    import tensorflow as tf

    if FLAGS.graph:
        tf.compat.v1.disable_eager_execution()
        x = tf.compat.v1.placeholder(tf.float32)
    with tf.GradientTape() as tape:
        loss = model(x)

Untouched::

    import tensorflow as tf
    import npu_shim.npu_device as npu

    npu.open().as_default()
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.fit(images, labels)

Untouched::

    import tensorflow as tf
    import npu_shim.npu_device as npu

    if mode == 'graph':
        tf.compat.v1.disable_eager_execution()
    npu.open().as_default()
    with tf.GradientTape() as tape:
        loss = model(x)

Untouched::

    import tensorflow as tf

    class Trainer:
        def step(self, x):
            with tf.GradientTape() as tape:
                loss = self.model(x)
            return tape.gradient(loss, self.model.trainable_variables)

Untouched::

    import tensorflow as tf

    dataset = tf.data.Dataset.from_tensor_slices(images)
    for image in dataset:
        print(image.numpy())

Untouched::

    import tensorflow as tf; import npu_shim.npu_device as npu; npu.open().as_default(); images = tf.ones([3, 2])
    model = tf.keras.Sequential([tf.keras.layers.Dense(2)]); model.fit(images, images)

Untouched::

    import tensorflow as tf

    def build(): inputs = tf.keras.Input([2]); return tf.keras.Model(inputs, tf.keras.layers.Dense(2)(inputs))
"""

from __future__ import annotations

import os
from typing import Iterator

from ...analysis.opening import (
    device_opening_statement,
    is_graph_mode_undecided,
    must_open_for_both_versions,
    starts_training_without_device,
)
from ...analysis.parallel_training import shuffles_differently_per_rank
from ...analysis.program_start import first_working_statements
from ...analysis.tensorflow_evidence import Evidence
from ...analysis.tensorflow_version import Verdict, version_verdict
from ...rewrite.insertion import edit_adding_before
from ...rewrite.npu_imports import device_name, edit_adding_after
from ..base import Change, Context, Finding, Message

CODE = "NPU121"
_CALL = "open().as_default()"
_SHARED = "distribute.share_random_state()"


def check_file(context: Context) -> Iterator[Change | Finding]:
    opening = device_opening_statement(context)
    if opening is not None and shuffles_differently_per_rank(context):
        name = device_name(context.names)
        edit = edit_adding_after(context.source, opening, f"{name}.{_SHARED}")
        yield Change(opening, "ranks get the random numbers of rank 0", (edit,), (name,))
    if not starts_training_without_device(context):
        return
    evidence = version_verdict(context)
    opens = evidence.is_two or must_open_for_both_versions(context)
    if is_graph_mode_undecided(context) and evidence.one and evidence.two:
        one, two = _location_of_evidence(context, evidence.one), _location_of_evidence(context, evidence.two)
        yield Finding(
            context.names.tree.body[0],
            "this program shows TensorFlow 2, {0} in {1}, and 1, {2} in {3}. "
            "Convert it with --tf 2, or with --tf 1 if it builds graphs",
            evidence.two.name,
            two,
            evidence.one.name,
            one,
        )
    name = device_name(context.names)
    for first in first_working_statements(context) if opens else ():
        lines = [f"{name}.{_CALL}"] + [f"{name}.{_SHARED}"] * shuffles_differently_per_rank(context)
        yield Change(
            first,
            Message("NPU device opened: {0}", _evidence_text(context, evidence)),
            (edit_adding_before(context, first, *lines),),
            (name,),
        )


def _evidence_text(context: Context, evidence: Verdict) -> str:
    if evidence.two is None:
        return Message("TensorFlow {0}, Keras", evidence.version.value)
    return Message(
        "TensorFlow {0}, {1} in {2}",
        evidence.version.value,
        evidence.two.name,
        _location_of_evidence(context, evidence.two),
    )


def _location_of_evidence(context: Context, evidence: Evidence) -> str:
    if evidence.path == context.names.path:
        return Message("line {0}", evidence.line)
    return f"{evidence.path.replace(os.sep, '/').rpartition('/')[2]}:{evidence.line}"
