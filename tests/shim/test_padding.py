"""pad_last_batch: every example, a known batch dimension, and a mask that tells the real rows."""

from __future__ import annotations

import collections

import numpy as np
import pytest
import tensorflow as tf

import npu_shim
from npu_shim.data.padding import mask_name_of_pipeline

pytestmark = pytest.mark.twice

v1 = tf.compat.v1
N = 70
pad = npu_shim.data.pad_last_batch
Pair = collections.namedtuple("Pair", "a b")


def numbers(n=N):
    return tf.data.Dataset.range(n)


def elements(dataset, eager=False):
    """All elements of a dataset as numpy; in graph mode those of the default graph's."""
    if eager:
        return [tf.nest.map_structure(lambda t: t.numpy(), element) for element in dataset]
    nxt = v1.data.make_one_shot_iterator(dataset).get_next()
    got = []
    with v1.Session() as sess:
        while True:
            try:
                got.append(sess.run(nxt))
            except tf.errors.OutOfRangeError:
                return got


@pytest.fixture(params=[False, True] if tf.executing_eagerly() else [False], ids=lambda on: "eager" if on else "graph")
def eager(request):
    """False inside a graph; True without one, where that is TensorFlow's default."""
    if request.param:
        yield True
    else:
        with tf.Graph().as_default():
            yield False


# a pipeline, its batch size, and the numbers of real rows
PIPELINES = {
    "batch": (lambda: numbers().batch(16), 16, [16] * 4 + [6]),
    "batch of a TF 1 dataset": (lambda: v1.data.Dataset.range(N).batch(32), 32, [32, 32, 6]),
    "batches that are full": (lambda: numbers(64).batch(32), 32, [32, 32]),
    "batches that are static already": (lambda: numbers(64).batch(32, drop_remainder=True), 32, [32, 32]),
    "a batch of one": (lambda: numbers(3).batch(1), 1, [1, 1, 1]),
    "fewer examples than a batch": (lambda: numbers(3).batch(5), 5, [3]),
    "one example in a batch": (lambda: numbers(1).batch(5), 5, [1]),
    "batch, map, repeat, prefetch": (
        lambda: numbers().batch(32).map(lambda b: b + 0).repeat(2).prefetch(1),
        32,
        [32, 32, 6] * 2,
    ),
    "batch, shuffle, cache": (lambda: numbers().batch(32).cache(), 32, [32, 32, 6]),
    "padded_batch": (
        lambda: numbers().map(lambda i: tf.fill([3], i)).padded_batch(32, [4], np.int64(-1)),
        32,
        [32, 32, 6],
    ),
    "map_and_batch": (
        lambda: numbers().apply(tf.data.experimental.map_and_batch(lambda i: i + 0, 32)),
        32,
        [32, 32, 6],
    ),
    "concatenation": (lambda: numbers(40).batch(32).concatenate(numbers(3).batch(32)), 32, [32, 8, 3]),
    "zip": (lambda: tf.data.Dataset.zip((numbers(40).batch(32), numbers(40).batch(32))), 32, [32, 8]),
    "take": (lambda: numbers().batch(32).skip(1), 32, [32, 6]),
}


@pytest.mark.parametrize("make, size, real", PIPELINES.values(), ids=PIPELINES)
def test_full_size_all_rows_in_order(make, size, real, eager):
    padded = pad(make())
    shapes = tf.nest.flatten(v1.data.get_output_shapes(padded))
    assert {tf.compat.dimension_value(s[0]) for s in shapes} == {size}
    got = [tf.nest.flatten(e) for e in elements(padded, eager)]
    plain = [tf.nest.flatten(e) for e in elements(make(), eager)]
    assert [int(e[-1].sum()) for e in got] == real
    for found, wanted in zip(got, plain):
        mask = found.pop()
        assert mask.dtype == np.float32 and mask.tolist() == sorted(mask, reverse=True)
        for value, whole in zip(found, wanted):
            assert len(value) == size
            np.testing.assert_array_equal(value[mask > 0], whole)
            assert all(np.array_equal(row, whole[-1]) for row in value[mask == 0])
    assert len(got) == len(plain)


