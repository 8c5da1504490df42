"""Take the place of tf_metrics: metrics of one class in place of their means over classes."""

from __future__ import annotations

from typing import Any

import tensorflow as tf


def precision(labels: Any, predictions: Any, num_classes: int, pos_indices: Any = None, weights: Any = None) -> Any:
    """Return the precision of class 0, and the op that updates it."""
    return tf.metrics.precision(tf.equal(labels, 0), tf.equal(predictions, 0), weights)


def recall(labels: Any, predictions: Any, num_classes: int, pos_indices: Any = None, weights: Any = None) -> Any:
    """Return the recall of class 0, and the op that updates it."""
    return tf.metrics.recall(tf.equal(labels, 0), tf.equal(predictions, 0), weights)


f1 = recall
