"""Every collective of every backend returns the result of NumPy, on 2, 3 and 4 ranks."""

from __future__ import annotations

import functools
import re

import numpy as np
import pytest

pytestmark = pytest.mark.once

REDUCED = ["int8", "int16", "int32", "int64", "uint8", "float16", "float32", "float64"]
MOVED = REDUCED + ["uint16", "uint32", "uint64", "bool", "complex64"]
# a scalar, empty arrays, one element, odd sizes, and more than two slots of 4096 bytes
SHAPES = [(), (0,), (1,), (7,), (3, 5), (2, 0, 3), (1023,), (4099,), (37, 411)]
FUNCTIONS = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}


def tensor(rank, shape, dtype, seed=0):
    """Return the input of a rank."""
    random = np.random.RandomState(1000 * seed + rank)
    if np.dtype(dtype).kind == "f":
        return random.standard_normal(shape).astype(dtype).reshape(shape)
    return random.randint(0, 100, size=shape).astype(dtype).reshape(shape)


def reduced(tensors, reduction):
    """Return the tensors reduced in rank order; float16 in float32, rounded once."""
    wide = [t.astype(np.float32) if t.dtype == np.float16 else t for t in tensors]
    with np.errstate(all="ignore"):
        total = functools.reduce(FUNCTIONS[reduction], wide)
        return np.asarray(total).astype(tensors[0].dtype)


def assert_same(got, expected):
    """Check that all ranks got the expected bits."""
    assert len({g.tobytes() for g in got}) == 1
    assert all(g.dtype == expected.dtype and g.shape == expected.shape for g in got)
    assert got[0].tobytes() == expected.tobytes()


@pytest.mark.parametrize("reduction", FUNCTIONS)
@pytest.mark.parametrize("dtype", REDUCED)
def test_allreduce(ranks, dtype, reduction):
    inputs = [[tensor(r, s, dtype) for s in SHAPES] for r in range(ranks.size)]
    got = ranks.run(
        "result = [world.allreduce(x, how, key='a %d' % i) for i, x in enumerate(xs[rank])]", xs=inputs, how=reduction
    )
    for i in range(len(SHAPES)):
        assert_same([g[i] for g in got], reduced([x[i] for x in inputs], reduction))


@pytest.mark.parametrize("dtype", REDUCED)
def test_allreduce_of_a_list_reduces_each_tensor(ranks, dtype):
    inputs = [[tensor(r, s, dtype, seed=1) for s in SHAPES * 3] for r in range(ranks.size)]
    got = ranks.run("result = world.allreduce(xs[rank], key='many')", xs=inputs)
    for i in range(len(inputs[0])):
        assert_same([g[i] for g in got], reduced([x[i] for x in inputs], "sum"))


def test_allreduce_of_an_empty_list_returns_an_empty_list(ranks):
    assert ranks.run("result = world.allreduce([], key='none')") == [[]] * ranks.size


def test_non_contiguous_arrays(ranks):
    inputs = [tensor(r, (60, 70), "float32") for r in range(ranks.size)]
    got = ranks.run("result = world.allreduce(xs[rank].T[::2], key='strided')", xs=inputs)
    assert_same(got, np.ascontiguousarray(reduced(inputs, "sum").T[::2]))


@pytest.mark.parametrize("reduction", FUNCTIONS)
def test_bfloat16_is_rounded_once(ranks, reduction):
    wide = [
        (tensor(r, (3001,), "float32").view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)
        for r in range(ranks.size)
    ]
    bits = [(w.view(np.uint32) >> np.uint32(16)).astype(np.uint16) for w in wide]
    got = ranks.run("result = world.allreduce(xs[rank], how, key='bf16', type_name='bfloat16')", xs=bits, how=reduction)
    assert_same(got, got[0])
    exact = functools.reduce(FUNCTIONS[reduction], wide).astype(np.float64)
    value = (got[0].astype(np.uint32) << np.uint32(16)).view(np.float32).astype(np.float64)
    # the distance to the nearest of 8 significant bits is at most half of the last one
    assert (np.abs(value - exact) <= np.exp2(np.floor(np.log2(np.abs(exact) + 1e-300)) - 8)).all()


