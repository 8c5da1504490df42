"""session_config: turn a session config into an NPU session config."""

from __future__ import annotations

from npu_shim._tensorflow import tf_api, tf_session
from npu_shim._tensorflow.types import ConfigProto, CustomOptimizer, Message, OptionValue, RewriterConfig, Session
from npu_shim.config import graph_passes, parameter_map
from npu_shim.config.parameter_map import NPU_OPTIMIZER
from npu_shim.options.check import check_combinations, checked_session_options


def session_config(config: ConfigProto | None = None, **options: OptionValue) -> ConfigProto:
    """Return a copy of a session config that runs the graph on the NPU, or on the CPU if there is no NPU.

    The copy has one custom optimizer named ``NpuOptimizer``, the graph passes
    ``remapping`` and ``memory_optimization`` off, ``allow_soft_placement`` on
    and XLA's global jit off. Everything else stays as the user set it, such as
    other custom optimizers and the parameters of an existing NpuOptimizer.
    Applying the function twice equals applying it once. On the NPU, device
    logging is off, and a config that has an NpuOptimizer entry already keeps its
    ``memory_optimization``, both as in the vendor's package.

    On the NPU, the vendor's graph pass reads the entry. On the CPU, TensorFlow
    skips it at no cost, and sessions of install(), NPUEstimator and Keras run
    with the graph passes as the user set them.

    Args:
        config: a tf.compat.v1.ConfigProto to start from, or None. It is not changed.
        **options: NPU options by their parameter_map name, such as
            ``precision_mode="allow_mix_precision"``. They override the values
            in the entry. None counts as not given.
    Returns:
        A new ConfigProto.
    Raises:
        TypeError: if config is not a ConfigProto, or an option has the wrong type.
        ValueError: if an option is unknown, not allowed, or contradicts another.
    """
    checked = checked_session_options(options)
    result = copy_message(config, tf_api.ConfigProto, "config")
    has_own_entry = parameter_map.find_entry(result) is not None
    entry = _merge_into_one_entry(result.graph_options.rewrite_options)
    parameter_map.check_entry(entry)
    if checked:
        check_combinations({**parameter_map.read_options(entry), **checked})
        parameter_map.write_options(entry, checked)
    graph_passes.warn_of_missing_passes(result)
    graph_passes.turn_off_passes(result, has_own_entry)
    return result


def session_option(session: Session, name: str) -> OptionValue | None:
    """Return the value of an NPU option in the config of a session, None if it is not set."""
    entry = parameter_map.find_entry(tf_session.reported_config(session))
    return None if entry is None else parameter_map.read_options(entry).get(name)


def config_without_npu_optimizer(config: ConfigProto) -> ConfigProto:
    """Return a copy of a session config without its NpuOptimizer entries."""
    result = copy_message(config, tf_api.ConfigProto, "config")
    rewrite = result.graph_options.rewrite_options
    kept = [custom for custom in rewrite.custom_optimizers if custom.name != NPU_OPTIMIZER]
    copies = [type(custom).FromString(custom.SerializeToString()) for custom in kept]
    del rewrite.custom_optimizers[:]
    rewrite.custom_optimizers.extend(copies)
    return result


def copy_message(message: Message | None, kind: type[Message], name: str) -> Message:
    """Return a copy of an argument that is a message, or an empty message for None.

    Raises:
        TypeError: it is something else.
    """
    result = kind()
    if message is not None:
        if not isinstance(message, kind):
            right = f"tf.compat.v1.{kind.__name__}"
            raise TypeError(
                f"{name}={message!r} is {type(message).__name__}, but must be a {right} or None. "
                f"Write {name}={right}(...)."
            )
        result.CopyFrom(message)
    return result


def _merge_into_one_entry(rewrite: RewriterConfig) -> CustomOptimizer:
    """Return the NpuOptimizer entry. Add one if there is none; merge several, of which the last value wins."""
    entries = [c for c in rewrite.custom_optimizers if c.name == NPU_OPTIMIZER]
    if not entries:
        return rewrite.custom_optimizers.add(name=NPU_OPTIMIZER)
    if len(entries) == 1:
        return entries[0]
    for later in entries[1:]:
        for name, value in later.parameter_map.items():
            entries[0].parameter_map[name].CopyFrom(value)
    kept: list[CustomOptimizer] = []
    for custom in rewrite.custom_optimizers:
        if custom.name != NPU_OPTIMIZER or not any(k.name == NPU_OPTIMIZER for k in kept):
            kept.append(type(custom).FromString(custom.SerializeToString()))
    del rewrite.custom_optimizers[:]
    rewrite.custom_optimizers.extend(kept)
    return next(c for c in rewrite.custom_optimizers if c.name == NPU_OPTIMIZER)
