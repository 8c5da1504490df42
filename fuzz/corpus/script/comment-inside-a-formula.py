import numpy as np
import tensorflow as tf

def block(x, units):
    h = tf.layers.dense(x, units)
    h = 0.5 * h * (1 # c
 + tf.tanh(np.sqrt(2 / np.pi) * (h + 0.044715 * tf.pow(h, 3))))
    return x + h

def scoped(x):
    with tf.name_scope('gelu'):
        cdf = 0.5 * (1 + tf.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))
        return x * cdf
