"""What to write instead of a name of tf.contrib that has no home, or not with its arguments."""

from __future__ import annotations

from ....syntax.expressions import last_part
from .homes import HOMES, home_of

_SLIM = "pip install tf_slim, import tf_slim, and write tf_slim.%s, which takes the same arguments"
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
    "data.assert_element_shape": "write dataset.map(lambda x: tf.ensure_shape(x, shape))",
    "data.batch_and_drop_remainder": "write dataset.batch(n, drop_remainder=True)",
    "data.padded_batch_and_drop_remainder": "write dataset.padded_batch(..., drop_remainder=True)",
    "data.read_batch_features": "write tf.data.experimental.make_batched_features_dataset(...)",
    "data.sliding_window_batch": "write dataset.window(...).flat_map(lambda w: w.batch(size))",
    "data.sloppy_interleave": "write tf.data.experimental.parallel_interleave(..., sloppy=True)",
    "estimator.binary_classification_head": "write tf.estimator.BinaryClassHead(...)",
    "estimator.logistic_regression_head": "write tf.estimator.LogisticRegressionHead(...)",
    "estimator.multi_class_head": "write tf.estimator.MultiClassHead(...)",
    "estimator.multi_head": "write tf.estimator.MultiHead(...)",
    "estimator.multi_label_head": "write tf.estimator.MultiLabelHead(...)",
    "estimator.poisson_regression_head": "write tf.estimator.PoissonRegressionHead(...)",
    "estimator.regression_head": "write tf.estimator.RegressionHead(...)",
    "framework.arg_scope": _SLIM % "arg_scope",
    "framework.nest.is_sequence": "write tf.nest.is_nested(x)",
    "layers.variance_scaling_initializer": "write tf.variance_scaling_initializer(scale=2.0, ...), whose values are "
    "0.3 % narrower, because it cuts the normal distribution more exactly",
    "layers.xavier_initializer": "write tf.glorot_normal_initializer(...), whose values are 0.3 % narrower, because "
    "it cuts the normal distribution more exactly",
    "learn.ModeKeys": "write tf.estimator.ModeKeys, where INFER is PREDICT",
    "learn.RunConfig": "write tf.estimator.RunConfig(...)",
    "lookup.HashTable": "write tf.lookup.StaticHashTable(initializer, default_value), whose initializer is "
    "table.initializer",
    "lookup.index_table_from_file": "write tf.lookup.StaticVocabularyTable(tf.lookup.TextFileInitializer(file, "
    "tf.string, tf.lookup.TextFileIndex.WHOLE_LINE, tf.int64, "
    "tf.lookup.TextFileIndex.LINE_NUMBER), num_oov_buckets)",
    "lookup.index_table_from_tensor": "write tf.lookup.StaticVocabularyTable(tf.lookup.KeyValueTensorInitializer("
    "words, tf.range(len(words), dtype=tf.int64)), num_oov_buckets)",
    "predictor.from_saved_model": "write tf.saved_model.load(sess, [tf.saved_model.SERVING], folder) in a session",
    "staging.StagingArea": "write from tensorflow.python.ops.data_flow_ops import StagingArea",
    "training.HParams": "keep the values in a class of your own, or in types.SimpleNamespace(**values)",
}
_MODULES = {
    "crf": "tensorflow_addons has it for TensorFlow up to 2.15: tfa.text.crf_log_likelihood and its fellows",
    "cudnn_rnn": "write tf.nn.rnn_cell cells in tf.nn.dynamic_rnn, or tf.keras.layers.LSTM and GRU",
    "distributions": "pip install tensorflow_probability, and write tfp.distributions.%s",
    "bayesflow": "tensorflow_probability has it",
    "image": "tensorflow_addons has it for TensorFlow up to 2.15: tfa.image.%s",
    "mixed_precision": "write the NPU's classes: NPULossScaleOptimizer with FixedLossScaleManager or "
    "ExponentialUpdateLossScaleManager",
    "seq2seq": "tensorflow_addons has it for TensorFlow up to 2.15, on Keras cells: tfa.seq2seq.%s",
    "summary": "write tf.compat.v2.summary.%s, which takes the step as an argument, or tf.summary with a FileWriter",
    "tensorboard": "write from tensorboard.plugins import projector",
}


def advice(name: str) -> str:
    """What to write instead.

    Args:
        name: below tf.contrib, as ``layers.layer_norm``; of a module that is imported its name, as ``slim``.
    """
    module, _, rest = name.partition(".")
    last = last_part(name)
    if name in _NAMES:
        return _NAMES[name]
    home = home_of(name)
    if home is not None:
        return (
            f"write tf.{home.name} with its own arguments" if home.before or home.special else f"write tf.{home.name}"
        )
    if module == "slim" or not rest and module in ("layers", "framework", "losses"):
        return f"pip install tf_slim, and write import tf_slim as {module}"
    if module == "layers":
        return "write the columns of tf.feature_column" if last in _COLUMNS else _SLIM % last
    if module in ("metrics", "losses") and rest:
        return _SLIM % (f"{module}.{last}")
    if last in _SLIM_HAS.get(module, ()):
        return _SLIM % (last if module == "framework" else "training." + last)
    if module in _MODULES and (rest or "%s" not in _MODULES[module]):
        return _MODULES[module].replace("%s", last)
    if not name:
        return "import what is used of it from its home"
    example = next((known for known in HOMES if known.startswith(name + ".")), None)
    if example:
        return f"import what is used of it from its home, as tf.{HOMES[example].name} for {example}"
    return (
        f"nothing is in its place; take its source out of tensorflow/contrib/{module} of TensorFlow 1.15 into your "
        "project, or do without it"
    )
