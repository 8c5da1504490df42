"""TensorFlow ops and gradients whose ranks have another number of rows each: eager, in tf.function and in sessions."""

from __future__ import annotations

import numpy as np
import pytest

from tests.distributed.conftest import Ranks, is_clean
from tests.distributed.test_backend_collectives import assert_same, tensor

MODES = ["graph", "function", "eager"]
IMPORT = """
        from npu_shim.distributed import uneven_ops
        WORLD = "hccl_world_group"
        def gradient_of(loss_of, x):
            if not tf.executing_eagerly() and not v1.get_default_graph().building_function:
                return tf.gradients(loss_of(), [x])[0]
            with tf.GradientTape() as tape:
                tape.watch(x)
                loss = loss_of()
            return tape.gradient(loss, x)
"""


@pytest.fixture(scope="module", params=[2, 3], ids="{} ranks".format)
def ranks(request):
    """Yield processes with TensorFlow, which connect at the first collective."""
    made = Ranks(request.param, tensorflow=True)
    assert made.joined(180) == [None] * request.param
    made.run(IMPORT)
    yield made
    made.end()
    assert is_clean(made)


@pytest.mark.parametrize("mode", MODES)
def test_allgather(ranks, mode):
    """loss_r = sum((r + 1) * w * output), so that dx is the own part of w times the sum of all r + 1."""
    n = ranks.size
    inputs = [tensor(r, (2 * r + 1, 3), "float32") for r in range(n)]
    weights = tensor(9, (n * n, 3), "float32")
    got = ranks.run(
        """
        def build():
            x = tf.constant(xs[rank])
            made = []
            def loss():
                made.extend(uneven_ops.allgather(x, WORLD))
                return tf.reduce_sum((rank + 1.0) * weights * made[0])
            gradient = gradient_of(loss, x)
            scalar = uneven_ops.allgather(tf.constant(rank, tf.int16), WORLD)[0]
            half = uneven_ops.allgather(tf.cast(x[:, 0], tf.bfloat16), WORLD)[0]
            return made + [gradient, scalar, tf.cast(half, tf.float32)]
        result = evaluate(mode, build)
        """,
        mode=mode,
        xs=inputs,
        weights=weights,
    )
    assert_same([g[0] for g in got], np.concatenate(inputs))
    assert_same([g[1] for g in got], np.array([2 * r + 1 for r in range(n)]))
    for r in range(n):
        own = weights[r * r : (r + 1) * (r + 1)]
        np.testing.assert_allclose(got[r][2], own * sum(range(1, n + 1)), rtol=1e-6)
    assert_same([g[3] for g in got], np.arange(n, dtype=np.int16))
    np.testing.assert_allclose(got[0][4], np.concatenate(inputs)[:, 0], rtol=2**-8)


@pytest.mark.parametrize("mode", MODES)
def test_reduce_scatter(ranks, mode):
    """loss_r = (r + 1) * sum(own rows), so that dx is r + 1 in the rows of rank r, on every rank."""
    n = ranks.size
    inputs = [tensor(r, (2 * n + 1, 3), "float32") for r in range(n)]
    got = ranks.run(
        """
        def build():
            x = tf.constant(xs[rank])
            made = []
            def loss():
                made.append(uneven_ops.reduce_scatter(x, "sum", WORLD))
                return (rank + 1.0) * tf.reduce_sum(made[0])
            gradient = gradient_of(loss, x)
            return [made[0], uneven_ops.reduce_scatter(x, "max", WORLD), gradient]
        result = evaluate(mode, build)
        """,
        mode=mode,
        xs=inputs,
    )
    blocks = np.array_split(np.arange(2 * n + 1), n)
    scale = np.concatenate([np.full((len(block), 3), r + 1, np.float32) for r, block in enumerate(blocks)])
    for r, block in enumerate(blocks):
        np.testing.assert_allclose(got[r][0], np.sum(inputs, axis=0)[block], rtol=1e-5, atol=1e-6)
        assert_same([got[r][1]], np.max(inputs, axis=0)[block])
        assert_same([got[r][2]], scale)


