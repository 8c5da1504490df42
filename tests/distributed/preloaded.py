"""The imports of the process that ranks are forked from: TensorFlow with its lazily loaded parts."""

from __future__ import annotations

import gc

import numpy  # noqa: F401
import sklearn.datasets  # noqa: F401
import tensorflow as tf

from tests.distributed import rank_process  # noqa: F401

for name in ("estimator.Estimator", "keras.Model", "train.MonitoredTrainingSession"):
    found = tf.compat.v1
    for part in name.split("."):
        found = getattr(found, part, None)  # TensorFlow 2.16 and later have no Estimator

gc.collect()
gc.freeze()  # a collection would write to the memory that the forks share
