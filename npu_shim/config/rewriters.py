"""The vendor's functions that rewrite configs, on top of session_config."""

from __future__ import annotations

from npu_shim._host import host_device
from npu_shim._tensorflow import tf_api
from npu_shim._tensorflow.types import ConfigProto, Message, OptionValue, RunConfig
from npu_shim.config.session import copy_message, session_config


def npu_config_proto(config_proto: ConfigProto | None = None, **options: OptionValue) -> ConfigProto:
    """Return ``session_config(config_proto, **options)``, a copy of the config that runs on the NPU.

    Args:
        config_proto: a ConfigProto or None; it is not changed.
        **options: NPU options, such as ``precision_mode="allow_mix_precision"``. The vendor's function has none.
    Returns:
        A new ConfigProto.
    Raises:
        TypeError: for another type.
        ValueError: if an option is unknown, not allowed, or contradicts another.
    """
    return session_config(config_proto, **options)


def npu_graph_options(graph_options: Message | None = None) -> Message:
    """Return a copy of GraphOptions with XLA's global jit off.

    Args:
        graph_options: a tf.compat.v1.GraphOptions or None; it is not changed.
    Returns:
        A new GraphOptions.
    Raises:
        TypeError: for another type.
    """
    result = copy_message(graph_options, tf_api.v1.GraphOptions, "graph_options")
    result.optimizer_options.global_jit_level = tf_api.v1.OptimizerOptions.OFF
    return result


def npu_optimizer_options(optimizer_options: Message | None = None) -> Message:
    """Return a copy of OptimizerOptions with XLA's global jit off.

    Args:
        optimizer_options: a tf.compat.v1.OptimizerOptions or None; it is not changed.
    Returns:
        A new OptimizerOptions.
    Raises:
        TypeError: for another type.
    """
    result = copy_message(optimizer_options, tf_api.v1.OptimizerOptions, "optimizer_options")
    result.global_jit_level = tf_api.v1.OptimizerOptions.OFF
    return result


def npu_run_config_init(run_config: RunConfig | None = None) -> RunConfig:
    """Return a copy of a RunConfig whose sessions run on the NPU.

    Use it for run configs that are passed as values, and for canned estimators:
    ``tf.estimator.DNNClassifier(..., config=npu_run_config_init(run_config=cfg))``.

    Args:
        run_config: a tf.estimator.RunConfig (or subclass) or None; it is not changed.
    Returns:
        A new RunConfig of the same class.
    Raises:
        TypeError: for another type.
        RuntimeError: if TensorFlow has no tf.estimator.
    """
    api = tf_api.estimator_namespace()
    if api is None:
        raise RuntimeError(tf_api.no_estimator_text("npu_run_config_init"))
    if run_config is None:
        run_config = api.RunConfig()
    if not isinstance(run_config, api.RunConfig):
        raise TypeError(
            f"run_config={run_config!r} is {type(run_config).__name__}, but must be a tf.estimator.RunConfig or None."
        )
    return run_config.replace(session_config=session_config(estimator_base_config(run_config)))


def estimator_base_config(run_config: RunConfig) -> ConfigProto:
    """Return the session config that an Estimator uses for this run config; on the NPU that of the vendor's package."""
    if run_config.session_config is not None:
        return run_config.session_config
    config = tf_api.ConfigProto()
    if not host_device.is_npu():
        config.graph_options.rewrite_options.meta_optimizer_iterations = tf_api.RewriterConfig.ONE
    return config