def test_float16_sum_keeps_small_addends():
    """In float16, 2048 + 1 + 1 would be 2048 with a rounding after each addition."""
    from npu_shim.distributed.collectives.reductions import combiner

    out = np.empty(1, np.float16)
    combiner("sum", "float16")([np.float16([2048]), np.float16([1]), np.float16([1])], out)
    assert out[0] == 2050


@pytest.mark.parametrize("dtype", REDUCED)
def test_reduce_returns_the_result_to_the_root_only(ranks, dtype):
    inputs = [[tensor(r, s, dtype) for s in SHAPES] for r in range(ranks.size)]
    for root in range(ranks.size):
        got = ranks.run(
            "result = [world.reduce(x, 'max', root=root, key='r %d' % i) for i, x in enumerate(xs[rank])]",
            xs=inputs,
            root=root,
        )
        for i in range(len(SHAPES)):
            assert_same([got[root][i]], reduced([x[i] for x in inputs], "max"))
            for other in set(range(ranks.size)) - {root}:
                assert_same([got[other][i]], inputs[other][i])


@pytest.mark.parametrize("reduction", FUNCTIONS)
@pytest.mark.parametrize("dtype", REDUCED)
def test_reduce_scatter(ranks, dtype, reduction):
    n = ranks.size
    shapes = [(n,), (0, 4), (3 * n,), (n, 7), (n * 2003,), (2 * n, 3, 401)]
    inputs = [[tensor(r, s, dtype) for s in shapes] for r in range(n)]
    got = ranks.run(
        "result = [world.reduce_scatter(x, how, key='rs %d' % i) for i, x in enumerate(xs[rank])]",
        xs=inputs,
        how=reduction,
    )
    for i, _ in enumerate(shapes):
        blocks = np.split(reduced([x[i] for x in inputs], reduction), n)
        for r in range(n):
            assert_same([got[r][i]], blocks[r])


@pytest.mark.parametrize("dtype", MOVED)
def test_allgather(ranks, dtype):
    inputs = [[tensor(r, s, dtype) for s in SHAPES] for r in range(ranks.size)]
    got = ranks.run("result = [world.allgather(x, key='g %d' % i) for i, x in enumerate(xs[rank])]", xs=inputs)
    for i in range(len(SHAPES)):
        assert_same([g[i] for g in got], np.concatenate([np.atleast_1d(x[i]) for x in inputs]))


def test_broadcast_of_mixed_types_from_every_root(ranks):
    inputs = [[tensor(r, s, d) for s in SHAPES for d in MOVED] for r in range(ranks.size)]
    for root in range(ranks.size):
        got = ranks.run("result = world.broadcast(xs[rank], root=root, key='b')", xs=inputs, root=root)
        for i, expected in enumerate(inputs[root]):
            assert_same([g[i] for g in got], expected)


@pytest.mark.parametrize("dtype", MOVED)
def test_send_and_receive_around_a_ring(ranks, dtype):
    """Send on a second thread: a send waits for its receiver."""
    inputs = [[tensor(r, s, dtype) for s in SHAPES] for r in range(ranks.size)]
    got = ranks.run(
        """
        import threading
        result, after, before = [], (rank + 1) % size, (rank - 1) % size
        for tag, x in enumerate(xs[rank]):
            sender = threading.Thread(target=lambda: world.send(x, dest=after, tag=tag))
            sender.start()
            result.append(world.receive(x.shape, x.dtype, source=before, tag=tag))
            sender.join()
        """,
        xs=inputs,
    )
    for r in range(ranks.size):
        for g, expected in zip(got[r], inputs[(r - 1) % ranks.size]):
            assert_same([g], expected)


