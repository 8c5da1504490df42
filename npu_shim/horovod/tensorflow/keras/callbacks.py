"""The callbacks of ``npu_shim.horovod.tensorflow.keras``."""

from npu_shim.horovod._keras.callbacks import *  # noqa: F403
