"""``import npu_shim.horovod.keras as hvd``: Horovod's interface for Keras, which is that of TensorFlow."""

from npu_shim.horovod._keras.names import *  # noqa: F403
from npu_shim.horovod.keras import callbacks as callbacks, elastic as elastic
