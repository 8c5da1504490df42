"""The vendor's npu_device.configs.model_deploy_config. Generated from npu_shim/_vendor_paths/table.py; do not edit."""
from __future__ import annotations

from typing import TYPE_CHECKING

from npu_shim._host.lazy_names import lazy_names as _lazy_names

if TYPE_CHECKING:
    from npu_shim.npu_device.option_classes import ModelDeployConfig
else:
    __getattr__, __dir__ = _lazy_names(__name__, {"npu_shim.npu_device.option_classes": "ModelDeployConfig"})

__all__ = ["ModelDeployConfig"]
