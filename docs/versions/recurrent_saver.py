"""recurrent cell, clipped gradients, `Saver`"""

import os
import sys

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_eager_execution()
random = np.random.RandomState(0)
x, y = tf.placeholder(tf.float32, [8, 5, 4]), tf.placeholder(tf.float32, [8, 1])
kernel, bias = tf.get_variable("kernel", [12, 8]), tf.get_variable("bias", [8], initializer=tf.zeros_initializer())
state = tf.zeros([8, 8])
for time in range(5):
    state = tf.tanh(tf.matmul(tf.concat([x[:, time], state], 1), kernel) + bias)
loss = tf.reduce_mean(tf.square(tf.matmul(state, tf.get_variable("w", [8, 1])) - y))
optimizer = tf.train.AdamOptimizer(0.01)
gradients, variables = zip(*optimizer.compute_gradients(loss))
train_op = optimizer.apply_gradients(zip(tf.clip_by_global_norm(gradients, 0.5)[0], variables))
saver = tf.train.Saver()
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for _ in range(8):
        print("loss", sess.run([loss, train_op], {x: random.rand(8, 5, 4), y: random.rand(8, 1)})[0])
    os.makedirs(sys.argv[1], exist_ok=True)
    saver.save(sess, os.path.join(sys.argv[1], "model"))
