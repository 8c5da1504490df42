"""two layers, Adam with a decaying rate, summaries, session"""

import sys

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_eager_execution()
random = np.random.RandomState(0)
x, y = tf.placeholder(tf.float32, [16, 8]), tf.placeholder(tf.float32, [16, 1])
hidden = tf.tanh(tf.matmul(x, tf.get_variable("w1", [8, 12])) + tf.get_variable("b1", [12]))
loss = tf.reduce_mean(tf.square(tf.matmul(hidden, tf.get_variable("w2", [12, 1])) - y))
step = tf.train.get_or_create_global_step()
rate = tf.train.exponential_decay(0.01, step, 2, 0.9)
train_op = tf.train.AdamOptimizer(rate).minimize(loss, global_step=step)
tf.summary.scalar("loss", loss)
tf.summary.scalar("rate", rate)
merged = tf.summary.merge_all()
with tf.Session() as sess, tf.summary.FileWriter(sys.argv[1]) as writer:
    sess.run(tf.global_variables_initializer())
    for number in range(8):
        summary, _ = sess.run([merged, train_op], {x: random.rand(16, 8), y: random.rand(16, 1)})
        writer.add_summary(summary, number)
