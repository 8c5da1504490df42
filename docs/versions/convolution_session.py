"""convolution and batch normalization, session"""

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_eager_execution()
random = np.random.RandomState(0)
x, y = tf.placeholder(tf.float32, [8, 12, 12, 3]), tf.placeholder(tf.float32, [8])
net = tf.nn.conv2d(x, filters=tf.get_variable("filters", [3, 3, 3, 8]), strides=1, padding="SAME")
scale = tf.get_variable("scale", [8], initializer=tf.ones_initializer())
offset = tf.get_variable("offset", [8], initializer=tf.zeros_initializer())
net = tf.nn.relu(tf.nn.fused_batch_norm(net, scale, offset)[0])
flat = tf.reshape(tf.nn.max_pool2d(net, 2, 2, "SAME"), [8, -1])
loss = tf.reduce_mean(tf.square(tf.matmul(flat, tf.get_variable("w", [flat.shape[1], 1]))[:, 0] - y))
train_op = tf.train.MomentumOptimizer(0.01, 0.9).minimize(loss)
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for _ in range(8):
        print("loss", sess.run([loss, train_op], {x: random.rand(8, 12, 12, 3), y: random.rand(8)})[0])
