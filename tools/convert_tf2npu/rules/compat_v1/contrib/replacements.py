"""The replacements in tf.compat.v1 of names of tf.contrib, with their arguments.

``tools/make_v1_names.py`` finds the names that are the same object in both places. This module lists the functions that
were rewritten, with the arguments of both. A test compares the arguments with those of the functions.
"""

from __future__ import annotations

import ast
from typing import Iterable, NamedTuple

from ....semantics.model import Where
from ....semantics.module_index import Names
from ....syntax.expressions import last_part
from ....tf_api.canonical_names import canonical
from ....tf_api.name_tables import CONTRIB, MODULES
from ....tf_api.v1_fate import rest_of


class Replacement(NamedTuple):
    """The replacement of a name of tf.contrib.

    Args:
        name: the name below ``tf``, as ``nn.rnn_cell.LSTMCell``.
        before: the parameters in tf.contrib if the call has to change, else empty.
        after: the parameters of the replacement; those with the same name mean the same.
        renamed: pairs of the old and the new name of a parameter.
        special: the function of ``calls`` that converts the call.
    """

    name: str
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    renamed: tuple[tuple[str, str], ...] = ()
    special: str = ""

    @property
    def is_plain(self) -> bool:
        """Return True if only the name changes."""
        return not (self.before or self.special)


_DATA = """AUTOTUNE CheckpointInputPipelineHook Counter CsvDataset RandomDataset Reducer SqlDataset TFRecordWriter
bucket_by_sequence_length choose_from_datasets copy_to_device dense_to_sparse_batch enumerate_dataset
get_single_element group_by_reducer group_by_window ignore_errors make_batched_features_dataset make_csv_dataset
make_saveable_from_iterator map_and_batch parallel_interleave parse_example_dataset prefetch_to_device
rejection_resample sample_from_datasets scan shuffle_and_repeat unbatch unique"""
_PLAIN = {
    "framework.assert_global_step": "train.assert_global_step",
    "framework.create_global_step": "train.create_global_step",
    "framework.get_global_step": "train.get_global_step",
    "framework.get_or_create_global_step": "train.get_or_create_global_step",
    "framework.nest.assert_same_structure": "nest.assert_same_structure",
    "framework.nest.flatten": "nest.flatten",
    "framework.nest.map_structure": "nest.map_structure",
    "framework.nest.pack_sequence_as": "nest.pack_sequence_as",
    "training.checkpoints_iterator": "train.checkpoints_iterator",
    "estimator.add_metrics": "estimator.add_metrics",
    "estimator.call_logit_fn": "estimator.experimental.call_logit_fn",
    "losses.add_loss": "losses.add_loss",
    "losses.compute_weighted_loss": "losses.compute_weighted_loss",
    "losses.get_losses": "losses.get_losses",
    "losses.get_regularization_losses": "losses.get_regularization_losses",
    "losses.get_total_loss": "losses.get_total_loss",
    "metrics.confusion_matrix": "math.confusion_matrix",
    "metrics.streaming_mean": "metrics.mean",
    "metrics.streaming_mean_tensor": "metrics.mean_tensor",
    "metrics.streaming_percentage_less": "metrics.percentage_below",
}
_CHECKPOINT = ("checkpoint_dir", "ckpt_dir_or_file")
_COLLECTIONS = "weights metrics_collections updates_collections name"
# The arguments between the first two, which are swapped, and those about collections.
_METRICS = {
    "accuracy": "",
    "false_negatives": "",
    "false_positives": "",
    "mean_absolute_error": "",
    "mean_cosine_distance": "dim",
    "mean_iou": "num_classes",
    "mean_relative_error": "normalizer",
    "mean_squared_error": "",
    "precision": "",
    "precision_at_thresholds": "thresholds",
    "recall": "",
    "recall_at_thresholds": "thresholds",
    "root_mean_squared_error": "",
    "true_negatives": "",
    "true_positives": "",
}


def _replacement(name: str, before: str, after: str, *renamed: tuple[str, str]) -> Replacement:
    return Replacement(name, tuple(before.split()), tuple(after.split()), renamed)


