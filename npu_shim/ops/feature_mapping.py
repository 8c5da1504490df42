"""Numbers of features in the order in which they first occur, in this process.

Source: the operator HostFeatureMapping of earlier releases of the vendor's adapter. A table grows with the features.
"""

from __future__ import annotations

import threading

import numpy as np

from npu_shim._tensorflow.tf_api import numpy_function, tf
from npu_shim._tensorflow.types import Tensor

_tables: dict[str, dict[int, int]] = {}
_lock = threading.Lock()
_OF_DEVICE = "device_feature_mapping"


def host_feature_mapping(feature_id: Tensor, threshold: int = 1, table_name: str = "default_table_name") -> Tensor:
    """Return the number of each feature: 0 for the first one that occurred in the table, 1 for the next, and so on.

    Args:
        feature_id: int64, of any shape.
        threshold: has no effect.
        table_name: the table.
    Returns:
        int64, of the shape of feature_id.
    """

    def find(features: np.ndarray) -> np.ndarray:
        with _lock:
            table = _tables.setdefault(table_name, {})
            numbers = [table.setdefault(feature, len(table)) for feature in features.ravel().tolist()]
        return np.array(numbers, np.int64).reshape(features.shape)

    with tf.name_scope("feature_mapping"):
        features = tf.convert_to_tensor(feature_id, tf.int64)
        numbers = numpy_function(find, [features], tf.int64)
        numbers.set_shape(features.shape)
        return numbers


def device_feature_mapping(feature_id: Tensor) -> Tensor:
    """Return the number of each feature in a table of its own, as int32. See host_feature_mapping."""
    return tf.cast(host_feature_mapping(feature_id, table_name=_OF_DEVICE), tf.int32)
