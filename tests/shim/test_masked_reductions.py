"""Reductions with a mask equal the reductions of what the mask selects, gradients and empty selections included."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from npu_shim import data

pytestmark = pytest.mark.twice

v1 = tf.compat.v1
RNG = np.random.RandomState(0)
SHAPES = [((12,), 1), ((12, 3), 1), ((4, 3), 2), ((4, 3, 2), 2), ((0, 2), 1)]
REDUCED = [
    (data.masked_sum, tf.reduce_sum),
    (data.masked_mean, tf.reduce_mean),
    (data.masked_max, tf.reduce_max),
    (data.masked_min, tf.reduce_min),
]


def masks(shape):
    """Some, no, all and the last entries."""
    count = int(np.prod(shape))
    return [RNG.rand(*shape) > 0.5] + [(np.arange(count) >= first).reshape(shape) for first in (count, 0, count - 1)]


def run(build):
    with tf.Graph().as_default(), v1.Session() as sess:
        return sess.run(build())


@pytest.mark.parametrize("masked, plain", REDUCED, ids=[m.__name__ for m, _ in REDUCED])
@pytest.mark.parametrize(
    "shape, rank",
    [pytest.param(*case, marks=[] if case in (SHAPES[1], SHAPES[4]) else pytest.mark.nightly) for case in SHAPES],
)
def test_reductions(masked, plain, shape, rank):
    x = RNG.randn(*shape).astype(np.float32)

    def build():
        results = []
        for mask in masks(shape[:rank]):
            value = tf.constant(x)
            safe = tf.where(tf.ones_like(value, tf.bool) if mask.all() else value > -99.0, value, value)
            axes = [None, 0] + ([[0, -1]] if len(shape) > rank else [])
            for axis in axes:
                for keepdims in (False, True):
                    one = masked(safe, mask, axis, keepdims)
                    other = plain(tf.boolean_mask(safe, mask), axis, keepdims)
                    gradients = [v1.gradients(of, value)[0] for of in (one, other)] if shape[0] else []
                    results.append([one, other] + [tf.convert_to_tensor(gradient) for gradient in gradients])
        return results

    for one, other, *gradients in run(build):
        np.testing.assert_allclose(one, other, rtol=1e-5)
        assert one.shape == other.shape
        if gradients:
            np.testing.assert_allclose(*gradients, rtol=1e-5)


@pytest.mark.parametrize("shape, rank", SHAPES)
def test_masked_rows_keep_functions_defined(shape, rank):
    x = np.abs(RNG.randn(*shape)).astype(np.float32)

    def build():
        results = []
        for mask in masks(shape[:rank]):
            hidden = np.where(mask.reshape(mask.shape + (1,) * (len(shape) - rank)), x, -np.inf).astype(np.float32)
            value, scale = tf.constant(hidden), tf.constant(2.0)
            rows = data.masked_rows(value, mask)
            assert rows.shape == value.shape
            static = data.masked_sum(tf.sqrt(rows) / rows * scale, mask)
            chosen = tf.boolean_mask(value, mask)
            dynamic = tf.reduce_sum(tf.sqrt(chosen) / chosen * scale)
            gradients = [v1.gradients(of, [value, scale]) for of in (static, dynamic)]
            results.append([static, dynamic] + [tf.convert_to_tensor(g) for pair in gradients for g in pair])
        return results

    for static, dynamic, *gradients in run(build):
        np.testing.assert_allclose(static, dynamic, rtol=1e-5)
        for mine, expected in zip(gradients[:2], gradients[2:]):
            np.testing.assert_allclose(mine, expected, rtol=1e-5)


@pytest.mark.parametrize("masked, plain", REDUCED, ids=[m.__name__ for m, _ in REDUCED])
def test_the_largest_values(masked, plain):
    x = np.array([3, -1, 7, 7, -np.inf, 7, 0, 3], np.float32)

    def build():
        results = []
        for k in (0, 1, 2, 5, 8):
            value, asked = tf.constant(x), v1.placeholder_with_default(k, [])
            both = masked(value, data.top_k_mask(value, asked)), plain(tf.nn.top_k(value, asked)[0])
            results.append([tf.convert_to_tensor(t) for one in both for t in (one, v1.gradients(one, value)[0])])
        return results

    for one, gradient, other, expected in run(build):
        np.testing.assert_array_equal(one, other)
        np.testing.assert_allclose(gradient, expected, rtol=1e-6)


@pytest.mark.parametrize("ignored", [range(5), range(0), range(1, 5)], ids=["all", "none", "all but one"])
def test_losses_of_labels_out_of_range(ignored):
    labels = np.array([2, 0, 1, 1, 0])
    labels[list(ignored)] = 255
    x = RNG.randn(5, 3).astype(np.float32)
    x[list(ignored)] = np.nan

    def build():
        values, mask = tf.constant(x), tf.constant(labels < 3)
        loss = tf.nn.sparse_softmax_cross_entropy_with_logits
        static = loss(labels=data.masked_rows(labels, mask), logits=data.masked_rows(values, mask))
        dynamic = loss(labels=tf.boolean_mask(labels, mask), logits=tf.boolean_mask(values, mask))
        sums = data.masked_sum(static, mask), tf.reduce_sum(dynamic)
        gradients = [tf.convert_to_tensor(v1.gradients(one, values)[0]) for one in sums]
        return [data.masked_mean(static, mask), *gradients, tf.reduce_mean(dynamic), *gradients[::-1]]

    results = run(build)
    for one, other in zip(results[:3], results[3:]):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-7)
    assert not np.isnan(results[1]).any()


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.float16, np.float64])
def test_types(dtype):
    x = RNG.randint(1, 9, [6, 2]).astype(dtype)
    mask = np.array([0, 1, 1, 0, 1, 0], bool)
    rows, total, most, none = run(
        lambda: (
            data.masked_rows(x, mask),
            data.masked_sum(x, mask, 0),
            data.masked_max(x, mask),
            data.masked_min(tf.constant(x), mask & False),
        )
    )
    np.testing.assert_array_equal(rows, x[[1, 1, 2, 1, 4, 1]])
    np.testing.assert_array_equal(total, x[mask].sum(0))
    assert most == x[mask].max() and total.dtype == rows.dtype == dtype
    assert none == (np.inf if dtype(0.5) else np.iinfo(dtype).max)


def test_bools_and_counts():
    mask = np.array([False, True, True])
    rows, count = run(lambda: (data.masked_rows(np.array([False, True, False]), mask), data.masked_count(mask)))
    assert list(rows) == [True, True, False] and count == 2


def test_the_mean_of_many_half_numbers():
    mask = np.arange(9000) % 3 > 0
    assert run(lambda: data.masked_mean(tf.fill([9000], tf.constant(0.5, tf.float16)), mask)) == 0.5


WRONG = [
    (lambda: data.masked_sum(tf.zeros([4]), tf.zeros([3], tf.bool)), "must have the first dimensions of values"),
    (lambda: data.masked_sum(tf.zeros([4]), tf.zeros([], tf.bool)), "a known rank of at least 1"),
    (lambda: data.masked_rows(tf.zeros([4]), v1.placeholder(tf.bool)), "a known rank of at least 1"),
    (lambda: data.masked_max(tf.zeros([4, 2]), tf.zeros([4], tf.bool), axis=1), "axis=1 is not allowed"),
    (lambda: data.masked_max(tf.zeros([4, 2]), tf.zeros([4], tf.bool), axis=[0, 2]), "is not allowed"),
]


@pytest.mark.parametrize("call, text", WRONG, ids=[w[1][:30] for w in WRONG])
def test_wrong_arguments(call, text):
    with tf.Graph().as_default(), pytest.raises(ValueError, match=text):
        call()


def test_the_mean_of_integers_is_refused():
    with tf.Graph().as_default(), pytest.raises(TypeError, match="values are int32"):
        data.masked_mean([1, 2], [True, False])
