import tensorflow.compat.v1 as tf

def model_fn(features, labels, mode):
    net = tf.layers.dropout(net, rate=0.4, training=mode == tf.estimator.ModeKeys.TRAIN)
import tensorflow.compat.v1 as tf

def model_fn(features, labels, mode):
    net = tf.layers.dropout(net, rate=0.4, training=mode == tf.estimator.ModeKeys.TRAIN)
