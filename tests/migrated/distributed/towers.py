"""Towers of several GPUs, whose gradients the script averages by hand. It counts the collectives in its graph."""
import argparse
import json
import os

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
parser = argparse.ArgumentParser()
parser.add_argument('--num_gpus', type=int, default=2)
parser.add_argument('model_dir')
args = parser.parse_args()
x = np.linspace(-1, 1, 64).astype(np.float32).reshape(64, 1)
rank, size = int(os.environ.get('RANK_ID', 0)), int(os.environ.get('RANK_SIZE', 1))
x = x[rank::size]


def tower_loss(features, labels):
    w = tf.get_variable('w', [1, 1], initializer=tf.constant_initializer(0.5))
    b = tf.get_variable('b', [1], initializer=tf.zeros_initializer())
    return tf.reduce_mean(tf.square(tf.matmul(features, w) + b - labels))


def average_gradients(towers):
    average = []
    for pairs in zip(*towers):
        gradient = tf.reduce_mean(tf.stack([gradient for gradient, _ in pairs]), 0)
        average.append((gradient, pairs[0][1]))
    return average


features = tf.placeholder(tf.float32, [len(x), 1])
parts = tf.split(features, args.num_gpus)
optimizer = tf.train.AdamOptimizer(0.1)
towers, losses = [], []
for i in range(args.num_gpus):
    with tf.device('/gpu:%d' % i), tf.variable_scope('model', reuse=i > 0):
        loss = tower_loss(parts[i], 3 * parts[i] - 1)
        towers.append(optimizer.compute_gradients(loss))
        losses.append(loss)
train_op = optimizer.apply_gradients(average_gradients(towers))
collectives = [op.name for op in tf.get_default_graph().get_operations() if op.type == 'MapDataset']  # runs on the host
with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as sess:
    sess.run(tf.global_variables_initializer())
    for step in range(10):
        sess.run(train_op, {features: x})
    found = {v.op.name: sess.run(v).tolist() for v in tf.trainable_variables()}
found['collectives'] = len(collectives)
print(json.dumps(found))
