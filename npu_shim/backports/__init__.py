"""Names of later versions of TensorFlow and Keras for TensorFlow 2.6.

Each name is TensorFlow's own where the installed version has it. Elsewhere it is npu_shim's, with the signature,
meaning and numbers of the later version. The migration tool writes these names (NPU124).
"""

from __future__ import annotations

from npu_shim._tensorflow.tf_api import tf
from npu_shim._tensorflow.types import Unknown

if int(tf.__version__.partition(".")[0]) < 2:
    raise ImportError(f"npu_shim.backports needs TensorFlow 2.6 or later; this is {tf.__version__}. Remove the import.")

from npu_shim.backports import keras_ops, keras_random, layers, optimizers, seeds, variables
from npu_shim.backports.models import compute_loss, compute_metrics, get_metrics_result

__all__ = [
    "AdamW",
    "BackupAndRestore",
    "EinsumDense",
    "GroupNormalization",
    "Identity",
    "UnitNormalization",
    "Variable",
    "compute_loss",
    "compute_metrics",
    "enable_op_determinism",
    "get_metrics_result",
    "ops",
    "random",
    "set_random_seed",
    "silu",
]


def _tensorflow_attribute(path: str) -> Unknown:
    """Return what TensorFlow has under a dotted name, or None."""
    value: Unknown = tf
    for name in path.split("."):
        value = getattr(value, name, None)
    return value


AdamW: Unknown = _tensorflow_attribute("keras.optimizers.AdamW") or optimizers.AdamW
BackupAndRestore: Unknown = (
    _tensorflow_attribute("keras.callbacks.BackupAndRestore") or tf.keras.callbacks.experimental.BackupAndRestore
)
EinsumDense: Unknown = _tensorflow_attribute("keras.layers.EinsumDense") or tf.keras.layers.experimental.EinsumDense
GroupNormalization: Unknown = _tensorflow_attribute("keras.layers.GroupNormalization") or layers.GroupNormalization
Identity: Unknown = _tensorflow_attribute("keras.layers.Identity") or layers.Identity
UnitNormalization: Unknown = _tensorflow_attribute("keras.layers.UnitNormalization") or layers.UnitNormalization
Variable: Unknown = _tensorflow_attribute("keras.Variable") or variables.Variable
enable_op_determinism: Unknown = (
    _tensorflow_attribute("config.experimental.enable_op_determinism") or seeds.enable_op_determinism
)
ops: Unknown = _tensorflow_attribute("keras.ops") or keras_ops.ops
random: Unknown = _tensorflow_attribute("keras.random") or keras_random.random
set_random_seed: Unknown = _tensorflow_attribute("keras.utils.set_random_seed") or seeds.set_random_seed
silu: Unknown = _tensorflow_attribute("keras.activations.silu") or tf.keras.activations.swish
