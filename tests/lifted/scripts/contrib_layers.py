"""Recurrent cells, a flat layer and a regularizer of tf.contrib."""
import json

import numpy as np
import tensorflow as tf
from tensorflow.contrib import rnn

INPUTS = np.array([[[1., 2.], [3., -1.], [0.5, 0.]]], np.float32)


def run_cell(inputs):
    with tf.variable_scope('cell', initializer=tf.constant_initializer(0.1)):
        cell = rnn.BasicLSTMCell(2, forget_bias=1.0)
        outputs, state = rnn.static_rnn(cell, tf.unstack(inputs, axis=1), dtype=tf.float32)
    return outputs[-1], state.c


def main():
    output, memory = run_cell(tf.constant(INPUTS))
    flat = tf.contrib.layers.flatten(tf.constant(INPUTS))
    kernel = tf.get_variable('kernel', [2, 2], initializer=tf.constant_initializer(3.0),
                             regularizer=tf.contrib.layers.l2_regularizer(0.1))
    penalty = tf.losses.get_regularization_loss()
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        values = sess.run({'output': output, 'memory': memory, 'flat': flat, 'penalty': penalty, 'kernel': kernel})
    print(json.dumps({name: value.tolist() for name, value in values.items()}))


if __name__ == '__main__':
    main()
