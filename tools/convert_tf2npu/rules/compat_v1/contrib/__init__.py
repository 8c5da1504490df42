"""What becomes of tf.contrib when a script is lifted to tf.compat.v1."""
