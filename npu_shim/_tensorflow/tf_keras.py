"""Private parts of Keras."""

from __future__ import annotations

import functools
import importlib
import sys
from typing import Callable, NamedTuple, Sequence

import tensorflow as tf

from npu_shim._tensorflow import patches
from npu_shim._tensorflow.types import (
    DataAdapter,
    Function,
    Initializer,
    KerasCallback,
    KerasLayer,
    KerasModel,
    Metric,
    Module,
    Optimizer,
    OptimizerClass,
    Result,
    Strategy,
    Structure,
    Value,
    Variable,
)


def build_optimizer(optimizer: Optimizer, variables: Sequence[Variable]) -> None:
    """Make the slot variables of an optimizer, named as those that Keras otherwise makes with the first gradients."""
    if hasattr(optimizer, "apply"):  # Keras 3, which opens the scope itself
        optimizer.build(list(variables))
    elif hasattr(optimizer, "build"):
        with tf.name_scope(optimizer.name):
            optimizer.build(list(variables))
    elif hasattr(optimizer, "_create_all_weights"):  # Keras before 2.11
        with tf.name_scope(optimizer._name):
            optimizer._create_all_weights(list(variables))


def optimizer_config(optimizer: Optimizer) -> dict[str, Value]:
    """Return the configuration of an optimizer, with its schedule of learning rates instead of one of Keras' copies.

    A copy needs every class in it to load its own configuration.
    """
    config: dict[str, Value] = optimizer.get_config()
    rate = getattr(optimizer, "_hyper", {}).get("learning_rate", getattr(optimizer, "_learning_rate", None))
    if isinstance(config.get("learning_rate"), dict) and callable(rate):
        config["learning_rate"] = rate
    return config


def built_variables(optimizer: Optimizer) -> list[Variable]:
    """Return the variables for which a Keras 3 optimizer was built, which its apply() uses by default."""
    return list(optimizer._trainable_variables)


def keep_tensors_in_logs(callback: KerasCallback) -> None:
    """Let Keras give a callback the tensors of the logs, which it else copies from the device for each batch."""
    callback._supports_tf_logs = True


def is_keras_tensor(value: object) -> bool:
    """Return True for the output of a Keras layer while a functional model is built (TensorFlow 2.4 and later)."""
    return any(base.__name__ == "KerasTensor" for base in type(value).__mro__)


def register_serializable(package: str, layer: type) -> None:
    """Let Keras load models with a layer class of ours, where it can (TensorFlow 2)."""
    if hasattr(tf.keras.utils, "register_keras_serializable"):
        tf.keras.utils.register_keras_serializable(package=package)(layer)


def loss_scale_optimizer_class(optimizer: Optimizer) -> OptimizerClass | None:
    """Return Keras' class that scales the loss for an optimizer; None with TensorFlow 1.15.

    Keras 2.11 to 2.15 have two behind one name, of which one is for the optimizers of older versions.
    """
    public = getattr(tf.keras.mixed_precision, "LossScaleOptimizer", None)
    if public is None:
        return None
    module: Module = sys.modules[public.__module__]
    if not hasattr(module, "LossScaleOptimizerV3"):
        return public
    is_old = isinstance(optimizer, tf.keras.optimizers.legacy.Optimizer)
    return module.LossScaleOptimizer if is_old else module.LossScaleOptimizerV3


def is_autocast_variable(variable: Variable) -> bool:
    """Return True for a variable that Keras reads in another type than it has, for mixed precision."""
    return getattr(variable, "_cast_dtype", variable.dtype) != variable.dtype


def is_graph_of_layers(model: KerasModel) -> bool:
    """Return True for a functional or Sequential model, False for a subclass with a ``call`` of its own."""
    return bool(model._is_graph_network) or isinstance(model, tf.keras.Sequential)


def layer_and_sublayers(layer: KerasModel) -> list[KerasLayer]:
    """Return a layer or model with all layers inside it."""
    if hasattr(layer, "_flatten_layers"):
        return list(layer._flatten_layers())
    return [layer, *(part for child in getattr(layer, "_layers", ()) for part in layer_and_sublayers(child))]  # TF 1.15


def batch_normalization_classes() -> tuple[type, ...]:
    """Return Keras' classes of batch normalization."""
    return tuple({tf.keras.layers.BatchNormalization, tf.compat.v1.keras.layers.BatchNormalization})


def has_replaced_moments(layer: KerasLayer) -> bool:
    """Return True if replace_moments() has changed a layer."""
    return "_moments" in vars(layer)


def replace_moments(layer: KerasLayer, change: Function) -> None:
    """Change the mean and variance with which a layer normalizes a batch.

    Args:
        layer: a layer of batch normalization.
        change: a function of the inputs, their mask or None, their mean and their variance that returns mean and
            variance. It is not called while a functional model is built, which has no values.
    """
    original = layer._moments

    def moments(inputs: Structure, *args: object, **kwargs: object) -> Result:
        mean, variance = original(inputs, *args, **kwargs)
        mask = kwargs.get("mask", args[0] if args and isinstance(args[0], tf.Tensor) else None)  # Keras 3: positional
        return change(inputs, mask, mean, variance) if isinstance(mean, tf.Tensor) else (mean, variance)

    layer._moments = moments


def change_moving_variance(layer: KerasLayer, change: Callable[[Value], Value]) -> None:
    """Change the variances that a layer of batch normalization of Keras 2 adds to its moving average."""
    original = layer._assign_moving_average

    def assign(variable: Variable, value: Value, *args: object, **kwargs: object) -> Result:
        return original(variable, change(value) if variable is layer.moving_variance else value, *args, **kwargs)

    layer._assign_moving_average = assign


