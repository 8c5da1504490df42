"""The elastic of ``npu_shim.horovod.keras``."""

from npu_shim.horovod._keras.elastic import *  # noqa: F403
