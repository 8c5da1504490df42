"""Ragged and string tensors in the model.

The NPU has no strings, and a ragged tensor has another shape in each step. Turn both into padded numbers in the input
pipeline: ``tensor.to_tensor(shape=[None, LENGTH])`` for ragged tensors; look up strings in the function that
``dataset.map`` calls. The rule also reports layers that look up strings in a ``Sequential`` or a subclass of ``Model``.

Reported::

    import tensorflow as tf

    text = tf.keras.Input(shape=(1,), dtype=tf.string)
    model = tf.keras.Model(text, layers(text))

    @tf.function
    def step(x):
        return model(x)

Reported::

    import tensorflow as tf

    @tf.function
    def step(values, lengths):
        rows = tf.RaggedTensor.from_row_lengths(values, lengths)
        return tf.reduce_sum(rows, axis=1)

Reported::

    import tensorflow as tf

    class Users(tf.keras.Model):
        def __init__(self, names):
            super().__init__()
            self.lookup = tf.keras.layers.StringLookup(vocabulary=names)
            self.embedding = tf.keras.Sequential([tf.keras.layers.TextVectorization(), tf.keras.layers.Embedding(9, 2)])

        def call(self, names):
            return self.embedding(self.lookup(names))

    @tf.function
    def step(x):
        return model(x)

Untouched::

    import tensorflow as tf

    lookup = tf.keras.layers.StringLookup(vocabulary=names)
    tokens = tf.keras.Sequential([tf.keras.layers.TextVectorization(), tf.keras.layers.Lambda(pad)])
    ids = tf.data.Dataset.from_tensor_slices(words).map(lambda word: (lookup(word), tokens(word)))

    @tf.function
    def step(x):
        return model(x)

Untouched::

    import tensorflow as tf

    words = tf.data.Dataset.from_tensor_slices(tf.ragged.constant([[1], [2, 3]]))
    words = words.map(lambda row: row.to_tensor(shape=[4]))

    @tf.function
    def step(x):
        return model(x)

Untouched::

    import tensorflow as tf

    ids = tf.keras.Input(shape=(128,), dtype=tf.int32)

    @tf.function
    def step(x):
        return model(x)
"""

from __future__ import annotations

import ast
from typing import Iterator

from ...analysis.device_placement import is_in_test, runs_on_npu
from ...analysis.tensorflow_version import is_tf2_program
from ...analysis.tf_functions import is_traced
from ...semantics.model import Call
from ...semantics.tf_types import Type
from ...syntax.expressions import boxed_constant
from ..base import Context, Finding

CODE = "NPU274"
_INPUTS = frozenset({"tensorflow.keras.Input", "tensorflow.keras.layers.Input", "tensorflow.keras.layers.InputLayer"})
_FROM = """from_nested_row_lengths from_nested_row_splits from_nested_value_rowids from_row_lengths from_row_limits
from_row_splits from_row_starts from_sparse from_tensor from_uniform_row_length from_value_rowids"""
_RAGGED = frozenset(
    ["tensorflow.RaggedTensor." + name for name in _FROM.split()]
    + ["tensorflow.ragged." + name for name in "constant range stack stack_dynamic_partitions".split()]
)
_LOOKUPS = frozenset(
    f"tensorflow.keras.layers.{home}{name}"
    for home in ("", "experimental.preprocessing.")
    for name in ("StringLookup", "TextVectorization")
)
_SEQUENTIAL = frozenset({"tensorflow.keras.Sequential", "tensorflow.keras.models.Sequential"})
CALLS = _INPUTS | _RAGGED | _LOOKUPS


def check_call(context: Context, call: Call, name: str) -> Iterator[Finding]:
    if name in _INPUTS and _is_for_pipeline(context, call):
        return
    if is_in_test(context, call.node) or not runs_on_npu(context, call.node) or not is_tf2_program(context):
        return
    if name in _RAGGED:
        if is_traced(context.names, call.node):
            yield Finding(
                call.node, "a ragged tensor in the step: the NPU recompiles for each shape. Pad it in dataset.map"
            )
        return
    if name in _LOOKUPS:
        if _is_in_model(context, call):
            yield Finding(
                call.node, "the NPU has no strings. Call this layer in dataset.map and pass the model padded numbers"
            )
        return
    for keyword in call.node.keywords:
        if keyword.arg == "ragged" and boxed_constant(keyword.value) == (True,):
            yield Finding(call.node, "a ragged input: the NPU recompiles for each shape. Pad it in dataset.map")
        elif keyword.arg == "dtype" and _is_string(context, call, keyword.value):
            yield Finding(
                call.node, "the NPU has no strings. Look up this input in dataset.map and pass padded numbers"
            )


def _is_in_model(context: Context, call: Call) -> bool:
    """Return True if a layer is one of several of a Sequential, or an attribute of a model."""
    parent = context.names.parents[call.node]
    if isinstance(parent, ast.List):
        model = context.names.parents[parent]
        is_model = isinstance(model, ast.Call) and context.called_names.get(model) in _SEQUENTIAL
        return len(parent.elts) > 1 and is_model and not _is_on_host(context, model)
    target = parent.targets[0] if isinstance(parent, ast.Assign) else None
    return isinstance(target, ast.Attribute) and context.types.type_of(target.value, call.where) == Type.MODEL


def _is_on_host(context: Context, model: ast.AST) -> bool:
    """Return True if all that reads a model runs in the input pipeline."""
    assignment = context.names.parents.get(model)
    target = assignment.targets[0] if isinstance(assignment, ast.Assign) else None
    reads = [read for read, _ in context.names.reads if isinstance(target, ast.Name) and read.id == target.id]
    return bool(reads) and not any(runs_on_npu(context, read) for read in reads)


def _is_for_pipeline(context: Context, call: Call) -> bool:
    """Return True if the model of an input runs in the input pipeline: a model that preprocesses."""
    statement = context.names.parents.get(call.node)
    target = getattr((getattr(statement, "targets", None) or [None])[0], "id", None)
    return target is not None and target in context.once(_names_of_pipeline_models)


def _names_of_pipeline_models(context: Context) -> frozenset[str]:
    """Return the names from which a file makes models that run in the input pipeline."""
    models: dict[str, list[ast.Call]] = {}
    for call in context.names.calls:
        assignment = context.names.parents.get(call.node)
        if context.called_names.get(call.node) == "tensorflow.keras.Model" and isinstance(assignment, ast.Assign):
            models.setdefault(getattr(assignment.targets[0], "id", ""), []).append(call.node)
    on_host = {read.id for read, _ in context.names.reads if read.id in models and not runs_on_npu(context, read)}
    made_from = [node for model in on_host for call in models[model] for node in ast.walk(call)]
    return frozenset(node.id for node in made_from if isinstance(node, ast.Name))


def _is_string(context: Context, call: Call, node: ast.expr) -> bool:
    return boxed_constant(node) == ("string",) or context.resolve(node, call.where) in (
        "tensorflow.string",
        "tensorflow.dtypes.string",
    )
