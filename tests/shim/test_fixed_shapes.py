"""Selections of fixed shape hold what the ops of varying shape give, and have their gradients."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from npu_shim import data

v1 = tf.compat.v1
RNG = np.random.RandomState(0)


def run(build):
    """The values of what ``build`` makes in a graph."""
    with tf.Graph().as_default(), v1.Session() as sess:
        return sess.run(build())


MASKS = {
    "some": RNG.rand(12) > 0.5,
    "none": np.zeros(12, bool),
    "all": np.ones(12, bool),
    "the last": np.arange(12) == 11,
}


@pytest.mark.parametrize("shape", [(12,), (12, 3), (12, 2, 2)])
@pytest.mark.parametrize("name", MASKS)
def test_masked_select(name, shape):
    mask, x = MASKS[name], RNG.randn(*shape).astype(np.float32)

    def build():
        value = tf.constant(x)
        selection = data.masked_select(value, mask, fill=-5)
        assert selection.values.shape.as_list() == list(shape) and selection.valid.shape.as_list() == [12]
        weights = tf.reshape(tf.range(12.0) + 1, [-1] + [1] * (len(shape) - 1))
        kept = tf.where(mask)[:, 0]
        dynamic = tf.reduce_sum(tf.boolean_mask(value, mask) ** 2 * weights[: tf.size(kept)])
        static = tf.reduce_sum(
            selection.values**2
            * weights
            * tf.cast(tf.reshape(selection.valid, [-1] + [1] * (len(shape) - 1)), tf.float32)
        )
        gradients = [tf.convert_to_tensor(v1.gradients(of, value)[0]) for of in (dynamic, static)]
        return [selection, dynamic, static] + gradients

    (values, valid), dynamic, static, expected, got = run(build)
    np.testing.assert_array_equal(values[valid], x[mask])
    np.testing.assert_array_equal(values[~valid], np.full_like(values[~valid], -5))
    assert list(valid) == sorted(valid, reverse=True)
    np.testing.assert_allclose(static, dynamic, rtol=1e-5)
    np.testing.assert_allclose(got, expected, rtol=1e-5)


def test_masked_select_keeps_the_first_values_if_there_are_more():
    values, valid = run(lambda: data.masked_select(tf.range(10), tf.constant([False, True] * 5), size=3))
    assert list(values) == [1, 3, 5] and valid.all()


@pytest.mark.parametrize("shape", [(12,), (3, 4), (2, 3, 2)])
@pytest.mark.parametrize("name", MASKS)
def test_masked_where(name, shape):
    condition = MASKS[name].reshape(shape)
    rows, valid = run(lambda: data.masked_where(tf.constant(condition)))
    assert rows.shape == (12, len(shape)) and rows.dtype == np.int64
    np.testing.assert_array_equal(rows[valid], np.argwhere(condition))
    assert not rows[~valid].any()


@pytest.mark.parametrize("k", [0, 1, 5, 12])
@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.float16])
def test_top_k_mask(k, dtype):
    x = RNG.permutation([3, 3, 3, -1, 0, 7, 7, 2, -4, 5, 3, 1]).astype(dtype)

    def build():
        value, asked = tf.constant(x), v1.placeholder_with_default(tf.constant(k), [])
        mask = data.top_k_mask(value, asked)
        assert mask.shape.as_list() == [12]
        best = tf.nn.top_k(value, asked)
        if dtype == np.int32:
            return mask, best.indices
        static = tf.reduce_sum(value * value * tf.cast(mask, value.dtype))
        dynamic = tf.reduce_sum(best.values * best.values)
        return mask, best.indices, v1.gradients(static, value)[0], v1.gradients(dynamic, value)[0]

    mask, indices, *gradients = run(build)
    assert sorted(np.flatnonzero(mask)) == sorted(indices)
    if gradients:
        np.testing.assert_array_equal(*gradients)


def test_top_k_mask_of_rows_with_a_number_each():
    x = RNG.randn(4, 9).astype(np.float32)
    mask = run(lambda: data.top_k_mask(tf.constant(x), tf.constant([0, 2, 9, 4])))
    assert list(mask.sum(1)) == [0, 2, 9, 4]
    for row, chosen in zip(x, mask):
        assert chosen.all() or not chosen.any() or row[chosen].min() > row[~chosen].max()


@pytest.mark.parametrize("k", [10, [0, 2, 10, 4]])
def test_a_k_beyond_the_values_is_an_error(k):
    with pytest.raises(
        tf.errors.InvalidArgumentError, match=r"test_fixed_shapes.py:\d+: values has 9 elements in its last dimension"
    ):
        run(lambda: data.top_k_mask(tf.zeros([4, 9]), tf.constant(k)))


@pytest.mark.parametrize("lengths", [[0, 2, 9], [[3], [9], [1]], [4, 4]])
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_a_sequence_mask_has_the_width_of_values(lengths, dtype):
    given = np.array(lengths, dtype)

    def build():
        mask = data.sequence_mask_like(tf.constant(given), tf.zeros([3, 9]))
        assert mask.shape.as_list() == [*given.shape, 9]
        return mask

    np.testing.assert_array_equal(run(build), np.arange(9) < given[..., None])


def test_a_length_beyond_the_values_is_an_error():
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"test_fixed_shapes.py:\d+: a length is greater than"):
        run(lambda: data.sequence_mask_like(tf.constant([3, 10]), tf.zeros([2, 9])))


@pytest.mark.parametrize("values", [[5, 3, 5, 5, 1, 3], [2, 2, 2], [1, 2, 3, 4], [7]])
@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.float32])
def test_unique_padded(values, dtype):
    x = np.array(values, dtype)
    (got, valid, index), expected = run(lambda: (data.unique_padded(tf.constant(x)), tf.unique(tf.constant(x))))
    np.testing.assert_array_equal(got[valid], expected.y)
    np.testing.assert_array_equal(index, expected.idx)
    assert got.shape == valid.shape == x.shape


WRONG = [
    (
        lambda: data.masked_select(tf.zeros([4]), tf.zeros([2, 2], tf.bool)),
        "mask has shape .*, but must have one dimension",
    ),
    (
        lambda: data.masked_select(tf.zeros([4]), tf.zeros([4], tf.bool), size=5),
        "size=5 is not allowed: it must be an int from 1 to 4",
    ),
    (
        lambda: data.masked_select(tf.zeros([4]), v1.placeholder(tf.bool, [None])),
        "of static length. Pad it to a fixed length",
    ),
    (lambda: data.top_k_mask(v1.placeholder(tf.float32, [None]), 2), "its last dimension must be static"),
    (lambda: data.unique_padded(tf.range(3), size=0), "size=0 is not allowed"),
    (lambda: data.bucket_by_length(None, None, [4, 2], 2), r"lengths=\[4, 2\] is not allowed"),
    (
        lambda: data.bucket_by_length(None, None, [2, 4], [2]),
        r"batch_size=\[2\] is not allowed: it must be .*or 2 of them",
    ),
]


@pytest.mark.parametrize("call, text", WRONG, ids=[w[1][:30] for w in WRONG])
def test_wrong_arguments(call, text):
    with tf.Graph().as_default(), pytest.raises(ValueError, match=text):
        call()


def sequences(lengths):
    """A dataset of (sequence 1..n, its number) for each n."""

    def generate():
        for number, n in enumerate(lengths):
            yield np.arange(1, n + 1, dtype=np.int32), number

    return tf.data.Dataset.from_generator(generate, (tf.int32, tf.int32), ([None], []))


def batches(dataset):
    with tf.Graph().as_default(), v1.Session() as sess:
        element = v1.data.make_one_shot_iterator(dataset()).get_next()
        found = []
        while True:
            try:
                found.append(sess.run(element))
            except tf.errors.OutOfRangeError:
                return found


@pytest.mark.parametrize("drop", [True, False])
def test_bucket_by_length(drop):
    lengths = [1, 5, 4, 9, 2, 16, 3, 8, 10, 4, 12]
    got = batches(
        lambda: data.bucket_by_length(
            sequences(lengths), lambda x, _: tf.shape(x)[0], [4, 8, 16], [2, 2, 3], drop_remainder=drop
        )
    )
    shapes = {tuple(x.shape) for x, _ in got}
    assert {shape[1] for shape in shapes} <= {4, 8, 16}
    if drop:
        assert shapes == {(2, 4), (2, 8), (3, 16)}
    seen = {}
    for x, numbers in got:
        for row, number in zip(x, numbers):
            n = lengths[number]
            seen[int(number)] = n
            assert list(row) == list(range(1, n + 1)) + [0] * (x.shape[1] - n) and n <= x.shape[1]
            assert all(n > one for one in (4, 8, 16) if one < x.shape[1])
    assert len(seen) == (9 if drop else len(lengths))


def test_a_sequence_longer_than_all_lengths_is_an_error():
    with pytest.raises(tf.errors.OpError, match="lengths up to 8, but the data have a longer sequence"):
        batches(lambda: data.bucket_by_length(sequences([3, 9]), lambda x, _: tf.shape(x)[0], [4, 8], 1))
