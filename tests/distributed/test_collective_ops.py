"""HCCL's collectives as TensorFlow ops between processes: eager, in tf.function and in sessions."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from tests.distributed.conftest import IS_NIGHTLY, Failed, Ranks, is_clean
from tests.distributed.test_backend_collectives import FUNCTIONS, reduced, tensor

OF_VERSION_2 = [pytest.mark.once] * tf.__version__.startswith("1.")
EAGER = pytest.param("eager", marks=OF_VERSION_2)
MODES = ["graph", pytest.param("function", marks=OF_VERSION_2), EAGER]
SOME_MODES = ["graph", pytest.param("function", marks=pytest.mark.nightly), EAGER]
REDUCED = ["int8", "int16", "int32", "int64", "float16", "float32"]
GATHERED = REDUCED + ["uint8", "uint16", "uint32", "uint64", "float64"]
SHAPES = [(), (7,), (2, 0, 3), (12, 4099)] + IS_NIGHTLY * [(0,), (6, 5)]


# How a backend computes on each number of ranks is tested in test_backend_collectives.py.
SIZES = [4] + IS_NIGHTLY * [2]


@pytest.fixture(scope="module", params=SIZES, ids="{} ranks".format)
def ranks(request):
    """Yield processes with TensorFlow, which connect at the first collective."""
    made = Ranks(request.param, tensorflow=True)
    assert made.joined(180) == [None] * request.param
    yield made
    made.end()
    assert is_clean(made)


def cases(mode, dtypes):
    """Return pairs of a type and a shape: all of them in eager code by night, else each type and each shape."""
    everything = mode == "eager" and IS_NIGHTLY
    return [(d, s) for d in dtypes for s in SHAPES if everything or d == "float32" or s == (12, 4099)]


def assert_same(got, expected):
    for g in got:
        assert g.dtype == expected.dtype and g.shape == expected.shape
        np.testing.assert_array_equal(g, expected)


@pytest.mark.once
@pytest.mark.parametrize("mode", SOME_MODES)
def test_reductions_of_every_type(ranks, mode):
    n = ranks.size
    kinds = cases(mode, REDUCED)
    inputs = [[tensor(r, s, d) for d, s in kinds] for r in range(n)]
    blocks = [[tensor(r, s, d) for d, s in kinds if s and s[0] % n == 0] for r in range(n)]
    for reduction in FUNCTIONS:
        got = ranks.run(
            """
            result = evaluate(mode, lambda: [hccl_ops.allreduce(x, how) for x in xs[rank]] +
                                           [hccl_ops.reduce(x, how, size - 1) for x in xs[rank]] +
                                           [hccl_ops.reduce_scatter(x, how, size) for x in ys[rank]])
            """,
            mode=mode,
            how=reduction,
            xs=inputs,
            ys=blocks,
        )
        count = len(inputs[0])
        for i in range(count):
            total = reduced([x[i] for x in inputs], reduction)
            assert_same([g[i] for g in got], total)
            for r in range(n):
                assert_same([got[r][count + i]], total if r == n - 1 else inputs[r][i])
        for i in range(len(blocks[0])):
            for r, block in enumerate(np.split(reduced([y[i] for y in blocks], reduction), n)):
                assert_same([got[r][2 * count + i]], block)


@pytest.mark.parametrize("mode", MODES)
def test_bfloat16(ranks, mode):
    """Use small integers, which bfloat16 represents exactly."""
    got = ranks.run(
        """
        def build():
            x = tf.cast(tf.reshape(tf.range(4 * size), [size, 4]) + rank, tf.bfloat16)
            made = [hccl_ops.allreduce(x, "sum"), hccl_ops.allgather(x, size), hccl_ops.broadcast([x], 1)[0],
                    hccl_ops.reduce_scatter(x, "max", size),
                    hccl_ops.all_to_all_v_c(x[:, 0], np.ones((size, size)), rank)]
            return [tf.cast(t, tf.float32) for t in made]
        result = evaluate(mode, build)
        """,
        mode=mode,
    )
    n = ranks.size
    x = [np.float32(np.arange(4 * n).reshape(n, 4) + r) for r in range(n)]
    for r in range(n):
        expected = [sum(x), np.concatenate(x), x[1], x[n - 1][r : r + 1], np.float32([y[r, 0] for y in x])]
        for g, e in zip(got[r], expected):
            assert_same([g], e)


@pytest.mark.once
@pytest.mark.parametrize("mode", SOME_MODES)
def test_allgather_and_broadcast_of_every_type(ranks, mode):
    n = ranks.size
    inputs = [[tensor(r, s, d) for d, s in cases(mode, GATHERED)] for r in range(n)]
    got = ranks.run(
        """
        result = evaluate(mode, lambda: [hccl_ops.allgather(x, size) for x in xs[rank]] +
                                       hccl_ops.broadcast(xs[rank] + [tf.constant([True, rank == 1])], 1))
        """,
        mode=mode,
        xs=inputs,
    )
    count = len(inputs[0])
    for i in range(count):
        assert_same([g[i] for g in got], np.concatenate([np.atleast_1d(x[i]) for x in inputs]))
        assert_same([g[count + i] for g in got], inputs[1][i])
    assert_same([g[2 * count] for g in got], np.array([True, True]))


@pytest.mark.parametrize("mode", MODES)
def test_send_and_receive(ranks, mode):
    got = ranks.run(
        """
        def build():
            if rank == 0:
                op = hccl_ops.send(tf.constant([1.5, 2.5]), 7, size - 1)
                with tf.control_dependencies([op] if op is not None else []):
                    return [tf.zeros([2])]
            if rank == size - 1:
                return [hccl_ops.receive([2], tf.float32, 7, 0)]
            return [tf.zeros([2])]
        result = evaluate(mode, build)
        """,
        mode=mode,
    )
    assert_same([got[-1][0]], np.float32([1.5, 2.5]))


@pytest.mark.parametrize("mode", MODES)
def test_all_to_all(ranks, mode):
    n = ranks.size
    counts = np.random.RandomState(n).randint(0, 9, size=(n, n))
    pieces = [[tensor(i, (counts[i, j],), "float32", seed=j) for j in range(n)] for i in range(n)]
    got = ranks.run(
        """
        row, column, data = counts[rank], counts[:, rank], np.concatenate(pieces[rank])
        result = evaluate(mode, lambda: [
            hccl_ops.all_to_all_v(data, row, np.cumsum(row) - row, column, np.cumsum(column) - column),
            hccl_ops.all_to_all_v_c(data, counts, rank)])
        """,
        mode=mode,
        counts=counts,
        pieces=pieces,
    )
    for r in range(n):
        expected = np.concatenate([pieces[i][r] for i in range(n)])
        assert_same(got[r], expected)


@pytest.mark.parametrize("mode", MODES)
def test_groups(ranks, mode):
    """Use groups by parity; the root is a rank of the group."""
    n = ranks.size
    got = ranks.run(
        """
        name, members = "%s %d" % (mode, rank % 2), list(range(rank % 2, size, 2))
        create_group(name, len(members), members)
        result = evaluate(mode, lambda: [hccl_ops.allreduce(np.float32([rank + 1]), "sum", group=name),
                                        hccl_ops.allgather(np.float32([rank]), len(members), group=name),
                                        hccl_ops.broadcast([np.float32([rank])], len(members) - 1, group=name)[0]])
        destroy_group(name)
        """,
        mode=mode,
    )
    for r in range(n):
        members = np.arange(r % 2, n, 2, dtype=np.float32)
        for g, expected in zip(got[r], [[members.sum() + len(members)], members, members[-1:]]):
            assert_same([g], np.float32(expected))


def test_static_shapes_are_known(ranks):
    got = ranks.run("""
        with tf.Graph().as_default():
            x = v1.placeholder(tf.float32, [2 * size, 3])
            any_ = v1.placeholder(tf.float32, [None, 3])
            made = [hccl_ops.allreduce(x, "sum"), hccl_ops.allgather(x, size), hccl_ops.allgather(any_, size),
                    hccl_ops.reduce_scatter(x, "sum", size), hccl_ops.broadcast([x], 0)[0],
                    hccl_ops.reduce(x, "sum", 0),
                    hccl_ops.receive([4, 5], tf.int8, 0, (rank + 1) % size),
                    hccl_ops.all_to_all_v(x[:, 0], [2] * size, [0] * size, [2] * size, [0] * size)]
            result = [t.shape.as_list() for t in made]
        """)
    n = ranks.size
    assert got == [[[2 * n, 3], [2 * n * n, 3], [None, 3], [2, 3], [2 * n, 3], [2 * n, 3], [4, 5], [2 * n]]] * n


@pytest.mark.parametrize("mode", MODES)
def test_gradient_of_a_sum_is_the_sum_of_the_gradients_in_its_group(ranks, mode):
    """loss_r = sum(weight_r * allreduce(x_r ** 2)), so that dx_r = 2 x_r * (sum of the weights of the group)."""
    n = ranks.size
    got = ranks.run(
        """
        name, members = "g %s %d" % (mode, rank % 2), list(range(rank % 2, size, 2))
        create_group(name, len(members), members)
        def build():
            x = tf.constant(np.float32([1, 2]) + rank)
            made = []
            for group in ("hccl_world_group", name):
                def loss():
                    return (rank + 1.0) * tf.reduce_sum(hccl_ops.allreduce(x * x, "sum", group=group))
                if mode == "graph":
                    made += tf.gradients(loss(), [x])
                else:
                    with tf.GradientTape() as tape:
                        tape.watch(x)
                        value = loss()
                    made.append(tape.gradient(value, x))
            return made
        result = evaluate(mode, build)
        destroy_group(name)
        """,
        mode=mode,
    )
    for r in range(n):
        x = np.float32([1, 2]) + r
        assert_same([got[r][0]], 2 * x * np.float32(sum(range(1, n + 1))))
        assert_same([got[r][1]], 2 * x * np.float32(sum(range(r % 2 + 1, n + 1, 2))))


def test_loops_and_branches(ranks):
    got = ranks.run("""
        def build():
            def step(i, x):
                return i + 1, tf.cond(i % 2 < 1, lambda: hccl_ops.allreduce(x, "sum") / size,
                                      lambda: hccl_ops.allreduce(x, "max"))
            x = tf.constant(np.float32([1, 2]) * (rank + 1))
            _, y = tf.while_loop(lambda i, x: i < 4, step, [tf.constant(0), x])
            return [y]
        result = evaluate("graph", build) + evaluate("function", build)
        """)
    expected = np.float32([1, 2]) * (ranks.size + 1) / 2
    for g in got:
        assert_same(g, expected)


@pytest.mark.parametrize(
    "call",
    [
        "hccl_ops.allreduce(x, 'max')",
        "hccl_ops.allgather(x, size)",
        "hccl_ops.broadcast([x], 0)[0]",
        "hccl_ops.reduce(x, 'sum', 0)",
        "hccl_ops.reduce_scatter(x, 'sum', size)",
    ],
)
def test_other_gradients_raise_when_they_are_used(ranks, call):
    plain = f"with tf.Graph().as_default():\n    x = tf.zeros([2 * size])\n    tf.gradients({call}, [x])"
    taped = (
        f"x = tf.zeros([2 * size])\nwith tf.GradientTape() as tape:\n    tape.watch(x)\n    y = {call}\n"
        "tape.gradient(y, x)"
    )
    for source in (plain, taped):
        got = ranks.attempt(source)
        assert all(g.kind == "LookupError" and " has no gradient: " in g.text for g in got), got
    stopped = ranks.run(
        "with tf.Graph().as_default():\n    x = tf.zeros([2 * size])\n"
        f"    y = tf.reduce_sum(tf.stop_gradient({call})) * x\n"
        "    result = tf.gradients(y, [x])[0] is not None"
    )
    assert stopped == [True] * ranks.size


VARIABLES = """
    def build():
        made = [v1.get_variable("%s%s" % (kind, use), initializer=tf.constant(value), use_resource=use,
                                trainable=trains)
                for use in ((True,) if eager else (False, True))
                for kind, value, trains in (("w", np.float32([[1, 2], [3, 4]]) * (rank + 1), True),
                                            ("mean", np.float64(rank), False), ("step", np.int64(10 * rank), False),
                                            ("flag", np.array([rank > 0]), False))]
        return made
    """


def test_broadcast_updates_variables_in_place(ranks):
    """Scripts run the result and assign nothing; with reference variables, resources, and any type."""
    got = ranks.run(
        "eager = False\n"
        + "\n".join(line[4:] for line in VARIABLES.strip("\n").splitlines())
        + """
