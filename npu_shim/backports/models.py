"""Methods of a compiled Keras model that TensorFlow 2.6 lacks, as functions of the model."""

from __future__ import annotations

from npu_shim._tensorflow import tf_keras
from npu_shim._tensorflow.types import KerasModel, Structure, Tensor, Value


def compute_loss(
    model: KerasModel,
    x: Structure = None,
    y: Structure = None,
    y_pred: Structure = None,
    sample_weight: Structure = None,
) -> Tensor:
    """Return the loss of a batch: the sum of the compiled losses and of those that layers add.

    Args:
        model: the compiled Keras model.
        x: the inputs, which the loss does not use.
        y: the targets, a tensor or a nested structure of tensors.
        y_pred: the predictions, of the same structure.
        sample_weight: a weight of each example, or None.
    Returns:
        The loss, a scalar. It is model.compute_loss(x, y, y_pred, sample_weight) where the model has this method.
    """
    if hasattr(model, "compute_loss"):
        return model.compute_loss(x, y, y_pred, sample_weight)
    return model.compiled_loss(y, y_pred, sample_weight, regularization_losses=model.losses)


def get_metrics_result(model: KerasModel) -> dict[str, Value]:
    """Return the results of the metrics of a Keras model by their names.

    A metric with a dictionary of results, such as a nested one, gives its own names.
    """
    return model.get_metrics_result() if hasattr(model, "get_metrics_result") else tf_keras.metric_results(model)


def compute_metrics(
    model: KerasModel, x: Structure, y: Structure, y_pred: Structure, sample_weight: Structure = None
) -> dict[str, Value]:
    """Update the compiled metrics of a Keras model and return the results of all its metrics by their names.

    Args:
        model: the compiled Keras model.
        x: the inputs, which the metrics do not use.
        y: the targets, a tensor or a nested structure of tensors.
        y_pred: the predictions, of the same structure.
        sample_weight: a weight of each example, or None.
    """
    if hasattr(model, "compute_metrics"):
        return model.compute_metrics(x, y, y_pred, sample_weight)
    model.compiled_metrics.update_state(y, y_pred, sample_weight)
    return get_metrics_result(model)