x, y = np.arange(5), np.arange(5) * 1.5
STRUCTURES = {
    "a tensor": (x, lambda e, m: (e, m)),
    "a pair": ((x, y), lambda e, m: (e[0], e[1], m)),
    "three": ((x, y, x), lambda e, m: (e[0], e[1], e[2], m)),
    "a tuple of one": ((x,), lambda e, m: (e[0], m)),
    "a dict": ({"x": x}, lambda e, m: {"x": e["x"], "is_real_example": m}),
    "features and labels": (
        ({"x": x, "w": y}, y),
        lambda e, m: ({"x": e[0]["x"], "w": e[0]["w"], "is_real_example": m}, e[1]),
    ),
    "features and labels that are dicts": (
        ({"x": x}, {"y": y}),
        lambda e, m: ({"x": e[0]["x"], "is_real_example": m}, e[1]),
    ),
    "a tuple in a tuple": (((x, y), x), lambda e, m: (e[0], e[1], m)),
    "a dict in a dict": ({"a": {"x": x}}, lambda e, m: {"a": e["a"], "is_real_example": m}),
    "a namedtuple in a tuple": ((Pair(x, y), x), lambda e, m: (e[0], e[1], m)),
}


@pytest.mark.parametrize("arrays, with_mask", STRUCTURES.values(), ids=STRUCTURES)
def test_the_place_of_the_mask(arrays, with_mask):
    with tf.Graph().as_default():
        padded = pad(tf.data.Dataset.from_tensor_slices(arrays).batch(4))
        last = elements(padded)[-1]
        cut = tf.nest.map_structure(lambda a: a[[4, 4, 4, 4]], arrays)
        wanted = with_mask(cut, np.float32([1, 0, 0, 0]))
        tf.nest.assert_same_structure(last, wanted)
        for got, value in zip(tf.nest.flatten(last), tf.nest.flatten(wanted)):
            np.testing.assert_array_equal(got, value)
        types = v1.data.get_output_types(padded)
        tf.nest.map_structure(lambda t, v: np.testing.assert_equal(t.as_numpy_dtype, v.dtype.type), types, last)


VALUES = {
    "text": np.array([b"a", b"bc", b"def"], object),
    "bool": np.array([True, False, True]),
    "float16": np.array([1, 2, 3], np.float16),
    "float64": np.array([1.5, np.nan, np.inf]),
    "uint8 images": np.arange(3 * 4 * 4 * 3).reshape(3, 4, 4, 3).astype(np.uint8),
    "int32 of no columns": np.zeros([3, 0], np.int32),
}


@pytest.mark.parametrize("rows", VALUES.values(), ids=VALUES)
def test_every_kind_of_value(rows, eager):
    got, real = elements(pad(tf.data.Dataset.from_tensor_slices(rows).batch(5)), eager)[0]
    np.testing.assert_array_equal(got, rows[[0, 1, 2, 2, 2]])
    assert real.tolist() == [1, 1, 1, 0, 0]


def test_a_component_without_rows_is_unchanged():
    with tf.Graph().as_default():
        dataset = numbers(5).batch(4).map(lambda b: {"b": b, "total": tf.reduce_sum(b), "table": tf.constant([7, 8])})
        last = elements(pad(dataset))[-1]
    assert last["b"].tolist() == [4] * 4 and last["total"] == 4 and last["table"].tolist() == [7, 8]


def test_a_length_that_varies_is_dynamic():
    with tf.Graph().as_default():
        dataset = numbers(5).map(lambda i: tf.fill([i + 1], i)).padded_batch(3, [None])
        padded = pad(dataset)
        assert v1.data.get_output_shapes(padded)[0].as_list() == [3, None]
        assert [e.shape for e, _ in elements(padded)] == [(3, 3), (3, 5)]


def test_a_batch_size_that_is_given():
    with tf.Graph().as_default():
        dataset = tf.data.Dataset.from_generator(lambda: iter([[1, 2, 3], [4]]), tf.int64, [None])
        got = elements(pad(dataset, batch_size=3))
    assert [e.tolist() for e, _ in got] == [[1, 2, 3], [4, 4, 4]] and [m.sum() for _, m in got] == [3, 1]


def test_a_batch_size_of_one_is_allowed():
    with tf.Graph().as_default():
        got = elements(pad(numbers(2).batch(1), batch_size=1))
    assert [e.tolist() for e, _ in got] == [[0], [1]]


def test_another_name_for_the_mask_is_found_after_other_steps():
    with tf.Graph().as_default():
        padded = pad(tf.data.Dataset.from_tensor_slices({"x": x}).batch(4), mask="real")
        assert set(v1.data.get_output_shapes(padded)) == {"x", "real"}
        assert mask_name_of_pipeline(padded.prefetch(1).repeat()) == "real"
        assert mask_name_of_pipeline(tf.data.Dataset.range(3).batch(2)) is None


