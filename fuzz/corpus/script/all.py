#!/usr/bin/env python
# -*- coding: utf-8 -*-
"""Trains."""
from __future__ import print_function
import os, sys; import tensorflow as tf  # the library
try:
    from tensorflow.contrib import slim
except ImportError: slim = None

FLAGS = tf.flags.FLAGS

class Model(object):
	def __init__(self, rate, /, *, keep=1 - .1):
		self.tf = tf; self.net = self.tf.nn.dropout(\
			x, rate=(1-keep) if rate else 0.5)  # it's
		self.gelu = lambda x: 0.5 * x * (1.0 + tf.tanh((2 / 3.14159) ** .5 * (x + 0.044715 * x ** 3)))

def input_fn(is_training):
    d = tf.data.Dataset.range(8).batch(
        4,  # of one card
    )
    return d if is_training else d.apply(tf.contrib.data.map_and_batch(lambda i: (i), 8))

def main(_):
    with tf.device('/gpu:0'), tf.Session(config=tf.ConfigProto(**kw)) as sess: sess.run(f"{tf.Session()!r:>{10}}")
    estimator = tf.estimator.Estimator(model_fn, config=tf.estimator.RunConfig('a'))
    estimator.train(lambda: input_fn(True))
    if (s := tf.Session()): print(s)

if __name__ == '__main__': tf.app.run()
