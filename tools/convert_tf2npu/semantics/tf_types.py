"""The types that rules ask for, and the functions and classes of TensorFlow that make them."""

from __future__ import annotations

import enum
import functools
from typing import Iterable

from ..syntax.expressions import last_part


class Type(enum.Enum):
    """The types that rules ask for. The value is the class's canonical name, or a description where there is none."""

    DATASET = "tensorflow.data.Dataset"
    DATASETS = "datasets in a dictionary or list"
    DATASET_BUILDER = "tensorflow_datasets.core.DatasetBuilder"
    RUN_CONFIG = "tensorflow.estimator.RunConfig"
    NPU_RUN_CONFIG = "npu_shim.npu_init.NPURunConfig"
    PREPARED_RUN_CONFIG = "a run configuration prepared for the NPU"
    CONFIG_PROTO = "tensorflow.ConfigProto"
    NPU_CONFIG = "a session configuration for the NPU"
    MODEL = "tensorflow.keras.Model"
    SUPERVISOR = "tensorflow.train.Supervisor"
    SESSION_MANAGER = "tensorflow.train.SessionManager"
    ESTIMATOR = "tensorflow.estimator.Estimator"
    OPTIMIZER = "tensorflow.train.Optimizer"
    KERAS_OPTIMIZER = "tensorflow.keras.optimizers.Optimizer"
    GRAPH = "tensorflow.Graph"
    SESSION = "tensorflow.Session"
    TEST_CASE = "tensorflow.test.TestCase"
    IN_PROGRESS = "being inferred"  # of an expression that depends on itself; a join ignores it


