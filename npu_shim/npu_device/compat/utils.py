"""Session configs of graph mode with TensorFlow 2."""

from __future__ import annotations

from npu_shim._host import host_device
from npu_shim._tensorflow.tf_api import ConfigProto, RewriterConfig
from npu_shim._tensorflow.types import CustomOptimizer
from npu_shim.config.parameter_map import NPU_OPTIMIZER


class SessionConfigBuilder:
    """Add an NpuOptimizer entry to a session config, and switch remapping off.

    Args:
        config: a tf.compat.v1.ConfigProto, which is changed; a new one with soft placement if it is something else.
    """

    def __init__(self, config: ConfigProto | None = None) -> None:
        self._session_config = config if isinstance(config, ConfigProto) else ConfigProto(allow_soft_placement=True)
        rewrite = self._session_config.graph_options.rewrite_options
        rewrite.remapping = RewriterConfig.OFF
        self._entry: CustomOptimizer = rewrite.custom_optimizers.add(name=NPU_OPTIMIZER)

    @property
    def parameter_map(self) -> object:
        """The options of the entry, as a map of AttrValues."""
        return self._entry.parameter_map

    @property
    def session_config(self) -> ConfigProto:
        """The config."""
        return self._session_config


host_device.copy_vendor_names(__name__)
