"""Private TensorFlow and its versions: only these modules import ``tensorflow.python``, one module per topic."""