def patch_eager_variable_creation() -> None:
    """Let Keras 3 create a variable outside of the tf.function that is traced, as Keras 2 does.

    A variable of the trace itself has no value before the function runs, and ranks could not broadcast it.
    """
    name = "_initialize_with_initializer"
    owner = next((base for base in getattr(tf.keras, "Variable", object).__mro__ if name in vars(base)), None)
    if owner is not None:
        patches.replace_attribute(owner, name, _initialize_outside_functions)


def patch_data_of_fit(change: Callable[[object, Value], tuple[object, Value]]) -> None:
    """Put a function around the data on which Keras' fit trains, and the steps of an epoch, None if they are unknown.

    Keras 1.15 looks ``fit`` up before its arguments are computed, so the function acts from the next call.
    """
    owner = next(base for base in tf.keras.Model.__mro__ if "fit" in vars(base))
    module = sys.modules[owner.__module__]
    if hasattr(module, "TFEpochIterator"):
        owner, name = module.TFEpochIterator, "__init__"
    elif hasattr(module, "data_adapter") and hasattr(module.data_adapter, "get_data_handler"):
        owner, name = module.data_adapter.DataHandler, "__init__"
    else:
        name = "fit"

    def with_changed_data(original: Function) -> Function:
        @functools.wraps(original)
        def method(self: object, *args: object, **kwargs: object) -> Result:
            if name == "fit" and args:
                args = (change(args[0], None)[0], *args[1:])
            elif "x" in kwargs and (name == "fit" or "class_weight" in kwargs):  # only fit passes that
                # Keras 1.15 does not begin data anew that has the steps of an epoch, with or without partial batches.
                steps = None if name == "fit" else kwargs.get("steps_per_epoch")
                kwargs["x"], steps = change(kwargs["x"], steps)
                if name != "fit":
                    kwargs["steps_per_epoch"] = steps
            return original(self, *args, **kwargs)

        return method

    patches.replace_attribute(owner, name, with_changed_data)


def _initialize_outside_functions(original: Callable[..., None]) -> Callable[..., None]:
    def initialize(self: Variable, initializer: Initializer) -> None:
        with tf.init_scope():
            original(self, initializer)

    return initialize


def metric_variables(model: KerasModel) -> list[Variable]:
    """Return the tf.Variables of the metrics of a model."""
    return [tensorflow_variable(variable) for metric in _built_metrics(model) for variable in metric.variables]


def metric_results(model: KerasModel) -> dict[str, Value]:
    """Return the results of the metrics of a model by their names, as fit() logs them."""
    results: dict[str, Value] = {}
    for metric in _built_metrics(model):
        result = metric.result()
        results.update(result if isinstance(result, dict) else {metric.name: result})
    return results


def _built_metrics(model: KerasModel) -> list[Metric]:
    return [metric for metric in model.metrics if getattr(metric, "built", True)]  # Keras 3 builds its group later


def tensorflow_variable(variable: Variable) -> Variable:
    """Return the tf.Variable of a variable of Keras 3; another variable as it is."""
    value = getattr(variable, "value", None)
    return variable if value is None or callable(value) else value


def iterations_variable(optimizer: Optimizer) -> Variable | None:
    """Return the variable in which an optimizer counts its steps; None if it has none yet."""
    iterations = getattr(optimizer, "_iterations", None)  # the public attribute would create it
    return None if iterations is None else tensorflow_variable(iterations)


def optimizer_classes() -> tuple[type, ...]:
    """Return the base classes of Keras' optimizers."""
    legacy = getattr(tf.keras.optimizers, "legacy", None)
    classes = {tf.keras.optimizers.Optimizer, getattr(legacy, "Optimizer", tf.keras.optimizers.Optimizer)}
    return tuple(optimizer for optimizer in classes if isinstance(optimizer, type))


def strategy_of_model(model: KerasModel) -> Strategy:
    """Return the strategy in whose scope a model was made, or the current one."""
    strategy = getattr(model, "distribute_strategy", None)  # Keras 3: an attribute of the trainer
    return strategy or tf.distribute.get_strategy()


class EpochClasses(NamedTuple):
    """The classes with which fit reads epochs, each None where Keras lacks it.

    Attributes:
        handler: the loop over epochs of Keras 2.
        adapter: the data sets of that loop.
        iterator: an epoch of Keras 3.
    """

    handler: type | None
    adapter: type | None
    iterator: type | None


def epoch_classes() -> EpochClasses:
    """Return the classes with which fit of this Keras reads epochs."""
    package = tf.keras.Model.__module__.rpartition(".")[0]
    try:
        module = importlib.import_module(f"{package}.data_adapter")
    except ImportError:  # Keras 3
        return EpochClasses(None, None, importlib.import_module("keras.src.trainers.epoch_iterator").EpochIterator)
    return EpochClasses(getattr(module, "DataHandler", None), getattr(module, "DatasetAdapter", None), None)


def data_adapter_of(handler: DataAdapter) -> DataAdapter:
    """Return the data set of a loop over epochs of Keras 2."""
    return handler._adapter


def has_all_batches(epochs: DataAdapter) -> bool:
    """Return True if an epoch of Keras 3 has read all batches of its data set."""
    return epochs.steps_per_epoch is None and 0 < (epochs._num_batches or 0) <= epochs._steps_seen


def with_autograph_of_caller(function: Function) -> Function:
    """Return a function that AutoGraph converts if it converts the code around."""
    autograph = tf.__internal__.autograph
    return autograph.tf_convert(function, autograph.control_status_ctx())