TRAINING_METHODS = frozenset({"fit", "fit_generator", "train_on_batch"})  # of Keras models
UPDATING_METHODS = frozenset({"minimize", "apply_gradients"})  # of optimizers
METHODS_RUN_ONCE = frozenset({"__init__", "build"})  # of layers and models
PYTHON_CALLS = frozenset({"py_func", "py_function", "numpy_function"})  # functions of TensorFlow that call Python's
SESSIONS = frozenset({"tensorflow.Session", "tensorflow.InteractiveSession"})
# Functions of Keras that return datasets of batches.
FROM_FILES = (
    "audio_dataset_from_directory",
    "image_dataset_from_directory",
    "text_dataset_from_directory",
    "timeseries_dataset_from_array",
)
_DATASET_MAKERS = (
    frozenset(
        "tensorflow.data." + name
        for name in """
Dataset.from_tensor_slices Dataset.from_tensors Dataset.from_generator Dataset.from_sparse_tensor_slices
Dataset.range Dataset.zip Dataset.list_files Dataset.random Dataset.load Dataset.choose_from_datasets
Dataset.sample_from_datasets TFRecordDataset TextLineDataset FixedLengthRecordDataset
experimental.make_csv_dataset experimental.make_batched_features_dataset experimental.CsvDataset
experimental.SqlDataset experimental.RandomDataset experimental.sample_from_datasets
experimental.choose_from_datasets experimental.from_variant experimental.load""".split()
    )
    | {
        "tensorflow.contrib.data." + name
        for name in """Dataset.from_tensor_slices Dataset.from_tensors
Dataset.from_generator Dataset.range Dataset.zip Dataset.list_files TFRecordDataset TextLineDataset
FixedLengthRecordDataset sample_from_datasets choose_from_datasets make_csv_dataset CsvDataset
make_batched_features_dataset SqlDataset""".split()
    }
    | {
        f"tensorflow.keras.{home}.{name}"
        for home in ("utils", "preprocessing", "preprocessing.image", "preprocessing.text", "preprocessing.timeseries")
        for name in FROM_FILES
    }
)
# Methods of a dataset that return a dataset.
DATASET_METHODS = frozenset(
    """
apply batch bucket_by_sequence_length cache concatenate enumerate filter flat_map group_by_window
ignore_errors interleave map map_with_legacy_function padded_batch prefetch ragged_batch rebatch
rejection_resample repeat scan shard shuffle skip snapshot sparse_batch take take_while unbatch unique
window with_options""".split()
)
# Methods that no other object has that scripts pass to their functions.
ONLY_DATASETS = frozenset(
    """
flat_map interleave make_initializable_iterator make_one_shot_iterator padded_batch prefetch shard
with_options""".split()
)
# Calls that make the functions that the method apply of a dataset takes.
TRANSFORMATIONS = frozenset(
    f"tensorflow.{module}.{name}"
    for module in ("data.experimental", "contrib.data")
    for name in """
assert_cardinality batch_and_drop_remainder bucket_by_sequence_length copy_to_device dense_to_ragged_batch
dense_to_sparse_batch enumerate_dataset group_by_reducer group_by_window ignore_errors map_and_batch
map_and_batch_with_legacy_function padded_batch_and_drop_remainder parallel_interleave prefetch_to_device
rejection_resample scan shuffle_and_repeat sloppy_interleave snapshot take_while unbatch unique""".split()
)
# The Estimators of TensorFlow with a model of their own, and those of contrib.learn.
READY_MADE = frozenset(
    "tensorflow.estimator." + name
    for name in """
BaselineClassifier BaselineRegressor BaselineEstimator BoostedTreesClassifier BoostedTreesRegressor
BoostedTreesEstimator DNNClassifier DNNRegressor DNNEstimator DNNLinearCombinedClassifier
DNNLinearCombinedRegressor DNNLinearCombinedEstimator LinearClassifier LinearRegressor LinearEstimator
experimental.KMeans""".split()
) | frozenset(
    "tensorflow.contrib." + name
    for name in """learn.Estimator
learn.BaseEstimator learn.DNNClassifier learn.DNNRegressor learn.DNNEstimator
learn.DNNLinearCombinedClassifier learn.DNNLinearCombinedRegressor learn.DNNLinearCombinedEstimator
learn.DynamicRnnEstimator learn.KMeansClustering learn.LinearClassifier learn.LinearRegressor
learn.LinearEstimator learn.SVM estimator.RNNClassifier estimator.RNNEstimator factorization.GMM
factorization.KMeansClustering factorization.WALSMatrixFactorization kernel_methods.KernelLinearClassifier
timeseries.ARRegressor timeseries.StructuralEnsembleRegressor timeseries.TimeSeriesRegressor
tensor_forest.client.random_forest.TensorForestEstimator
tensor_forest.client.random_forest.CoreTensorForestEstimator
boosted_trees.estimator_batch.estimator.GradientBoostedDecisionTreeClassifier
boosted_trees.estimator_batch.estimator.GradientBoostedDecisionTreeRegressor
boosted_trees.estimator_batch.estimator.GradientBoostedDecisionTreeEstimator""".split()
)
TPU_ESTIMATORS = frozenset(f"tensorflow.{home}tpu.TPUEstimator" for home in ("", "contrib.", "estimator."))
_ESTIMATORS = (
    READY_MADE
    | TPU_ESTIMATORS
    | {
        "tensorflow.estimator.Estimator",
        "tensorflow.keras.estimator.model_to_estimator",
        "npu_shim.npu_init.NPUEstimator",
        "npu_shim.npu_init.keras_to_npu.model_to_npu_estimator",
    }
)
RUN_CONFIGS = frozenset(
    {
        "tensorflow.estimator.RunConfig",
        "tensorflow.estimator.tpu.RunConfig",
        "tensorflow.contrib.tpu.RunConfig",
        "tensorflow.tpu.RunConfig",
        "tensorflow.contrib.learn.RunConfig",
    }
)
_MODELS = frozenset(
    "tensorflow.keras." + name
    for name in """
Model Sequential models.load_model models.clone_model models.model_from_json models.model_from_yaml
models.model_from_config Model.from_config Sequential.from_config utils.multi_gpu_model
experimental.LinearModel experimental.WideDeepModel""".split()
) | {
    "tensorflow.contrib.tpu.keras_to_tpu_model",
    "tensorflow.contrib.saved_model.load_keras_model",
    "npu_shim.npu_device.distribute.data_parallel",
}
_RETURNS: dict[str, Type] = {
    "tensorflow_datasets.builder": Type.DATASET_BUILDER,
    "npu_shim.npu_init.NPURunConfig": Type.NPU_RUN_CONFIG,
    "npu_shim.npu_init.npu_run_config_init": Type.PREPARED_RUN_CONFIG,
    "tensorflow.ConfigProto": Type.CONFIG_PROTO,
    "npu_shim.npu_init.npu_config_proto": Type.NPU_CONFIG,
    "npu_shim.session_config": Type.NPU_CONFIG,
    "tensorflow.train.Supervisor": Type.SUPERVISOR,
    "tensorflow.train.SessionManager": Type.SESSION_MANAGER,
    "tensorflow.Graph": Type.GRAPH,
    "tensorflow.get_default_graph": Type.GRAPH,
    "tensorflow.Session": Type.SESSION,
    "tensorflow.InteractiveSession": Type.SESSION,
    "tensorflow.get_default_session": Type.SESSION,
    "tensorflow.keras.backend.get_session": Type.SESSION,
}
_FAMILIES: tuple[tuple[Iterable[str], Type], ...] = (
    (_DATASET_MAKERS, Type.DATASET),
    (_ESTIMATORS, Type.ESTIMATOR),
    (RUN_CONFIGS, Type.RUN_CONFIG),
    (_MODELS, Type.MODEL),
)
for _names, _type in _FAMILIES:
    _RETURNS.update((name, _type) for name in _names)
