"""Keras callbacks for elastic training."""

from __future__ import annotations

from npu_shim._tensorflow.tf_api import tf
from npu_shim._tensorflow.types import KerasModel, Logs, Optimizer, Structure
from npu_shim.horovod.tensorflow.elastic import TensorFlowKerasState, run as run


class KerasState(TensorFlowKerasState):
    """A Keras model, its optimizer, and named Python objects.

    Args:
        model: a model that is built.
        optimizer: the optimizer; that of the compiled model when None.
        **kwargs: Python objects by name, which are attributes of the state.
    """

    def __init__(self, model: KerasModel, optimizer: Optimizer | None = None, **kwargs: object) -> None:
        super().__init__(model, optimizer, **kwargs)


class _StateCallback(tf.keras.callbacks.Callback):
    """A callback of a state."""

    def __init__(self, state: Structure) -> None:
        super().__init__()
        self.state = state


class CommitStateCallback(_StateCallback):
    """Commit a state after every few batches, and after each epoch.

    Args:
        state: the state.
        batches_per_commit: batches between two commits.
    """

    def __init__(self, state: Structure, batches_per_commit: int = 1) -> None:
        super().__init__(state)
        self.batches_per_commit = self.batches_remaining = batches_per_commit

    def on_train_begin(self, logs: Logs = None) -> None:
        """Count from the start, which all ranks share."""
        self.batches_remaining = self.batches_per_commit

    def on_batch_end(self, batch: int, logs: Logs = None) -> None:
        """Commit if it is time."""
        self.batches_remaining -= 1
        if self.batches_remaining == 0:
            self.state.commit()
            self.batches_remaining = self.batches_per_commit

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        """Commit."""
        self.state.commit()


class UpdateBatchStateCallback(_StateCallback):
    """Keep the number of the batch in ``state.batch``; after a restart the first epoch does the batches that are left.

    Args:
        state: a state with the object batch.
    """

    def __init__(self, state: Structure) -> None:
        super().__init__(state)
        self.steps_per_epoch: int | None = None

    def on_train_begin(self, logs: Logs = None) -> None:
        """Read the steps per epoch anew."""
        self.steps_per_epoch = None

    def on_epoch_begin(self, epoch: int, logs: Logs = None) -> None:
        """Shorten the epoch by the batches that are done."""
        if self.params.get("steps"):
            if self.steps_per_epoch is None:
                self.steps_per_epoch = self.params["steps"]
            self.params["steps"] = self.steps_per_epoch - self.state.batch

    def on_batch_end(self, batch: int, logs: Logs = None) -> None:
        """Keep the number of the batch."""
        self.state.batch = batch

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        """Begin the next epoch with batch 0."""
        self.state.batch = 0


class UpdateEpochStateCallback(_StateCallback):
    """Keep the number of finished epochs, those before a restart included, in ``state.epoch``.

    Args:
        state: a state with the object epoch.
    """

    def __init__(self, state: Structure) -> None:
        super().__init__(state)
        self.initial_epoch: int = self.state.epoch

    def on_train_begin(self, logs: Logs = None) -> None:
        """Count from the epoch of the state."""
        self.initial_epoch = self.state.epoch

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        """Count the epoch."""
        self.state.epoch = self.initial_epoch + epoch + 1


__all__ = ["CommitStateCallback", "KerasState", "UpdateBatchStateCallback", "UpdateEpochStateCallback", "run"]
