"""AutoGraph's rule for npu_shim. Importing this module sets it for the process."""

from __future__ import annotations

from tensorflow.python.autograph.core import config as _config

# tf.function calls npu_shim's functions as they are. AutoGraph has no public way to say so of a package.
_config.CONVERSION_RULES = (_config.DoNotConvert("npu_shim"), *_config.CONVERSION_RULES)
