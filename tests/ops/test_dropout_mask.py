"""The hashed mask of large tensors: as random as it has to be, the same where it has to be, and never stored."""

from __future__ import annotations

import ast

import numpy as np
import pytest
import tensorflow as tf

from npu_shim.estimator import npu_ops
from npu_shim.ops import counter_rng
from npu_shim.ops.dropout import LEAST_ELEMENTS

pytestmark = [pytest.mark.slow, pytest.mark.twice]

v1 = tf.compat.v1
N = 1 << 20
KEYS = [(0, 0), (0, 1), (1, 0), (123456789, -987654321), (-(1 << 31), (1 << 31) - 2)]


def _bits(run, key, count=N):
    return run(lambda: counter_rng.random_int32(tf.constant(key, tf.int32), tf.constant(count))).view(np.uint32)


def _z(share, count):
    """By how many standard deviations a share of fair coins differs from a half."""
    return (share - 0.5) * 2 * np.sqrt(count)


@pytest.mark.once
@pytest.mark.parametrize("key", KEYS, ids=lambda k: f"key {k}")
def test_every_bit_is_a_fair_coin_and_neighbours_are_independent(run, key):
    h = _bits(run, key)
    one = [((h >> bit) & 1).mean() for bit in range(32)]
    assert np.abs(_z(np.array(one), N)).max() < 5
    for lag in (1, 2, 3, 4, 7, 8, 64, 768, 1024, 3072, 4096, 65536):
        unlike = h[lag:] ^ h[:-lag]
        zs = _z(np.array([((unlike >> bit) & 1).mean() for bit in range(32)]), N - lag)
        assert np.abs(zs).max() < 5, lag
    # of a mask, which is what is used: neither of two neighbours is dropped more often than by chance
    for keep in (0.1, 0.5, 0.9):
        kept = h < keep * 2.0**32
        assert abs(kept.mean() - keep) < 5 * np.sqrt(keep * (1 - keep) / N)
        for lag in (1, 2, 1024):
            r = np.corrcoef(kept[lag:], kept[:-lag])[0, 1]
            assert abs(r) < 5 / np.sqrt(N), (keep, lag)


@pytest.mark.once
def test_values_are_spread_evenly(run):
    counts = np.bincount(_bits(run, KEYS[3]) >> 20, minlength=4096)
    chi2 = ((counts - N / 4096) ** 2 / (N / 4096)).sum()
    assert abs(chi2 - 4095) < 5 * np.sqrt(2 * 4095)


@pytest.mark.once
def test_no_position_repeats_another(run):
    """The hash of a place is one-to-one: all that is drawn with one key differs."""
    assert len(np.unique(_bits(run, KEYS[2]))) == N


@pytest.mark.once
@pytest.mark.parametrize("a, b", [(KEYS[0], KEYS[1]), (KEYS[0], KEYS[2]), (KEYS[1], KEYS[2]), ((7, 9), (9, 7))])
def test_similar_keys_give_independent_masks(run, a, b):
    unlike = _bits(run, a) ^ _bits(run, b)
    zs = _z(np.array([((unlike >> bit) & 1).mean() for bit in range(32)]), N)
    assert np.abs(zs).max() < 5


def _masks(seed=None, graph_seed=None, steps=2, shape=(N,)):
    """Return the mask of each step for two call sites."""
    with tf.Graph().as_default(), v1.Session() as sess:
        v1.set_random_seed(graph_seed)
        sites = [npu_ops.dropout(tf.ones(shape), 0.5, seed=seed) for _ in range(2)]
        return [[y != 0 for y in sess.run(sites)] for _ in range(steps)]


def test_each_step_and_each_call_has_a_mask_of_its_own():
    (a, b), (c, d) = _masks(graph_seed=3)
    for one, other in ((a, b), (a, c), (a, d), (b, d)):
        assert abs((one == other).mean() - 0.5) < 5 * 0.5 / np.sqrt(N)


@pytest.mark.once
def test_steps_are_independent():
    """In 32 steps, the counts of kept places are binomial, and no two steps agree more than by chance."""
    steps, count = 32, LEAST_ELEMENTS
    with tf.Graph().as_default(), v1.Session() as sess:
        y = npu_ops.dropout(tf.ones([count]), 0.5, seed=11)
        kept = np.array([sess.run(y) != 0 for _ in range(steps)])
    spread = ((kept.sum(0) - steps / 2) ** 2 / (steps / 4)).sum()
    assert abs(spread - count) < 5 * np.sqrt(2 * count)
    agree = np.array([_z((kept[a] == kept[b]).mean(), count) for a in range(steps) for b in range(a)])
    assert np.abs(agree).max() < 5
    assert abs(agree.std() - 1) < 5 / np.sqrt(2 * len(agree))


@pytest.mark.parametrize("seeds", [dict(graph_seed=3), dict(seed=7), dict(seed=7, graph_seed=3)], ids=str)
def test_the_same_seeds_give_the_same_masks(seeds):
    np.testing.assert_array_equal(_masks(**seeds), _masks(**seeds))


