"""A script of the vendor's package."""

import sys

import tensorflow as tf
from npu_bridge.npu_init import *

with tf.compat.v1.Session(graph=tf.Graph(), config=npu_config_proto()) as sess:
    print(sys.argv, sess)
