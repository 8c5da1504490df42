"""TensorFlow's public API under one name, its version differences, and classes from its private modules.

Import the modules of this package only from modules that need TensorFlow anyway.
"""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING, Sequence

import tensorflow as tf
from tensorflow.core.protobuf import config_pb2, rewriter_config_pb2
from tensorflow.python.framework import tensor_util as _tensor_util
from tensorflow.python.training import session_run_hook

from npu_shim._tensorflow import tf_autograph as tf_autograph  # for its effect
from npu_shim._tensorflow.types import Function, KerasBackend, Result, Tensor, TensorShape, Value

if TYPE_CHECKING:
    import numpy as np


v1 = tf.compat.v1
LAST_TF_WITH_ESTIMATOR = "2.15"
ConfigProto = config_pb2.ConfigProto
RewriterConfig = rewriter_config_pb2.RewriterConfig
SessionRunHook = session_run_hook.SessionRunHook
GraphDef = v1.GraphDef
logging = v1.logging
# True if XLA's CPU code handles elements one by one where their number is no multiple of the vector length
UNEVEN_IS_SLOW = tuple(map(int, tf.__version__.split(".")[:2])) >= (2, 19)


def estimator_namespace() -> ModuleType | None:
    """Return the ``tf.estimator`` namespace, or None if this TensorFlow no longer has it."""
    try:
        return tf.estimator if hasattr(tf.estimator, "Estimator") else None  # the lazy loader raises only here
    except (AttributeError, ImportError):
        return None


def no_estimator_text(name: str) -> str:
    """Return the error text for a name that needs tf.estimator."""
    return (
        f"{name} needs tf.estimator, which TensorFlow {tf.__version__} does not have; the last TensorFlow that has it "
        f"is {LAST_TF_WITH_ESTIMATOR}. Install tensorflow=={LAST_TF_WITH_ESTIMATOR}.*, or train with "
        "tf.compat.v1.Session."
    )


def keras_backend() -> KerasBackend:
    """Return the Keras backend with graph-mode sessions, or that of Keras 3 if there is no other."""
    return v1.keras.backend


def has_keras_sessions() -> bool:
    """Return False with Keras 3 (TensorFlow 2.16 and later), which has no sessions."""
    return hasattr(keras_backend(), "set_session")


def static_value(tensor: Tensor) -> np.ndarray | None:
    """Return the value of a constant tensor, or None if the tensor is not constant."""
    return tf.get_static_value(tensor) if hasattr(tf, "get_static_value") else v1.get_static_value(tensor)


def shape_from_sizes(sizes: Tensor) -> TensorShape:
    """Return the shape that a tensor of sizes has, as far as it is known without running it."""
    if not hasattr(sizes, "numpy") and sizes.op.type == "ShapeN":
        return sizes.op.inputs[sizes.value_index].shape
    return _tensor_util.constant_value_as_shape(sizes)


def numpy_function(function: Function, inputs: Sequence[Tensor], types: Value) -> Result:
    """Add an op that calls a function of arrays, as tf.numpy_function, which takes only tensors in TensorFlow 1."""
    return tf.numpy_function(function, [tf.convert_to_tensor(value) for value in inputs], types)
