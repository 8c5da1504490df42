"""The session config of an NPUEstimator: the user's config with the NPU options of the run config."""

from __future__ import annotations

from npu_shim._tensorflow.types import ConfigProto, OptionValue, RunConfig
from npu_shim.config import parameter_map
from npu_shim.config.rewriters import estimator_base_config
from npu_shim.config.session import session_config
from npu_shim.options.check import check_combinations


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
    parameter_map.write_options(parameter_map.find_entry(config), overriding_npu_options(run_config))
    return config


def overriding_npu_options(run_config: RunConfig) -> dict[str, OptionValue]:
    """Return the options of an NPURunConfig that override the NpuOptimizer entry of its session config.

    Raises:
        ValueError: if the arguments contradict that entry.
    """
    entry = parameter_map.find_entry(run_config.session_config)
    by_hand = {} if entry is None else parameter_map.read_options(entry)
    given = run_config.given_npu_options()
    check_combinations({**by_hand, **given})
    options = run_config.npu_options()
    return {name: value for name, value in options.items() if name in given or name not in by_hand}
