"""Parts that Horovod's modules for tf.keras and for the package keras share."""
