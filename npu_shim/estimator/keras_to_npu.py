"""Make an NPUEstimator from a Keras model."""

from __future__ import annotations

import warnings
from typing import Callable

from npu_shim._host import host_device
from npu_shim._tensorflow import tf_api, tf_estimator, tf_keras
from npu_shim._tensorflow.types import KerasModel, RunConfig, Tensor
from npu_shim.estimator.npu_estimator import NPUEstimator


def model_to_npu_estimator(
    keras_model: KerasModel | None = None,
    keras_model_path: str | None = None,
    custom_objects: dict[str, type | Callable[..., Tensor]] | None = None,
    model_dir: str | None = None,
    checkpoint_format: str = "saver",
    config: RunConfig | None = None,
    job_start_file: str = "",
) -> NPUEstimator:
    """Make an NPUEstimator from a compiled Keras model, including its weights.

    Args:
        keras_model, keras_model_path, custom_objects, model_dir,
            checkpoint_format: as for tf.keras.estimator.model_to_estimator.
        config: an NPURunConfig, or None for its defaults.
        job_start_file: as for NPUEstimator.
    Returns:
        An NPUEstimator.
    Raises:
        RuntimeError: if TensorFlow has no tf.estimator.
        ValueError: as model_to_estimator and NPUEstimator do.
    """
    api = tf_api.estimator_namespace()
    if api is None:
        raise RuntimeError(tf_api.no_estimator_text("model_to_npu_estimator"))
    if keras_model is not None and not tf_keras.is_graph_of_layers(keras_model):
        text = f"The NPU converts functional and Sequential models only. Build {keras_model.name} as one of them."
        warnings.warn(text, UserWarning, stacklevel=2)
    plain = tf_api.v1.keras.estimator.model_to_estimator(
        keras_model=keras_model,
        keras_model_path=keras_model_path,
        custom_objects=custom_objects,
        model_dir=model_dir,
        config=api.RunConfig(model_dir=model_dir) if host_device.is_npu() else config,  # as the vendor
        checkpoint_format=checkpoint_format,
    )
    return NPUEstimator(
        model_fn=plain.model_fn,
        model_dir=plain.model_dir,
        config=config,
        job_start_file=job_start_file,
        warm_start_from=tf_estimator.warm_start_settings(plain),
    )
