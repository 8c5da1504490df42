"""softmax regression, session"""

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_eager_execution()
random = np.random.RandomState(0)
x, y = tf.placeholder(tf.float32, [16, 8]), tf.placeholder(tf.int32, [16])
logits = tf.matmul(x, tf.get_variable("w", [8, 4])) + tf.get_variable("b", [4], initializer=tf.zeros_initializer())
loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for _ in range(8):
        batch = {x: random.rand(16, 8), y: random.randint(0, 4, 16)}
        print("loss", sess.run([loss, train_op], batch)[0])
