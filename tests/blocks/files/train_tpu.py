"""A script for Cloud TPUs."""

import tensorflow as tf


def estimator_of(model_fn, config):
    return tf.compat.v1.estimator.tpu.TPUEstimator(model_fn=model_fn, config=config, use_tpu=True, train_batch_size=64)
