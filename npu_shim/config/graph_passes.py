"""TensorFlow's graph passes that a card must not have: off in every NPU config, as the script has them without a card.

A session config says that they are off, wherever it is made: it is what the
card will get. What a script says of them itself, which is rare, is noted in
the config where TensorFlow passes over it; without a note, they are at
TensorFlow's defaults.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from npu_shim import _device, _tf
from npu_shim.config.parameter_map import has_npu_optimizer

_FIELD = b"\x82\xb5\x18"  # number 50000 of RewriterConfig, bytes; TensorFlow has none beyond 1000
_NOTE = re.compile(rb"npu_shim: without an NPU remapping=(\d+) memory_optimization=(\d+);")


class _Passes(NamedTuple):
    remapping: int
    memory_optimization: int


_DEFAULT = _Passes(0, 0)
_OFF = _Passes(_tf.RewriterConfig.OFF, _tf.RewriterConfig.OFF)


def switch_off(config: _tf.ConfigProto) -> None:
    """Turns off the passes and XLA's global jit, allows soft placement, and notes what the script says of the passes.

    Args:
        config: changed.
    """
    rewrite = config.graph_options.rewrite_options
    said = _Passes(rewrite.remapping, rewrite.memory_optimization)
    if not _is_switched_off(config) and said != _noted(rewrite):
        note = b"npu_shim: without an NPU remapping=%d memory_optimization=%d;" % said
        rewrite.MergeFromString(_FIELD + bytes([len(note)]) + note)
    _put(rewrite, _OFF)
    config.allow_soft_placement = True
    config.graph_options.optimizer_options.global_jit_level = _tf.v1.OptimizerOptions.OFF


def for_this_device(config: _tf.ConfigProto | None) -> _tf.ConfigProto | None:
    """A session config as TensorFlow gets it: on a card as it is, without one a copy with the script's passes."""
    if config is None or _device.device().is_npu or not _is_switched_off(config):
        return config
    result = _tf.ConfigProto()
    result.CopyFrom(config)
    rewrite = result.graph_options.rewrite_options
    _put(rewrite, _noted(rewrite))
    return result


def _is_switched_off(config: _tf.ConfigProto) -> bool:
    """Whether a config is as switch_off leaves it, and not one that a script has filled with less."""
    options = config.graph_options
    rewrite = options.rewrite_options
    return (
        config.allow_soft_placement
        and options.optimizer_options.global_jit_level == _tf.v1.OptimizerOptions.OFF
        and (rewrite.remapping, rewrite.memory_optimization) == _OFF
        and has_npu_optimizer(config)
    )


def _noted(rewrite: Any) -> _Passes:
    notes = _NOTE.findall(rewrite.SerializeToString())
    return _Passes(*map(int, notes[-1])) if notes else _DEFAULT


def _put(rewrite: Any, passes: _Passes) -> None:
    rewrite.remapping, rewrite.memory_optimization = passes
