"""The models that benchmarks of whole training steps train: a small MLP and a CNN, with input from tf.data.

Initial weights and examples come from NumPy with a seed, so that any two sides which train the same number of steps
can be compared weight by weight.
"""

from __future__ import annotations

from typing import Any, Callable

import numpy as np

BATCH = 32
_EXAMPLES = 4096
_SHAPES: dict[str, tuple[int, ...]] = {"mlp": (20,), "cnn": (28, 28, 1)}


def names() -> list[str]:
    """Return the names of the models."""
    return list(_SHAPES)


def dataset(model: str) -> Any:
    """Batches of features and labels, again and again."""
    import tensorflow as tf

    random = np.random.RandomState(0)
    features = random.randn(_EXAMPLES, *_SHAPES[model]).astype(np.float32)
    labels = random.randn(_EXAMPLES, 1).astype(np.float32)
    data = tf.data.Dataset.from_tensor_slices((features, labels))
    return data.repeat().batch(BATCH, drop_remainder=True).prefetch(4)


def loss(model: str, features: Any, labels: Any) -> Any:
    """The mean squared error of a model whose variables are made here."""
    import tensorflow as tf

    return tf.reduce_mean(tf.square({"mlp": _mlp, "cnn": _cnn}[model](features, _Weights()) - labels))


def train_op(value: Any) -> Any:
    """One step of Adam that lowers a loss and counts the global step."""
    from tensorflow.compat.v1 import train

    return train.AdamOptimizer(1e-3).minimize(value, global_step=train.get_or_create_global_step())


def in_session(model: str, make: Callable[[], Any]) -> tuple[Any, Any]:
    """A model in a graph of its own.

    Args:
        make: makes the session.
    Returns:
        The session, with everything initialised, and its train op.
    """
    import tensorflow as tf

    v1 = tf.compat.v1
    with tf.Graph().as_default():
        iterator = v1.data.make_initializable_iterator(dataset(model))
        step = train_op(loss(model, *iterator.get_next()))
        session = make()
        session.run([v1.global_variables_initializer(), iterator.initializer])
    return session, step


def weights_in(session: Any) -> dict[str, Any]:
    """The trainable variables and the global step of a session's graph, by name."""
    import tensorflow as tf

    with session.graph.as_default():
        variables = tf.compat.v1.trainable_variables() + [tf.compat.v1.train.get_global_step()]
    return session.run({variable.op.name: variable for variable in variables})


class KerasModel:
    """The same models of Keras layers, in a graph and a session of their own; calling it makes training steps by fit.

    Args:
        model: its name.
        start: gives Keras its session.
    """

    def __init__(self, model: str, start: Callable[[], Any]) -> None:
        import tensorflow as tf

        keras, layers = tf.keras, tf.keras.layers
        self._graph = tf.Graph()
        random = np.random.RandomState(0)
        self._features = random.randn(_EXAMPLES, *_SHAPES[model]).astype(np.float32)
        self._labels = random.randn(_EXAMPLES, 1).astype(np.float32)
        with self._graph.as_default():
            start()
            self._backend = tf.compat.v1.keras.backend
            self._session = self._backend.get_session()
            first = [layers.InputLayer(_SHAPES[model])]
            for filters in (16, 32) if model == "cnn" else ():
                first += [layers.Conv2D(filters, 3, padding="same", activation="relu"), layers.MaxPooling2D()]
            last = [layers.Flatten(), layers.Dense(64, activation="relu"), layers.Dense(1)]
            self._model = keras.Sequential(first + last)
            self._model.compile("adam", "mse")
            self._model.set_weights([random.randn(*weight.shape) * 0.1 for weight in self._model.get_weights()])

    def __call__(self, steps: int) -> None:
        """Makes steps."""
        rows = steps * BATCH
        with self._graph.as_default(), self._session.as_default():
            self._backend.set_session(self._session)
            self._model.fit(
                self._features[:rows], self._labels[:rows], batch_size=BATCH, epochs=1, shuffle=False, verbose=0
            )

    def weights(self) -> dict[str, Any]:
        """Return the weights of all layers, by their place."""
        with self._graph.as_default(), self._session.as_default():
            self._backend.set_session(self._session)
            return {f"w{place}": value for place, value in enumerate(self._model.get_weights())}


class _Weights:
    """Makes variables of which each has its own seed."""

    def __init__(self) -> None:
        self._made = 0

    def __call__(self, *shape: int) -> Any:
        import tensorflow as tf

        self._made += 1
        value = np.random.RandomState(self._made).randn(*shape) / np.sqrt(max(1, np.prod(shape[:-1])))
        return tf.compat.v1.get_variable(f"w{self._made}", initializer=value.astype(np.float32), use_resource=True)


def _mlp(x: Any, weights: _Weights) -> Any:
    import tensorflow as tf

    return tf.matmul(tf.nn.relu(tf.matmul(x, weights(20, 64)) + weights(64)), weights(64, 1)) + weights(1)


def _cnn(x: Any, weights: _Weights) -> Any:
    import tensorflow as tf

    for channels in ((1, 16), (16, 32)):
        x = tf.nn.conv2d(x, weights(3, 3, *channels), strides=[1, 1, 1, 1], padding="SAME")
        x = tf.nn.relu(tf.nn.bias_add(x, weights(channels[1])))
        x = tf.nn.max_pool(x, [1, 2, 2, 1], [1, 2, 2, 1], "SAME")
    x = tf.reshape(x, [-1, 7 * 7 * 32])
    return tf.matmul(tf.nn.relu(tf.matmul(x, weights(7 * 7 * 32, 64)) + weights(64)), weights(64, 1)) + weights(1)