# The methods of one type that return the same or another one.
METHODS: dict[tuple[Type, str], Type] = {
    (Type.RUN_CONFIG, "replace"): Type.RUN_CONFIG,
    (Type.NPU_RUN_CONFIG, "replace"): Type.NPU_RUN_CONFIG,
    (Type.PREPARED_RUN_CONFIG, "replace"): Type.PREPARED_RUN_CONFIG,
    (Type.GRAPH, "as_default"): Type.GRAPH,
    (Type.SESSION, "as_default"): Type.SESSION,
}
METHODS.update(((Type.DATASET, method), Type.DATASET) for method in DATASET_METHODS)
ATTRIBUTES: dict[tuple[Type, str], Type] = {
    (Type.SESSION, "graph"): Type.GRAPH,
    (Type.SUPERVISOR, "session_manager"): Type.SESSION_MANAGER,
}
# Objects that a with statement binds to themselves.
ENTERED: frozenset[Type] = frozenset({Type.GRAPH, Type.SESSION})
_OPTIMIZER_HOMES = tuple(
    f"tensorflow.{home}." for home in "train train.experimental contrib.opt contrib.tpu tpu".split()
)


@functools.lru_cache(maxsize=4096)
def type_of_result(name: str) -> Type | None:
    """Return the type of the result of a call of a dotted name, or None."""
    kind = _RETURNS.get(name)
    if kind or not name.startswith("tensorflow."):
        return kind
    home, _, last = name.rpartition(".")
    if last[:1].isupper():
        if home == "tensorflow.keras.applications" or home.startswith("tensorflow.keras.applications."):
            return Type.MODEL
        if home == "tensorflow.keras.optimizers":
            return Type.KERAS_OPTIMIZER
        if last.endswith("Optimizer") and home + "." in _OPTIMIZER_HOMES:
            return Type.OPTIMIZER
    return None


# Classes that make no object of their own that rules ask for, but classes derive from them and parameters have them.
_BASES: dict[str, Type] = {kind.value: kind for kind in (Type.TEST_CASE, Type.OPTIMIZER, Type.KERAS_OPTIMIZER)}
# Classes that an annotation means itself.
ANNOTATED: dict[str, Type] = {**_BASES, **{kind.value: kind for kind in (Type.DATASET, Type.SESSION, Type.GRAPH)}}


@functools.lru_cache(maxsize=1024)
def type_of_subclass(name: str) -> Type | None:
    """Return the type of the objects of a class that derives from a class of a dotted name, or None."""
    if name in _BASES:
        return _BASES[name]
    return type_of_result(name) if last_part(name)[:1].isupper() else None
