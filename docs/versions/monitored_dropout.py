"""dropout, momentum, `MonitoredTrainingSession`"""

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_eager_execution()
tf.set_random_seed(7)
random = np.random.RandomState(0)
x = tf.constant(random.rand(16, 8).astype("f4"))
hidden = tf.nn.dropout(tf.nn.relu(tf.matmul(x, tf.get_variable("w1", [8, 12]))), rate=0.4)
loss = tf.reduce_mean(tf.square(tf.matmul(hidden, tf.get_variable("w2", [12, 1])) - 1.0))
step = tf.train.get_or_create_global_step()
train_op = tf.train.MomentumOptimizer(0.05, 0.9).minimize(loss, global_step=step)
with tf.train.MonitoredTrainingSession(hooks=[tf.train.StopAtStepHook(8)]) as sess:
    while not sess.should_stop():
        print("loss", sess.run([loss, train_op])[0])
