"""The vendor's names for rewriting configs; each is thin over session_config."""

from __future__ import annotations

from typing import Any

from npu_shim import _tf
from npu_shim.config.session import session_config


def npu_config_proto(config_proto: _tf.ConfigProto | None = None) -> _tf.ConfigProto:
    """``session_config(config_proto)``: a copy of the config that runs on the NPU.

    Args:
        config_proto: a ConfigProto or None; it is not changed.
    Returns:
        A new ConfigProto.
    Raises:
        TypeError: config_proto is something else.
    """
    return session_config(config_proto)


def npu_graph_options(graph_options: Any | None = None) -> Any:
    """A copy of GraphOptions with XLA's global jit off.

    Args:
        graph_options: a tf.compat.v1.GraphOptions or None; it is not changed.
    Returns:
        A new GraphOptions.
    Raises:
        TypeError: graph_options is something else.
    """
    result = _copy(graph_options, _tf.v1.GraphOptions, "graph_options")
    result.optimizer_options.global_jit_level = _tf.v1.OptimizerOptions.OFF
    return result


def npu_optimizer_options(optimizer_options: Any | None = None) -> Any:
    """A copy of OptimizerOptions with XLA's global jit off.

    Args:
        optimizer_options: a tf.compat.v1.OptimizerOptions or None; it is not changed.
    Returns:
        A new OptimizerOptions.
    Raises:
        TypeError: optimizer_options is something else.
    """
    result = _copy(optimizer_options, _tf.v1.OptimizerOptions, "optimizer_options")
    result.global_jit_level = _tf.v1.OptimizerOptions.OFF
    return result


def npu_run_config_init(run_config: Any | None = None) -> Any:
    """A copy of a RunConfig whose sessions run on the NPU.

    For a run config that only arrives as a value, and for canned estimators:
    ``tf.estimator.DNNClassifier(..., config=npu_run_config_init(run_config=cfg))``.

    Args:
        run_config: a tf.estimator.RunConfig (or subclass) or None; it is not changed.
    Returns:
        A new RunConfig of the same class.
    Raises:
        TypeError: run_config is something else.
        RuntimeError: this TensorFlow has no tf.estimator.
    """
    api = _tf.estimator()
    if api is None:
        raise RuntimeError(_tf.no_estimator_text("npu_run_config_init"))
    if run_config is None:
        run_config = api.RunConfig()
    if not isinstance(run_config, api.RunConfig):
        raise TypeError(
            f"run_config={run_config!r} is {type(run_config).__name__}, but must be a tf.estimator.RunConfig or None."
        )
    return run_config.replace(session_config=session_config(estimator_base_config(run_config)))


def estimator_base_config(run_config: Any) -> _tf.ConfigProto:
    """The session config an Estimator would use for this run config."""
    if run_config.session_config is not None:
        return run_config.session_config
    config = _tf.ConfigProto(allow_soft_placement=True)
    config.graph_options.rewrite_options.meta_optimizer_iterations = _tf.RewriterConfig.ONE
    return config


def _copy(given: Any | None, kind: type, name: str) -> Any:
    if given is not None and not isinstance(given, kind):
        raise TypeError(f"{name}={given!r} is {type(given).__name__}, but must be a {kind.__name__} or None.")
    result = kind()
    if given is not None:
        result.CopyFrom(given)
    return result
