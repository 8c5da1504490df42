"""The session config of an NPUEstimator: the user's config with the NPU options of the run config."""

from __future__ import annotations

from typing import TYPE_CHECKING

from npu_shim.config import parameter_map
from npu_shim.config.rewriters import estimator_base_config
from npu_shim.config.session import session_config
from npu_shim.options.check import check_together

if TYPE_CHECKING:
    from npu_shim._types import ConfigProto, RunConfig


def estimator_session_config(run_config: RunConfig) -> ConfigProto:
    """Merge the options of an NPURunConfig into its session config.

    An argument that the user gave overrides a parameter in the NpuOptimizer
    entry of session_config. That parameter overrides the argument's default.

    Args:
        run_config: an NPURunConfig; it is not changed.
    Returns:
        A new ConfigProto with one NpuOptimizer entry.
    Raises:
        ValueError: if the arguments contradict that entry.
    """
    config = session_config(estimator_base_config(run_config))
    entry = parameter_map.find_entry(config)
    by_hand, given = parameter_map.read(entry), run_config.given_npu_options()
    check_together({**by_hand, **given})
    options = run_config.npu_options()
    parameter_map.write(entry, {n: v for n, v in options.items() if n in given or n not in by_hand})
    return config