_OTHERS: dict[str, Replacement] = {
    "framework.init_from_checkpoint": _replacement(
        "train.init_from_checkpoint", "checkpoint_dir assignment_map", "ckpt_dir_or_file assignment_map", _CHECKPOINT
    ),
    "framework.list_variables": _replacement("train.list_variables", "checkpoint_dir", "ckpt_dir_or_file", _CHECKPOINT),
    "framework.load_checkpoint": _replacement(
        "train.load_checkpoint", "filepattern", "ckpt_dir_or_file", ("filepattern", "ckpt_dir_or_file")
    ),
    "framework.load_variable": _replacement(
        "train.load_variable", "checkpoint_dir name", "ckpt_dir_or_file name", _CHECKPOINT
    ),
    "layers.flatten": _replacement(
        "layers.flatten", "inputs outputs_collections scope", "inputs name data_format", ("scope", "name")
    ),
    "layers.l1_regularizer": Replacement("keras.regularizers.l1", special="regularizer"),
    "layers.l2_regularizer": Replacement("keras.regularizers.l2", special="regularizer"),
    "layers.variance_scaling_initializer": Replacement("variance_scaling_initializer", special="variance_scaling"),
    "layers.xavier_initializer": Replacement("glorot_uniform_initializer", special="xavier"),
    "layers.xavier_initializer_conv2d": Replacement("glorot_uniform_initializer", special="xavier"),
    "losses.absolute_difference": _replacement(
        "losses.absolute_difference", "predictions labels weights scope", "labels predictions weights scope"
    ),
    "losses.log_loss": _replacement(
        "losses.log_loss", "predictions labels weights epsilon scope", "labels predictions weights epsilon scope"
    ),
    "losses.mean_squared_error": _replacement(
        "losses.mean_squared_error", "predictions labels weights scope", "labels predictions weights scope"
    ),
    "losses.sigmoid_cross_entropy": _replacement(
        "losses.sigmoid_cross_entropy",
        "logits multi_class_labels weights label_smoothing scope",
        "multi_class_labels logits weights label_smoothing scope",
    ),
    "losses.softmax_cross_entropy": _replacement(
        "losses.softmax_cross_entropy",
        "logits onehot_labels weights label_smoothing scope",
        "onehot_labels logits weights label_smoothing scope",
    ),
    "losses.sparse_softmax_cross_entropy": _replacement(
        "losses.sparse_softmax_cross_entropy", "logits labels weights scope", "labels logits weights scope"
    ),
    "metrics.streaming_auc": _replacement(
        "metrics.auc",
        "predictions labels weights num_thresholds metrics_collections updates_collections curve name",
        "labels predictions weights num_thresholds metrics_collections updates_collections curve name",
    ),
    "distribute.MirroredStrategy": _replacement(
        "distribute.MirroredStrategy",
        "devices num_gpus num_gpus_per_worker cross_device_ops auto_shard_dataset cross_tower_ops",
        "devices cross_device_ops",
    ),
}
REPLACEMENTS: dict[str, Replacement] = dict(
    [(name, Replacement(replacement)) for name, replacement in list(CONTRIB.items()) + list(_PLAIN.items())]
    + [("data." + name, Replacement("data.experimental." + name)) for name in _DATA.split()]
    + [
        (
            "metrics.streaming_" + name,
            _replacement(
                "metrics." + name,
                " ".join(["predictions labels", between, _COLLECTIONS]),
                " ".join(["labels predictions", between, _COLLECTIONS]),
            ),
        )
        for name, between in _METRICS.items()
    ]
    + list(_OTHERS.items())
)


def contrib_name(spelled: str) -> str:
    """Return ``rnn.LSTMCell`` for each dotted name of this object of tf.contrib, and "" for other names."""
    name = canonical(spelled) if ".python." in spelled else spelled
    rest = rest_of(name) if name.startswith("tensorflow.") else ""
    return rest[len("contrib.") :] if rest.startswith("contrib.") else ""


def shared_module(moving: Iterable[tuple[str, Replacement | None]]) -> str:
    """Return the one module that has all the given names, as ``nn.rnn_cell``; "" if there is no importable one.

    Args:
        moving: pairs of the last part of a name and its replacement.
    """
    modules = {
        replacement.name.rpartition(".")[0]
        if replacement and replacement.is_plain and last_part(replacement.name) == last
        else ""
        for last, replacement in moving
    }
    module = modules.pop() if len(modules) == 1 else ""
    return module if module in MODULES else ""


def is_importable(replacement: str) -> bool:
    """Return True if a name below ``tf`` can be imported from a module in every TensorFlow."""
    module = replacement.rpartition(".")[0]
    return not module or module in MODULES


def replacement_of(name: str) -> Replacement | None:
    """Return the replacement of a name below tf.contrib, or None."""
    return Replacement(name) if name.partition(".")[0] == "keras" else REPLACEMENTS.get(name)


def part_with_replacement(names: Names, node: ast.expr, where: Where) -> tuple[ast.expr, str, Replacement] | None:
    """Return the longest part of a dotted name with a replacement, its name below tf.contrib, and the replacement."""
    while True:
        name = contrib_name(names.spelled(node, where) or "")
        replacement = replacement_of(name) if name else None
        if replacement is not None:
            return node, name, replacement
        if not isinstance(node, ast.Attribute):
            return None
        node = node.value
