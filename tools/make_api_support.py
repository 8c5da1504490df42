"""Make convert_tf2npu/tf_api/support.json: the calls that the vendor's support lists warn about, by kind.

    python tools/make_api_support.py LIST115.json LIST26.json > tools/convert_tf2npu/tf_api/support.json

The lists for TensorFlow 1.15 and 2.6 map API names to ``status`` and ``note_code``. Most names need no finding: they
are supported, or rules rewrite them, or they have no effect. The others get one of the kinds below. If a list
contradicts itself or the documentation, this file decides and gives the reason.
"""

from __future__ import annotations

import json
import sys
from typing import Any

# The note codes of the list that need a finding, and their kinds.
_KINDS = {
    "eager": "eager",
    "tpu_only": "tpu",
    "gpu_only": "gpu",
    "use_tf_data": "queue",
    "remove_lite": "lite",
    "avoid": "unclear",
    "under_analysis": "unverified",
}
# Families that the list only marks as deprecated, because they are part of tf.contrib. They have the limits of the same
# names outside of it. The names in parentheses run on all devices.
_FAMILIES = {
    "tf.contrib.cudnn_rnn.": ("gpu", ("CudnnCompatibleGRUCell", "CudnnCompatibleLSTMCell")),
    "tf.contrib.nccl.": ("gpu", ()),
    "tf.contrib.tpu.": ("tpu", ("RunConfig", "TPUConfig", "TPUEstimatorSpec", "InputPipelineConfig")),
}
_DECIDED: dict[str, str | None] = {
    # A query and two switches of Python's behavior. They are harmless in a graph.
    "tf.executing_eagerly": None,
    "tf.enable_tensor_equality": None,
    "tf.enable_v2_tensorshape": None,
    "tf.contrib.eager.enable_eager_execution": "eager",
    "tf.contrib.eager.enable_remote_eager_execution": "eager",
    # A rule for eager code reports them if they are switched on (rules/tf2/run_eagerly.py).
    "tf.config.experimental_run_functions_eagerly": None,
    "tf.config.run_functions_eagerly": None,
    # The list marks it as harmless, but Keras raises an error if there are fewer GPUs.
    "tf.keras.utils.multi_gpu_model": "gpu",
    # Modules, which are not called, and calls that a rule rewrites.
    "tf.tpu.core": None,
    "tf.tpu.experimental": None,
    "tf.lite.experimental.nn": None,
    "tf.tpu.CrossShardOptimizer": None,
    "tf.contrib.tpu.CrossShardOptimizer": None,
    "tf.contrib.tpu.TPUEstimator": None,
    # The status says supported, the note says avoid. These consist of ordinary operations, so the status is right.
    "tf.math.reduce_euclidean_norm": None,
    "tf.nn.separable_conv2d": None,
    "tf.signal.hamming_window": None,
    "tf.signal.hann_window": None,
    "tf.signal.overlap_and_add": None,
    "tf.feature_column.shared_embedding_columns": None,
    # The same functions have older names (tf.sparse_add), which are supported without a note.
    "tf.sparse.add": None,
    "tf.sparse.mask": None,
    "tf.sparse.reduce_max": None,
    "tf.sparse.reduce_sum": None,
    "tf.sparse.segment_mean": None,
    "tf.sparse.segment_sum": None,
    "tf.sparse.split": None,
    # These only configure a TPUEstimator, which runs without a TPU.
    "tf.estimator.tpu.InputPipelineConfig": None,
    "tf.estimator.tpu.TPUConfig": None,
    "tf.estimator.tpu.TPUEstimatorSpec": None,
    "tf.estimator.tpu.experimental.EmbeddingConfigSpec": "tpu",
    # Only the list for TensorFlow 2.6 has these.
    **{
        f"tf.tpu.{name}": "tpu"
        for name in """XLAOptions experimental.TPUSystemMetadata experimental.Topology experimental.embedding.Adagrad
experimental.embedding.Adam experimental.embedding.FTRL experimental.embedding.FeatureConfig experimental.embedding.SGD
experimental.embedding.TPUEmbedding experimental.embedding.TableConfig experimental.embedding.serving_embedding_lookup
experimental.shutdown_tpu_system""".split()
    },
    # A rule replaces loss scaling with the NPU's classes.
    "tf.train.experimental.MixedPrecisionLossScaleOptimizer": None,
    # Under analysis without a note.
    "tf.random.experimental.Generator": "unverified",
    "tf.random.experimental.create_rng_state": "unverified",
    "tf.random.experimental.get_global_generator": "unverified",
    "tf.random.experimental.set_global_generator": "unverified",
    # Lookup tables have their own rule (rules/restriction/lookup_tables.py).
    "tf.lookup.StaticVocabularyTable": "table",
    "tf.lookup.TextFileInitializer": None,
    "tf.lookup.TextFileIndex": None,
    "tf.lookup.StaticHashTable": "table",
    "tf.lookup.experimental.DenseHashTable": "table",
    "tf.contrib.lookup.HashTable": "table",
    "tf.contrib.lookup.MutableDenseHashTable": "table",
    "tf.contrib.lookup.MutableHashTable": "table",
    "tf.contrib.lookup.IdTableWithHashBuckets": "table",
    "tf.contrib.lookup.index_table_from_file": "table",
    "tf.contrib.lookup.index_table_from_tensor": "table",
    "tf.contrib.lookup.index_to_string_table_from_file": "table",
    "tf.contrib.lookup.index_to_string_table_from_tensor": "table",
    # Input queues: the list marks some as supported, some as deprecated. The documentation excludes all of them.
    # Other queues (tf.FIFOQueue) are often not for input, and the list supports them.
    "tf.FixedLengthRecordReader": "queue",
    "tf.TFRecordReader": "queue",
    "tf.TextLineReader": "queue",
    "tf.train.QueueRunner": "queue",
    "tf.train.batch": "queue",
    "tf.train.batch_join": "queue",
    "tf.train.input_producer": "queue",
    "tf.train.limit_epochs": "queue",
    "tf.train.maybe_batch": "queue",
    "tf.train.maybe_batch_join": "queue",
    "tf.train.maybe_shuffle_batch": "queue",
    "tf.train.maybe_shuffle_batch_join": "queue",
    "tf.train.range_input_producer": "queue",
    "tf.train.shuffle_batch": "queue",
    "tf.train.shuffle_batch_join": "queue",
    "tf.train.slice_input_producer": "queue",
    "tf.train.string_input_producer": "queue",
    # The list supports is_finite under tf.math and excludes it under tf, but both are the same function.
    "tf.is_finite": "finite",
    "tf.is_inf": "finite",
    "tf.is_nan": "finite",
    "tf.math.is_finite": "finite",
    "tf.math.is_inf": "finite",
    "tf.math.is_nan": "finite",
    "tf.debugging.is_finite": "finite",
    "tf.debugging.is_inf": "finite",
    "tf.debugging.is_nan": "finite",
}
# Excluded for TensorFlow 2.6 outside of compat.v1, but without a finding: other rules report them, or published models
# train with them on the NPU, or they are base classes of everything, or the list supports them under another name.
_FINE_IN_2 = (
    "tf.config.",  # rules/tf2/run_eagerly.py
    "tf.device",  # rules/session/device.py
    "tf.distribute.",  # rules/unsupported/tpu.py
    "tf.tpu",
    "tf.numpy_function",  # rules/dynamic_shape/py_func.py
    "tf.py_function",
    "tf.random.get_global_generator",  # supported: tf.random.experimental.get_global_generator
    "tf.random.stateless_uniform",
    "tf.estimator",  # for graphs: rules/estimator
    "tf.lite",  # after the training
    "tf.profiler.",
    "tf.experimental.function_executor_type",
    "tf.einsum",
    "tf.linalg.einsum",
    "tf.ensure_shape",
    "tf.keras.layers.AbstractRNNCell",
    "tf.keras.layers.Bidirectional",
    "tf.keras.layers.DepthwiseConv2D",
    "tf.keras.layers.experimental.EinsumDense",
    "tf.keras.layers.Layer",
    "tf.keras.layers.PReLU",
    "tf.keras.layers.StackedRNNCells",
    "tf.keras.losses.CategoricalCrossentropy",
    "tf.raw_ops.DepthwiseConv2dNative",
    "tf.RaggedTensorSpec",  # rules/tf2/ragged_inputs.py
    "tf.SparseTensor",  # supported: tf.sparse.SparseTensor
)
# Excluded for TensorFlow 2.6, but harmless: a rule replaces loss scaling with the NPU's classes, and scripts resolve a
# TPU only under a condition.
_HARMLESS = frozenset(
    {
        "tf.compat.v1.config.run_functions_eagerly",
        "tf.compat.v1.train.experimental.enable_mixed_precision_graph_rewrite",
        "tf.compat.v1.distribute.cluster_resolver.TPUClusterResolver",
    }
)


