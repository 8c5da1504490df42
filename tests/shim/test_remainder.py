"""count_remainder counts what does not fill a batch; padded_batches cuts NumPy arrays into batches of one size."""

from __future__ import annotations

import collections

import numpy as np
import pytest
import tensorflow as tf

from npu_shim.data import Remainder, count_remainder, padded_batches

v1 = tf.compat.v1
Pair = collections.namedtuple("Pair", "a b")


def numbers(n=70):
    return tf.data.Dataset.range(n)


COUNTS = {
    "a remainder": (lambda: numbers().batch(16), (16, 70, 6, 10)),
    "none": (lambda: numbers(64).batch(16), (16, 64, 0, 0)),
    "dropped already": (lambda: numbers().batch(16, drop_remainder=True), (16, 70, 6, 10)),
    "batch and repeat: of each epoch": (lambda: numbers().batch(16).repeat(3), (16, 70, 6, 10)),
    "repeat and batch: of all epochs": (lambda: numbers().repeat(3).batch(16), (16, 210, 2, 14)),
    "without end": (lambda: numbers().repeat().batch(16), (16, None, 0, 0)),
    "unknown": (lambda: numbers().filter(lambda i: i > 2).batch(16), (16, None, None, None)),
    "two parts": (lambda: numbers(20).batch(16).concatenate(numbers(30).batch(16)), (16, 50, 18, 14)),
    "two in step": (lambda: tf.data.Dataset.zip((numbers().batch(16), numbers().batch(16))), (16, 70, 6, 10)),
    "no batches": (numbers, (None, None, None, None)),
    "fewer than one batch": (lambda: numbers(3).batch(16), (16, 3, 3, 13)),
    "a TF 1 dataset": (lambda: v1.data.Dataset.range(70).batch(16), (16, 70, 6, 10)),
}


@pytest.mark.parametrize("make, wanted", COUNTS.values(), ids=COUNTS)
def test_counts(make, wanted):
    with tf.Graph().as_default():
        assert count_remainder(make()) == wanted
    assert count_remainder(make()) == wanted  # eagerly in TF 2


def test_unknown_sizes_are_counted_by_reading():
    make = lambda: numbers().filter(lambda i: i > 2).map(lambda i: (i, {"x": i})).batch(16).repeat()  # noqa: E731
    with tf.Graph().as_default():
        assert count_remainder(make(), read=True) == (16, 67, 3, 13)
    assert count_remainder(make(), read=True) == (16, 67, 3, 13)
    with tf.Graph().as_default():
        assert count_remainder(numbers().repeat().batch(16), read=True) == (16, None, 0, 0)


WORDS = [
    (Remainder(100, 1017, 17, 83), "1,017 examples in batches of 100: 17 left over, 83 rows of padding"),
    (Remainder(100, None, 0, 0), "batches of 100, without end"),
    (Remainder(100, None, None, None), "batches of 100, of an unknown number of examples"),
    (Remainder(None, None, None, None), "the batch size is unknown"),
]


@pytest.mark.parametrize("remainder, text", WORDS, ids=[w[1] for w in WORDS])
def test_words(remainder, text):
    assert str(remainder) == text


def test_other_arguments_are_refused():
    with pytest.raises(TypeError, match=r"dataset=\[1\] is list, but must be a tf.data.Dataset"):
        count_remainder([1])


# ---- NumPy


@pytest.mark.parametrize("n, size, real", [(70, 16, [16] * 4 + [6]), (64, 32, [32, 32]), (3, 5, [3]), (5, 1, [1] * 5)])
def test_arrays_are_cut_into_batches_of_one_size(n, size, real):
    data = np.random.RandomState(0).randn(n, 2).astype(np.float32)
    got = list(padded_batches(data, size))
    assert [b.real for b in got] == real and {b.rows.shape for b in got} == {(size, 2)}
    np.testing.assert_array_equal(np.concatenate([b.rows[: b.real] for b in got]), data)
    assert all((row == data[-1]).all() for row in got[-1].rows[got[-1].real :])
    assert all(b.rows.dtype == data.dtype for b in got)
    assert all(b.real < size or np.shares_memory(b.rows, data) for b in got)


a, b = np.arange(5), np.array(list("abcde"))
NESTED = [a, (a, b), [a, b], {"a": a, "b": b}, Pair(a, b), {"a": (a, {"b": b})}]


@pytest.mark.parametrize("arrays", NESTED, ids=[str(type(n).__name__) + str(i) for i, n in enumerate(NESTED)])
def test_nested_structures_stay_nested(arrays):
    last = list(padded_batches(arrays, 3))[-1]
    wanted = tf.nest.map_structure(lambda array: array[[3, 4, 4]], arrays)
    tf.nest.assert_same_structure(last.rows, wanted)
    assert last.real == 2 and type(last.rows) is type(arrays)
    for got, value in zip(tf.nest.flatten(last.rows), tf.nest.flatten(wanted)):
        np.testing.assert_array_equal(got, value)


def test_a_loop_that_feeds_a_session_sees_one_shape_and_all_rows():
    data = np.arange(10, dtype=np.float32)
    with tf.Graph().as_default(), v1.Session() as sess:
        x = v1.placeholder(tf.float32, [4])
        squared = []
        for feed, real in padded_batches({x: data}, 4):
            squared.extend(sess.run(x * x, feed)[:real])
    np.testing.assert_array_equal(squared, data**2)


WRONG = [
    (lambda: padded_batches(a, 0), ValueError, "batch_size=0 is not allowed: it must be an int of at least 1"),
    (lambda: padded_batches(a, True), ValueError, "batch_size=True is not allowed"),
    (lambda: padded_batches((a, a[:3]), 2), ValueError, r"arrays\[0\] has 5, arrays\[1\] has 3"),
    (lambda: padded_batches({"x": a[:0]}, 2), ValueError, r"at least 1, but arrays\['x'\] has 0"),
    (lambda: padded_batches([], 2), ValueError, "but they are empty"),
    (lambda: padded_batches([1, 2], 2), TypeError, r"arrays\[0\]=1 is int, which has no rows. Pass an array"),
]


@pytest.mark.parametrize("call, error, text", WRONG, ids=[w[2] for w in WRONG])
def test_wrong_arrays(call, error, text):
    with pytest.raises(error, match=text):
        call()
