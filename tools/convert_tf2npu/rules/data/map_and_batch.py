"""Give training batches of functions other than batch a static size.

The rule adds ``drop_remainder=True`` as NPU109 does, for the functions that read, parse and batch in one call. See
NPU109 for the datasets that it reports. ``make_csv_dataset`` and ``make_batched_features_dataset`` without
``num_epochs`` need no change, because TensorFlow makes their batches static itself.

The datasets of Keras' ``image_dataset_from_directory`` and its like have no such argument. The rule reports them.

The last batch of buckets can be padded only if all buckets have the same batch size N.

Before::

    import tensorflow as tf

    def train_input_fn(files):
        dataset = tf.data.TFRecordDataset(files)
        return dataset.apply(tf.contrib.data.map_and_batch(parse, batch_size=32, num_parallel_batches=2))

After::

    import tensorflow as tf

    def train_input_fn(files):
        dataset = tf.data.TFRecordDataset(files)
        return dataset.apply(tf.contrib.data.map_and_batch(parse, batch_size=32, num_parallel_batches=2, drop_remainder=True))

Before::

    from tensorflow.python.data.experimental.ops import batching

    def train_input_fn(dataset):
        return dataset.repeat().apply(batching.map_and_batch(parse, 32))

After::

    from tensorflow.python.data.experimental.ops import batching

    def train_input_fn(dataset):
        return dataset.repeat().apply(batching.map_and_batch(parse, 32, drop_remainder=True))

Before::

    import tensorflow as tf

    train_set = tf.data.experimental.make_batched_features_dataset('train*', 32, spec, num_epochs=10)

After::

    import tensorflow as tf

    train_set = tf.data.experimental.make_batched_features_dataset('train*', 32, spec, num_epochs=10, drop_final_batch=True)

Reported::

    import tensorflow as tf

    train_ds = tf.keras.utils.image_dataset_from_directory('images/train', batch_size=32)

Reported::

    import tensorflow as tf

    def eval_input_fn(dataset):
        return dataset.apply(tf.data.experimental.map_and_batch(parse, 32))

Reported::

    import tensorflow as tf

    train_set = tf.data.experimental.make_csv_dataset('train.csv', 32, num_epochs=10)

Reported::

    import tensorflow as tf

    def train_input_fn(dataset):
        return dataset.apply(tf.contrib.data.bucket_by_sequence_length(length, boundaries, sizes))

Untouched::

    import tensorflow as tf

    train_ds = tf.keras.utils.image_dataset_from_directory('images/train', batch_size=None)

Untouched::

    import tensorflow as tf

    def train_input_fn(dataset):
        return dataset.apply(tf.data.experimental.map_and_batch(parse, 32, drop_remainder=flag))

Untouched::

    import tensorflow as tf

    def train_input_fn(dataset):
        return dataset.apply(tf.contrib.data.map_and_batch(parse, 32, None, True))

Untouched::

    import tensorflow as tf

    def train_input_fn(dataset):
        return dataset.apply(tf.contrib.data.batch_and_drop_remainder(32))

Untouched::

    import tensorflow as tf

    train_set = tf.data.experimental.make_csv_dataset('train.csv', 32)
    test_set = tf.data.experimental.make_batched_features_dataset('test*', 32, spec)
"""

from __future__ import annotations

import ast
from typing import Iterator

from ...analysis.datasets import batched_dataset
from ...semantics.model import Call
from ...semantics.signatures import BUCKET_BY_LENGTH, bind_arguments
from ...semantics.tf_types import FROM_FILES, Type
from ...syntax.expressions import boxed_constant, last_part
from ...tf_api.name_tables import PARAMETERS
from ..base import Change, Context, Finding
from ..compat_v1.contrib.contrib_plan import is_call_converted
from .last_batch import StaticBatch, check_last_batch

CODE = "NPU114"
DELIBERATE = "leaves out the partial training batches"
_FROM_FILES = {
    f"tensorflow.keras.{home}.{name}": name
    for home in ("utils", "preprocessing", "preprocessing.image", "preprocessing.text", "preprocessing.timeseries")
    for name in FROM_FILES
}
_HOMES = ("tensorflow.data.experimental.", "tensorflow.contrib.data.")
_SIGNATURES = {name: given for name, given in PARAMETERS.items() if name.startswith(_HOMES[0])}
CALLS = frozenset(home + last_part(name) for name in _SIGNATURES for home in _HOMES) | frozenset(_FROM_FILES)
METHODS = frozenset({"bucket_by_sequence_length"})

# Buckets may differ in their batch size, so the caller gives the size.
_BUCKETS = StaticBatch(pad="npu_shim.data.pad_last_batch(%s, batch_size=N)")


def check_method(context: Context, call: Call, method: ast.Attribute) -> Iterator[Change | Finding]:
    if context.types.type_of(method.value, call.where) == Type.DATASET:
        yield from check_last_batch(
            context, CODE, call, bind_arguments(call.node, BUCKET_BY_LENGTH), _BUCKETS, method.value
        )


def check_call(context: Context, call: Call, name: str) -> Iterator[Change | Finding]:
    if name in _FROM_FILES:
        if any(k.arg == "batch_size" and boxed_constant(k.value) == (None,) for k in call.node.keywords):
            return  # the dataset has no batches
        yield from check_last_batch(context, CODE, call, bind_arguments(call.node, ()), StaticBatch(None), None)
        return
    home, _, word = name.rpartition(".")
    bound = bind_arguments(call.node, _SIGNATURES[_HOMES[0] + word])
    whole = batched_dataset(context, call.node)
    source = (
        whole.func.value
        if isinstance(whole, ast.Call) and isinstance(whole.func, ast.Attribute) and whole is not call.node
        else None
    )
    static = StaticBatch()
    if word.startswith("make_"):
        if not bound.hidden and not bound.is_given("num_epochs"):
            return  # they repeat forever, and TensorFlow makes their batches static itself
        static = StaticBatch("drop_final_batch" if word == "make_batched_features_dataset" else None)
    elif word == "bucket_by_sequence_length":
        static = (
            _BUCKETS
            if "contrib" not in home or is_call_converted(context, call.node)
            else _BUCKETS._replace(
                flag=None, drop="tf.data.experimental.bucket_by_sequence_length(..., drop_remainder=True)"
            )
        )
    yield from check_last_batch(context, CODE, call, bound, static, source)
