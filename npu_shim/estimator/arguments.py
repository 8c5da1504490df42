"""The arguments of NPUEstimator: its run config, the job start file, and choices."""

from __future__ import annotations

import functools
import json
from typing import Callable, Sequence

from npu_shim._tensorflow import tf_api
from npu_shim._tensorflow.types import Estimator, EstimatorModule, RunConfig
from npu_shim.config.parameter_map import find_entry
from npu_shim.config.run_config import NPURunConfig, from_run_config

_API: EstimatorModule = tf_api.estimator_namespace()
_TPU = ("use_tpu", "train_batch_size", "eval_batch_size", "predict_batch_size", "batch_axis", "eval_on_tpu")


def wrap_to_refuse_tpu_arguments(init: Callable[..., None]) -> Callable[..., None]:
    """Decorate the constructor of NPUEstimator: the error for an argument of TPUEstimator has the fix."""

    @functools.wraps(init)
    def checked(self: Estimator, *args: object, **kwargs: object) -> None:
        refused = [name for name in _TPU if name in kwargs]
        if refused:
            raise TypeError(
                f"NPUEstimator has no argument {refused[0]!r}, which is one of TPUEstimator. "
                f"Remove {', '.join(refused)}. "
                "A model_fn or input_fn that reads params['batch_size'] needs params={'batch_size': ...}."
            )
        init(self, *args, **kwargs)

    return checked


def as_npu_run_config(config: RunConfig | None) -> NPURunConfig:
    """Return the NPURunConfig of an NPUEstimator.

    Args:
        config: an NPURunConfig; None for all defaults; or a RunConfig from npu_run_config_init.
    Returns:
        An NPURunConfig.
    Raises:
        ValueError: if config is a plain RunConfig, or of another type.
    """
    if config is None:
        config = NPURunConfig()
    elif not isinstance(config, NPURunConfig):
        if not isinstance(config, _API.RunConfig) or find_entry(config.session_config) is None:
            raise ValueError(
                f"config={config!r} is {type(config).__name__}, but NPUEstimator needs an NPURunConfig. Write "
                "config=NPURunConfig(...) with the same arguments, or config=npu_run_config_init(run_config=...)."
            )
        config = from_run_config(config)
    return config


def check_job_start_file(name: str) -> None:
    """Read a job start file, which replaces JOB_ID.

    Raises:
        ValueError: if the file does not exist or is not a JSON object.
    """
    try:
        with open(name, encoding="utf-8") as file:
            content = json.load(file)
    except (OSError, ValueError, RecursionError) as error:
        raise ValueError(
            f"job_start_file={name!r} cannot be read ({error}). Give a JSON file, or omit the argument."
        ) from error
    if not isinstance(content, dict):
        raise ValueError(f"job_start_file={name!r} holds {type(content).__name__}, but must hold a JSON object.")


def check_choice(name: str, value: object, allowed: Sequence[str]) -> None:
    """Raise ValueError if a value is not one of those allowed."""
    if value not in allowed:
        raise ValueError(f"{name}={value!r} is not allowed: it must be one of {', '.join(map(repr, allowed))}.")
