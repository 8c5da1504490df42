"""The names that signatures and bases of the vendor's modules use, in each version of TensorFlow."""

from __future__ import annotations

from enum import Enum
from types import SimpleNamespace
from typing import Any

import tensorflow

from npu_shim._tensorflow import tf_api

_loss_scale = getattr(getattr(tensorflow.keras, "mixed_precision", None), "LossScaleOptimizer", object)
tf: Any = SimpleNamespace(  # with the optimizers of graph mode, in TensorFlow 1 and 2
    train=tf_api.v1.train,
    uint32=tensorflow.uint32,
    keras=SimpleNamespace(
        mixed_precision=SimpleNamespace(
            LossScaleOptimizer=_loss_scale, experimental=SimpleNamespace(LossScaleOptimizer=_loss_scale)
        )
    ),
)
keras, dtypes = tensorflow.keras, tensorflow.dtypes
Layer = keras.layers.Layer
Saver = tf_api.v1.train.Saver
BulkSaverBuilder = OptionValue = object


class NpuBaseConfig:
    """The base of the classes of options."""

    def as_dict(self) -> dict[str, str]:
        """Return the options; the vendor's are not among them."""
        return {}


saver_pb2 = SimpleNamespace(SaverDef=SimpleNamespace(V2=2))
session_run_hook = SimpleNamespace(SessionRunHook=tf_api.v1.train.SessionRunHook)
basic_session_run_hooks = SimpleNamespace(
    CheckpointSaverHook=tf_api.v1.train.CheckpointSaverHook, LoggingTensorHook=tf_api.v1.train.LoggingTensorHook
)
_estimator = tf_api.estimator_namespace()
run_config_lib = SimpleNamespace(RunConfig=_estimator.RunConfig if _estimator else object)
model_fn_lib = SimpleNamespace(EstimatorSpec=_estimator.EstimatorSpec if _estimator else object)
estimator_lib = SimpleNamespace(Estimator=_estimator.Estimator if _estimator else object)
optimizer_v2 = SimpleNamespace(OptimizerV2=tensorflow.keras.optimizers.Optimizer)
distribute_lib = SimpleNamespace(StrategyV1=object)
one_device_strategy = SimpleNamespace(OneDeviceExtended=object)
script_ops = SimpleNamespace(EagerFunc=object)
core = SimpleNamespace(TFOpLambda=object)


class _ManagerBase:
    """In the place of the managers of tf.contrib."""

    def __init__(self, *args: Any) -> None:
        pass


lsm_lib = SimpleNamespace(FixedLossScaleManager=_ManagerBase, ExponentialUpdateLossScaleManager=_ManagerBase)


class _LossScaleOptimizer(tf_api.v1.train.Optimizer):
    """In the place of the optimizer of tf.contrib."""

    def compute_gradients(self, *args: Any, **kwargs: Any) -> Any:
        from vendor_code import training

        return training.compute(self, *args, **kwargs)


lso = SimpleNamespace(LossScaleOptimizer=_LossScaleOptimizer)


class _DynamicBasic(Layer):
    """The base of the recurrent layers."""


class NpuExecutePlacement(Enum):
    """The unit of the chip that holds a variable."""

    ALL = "all"
    CUBE = "cube"
    VECTOR = "vector"


DYNAMIC_RNN_UNIDIRECTION = "UNIDIRECTIONAL"
