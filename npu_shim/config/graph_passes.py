"""TensorFlow's graph passes that must be off on the NPU, and what the script sets for them on the CPU.

Every NPU session config turns ``remapping`` and ``memory_optimization`` off,
wherever it is made, because that is what the NPU needs. On the NPU the config is
exactly the vendor's: a script that adds the NpuOptimizer entry itself sets its own
``memory_optimization``. On the CPU both should be as the script sets them. A script
that sets one of them has its values recorded as two parameters of the NpuOptimizer
entry, which the vendor's C++ skips. Without this record, both are at TensorFlow's
defaults on the CPU.
"""

from __future__ import annotations

import warnings
from typing import NamedTuple

from npu_shim._host import host_device
from npu_shim._tensorflow import tf_api
from npu_shim._tensorflow.types import ConfigProto, CustomOptimizer, RewriterConfig
from npu_shim.config.parameter_map import CPU_MEMORY_OPTIMIZATION, CPU_REMAPPING, find_entry


class _Passes(NamedTuple):
    remapping: int
    memory_optimization: int


_DEFAULT = _Passes(0, 0)
_OFF = _Passes(tf_api.RewriterConfig.OFF, tf_api.RewriterConfig.OFF)


# As TensorFlow has them by default; the NPU needs them so.
_NEEDED = (
    "function_optimization constant_folding shape_optimization arithmetic_optimization loop_optimization "
    "dependency_optimization layout_optimizer"
).split()


def warn_of_missing_passes(config: ConfigProto) -> None:
    """Warn of graph passes that the NPU needs and a script has turned off."""
    rewrite = config.graph_options.rewrite_options
    off = [name for name in _NEEDED if getattr(rewrite, name) == tf_api.RewriterConfig.OFF]
    off += ["disable_model_pruning"] if rewrite.disable_model_pruning else []
    if off:
        text = f"The NPU needs TensorFlow's defaults of rewrite_options.{', '.join(off)}. Remove what sets them."
        warnings.warn(text, UserWarning, stacklevel=4)


def turn_off_passes(config: ConfigProto, has_own_entry: bool) -> None:
    """Turn off the passes and XLA's global jit, allow soft placement, and record the script's values of the passes.

    Args:
        config: changed; it has an NpuOptimizer entry.
        has_own_entry: True if the script added the entry, not npu_shim.
    """
    rewrite = config.graph_options.rewrite_options
    if host_device.is_npu():
        config.log_device_placement = False
        _set_passes(rewrite, _OFF._replace(memory_optimization=rewrite.memory_optimization) if has_own_entry else _OFF)
    else:
        entry = find_entry(config)
        by_script = _Passes(rewrite.remapping, rewrite.memory_optimization)
        if not (_has_passes_off(config) or by_script == _recorded_passes(entry)):
            _record_passes(entry, by_script)
        _set_passes(rewrite, _OFF)
    config.allow_soft_placement = True
    config.graph_options.optimizer_options.global_jit_level = tf_api.v1.OptimizerOptions.OFF


def config_for_this_device(config: ConfigProto | None) -> ConfigProto | None:
    """Return the config for TensorFlow: on the NPU the config itself, on the CPU a copy with the script's passes."""
    if config is None or host_device.is_npu() or not _has_passes_off(config):
        return config
    result = tf_api.ConfigProto()
    result.CopyFrom(config)
    _set_passes(result.graph_options.rewrite_options, _recorded_passes(find_entry(result)))
    return result


def _has_passes_off(config: ConfigProto) -> bool:
    """Return True if a config is as turn_off_passes leaves it. A config that a script filled by hand has less."""
    options = config.graph_options
    rewrite = options.rewrite_options
    return (
        config.allow_soft_placement
        and options.optimizer_options.global_jit_level == tf_api.v1.OptimizerOptions.OFF
        and (rewrite.remapping, rewrite.memory_optimization) == _OFF
        and find_entry(config) is not None
    )


def _recorded_passes(entry: CustomOptimizer) -> _Passes:
    values = entry.parameter_map
    if CPU_REMAPPING not in values or CPU_MEMORY_OPTIMIZATION not in values:
        return _DEFAULT
    return _Passes(values[CPU_REMAPPING].i, values[CPU_MEMORY_OPTIMIZATION].i)


def _record_passes(entry: CustomOptimizer, passes: _Passes) -> None:
    entry.parameter_map[CPU_REMAPPING].i = passes.remapping
    entry.parameter_map[CPU_MEMORY_OPTIMIZATION].i = passes.memory_optimization


def _set_passes(rewrite: RewriterConfig, passes: _Passes) -> None:
    rewrite.remapping, rewrite.memory_optimization = passes
