"""``import npu_shim.horovod.tensorflow.keras as hvd``: Horovod's interface for tf.keras."""

from npu_shim.horovod._keras.names import *  # noqa: F403
from npu_shim.horovod.tensorflow.keras import callbacks as callbacks, elastic as elastic
