"""Variables in the input pipeline.

A function that ``dataset.map`` calls runs on the host, in its own graph. A variable created in it is never
initialized on the NPU, and the run fails with an error about an uninitialized variable. ``tf.keras.backend.zeros``
and similar functions create variables too. Use a constant.

In TensorFlow 1, the session also initializes variables on the NPU that such a function only reads, or that are the size
of batches or of a buffer: ``Error while reading resource variable``, ``Resource ... does not exist``. Use a constant or a
value of Python, or a placeholder for what changes. In TensorFlow 2 these are NPU278.
Generators and functions of ``tf.py_func`` are Python and may run the session; shapes and types are known without it.

Reported::

    import tensorflow as tf

    def parse(record):
        mean = tf.Variable([0.5, 0.4, 0.3])
        return record - mean

    dataset = tf.data.TFRecordDataset(files).map(parse)

Reported::

    import tensorflow as tf
    from tensorflow.keras import backend as K

    dataset = tf.data.Dataset.range(8).map(lambda i: K.zeros([3]))

Reported::

    import tensorflow as tf

    batch_size = tf.Variable(tf.placeholder(tf.int64, []), trainable=False, collections=[])
    dataset = tf.data.TFRecordDataset(files).batch(batch_size, drop_remainder=True)
    iterator = dataset.make_initializable_iterator()

Reported::

    import tensorflow as tf

    class Images:
        def __init__(self):
            self.mean = tf.get_variable('mean', [3])

        def normalize(self, image):
            return image - self.mean

        def read(self, files):
            return tf.data.TFRecordDataset(files).map(self.normalize).make_one_shot_iterator()

Reported::

    import tensorflow as tf

    step = tf.train.get_or_create_global_step()
    dataset = tf.data.Dataset.from_generator(steps, tf.int64).map(lambda i: i + tf.cast(step, tf.int64))
    iterator = dataset.make_initializable_iterator()

Untouched::

    import tensorflow as tf

    def parse(record):
        mean = tf.constant([0.5, 0.4, 0.3])
        return record - mean

    dataset = tf.data.TFRecordDataset(files).map(parse)
    weight = tf.Variable(0.5)

Untouched::

    import tensorflow as tf

    x = tf.Variable(0.5)
    dataset = tf.data.TFRecordDataset(files).map(lambda x: x / 255).batch(8, drop_remainder=True)
    iterator = dataset.make_initializable_iterator()

Untouched::

    import tensorflow as tf

    step = tf.train.get_or_create_global_step()

    def current():
        return sess.run(step)

    def steps():
        yield current()

    dataset = tf.data.Dataset.from_generator(steps, tf.int64)

Untouched::

    import tensorflow as tf

    mean = tf.Variable([0.5])

    def normalize(image):
        return image - sess.run(mean)

    dataset = tf.data.TFRecordDataset(files).map(lambda image: tf.py_func(lambda i: normalize(i), [image], tf.float32))
    iterator = dataset.make_initializable_iterator()

Untouched::

    import tensorflow as tf

    weight = tf.get_variable('weight', [3, 4])
    dataset = tf.data.TFRecordDataset(files).map(lambda i: tf.reshape(i, [weight.shape[0], weight.get_shape()[1]]))
    iterator = dataset.make_initializable_iterator()

Untouched::

    import tensorflow as tf

    weights = pool.map(lambda i: tf.Variable(i))
"""

from __future__ import annotations

from typing import Iterator

from ...analysis.device_placement import is_in_test
from ...analysis.pipeline_variables import is_in_pipeline_graph, pipeline_reads
from ...analysis.tensorflow_version import is_tf2_program
from ...semantics.model import Call
from ...syntax.expressions import last_part
from ...syntax.words import has_words
from ..base import Context, Finding

CODE = "NPU224"
_REPLACEMENTS = {
    "tensorflow.Variable": "tf.constant",
    "tensorflow.get_variable": "tf.constant",
    "tensorflow.keras.backend.variable": "tf.constant",
    "tensorflow.keras.backend.zeros": "tf.zeros",
    "tensorflow.keras.backend.ones": "tf.ones",
    "tensorflow.keras.backend.eye": "tf.eye",
    "tensorflow.keras.backend.random_uniform_variable": "tf.random.uniform",
    "tensorflow.keras.backend.random_normal_variable": "tf.random.normal",
}
CALLS = frozenset(_REPLACEMENTS)
_GLOBAL_STEP = tuple(f"tensorflow.train.{name}_global_step" for name in ("create", "get", "get_or_create"))
_MAKERS = CALLS.union(_GLOBAL_STEP)


def check_call(context: Context, call: Call, name: str) -> Iterator[Finding]:
    if is_in_pipeline_graph(context, call.node):
        yield Finding(
            call.node,
            "{0} creates a variable in the input pipeline, which the NPU never initializes. Use {1}",
            last_part(name),
            _REPLACEMENTS[name],
        )


def check_file(context: Context) -> Iterator[Finding]:
    is_near = not _MAKERS.isdisjoint(context.called_names.values()) or has_words(
        context.source.text, (".map(", ".batch(")
    )
    if is_near:
        for read in pipeline_reads(context, _MAKERS):
            if not is_in_test(context, read.node) and not is_tf2_program(context):
                yield Finding(
                    read.node,
                    "the input pipeline reads this variable on the host, and the NPU initializes it. "
                    "Use a constant, a value of Python or a placeholder",
                )