@pytest.mark.parametrize("mode", MODES)
def test_alltoall(ranks, mode):
    """loss_r = sum((r + 1) * received), so that dx is j + 1 in the rows for rank j, and 0 in rows that stay."""
    n = ranks.size
    splits = np.random.RandomState(n).randint(0, 4, size=(n, n))
    inputs = [tensor(r, (splits[r].sum() + 1, 2), "float32") for r in range(n)]
    got = ranks.run(
        """
        def build():
            x, made = tf.constant(xs[rank]), []
            def loss():
                made.extend(uneven_ops.alltoall(x, tf.constant(splits[rank], tf.int32), WORLD))
                return tf.reduce_sum((rank + 1.0) * made[0])
            gradient = gradient_of(loss, x)
            return made + [gradient, uneven_ops.alltoall(tf.range(2 * size) + rank, None, WORLD)[0]]
        result = evaluate(mode, build)
        """,
        mode=mode,
        xs=inputs,
        splits=splits,
    )
    pieces = [np.split(inputs[r], np.cumsum(splits[r])) for r in range(n)]
    for r in range(n):
        assert_same([got[r][0]], np.concatenate([pieces[other][r] for other in range(n)]))
        assert_same([got[r][1]], splits[:, r])
        rows = np.repeat(np.arange(1, n + 1), splits[r])
        assert_same([got[r][2]], np.repeat(np.append(rows, 0)[:, None], 2, axis=1).astype(np.float32))
        assert_same(
            [got[r][3]],
            np.concatenate([[2 * r + other, 2 * r + 1 + other] for other in range(n)]).astype(np.int32),
        )


@pytest.mark.parametrize("mode", MODES)
def test_averaged_slices_of_different_lengths(ranks, mode):
    """Batches of another length on each rank look rows up in a table; its gradient has the mean of all."""
    n = ranks.size
    got = ranks.run(
        """
        from npu_shim.optimizer.gradient_averaging import reduce_all
        def build():
            table, words = tf.ones([6, 2]), tf.range(rank + 1)
            gradient = gradient_of(lambda: (rank + 1.0) * tf.reduce_sum(tf.gather(table, words)), table)
            assert isinstance(gradient, tf.IndexedSlices)
            averaged = reduce_all([tf.ones([3]), gradient], "mean")[1]
            return [tf.convert_to_tensor(averaged), averaged.values, averaged.indices]
        result = evaluate(mode, build)
        """,
        mode=mode,
    )
    expected = np.zeros((6, 2), np.float32)
    for r in range(n):
        expected[: r + 1] += r + 1
    indices = np.concatenate([np.arange(r + 1, dtype=np.int32) for r in range(n)])
    for g in got:
        np.testing.assert_allclose(g[0], expected / n, rtol=1e-6)
        assert_same([g[2]], indices)
        assert g[1].shape == (len(indices), 2)


@pytest.mark.parametrize("mode", MODES)
def test_hccl_allgather_of_dynamic_rows(ranks, mode):
    got = ranks.run(
        """
        def build():
            x = tf.boolean_mask(tf.ones([9, 2]) * (rank + 1), np.arange(9) <= rank)
            return [hccl_ops.allgather(x, size)]
        result = evaluate(mode, build)
        """,
        mode=mode,
    )
    expected = np.concatenate([np.full((r + 1, 2), r + 1, np.float32) for r in range(ranks.size)])
    assert_same([g[0] for g in got], expected)


def test_hccl_allgather_of_static_rows_needs_equal_rows(ranks):
    """The static shape of the result is that of the NPU's op, so other rows must not arrive."""
    got = ranks.attempt("result = evaluate('graph', lambda: [hccl_ops.allgather(tf.ones([rank + 1]), size)])")
    assert all("HCCL needs it" in g.text for g in got), got


def test_other_reductions_and_static_shapes(ranks):
    got = ranks.attempt("""
        with tf.Graph().as_default():
            x = tf.zeros([4])
            tf.gradients(uneven_ops.reduce_scatter(x, "max", WORLD), [x])
        """)
    assert all(g.kind == "LookupError" and "only that of a sum is defined" in g.text for g in got), got
    got = ranks.run("""
        with tf.Graph().as_default():
            x = v1.placeholder(tf.float32, [size + 1, 3])
            made = [*uneven_ops.allgather(x, WORLD), uneven_ops.reduce_scatter(x, "sum", WORLD),
                    *uneven_ops.alltoall(x, tf.ones([size], tf.int64), WORLD)]
            result = [t.shape.as_list() for t in made]
        """)
    n = ranks.size
    assert got == [[[None, 3], [n], [1 + (r == 0), 3], [None, 3], [n]] for r in range(n)]
