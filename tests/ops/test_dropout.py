"""npu_ops.dropout: what is kept, how it is scaled, and what its gradient is."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from npu_shim.estimator import npu_ops

N = 100_000


def _ones(dtype=tf.float32):
    return tf.ones([N], dtype)


@pytest.mark.parametrize("keep_prob", [0.1, 0.5, 0.9], ids=lambda k: f"keeps a share of {k} and scales it")
@pytest.mark.parametrize("dtype", [tf.float16, tf.float32, tf.float64], ids=lambda d: d.name)
@pytest.mark.parametrize("as_tensor", [False, True], ids=["number", "tensor"])
def test_share_and_scale(run, keep_prob, dtype, as_tensor):
    def build():
        keep = tf.compat.v1.placeholder_with_default(keep_prob, []) if as_tensor else keep_prob
        return npu_ops.dropout(_ones(dtype), keep, seed=1)

    y = run(build)
    kept = y != 0
    # the share of N independent draws: five standard deviations
    assert abs(kept.mean() - keep_prob) < 5 * np.sqrt(keep_prob * (1 - keep_prob) / N)
    np.testing.assert_allclose(y[kept], 1 / keep_prob, rtol=2e-3 if dtype == tf.float16 else 1e-6)


@pytest.mark.parametrize("count", [64_000, 64_001])
def test_a_dropped_infinity_is_zero_but_in_uneven_sizes_from_tensorflow_2_19(run, count):
    """There XLA's code for uneven sizes is slow, so that factors multiply x."""
    y = run(lambda: npu_ops.dropout(tf.fill([count], np.inf), 0.5, seed=1))
    is_multiplied = count % 32 and tuple(map(int, tf.__version__.split(".")[:2])) >= (2, 19)
    dropped = np.isnan(y) if is_multiplied else y == 0
    np.testing.assert_array_equal(dropped, ~np.isposinf(y))
    assert 0.45 * count < dropped.sum() < 0.55 * count


def test_gradient_is_the_same_mask(run):
    def build():
        x = tf.constant(np.linspace(1, 2, 1000), tf.float32)
        y = npu_ops.dropout(x, keep_prob=0.7, seed=3)
        return x, y, tf.gradients(y, x, grad_ys=tf.fill([1000], 5.0))[0]

    x, y, gradient = run(build)
    np.testing.assert_allclose(gradient, np.where(y != 0, 5 / 0.7, 0), rtol=1e-5)
    np.testing.assert_allclose(y, np.where(y != 0, x / 0.7, 0), rtol=1e-5)


@pytest.mark.parametrize("count, kernels", [(1000, "compiled"), (N, "plain")])
def test_equal_seeds_give_the_mask_of_tf_nn_dropout(run, monkeypatch, count, kernels):
    """A migrated script on the CPU computes what it computed before: by default with small tensors, on demand with all."""
    monkeypatch.setenv("NPU_SHIM_KERNELS", kernels)

    def build(function):
        def graph():
            tf.compat.v1.set_random_seed(5)
            return function(tf.ones([count]))

        return graph

    ours = run(build(lambda x: npu_ops.dropout(x, keep_prob=0.75)))
    theirs = run(build(lambda x: tf.compat.v1.nn.dropout(x, rate=0.25)))
    np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("shape", [[None], None], ids=["known rank", "unknown rank"])
def test_a_small_tensor_of_unknown_size_has_the_same_mask(shape):
    """By an op's own seed: seeds of the graph depend on the number of ops before."""
    with tf.Graph().as_default(), tf.compat.v1.Session() as sess:
        x = tf.compat.v1.placeholder(tf.float32, shape)
        both = [npu_ops.dropout(x, 0.75, seed=5), tf.compat.v1.nn.dropout(x, rate=0.25, seed=5)]
        for value in (np.arange(1.0, 1001.0), np.ones(16383)):
            ours, theirs = sess.run(both, {x: value})
            np.testing.assert_allclose(ours, theirs, rtol=1e-6)


