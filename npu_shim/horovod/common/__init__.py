"""The parts of Horovod's interface that need no TensorFlow."""
