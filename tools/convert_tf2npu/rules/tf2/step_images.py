"""Images decoded or augmented in the training step.

Decoding and encoding of images run on the host only, and random augmentation of images is the work of the input
pipeline: there it runs on the host while the NPU trains. Move these calls into the function that ``dataset.map`` calls.
The rule reports one finding for each function, also for one that a training step calls.

Reported::

    import tensorflow as tf

    @tf.function
    def step(files):
        images = tf.map_fn(lambda file: tf.io.decode_jpeg(tf.io.read_file(file)), files, tf.uint8)
        return model(images)

Reported::

    import tensorflow as tf

    @tf.function
    def step(images, labels):
        images = tf.image.random_flip_left_right(images)
        with tf.GradientTape() as tape:
            loss = loss_of(labels, model(images))
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))

Reported::

    import tensorflow as tf

    def augment(images):
        return tf.image.random_flip_left_right(images)

    def train(dataset):
        for images, labels in dataset:
            with tf.GradientTape() as tape:
                loss = loss_of(labels, model(augment(images)))
            optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))

Untouched::

    import tensorflow as tf

    @tf.function
    def parse(file):
        return tf.image.random_flip_left_right(tf.io.decode_jpeg(tf.io.read_file(file)))

    dataset = tf.data.Dataset.from_tensor_slices(files).map(parse)

Untouched::

    import tensorflow as tf

    @tf.function
    def step(images):
        return model(tf.image.resize(images, [224, 224]))

Untouched::

    import tensorflow as tf

    def augment(images):
        return tf.image.random_flip_left_right(images)

    def train(dataset, images):
        more = augment(images)
        for images, labels in dataset:
            with tf.GradientTape() as tape:
                loss = loss_of(labels, model(images))
            optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
"""

from __future__ import annotations

import ast
from typing import Iterator

from ...analysis.device_placement import is_in_map_function, is_in_test, runs_on_npu
from ...analysis.tensorflow_version import is_tf2_program
from ...analysis.tf_functions import enclosing_functions, is_traced
from ...analysis.training_steps import is_in_training_step
from ...syntax.expressions import last_part
from ..base import Context, Finding

CODE = "NPU280"
_HOST = frozenset(
    f"tensorflow.{home}.{name}"
    for home in ("image", "io")
    for name in """adjust_jpeg_quality decode_and_crop_jpeg decode_bmp decode_gif decode_image decode_jpeg decode_png
encode_jpeg encode_png extract_jpeg_shape is_jpeg random_jpeg_quality read_file""".split()
)
_RANDOM = frozenset(
    "tensorflow.image." + name
    for name in """random_brightness random_contrast random_crop random_flip_left_right random_flip_up_down random_hue
random_saturation sample_distorted_bounding_box""".split()
)


def check_file(context: Context) -> Iterator[Finding]:
    if ".image." not in context.source.text and ".io." not in context.source.text:
        return
    names = context.names
    reported: set[ast.AST] = set()
    called = context.called_names
    for call in names.calls:
        name = called.get(call.node, "")
        if name not in _HOST and name not in _RANDOM:
            continue
        around = enclosing_functions(names, call.node)
        if not around or around[-1] in reported or not _is_in_step(context, call.node, name):
            continue
        if is_in_test(context, call.node) or not is_tf2_program(context):
            continue
        reported.add(around[-1])
        where = "runs on the host only" if name in _HOST else "is work for the host"
        yield Finding(call.node, "{0} {1}. Move it from the step into dataset.map", last_part(name), where)


def _is_in_step(context: Context, node: ast.AST, name: str) -> bool:
    """Return True if a tf.function decodes or encodes an image, or if a training step augments one."""
    if name in _HOST:
        return is_traced(context.names, node) and runs_on_npu(context, node)
    return is_in_training_step(context.names, node) and not is_in_map_function(context, node)
