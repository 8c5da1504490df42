"""enforce_static_batch: the same full batches, a known batch dimension, and a count of what is dropped."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from npu_shim.data import enforce_static_batch

v1 = tf.compat.v1
N = 70


def values(dataset, limit=1000):
    """All elements of a dataset of the default graph, first component only."""
    nxt = v1.data.make_one_shot_iterator(dataset).get_next()
    got = []
    with v1.Session() as sess:
        for _ in range(limit):
            try:
                got.append(sess.run(tf.nest.flatten(nxt)[0]))
            except tf.errors.OutOfRangeError:
                break
    return got


def first_dimensions(dataset):
    return [tf.compat.dimension_value(s[0]) for s in tf.nest.flatten(v1.data.get_output_shapes(dataset))]


def numbers(n=N):
    return tf.data.Dataset.range(n)


def pairs(n=N):
    return tf.data.Dataset.from_tensor_slices(({"x": np.arange(n), "w": np.ones([n, 2], np.float32)}, np.arange(n)))


# a pipeline, its batch size, and the full batches it must still give (as the first element of each)
PIPELINES = {
    "batch": (lambda: numbers().batch(16), 16, [0, 16, 32, 48]),
    "batch of a structure": (lambda: pairs().batch(16), 16, [1, 1, 1, 1]),
    "batch, repeat keeps epochs apart": (lambda: numbers().batch(32).repeat(2), 32, [0, 32, 0, 32]),
    "repeat, batch runs over epochs": (lambda: numbers().repeat(2).batch(32), 32, [0, 32, 64, 26]),
    "batch, prefetch, cache, take": (lambda: numbers().batch(16).cache().prefetch(2).take(3), 16, [0, 16, 32]),
    "batch, skip": (lambda: numbers().batch(16).skip(2), 16, [32, 48]),
    "batch, shard": (lambda: numbers().batch(16).shard(2, 0), 16, [0, 32]),
    "batch, filter": (lambda: numbers().batch(16).filter(lambda b: b[0] > 0), 16, [16, 32, 48]),
    "batch, map that keeps the batch": (lambda: numbers().batch(16).map(lambda b: b + 1), 16, [1, 17, 33, 49]),
    "batch, parallel map": (lambda: numbers().batch(16).map(lambda b: b + 1, 2), 16, [1, 17, 33, 49]),
    "batch, map, repeat": (lambda: numbers(20).batch(16).map(lambda b: b * 2).repeat(2), 16, [0, 0]),
    "padded_batch": (lambda: numbers().map(lambda i: tf.fill([i % 3 + 1], i)).padded_batch(32, [None]), 32, [0, 32]),
    "map_and_batch": (lambda: numbers().apply(tf.data.experimental.map_and_batch(lambda i: i + 5, 32)), 32, [5, 37]),
    "zip of two": (lambda: tf.data.Dataset.zip((numbers().batch(32), numbers().batch(32))), 32, [0, 32]),
    "concatenation of two": (lambda: numbers(40).batch(32).concatenate(numbers(40).batch(32)), 32, [0, 0]),
    "with options": (lambda: numbers().batch(32).with_options(tf.data.Options()), 32, [0, 32]),
    "a TF 1 dataset": (lambda: v1.data.Dataset.range(N).batch(32), 32, [0, 32]),
    "shuffle and repeat": (
        lambda: numbers(32).apply(tf.data.experimental.shuffle_and_repeat(1, 2)).batch(32),
        32,
        [0, 0],
    ),
    "a batch of one": (lambda: numbers(3).batch(1), 1, [0, 1, 2]),
    "exactly full batches": (lambda: numbers(64).batch(32), 32, [0, 32]),
}


@pytest.mark.parametrize("make, size, firsts", PIPELINES.values(), ids=PIPELINES)
def test_full_batches_are_unchanged_and_their_shape_is_static(make, size, firsts):
    with tf.Graph().as_default():
        fixed = enforce_static_batch(make())
        assert set(first_dimensions(fixed)) == {size}
        assert v1.data.get_output_types(fixed) == v1.data.get_output_types(make())
        assert v1.data.get_output_classes(fixed) == v1.data.get_output_classes(make())
        got = values(fixed)
        assert all(len(b) == size for b in got)
        assert [np.ravel(b)[0] for b in got] == firsts
        np.testing.assert_array_equal(got, [b for b in values(make()) if len(b) == size])


def test_randomness_is_not_touched():
    def shuffled():
        return numbers().shuffle(N, seed=3).batch(16).shuffle(5, seed=4)

    with tf.Graph().as_default():
        plain = [b for b in values(shuffled()) if len(b) == 16]
        np.testing.assert_array_equal(values(enforce_static_batch(shuffled())), plain)


LEFT_ALONE = {
    "static already": lambda: numbers().batch(16, drop_remainder=True),
    "not batched, and static": lambda: numbers().map(lambda i: tf.zeros([3])),
    "scalars": numbers,
}


@pytest.mark.parametrize("make", LEFT_ALONE.values(), ids=LEFT_ALONE)
def test_static_batches_are_returned_unchanged(make, log):
    with tf.Graph().as_default():
        dataset = make()
        assert enforce_static_batch(dataset) is dataset
        assert log() == []


def _by_placeholder():
    return numbers().batch(v1.placeholder_with_default(np.int64(4), []))


UNKNOWN = {
    "a batch size that is a tensor": _by_placeholder,
    "batches made inside interleave": lambda: numbers(4).interleave(lambda i: numbers().batch(4), 2),
    "batches of two sizes": lambda: numbers().batch(8).concatenate(numbers().batch(16)),
    "a generator": lambda: tf.data.Dataset.from_generator(lambda: iter([[1, 2], [3]]), tf.int64, [None]),
}


@pytest.mark.parametrize("make", UNKNOWN.values(), ids=UNKNOWN)
def test_an_unknown_batch_size_is_reported_and_nothing_is_changed(make, log):
    with tf.Graph().as_default():
        dataset = make()
        assert enforce_static_batch(dataset) is dataset
    (said,) = log()
    assert "the batch dimension of the training input stays dynamic" in said and "drop_remainder=True" in said


COUNTS = {
    "a known number": (
        lambda: numbers(1017).batch(100),
        ["batch size 100 made static; drops the same 17 of 1,017 examples per epoch."],
    ),
    "nothing to drop": (lambda: numbers(96).batch(32), []),
    "endless": (lambda: numbers().repeat().batch(32), ["batch size 32 made static; a partial last batch is dropped."]),
    "filtered": (
        lambda: numbers().filter(lambda i: i > 3).batch(32),
        ["batch size 32 made static; a partial last batch is dropped."],
    ),
    "from a placeholder": (
        lambda: tf.data.Dataset.from_tensor_slices(v1.placeholder(tf.float32, [None])).batch(8),
        ["batch size 8 made static; a partial last batch is dropped."],
    ),
}


@pytest.mark.parametrize("make, said", COUNTS.values(), ids=COUNTS)
def test_one_log_line_counts_what_is_dropped(make, said, log):
    with tf.Graph().as_default():
        enforce_static_batch(make())
    assert log() == ["npu_shim: " + text for text in said]


def test_fewer_examples_than_one_batch_are_refused():
    with tf.Graph().as_default(), pytest.raises(
        ValueError, match=r"has 70 examples, fewer than one batch of 128. Use a batch size of at most 70"
    ):
        enforce_static_batch(numbers().batch(128))
    with tf.Graph().as_default():
        assert v1.data.get_output_shapes(enforce_static_batch(numbers().batch(70)))[0] == 70


@pytest.mark.parametrize(
    "change",
    [lambda b: tf.concat([b, b], 0), lambda b: (b, b[:3])],
    ids=["a map that doubles the batch", "a map that cuts one part"],
)
def test_a_map_that_changes_the_batch_is_reported_while_it_runs(change):
    with tf.Graph().as_default():
        fixed = enforce_static_batch(numbers().batch(16).map(lambda b: change(tf.boolean_mask(b, b >= 0))))
        with pytest.raises(tf.errors.InvalidArgumentError, match="a map after batch.*16.*changes the batch dimension"):
            values(fixed)


def test_other_arguments_are_refused():
    with pytest.raises(TypeError, match=r"dataset=\[1\] is list, but must be a tf.data.Dataset"):
        enforce_static_batch([1])
