"""A loop of session.run that computes, clips and applies its gradients itself."""
import json

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
x = np.linspace(-1, 1, 64).astype(np.float32).reshape(64, 1)


def build(features, labels):
    w = tf.get_variable('w', [1, 1], initializer=tf.constant_initializer(0.5))
    b = tf.get_variable('b', [1], initializer=tf.zeros_initializer())
    return tf.reduce_mean(tf.square(tf.matmul(features, w) + b - labels))


def train_op_of(loss):
    variables = tf.trainable_variables()
    slope = tf.gradients(loss, variables[0])[0]
    gradients = tf.gradients(loss + 0.01 * tf.reduce_sum(slope ** 2), variables)
    gradients, norm = tf.clip_by_global_norm(gradients, 2.0)
    optimizer = tf.train.AdamOptimizer(0.1)
    return optimizer.apply_gradients(zip(gradients, variables)), norm


features = tf.placeholder(tf.float32, [None, 1])
labels = tf.placeholder(tf.float32, [None, 1])
loss = build(features, labels)
train_op, norm = train_op_of(loss)
found = []
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for step in range(10):
        value, size, _ = sess.run([loss, norm, train_op], {features: x, labels: 3 * x - 1})
        found.append([float(value), float(size)])
print(json.dumps(found))