with tf.Graph().as_default(), v1.Session() as sess:
    made = build()
    op = tf.group(*hccl_ops.broadcast(made, size - 1))
    sess.run(v1.global_variables_initializer())
    sess.run(op)
    result = sess.run(made)
eager = True
made = [tf.Variable(np.float32([1, 2]) * (rank + 1)), tf.Variable(np.int64(rank))]
hccl_ops.broadcast(made, 0)
result += [v.numpy() for v in made]
"""
    )
    last = ranks.size - 1
    expected = [np.float32([[1, 2], [3, 4]]) * (last + 1), np.float64(last), np.int64(10 * last), np.array([True])] * 2
    for g in got:
        for value, wanted in zip(g, expected + [np.float32([1, 2]), np.int64(0)]):
            np.testing.assert_array_equal(value, wanted)


@pytest.mark.once
def test_independent_collectives_do_not_block_each_other(ranks):
    """Run 40 collectives, ready in a different order on each rank, in a session with one requested thread."""
    got = ranks.run("""
        import random, time
        with tf.Graph().as_default():
            chance = random.Random(rank)
            late = [chance.uniform(0, 0.2) for _ in range(40)]
            def slow(i):
                time.sleep(late[i])
                return np.float32(i)
            fetches = [hccl_ops.allreduce(tf.ensure_shape(tf.numpy_function(slow, [i], tf.float32), []), "sum")
                       for i in range(40)]
            with v1.Session(config=v1.ConfigProto(inter_op_parallelism_threads=1)) as sess:
                result = [sess.run(fetches) for _ in range(2)][-1]
        """)
    for g in got:
        assert g == [np.float32(i * ranks.size) for i in range(40)]


def test_rank_with_another_graph_is_named_before_any_reduction(ranks):
    got = ranks.attempt("""
        with tf.Graph().as_default():
            x = tf.constant([1.0, 2.0], name="x")
            fetches = [hccl_ops.allreduce(x + i, "sum") for i in range(3)]
            if rank == size - 1:
                fetches.append(hccl_ops.allreduce(tf.identity(x, name="more"), "max"))
            with v1.Session() as sess:
                sess.run(fetches)
        """)
    for g in got:
        assert isinstance(g, Failed)
        if ranks.size > 2:
            assert "rank 3 has 4 collectives, rank 0, 1, 2 3. The first difference is collective 4: " in g.text
        assert "float32 of more:0" in g.text and "Build the same model on every rank." in g.text


WRONG = {
    "hccl_ops.allreduce(tf.zeros([2], tf.float64), 'sum')": ("TypeError", "one of int8, int16, int32, int64, float16"),
    "hccl_ops.allgather(tf.constant([True]), size)": ("TypeError", "Cast it to one of "),
    "hccl_ops.broadcast([tf.constant(['a'])], 0)": ("TypeError", "Cast it to one of numbers."),
    "hccl_ops.broadcast([tf.zeros([2])], size)": ("ValueError", "group 'hccl_world_group' has ranks 0 to "),
    "hccl_ops.allgather(tf.zeros([2]), size + 1)": ("ValueError", ". Pass "),
    "hccl_ops.reduce_scatter(tf.zeros([size + 1]), 'sum', size)": ("ValueError", "Make axis 0 a multiple of "),
    "hccl_ops.send(tf.zeros([2]), 0, rank)": ("ValueError", "it is this process. Name another rank."),
    "hccl_ops.all_to_all_v_c(tf.zeros([size]), np.ones((size, size)), 9)": ("ValueError", "this process is rank "),
    "hccl_ops.allreduce(tf.zeros([2]), 'sum', group='no')": ("ValueError", "group='no' does not exist"),
}


@pytest.mark.parametrize("call", WRONG)
def test_wrong_arguments(ranks, call):
    kind, text = WRONG[call]
    assert all(g.kind == kind and text in g.text for g in ranks.attempt(call))


@pytest.mark.parametrize("mode", MODES)
def test_killed_rank_is_named_by_the_ops_of_the_others(ranks_of, mode):
    ranks = ranks_of(2, tensorflow=True)
    ranks.run("result = evaluate(mode, lambda: [hccl_ops.allreduce(1.0, 'sum')])", mode=mode)
    ranks.ranks[0].send("evaluate(mode, lambda: [hccl_ops.allreduce(1.0, 'sum')])", {"mode": mode})
    ranks.kill(1)
    result = ranks.ranks[0].result(30)
    assert f"rank 1 (process {ranks.ranks[1].process.pid}) died" in result.text


def test_session_on_a_server_of_the_script(ranks):
    got = ranks.run("""
        server = v1.train.Server.create_local_server()
        with tf.Graph().as_default():
            with v1.Session(server.target) as sess:
                result = int(sess.run(tf.constant(2) + rank))
        """)
    assert got == [2 + r for r in range(ranks.size)]


def test_reduction_of_a_variable_itself_is_reported():
    from npu_shim.distributed import hccl_ops

    with tf.Graph().as_default():
        weights = tf.compat.v1.get_variable("weights", [3])
        with pytest.warns(UserWarning, match="does not reduce a variable itself. Pass a tensor computed from weights"):
            hccl_ops.allreduce(weights, "sum")
