"""Functions of tf.contrib that TensorFlow's core has: losses, metrics, input, the global step, a flat layer."""
import json

import numpy as np
import tensorflow as tf
from tensorflow.contrib import data as contrib_data
from tensorflow.contrib.framework import get_or_create_global_step

LOGITS = np.array([[2., 1., 0.], [0., 1., 3.]], np.float32)
ONE_HOT = np.array([[1., 0., 0.], [0., 1., 0.]], np.float32)


def main():
    dataset = tf.data.Dataset.range(8).apply(
        contrib_data.map_and_batch(lambda n: n * 2, batch_size=4, drop_remainder=True))
    batch = dataset.make_one_shot_iterator().get_next()
    logits, labels = tf.constant(LOGITS), tf.constant(ONE_HOT)
    loss = tf.contrib.losses.softmax_cross_entropy(logits, labels, 0.5)
    squares = tf.contrib.losses.mean_squared_error(logits, labels)
    guessed, right = tf.argmax(logits, 1), tf.argmax(labels, 1)
    accuracy, update = tf.contrib.metrics.streaming_accuracy(guessed, right, weights=[3., 1.])
    mean, update_mean = tf.contrib.metrics.streaming_mean(logits)
    weights = tf.get_variable('weights', [200, 300], initializer=tf.contrib.layers.xavier_initializer(seed=1))
    scaled = tf.get_variable('scaled', [200, 300], initializer=tf.contrib.layers.variance_scaling_initializer(
        factor=3.0, mode='FAN_AVG', uniform=True, seed=1))
    step = get_or_create_global_step()
    with tf.Session() as sess:
        sess.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        first = sess.run(batch)
        sess.run([update, update_mean])
        drawn, wider = sess.run([weights, scaled])
        found = {'batch': first, 'loss': sess.run(loss), 'squares': sess.run(squares),
                 'total': sess.run(tf.contrib.losses.get_total_loss()), 'accuracy': sess.run(accuracy),
                 'mean': sess.run(mean), 'step': sess.run(step), 'limit': np.abs(drawn).max(),
                 'variance': drawn.var(), 'wider': wider.var() / drawn.var()}
    print(json.dumps({name: np.asarray(value).tolist() for name, value in found.items()}))


main()
