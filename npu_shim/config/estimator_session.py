"""The session config of an NPUEstimator: the user's, with the run config's NPU options in it."""

from __future__ import annotations

from typing import Any

from npu_shim import _tf
from npu_shim.config import parameter_map
from npu_shim.config.rewriters import estimator_base_config
from npu_shim.config.session import NPU_OPTIMIZER, session_config
from npu_shim.options.check import check_together


def estimator_session_config(run_config: Any) -> _tf.ConfigProto:
    """Merges an NPURunConfig's options into its session config.

    An argument the user gave beats a parameter he set by hand on an
    NpuOptimizer entry of session_config, and that beats the argument's default.

    Args:
        run_config: an NPURunConfig; it is not changed.
    Returns:
        A new ConfigProto with one NpuOptimizer entry.
    Raises:
        ValueError: the arguments contradict what was set by hand.
    """
    config = session_config(estimator_base_config(run_config))
    entry = next(c for c in config.graph_options.rewrite_options.custom_optimizers if c.name == NPU_OPTIMIZER)
    by_hand, given = parameter_map.read(entry), run_config.given_npu_options()
    check_together({**by_hand, **given})
    options = run_config.npu_options()
    parameter_map.write(entry, {n: v for n, v in options.items() if n in given or n not in by_hand})
    return config
