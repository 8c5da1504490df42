"""The keras package instead of tf.keras, with TensorFlow 1.

With TensorFlow 1, only the Keras of TensorFlow runs on the NPU: the separate package ``keras`` builds its own graphs and
layers. Import ``keras`` and its modules from ``tensorflow``. The rule reports one finding for each file of a program that
builds graphs, and with ``--tf 1`` and ``--compat-v1``.

With TensorFlow 2 the package is the Keras of TensorFlow. All rules act on its names as on those of ``tf.keras``, and the
device is opened (NPU121).

Reported::

    from keras.models import Sequential
    from keras.layers import Dense
    import tensorflow as tf

    x = tf.placeholder(tf.float32, [32, 4])
    y = Dense(1)(x)

Reported::

    import keras
    from keras import backend as K

    K.set_session(session)
    model = keras.Sequential()

Reported::

    import keras
    from keras.utils import multi_gpu_model

    model = multi_gpu_model(keras.Sequential(), 2)
    model.fit(images, labels, nb_epoch=4)

Untouched::

    import keras

    layer = keras.layers.Dense(1)

Untouched::

    from tensorflow import keras

    keras.backend.set_session(session)
    model = keras.Sequential()

Untouched::

    try:
        from tensorflow import keras
    except ImportError:
        import keras

    x = keras.backend.placeholder((32, 4))
"""

from __future__ import annotations

from typing import Iterator

from ...analysis.device_placement import is_in_test
from ...analysis.keras_package import keras_imports
from ..base import Context, Finding

CODE = "NPU228"


def check_file(context: Context) -> Iterator[Finding]:
    names = context.names
    if not names.keras_apart or "keras" not in context.source.text or is_in_test(context, names.tree):
        return
    imports = keras_imports(names)
    if imports:
        first = min(imports, key=lambda b: getattr(b.node, "lineno", 0))
        assert first.node is not None
        module = first.target.split(".")[1] if "." in first.target else "layers"
        yield Finding(
            first.node,
            "the keras package does not run on the NPU. Write from tensorflow import keras, "
            "from tensorflow.keras.{0} import NAME",
            module,
        )
