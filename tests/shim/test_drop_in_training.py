"""drop_in_training: Keras trains on full batches, and everything else reads all examples."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

import npu_shim
from npu_shim.data import drop_in_training


@pytest.fixture(autouse=True)
def uninstalled():
    tf.keras.backend.clear_session()
    yield
    npu_shim.uninstall()
    tf.keras.backend.clear_session()


def model_with_sizes():
    """Return a model, and a list that gets the number of rows of each batch that it computes."""
    sizes = []

    def note(x):
        sizes.append(len(x))
        return x

    def noted(x):
        y = tf.numpy_function(note, [x], tf.float32)
        y.set_shape(x.shape)
        return y

    model = tf.keras.Sequential([tf.keras.layers.Lambda(noted, input_shape=(2,)), tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    return model, sizes


def batches(n):
    x = np.arange(2 * n, dtype=np.float32).reshape(n, 2)
    return drop_in_training(tf.data.Dataset.from_tensor_slices((x, x[:, :1])).batch(8)).prefetch(1)


def test_fit_drops_partial_batches_and_the_rest_keeps_them():
    model, sizes = model_with_sizes()
    data = batches(20)
    model.fit(data, epochs=2, verbose=0, validation_data=data)
    assert sizes.count(8) == 8 and sizes.count(4) == 2  # 2 epochs of training, and 2 validations
    del sizes[:]
    npu_shim.uninstall()
    model.fit(batches(20), verbose=0)  # before the first call
    assert sizes.count(4) == int(tf.__version__.startswith("1."))
    del sizes[:]
    model.evaluate(data, verbose=0)
    assert len(model.predict(data.map(lambda x, y: x), verbose=0)) == 20
    assert sorted(sizes) == [4, 4, 8, 8, 8, 8]


def test_fit_on_less_than_a_batch_is_an_error():
    model, _ = model_with_sizes()
    with pytest.raises(ValueError, match="has 5 examples, fewer than one batch of 8"):
        data = batches(5)
        model.fit(data, verbose=0)


def test_other_datasets_are_as_before_and_uninstall_restores_fit():
    batches(20)
    model, sizes = model_with_sizes()
    x = np.ones([20, 2], np.float32)
    model.fit(tf.data.Dataset.from_tensor_slices((x, x[:, :1])).batch(8), verbose=0)
    assert 4 in sizes
    npu_shim.uninstall()
    del sizes[:]
    data = batches(20)
    npu_shim.uninstall()
    model.fit(data, verbose=0)
    assert 4 in sizes


def test_it_takes_datasets_only():
    with pytest.raises(TypeError, match="must be a tf.data.Dataset"):
        drop_in_training([1])
