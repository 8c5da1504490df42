"""Datasets that are not sharded between ranks (with ``-d tf_strategy``).

``npu_strategy.NPUStrategy`` shards the data (see NPU302). In a script without a strategy, such as one with towers or with
``tf.gradients``, all ranks train on the same examples. Shuffle the dataset with one seed, then shard it, then decode:
``dataset = dataset.shard(get_rank_size(), get_rank_id())``. Then the ranks together read the batches of one process. With
other seeds the parts of the ranks overlap. Shard records rather than file names: a rank that gets no file has no data,
and the others wait for it.

Options: -d tf_strategy

Reported::

    import tensorflow as tf

    def train_input_fn():
        dataset = tf.data.TFRecordDataset(files)
        return dataset.shuffle(1000).repeat().batch(32, drop_remainder=True)

Reported::

    import tensorflow.compat.v1 as tf
    import tensorflow_datasets as tfds

    builder = tfds.builder('mnist')

    def build_input_fn(is_training):
        def input_fn():
            dataset = builder.as_dataset(split='train' if is_training else 'test', as_supervised=True)
            return dataset.repeat().batch(32, drop_remainder=is_training)
        return input_fn

Reported::

    import tensorflow as tf
    from npu_shim.npu_init import *

    def train_input_fn():
        files = tf.data.Dataset.list_files('train.tfrecord').shard(get_rank_size(), get_rank_id())
        return files.interleave(tf.data.TFRecordDataset, 4).batch(32, drop_remainder=True)

Untouched::

    import tensorflow as tf
    from npu_shim.npu_init import *

    strategy = npu_strategy.NPUStrategy()
    config = NPURunConfig(train_distribute=strategy)

    def train_input_fn(input_context=None):
        dataset = tf.data.TFRecordDataset(files)
        return dataset.shuffle(1000).repeat().batch(32, drop_remainder=True)

Untouched::

    import tensorflow as tf
    from npu_shim.npu_init import *

    def train_input_fn():
        dataset = tf.data.TFRecordDataset(files).shuffle(1000, seed=1).repeat()
        return dataset.shard(get_rank_size(), get_rank_id()).batch(32, drop_remainder=True)

Untouched::

    import tensorflow as tf

    def eval_input_fn():
        return tf.data.TFRecordDataset(files).batch(32)

Untouched::

    import tensorflow as tf

    def train_input_fn(names):
        dataset = names.interleave(lambda name: tf.data.TFRecordDataset(name), cycle_length=4)
        return dataset.batch(32, drop_remainder=True)
"""

from __future__ import annotations

import ast
import re
from typing import Iterator

from ...analysis.device_placement import enclosing_function, is_in_map_function, is_in_test
from ...analysis.parallel_training import may_be_eager_program
from ...analysis.phase_words import TRAIN
from ...analysis.strategies import programs_create_strategy
from ...analysis.train_phase import phase_of
from ...analysis.training_flag import training_flag_text
from ...semantics.loaded_datasets import AS_DATASET, LOAD
from ...semantics.model import Call, Where
from ...semantics.module_index import Names
from ...semantics.tf_types import Type
from ...semantics.value_flow import origins
from ...syntax.expressions import constant_or, last_name
from ..base import Context, Finding, Message

CODE = "NPU252"
NEEDS = {"distributed": "tf_strategy"}
_PATTERN = re.compile(r"[*?\[{%]")
_SHARD = "shard(get_rank_size(), get_rank_id())"
# Methods that shard a dataset, and functions that shard it themselves.
_SHARDING = frozenset(
    {
        "shard",
        "experimental_distribute_dataset",
        "make_dataset_iterator",
        "experimental_distribute_datasets_from_function",
    }
)


def check_file(context: Context) -> Iterator[Finding]:
    if may_be_eager_program(context):
        return
    reported: set[ast.AST] = set()
    for call in context.names.calls:
        function = enclosing_function(context, call.node)
        if function in reported or is_in_test(context, call.node):
            continue
        message = _message_on_unsharded_data(context, call) or _message_on_one_file(context, call)
        if message:
            if programs_create_strategy(context.names):
                return
            reported.add(function)
            yield Finding(call.node, message)


def _message_on_unsharded_data(context: Context, call: Call) -> str | None:
    node = call.node
    name = context.resolve(node.func, call.where) or ""
    loads = name == LOAD or isinstance(node.func, ast.Attribute) and node.func.attr == AS_DATASET
    if (
        not (loads or name.startswith(("tensorflow.data.", "tensorflow.contrib.data.")))
        or context.types.type_of(node, call.where) != Type.DATASET
        or name.endswith((".zip", ".sample_from_datasets", ".choose_from_datasets"))
    ):
        return None
    if is_in_map_function(context, node) or _is_sharded_in_function_or_file(context, node):
        return None
    phases = phase_of(node, context.names, context.source.text).phases
    if TRAIN not in phases and (phases or training_flag_text(context, node) is None):
        return None
    if name.endswith(".list_files"):
        return Message(
            "each rank trains on all of these files. After they are read, write dataset = dataset.{0}", _SHARD
        )
    return Message(
        "each rank trains on all of this data. Shuffle it with one seed, then write dataset = dataset.{0}", _SHARD
    )


def _message_on_one_file(context: Context, call: Call) -> str | None:
    """Return the message for a dataset of one file name that is sharded."""
    function = call.node.func
    if not isinstance(function, ast.Attribute) or function.attr != "shard":
        return None
    for dataset in _dataset_creation_calls(context, function.value, call.where):
        name = context.resolve(dataset.func, context.names.place(dataset)) or ""
        if not name.startswith("tensorflow.data.") or not dataset.args:
            continue
        files = dataset.args[0]
        if isinstance(files, (ast.List, ast.Tuple)) and len(files.elts) == 1 and name.endswith("from_tensor_slices"):
            files = files.elts[0]
        text = constant_or(files, None)
        if name.endswith(("list_files", "from_tensor_slices")) and isinstance(text, str) and not _PATTERN.search(text):
            return "this dataset has one file name, so all ranks but one get no data. Shard after the file is read"
    return None


def _dataset_creation_calls(context: Context, node: ast.expr, where: Where) -> Iterator[ast.Call]:
    """Yield the calls of this file that make a dataset to which methods such as shuffle were applied."""
    for origin in origins(node, where, context.names):
        dataset = origin.node
        while (
            isinstance(dataset, ast.Call)
            and isinstance(dataset.func, ast.Attribute)
            and isinstance(dataset.func.value, ast.Call)
        ):
            dataset = dataset.func.value
        if isinstance(dataset, ast.Call) and dataset in context.names.parents:
            yield dataset


def _is_sharded_in_function_or_file(context: Context, dataset_call: ast.Call) -> bool:
    """Return True if the function of a call shards a dataset, the module level does, or a strategy anywhere in the file."""
    function = enclosing_function(context, dataset_call)
    return any(
        last_name(call.func) != "shard" or function in [*context.names.ancestors(call), context.names.tree]
        for call in context.names.once(_sharding_calls)
    )


def _sharding_calls(names: Names) -> list[ast.Call]:
    return [c.node for c in names.calls if isinstance(c.node.func, ast.Attribute) and c.node.func.attr in _SHARDING]
