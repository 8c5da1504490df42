"""Names of tf.contrib and their place in TensorFlow 2."""