def kind_of(name: str, row: dict[str, str]) -> str | None:
    """Return the kind of a name of the list, or None if it needs no finding."""
    if name in _DECIDED:
        return _DECIDED[name]
    for prefix, (kind, fine) in _FAMILIES.items():
        if name.startswith(prefix):
            rest = name[len(prefix) :]
            return None if rest in fine or rest.startswith("profiler.") else kind
    if name.startswith("hvd."):
        return None  # npu_shim.horovod has all of Horovod
    return _KINDS.get(row.get("note_code", ""))


def canonical_name(name: str) -> str:
    """Return the canonical spelling of a name of the list."""
    name = name.partition("(")[0]
    root, _, rest = name.partition(".")
    return {"hvd": "horovod", "tf": "tensorflow"}[root] + "." + rest


def advised_against(rows: dict[str, dict[str, str]], table: dict[str, str]) -> dict[str, None]:
    """Return the names of tf.compat.v1 that only the list for TensorFlow 2.6 excludes.

    Args:
        rows: the rows of this list.
        table: the kinds of the names known from the other list.
    """
    compat = "tf.compat.v1."
    found = {
        canonical_name("tf." + name[len(compat) :]): None
        for name, row in rows.items()
        if name.startswith(compat) and row.get("note_code") == "avoid" and name not in _HARMLESS
    }
    return {name: None for name in found if name not in table}


