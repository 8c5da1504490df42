"""Sessions that clip, log, unscale and accumulate averaged gradients, on this rank's share of each batch.

    python gradient_readers_v1.py FOLDER WAY ...

A WAY names the averaging optimizer and the steps in their order, as in wrapper_log_clip_unscale_add.
"""
import json
import os
import sys

import numpy as np

from npu_shim.npu_init import *
import npu_shim.horovod.tensorflow as hvd
import tensorflow.compat.v1 as tf

FOLDER, WAYS = sys.argv[1], sys.argv[2:]
RANK, SIZE = get_rank_id(), get_rank_size()
SCALE = 4.0
tf.disable_v2_behavior()
hvd.init()
OPTIMIZERS = {'wrapper': npu_distributed_optimizer_wrapper, 'class': NPUDistributedOptimizer,
              'horovod': hvd.DistributedOptimizer}


def trained(way):
    kind, *order = way.split('_')
    rows = np.random.RandomState(3).normal(size=[96, 5]).astype(np.float32)
    with tf.Graph().as_default(), tf.Session() as session:
        x, y = tf.placeholder(tf.float32, [16 // SIZE, 5]), tf.placeholder(tf.float32, [16 // SIZE, 1])
        first, last = (tf.Variable(np.random.RandomState(len(shape) + shape[0]).normal(size=shape).astype(np.float32))
                       for shape in ([5, 4], [4, 1]))
        loss = tf.reduce_mean((tf.matmul(tf.tanh(tf.matmul(x, first)), last) - y) ** 2)
        optimizer = OPTIMIZERS[kind](tf.train.GradientDescentOptimizer(0.1))
        gradients, variables = zip(*optimizer.compute_gradients(loss * SCALE if 'unscale' in order else loss))
        sums = [tf.Variable(tf.zeros(variable.shape), trainable=False) for variable in variables]
        logged = tf.zeros([9])
        for name in order:
            if name == 'log':
                histogram = tf.histogram_fixed_width(tf.concat([tf.reshape(g, [-1]) for g in gradients], 0), [-0.83, 0.97], 8)
                logged = tf.concat([[tf.global_norm(gradients)], tf.cast(histogram, tf.float32)], 0)
            elif name == 'clip':
                gradients, _ = tf.clip_by_global_norm(gradients, 0.3)
            elif name == 'unscale':
                gradients = [gradient / SCALE for gradient in gradients]
            else:
                gradients = [tf.assign_add(total, gradient / 2) for total, gradient in zip(sums, gradients)]
        apply = optimizer.apply_gradients(zip(gradients, variables))
        clear = tf.group(*[tf.assign(total, tf.zeros_like(total)) for total in sums])
        session.run(tf.global_variables_initializer())
        logs = []
        for step in range(12):
            begin = 16 * (step % 6)
            batch = rows[begin:begin + 16][RANK::SIZE]
            fed = {x: batch, y: np.tanh(batch.sum(axis=1, keepdims=True))}
            is_last = 'add' not in order or step % 2
            logs.append(session.run([logged, apply] if is_last else [logged, *gradients], fed)[0].tolist())
            if is_last:
                session.run(clear)
        return {'logs': logs, 'weights': [value.tolist() for value in session.run(list(variables))]}


found = {way: trained(way) for way in WAYS}
with open(os.path.join(FOLDER, 'rank_%d_of_%d.json' % (RANK, SIZE)), 'w') as stream:
    json.dump(found, stream)