@pytest.mark.parametrize("largest", [0, 1, 5, 3000])
@pytest.mark.parametrize("dtype", ["int8", "float32", "int64"])
def test_all_to_all(ranks, dtype, largest):
    n = ranks.size
    counts = np.random.RandomState(largest).randint(0, largest + 1, size=(n, n))
    pieces = [[tensor(i, (counts[i, j],), dtype, seed=j) for j in range(n)] for i in range(n)]
    data = [np.concatenate(row) if row else np.zeros(0, dtype) for row in pieces]
    got = ranks.run(
        """
        row, column = counts[rank], counts[:, rank]
        result = [world.alltoallv(data[rank], row, np.cumsum(row) - row, column, np.cumsum(column) - column, key="v"),
                  world.alltoallvc(data[rank], counts, key="vc")]
        """,
        counts=counts,
        data=data,
    )
    for r in range(n):
        expected = np.concatenate([pieces[i][r] for i in range(n)])
        assert_same([got[r][0]], expected)
        assert_same([got[r][1]], expected)


def test_all_to_all_with_overlapping_segments(ranks):
    """Each rank sends the same two elements to all ranks, and stores the segments in reverse order."""
    n = ranks.size
    got = ranks.run("""
        result = world.alltoallv(np.int32([9, rank, rank]), [2] * size, [1] * size, [2] * size,
                                 2 * np.arange(size)[::-1], key="x")
        """)
    expected = np.repeat(np.arange(n, dtype=np.int32)[::-1], 2)
    for g in got:
        assert_same([g], expected)


def test_barrier_waits_for_every_rank(ranks):
    got = ranks.run("""
        import time
        time.sleep(0.2 if rank == size - 1 else 0)
        begin = time.monotonic()
        world.barrier(key="bar")
        result = (begin, time.monotonic())
        """)
    assert min(passed for _, passed in got) >= max(came for came, _ in got)


def test_groups_are_independent(ranks):
    """Each rank is in a group by parity, a group without rank 0, and a reversed world."""
    n = ranks.size
    got = ranks.run("""
        parity = backend.group("parity %d" % (rank % 2), list(range(rank % 2, size, 2)))
        back = backend.group("back", list(range(size))[::-1])
        rest = backend.group("rest", list(range(1, size))) if rank else None
        x = np.float32([rank + 1])
        result = [parity.allreduce(x, key="p"), back.allgather(x, key="b"),
                  rest.broadcast(x, root=size - 2, key="r") if rest else None, (back.rank, back.size, back.ranks)]
        """)
    for r in range(n):
        assert_same([got[r][0]], np.float32([sum(range(r % 2 + 1, n + 1, 2))]))
        assert_same([got[r][1]], np.arange(n, 0, -1, dtype=np.float32))
        if r:
            assert_same([got[r][2]], np.float32([n]))
        assert got[r][3] == (n - 1 - r, n, tuple(range(n))[::-1])


def test_group_of_one_rank(ranks):
    got = ranks.run("""
        alone = backend.group("alone %d" % rank, [rank])
        x = np.float32([[1, 2], [3, rank]])
        result = [alone.allreduce(x, key="a"), alone.allgather(x, key="g"), alone.reduce_scatter(x, key="s"),
                  alone.broadcast(x, root=0, key="b"), alone.alltoallvc(x[0], [[2]], key="c")]
        """)
    for r in range(ranks.size):
        x = np.float32([[1, 2], [3, r]])
        for g, expected in zip(got[r], [x, x, x, x, x[0]]):
            assert_same([g], expected)


def test_threads_may_start_collectives_in_any_order(ranks):
    got = ranks.run("""
        import concurrent.futures, random
        keys = list(range(40))
        random.Random(rank).shuffle(keys)
        def one(key):
            return world.allreduce(np.full(50 * key, key, np.int64), key="t %d" % key)
        with concurrent.futures.ThreadPoolExecutor(40) as pool:
            done = dict(zip(keys, pool.map(one, keys)))
        result = [done[key] for key in sorted(done)]
        """)
    for key in range(40):
        assert_same([g[key] for g in got], np.full(50 * key, key * ranks.size, np.int64))