def excluded_in_2(rows: dict[str, dict[str, str]]) -> list[str]:
    """Return the names outside of tf.compat.v1 that the list for TensorFlow 2.6 excludes and a rule reports.

    Args:
        rows: the rows of this list.
    """
    return [
        canonical_name(name)
        for name, row in rows.items()
        if row.get("note_code") == "avoid" and not name.startswith(("tf.compat.", "hvd.", *_FINE_IN_2))
    ]


def support_tables(rows: dict[str, dict[str, str]], rows_2: dict[str, dict[str, str]]) -> dict[str, Any]:
    """Return the tables of tf_api/support.json from the rows of the lists for TensorFlow 1.15 and 2.6."""
    kinds = support_table(rows)
    return {
        "kinds": dict(sorted(kinds.items())),
        "avoid_in_2": sorted(advised_against(rows_2, kinds)),
        "excluded_in_2": sorted(excluded_in_2(rows_2)),
    }


def support_table(rows: dict[str, dict[str, str]]) -> dict[str, str]:
    """Return the kinds of names by their canonical spelling.

    Args:
        rows: the rows of the vendor's list by name.
    """
    table: dict[str, str] = {}
    decided = {name: {"status": "decided"} for name in _DECIDED}
    for name, row in list(decided.items()) + list(rows.items()):
        kind = None if row["status"] == "compatible" else kind_of(name, row)
        if kind:
            table[canonical_name(name)] = kind
    return table


def _rows(path: str) -> dict[str, dict[str, str]]:
    with open(path, encoding="utf-8") as stream:
        rows: dict[str, dict[str, str]] = json.load(stream)["apis"]
    return rows


def main() -> int:
    if len(sys.argv) != 3:
        print("usage: python tools/make_api_support.py LIST115.json LIST26.json", file=sys.stderr)
        return 2
    print(json.dumps(support_tables(*map(_rows, sys.argv[1:])), indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
