"""No number, order or time of creation of collectives makes ranks wait for each other forever, even on one thread."""

from __future__ import annotations

import numpy as np
import pytest

from tests.distributed.conftest import IS_NIGHTLY, Ranks, is_clean

HELPERS = """
        import time
        toggle = {True: v1.enable_control_flow_v2, False: v1.disable_control_flow_v2}
        def run_in(threads, build, after_session=False):
            # Return the values of build(), computed by a session with this number of threads; 0 is TensorFlow's default.
            config = v1.ConfigProto(inter_op_parallelism_threads=threads, use_per_session_threads=True)
            with tf.Graph().as_default():
                fetches = None if after_session else build()
                with v1.Session(config=config) as sess:
                    fetches = build() if after_session else fetches
                    sess.run(v1.global_variables_initializer())
                    return sess.run(fetches)
        def later(x, number):
            # Return x; the first of several numbers is late on even ranks, the last on odd ones.
            def wait(array):
                time.sleep(0.2 if number == rank % 2 else 0)
                return array
            y = tf.numpy_function(wait, [x], x.dtype)
            y.set_shape(x.shape)
            return y
        def two(scale=1.0):
            # Return the results of two collectives that even and odd ranks reach in another order.
            return [hccl_ops.allreduce(later(tf.constant([scale + number]), number), "sum") for number in (0, 1)]
"""
COUNT = 100 if IS_NIGHTLY else 30
SINGLE = {"TF_NUM_INTEROP_THREADS": "1"}


@pytest.fixture(scope="module")
def ranks():
    """Yield processes with TensorFlow and, unless a session says otherwise, one thread for ops."""
    made = Ranks(
        3 if IS_NIGHTLY else 2, "shm", tensorflow=True, environment={**SINGLE, "NPU_SHIM_COLLECTIVE_TIMEOUT": "100"}
    )
    assert made.joined(180) == [None] * made.size
    made.run(HELPERS)
    yield made
    made.end()
    assert is_clean(made)


# Each pair of two settings; all of them by night.
SETTINGS = [
    (1, False, "configured"),
    pytest.param(1, True, "not configured", marks=[pytest.mark.nightly]),
    pytest.param(0, True, "configured", marks=[pytest.mark.nightly]),
    pytest.param(0, False, "not configured", marks=[pytest.mark.nightly]),
]
MORE_SETTINGS = [
    (1, True, "configured"),
    (1, False, "not configured"),
    (0, False, "configured"),
    (0, True, "not configured"),
]


@pytest.mark.once
@pytest.mark.parametrize("threads, after_session, config", SETTINGS + IS_NIGHTLY * MORE_SETTINGS)
def test_200_variables(ranks, threads, after_session, config):
    """The session is made before or after the graph, with npu_shim's configuration or without."""
    got = ranks.run(
        """
        def build():
            made = [v1.get_variable("v%d" % i, initializer=tf.constant([rank + i, 1]), use_resource=bool(i % 2))
                    for i in range(200)]
            with tf.control_dependencies([v1.global_variables_initializer()]):
                return [hccl_ops.broadcast([v], size - 1)[0] for v in made]
        if config == "not configured":
            npu_shim.uninstall()
        try:
            result = run_in(threads, build, after_session)
        finally:
            npu_shim.install()
        """,
        threads=threads,
        after_session=after_session,
        config=config,
    )
    for g in got:
        np.testing.assert_array_equal(g, [[ranks.size - 1 + i, 1] for i in range(200)])


@pytest.mark.nightly
def test_1100_collectives_at_a_time(ranks):
    """There are more than announcements of a rank (shm/segment.py)."""
    ranks.start("result = run_in(1, lambda: [hccl_ops.allreduce(tf.constant([i]), 'sum') for i in range(1100)])")
    got = ranks.results(600)  # on a busy machine
    for g in got:
        np.testing.assert_array_equal(g, [[i * ranks.size] for i in range(1100)])


@pytest.mark.parametrize("threads", [1, 0])
def test_another_order_on_each_rank(ranks, threads):
    got = ranks.run("result = run_in(threads, two)", threads=threads)
    for g in got:
        np.testing.assert_array_equal(g, [[1.0 * ranks.size], [2.0 * ranks.size]])


