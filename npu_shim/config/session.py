"""session_config: turn a session config into an NPU session config."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from npu_shim import _device, _tf, _tf_session
from npu_shim.config import graph_passes, parameter_map
from npu_shim.config.parameter_map import NPU_OPTIMIZER
from npu_shim.distributed import graph_consistency
from npu_shim.distributed.world import world_size
from npu_shim.options.check import check_session_options, check_together

if TYPE_CHECKING:
    from npu_shim._types import ConfigProto, CustomOptimizer, Graph, OptionValue, RewriterConfig, Session

COLLECTIVE_THREADS = 64  # of a graph without collectives, which may get some
FEWEST_THREADS = 8  # TensorFlow takes longer to hand an op on, the more of them are idle


def session_config(config: ConfigProto | None = None, **options: OptionValue) -> ConfigProto:
    """Return a copy of a session config that runs the graph on the NPU, or on the CPU if there is no NPU.

    The copy has one custom optimizer named ``NpuOptimizer``, the graph passes
    ``remapping`` and ``memory_optimization`` off, ``allow_soft_placement`` on
    and XLA's global jit off. Everything else stays as the user set it, such as
    device logging, other custom optimizers and the parameters of an existing
    NpuOptimizer. If several ranks train on the CPU, the session also gets its
    own threads, on which collectives wait. Applying the function twice equals
    applying it once.

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
    checked = check_session_options(options)
    result = _copy(config)
    entry = _single_entry(result.graph_options.rewrite_options)
    parameter_map.check(entry)
    if checked:
        check_together({**parameter_map.read(entry), **checked})
        parameter_map.write(entry, checked)
    graph_passes.switch_off(result)
    return with_threads(result, _tf.v1.get_default_graph())


def with_threads(config: ConfigProto, graph: Graph) -> ConfigProto:
    """Give a session enough threads of its own for collectives.

    On the CPU a collective blocks a thread while it waits for other ranks. With
    too few threads, waiting collectives block those that other ranks wait for.

    Args:
        config: changed if the job has several ranks on the CPU.
        graph: the session's graph, as far as it is built.
    Returns:
        config.
    """
    if world_size() > 1 and not _device.device().is_npu:
        known, given = graph_consistency.count(graph), config.inter_op_parallelism_threads
        if config.use_per_session_threads and given == COLLECTIVE_THREADS:
            given = 0  # set here earlier, when the graph had no collectives
        config.use_per_session_threads = True
        config.inter_op_parallelism_threads = max(
            given, max(FEWEST_THREADS, known + (os.cpu_count() or 1)) if known else COLLECTIVE_THREADS
        )
    return config


def session_option(session: Session, name: str) -> OptionValue | None:
    """Return the value of an NPU option in the config of a session, None if it is not set."""
    entry = parameter_map.find_entry(_tf_session.reported_config(session))
    return None if entry is None else parameter_map.read(entry).get(name)


def _copy(config: ConfigProto | None) -> ConfigProto:
    if config is not None and not isinstance(config, _tf.ConfigProto):
        raise TypeError(
            f"config={config!r} is {type(config).__name__}, but must be a tf.compat.v1.ConfigProto or None. "
            "Write config=tf.compat.v1.ConfigProto(...)."
        )
    result = _tf.ConfigProto()
    if config is not None:
        result.CopyFrom(config)
    return result


def _single_entry(rewrite: RewriterConfig) -> CustomOptimizer:
    """Return the NpuOptimizer entry. Add one if there is none; merge several, of which the last value wins."""
    found = [c for c in rewrite.custom_optimizers if c.name == NPU_OPTIMIZER]
    if not found:
        return rewrite.custom_optimizers.add(name=NPU_OPTIMIZER)
    if len(found) == 1:
        return found[0]
    for later in found[1:]:
        for name, value in later.parameter_map.items():
            found[0].parameter_map[name].CopyFrom(value)
    kept: list[CustomOptimizer] = []
    for custom in rewrite.custom_optimizers:
        if custom.name != NPU_OPTIMIZER or not any(k.name == NPU_OPTIMIZER for k in kept):
            kept.append(type(custom).FromString(custom.SerializeToString()))
    del rewrite.custom_optimizers[:]
    rewrite.custom_optimizers.extend(kept)
    return next(c for c in rewrite.custom_optimizers if c.name == NPU_OPTIMIZER)
