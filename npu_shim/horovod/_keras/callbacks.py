"""Horovod's Keras callbacks."""

from __future__ import annotations

from typing import Callable, Iterable

import numpy as np

from npu_shim._tensorflow import tf_api
from npu_shim._tensorflow.tf_api import tf
from npu_shim._tensorflow.types import Logs, Operation, Optimizer, Tensor, Value, Variable
from npu_shim.horovod.tensorflow.elastic import optimizer_variables
from npu_shim.horovod.tensorflow.functions import broadcast_variables
from npu_shim.horovod.tensorflow.mpi_ops import rank, size
from npu_shim.horovod.tensorflow.reductions import allreduce
from npu_shim.horovod.tensorflow.util import _executing_eagerly
from npu_shim.horovod.tensorflow.variables import broadcast_global_variables


class BroadcastGlobalVariablesCallback(tf.keras.callbacks.Callback):
    """Broadcast the variables of model and optimizer after the first batch, when all of them exist.

    Args:
        root_rank: the rank whose variables are sent.
        device: unused: the device of the variables.
        local_variables: a variable or several that stay as they are; not in graphs.
    """

    def __init__(
        self, root_rank: int, device: str = "", local_variables: Iterable[Variable] | Variable | None = None
    ) -> None:
        super().__init__()
        self.root_rank, self.broadcast_done = root_rank, False
        listed = [] if local_variables is None else local_variables
        self._local = list(listed) if isinstance(listed, (list, tuple, set)) else [listed]

    def register_local_var(self, var: Variable) -> None:
        """Leave a variable as it is."""
        self._local.append(var)

    def on_batch_end(self, batch: int, logs: Logs = None) -> None:
        """Broadcast once."""
        if self.broadcast_done:
            return
        if not _executing_eagerly():
            tf_api.keras_backend().get_session().run(broadcast_global_variables(self.root_rank))
        else:
            local = set(map(id, self._local))
            sent = [variable for variable in self.model.variables if id(variable) not in local]
            optimizer = getattr(self.model, "optimizer", None)
            sent += [] if optimizer is None else optimizer_variables(optimizer)
            broadcast_variables(sent, self.root_rank)
        self.broadcast_done = True


class MetricAverageCallback(tf.keras.callbacks.Callback):
    """Replace each metric of an epoch by its mean over the ranks. It stands before the callbacks that read metrics.

    Args:
        device: unused: the device of the metrics.
    """

    def __init__(self, device: str = "") -> None:
        super().__init__()
        self._ops: dict[str, tuple[Tensor, Operation]] = {}

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        """Average the metrics, in the order of their names."""
        if logs:
            for metric, value in sorted(logs.items()):
                logs[metric] = self._average_over_ranks(metric, value)

    def _average_over_ranks(self, metric: str, value: Value) -> Value:
        if _executing_eagerly():
            return allreduce(tf.constant(value, tf.float32), name=f"MetricAverage.{metric}").numpy()
        session = tf_api.keras_backend().get_session()
        if metric not in self._ops:
            with session.graph.as_default():
                fed = tf_api.v1.placeholder(tf.float32, [])
                self._ops[metric] = fed, allreduce(fed, name=f"MetricAverage.{metric}")
        fed, mean = self._ops[metric]
        return session.run(mean, {fed: value})


