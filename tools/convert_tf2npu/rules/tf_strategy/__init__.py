"""Strategies of tf.distribute."""
