"""Variables and layers of the input pipeline on the NPU.

Once the NPU is the default device, variables are created there, and the input pipeline runs on the host, where it cannot
read them. Layers that augment or normalize have variables, too. Create what ``dataset.map`` uses under
``with tf.device('/CPU:0'):``.

The rule also reports a layer with variables that the function of ``dataset.map`` itself creates. Create it before.

Reported::

    import tensorflow as tf

    def augment(image):
        return tf.keras.layers.RandomFlip()(image)

    dataset = tf.data.Dataset.from_tensor_slices(images).map(augment)

    @tf.function
    def step(x):
        return model(x)

Reported::

    import tensorflow as tf

    flip = tf.keras.layers.RandomFlip()
    dataset = tf.data.Dataset.from_tensor_slices(images).map(lambda image: flip(image))

    @tf.function
    def step(x):
        return model(x)

Reported::

    import tensorflow as tf

    embed = tf.keras.Sequential([tf.keras.layers.StringLookup(vocabulary=words), tf.keras.layers.Embedding(9, 4)])
    dataset = tf.data.Dataset.from_tensor_slices(texts).batch(8).map(embed)

    @tf.function
    def step(x):
        return model(x)

Reported::

    import tensorflow as tf

    seen = tf.Variable(0)

    def count(image):
        seen.assign_add(1)
        return image

    dataset = tf.data.Dataset.from_tensor_slices(images).map(count)

    @tf.function
    def step(x):
        return model(x)

Reported::

    import tensorflow as tf

    class Augment(tf.keras.layers.Layer):
        def __init__(self):
            super().__init__()
            self.flip = tf.keras.layers.RandomFlip()

        def call(self, image):
            return self.flip(image)

    dataset = tf.data.Dataset.from_tensor_slices(images).map(Augment())

    @tf.function
    def step(x):
        return model(x)

Reported::

    import tensorflow as tf

    size = tf.Variable(32, dtype=tf.int64)
    dataset = tf.data.Dataset.from_tensor_slices(images).batch(size)

    @tf.function
    def step(x):
        return model(x)

Untouched::

    import tensorflow as tf

    with tf.device('/CPU:0'):
        flip = tf.keras.layers.RandomFlip()
    dataset = tf.data.Dataset.from_tensor_slices(images).map(lambda image: flip(image))

    @tf.function
    def step(x):
        return model(x)

Untouched::

    import tensorflow as tf

    class Augment(tf.keras.layers.Layer):
        def __init__(self):
            super().__init__()
            self.flip = tf.keras.layers.RandomFlip()

        def call(self, image):
            return self.flip(image)

    with tf.device('/CPU:0'):
        augment = Augment()
    dataset = tf.data.Dataset.from_tensor_slices(images).map(augment)

    @tf.function
    def step(x):
        return model(x)

Untouched::

    import tensorflow as tf

    def make_flip():
        return tf.keras.layers.RandomFlip()

    with tf.device('/CPU:0'):
        flip = make_flip()
    dataset = tf.data.Dataset.from_tensor_slices(images).map(lambda image: flip(image))

    @tf.function
    def step(x):
        return model(x)

Untouched::

    import tensorflow as tf

    rescale = tf.keras.layers.Rescaling(1 / 255)
    dataset = tf.data.Dataset.from_tensor_slices(images).map(lambda image: rescale(image))

    @tf.function
    def step(x):
        return model(x)

Untouched::

    import tensorflow as tf

    total = tf.Variable(0)
    dataset = tf.data.Dataset.from_tensor_slices(images).map(lambda image: image / 255)

    @tf.function
    def step(x):
        total.assign_add(1)
        return model(x)
"""

from __future__ import annotations

from typing import Iterator

from ...analysis.device_placement import is_in_test
from ...analysis.pipeline_variables import is_in_pipeline_graph, pipeline_reads
from ...analysis.tensorflow_version import is_tf2_program, may_be_tf2
from ...syntax.expressions import last_part
from ...syntax.words import has_words
from ..base import Context, Finding

CODE = "NPU278"
_LAYERS = """BatchNormalization Conv1D Conv2D Conv3D Dense Embedding GRU LSTM LayerNormalization Normalization
RandomBrightness RandomContrast RandomCrop RandomFlip RandomHeight RandomRotation RandomTranslation RandomWidth
RandomZoom"""
_MADE_INSIDE = frozenset(
    f"tensorflow.keras.layers.{home}{name}" for home in ("", "experimental.preprocessing.") for name in _LAYERS.split()
)
_MAKERS = _MADE_INSIDE.union(
    ["tensorflow.Variable"],  # in a function of dataset.map: NPU224
    [f"tensorflow.random.{home}Generator.from_seed" for home in ("", "experimental.")],
)


def check_file(context: Context) -> Iterator[Finding]:
    if not may_be_tf2(context):
        return
    if has_words(context.source.text, (".map(",)):
        for node, name in context.called_names.items():
            if (
                name in _MADE_INSIDE
                and is_in_pipeline_graph(context, node)
                and not is_in_test(context, node)
                and is_tf2_program(context)
            ):
                yield Finding(
                    node,
                    "dataset.map creates this {0}, and its variables are on the NPU. "
                    "Create it before, under with tf.device('/CPU:0'):",
                    last_part(name),
                )
    is_near = not _MAKERS.isdisjoint(context.called_names.values()) or has_words(context.source.text, (".map(",))
    for read in pipeline_reads(context, _MAKERS) if is_near else ():
        if not is_in_test(context, read.node) and is_tf2_program(context):
            yield Finding(
                read.node,
                "the input pipeline uses this {0} on the host, and its variables are on the NPU. "
                "Create it under with tf.device('/CPU:0'):",
                last_part(read.name).replace("from_seed", "Generator"),
            )
