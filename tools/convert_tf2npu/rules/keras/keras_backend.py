"""Keras with a backend other than TensorFlow.

Keras runs on the NPU through TensorFlow only. The rule reports scripts that choose another backend. Choose
``'tensorflow'`` before the import of Keras, and replace what only the other backend has. Then convert the script again:
no other rule acts in a program with another backend.

Reported::

    import os

    os.environ['KERAS_BACKEND'] = 'jax'
    import keras

Reported::

    import keras

    keras.config.set_backend('torch')

Reported::

    import os

    os.environ['KERAS_BACKEND'] = 'torch'
    import keras
    import tensorflow as tf

    dataset = tf.data.Dataset.from_tensor_slices((images, labels)).batch(32)
    model = keras.Sequential([keras.layers.Dense(1)])
    model.compile('adam', 'mse')
    model.fit(dataset)

Untouched::

    import os

    os.environ['KERAS_BACKEND'] = 'tensorflow'
    from tensorflow import keras

Untouched::

    import os

    os.environ['MPL_BACKEND'] = 'jax'
    from tensorflow import keras
"""

from __future__ import annotations

from typing import Iterator

from ...analysis.device_placement import is_in_test
from ...analysis.keras_backends import may_choose_backend, other_backends
from ..base import Context, Finding

CODE = "NPU277"


def check_file(context: Context) -> Iterator[Finding]:
    if not may_choose_backend(context.source.text):
        return
    for node, backend in context.names.once(other_backends):
        if not is_in_test(context, node):
            yield Finding(node, "Keras with the backend {0} does not run on the NPU. Write 'tensorflow'", backend)