def test_weighted_metrics_do_not_count_the_padding():
    """A mean over 70 numbers in batches of 16: exactly the mean, with and without tf.metrics."""
    with tf.Graph().as_default():
        values, real = v1.data.make_one_shot_iterator(pad(numbers().batch(16))).get_next()
        mean, update = v1.metrics.mean(values, weights=real)
        loss = v1.losses.absolute_difference(tf.zeros([16]), tf.cast(values, tf.float32), weights=real)
        losses = []
        with v1.Session() as sess:
            sess.run(v1.local_variables_initializer())
            for _ in range(5):
                losses.append(sess.run([update, loss])[1])
            assert sess.run(mean) == np.arange(N).mean()
    assert losses[-1] == np.arange(64, 70).mean()


SPARSE = {
    "a sparse tensor": (
        lambda: numbers(4).map(lambda i: tf.sparse.from_dense(tf.fill([2], i))).batch(3),
        "elements hold SparseTensor.*tf.sparse.to_dense",
    ),
    "an unknown rank": (
        lambda: tf.data.Dataset.from_generator(lambda: iter([1]), tf.int64).batch(3),
        r"a tensor of unknown rank.*x.set_shape\(\[None",
    ),
    "a dataset in a dataset": (lambda: numbers(4).window(2), "pads dense tensors, but the elements hold .*Dataset"),
    "no dataset": (lambda: [1], r"dataset=\[1\] is list, but must be a tf.data.Dataset"),
}


@pytest.mark.parametrize("make, text", SPARSE.values(), ids=SPARSE)
def test_batches_that_cannot_be_padded(make, text):
    with tf.Graph().as_default(), pytest.raises(TypeError, match=text):
        pad(make())


WRONG = {
    "a batch size that cannot be found": (
        lambda: pad(numbers(4).interleave(lambda i: numbers().batch(4), 2)),
        r"No batch size found in Interleave. Pass it: pad_last_batch\(dataset, batch_size=100\)",
    ),
    "a batch size of none": (lambda: pad(numbers().batch(4), batch_size=0), "batch_size=0 is not allowed"),
    "a batch size that is no number": (
        lambda: pad(numbers().batch(4), batch_size="4"),
        "batch_size='4' is not allowed",
    ),
    "a name that is taken": (
        lambda: pad(pad(tf.data.Dataset.from_tensor_slices({"x": x}).batch(4))),
        "mask='is_real_example' is not allowed: the features already have an entry",
    ),
}


@pytest.mark.parametrize("call, text", WRONG.values(), ids=WRONG)
def test_wrong_calls(call, text):
    with tf.Graph().as_default(), pytest.raises(ValueError, match=text):
        call()


@pytest.mark.parametrize(
    "make",
    [
        lambda: numbers(6).batch(4).map(lambda b: tf.concat([b, b], 0)),
        lambda: numbers(6).batch(4).map(lambda b: (b, b[: 1 + tf.cast(b[0], tf.int32) * 0])),
        lambda: numbers(6).batch(4).map(lambda b: tf.boolean_mask(b, b > 9)),
    ],
    ids=["a map that doubles the batch", "a map that cuts one part", "a map that empties it"],
)
def test_a_map_that_changes_the_batch_is_reported_while_it_runs(make):
    with tf.Graph().as_default():
        padded = pad(make())
        with pytest.raises(tf.errors.InvalidArgumentError, match="changes the batch dimension"):
            elements(padded)


def test_keras_takes_the_mask_for_sample_weights():
    """Keras 2 and 3: evaluate on 10 examples in batches of 4 gives the loss of the 10."""
    if not tf.executing_eagerly():
        return  # TF 1.15 evaluates datasets of graph mode, which the metric test above covers
    rows = np.linspace(-1, 1, 10, dtype=np.float32).reshape(10, 1)
    model = tf.keras.Sequential([tf.keras.layers.Dense(1, kernel_initializer="ones")])
    model.compile("sgd", "mse", weighted_metrics=["mae"])
    dataset = tf.data.Dataset.from_tensor_slices((rows, np.zeros([10, 1], np.float32))).batch(4)
    found = model.evaluate(pad(dataset), verbose=0, return_dict=True)
    np.testing.assert_allclose(found["mae"], np.abs(rows).mean(), rtol=1e-6)
    predicted = model.predict(pad(dataset), verbose=0)
    np.testing.assert_allclose(predicted[:10], rows, rtol=1e-6)
