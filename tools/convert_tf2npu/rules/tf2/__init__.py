"""Rules for eager code, tf.function and Keras of TensorFlow 2."""
