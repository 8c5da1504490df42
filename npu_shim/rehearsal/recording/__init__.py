"""Record a run: hooks on public points of TensorFlow, which write digests of tensors to a file.

* ``digest`` reduces a tensor to a few numbers, from which two runs are compared.
* ``writer`` writes them, a line of JSON for each event. ``recorder`` counts the steps.
* ``methods`` replaces methods of a class and of its subclasses.
* ``optimizers``, ``tapes``, ``sessions``, ``keras_models``, ``estimators`` and ``summaries`` are the hooks.
* ``evaluation`` and ``prints`` record what loops of the script evaluate and print; ``printed_numbers`` reads lines.
* ``scaled_losses`` finds the loss before a loss scale.
* ``install`` installs them when the script imports TensorFlow. ``random_seeds`` makes two runs draw the same numbers.
* ``entropy``, ``queues`` and ``order_of_data`` take chance out of Python, NumPy, queue runners, tf.data and Keras.
"""
