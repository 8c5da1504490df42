"""Write names of later versions as TensorFlow 2.6 has them.

On the NPU, programs of TensorFlow 2 run with TensorFlow 2.6. The rule converts names that came later and have another
spelling in 2.6, or a backport in ``npu_shim.backports``, in programs of TensorFlow 2. The new code runs with TensorFlow
2.6, 2.15 and 2.21. Where TensorFlow has the later name, the backport is TensorFlow's own.

| later | converted to |
| --- | --- |
| ``keras.optimizers.AdamW``, ``keras.layers.GroupNormalization``, ``UnitNormalization``, ``Identity``, ``EinsumDense`` | the backport |
| ``keras.Variable``, ``keras.utils.set_random_seed``, ``tf.config.experimental.enable_op_determinism``, ``BackupAndRestore``, ``silu`` | the backport |
| ``keras.ops``, ``keras.random``, as far as all functions that a name is used for have a backport | the backport |
| ``self.compute_loss``, ``compute_metrics`` and ``get_metrics_result`` of Keras models | functions of the backports |
| ``keras.optimizers.legacy``, ``keras.optimizers.experimental`` | ``keras.optimizers``, if all arguments exist there |
| ``keras.saving``, ``keras.config``, ``keras.Layer`` and the like | the older path |
| ``optimizer.apply(gradients, variables)`` | ``apply_gradients(zip(gradients, variables))`` |
| ``reduce_retracing`` of ``tf.function``, ``negative_slope`` of ``LeakyReLU`` | ``experimental_relax_shapes``, ``alpha`` |
| ``Dataset.sample_from_datasets``, ``choose_from_datasets``, ``load``, ``save``, ``rebatch``, ``ragged_batch``, ``ignore_errors``, ``rejection_resample`` | ``tf.data.experimental``, or ``unbatch().batch`` |

Code under a test of the version, or in a ``try``, is not converted. NPU275 reports names without a conversion.

Before::

    import tensorflow as tf

    tf.keras.utils.set_random_seed(1)
    model = tf.keras.Sequential([tf.keras.layers.GroupNormalization(4), tf.keras.layers.LeakyReLU(negative_slope=0.1)])
    model.compile(tf.keras.optimizers.AdamW(1e-3), 'mse')
    model.fit(images, labels)

After::

    import tensorflow as tf
    from npu_shim import backports
    import npu_shim.npu_device as npu

    backports.set_random_seed(1)
    npu.open().as_default()
    model = tf.keras.Sequential([backports.GroupNormalization(4), tf.keras.layers.LeakyReLU(alpha=0.1)])
    model.compile(backports.AdamW(1e-3), 'mse')
    model.fit(images, labels)

Before::

    from tensorflow.keras.layers import Dense, UnitNormalization
    from tensorflow.keras.optimizers import AdamW
    from tensorflow.keras.optimizers.legacy import Adam
    import npu_shim.npu_device as npu

    npu.open().as_default()
    model.fit(images, labels, epochs=1)

After::

    from tensorflow.keras.layers import Dense
    from npu_shim.backports import UnitNormalization
    from npu_shim.backports import AdamW
    from tensorflow.keras.optimizers import Adam
    import npu_shim.npu_device as npu

    npu.open().as_default()
    model.fit(images, labels, epochs=1)

Before::

    import keras
    from keras import ops
    import npu_shim.npu_device as npu

    @keras.saving.register_keras_serializable()
    class Scale(keras.Layer):
        def call(self, x):
            return x / ops.max(x)

    npu.open().as_default()
    model = keras.Sequential([Scale()])
    model.fit(images, labels, epochs=1)

After::

    from tensorflow import keras
    from npu_shim.backports import ops
    import npu_shim.npu_device as npu

    @keras.utils.register_keras_serializable()
    class Scale(keras.layers.Layer):
        def call(self, x):
            return x / ops.max(x)

    npu.open().as_default()
    model = keras.Sequential([Scale()])
    model.fit(images, labels, epochs=1)

Before::

    import tensorflow as tf

    class Net(tf.keras.Model):
        @tf.function(reduce_retracing=True)
        def train_step(self, data):
            x, y = data
            with tf.GradientTape() as tape:
                loss = self.compute_loss(y=y, y_pred=self(x))
            self.optimizer.apply(tape.gradient(loss, self.trainable_variables), self.trainable_variables)
            return self.get_metrics_result()

After::

    import tensorflow as tf
    from npu_shim import backports

    class Net(tf.keras.Model):
        @tf.function(experimental_relax_shapes=True)
        def train_step(self, data):
            x, y = data
            with tf.GradientTape() as tape:
                loss = backports.compute_loss(self, y=y, y_pred=self(x))
            self.optimizer.apply_gradients(zip(tape.gradient(loss, self.trainable_variables), self.trainable_variables))
            return backports.get_metrics_result(self)

Before::

    import tensorflow as tf

    mixed = tf.data.Dataset.sample_from_datasets([tf.data.Dataset.range(8), tf.data.Dataset.range(4)])
    for row in mixed.rebatch(2):
        print(row.numpy())

After::

    import tensorflow as tf

    mixed = tf.data.experimental.sample_from_datasets([tf.data.Dataset.range(8), tf.data.Dataset.range(4)])
    for row in mixed.unbatch().batch(2):
        print(row.numpy())

Before::

    import tensorflow as tf

    parts = [tf.data.Dataset.range(8), tf.data.Dataset.range(4)]
    mixed = tf.data.Dataset.choose_from_datasets(parts, tf.data.Dataset.range(2).repeat(4))
    mixed.ragged_batch(2).map(double).save('rows', compression='GZIP')
    for row in tf.data.Dataset.load('rows', compression='GZIP'):
        print(row.numpy())

After::

    import tensorflow as tf

    parts = [tf.data.Dataset.range(8), tf.data.Dataset.range(4)]
    mixed = tf.data.experimental.choose_from_datasets(parts, tf.data.Dataset.range(2).repeat(4), stop_on_empty_dataset=True)
    tf.data.experimental.save(mixed.apply(tf.data.experimental.dense_to_ragged_batch(2)).map(double), 'rows', compression='GZIP')
    for row in tf.data.experimental.load('rows', compression='GZIP'):
        print(row.numpy())

Before::

    import tensorflow as tf
    import npu_shim.npu_device as npu

    npu.open().as_default()

    class Trainer:
        def __init__(self):
            self.net = tf.keras.Sequential([tf.keras.layers.Dense(1)])

        @tf.function
        def loss(self, x, y):
            return self.net.compute_loss(x, y)

After::

    import tensorflow as tf
    from npu_shim import backports
    import npu_shim.npu_device as npu

    npu.open().as_default()

    class Trainer:
        def __init__(self):
            self.net = tf.keras.Sequential([tf.keras.layers.Dense(1)])

        @tf.function
        def loss(self, x, y):
            return backports.compute_loss(self.net, x, y)

Untouched::

    import tensorflow as tf

    @tf.function
    def step(x):
        return model(x)

    dataset = tf.data.Dataset.range(4)
    dataset.save('rows', checkpoint_args={'step_counter': step})  # npu: ignore[NPU275]

Untouched::

    import tensorflow as tf

    @tf.function
    def step(x):
        return model(x)

    if hasattr(tf.keras.optimizers, 'AdamW'):
        optimizer = tf.keras.optimizers.AdamW(1e-3)

Untouched::

    import tensorflow as tf

    @tf.function
    def step(x):
        return model(x)

    optimizer = tf.keras.optimizers.legacy.Adam(1e-3, decay=0.1)  # npu: ignore[NPU275]

Untouched::

    import tensorflow as tf

    @tf.function
    def step(x):
        return tf.keras.ops.istft(x)  # npu: ignore[NPU275]

Untouched::

    import tensorflow as tf
    from tensorflow.python.keras.engine import input_spec
    from tensorflow.python.keras.engine.base_layer import Layer

    class Scale(Layer):
        @tf.function
        def call(self, x):
            return x * self.factor

    layer = Layer(name='inner')
    layer.input_spec = input_spec.InputSpec(ndim=3)

Untouched::

    import tensorflow as tf

    class Net(tf.keras.Model):
        def compute_loss(self, x, y):
            return tf.reduce_mean(x - y)

        def train_step(self, data):
            with tf.GradientTape() as tape:
                return {'loss': self.compute_loss(*data)}

Untouched::

    import tensorflow as tf

    @tf.function
    def step(x):
        return model(x)

    choose = tf.data.Dataset.choose_from_datasets  # npu: ignore[NPU275]

Untouched::

    import tensorflow as tf

    def optimizer():
        return tf.keras.optimizers.AdamW(1e-3)
"""

from __future__ import annotations

from typing import Iterator

from ...rewrite.later_conversions import conversions_for_26
from ..base import Change, Context, Message

CODE = "NPU124"


def check_file(context: Context) -> Iterator[Change]:
    for node, name, edits, uses, _ in conversions_for_26(context).all:
        yield Change(node, Message("{0} written for TensorFlow 2.6", name), edits, uses)
