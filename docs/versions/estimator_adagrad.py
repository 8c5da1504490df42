"""Estimator, Adagrad"""

import sys

import numpy as np
import tensorflow.compat.v1 as tf


def input_fn():
    random = np.random.RandomState(0)
    rows = random.rand(64, 8).astype("f4"), random.randint(0, 3, 64)
    return tf.data.Dataset.from_tensor_slices(rows).repeat().batch(16, drop_remainder=True)


def model_fn(features, labels, mode):
    logits = tf.matmul(features, tf.get_variable("w", [8, 3]))
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    train_op = tf.train.AdagradOptimizer(0.1).minimize(loss, global_step=tf.train.get_global_step())
    accuracy = tf.metrics.accuracy(labels, tf.argmax(logits, 1))
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op, eval_metric_ops={"accuracy": accuracy})


estimator = tf.estimator.Estimator(model_fn, sys.argv[1])
estimator.train(input_fn, steps=8)
print("accuracy", estimator.evaluate(input_fn, steps=4)["accuracy"])
