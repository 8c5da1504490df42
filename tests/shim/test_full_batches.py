"""full_batches: Keras' fit leaves out other rows of arrays or images in each epoch, and nothing else loses one."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

import npu_shim
from npu_shim.data import full_batches


@pytest.fixture(autouse=True)
def uninstalled():
    tf.keras.backend.clear_session()
    yield
    npu_shim.uninstall()
    tf.keras.backend.clear_session()


def rows(number):
    """Return rows that are all different: 0, 1, ..."""
    return np.arange(number, dtype=np.float32).reshape(number, 1)


class Noted:
    """A model that returns what it is given, and the rows of each batch that it computes."""

    def __init__(self, loss="mae", shape=(1,)):
        self.batches = []
        inputs = tf.keras.Input(shape)
        outputs = tf.keras.layers.Flatten()(tf.keras.layers.Lambda(self._note)(inputs))
        outputs = tf.keras.layers.Dense(1, kernel_initializer="ones")(outputs)
        self.model = tf.keras.Model(inputs, outputs)
        self.model.compile(tf.keras.optimizers.SGD(0.0), loss)

    def _note(self, x):
        def note(values):
            self.batches.append([int(value) for value in values.flat])
            return values

        y = tf.numpy_function(note, [x], tf.float32)
        y.set_shape(x.shape)
        return y

    def fit(self, *args, **kwargs):
        """Return the losses of the epochs, and the rows of each batch."""
        del self.batches[:]
        shuffle = kwargs.pop("shuffle", None)
        shuffle = full_batches() if shuffle is None else shuffle
        losses = self.model.fit(*args, verbose=0, shuffle=shuffle, **kwargs).history["loss"]
        return losses, list(self.batches)


@pytest.mark.parametrize("seed", [3, None])  # with a seed, tf.random.shuffle repeats an order in Keras 3
def test_each_epoch_leaves_out_other_rows(seed):
    tf.compat.v1.set_random_seed(seed)
    losses, batches = Noted().fit(rows(20), rows(20) + 2, batch_size=8, epochs=12)
    assert [len(batch) for batch in batches] == [8] * 24
    epochs = [sorted(batches[n] + batches[n + 1]) for n in range(0, 24, 2)]
    assert all(len(set(epoch)) == 16 for epoch in epochs)
    assert len({tuple(epoch) for epoch in epochs}) > 1 and set(sum(epochs, [])) == set(range(20))
    np.testing.assert_allclose(losses, 2, rtol=1e-6)  # each row with its target, and the mean over these rows


def test_validation_evaluation_and_prediction_keep_all_rows():
    noted = Noted()
    _, batches = noted.fit(rows(25), rows(25), batch_size=8, epochs=2, validation_split=0.2)
    assert sorted(map(len, batches)) == [5, 5, 8, 8, 8, 8]
    assert all(max(batch) < 20 for batch in batches if len(batch) == 8)
    _, batches = noted.fit(rows(20), rows(20), batch_size=8, validation_data=(rows(20), rows(20)))
    assert [len(batch) for batch in batches] == [8, 8, 8, 8, 4]
    del noted.batches[:]
    noted.model.evaluate(rows(20), rows(20), batch_size=8, verbose=0)
    assert noted.model.predict(rows(20), batch_size=8, verbose=0).shape == (20, 1)
    assert [len(batch) for batch in noted.batches] == [8, 8, 4] * 2


def test_weights_go_with_their_rows():
    losses, batches = Noted().fit(rows(20), rows(20) + 1, batch_size=8, sample_weight=rows(20)[:, 0])
    assert losses[0] == pytest.approx(np.mean(batches))
    losses, batches = Noted().fit(rows(20), np.arange(20) % 2, batch_size=8, class_weight={0: 0.0, 1: 1.0})
    assert losses[0] == pytest.approx(np.mean([abs(n - 1) * (n % 2) for n in sum(batches, [])]))


def test_several_inputs_and_outputs_stay_together():
    first, second = tf.keras.Input((1,), name="first"), tf.keras.Input((1,), name="second")
    model = tf.keras.Model([first, second], [tf.keras.layers.Subtract(name=n)([first, second]) for n in ("a", "b")])
    model.compile("sgd", "mae")
    x = {"first": rows(20), "second": rows(20) + 3}
    for given in x, list(x.values()):
        targets = [np.full([20, 1], -2.0), np.full([20, 1], -3.0)]
        history = model.fit(given, targets, batch_size=8, epochs=2, verbose=0, shuffle=full_batches()).history
        np.testing.assert_allclose(history["loss"], 1, rtol=1e-6)


def test_fit_without_a_partial_batch_and_other_orders_are_as_before():
    noted = Noted()
    _, batches = noted.fit(rows(16), rows(16), batch_size=8, epochs=2)
    assert [sorted(batches[n] + batches[n + 1]) for n in (0, 2)] == [[*range(16)]] * 2
    for shuffle in True, False, "batch":
        _, batches = noted.fit(rows(20), rows(20), batch_size=8, shuffle=shuffle)
        assert sorted(sum(batches, [])) == [*range(20)]
    assert noted.fit(rows(20), rows(20), batch_size=8, shuffle=False)[1][2] == [16, 17, 18, 19]


def test_an_epoch_in_the_middle_and_the_default_size():
    _, batches = Noted().fit(rows(70), rows(70), epochs=3, initial_epoch=1)
    assert [len(batch) for batch in batches] == [32] * 4


def assert_kept(log, number, text, **given):
    """Assert that fit trains on all rows, and that one line of the log says why, however often it does."""
    noted = Noted()
    for _ in range(2):
        _, batches = noted.fit(rows(number), rows(number), batch_size=8, **given)
        assert sorted(sum(batches, [])) == [*range(number)]
    assert [text in message and "test_full_batches.py:" in message for message in log()] == [True]


def test_fewer_rows_than_a_batch_are_all_trained_on(log):
    reason = "it has 5 rows, fewer than a batch of 8."
    assert_kept(log, 5, f"trains on all rows, also in a partial batch, because {reason}")


def test_a_single_full_batch(log):
    """Graph mode gives Keras' only batch all rows as they are."""
    if tf.__version__.startswith("1."):
        assert_kept(log, 12, "because graph mode needs two batches, 16 rows.")
    else:
        _, batches = Noted().fit(rows(12), rows(12), batch_size=8, epochs=2)
        assert [len(batch) for batch in batches] == [8, 8]


