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

import ast
from typing import Iterator

from ...analysis.device_placement import host_functions, in_map_function, in_test
from ...analysis.tensorflow_version import is_two, may_be_two
from ...semantics.model import Call, Where
from ...semantics.tf_types import Type
from ...semantics.value_flow import origins
from ...syntax.expressions import last_part
from ...syntax.words import has_words
from ..base import Context, Finding, Result

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
_SEQUENTIAL = frozenset({"tensorflow.keras.Sequential"})


def check_file(context: Context) -> Iterator[Result]:
    names = context.names
    if not has_words(context.source.text, (".map(",)) or not may_be_two(context):
        return
    if not any(name in _MAKERS for name in context.called.values()):
        return
    reported: set[ast.AST] = set()
    for node, name in context.called.items():
        if name in _MADE_INSIDE and in_map_function(context, node) and not in_test(context, node) and is_two(context):
            yield Finding(
                node,
                "dataset.map creates this {0}, and its variables are on the NPU. "
                "Create it before, under with tf.device('/CPU:0'):",
                last_part(name),
            )
    host = names.once(host_functions)
    reads: list[tuple[ast.Name | ast.Attribute, Where]] = list(names.reads)
    reads += [(part, call.where) for call in names.calls for part in _owners(call.node)] if host else []
    mapped = {call.node.args[0] for call in names.calls if _maps_layer(context, call)}
    for read, where in reads:
        if (
            not isinstance(read.ctx, ast.Load)
            or read not in mapped
            and not any(p in host for p in names.ancestors(read))
        ):
            continue
        for maker in _makers(context, read, where):
            if maker in reported or in_test(context, maker) or not is_two(context):
                continue
            reported.add(maker)
            name = last_part(context.called[maker]).replace("from_seed", "Generator")
            yield Finding(
                maker,
                "dataset.map uses this {0} on the host, and its variables are on the NPU. "
                "Create it under with tf.device('/CPU:0'):",
                name,
            )


def _maps_layer(context: Context, call: Call) -> bool:
    """Return True for ``dataset.map(layer)``."""
    function = call.node.func
    return (
        isinstance(function, ast.Attribute)
        and function.attr == "map"
        and bool(call.node.args)
        and context.types.of(function.value, call.where) == Type.DATASET
    )


def _owners(call: ast.Call) -> Iterator[ast.Attribute]:
    """Yield the attributes of objects that a call calls or has a method of: ``self.flip(x)``, ``self.count.assign_add(1)``."""
    node: ast.expr = call.func
    while isinstance(node, ast.Attribute):
        yield node
        node = node.value


def _makers(context: Context, read: ast.Name | ast.Attribute, where: Where) -> Iterator[ast.Call]:
    """Yield the calls that make the variable or layer that a name has, except those on the CPU."""
    for origin in origins(read, where, context.names):
        node = origin.node
        if not isinstance(node, ast.Call) or origin.names is not context.names:
            continue
        name = origin.resolve()
        if name in _SEQUENTIAL:
            inner = [n for n in ast.walk(node) if isinstance(n, ast.Call) and context.called.get(n) in _MAKERS]
            node = inner[0] if inner else node
        if context.called.get(node) in _MAKERS and not _is_on_cpu(context, node):
            if not any(p in context.names.once(host_functions) for p in context.names.ancestors(node)):
                yield node


def _is_on_cpu(context: Context, node: ast.AST) -> bool:
    """Return True if a call is in a context of the CPU, or if all objects are made there whose class has the call."""
    for parent in context.names.ancestors(node):
        if isinstance(parent, ast.With) and any(
            "cpu" in context.source.segment(item.context_expr).lower() for item in parent.items
        ):
            return True
        if isinstance(parent, ast.ClassDef):
            definitions = [context.names.definition(call.node.func, call.where) for call in context.names.calls]
            calls = [
                c.node
                for c, definition in zip(context.names.calls, definitions)
                if definition is not None and definition.node is parent
            ]
            return bool(calls) and all(
                _is_on_cpu(context, call) for call in calls if parent not in context.names.ancestors(call)
            )
    return False
