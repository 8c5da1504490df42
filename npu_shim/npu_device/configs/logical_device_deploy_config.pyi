"""The vendor's npu_device.configs.logical_device_deploy_config. Generated from npu_shim/_vendor_paths/modules.json; do not edit."""

from npu_shim.npu_device.option_classes import LogicalDeviceDeployConfig

__all__ = ["LogicalDeviceDeployConfig"]
