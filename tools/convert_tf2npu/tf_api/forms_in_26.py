"""Names of TensorFlow after 2.6 that have another spelling there, or a backport in ``npu_shim.backports``.

Names have no root. Each spelling means the same in TensorFlow 2.6, 2.15 and 2.21.
"""

from __future__ import annotations

from .v1_fate import name_below_tensorflow

_SAVING = "get_custom_objects get_registered_name get_registered_object register_keras_serializable"
_CONFIG = "epsilon floatx image_data_format set_epsilon set_floatx set_image_data_format backend"
# Other spellings.
MOVED: dict[str, str] = {
    "data.Dataset.choose_from_datasets": "data.experimental.choose_from_datasets",
    "data.Dataset.load": "data.experimental.load",
    "data.Dataset.sample_from_datasets": "data.experimental.sample_from_datasets",
    "keras.Initializer": "keras.initializers.Initializer",
    "keras.InputSpec": "keras.layers.InputSpec",
    "keras.Layer": "keras.layers.Layer",
    "keras.Loss": "keras.losses.Loss",
    "keras.Metric": "keras.metrics.Metric",
    "keras.Optimizer": "keras.optimizers.Optimizer",
    "keras.Regularizer": "keras.regularizers.Regularizer",
    "keras.mixed_precision.set_dtype_policy": "keras.mixed_precision.set_global_policy",
    "keras.optimizers.LossScaleOptimizer": "keras.mixed_precision.LossScaleOptimizer",
    "keras.saving.custom_object_scope": "keras.utils.custom_object_scope",
    "keras.saving.load_model": "keras.models.load_model",
    "keras.saving.save_model": "keras.models.save_model",
    "keras.tree.flatten": "nest.flatten",
    "keras.tree.is_nested": "nest.is_nested",
    "keras.tree.map_structure": "nest.map_structure",
    "keras.utils.PyDataset": "keras.utils.Sequence",
    "keras.utils.clear_session": "keras.backend.clear_session",
    "keras.utils.pad_sequences": "keras.preprocessing.sequence.pad_sequences",
    **{f"keras.saving.{name}": f"keras.utils.{name}" for name in _SAVING.split()},
    **{f"keras.config.{name}": f"keras.backend.{name}" for name in _CONFIG.split()},
}
# The optimizers that have the same class one level higher, as far as their arguments are these.
_OPTIMIZERS = "Adadelta Adagrad Adam Adamax Ftrl Nadam RMSprop SGD"
OPTIMIZER_ARGUMENTS: frozenset[str] = frozenset(
    "learning_rate momentum nesterov beta_1 beta_2 epsilon amsgrad rho centered initial_accumulator_value clipnorm "
    "clipvalue global_clipnorm name".split()
)
MOVED.update(
    {
        f"keras.optimizers.{module}.{name}": f"keras.optimizers.{name}"
        for module in ("legacy", "experimental")
        for name in _OPTIMIZERS.split()
    }
)
# Names of npu_shim.backports.
BACKPORTS: dict[str, str] = {
    "config.experimental.enable_op_determinism": "enable_op_determinism",
    "keras.Variable": "Variable",
    "keras.activations.silu": "silu",
    "keras.callbacks.BackupAndRestore": "BackupAndRestore",
    "keras.layers.EinsumDense": "EinsumDense",
    "keras.layers.GroupNormalization": "GroupNormalization",
    "keras.layers.Identity": "Identity",
    "keras.layers.UnitNormalization": "UnitNormalization",
    "keras.ops": "ops",
    "keras.optimizers.AdamW": "AdamW",
    "keras.optimizers.experimental.AdamW": "AdamW",
    "keras.random": "random",
    "keras.utils.set_random_seed": "set_random_seed",
    "optimizers.AdamW": "AdamW",
}
# The names that the modules among them have.
MEMBERS: dict[str, frozenset[str]] = {
    "ops": frozenset(
        """
        abs add all any arange argmax argmin argsort array binary_crossentropy broadcast_to cast
        categorical_crossentropy ceil clip concatenate cond convert_to_numpy convert_to_tensor cos cumsum divide
        divide_no_nan dot einsum elu equal erf exp expand_dims eye fft fft2 flip floor full full_like gelu greater
        greater_equal is_tensor isclose isfinite isnan leaky_relu less less_equal linspace log log1p log2 log_softmax
        logical_and logical_not logical_or logsumexp matmul max maximum mean meshgrid min minimum mod moments multiply
        ndim negative norm normalize not_equal one_hot ones ones_like pad power prod relu repeat reshape roll round
        rsqrt scatter segment_sum shape sigmoid sign silu sin size slice softmax softplus sort
        sparse_categorical_crossentropy split sqrt square squeeze stack std stop_gradient subtract sum swapaxes take
        take_along_axis tanh tensordot tile top_k transpose tril triu unstack var vectorized_map where while_loop
        zeros zeros_like
        """.split()
    ),
    "random": frozenset("SeedGenerator categorical dropout normal randint shuffle truncated_normal uniform".split()),
}
OF_IMAGES: frozenset[str] = frozenset({"extract_patches", "resize"})  # ops.image
# Other names of arguments, by function.
ARGUMENT_NAMES: dict[str, dict[str, str]] = {
    "function": {"reduce_retracing": "experimental_relax_shapes"},
    "keras.layers.LeakyReLU": {"negative_slope": "alpha"},
}
# Arguments that neither the backport nor the other spelling has, by the later name.
WITHOUT: dict[str, frozenset[str]] = {
    "data.Dataset.load": frozenset({"wait"}),
    "data.Dataset.sample_from_datasets": frozenset({"rerandomize_each_iteration"}),
    "data.Dataset.save": frozenset({"checkpoint_args"}),
    "keras.callbacks.BackupAndRestore": frozenset({"delete_checkpoint", "save_before_preemption", "save_freq"}),
    **dict.fromkeys(
        ("keras.optimizers.AdamW", "keras.optimizers.experimental.AdamW", "optimizers.AdamW"), frozenset({"use_ema"})
    ),
}
# Arguments with another default in the other spelling: the number of arguments before it, its name and value.
DEFAULTS: dict[str, tuple[int, str, str]] = {
    "data.Dataset.choose_from_datasets": (2, "stop_on_empty_dataset", "True"),
}
# Methods of datasets that are transformations of tf.data.experimental.
TRANSFORMATIONS: dict[str, str] = {
    "ignore_errors": "ignore_errors",
    "ragged_batch": "dense_to_ragged_batch",
    "rejection_resample": "rejection_resample",
}
# Methods of Keras models that npu_shim.backports has as functions, with their arguments.
_BATCH = frozenset({"x", "y", "y_pred", "sample_weight"})
MODEL_METHODS: dict[str, frozenset[str]] = {
    "compute_loss": _BATCH,
    "compute_metrics": _BATCH,
    "get_metrics_result": frozenset(),
}


def has_backport(name: str) -> bool:
    """Return True if a dotted name of TensorFlow, or the module it is in, has a backport."""
    parts = name_below_tensorflow(name).split(".")
    return any(".".join(parts[:end]) in BACKPORTS for end in range(1, len(parts) + 1))
