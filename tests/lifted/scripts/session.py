"""Least squares by gradient descent in a session, with flags, scopes, a summary and names that changed meaning."""
import json
import os
import tempfile

import numpy as np
import tensorflow as tf

tf.app.flags.DEFINE_integer('steps', 20, 'how long to train')
tf.app.flags.DEFINE_float('rate', 0.1, 'learning rate')
FLAGS = tf.app.flags.FLAGS
POINTS = np.array([[1., 2.], [3., 4.], [5., 7.], [2., 1.]], np.float32)


def linear(inputs, units, activation=tf.nn.relu, reuse=tf.AUTO_REUSE):
    with tf.variable_scope('linear', reuse=reuse):
        kernel = tf.get_variable('kernel', [1, units], initializer=tf.constant_initializer(0.5))
        bias = tf.get_variable('bias', [units], initializer=tf.zeros_initializer())
        return activation(tf.matmul(inputs, kernel) + bias)


def main(_):
    tf.logging.set_verbosity(tf.logging.ERROR)
    x = tf.placeholder(tf.float32, [None, 1], name='x')
    y = tf.placeholder(tf.float32, [None, 1], name='y')
    loss = tf.reduce_mean(tf.squared_difference(linear(x, 1), y))
    step = tf.train.get_or_create_global_step()
    train = tf.train.GradientDescentOptimizer(FLAGS.rate / 10).minimize(loss, global_step=step)
    same = tf.reduce_mean(tf.squared_difference(linear(x, 1), y))
    tf.summary.scalar('loss', loss)
    merged = tf.summary.merge_all()
    table = tf.constant([[1., 5.], [7., 3.]])
    picked = tf.where(tf.constant([True, False]), table, -table)  # rows, in the meaning of TensorFlow 1
    sums = tf.reduce_sum(table, axis=1, keep_dims=True)
    place = tf.argmax(table, dimension=1)
    feed = {x: POINTS[:, :1], y: POINTS[:, 1:]}
    with tempfile.TemporaryDirectory() as folder, tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        writer = tf.summary.FileWriter(folder, sess.graph)
        for _ in range(FLAGS.steps):
            _, summary = sess.run([train, merged], feed)
            writer.add_summary(summary, sess.run(step))
        writer.close()
        path = tf.train.Saver().save(sess, os.path.join(folder, 'model'))
        found = {'loss': sess.run(loss, feed), 'same': sess.run(same, feed), 'step': sess.run(step),
                 'kernel': sess.run(tf.trainable_variables()[0]), 'picked': sess.run(picked),
                 'sums': sess.run(sums), 'place': sess.run(place), 'saved': tf.gfile.Exists(path + '.index')}
    print(json.dumps({name: np.asarray(value).tolist() for name, value in found.items()}))


if __name__ == '__main__':
    tf.app.run()