class LearningRateScheduleCallback(tf.keras.callbacks.Callback):
    """Set the learning rate to initial_lr * multiplier(epoch) within a range of epochs.

    With momentum correction the momentum of the batches after a change is multiplied by new / old rate (Goyal et al.,
    Accurate, Large Minibatch SGD, 2017), where the optimizer's momentum is a variable: Keras before 2.11.

    Args:
        initial_lr: the learning rate before it is multiplied.
        multiplier: a function of the epoch, which is fractional without staircase; or a number m for
            m ** (epoch - start_epoch).
        start_epoch: the first epoch of the range.
        end_epoch: the epoch after the range; None without an end.
        staircase: True to set the rate once for each epoch, False for each batch.
        momentum_correction: True to correct the momentum.
        steps_per_epoch: batches of an epoch; those of fit() when None.
    """

    def __init__(
        self,
        initial_lr: float,
        multiplier: float | Callable[[float], float],
        start_epoch: int = 0,
        end_epoch: int | None = None,
        staircase: bool = True,
        momentum_correction: bool = True,
        steps_per_epoch: int | None = None,
    ) -> None:
        super().__init__()
        if initial_lr is None:
            raise ValueError("initial_lr=None is not allowed. Pass the learning rate before it is multiplied.")
        self.initial_lr, self.start_epoch, self.end_epoch = initial_lr, start_epoch, end_epoch
        self.staircase, self.momentum_correction = staircase, momentum_correction
        self.steps_per_epoch, self.current_epoch = steps_per_epoch, 0
        self._restored_momentum: float | None = None
        self.multiplier: Callable[[float], float]
        if isinstance(multiplier, (int, float)):
            factor = float(multiplier)
            self.multiplier = lambda epoch: factor ** (epoch - start_epoch)
        else:
            self.multiplier = multiplier

    def on_train_begin(self, logs: Logs = None) -> None:
        """Find the number of batches of an epoch."""
        if self.staircase or self.steps_per_epoch:
            return
        params = self.params
        if params.get("steps"):
            self.steps_per_epoch = params["steps"]
        elif params.get("samples") and params.get("batch_size"):
            self.steps_per_epoch = params["samples"] // params["batch_size"]
        else:
            raise ValueError(f"{type(self).__name__} does not know the batches of an epoch. Pass steps_per_epoch.")

    def on_epoch_begin(self, epoch: int, logs: Logs = None) -> None:
        """Keep the epoch."""
        self.current_epoch = epoch

    def on_batch_begin(self, batch: int, logs: Logs = None) -> None:
        """Set the learning rate if it is time."""
        epoch = self.current_epoch
        if epoch < self.start_epoch or (self.end_epoch is not None and epoch >= self.end_epoch):
            return
        if not self.staircase:
            self._set_learning_rate(epoch + batch / float(self.steps_per_epoch or 1))
        elif batch == 0:
            self._set_learning_rate(epoch)

    def on_batch_end(self, batch: int, logs: Logs = None) -> None:
        """Take back the momentum."""
        if self._restored_momentum is not None:
            _write_hyperparameter(self.model.optimizer, "momentum", self._restored_momentum)
            self._restored_momentum = None

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        """Log the learning rate as lr."""
        if logs is not None:
            logs["lr"] = _read_hyperparameter(self.model.optimizer, "learning_rate")

    def _set_learning_rate(self, epoch: float) -> None:
        optimizer = self.model.optimizer
        old, new = _read_hyperparameter(optimizer, "learning_rate"), self.initial_lr * self.multiplier(epoch)
        _write_hyperparameter(optimizer, "learning_rate", new)
        momentum = getattr(optimizer, "momentum", None)
        if self.momentum_correction and old and momentum is not None and hasattr(momentum, "assign"):
            self._restored_momentum = _read_hyperparameter(optimizer, "momentum")
            _write_hyperparameter(optimizer, "momentum", self._restored_momentum * new / old)


class LearningRateWarmupCallback(LearningRateScheduleCallback):
    """Raise the learning rate from initial_lr / size to initial_lr over the first epochs.

    lr(epoch) = initial_lr / size * (epoch * (size - 1) / warmup_epochs + 1), with fractional epochs. Source: Goyal et
    al., Accurate, Large Minibatch SGD, 2017.

    Args:
        initial_lr: the learning rate after the warm-up.
        warmup_epochs: epochs of the warm-up.
        momentum_correction: as for LearningRateScheduleCallback.
        steps_per_epoch: as for LearningRateScheduleCallback.
        verbose: 1 to print a line after the warm-up.
    """

    def __init__(
        self,
        initial_lr: float,
        warmup_epochs: int = 5,
        momentum_correction: bool = True,
        steps_per_epoch: int | None = None,
        verbose: int = 0,
    ) -> None:
        def multiplier(epoch: float) -> float:
            reached = epoch + 1.0 / float(self.steps_per_epoch or 1)  # the rate at the end of an epoch is a round one
            return (reached * (size() - 1) / warmup_epochs + 1) / size()

        super().__init__(initial_lr, multiplier, 0, warmup_epochs, False, momentum_correction, steps_per_epoch)
        self.verbose = verbose

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        """Print the learning rate after the last epoch of the warm-up."""
        super().on_epoch_end(epoch, logs)
        if self.end_epoch is not None and epoch == self.end_epoch - 1 and self.verbose and rank() == 0:
            new = _read_hyperparameter(self.model.optimizer, "learning_rate")
            print(f"\nEpoch {epoch + 1}: finished gradual learning rate warmup to {new:g}.")


class BestModelCheckpoint(tf.keras.callbacks.ModelCheckpoint):
    """tf.keras.callbacks.ModelCheckpoint that keeps the best model; set its ``filepath`` before training.

    Args:
        monitor, verbose, save_weights_only, mode, save_freq: as for tf.keras.callbacks.ModelCheckpoint.
    """

    def __init__(
        self,
        monitor: str = "val_loss",
        verbose: int = 0,
        save_weights_only: bool = False,
        mode: str = "auto",
        save_freq: str | int = "epoch",
    ) -> None:
        suffix = ".weights.h5" if save_weights_only else ".keras"
        super().__init__(
            filepath="best" + suffix,
            monitor=monitor,
            verbose=verbose,
            save_best_only=True,
            save_weights_only=save_weights_only,
            mode=mode,
            save_freq=save_freq,
        )


def _read_hyperparameter(optimizer: Optimizer, name: str) -> float:
    value = getattr(optimizer, name)
    if _executing_eagerly() or not tf_api.has_keras_sessions():
        return float(np.array(value))
    return float(tf_api.keras_backend().get_value(value))


def _write_hyperparameter(optimizer: Optimizer, name: str, value: float) -> None:
    if _executing_eagerly() or not tf_api.has_keras_sessions():
        setattr(optimizer, name, value)
    else:
        tf_api.keras_backend().set_value(getattr(optimizer, name), value)


__all__ = [
    "BestModelCheckpoint",
    "BroadcastGlobalVariablesCallback",
    "LearningRateScheduleCallback",
    "LearningRateWarmupCallback",
    "MetricAverageCallback",
]