BODIES = {
    "a branch": "tf.cond(v1.placeholder_with_default(True, []), two, lambda: [tf.zeros([1])] * 2)",
    "two branches": "[tf.cond(v1.placeholder_with_default(True, []), lambda n=n: two(1.0)[n] + two(1.0)[1 - n] * 0, "
    "lambda: tf.zeros([1])) for n in (0, 1)]",
    "a loop": "tf.while_loop(lambda i, x, y: i < 3, lambda i, x, y: [i + 1, *two()], [0, tf.zeros([1]), "
    "tf.zeros([1])])[1:]",
    "parallel iterations": "[a.stack()[-1] for a in tf.while_loop(lambda i, *a: i < 6, lambda i, *a: [i + 1] + [b.write("
    "i, y) for b, y in zip(a, two())], [0] + [tf.TensorArray(tf.float32, 6, element_shape=[1]) for _ in range(2)], "
    "parallel_iterations=6)[1:]]",
    "a function": "tf.function(two)()",
    "two functions": "[tf.function(lambda n=n: two()[n])() for n in (0, 1)]",
    "a loop in a function": "tf.function(lambda: tf.while_loop(lambda i, x, y: i < 3, lambda i, x, y: [i + 1, *two()], "
    "[0, tf.zeros([1]), tf.zeros([1])])[1:])()",
}


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("is_v2", [False, True])
def test_control_flow(ranks, body, is_v2):
    """In branches, loops and functions of a graph, with both forms of control flow, and one thread."""
    got = ranks.run(
        "toggle[is_v2]()\ntry:\n    result = run_in(1, lambda: list(eval(body)))\nfinally:\n    toggle[False]()",
        body=BODIES[body],
        is_v2=is_v2,
    )
    for g in got:
        np.testing.assert_array_equal(g, [[1.0 * ranks.size], [2.0 * ranks.size]])


@pytest.mark.parametrize("body", [body for body in BODIES if "placeholder" not in BODIES[body]])
def test_functions_of_eager_programs(ranks, body):
    got = ranks.run("result = [np.asarray(t) for t in tf.function(lambda: list(eval(body)))()]", body=BODIES[body])
    for g in got:
        np.testing.assert_array_equal(g, [[1.0 * ranks.size], [2.0 * ranks.size]])


@pytest.mark.parametrize("number", [40, pytest.param(200, marks=[pytest.mark.nightly])])
def test_many_collectives_of_a_function(ranks, number):
    got = ranks.run(
        """
        made = tf.function(lambda: [hccl_ops.allreduce(tf.constant([i]), "sum") for i in range(number)])()
        result = [np.asarray(t) for t in made]
        """,
        number=number,
    )
    for g in got:
        np.testing.assert_array_equal(g, [[i * ranks.size] for i in range(number)])


def test_gradients_of_collectives_in_loops(ranks):
    """dy/dx of x -> sum over ranks, three times: size ** 3."""
    got = ranks.run("""
        def build():
            x = tf.constant(1.0)
            _, y = tf.while_loop(lambda i, y: i < 3, lambda i, y: [i + 1, hccl_ops.allreduce(y, "sum")], [0, x])
            return tf.gradients(y, x) + [y]
        result = []
        for is_v2 in (False, True):
            toggle[is_v2]()
            result.append(run_in(1, build))
        toggle[False]()
        """)
    for g in got:
        np.testing.assert_array_equal(g, [[float(ranks.size) ** 3] * 2] * 2)


def test_send_receive_and_barrier_need_no_thread(ranks):
    """Each rank sends to the next one, and fetches the receive before the send."""
    got = ranks.run("""
        def build():
            received = [hccl_ops.receive([1], tf.int32, tag, (rank - 1) % size) for tag in range(20)]
            sent = [hccl_ops.send(tf.constant([100 * rank + tag]), tag, (rank + 1) % size) for tag in range(20)]
            return received + [tf.constant(0)], sent
        result = run_in(1, build)[0][:20]
        """)
    for r, g in enumerate(got):
        np.testing.assert_array_equal(g, [[100 * ((r - 1) % ranks.size) + tag] for tag in range(20)])


def test_session_closed_as_soon_as_a_collective_has_returned(ranks):
    """Keras does this with a callable, which has its own function library."""
    got = ranks.run(
        """
        from tensorflow.core.protobuf.config_pb2 import CallableOptions
        def run_and_close(number):
            with tf.Graph().as_default():
                done = hccl_ops.allreduce(tf.constant([number]), 'sum')
                with v1.Session() as sess:
                    return sess._make_callable_from_options(CallableOptions(fetch=[done.name]))()[0]
        result = [run_and_close(number) for number in range(count)]
        """,
        count=COUNT,
    )
    for g in got:
        np.testing.assert_array_equal(g, [[number * ranks.size] for number in range(COUNT)])


def test_error_of_a_collective(ranks):
    got = ranks.attempt("result = run_in(1, lambda: [hccl_ops.allreduce(tf.ones([rank + 1]), 'sum')])")
    for g in got:
        assert g.kind == "UnknownError"
        assert "Mismatch: " in g.text and "requests allreduce sum of float32[2]" in g.text
