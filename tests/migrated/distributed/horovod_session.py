"""A monitored session, and then a plain one, that train with Horovod."""
import json

import horovod.tensorflow as hvd
import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
x = np.linspace(-1, 1, 64).astype(np.float32).reshape(64, 1)


def build():
    features = tf.constant(x)
    w = tf.get_variable('w', [1, 1], initializer=tf.zeros_initializer())
    loss = tf.reduce_mean(tf.square(tf.matmul(features, w) - 3 * features))
    opt = hvd.DistributedOptimizer(tf.train.AdagradOptimizer(0.3 * hvd.size()), name='d', sparse_as_dense=True)
    step = tf.train.get_or_create_global_step()
    return loss, opt.minimize(loss, step)


def monitored():
    with tf.Graph().as_default():
        loss, train_op = build()
        mean, total = hvd.allreduce(loss), hvd.allreduce(loss, average=False)
        hooks = [hvd.BroadcastGlobalVariablesHook(0), tf.train.StopAtStepHook(last_step=10 // hvd.size())]
        found = []
        with tf.train.MonitoredTrainingSession(hooks=hooks) as sess:
            while not sess.should_stop():
                found.append([float(v) for v in sess.run([train_op, mean, total])[1:]])
    return found


def plain():
    with tf.Graph().as_default():
        loss, train_op = build()
        rows = hvd.allgather(tf.reshape(loss, [1]))
        first = hvd.broadcast(loss, root_rank=0)
        with tf.Session() as sess:
            sess.run(tf.global_variables_initializer())
            sess.run(hvd.broadcast_global_variables(0))
            for _ in range(10):
                sess.run(train_op)
            return [float(v) for v in list(sess.run(rows)) + [sess.run(first)]]


if __name__ == '__main__':
    hvd.init()
    result = [monitored(), plain()]
    if hvd.rank() == 0:
        print(json.dumps(result))
