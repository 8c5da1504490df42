"""The metrics of a Keras model over the rows of all ranks."""

from __future__ import annotations

from typing import Dict, Mapping, NamedTuple

from npu_shim._tensorflow import tf_distribute, tf_keras
from npu_shim._tensorflow.tf_api import tf
from npu_shim._tensorflow.types import KerasModel, Tensor, Value, Variable
from npu_shim.npu_device.distribute.hccl import all_reduce

Numbers = Dict[str, Tensor]


class Figures(NamedTuple):
    """Values of the metrics of a model, by their names.

    Attributes:
        own: of the rows of this rank.
        of_all: of the rows of all ranks.
    """

    own: Numbers
    of_all: Numbers


def metric_figures(model: KerasModel) -> Figures:
    """Return the figures of the metrics that exist. The ranks call it together, in eager code or while a step is built.

    The variables of metrics are added up over the ranks, as tf.distribute does, so any metric of Keras is that of one
    process: sum(total_r) / sum(count_r) for a mean, with the total and the count of rank r. In the scope of a strategy,
    which adds them up itself, there are no figures.
    """
    variables = metric_variables(model)
    if any(isinstance(variable, tf_distribute.DistributedValues) for variable in variables):
        return Figures({}, {})
    values = [tf.identity(variable) for variable in variables]
    own = _numeric_logs(tf_keras.metric_results(model))
    for variable, total in zip(variables, all_reduce(values, "sum")):
        variable.assign(total)
    of_all = _numeric_logs(tf_keras.metric_results(model))
    for variable, value in zip(variables, values):
        variable.assign(value)
    return Figures(own, of_all)


def global_logs(logs: Mapping[str, Value], metric_figures: Figures) -> Numbers:
    """Return the scalars of logs over all ranks. The ranks call it together.

    A log with the figure of a metric becomes that of all ranks, and another one the mean over the ranks.
    """
    given = _numeric_logs(logs)
    if not given:
        return {}
    names = sorted(given)
    of_metrics = [tf.cast(_is_equal(given[name], metric_figures.own.get(name)), tf.float32) for name in names]
    means = all_reduce(tf.stack([*(given[name] for name in names), *of_metrics]))
    return {
        name: tf.where(means[len(names) + index] == 1.0, metric_figures.of_all.get(name, 0.0), means[index])
        for index, name in enumerate(names)
    }


class RowsThatCount:
    """The metrics of a step in which a rank without rows trains on a row of another rank.

    Args:
        model: a model before the step.
    """

    def __init__(self, model: KerasModel) -> None:
        self._model = model
        self._before = {id(variable): tf.identity(variable) for variable in metric_variables(model)}

    def restore_if_no_rows(self, logs: Mapping[str, Value], weight: Tensor) -> dict[str, Value]:
        """Restore the metrics if the weight of the rows is 0; those that the step has made begin with zeros.

        Returns:
            The logs of the step, with the figures of the restored metrics.
        """
        counted = _numeric_logs(tf_keras.metric_results(self._model))
        for variable in metric_variables(self._model):
            before = self._before.get(id(variable), tf.zeros_like(variable))
            variable.assign(tf.where(weight > 0.0, variable, before))
        restored = _numeric_logs(tf_keras.metric_results(self._model))
        changed = {
            name: tf.where(_is_equal(value, counted[name]), restored[name], value)
            for name, value in _numeric_logs(logs).items()
            if name in counted
        }
        return {**logs, **changed}


def metric_variables(model: KerasModel) -> list[Variable]:
    """Return the numeric variables of the metrics that exist."""
    variables = tf_keras.metric_variables(model)
    return [variable for variable in variables if variable.dtype.is_floating or variable.dtype.is_integer]


def _numeric_logs(logs: Mapping[str, Value]) -> Numbers:
    tensors = {name: tf.convert_to_tensor(value) for name, value in logs.items() if not isinstance(value, (str, bytes))}
    return {
        name: tf.cast(tensor, tf.float32)
        for name, tensor in tensors.items()
        if tensor.shape.rank == 0 and (tensor.dtype.is_floating or tensor.dtype.is_integer)
    }


def _is_equal(value: Tensor, other: Tensor | None) -> Tensor:
    if other is None:
        return tf.constant(False)
    return tf.logical_or(value == other, tf.logical_and(tf.math.is_nan(value), tf.math.is_nan(other)))