def test_a_line_of_the_log_names_the_cost_and_uninstall_ends_it(log):
    noted = Noted()
    for _ in range(2):
        noted.fit(rows(20), rows(20), batch_size=8)
    (message,) = log()
    assert "leaves out 4 of 20 rows in each epoch, others in each." in message
    shuffle = full_batches()
    npu_shim.uninstall()
    assert sorted(map(len, noted.fit(rows(20), rows(20), batch_size=8, shuffle=shuffle)[1])) == [4, 8, 8]


if not tf.__version__.startswith("1."):

    def test_steps_of_an_epoch_count_all_batches(log):
        assert_kept(log, 20, "because steps_per_epoch=3 counts its batches.", steps_per_epoch=3)

    def test_all_batches_have_one_signature():
        shapes = set()

        class Model(tf.keras.Sequential):
            """Note the shapes with which its step is traced."""

            def train_step(self, data):
                """Train on a batch."""
                shapes.add(tuple(data[0].shape))
                return super().train_step(data)

        model = Model([tf.keras.layers.Dense(1)])
        model.compile("sgd", "mse")
        model.fit(rows(20), rows(20), batch_size=8, epochs=2, verbose=0, shuffle=full_batches())
        assert shapes == {(8, 1)}

    class Images(tf.keras.preprocessing.image.Iterator):
        """An iterator as of ImageDataGenerator, without its packages: images of one pixel, and targets."""

        def __init__(self, number, size, shuffle=True, seed=None, **kwargs):
            super().__init__(number, size, shuffle, seed, **kwargs)

        def _get_batches_of_transformed_samples(self, index_array):
            images = index_array.astype(np.float32)
            return images.reshape(-1, 1, 1, 1), images + 2

    def of_images(*args, number=20, size=8, shuffle=True, seed=None, **kwargs):
        """Return the losses and the rows of each batch of a fit on images."""
        settings = {name: kwargs.pop(name) for name in ("workers", "use_multiprocessing") if name in kwargs}
        of_iterator, of_fit = (settings, {}) if hasattr(tf.keras, "Operation") else ({}, settings)
        images = Images(number, size, shuffle, seed, **of_iterator)
        return Noted(shape=(1, 1, 1)).fit(images, *args, **of_fit, **kwargs)

    @pytest.mark.parametrize("given", [{}, {"workers": 3}, {"steps_per_epoch": 2}, {"seed": 5}])
    def test_each_epoch_leaves_out_other_images(given):
        losses, batches = of_images(epochs=12, **given)
        assert [len(batch) for batch in batches] == [8] * 24
        epochs = [sorted(batches[n] + batches[n + 1]) for n in range(0, 24, 2)]
        assert all(len(set(epoch)) == 16 for epoch in epochs)
        assert len({tuple(epoch) for epoch in epochs}) > 1 and set(sum(epochs, [])) == set(range(20))
        np.testing.assert_allclose(losses, 2, rtol=1e-6)

    def test_processes_read_the_full_batches_of_images():
        _, batches = of_images(workers=2, use_multiprocessing=True)
        assert [len(batch) for batch in batches] == [8, 8] and len(set(sum(batches, []))) == 16

    def test_fewer_steps_than_full_batches_of_images_and_validation():
        validation = Images(20, 8)
        _, batches = of_images(epochs=2, steps_per_epoch=1, validation_data=validation)
        assert [sorted(map(len, batches[n : n + 4])) for n in (0, 4)] == [[4, 8, 8, 8]] * 2
        noted = Noted(shape=(1, 1, 1))
        noted.fit(validation)
        del noted.batches[:]
        noted.model.evaluate(validation, verbose=0)
        assert noted.model.predict(validation, verbose=0).shape == (20, 1)
        assert sorted(map(len, noted.batches)) == [4, 4, 8, 8, 8, 8]

    @pytest.mark.parametrize("number, sizes", [(16, [8, 8]), (5, [5]), (8, [8])])
    def test_images_without_a_partial_batch_are_as_before(number, sizes, log):
        _, batches = of_images(number=number, epochs=2)
        assert [len(batch) for batch in batches] == sizes * 2 and {*sum(batches, [])} == {*range(number)}
        assert ["fewer than a batch of 8" in message for message in log()] == [True] * (number == 5)

    def test_full_batches_of_images_are_those_of_their_iterator():
        epochs = []
        for shuffle in True, None:
            np.random.seed(7)
            _, batches = Noted(shape=(1, 1, 1)).fit(Images(20, 8), shuffle=shuffle, epochs=2)
            full = [tuple(batch) for batch in batches if len(batch) == 8]
            epochs.append([{*full[:2]}, {*full[2:]}])
        assert epochs[0] == epochs[1]

    def test_images_in_one_order_are_all_trained_on(log):
        _, batches = of_images(shuffle=False)
        assert sorted(sum(batches, [])) == [*range(20)]
        assert ["because its iterator has shuffle=False" in message for message in log()] == [True]

    def test_steps_that_count_the_partial_batch_of_images_keep_it(log):
        _, batches = of_images(epochs=2, steps_per_epoch=3)
        is_counted = not hasattr(tf.keras, "Operation")  # Keras 3 tells no steps, and warns where batches end before
        assert sorted(map(len, batches)) == [4, 4] * is_counted + [8, 8, 8, 8]
        assert ["because steps_per_epoch=3 counts its batches." in message for message in log()] == [is_counted]

    def test_all_batches_of_images_have_one_signature():
        shapes = set()

        class Model(tf.keras.Sequential):
            """Note the shapes with which its step is traced."""

            def train_step(self, data):
                """Train on a batch."""
                shapes.add((tuple(data[0].shape), tuple(data[1].shape)))
                return super().train_step(data)

        model = Model([tf.keras.layers.Flatten(), tf.keras.layers.Dense(1)])
        model.compile("sgd", "mse")
        model.fit(Images(20, 8), epochs=2, verbose=0, shuffle=full_batches())
        assert shapes == {((8, 1, 1, 1), (8,))}
