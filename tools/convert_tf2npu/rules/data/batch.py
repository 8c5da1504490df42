"""Give training batches a static size.

The NPU compiles a graph for each new shape, so the last partial batch of a dataset costs one recompilation, unless
the batch size divides the number of examples. ``drop_remainder=True`` drops this batch and makes the batch dimension
static.

The rule adds it to datasets that feed training. It follows the dataset to the code that reads it, in all files of the
project. Otherwise it looks at the conditions around the call, at names, and at the calls of its function. A name never
counts against a read: a dataset called ``train`` that ``predict`` reads too keeps all rows. The rule also adds it if no
example is lost, because the dataset repeats forever before it is batched, the batch size divides its rows or a batch is
one example.

The rule reports all other datasets with a dynamic last batch:

* Training and something else by one dataset: ``model.fit(npu_shim.data.enforce_static_batch(train))`` drops the last
  partial batch in training only.
* Fewer rows than one batch: there would be no batch.
* No ``shuffle`` before ``batch``, or ``cache`` between it and training: the same rows would be dropped in each epoch.
  The rule reports it if the script shows the number of rows. ``npu-shim run`` reports it otherwise.
* Evaluation: every example counts, so pad the last batch with ``npu_shim.data.pad_last_batch`` and weight loss and
  metrics by its mask.
* Prediction: ``NPUEstimator`` pads the last batch itself. In other programs, pad it and keep only the rows of the
  mask.
* Training and evaluation in one function: pass ``drop_remainder`` an expression that is true in training.
* An iterator has its shapes (``from_structure``, ``from_string_handle``) and reads other datasets, too: where those
  have a partial batch, ``tf.shape`` would still give the static size.
* Buckets of ``group_by_window``: each bucket ends with a partial batch. ``drop_remainder=True`` drops all examples if
  a window never holds a full batch. ``npu_shim.data.bucket_by_length(dataset, length_of, [LENGTHS], batch_size)``
  avoids this.

With facts of ``npu-shim observe``, datasets on which Keras or ``for`` loops trained get
``npu_shim.data.drop_in_training``, which drops partial batches in training only, also in later runs that evaluate with
them, unless a run had no full batch, or would drop the same rows in each epoch, or a loop's script asks for the length
of the dataset, compares the number of a batch with a computed one, or takes it for an index. The rule says nothing of
datasets that fed only evaluation and prediction, whose last batch costs one compilation and no example, nor of those
that nothing reads, nor of those that only Estimators trained on, because NPUEstimator drops partial batches in training
only, nor of those whose examples repeated forever in all training: no batch of training was partial. A dataset that
only trained, and with which the source initializes an iterator that reads others, too, gets
``make_initializer(npu_shim.data.enforce_static_batch(dataset))``: the iterator keeps its shapes. Of other datasets that
sessions and calls of ``next()`` only trained on, the finding says so: a later run may evaluate with them, and would
lose examples without an error.

Keras' ``fit`` begins a dataset anew in each epoch if it has as many batches as ``steps_per_epoch``. With one batch less,
training would end in the first epoch. So a dataset of such a ``fit`` gets ``npu_shim.data.drop_in_training`` instead of
``drop_remainder=True``, unless it repeats forever. It keeps the passes.

These datasets are not changed and not reported: a ``drop_remainder`` that the script computes, batches that the
script unbatches again, batches for ``adapt`` of a preprocessing layer or for a vocabulary, batches that are only
saved, batches that a loop only prints or draws, unit tests, functions that write records, functions that tf.data
calls, and files that read data for JAX or PyTorch and train nothing with TensorFlow.

Before::

    import tensorflow as tf

    def train_input_fn():
        dataset = tf.data.Dataset.from_tensor_slices((images, labels))
        dataset = dataset.shuffle(1000)
        dataset = dataset.batch(FLAGS.batch_size)
        return dataset.prefetch(1)

After::

    import tensorflow as tf

    def train_input_fn():
        dataset = tf.data.Dataset.from_tensor_slices((images, labels))
        dataset = dataset.shuffle(1000)
        dataset = dataset.batch(FLAGS.batch_size, drop_remainder=True)
        return dataset.prefetch(1)

Before::

    from tensorflow.data import TFRecordDataset

    def make(files):
        return TFRecordDataset(files).repeat().padded_batch(32, shapes)

After::

    from tensorflow.data import TFRecordDataset

    def make(files):
        return TFRecordDataset(files).repeat().padded_batch(32, shapes, drop_remainder=True)

Before::

    import tensorflow as tf

    def read(files, is_training):
        return tf.data.TFRecordDataset(files).map(parse).batch(64)

    estimator.train(lambda: read(FLAGS.files, is_training=True))

After::

    import tensorflow as tf

    def read(files, is_training):
        return tf.data.TFRecordDataset(files).map(parse).batch(64, drop_remainder=True)

    estimator.train(lambda: read(FLAGS.files, is_training=True))

Before::

    import tensorflow as tf
    import tensorflow_datasets as tfds

    (train, test), info = tfds.load('mnist', split=['train', 'test'], with_info=True)
    both = tfds.load('cats_vs_dogs')
    train = train.map(scale).batch(32)
    model.fit(train.concatenate(both['train'].shuffle(100)).batch(8))

After::

    import tensorflow as tf
    import tensorflow_datasets as tfds

    (train, test), info = tfds.load('mnist', split=['train', 'test'], with_info=True)
    both = tfds.load('cats_vs_dogs')
    train = train.map(scale).batch(32, drop_remainder=True)
    model.fit(train.concatenate(both['train'].shuffle(100)).batch(8, drop_remainder=True))

Before::

    import numpy as np
    import tensorflow as tf

    x = np.zeros((80, 3))
    data = tf.data.Dataset.from_tensor_slices(x).batch(8)
    model.fit(data)
    model.predict(data)

After::

    import numpy as np
    import tensorflow as tf

    x = np.zeros((80, 3))
    data = tf.data.Dataset.from_tensor_slices(x).batch(8, drop_remainder=True)
    model.fit(data)
    model.predict(data)

Reported::

    import tensorflow as tf

    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    train = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(100).batch(8)
    model.fit(train)
    model.predict(train)

Reported::

    import numpy as np
    import tensorflow as tf

    x = np.zeros((20, 3))
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.fit(tf.data.Dataset.from_tensor_slices(x).batch(1024))

Reported::

    import numpy as np
    import tensorflow as tf

    x = np.zeros((20, 3))
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.fit(tf.data.Dataset.from_tensor_slices(x).batch(8), epochs=3)

Reported::

    import tensorflow as tf

    def eval_input_fn():
        return tf.data.Dataset.from_tensor_slices(images).batch(100)

Reported::

    import tensorflow as tf

    def read(files, is_training):
        dataset = tf.data.TFRecordDataset(files)
        if is_training:
            dataset = dataset.shuffle(1000)
        return dataset.batch(64)

    estimator.train(lambda: read(FLAGS.train_files, True))
    estimator.evaluate(lambda: read(FLAGS.eval_files, False))

Reported::

    import tensorflow as tf

    train = tf.data.Dataset.from_tensor_slices(images).repeat().batch(32)
    iterator = tf.data.Iterator.from_structure(train.output_types, train.output_shapes)
    train_init = iterator.make_initializer(train)
    test_init = iterator.make_initializer(tf.data.Dataset.from_tensor_slices(held_out).batch(32, drop_remainder=False))

Reported::

    import tensorflow as tf

    def train_input_fn():
        return tf.data.Dataset.range(10).batch(4, drop_remainder=False)

Reported::

    import tensorflow as tf

    def read(files):
        return tf.data.TextLineDataset(files).batch(64)

Untouched::

    import jax
    import tensorflow as tf

    def train_batches(files):
        return tf.data.TFRecordDataset(files).shuffle(1000).batch(64).as_numpy_iterator()

Untouched::

    import tensorflow as tf

    train_texts = tf.data.Dataset.from_tensor_slices(train_samples).batch(128)
    vectorizer = tf.keras.layers.TextVectorization(max_tokens=1000)
    vectorizer.adapt(train_texts)
    vectorizer.adapt(train_ds.map(lambda x, y: x).batch(256))
    for images, labels in train_ds.batch(4):
        fig, axes = plt.subplots(1, 4)
        axes[0].imshow(images[0].numpy())
        plt.show()

Untouched::

    import tensorflow as tf

    class Trainer:
        def train(self, loader):
            for images in loader.batch(5):
                self.step(images)

        def steps(self, data):
            return [self.batch(it) for it in data]

Untouched::

    import tensorflow as tf

    def train_input_fn(flag):
        return tf.data.Dataset.range(10).batch(3, drop_remainder=flag)

Untouched::

    import tensorflow as tf

    def train_input_fn():
        return tf.data.Dataset.range(10).batch(4, True)

Untouched::

    import tensorflow as tf

    def train_input_fn(files):
        dataset = tf.data.TFRecordDataset(files).batch(1000).map(parse_many)
        dataset = dataset.apply(tf.contrib.data.unbatch())
        return dataset.shuffle(5000).batch(64, drop_remainder=True)
"""

from __future__ import annotations

import ast
from typing import Iterator

from ...semantics.model import Call
from ...semantics.signatures import bind_arguments
from ...semantics.tf_types import Type
from ..base import Change, Context, Finding
from .last_batch import StaticBatch, check_last_batch

CODE = "NPU109"
DELIBERATE = "leaves out the partial training batches"
_SIGNATURES = {
    "batch": ("batch_size", "drop_remainder", "num_parallel_calls", "deterministic", "name"),
    "padded_batch": ("batch_size", "padded_shapes", "padding_values", "drop_remainder", "name"),
}
METHODS = frozenset(_SIGNATURES)


def check_method(context: Context, call: Call, method: ast.Attribute) -> Iterator[Change | Finding]:
    node = call.node
    if context.types.type_of(method.value, call.where) == Type.DATASET:
        yield from check_last_batch(
            context, CODE, call, bind_arguments(node, _SIGNATURES[method.attr]), StaticBatch(), method.value
        )
