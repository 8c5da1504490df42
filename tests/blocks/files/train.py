"""The reader's script: a step of linear regression. It trains for one page, and only starts for the others."""

import argparse
import os

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=2)
arguments = parser.parse_known_args()[0]

if "TRAIN" in os.environ and int(os.environ.get("RANK_SIZE", "1")) <= 2:
    import tensorflow.compat.v1 as tf

    with tf.Graph().as_default():
        weight = tf.get_variable("weight", [3, 1], initializer=tf.ones_initializer())
        loss = tf.reduce_mean(tf.square(tf.matmul(tf.ones([4, 3]), weight)))
        step = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
        with tf.Session() as sess:
            sess.run(tf.global_variables_initializer())
            for _ in range(arguments.steps):
                print(sess.run([step, loss])[1])
