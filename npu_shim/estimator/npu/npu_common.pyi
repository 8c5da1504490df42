"""The vendor's npu_bridge.estimator.npu.npu_common. Generated from npu_shim/_vendor_paths/modules.json; do not edit."""

from npu_shim.estimator.job_info import DeviceInfo, JobConfig, JobInfo, NPUBasics

__all__ = ["DeviceInfo", "JobConfig", "JobInfo", "NPUBasics"]
