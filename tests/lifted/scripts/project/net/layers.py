"""A layer that builds on what the neighbour imports."""
from .compat import tf


def scale(inputs, name):
    with tf.variable_scope(name, reuse=tf.AUTO_REUSE):
        factor = tf.get_variable('factor', [], initializer=tf.ones_initializer())
    return inputs * factor
