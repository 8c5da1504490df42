"""Collectives whose ranks have another number of rows each return the results of NumPy, on every backend."""

from __future__ import annotations

import numpy as np
import pytest

from tests.distributed.test_backend_collectives import FUNCTIONS, MOVED, REDUCED, assert_same, reduced, tensor

pytestmark = pytest.mark.once

TAILS = [(), (3,), (2, 0), (5, 411)]


@pytest.mark.parametrize("dtype", MOVED)
@pytest.mark.parametrize("rows", [lambda r: r, lambda r: 3 - r % 2, lambda r: 7 * (r == 1)])
def test_allgather(ranks, dtype, rows):
    inputs = [[tensor(r, (rows(r),) + tail, dtype) for tail in TAILS] for r in range(ranks.size)]
    got = ranks.run(
        "result = [world.allgather_with_counts(x, key='g %d' % i) for i, x in enumerate(xs[rank])]", xs=inputs
    )
    for i in range(len(TAILS)):
        assert_same([g[i][0] for g in got], np.concatenate([x[i] for x in inputs]))
        assert_same([g[i][1] for g in got], np.array([rows(r) for r in range(ranks.size)]))


def test_allgather_of_scalars_and_vectors_together(ranks):
    inputs = [np.float32(9), *[np.arange(r, dtype=np.float32) for r in range(1, ranks.size)]]
    got = ranks.run("result = world.allgather(xs[rank], key='s')", xs=inputs)
    assert_same(got, np.concatenate([np.atleast_1d(x) for x in inputs]))


@pytest.mark.parametrize("difference", ["np.zeros((2, 3 + (rank == 1)))", "np.zeros((2,) + (3,) * (rank + 1))"])
def test_other_dimensions_must_be_equal(ranks, difference):
    got = ranks.attempt(f"result = world.allgather({difference}, key='k')")
    assert {g.kind for g in got} == {"Mismatch"} and len({g.text for g in got}) == 1
    assert "allgather of float64[?, 3]" in got[0].text
    assert ranks.run("result = int(world.allreduce(np.int32(1), key='next'))") == [ranks.size] * ranks.size


@pytest.mark.parametrize("reduction", FUNCTIONS)
@pytest.mark.parametrize("dtype", REDUCED)
def test_reduce_scatter(ranks, dtype, reduction):
    """The first ranks get one row more, and every row has the bits of an allreduce."""
    n = ranks.size
    shapes = [(n + 1,), (1, 3), (2 * n - 1, 411), (n, 2), (0, 4), (5 * n + 1, 401)]
    inputs = [[tensor(r, s, dtype) for s in shapes] for r in range(n)]
    got = ranks.run(
        "result = [world.reduce_scatter(x, how, key='u %d' % i, uneven=True) for i, x in enumerate(xs[rank])]",
        xs=inputs,
        how=reduction,
    )
    for i, _ in enumerate(shapes):
        for r, block in enumerate(np.array_split(reduced([x[i] for x in inputs], reduction), n)):
            assert_same([got[r][i]], block)


@pytest.mark.parametrize("dtype", MOVED)
@pytest.mark.parametrize("largest", [0, 1, 40])
def test_alltoall(ranks, dtype, largest):
    n = ranks.size
    splits = np.random.RandomState(largest).randint(0, largest + 1, size=(n, n))
    inputs = [[tensor(r, (splits[r].sum(),) + tail, dtype) for tail in TAILS] for r in range(n)]
    got = ranks.run(
        "result = [world.alltoall(x, splits[rank], key='a %d' % i) for i, x in enumerate(xs[rank])]",
        xs=inputs,
        splits=splits,
    )
    for i in range(len(TAILS)):
        pieces = [np.split(inputs[r][i], np.cumsum(splits[r])[:-1]) for r in range(n)]
        for r in range(n):
            assert_same([got[r][i][0]], np.concatenate([pieces[other][r] for other in range(n)]))
            assert_same([got[r][i][1]], splits[:, r])


def test_alltoall_in_equal_parts(ranks):
    n = ranks.size
    got = ranks.run("result = world.alltoall(np.arange(2 * size) + 100 * rank, None, key='e')")
    for r in range(n):
        assert_same([got[r][0]], np.concatenate([[100 * other + 2 * r, 100 * other + 2 * r + 1] for other in range(n)]))
        assert_same([got[r][1]], np.full(n, 2))


WRONG = {
    "world.reduce_scatter(np.float32(1), uneven=True, key='w')": "cannot be scattered over",
    "world.alltoall(np.float32(1), None, key='w')": "a scalar cannot be sent in parts",
    "world.alltoall(np.zeros(size + 1), None, key='w')": "Pass splits, the number of rows",
    "world.alltoall(np.zeros(size), [2] * size, key='w')": "none negative, at most ",
    "world.alltoall(np.zeros(size), [-1] + [1] * (size - 1), key='w')": "none negative, at most ",
    "world.alltoall(np.zeros(size), [1], key='w')": "Pass one number of rows for each of ",
}


@pytest.mark.parametrize("call", WRONG)
def test_wrong_arguments_raise_before_any_communication(ranks, call):
    got = ranks.attempt(f"result = {call}")
    assert all(g.kind == "ValueError" and WRONG[call] in g.text for g in got), got
    assert ranks.run("result = int(world.allreduce(np.int32(1), key='next'))") == [ranks.size] * ranks.size
