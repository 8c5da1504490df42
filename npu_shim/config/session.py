"""session_config: the one function that turns a session config into an NPU session config."""

from __future__ import annotations

import os
from typing import Any

from npu_shim import _device, _tf
from npu_shim.config import graph_passes, parameter_map
from npu_shim.config.parameter_map import NPU_OPTIMIZER
from npu_shim.distributed import graph_consistency as graph_order
from npu_shim.distributed.world import world_size
from npu_shim.options.check import check_session_options, check_together

COLLECTIVE_THREADS = 64  # of a graph without collectives, which may get some
FEWEST_THREADS = 8  # TensorFlow takes longer to hand an op on, the more of them are idle


def session_config(config: _tf.ConfigProto | None = None, **options: Any) -> _tf.ConfigProto:
    """Returns a copy of a session config that runs the graph on the NPU, and on the CPU where there is none.

    The copy has one custom optimizer named ``NpuOptimizer``, the graph passes
    ``remapping`` and ``memory_optimization`` off, ``allow_soft_placement`` on
    and XLA's global jit off. Everything else stays as the user set it: his
    device log, his own custom optimizers, the parameters of an NpuOptimizer
    that is there already. Where several ranks train without cards, the session
    also gets threads of its own for collectives to wait on. Applying it twice equals applying it once.

    On the card the vendor's graph pass reads the entry; on the CPU TensorFlow
    passes over it, which costs nothing, and a session of install(), an
    NPUEstimator or Keras has the graph passes as the user set them.

    Args:
        config: a tf.compat.v1.ConfigProto to start from, or None. It is not changed.
        **options: NPU options by their parameter_map name, such as
            ``precision_mode="allow_mix_precision"``; they win over what the
            entry has. None counts as not given.
    Returns:
        A new ConfigProto.
    Raises:
        TypeError: config is no ConfigProto, or an option has the wrong type.
        ValueError: an option is unknown, not allowed, or contradicts another.
    """
    checked = check_session_options(options)
    result = _copy(config)
    rewrite = result.graph_options.rewrite_options
    entry = _single_entry(rewrite)
    parameter_map.check(entry)
    if checked:
        check_together({**parameter_map.read(entry), **checked})
        parameter_map.write(entry, checked)
    graph_passes.switch_off(result)
    return with_threads(result, _tf.v1.get_default_graph())


def with_threads(config: _tf.ConfigProto, graph: Any) -> _tf.ConfigProto:
    """Gives a session threads enough, of its own, that collectives which wait on one rank do not keep out those which
    others wait for: without cards each takes a thread while it waits.

    Args:
        config: changed where the job has several ranks without cards.
        graph: the session's, as far as it is built.
    Returns:
        config.
    """
    if world_size() > 1 and not _device.device().is_npu:
        known, given = graph_order.count(graph), config.inter_op_parallelism_threads
        if config.use_per_session_threads and given == COLLECTIVE_THREADS:
            given = 0  # from here, when less was known
        config.use_per_session_threads = True
        config.inter_op_parallelism_threads = max(
            given, max(FEWEST_THREADS, known + (os.cpu_count() or 1)) if known else COLLECTIVE_THREADS
        )
    return config


def session_option(session: Any, name: str) -> Any:
    """The value of an NPU option in the config of a session; None when it is not set."""
    for custom in session._config.graph_options.rewrite_options.custom_optimizers if session._config else ():
        if custom.name == NPU_OPTIMIZER:
            return parameter_map.read(custom).get(name)
    return None


def _copy(config: _tf.ConfigProto | None) -> _tf.ConfigProto:
    if config is not None and not isinstance(config, _tf.ConfigProto):
        raise TypeError(
            f"config={config!r} is {type(config).__name__}, but must be a tf.compat.v1.ConfigProto or None: "
            "write config=tf.compat.v1.ConfigProto(...)."
        )
    result = _tf.ConfigProto()
    if config is not None:
        result.CopyFrom(config)
    return result


def _single_entry(rewrite: Any) -> Any:
    """The NpuOptimizer entry, made where there is none; several become one, in which the later value wins."""
    found = [c for c in rewrite.custom_optimizers if c.name == NPU_OPTIMIZER]
    if not found:
        return rewrite.custom_optimizers.add(name=NPU_OPTIMIZER)
    if len(found) == 1:
        return found[0]
    for later in found[1:]:
        for name, value in later.parameter_map.items():
            found[0].parameter_map[name].CopyFrom(value)
    kept: list[Any] = []
    for custom in rewrite.custom_optimizers:
        if custom.name != NPU_OPTIMIZER or not any(k.name == NPU_OPTIMIZER for k in kept):
            kept.append(type(custom).FromString(custom.SerializeToString()))
    del rewrite.custom_optimizers[:]
    rewrite.custom_optimizers.extend(kept)
    return next(c for c in rewrite.custom_optimizers if c.name == NPU_OPTIMIZER)
