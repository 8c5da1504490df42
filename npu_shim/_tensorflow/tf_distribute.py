"""TensorFlow's private classes for distribution strategies."""

from __future__ import annotations

from tensorflow.python.distribute import (
    distribute_lib,
    numpy_dataset,
    one_device_strategy,
    values as distribute_values,
)

from npu_shim._tensorflow.types import Strategy

DistributedValues = distribute_values.DistributedValues
SyncOnReadVariable = distribute_values.SyncOnReadVariable
ArrayDevice = numpy_dataset.SingleDevice  # where a strategy puts a variable that holds an array of the script
OneDeviceStrategy = one_device_strategy.OneDeviceStrategyV1
OneDeviceExtended = one_device_strategy.OneDeviceExtended
ReplicaContext = distribute_lib.ReplicaContext
REPLICA_ID_IS_INT = hasattr(distribute_lib, "ReplicaContextBase")  # before TF 2.4 it is a tensor


def scales_loss_for_estimator(strategy: Strategy) -> bool:
    """Return True while an Estimator builds its training graph with the strategy."""
    return getattr(strategy, "_scale_loss_for_estimator", False)
