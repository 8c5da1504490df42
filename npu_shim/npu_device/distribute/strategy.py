"""The strategy of TensorFlow 2 whose replicas are the ranks."""

from __future__ import annotations

from npu_shim._tensorflow.tf_api import tf
from npu_shim.npu_device.npu_device import global_npu_ctx
from npu_shim.training.strategy import RankStrategy


class NPUStrategy(RankStrategy):
    """Synchronous training with one replica on each rank, in eager code, tf.function and Keras.

    It replaces MirroredStrategy, MultiWorkerMirroredStrategy and OneDeviceStrategy: scope, run, reduce, datasets and
    Keras models work as with these. See npu_shim.training.strategy.NPUStrategy.

    Raises:
        RuntimeError: the device is not open, or TensorFlow builds graphs.
    """

    def __init__(self) -> None:
        handle = global_npu_ctx()
        if handle is None or not tf.executing_eagerly():
            raise RuntimeError(
                "npu.distribute.NPUStrategy needs an open device and eager TensorFlow 2. Call npu.open().as_default() "
                "first; in graph mode use npu_strategy.NPUStrategy of npu_shim.npu_init."
            )
        super().__init__(handle.name())
