"""The device started and stopped by hand around training, and a step in which one rank overflows; writes what each rank sees.

    python system_ranks.py FOLDER
"""
import json
import os
import sys

import numpy as np

from npu_shim.npu_init import *
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
FOLDER = sys.argv[1]
npu_sess, npu_shutdown = init_resource()
RANK, SIZE = get_npu_rank_id(), get_npu_rank_size()
found = {'ranks': [RANK, SIZE, get_npu_local_rank_id(), get_npu_local_rank_size()]}

with tf.Graph().as_default(), tf.Session(config=npu_config_proto()) as session:
    start, stop = npu_ops.initialize_system(), npu_ops.shutdown_system()
    session.run(start)
    total = hccl_ops.allreduce(tf.constant([1.0, RANK]), 'sum')
    found['sum'] = session.run(total).tolist()
    session.run(stop)

with tf.Graph().as_default():
    x = tf.placeholder(tf.float32, [2])
    w = tf.get_variable('w', [2], initializer=tf.constant_initializer(1.0))
    loss = tf.reduce_sum(w * x)
    manager = ExponentialUpdateLossScaleManager(init_loss_scale=16, incr_every_n_steps=100, decr_every_n_nan_or_inf=1)
    optimizer = NPULossScaleOptimizer(tf.train.GradientDescentOptimizer(0.1), manager, is_distributed=True)
    step = tf.train.get_or_create_global_step()
    run = optimizer.minimize(loss, step)
    looked_at = [step, manager.get_loss_scale(), w[1]]
    with tf.train.MonitoredTrainingSession(hooks=npu_hooks_append(), config=npu_config_proto()) as session:
        found['steps'] = []
        for index in range(4):
            given = np.array([1.0, np.inf if index == 1 and RANK == SIZE - 1 else 2.0], np.float32)
            session.run(run, {x: given})
            found['steps'].append([float(v) for v in session.run(looked_at)])

shutdown_resource(npu_sess, npu_shutdown)
close_session(npu_sess)
with open(os.path.join(FOLDER, 'rank_%d_of_%d.json' % (RANK, SIZE)), 'w') as stream:
    json.dump(found, stream)
