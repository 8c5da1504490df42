"""TensorFlow 1 on TensorFlow 2, through tf.compat.v1."""
