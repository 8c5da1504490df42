"""Batch normalization with the statistics of all ranks."""

from __future__ import annotations

from npu_shim._tensorflow import tf_api
from npu_shim._tensorflow.tf_api import tf
from npu_shim._tensorflow.types import Tensor
from npu_shim.horovod.tensorflow.mpi_ops import Average, _allreduce, size


class SyncBatchNormalization(tf.keras.layers.BatchNormalization):
    """tf.keras.layers.BatchNormalization whose mean and variance are those of the batches of all ranks.

    mean = E[x] and variance = E[x^2] - E[x]^2, both means over the ranks. The ranks have batches of one size.

    Args:
        fused: False; the fused kernel knows the batch of one rank only.
        **kwargs: as for tf.keras.layers.BatchNormalization.
    Raises:
        ValueError: fused is True or None.
    """

    def __init__(self, fused: bool | None = False, **kwargs: object) -> None:
        if fused in (True, None):
            raise ValueError(f"SyncBatchNormalization(fused={fused!r}) is not allowed. Pass fused=False.")
        kwargs.setdefault("name", "sync_batch_normalization")
        if tf_api.has_keras_sessions():
            kwargs["fused"] = False
        super().__init__(**kwargs)

    def _moments(self, inputs: Tensor, *args: object, **kwargs: object) -> tuple[Tensor, Tensor]:
        """Return mean and variance over the ranks, of the shape of those of one rank."""
        mean, variance = super()._moments(inputs, *args, **kwargs)
        if size() == 1:
            return mean, variance
        moments = tf.stack([mean, variance + tf.square(mean)])
        mean, mean_of_square = tf.unstack(_allreduce(moments, op=Average))
        return mean, mean_of_square - tf.square(mean)

    if hasattr(tf, "GraphKeys"):  # TensorFlow 1

        def call(self, inputs: Tensor, training: bool | Tensor | None = None) -> Tensor:
            """Return the normalized inputs; the updates join UPDATE_OPS, as those of TensorFlow 1's layers."""
            outputs = super().call(inputs, training)
            for update in self.updates:
                tf_api.v1.add_to_collection(tf.GraphKeys.UPDATE_OPS, update)
            return outputs