def test_two_runs_differ_and_two_sessions_with_a_seed_agree(run):
    def build():
        y = npu_ops.dropout(_ones(), 0.5, seed=7)
        with tf.control_dependencies([y]):
            return y

    np.testing.assert_array_equal(run(build), run(build))
    with tf.Graph().as_default(), tf.compat.v1.Session() as sess:
        y = npu_ops.dropout(_ones(), 0.5)
        assert (sess.run(y) != sess.run(y)).any()


def test_noise_shape_keeps_or_drops_whole_rows(run):
    y = run(lambda: npu_ops.dropout(tf.ones([1000, 7]), 0.5, noise_shape=[1000, 1]))
    assert set(map(tuple, y)) == {(0.0,) * 7, (2.0,) * 7}


@pytest.mark.parametrize("rows", [1000, 10_000], ids=["small", "large"])
def test_noise_shape_and_a_fed_probability_hold_in_the_gradient(run, rows):
    def build():
        keep = tf.compat.v1.placeholder_with_default(np.float32(0.25), [])
        x = tf.ones([rows, 7])
        y = npu_ops.dropout(x, keep, noise_shape=[rows, 1])
        return y, tf.gradients(y, x, grad_ys=tf.fill([rows, 7], 3.0))[0]

    y, gradient = run(build)
    np.testing.assert_array_equal(gradient, 3 * y)
    assert set(map(tuple, y)) == {(0.0,) * 7, (4.0,) * 7}
    assert abs((y[:, 0] != 0).mean() - 0.25) < 5 * np.sqrt(0.25 * 0.75 / rows)


def test_a_small_tensor_uses_only_the_ops_of_tf_nn_dropout():
    def types(function):
        with tf.Graph().as_default() as graph:
            x = tf.compat.v1.placeholder(tf.float32, [1000])
            tf.gradients(function(x), x)
            return sorted(op.type for op in graph.get_operations())

    assert types(lambda x: npu_ops.dropout(x, 0.75)) == types(lambda x: tf.compat.v1.nn.dropout(x, rate=0.25))


@pytest.mark.parametrize("one", [1, 1.0, np.float32(1)], ids=lambda v: f"keep_prob {v!r} returns x itself")
def test_keep_prob_1_returns_the_input(one):
    with tf.Graph().as_default():
        x = tf.ones([3])
        assert npu_ops.dropout(x, one) is x


def test_shape_and_name_are_kept():
    with tf.Graph().as_default():
        y = npu_ops.dropout(tf.compat.v1.placeholder(tf.float32, [None, 4]), 0.5, name="drop")
        assert y.shape.as_list() == [None, 4] and y.op.name.startswith("drop")


WRONG = [
    (dict(x=[1], keep_prob=0.5), ValueError, "int32, but must be a float tensor: write tf.cast"),
    (dict(x=[1.0], keep_prob=0), ValueError, "keep_prob=0 is not allowed.*keep_prob=1 - rate"),
    (dict(x=[1.0], keep_prob=0.0), ValueError, "keep_prob=0.0 is not allowed"),
    (dict(x=[1.0], keep_prob=-0.1), ValueError, "keep_prob=-0.1 is not allowed"),
    (dict(x=[1.0], keep_prob=1.1), ValueError, "greater than 0 and at most 1"),
    (dict(x=[1.0], keep_prob=float("nan")), ValueError, "keep_prob=nan is not allowed"),
    (dict(x=[1.0], keep_prob=[0.5, 0.5]), ValueError, r"has shape \(2,\), but must be a scalar"),
]


@pytest.mark.parametrize("arguments, error, text", WRONG, ids=[f"{w[0]} is refused" for w in WRONG])
def test_wrong_arguments(arguments, error, text):
    with tf.Graph().as_default(), pytest.raises(error, match=text):
        npu_ops.dropout(**arguments)


def test_eager_execution_is_refused_with_the_next_step():
    if tf.executing_eagerly():
        with pytest.raises(RuntimeError, match="graph mode: call tf.compat.v1.disable_eager_execution"):
            npu_ops.dropout(tf.ones([2]), 0.5)
    else:
        with tf.Graph().as_default():
            assert npu_ops.dropout(tf.ones([2]), 0.5).shape == [2]
