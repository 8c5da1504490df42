"""Keras models that several ranks train on the global batches of a script for one device."""

from __future__ import annotations

import inspect

from npu_shim._tensorflow import tf_keras
from npu_shim._tensorflow.tf_api import tf
from npu_shim._tensorflow.types import KerasModel, Logs, Optimizer, Result, Structure
from npu_shim.npu_device.distribute.batch_norm import sync_batch_norm
from npu_shim.npu_device.distribute.global_batches import (
    have_equal_shards,
    rank_and_size,
    set_step_weight,
    slice_and_weight_of_rank,
    weight_of_shard,
)
from npu_shim.npu_device.distribute.gradient_sharing import distributed_optimizer
from npu_shim.npu_device.distribute.hccl import is_worker
from npu_shim.npu_device.distribute.rank_callbacks import callbacks_for_rank, need_batch_metrics
from npu_shim.npu_device.distribute.rank_metrics import RowsThatCount, global_logs, metric_figures
from npu_shim.training.strategy_data import check_is_batched, is_sharded, slice_each_batch

_MARK = "_npu_shim_data_parallel"


def data_parallel(model: KerasModel) -> KerasModel:
    """Make a compiled Keras model train with the other ranks, as one process trains on the same batches.

    * fit() and train_on_batch() get the batches of one process, and each rank trains on its slice. All ranks must
      read the same batches in the same order: shuffled data needs a seed (tf.random.set_seed, or that of shuffle).
    * Gradients are averaged over all rows before the training step or the optimizer clips them. The variables start
      with those of rank 0.
    * Batch normalization uses the statistics of all ranks.
    * Metrics of an epoch are those of all rows before callbacks see them, and training stops on all ranks if it stops
      on one. train_on_batch() returns those of all rows, too.
    * ModelCheckpoint, TensorBoard, CSVLogger, RemoteMonitor and BackupAndRestore write on rank 0 only.
    * evaluate(), predict() and validation use all rows on each rank.

    The slices of a batch may differ by one row; averages are those over all rows. A rank without rows trains on a row
    that does not count.

    A model made in the scope of NPUStrategy keeps the data and gradients of the strategy; only its callbacks change.

    Args:
        model: a compiled model of TensorFlow 2, which is changed. A second call changes what is new.
    Returns:
        The model.
    Raises:
        RuntimeError: in graph mode.
    """
    if not is_worker("npu.distribute.data_parallel"):
        return model
    if not tf.executing_eagerly():
        raise RuntimeError(
            "npu.distribute.data_parallel needs eager TensorFlow 2. In graph mode convert the script with --tf 1, or "
            "use npu_keras_optimizer and npu_callbacks_append of npu_shim.npu_init."
        )
    parallel = model.__dict__.get(_MARK)
    if parallel is None:
        parallel = _Parallel(model)
        object.__setattr__(model, _MARK, parallel)
    parallel.patch_optimizers_and_layers()
    return model


# The data of a training step: global batches, this rank's shard of them, or slices with as many rows on each rank.
_BATCHES, _SHARDS, _EVEN_SLICES = "batches", "shards", "even slices"


class _Parallel:
    """The changed methods of a model."""

    def __init__(self, model: KerasModel) -> None:
        self._model = model
        self._is_of_strategy = hasattr(tf_keras.strategy_of_model(model).extended, "gradients_are_reduced")
        self._expected, self._logs_every_step = _BATCHES, False
        self._fit, self._train_step, self._train_on_batch = model.fit, model.train_step, model.train_on_batch
        model.fit, model.train_on_batch = self.fit, self.train_on_batch
        if not self._is_of_strategy:
            model.train_step = self.train_step

    def patch_optimizers_and_layers(self) -> None:
        """Change the optimizers and layers that the model has now."""
        for optimizer in self._optimizers():
            if not self._is_of_strategy or hasattr(optimizer, "apply"):  # Keras 3 clips before a strategy reduces
                distributed_optimizer(optimizer)
        if not self._is_of_strategy:
            sync_batch_norm(self._model)

    def _optimizers(self) -> list[Optimizer]:
        held = [self._model.optimizer, *vars(self._model).values()]
        return [value for value in held if isinstance(value, tf_keras.optimizer_classes())]

    def train_step(self, data: Structure) -> Logs:
        """Train on this rank's rows of a batch."""
        weight = None
        if self._expected == _BATCHES:
            data, weight = slice_and_weight_of_rank(data)
        elif self._expected == _SHARDS:
            weight = weight_of_shard(data)
        counted = None if weight is None else RowsThatCount(self._model)
        with set_step_weight(weight):
            logs = tf_keras.with_autograph_of_caller(self._train_step)(data)
        if counted is not None:
            logs = counted.restore_if_no_rows(logs, weight)
        if self._logs_every_step:
            logs = {**logs, **global_logs(logs, metric_figures(self._model))}
        return logs

    def fit(self, *args: object, **kwargs: object) -> Result:
        """Train with this rank's data and callbacks."""
        self.patch_optimizers_and_layers()
        bound = inspect.signature(self._fit).bind_partial(*args, **kwargs)
        given = _arguments_passed_to_fit(bound)
        x = given.get("x", args[0] if args else None)
        logs_every_step, expected = need_batch_metrics(given.get("callbacks")), _BATCHES
        if isinstance(x, tf.data.Dataset) and not self._is_of_strategy:
            check_is_batched(x)
            if "x" in given and have_equal_shards(x):
                expected = _EVEN_SLICES
                given["x"] = slice_each_batch(x, *rank_and_size())
            elif is_sharded(x, rank_and_size()[1]):
                expected = _SHARDS
        self._rebuild_step_if_changed(expected, logs_every_step)
        given["callbacks"] = callbacks_for_rank(given.get("callbacks"), rank_and_size()[0])
        return self._fit(*bound.args, **bound.kwargs)

    def train_on_batch(self, *args: object, **kwargs: object) -> Result:
        """Train on this rank's rows of a batch; return the metrics of all rows."""
        self.patch_optimizers_and_layers()
        self._rebuild_step_if_changed(_BATCHES, True)
        return self._train_on_batch(*args, **kwargs)

    def _rebuild_step_if_changed(self, data: str, logs_every_step: bool) -> None:
        if (self._expected, self._logs_every_step) != (data, logs_every_step):
            self._expected, self._logs_every_step = data, logs_every_step
            self._model.train_function = None  # traced for another kind of step


def _arguments_passed_to_fit(bound: inspect.BoundArguments) -> dict[str, Result]:
    """Return the arguments that Keras' fit() gets, which are in ``**kwargs`` of a subclass that passes them on."""
    parameters = bound.signature.parameters
    rest = [name for name, parameter in parameters.items() if parameter.kind == inspect.Parameter.VAR_KEYWORD]
    if "callbacks" in parameters or not rest:
        return bound.arguments
    return bound.arguments.setdefault(rest[0], {})
