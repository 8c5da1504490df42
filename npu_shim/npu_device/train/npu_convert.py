"""Replace functions of TensorFlow by the NPU's; the parts are in replacement.py."""

from __future__ import annotations

from npu_shim._host import host_device
from npu_shim.npu_device.train.convert_dropout import dropout_api_convert
from npu_shim.npu_device.train.replacement import (
    api_func_convert as api_func_convert,
    check_version_format as check_version_format,
    dropout_convert as dropout_convert,
    judge_version_support as judge_version_support,
    parse_range_version as parse_range_version,
    parse_star_ver as parse_star_ver,
    parse_version as parse_version,
    parse_version_range as parse_version_range,
    verify_version as verify_version,
)


def npu_convert_api() -> None:
    """Replace the functions of TensorFlow that the NPU has faster: tf.nn.dropout in functions, with TensorFlow 2.6."""
    dropout_api_convert()


host_device.copy_vendor_names(__name__)
