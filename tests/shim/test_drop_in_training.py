"""drop_in_training: Keras trains on full batches, and everything else reads all examples."""

from __future__ import annotations

import gc

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


if not tf.__version__.startswith("1."):

    def trained(rows, optimizer, weight):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((rows @ weight) ** 2)
        optimizer.apply_gradients([(tape.gradient(loss, weight), weight)])

    @pytest.fixture(params=["eager", "function"])
    def step(request):
        weight, optimizer = tf.Variable(tf.ones([2, 1])), tf.keras.optimizers.SGD(0.01)
        call = trained if request.param == "eager" else tf.function(trained)
        return lambda rows: call(rows, optimizer, weight)

    def test_a_loop_that_trains_drops_partial_batches_and_others_keep_them(step):
        data = batches(20)
        other = data.map(lambda x, y: x).repeat(2)
        for _ in range(2):  # the first pass creates the optimizer's variables
            sizes, evaluated = [], []
            for x, _ in data:
                step(x)
                sizes.append(len(x))
                evaluated += [len(x) for x, _ in data]
            assert (sizes, evaluated) == ([8, 8], [8, 8, 4] * 2)
        sizes = []
        for number, x in enumerate(other):
            step(x)
            sizes.append((number, len(x)))
        assert sizes == [(0, 8), (1, 8), (2, 8), (3, 8)]
        assert [len(x) for x in other] == [8, 8, 4] * 2

    def test_a_loop_of_a_strategy_that_trains_drops_partial_batches():
        strategy = tf.distribute.MirroredStrategy(["CPU:0"])
        with strategy.scope():
            weight, optimizer = tf.Variable(tf.ones([2, 1])), tf.keras.optimizers.SGD(0.01)
            assert int(optimizer.iterations.numpy()) == 0  # the variable is a mirrored one
        sizes = []
        for x, _ in batches(20):
            strategy.run(trained, (x, optimizer, weight))
            sizes.append(len(x))
        assert sizes == [8, 8]

    def sizes_of_training(data, step):
        """Return the sizes of the batches of a loop that trains."""
        sizes = []
        for x in data:
            step(tf.ones([len(x), 2]))
            sizes.append(len(x))
        return sizes

    def test_steps_that_may_change_the_rows_keep_all_batches(step):
        x = tf.ones([20, 2])
        data = drop_in_training(tf.data.Dataset.from_tensor_slices(x).batch(8))
        assert sizes_of_training(data, step) == [8, 8]  # and creates the optimizer's variables
        assert sizes_of_training(data.map(lambda x: x + 1), step) == [8, 8]
        transposed = data.map(lambda x: tf.transpose(tf.ensure_shape(x, [None, 2])))
        assert sizes_of_training(transposed, step) == [2, 2, 2]
        cropped = drop_in_training(tf.data.Dataset.from_tensor_slices(tf.ones([20, 9, 2])).batch(8)).map(
            lambda x: tf.transpose(x, [1, 0, 2])[: tf.random.uniform([], 4, 9, tf.int32)]
        )
        assert len(sizes_of_training(cropped, step)) == 3
        assert sizes_of_training(data.repeat().take(5), step) == [8, 8, 4, 8, 8]
        assert sizes_of_training(data.take(3).repeat(2), step) == [8] * 4

    def test_a_dead_optimizer_and_one_of_a_graph_are_no_training(step):
        data = drop_in_training(tf.data.Dataset.from_tensor_slices(tf.ones([20, 2])).batch(8))
        weight, optimizer = tf.Variable(tf.ones([2, 1])), tf.keras.optimizers.SGD(0.01)
        trained(tf.ones([8, 2]), optimizer, weight)
        if int(tf.__version__.split(".")[1]) < 16:  # Keras 3 has no optimizers in graphs
            with tf.Graph().as_default():
                sgd = getattr(tf.keras.optimizers, "legacy", tf.keras.optimizers).SGD(0.1)
                sgd.apply_gradients([(tf.ones([]), tf.Variable(1.0))])
        sizes = []
        for x in data:
            sizes.append(len(x))
            optimizer = None
            gc.collect()
        assert sizes == [8, 8, 4]
        assert sizes_of_training(data, step) == [8, 8]

    def test_an_optimizer_of_a_function_that_was_traced_before_counts(step):
        step(tf.ones([8, 2]))
        npu_shim.uninstall()
        data = drop_in_training(tf.data.Dataset.from_tensor_slices(tf.ones([20, 2])).batch(8))
        assert sizes_of_training(data, step) == [8, 8]

    def test_other_elements_are_not_dropped(step):
        data = drop_in_training(tf.data.Dataset.range(20).map(lambda n: tf.ones([2])).batch(8))
        for unbatched in (data.unbatch().batch(6), data.map(lambda x: x[:3])):
            sizes = []
            for x in unbatched:
                step(x)
                sizes.append(len(x))
            assert sizes in ([6, 6, 6, 2], [3, 3, 3])
        few = drop_in_training(tf.data.Dataset.from_tensors(tf.ones([2])).batch(8))
        sizes = []
        for x in few:  # without a full batch, nothing is dropped
            step(x)
            sizes.append(len(x))
        assert sizes == [1]
        npu_shim.uninstall()
        sizes = []
        for x, _ in batches(20).take(0).concatenate(batches(20)):
            step(x)
            sizes.append(len(x))
        assert sizes == [8, 8, 4]


@pytest.mark.parametrize("number", [16, 20])  # without and with a partial batch
def test_an_epoch_that_is_a_pass_through_the_data_stays_one(number):
    model, _ = model_with_sizes()
    steps = -(-number // 8)
    history = model.fit(batches(number), epochs=3, steps_per_epoch=steps, verbose=0).history["loss"]
    assert (len(history) == 3) != tf.__version__.startswith("1.")  # 1.15 reads on, also without drop_in_training


def test_an_epoch_of_fewer_steps_than_the_data_stays_one():
    model, sizes = model_with_sizes()
    data = batches(40).repeat()
    assert len(model.fit(data, epochs=2, steps_per_epoch=3, verbose=0).history["loss"]) == 2
    assert sizes.count(8) == 6 and set(sizes) == {8}
