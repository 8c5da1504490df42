"""The Estimator behind NPUEstimator on an NPU: the vendor's own, with the checks and corrections of NPURunConfig."""

from __future__ import annotations

from npu_shim._host import host_device
from npu_shim._tensorflow.types import CustomOptimizer, EstimatorClass, RunConfig
from npu_shim.config import parameter_map
from npu_shim.config.estimator_session import overriding_npu_options
from npu_shim.config.session import config_without_npu_optimizer
from npu_shim.estimator.arguments import as_npu_run_config
from npu_shim.options.table import KEYS

_Vendors: EstimatorClass = host_device.import_vendor_module("npu_bridge.estimator.npu.npu_estimator").NPUEstimator


class CardEstimator(_Vendors):
    """The vendor's NPUEstimator, whose session config has one NpuOptimizer entry.

    Args:
        config: as for NPUEstimator; it is not changed.
        **kwargs: as for the vendor's class.
    """

    def __init__(self, *, config: RunConfig | None, **kwargs: object) -> None:
        config = as_npu_run_config(config)
        by_hand = parameter_map.find_entry(config.session_config)
        options = overriding_npu_options(config)
        if config.session_config is not None:  # the vendor's class changes it, and adds an entry in any case
            config = config.replace(session_config=config_without_npu_optimizer(config.session_config))
        super().__init__(config=config, **kwargs)
        entry: CustomOptimizer = parameter_map.find_entry(self._session_config)
        known = config.npu_options()
        for name in [name for name in entry.parameter_map if name in KEYS and name not in known]:
            del entry.parameter_map[name]
        if by_hand is not None:
            entry.MergeFrom(by_hand)
        parameter_map.write_options(entry, options)
