"""Advice for names of tf.contrib without a replacement, or without one that takes the same arguments."""

from __future__ import annotations

from ....files.message import Message
from ....syntax.expressions import last_part
from .replacements import REPLACEMENTS, replacement_of

_SLIM = "Install tf_slim and use tf_slim.{0} with the same arguments"
# Functions of tf.contrib.layers for feature columns, which tf_slim lacks.
_COLUMNS: frozenset[str] = frozenset(
    """bow_encoder bucketized_column check_feature_columns
create_feature_spec_for_parsing crossed_column embedding_column infer_real_valued_columns input_from_feature_columns
joint_weighted_sum_from_feature_columns one_hot_column parse_feature_columns_from_examples real_valued_column
scattered_embedding_column sequence_input_from_feature_columns shared_embedding_columns sparse_column_with_hash_bucket
sparse_column_with_integerized_feature sparse_column_with_keys sparse_column_with_vocabulary_file transform_features
weighted_sparse_column weighted_sum_from_feature_columns""".split()
)
_SLIM_HAS: dict[str, frozenset[str]] = {
    "framework": frozenset(
        """VariableDeviceChooser add_arg_scope add_model_variable arg_scope arg_scoped_arguments
        assert_or_get_global_step assign_from_checkpoint assign_from_checkpoint_fn assign_from_values
        assign_from_values_fn current_arg_scope filter_variables get_local_variables get_model_variables
        get_trainable_variables get_unique_variable get_variable_full_name get_variables get_variables_by_name
        get_variables_by_suffix get_variables_to_restore global_variable has_arg_scope local_variable model_variable
        variable""".split()
    ),
    "training": frozenset(
        """add_gradients_summaries clip_gradient_norms clip_gradient_norms_fn create_train_op
        multiply_gradients train""".split()
    ),
}
_NAMES = {
    "data.assert_element_shape": "Use dataset.map(lambda x: tf.ensure_shape(x, shape))",
    "data.batch_and_drop_remainder": "Use dataset.batch(n, drop_remainder=True)",
    "data.padded_batch_and_drop_remainder": "Use dataset.padded_batch(..., drop_remainder=True)",
    "data.read_batch_features": Message("Use {0}", "tf.data.experimental.make_batched_features_dataset(...)"),
    "data.sliding_window_batch": "Use dataset.window(...).flat_map(lambda w: w.batch(size))",
    "data.sloppy_interleave": Message("Use {0}", "tf.data.experimental.parallel_interleave(..., sloppy=True)"),
    "estimator.binary_classification_head": Message("Use {0}", "tf.estimator.BinaryClassHead(...)"),
    "estimator.logistic_regression_head": Message("Use {0}", "tf.estimator.LogisticRegressionHead(...)"),
    "estimator.multi_class_head": Message("Use {0}", "tf.estimator.MultiClassHead(...)"),
    "estimator.multi_head": Message("Use {0}", "tf.estimator.MultiHead(...)"),
    "estimator.multi_label_head": Message("Use {0}", "tf.estimator.MultiLabelHead(...)"),
    "estimator.poisson_regression_head": Message("Use {0}", "tf.estimator.PoissonRegressionHead(...)"),
    "estimator.regression_head": Message("Use {0}", "tf.estimator.RegressionHead(...)"),
    "framework.arg_scope": Message(_SLIM, "arg_scope"),
    "framework.nest.is_sequence": Message("Use {0}", "tf.nest.is_nested(x)"),
    "layers.variance_scaling_initializer": Message("Use {0}", "tf.variance_scaling_initializer(scale=2.0, ...)"),
    "layers.xavier_initializer": Message("Use {0}", "tf.glorot_normal_initializer(...)"),
    "learn.ModeKeys": "Use tf.estimator.ModeKeys, with PREDICT for INFER",
    "learn.RunConfig": Message("Use {0}", "tf.estimator.RunConfig(...)"),
    "lookup.HashTable": "Use tf.lookup.StaticHashTable(initializer, default_value) and run table.initializer",
    "lookup.index_table_from_file": "Use tf.lookup.StaticVocabularyTable with tf.lookup.TextFileInitializer",
    "lookup.index_table_from_tensor": "Use tf.lookup.StaticVocabularyTable with tf.lookup.KeyValueTensorInitializer",
    "predictor.from_saved_model": "Use tf.saved_model.load(sess, [tf.saved_model.SERVING], folder) in a session",
    "staging.StagingArea": "Write from tensorflow.python.ops.data_flow_ops import StagingArea",
    "tpu.get_tpu_context": "Write from tensorflow.python.tpu.tpu_function import get_tpu_context",
    "tpu.tpu_function": "Write from tensorflow.python.tpu import tpu_function",
    "training.HParams": "Keep the values in your own class or in types.SimpleNamespace(**values)",
}
_MODULES = {
    "crf": "Up to TensorFlow 2.15, use tensorflow_addons: tfa.text.crf_log_likelihood and related functions",
    "cudnn_rnn": "Use tf.nn.rnn_cell cells in tf.nn.dynamic_rnn, or tf.keras.layers.LSTM and GRU",
    "distributions": "Install tensorflow_probability and use tfp.distributions.{0}",
    "bayesflow": "Install tensorflow_probability and use its classes",
    "image": "Up to TensorFlow 2.15, use tensorflow_addons: tfa.image.{0}",
    "mixed_precision": "Use NPULossScaleOptimizer and the loss scale managers of npu_shim",
    "seq2seq": "Up to TensorFlow 2.15, use tensorflow_addons: tfa.seq2seq.{0}",
    "summary": "Use tf.compat.v2.summary.{0} with a step argument, or tf.summary with a FileWriter",
    "tensorboard": "Write from tensorboard.plugins import projector",
}


def advice_for_contrib_name(name: str) -> str:
    """Return the advice for a name, as an imperative.

    Args:
        name: the name below tf.contrib, as ``layers.layer_norm``, or a module, as ``slim``.
    """
    module, _, rest = name.partition(".")
    last = last_part(name)
    if name in _NAMES:
        return _NAMES[name]
    replacement = replacement_of(name)
    if replacement is not None:
        own = replacement.before or replacement.special
        return Message("Use tf.{0} with its own arguments" if own else "Use tf.{0}", replacement.name)
    if module == "slim" or not rest and module in ("layers", "framework", "losses"):
        return Message("Install tf_slim and write import tf_slim as {0}", module)
    if module == "layers":
        return "Use the columns of tf.feature_column" if last in _COLUMNS else Message(_SLIM, last)
    if module in ("metrics", "losses") and rest:
        return Message(_SLIM, f"{module}.{last}")
    if last in _SLIM_HAS.get(module, ()):
        return Message(_SLIM, last if module == "framework" else "training." + last)
    if module in _MODULES and (rest or "{0}" not in _MODULES[module]):
        return Message(_MODULES[module], last)
    if not name:
        return "Import each name from its new location"
    example = next((known for known in REPLACEMENTS if known.startswith(name + ".")), None)
    if example:
        return Message("Import each name from its new location, as tf.{0}", REPLACEMENTS[example].name)
    return Message("Copy its source from tensorflow/contrib/{0} of TensorFlow 1.15, or remove it", module)
