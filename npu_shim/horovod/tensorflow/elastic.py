"""Elastic training of TensorFlow models: states of variables and of Keras models, and the decorator ``run``."""

from __future__ import annotations

import functools
import logging
from typing import Callable, Sequence

import numpy as np

from npu_shim._tensorflow import tf_api
from npu_shim._tensorflow.tf_api import tf
from npu_shim._tensorflow.tf_keras import build_optimizer
from npu_shim._tensorflow.types import Function, KerasBackend, KerasModel, Optimizer, Result, Session, Variable
from npu_shim.distributed.collectives.errors import PeerLost, Stalled
from npu_shim.horovod.common.elastic import ObjectState, SavedState, commit_path, run_fn
from npu_shim.horovod.tensorflow.functions import broadcast_object, broadcast_object_fn, broadcast_variables
from npu_shim.horovod.tensorflow.mpi_ops import init, rank, shutdown
from npu_shim.horovod.tensorflow.util import _executing_eagerly


def run(func: Function) -> Function:
    """Return a training function that begins with the state of rank 0, after a restart with its last commit.

    The ranks of a job are fixed: a lost rank ends the job. ``npu-shim launch --max-restarts N`` starts it again.

    Args:
        func: called with a state and more arguments.
    """

    @functools.wraps(func)
    def train(state: ObjectState, *args: object, **kwargs: object) -> Result:
        try:
            return func(state, *args, **kwargs)
        except tf.errors.UnknownError as error:
            if any(lost.__name__ in error.message for lost in (PeerLost, Stalled)) and commit_path() is None:
                logging.getLogger("npu_shim").error(
                    "A rank is lost. The ranks of a job are fixed, so training cannot go on without it: start the job "
                    "with npu-shim launch --max-restarts N to restart it from the last commit."
                )
            raise

    return run_fn(train, _reset)


def _reset() -> None:
    shutdown()
    init()


class _ValuesState(ObjectState):
    """Values of variables, and named Python objects. Subclasses read and assign the variables."""

    _values: list[np.ndarray]

    def save(self) -> None:
        """Keep the values of the variables and the objects."""
        self._values = self._read_values()
        super().save()

    def restore(self) -> None:
        """Take back the values and objects that were saved last."""
        self._assign_values(self._values)
        super().restore()

    def sync(self) -> None:
        """Give all ranks the variables and objects of rank 0."""
        self._broadcast_values()
        self._values = self._read_values()
        super().sync()

    def saved(self) -> SavedState:
        """Return the values of the variables and the objects."""
        return {"values": self._values, **super().saved()}

    def load(self, saved: SavedState) -> None:
        """Take over the values and objects of another process."""
        self._values = saved["values"]
        self._assign_values(self._values)
        super().load(saved)

    def _broadcast_values(self) -> None:
        raise NotImplementedError

    def _read_values(self) -> list[np.ndarray]:
        raise NotImplementedError

    def _assign_values(self, values: Sequence[np.ndarray]) -> None:
        raise NotImplementedError


class TensorFlowState(_ValuesState):
    """Variables, and named Python objects.

    Args:
        variables: the variables; the global ones of the default graph when None.
        session: in a graph; the default session when None.
        **kwargs: Python objects by name, which are attributes of the state.
    """

    def __init__(
        self, variables: Sequence[Variable] | None = None, session: Session | None = None, **kwargs: object
    ) -> None:
        self.variables = list(variables) if variables is not None else tf_api.v1.global_variables()
        self.session = session
        if not _executing_eagerly():
            self.session = session or tf_api.v1.get_default_session()
            self._broadcast = broadcast_variables(self.variables, root_rank=0)
        self._values = self._read_values()
        in_graph = not _executing_eagerly()
        super().__init__(broadcast_object_fn(session=self.session) if in_graph else broadcast_object, rank, **kwargs)

    def _broadcast_values(self) -> None:
        if _executing_eagerly():
            broadcast_variables(self.variables, root_rank=0)
        else:
            self._session().run(self._broadcast)

    def _read_values(self) -> list[np.ndarray]:
        if _executing_eagerly():
            return [variable.numpy() for variable in self.variables]
        return self._session().run(self.variables)

    def _assign_values(self, values: Sequence[np.ndarray]) -> None:
        for variable, value in zip(self.variables, values):
            if _executing_eagerly():
                variable.assign(value)
            else:
                variable.load(value, self._session())

    def _session(self) -> Session:
        if self.session is None:
            raise ValueError("hvd.elastic.TensorFlowState in a graph needs session=, or a default session.")
        return self.session


class TensorFlowKerasState(_ValuesState):
    """A Keras model, its optimizer, and named Python objects.

    Args:
        model: a model that is built.
        optimizer: the optimizer; that of the compiled model when None.
        backend: the Keras backend, for graphs.
        **kwargs: Python objects by name, which are attributes of the state.
    Raises:
        ValueError: the model is not built.
    """

    def __init__(
        self,
        model: KerasModel,
        optimizer: Optimizer | None = None,
        backend: KerasBackend | None = None,
        **kwargs: object,
    ) -> None:
        if not getattr(model, "built", True):
            raise ValueError("The model is not built: it has no variables yet. Call model.build(input_shape) first.")
        self.model, self.optimizer, self.backend = model, optimizer or model.optimizer, backend
        self._values = self._read_values()
        if _executing_eagerly():
            bcast_object: Callable[[Result], Result] = broadcast_object
        else:
            self._broadcast = broadcast_variables(tf_api.v1.global_variables(), root_rank=0)
            bcast_object = broadcast_object_fn(session=self._keras_session())
        super().__init__(bcast_object, rank, **kwargs)

    def _broadcast_values(self) -> None:
        if _executing_eagerly():
            build_optimizer(self.optimizer, self.model.trainable_variables)  # before it trains, a rank has no slots
            broadcast_variables(self._variables(), root_rank=0)
        else:
            self._keras_session().run(self._broadcast)

    def load(self, saved: SavedState) -> None:
        """Take over the values and objects of another process."""
        if _executing_eagerly() and len(saved["values"]) > len(self._variables()):
            build_optimizer(self.optimizer, self.model.trainable_variables)
        super().load(saved)

    def _variables(self) -> list[Variable]:
        return list(self.model.variables) + optimizer_variables(self.optimizer)

    def _read_values(self) -> list[np.ndarray]:
        if _executing_eagerly():
            return [np.array(variable) for variable in self._variables()]
        return list(tf_api.keras_backend().batch_get_value(self._variables()))

    def _assign_values(self, values: Sequence[np.ndarray]) -> None:
        if _executing_eagerly():
            for variable, value in zip(self._variables(), values):
                variable.assign(value)
        else:
            tf_api.keras_backend().batch_set_value(list(zip(self._variables(), values)))

    def _keras_session(self) -> Session:
        return (self.backend or tf_api.keras_backend()).get_session()


def optimizer_variables(optimizer: Optimizer) -> list[Variable]:
    """Return the variables of a Keras optimizer of any version."""
    if hasattr(optimizer, "weights") and not _executing_eagerly():
        return list(optimizer.weights)
    variables = optimizer.variables  # a method before Keras 2.11
    return list(variables() if callable(variables) else variables)


__all__ = ["TensorFlowKerasState", "TensorFlowState", "run"]