LAST = "(rank == size - 1)"
DIFFERENCES = {
    "a shape": (
        f"allreduce(np.zeros((2, 3 + {LAST}), np.float32), key='k')",
        r"allreduce sum of float32\[2, 3\]",
        r"allreduce sum of float32\[2, 4\]",
    ),
    "a type": (f"allreduce(np.zeros(2, [np.int32, np.int64][{LAST}]), key='k')", r"int32\[2\]", r"int64\[2\]"),
    "a reduction": (f"allreduce(np.zeros(2), ['sum', 'max'][{LAST}], key='k')", "allreduce sum", "allreduce max"),
    "a root": (f"broadcast(np.zeros(2), root=int{LAST}, key='k')", "broadcast from rank 0", "broadcast from rank 1"),
    "a kind": ("%s(np.zeros(2), key='k')", "allreduce", "allgather"),
    "a list": (f"allreduce([np.zeros(2)] * (1 + {LAST}), key='k')", r"of float64\[2\]", "of 2 tensors"),
    "counts": (f"alltoallvc(np.zeros(size), np.full((size, size), int{LAST}), key='k')", "alltoallvc", "alltoallvc"),
}


@pytest.mark.parametrize("what", DIFFERENCES)
def test_different_requests_raise_on_every_rank(ranks, what):
    """The last rank differs. One error names both requests, and the group stays usable."""
    source, first, second = DIFFERENCES[what]
    if "%s" in source:
        call = "world." + source % "allreduce" + " if rank < size - 1 else world." + source % "allgather"
    else:
        call = "world." + source
    got = ranks.attempt(f"result = {call}")
    texts = {g.text for g in got}
    assert {g.kind for g in got} == {"Mismatch"} and len(texts) == 1
    text = texts.pop()
    assert re.search(
        rf"^k: rank 0 \(process \d+( on a)?\) requests .*{first}.*, rank {ranks.size - 1} \(process \d+( on [ab])?\) "
        rf"requests .*{second}.*\. Make the same call on every rank\.",
        text,
    ), text
    assert ranks.run("result = int(world.allreduce(np.int32(1), key='next'))") == [ranks.size] * ranks.size


def test_different_counts_raise_on_every_rank(ranks):
    got = ranks.attempt("""
        counts = np.ones(size, int)
        expects = counts + (np.arange(size) == 0) * (rank == 1)
        begins = np.cumsum(expects) - expects
        result = world.alltoallv(np.zeros(size), counts, np.arange(size), expects, begins, key="v")
        """)
    assert {g.kind for g in got} == {"Mismatch"} and len({g.text for g in got}) == 1
    assert "v: rank 0 of the group sends 1 elements to rank 1, which expects 2" in got[0].text
    assert ranks.run("result = int(world.allreduce(np.int32(1), key='next'))") == [ranks.size] * ranks.size


WRONG = {
    "world.allreduce(np.zeros(2), 'mean', key='w')": ("ValueError", "reduction='mean' is not allowed"),
    "world.allreduce(np.zeros(2, bool), key='w')": ("TypeError", "type bool cannot be reduced"),
    "world.allreduce(np.array(['a']), key='w')": ("TypeError", "cannot be sent to other ranks"),
    "world.allreduce([np.zeros(2), np.zeros(2, int)], key='w')": ("TypeError", "Cast them to one type."),
    "world.broadcast(np.zeros(2), root=size, key='w')": ("ValueError", "are 0 to "),
    "world.reduce_scatter(np.zeros(size + 1), key='w')": ("ValueError", "Make axis 0 a multiple of "),
    "world.send(np.zeros(2), dest=rank, tag=0)": ("ValueError", "it is this rank. Name another one."),
    "world.alltoallv(np.zeros(2), [1], [0], [1], [0], key='w')": ("ValueError", "one number for each of"),
    "world.alltoallv(np.zeros(1), [1] * size, range(size), [1] * size, range(size), key='w')": (
        "ValueError",
        "within 1 ",
    ),
    "backend.group('w', [(rank + 1) % size])": ("ValueError", "Name this rank and others of 0 to "),
}


@pytest.mark.parametrize("call", WRONG)
def test_wrong_arguments_raise_before_any_communication(ranks, call):
    got = ranks.attempt(f"result = {call}")
    kind, text = WRONG[call]
    assert all(g.kind == kind and text in g.text for g in got), got
    assert ranks.run("result = int(world.allreduce(np.int32(1), key='next'))") == [ranks.size] * ranks.size