def test_without_a_seed_runs_differ():
    assert (np.array(_masks()) != np.array(_masks())).any()


RANK = """
import zlib, tensorflow as tf
from npu_shim.estimator import npu_ops

def masks(shape, op_seed, graph_seed):
    with tf.Graph().as_default(), tf.compat.v1.Session() as sess:
        tf.compat.v1.set_random_seed(graph_seed)
        x = tf.compat.v1.placeholder_with_default(tf.ones([count]), shape)
        y = npu_ops.dropout(x, 0.5, seed=op_seed)
        return [zlib.crc32(sess.run(y).tobytes()) for _ in range(2)]

for count, shapes in ((1000, ([1000], None)), (100000, ([100000], None)), (1 << 20, (None,))):
    for shape in shapes:
        print([masks(shape, *seeds) for seeds in ((7, None), (None, 7), (None, None))])
"""


@pytest.mark.once
def test_ranks_have_equal_masks_for_equal_seeds_only(tmp_path, python):
    """As on NPUs, a mask depends only on the seeds of graph and op; without seeds it is random."""
    (tmp_path / "rank.py").write_text(RANK)
    ranks = [python(tmp_path, "rank.py", RANK_ID=str(rank), RANK_SIZE="2") for rank in range(2)]
    assert [rank.returncode for rank in ranks] == [0, 0]
    printed = [[line for line in rank.stdout.splitlines() if line.startswith("[")] for rank in ranks]
    assert [len(lines) for lines in printed] == [5, 5]
    for lines in zip(*printed):
        (op, graph, none), (its_op, its_graph, its_none) = map(ast.literal_eval, lines)
        assert op == its_op and graph == its_graph
        assert len(set(op)) == 2 and len(set(graph)) == 2, "each step has a mask of its own"
        assert len(set(none + its_none)) == 4


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("shape", [[N], [1024, 1024], [16, 64, 1024]], ids=str)
def test_scale_and_gradient(run, name, shape):
    dtype = tf.as_dtype(name)

    def build():
        v1.set_random_seed(1)
        x = tf.cast(tf.random.uniform(shape, 1, 2, seed=1), dtype)
        y = npu_ops.dropout(x, keep_prob=0.7)
        (gradient,) = tf.gradients(y, x, grad_ys=tf.cast(tf.fill(shape, 3.0), dtype))
        exact = tf.cast(x, tf.float64) / 0.7
        return [tf.cast(v, tf.float64) for v in (y, gradient, exact)]

    y, gradient, exact = run(build)
    kept = y != 0
    assert abs(kept.mean() - 0.7) < 5 * np.sqrt(0.7 * 0.3 / N)
    one_rounding = {"float16": 2.0**-11, "bfloat16": 2.0**-8, "float32": 2.0**-23, "float64": 2.0**-52}[name]
    np.testing.assert_allclose(y[kept], exact[kept], rtol=1.01 * one_rounding)
    np.testing.assert_allclose(gradient, np.where(kept, 3 / 0.7, 0), rtol=1.01 * one_rounding)


@pytest.mark.parametrize(
    "count", [10, (1 << 14) - 1, 1 << 14, LEAST_ELEMENTS - 1, LEAST_ELEMENTS, (1 << 20) - 1, 1 << 20]
)
def test_of_an_unknown_shape(count):
    """Small and large, with a keep_prob that is fed; 1 keeps all."""
    with tf.Graph().as_default(), v1.Session() as sess:
        x, keep = v1.placeholder(tf.float32, None), v1.placeholder(tf.float32, [])
        y = npu_ops.dropout(x, keep)
        (gradient,) = tf.gradients(y, x)
        (second,) = tf.gradients(tf.reduce_sum(gradient * gradient), gradient)
        value = np.random.RandomState(0).rand(count).astype(np.float32) + 1
        got, slope, _ = sess.run([y, gradient, second], {x: value, keep: 0.5})
        np.testing.assert_array_equal(got, value * slope)
        assert set(slope) == {0.0, 2.0}
        assert abs((got != 0).mean() - 0.5) < 5 * 0.5 / np.sqrt(count)
        np.testing.assert_array_equal(sess.run(y, {x: value, keep: 1}), value)


def test_keep_probabilities_are_exact_to_a_65536th(run):
    """Against the hash itself, of all whose words lie near the threshold."""
    keep = 0.9 + 1 / 65536

    def build():
        key = tf.constant(KEYS[3], tf.int32)
        y = npu_ops.dropout(tf.ones([N]), keep, seed=5)
        drawn = [op for op in tf.compat.v1.get_default_graph().get_operations() if op.type == "RandomUniformInt"][0]
        return y, counter_rng.random_int32(drawn.outputs[0], tf.constant(N)), key

    y, h, _ = run(build)
    np.testing.assert_array_equal(y != 0, h < round(keep * 2**32) - 2**31)
