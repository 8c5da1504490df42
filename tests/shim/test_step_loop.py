"""N training steps in one session.run are the same N steps as one by one."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

import npu_shim
from npu_shim import npu_init as npu
from npu_shim._tensorflow import tf_api, tf_threads
from npu_shim.estimator.npu import util
from npu_shim.optimizer import single_thread
from npu_shim.optimizer.step_loop import StepLoop
from tests.control_flow import control_flow_v2

pytestmark = pytest.mark.once_tf115

v1 = tf.compat.v1
X = np.random.RandomState(0).randn(96, 6).astype(np.float32)
Y = X[:, :1] * 2 - 1
WEIGHTS = {
    "w0": np.random.RandomState(1).randn(6, 8).astype(np.float32) * 0.3,
    "b0": np.zeros(8, np.float32),
    "w1": np.random.RandomState(2).randn(8, 1).astype(np.float32) * 0.3,
}


def through_loops(x, weights):
    """A while loop with a gradient, a branch, and an inner loop in a branch."""
    x = v1.while_loop(lambda i, h: i < 3, lambda i, h: (i + 1, tf.tanh(h + weights["b0"])), [0, x])[1]

    def inner():
        return v1.while_loop(lambda i, h: i < 2, lambda i, h: (i + 1, h * 0.9), [0, x])[1]

    return v1.cond(tf.reduce_sum(x) > 0, inner, lambda: x + tf.reduce_sum(weights["b0"]))


class Training:
    """A small regression in the default graph: train, loss, and what a session has to run first."""

    def __init__(
        self,
        resource=True,
        middle=None,
        optimizer=v1.train.AdamOptimizer,
        epochs=None,
        feed=False,
        prepare=lambda data: data.batch(8, drop_remainder=True),
    ):
        data = prepare(tf.data.Dataset.from_tensor_slices((X, Y)).shuffle(96, seed=3).repeat(epochs))
        self.iterator = v1.data.make_initializable_iterator(data)
        x, y = self.iterator.get_next()
        self.rate = v1.placeholder(tf.float32, [], "rate") if feed else tf.constant(0.01, name="rate")
        weights = {n: v1.get_variable(n, initializer=v, use_resource=resource) for n, v in WEIGHTS.items()}
        h = tf.nn.relu(tf.matmul(x, weights["w0"]) + weights["b0"])
        h = middle(h, weights) if middle else h
        self.loss = tf.reduce_mean(tf.square(tf.matmul(h, weights["w1"]) - y))
        self.step = v1.train.get_or_create_global_step()
        self.train = optimizer(self.rate).minimize(self.loss, global_step=self.step)

    def init(self, sess):
        sess.run([v1.global_variables_initializer(), self.iterator.initializer])

    def state(self, sess):
        return sess.run({v.op.name: v for v in v1.global_variables()})


def same(got, expected):
    assert sorted(got) == sorted(expected)
    for name in got:
        np.testing.assert_array_equal(got[name], expected[name], err_msg=name)


def run(iterations, runs, **kwargs):
    """Trains runs times iterations steps; returns the state and the loss of the last step of each run."""
    with tf.Graph().as_default():
        training = Training(**kwargs)
        config = npu_shim.session_config(iterations_per_loop=iterations)
        with v1.Session(config=config) as sess:
            op = util.set_iteration_per_loop(sess, training.train, iterations)
            training.init(sess)
            losses = [sess.run([op, training.loss])[1] for _ in range(runs)]
            return training.state(sess), losses


@pytest.mark.parametrize(
    "v2, resource", [(False, False), (False, True), (True, True)], ids=["v1 refs", "v1 resources", "v2 resources"]
)
@pytest.mark.parametrize("middle", [None, through_loops], ids=["straight", "control flow"])
@pytest.mark.parametrize(
    "optimizer",
    [
        v1.train.AdamOptimizer,
        pytest.param(lambda rate: v1.train.MomentumOptimizer(rate, 0.9), marks=pytest.mark.nightly),
    ],
    ids=["adam", "momentum"],
)
def test_a_session_trains_the_same_steps(v2, resource, middle, optimizer):
    with control_flow_v2(v2):
        expected, losses = run(1, 60, resource=resource, middle=middle, optimizer=optimizer)
        got, last = run(20, 3, resource=resource, middle=middle, optimizer=optimizer)
    same(got, expected)
    assert last == losses[19::20]


def test_fetches_without_the_op_make_no_step():
    with tf.Graph().as_default(), v1.Session(config=npu_shim.session_config(iterations_per_loop=5)) as sess:
        training = Training()
        op = util.set_iteration_per_loop(sess, training.train, 5)
        training.init(sess)
        sess.run(training.loss)
        assert sess.run(training.step) == 0
        sess.run({"a": [op]})
        sess.run("IterationOp")
        sess.make_callable(op)()
        assert sess.run(training.step) == 15


@pytest.mark.parametrize("feed", [True, False], ids=["a placeholder", "a constant in the loop"])
def test_a_fed_value_is_used_in_all_steps(feed):
    states = []
    for n in (1, 10):
        with tf.Graph().as_default(), v1.Session(config=npu_shim.session_config(iterations_per_loop=n)) as sess:
            training = Training(feed=feed, optimizer=v1.train.GradientDescentOptimizer)
            op = util.set_iteration_per_loop(sess, training.train, n)
            training.init(sess)
            call = sess.make_callable(op, [training.rate])
            for rate in (0.1, 0.02):
                for _ in range(10 // n):
                    sess.run(op, {training.rate: rate})
                    call(rate)
            states.append(training.state(sess))
    same(states[1], states[0])
    assert states[0]["global_step"] == 40


def test_the_end_of_the_input_loses_and_repeats_no_step():
    with tf.Graph().as_default(), v1.Session(config=npu_shim.session_config(iterations_per_loop=10)) as sess:
        training = Training(epochs=3)  # 36 batches
        op = util.set_iteration_per_loop(sess, training.train, 10)
        training.init(sess)
        runs = 0
        with pytest.raises(tf.errors.OutOfRangeError):
            while True:
                sess.run(op)
                runs += 1
        got = training.state(sess)
    assert runs == 3 and got["global_step"] == 36
    same(got, run(1, 36)[0])


def test_a_changing_number_of_rows_in_a_monitored_session():
    with tf.Graph().as_default():
        training = Training()
        v1.add_to_collection(v1.GraphKeys.TABLE_INITIALIZERS, training.iterator.initializer)
        loop = util.IterationPerLoop()
        op = loop.create_iteration_per_loop_var(training.train)
        with v1.train.MonitoredTrainingSession() as sess:
            for n in (10, 1, 4):
                loop.load_iteration_per_loop_var(sess, n)
                sess.run(op)
            got = {v.op.name: sess.run(v) for v in v1.global_variables()}
    same(got, run(1, 15)[0])


def test_set_iterations_hook_drives_the_op_named_iteration_op():
    seen = []

    class Seen(tf_api.SessionRunHook):
        def before_run(self, run_context):
            return v1.train.SessionRunArgs("loss_after:0")

        def after_run(self, run_context, run_values):
            seen.append(run_values.results)

    with tf.Graph().as_default():
        training = Training()
        v1.add_to_collection(v1.GraphKeys.TABLE_INITIALIZERS, training.iterator.initializer)
        tf.identity(training.loss, name="loss_after")
        op = tf.group(training.train, name="IterationOp")
        hooks = [npu.SetIterationsVarHook(20), Seen(), v1.train.StopAtStepHook(60)]
        with v1.train.MonitoredTrainingSession(hooks=hooks) as sess:
            while not sess.should_stop():
                _, loss = sess.run([op, training.loss])
                assert loss == seen[-1]
    assert seen == run(1, 60)[1][19::20]


def test_the_hook_reports_what_is_missing(log):
    with tf.Graph().as_default():
        step = v1.train.get_or_create_global_step()
        with v1.train.SingularMonitoredSession(hooks=[npu.SetIterationsVarHook(10)]) as sess:
            sess.run(step)
    assert any("SetIterationsVarHook(10) finds no op named IterationOp" in m for m in log())
    with tf.Graph().as_default():
        training = Training(feed=True)
        op = tf.group(training.train, name="IterationOp")
        v1.add_to_collection(v1.GraphKeys.TABLE_INITIALIZERS, training.iterator.initializer)
        with v1.train.SingularMonitoredSession(hooks=[npu.SetIterationsVarHook(10)]) as sess:
            with pytest.raises(
                ValueError, match="reads rate, which this run does not feed. Read the input from a tf.data"
            ):
                sess.run(op)
            sess.run(op, {training.rate: 0.1})
            assert sess.run(training.step) == 10


def test_the_session_option_must_agree(log):
    with tf.Graph().as_default():
        op = tf.no_op()
        with v1.Session(config=npu_shim.session_config(iterations_per_loop=5)) as sess:
            with pytest.raises(
                ValueError,
                match="iterations_per_loop=10 contradicts the session config, which has iterations_per_loop=5",
            ):
                util.set_iteration_per_loop(sess, op, 10)
        with v1.Session() as sess:
            util.set_iteration_per_loop(sess, op, 10)
    assert any("iterations_per_loop=10 is missing from the session config" in m for m in log())


def test_tables_random_ops_and_python_functions_inside_the_loop():
    calls = []
    with tf.Graph().as_default(), v1.Session(config=npu_shim.session_config(iterations_per_loop=8)) as sess:
        table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(["a"], [3.0]), 0.0)
        total = v1.get_variable("total", initializer=0.0)
        drawn = v1.random_uniform([1000])
        one = v1.py_func(lambda: calls.append(1) or np.float32(1), [], tf.float32)
        added = total.assign_add(table.lookup(tf.constant("a")) + one + tf.reduce_mean(drawn))
        op = util.set_iteration_per_loop(sess, added.op, 8)
        sess.run([v1.global_variables_initializer(), v1.tables_initializer()])
        sess.run(op)
        assert len(calls) == 8
        assert sess.run(total) == pytest.approx(8 * 4.5, abs=0.5)


def batched(data):
    return data.batch(8, drop_remainder=True)


def mapped(data):
    return batched(data).map(lambda x, y: (x + 0, y), num_parallel_calls=2)


def through_python(h, weights):
    return tf.ensure_shape(v1.py_func(lambda a: a, [h], tf.float32), [8, 8])


LIGHT = {
    "a small step": (True, {}),
    "that reads a prefetched map": (True, {"prepare": lambda data: mapped(data).prefetch(2)}),
    "whose map has the threads of the step": (False, {"prepare": mapped}),
    "of a size that nobody knows": (False, {"prepare": lambda data: data.batch(8)}),
    "that calls Python": (False, {"middle": through_python, "optimizer": v1.train.GradientDescentOptimizer}),
    "with a large tensor": (False, {"middle": lambda h, weights: h + tf.reduce_mean(v1.random_normal([1000, 300]))}),
}


@pytest.mark.parametrize("case", LIGHT, ids=lambda name: name.replace(" ", "-"))
def test_steps_that_run_in_one_thread(case, monkeypatch):
    light, given = LIGHT[case]
    with tf.Graph().as_default():
        train = Training(**given).train
        assert StepLoop(train).in_one_thread is light
        monkeypatch.setattr(single_thread, "world_size", lambda: 2)
        assert not StepLoop(train).in_one_thread


def threads():
    get, _ = tf_threads._parallelism_getter_and_setter()
    return get()


def test_a_small_step_runs_in_the_callers_thread_and_input_has_its_own():
    seen = []
    before = threads()
    with tf.Graph().as_default(), v1.Session(config=npu_shim.session_config(iterations_per_loop=5)) as sess:
        training = Training()
        alone = sess.run

        def recorded(fetches, feed_dict=None, options=None, run_metadata=None):
            name = getattr(fetches, "name", "")
            if name == "IterationOp" or name.startswith("npu_shim_loop"):
                seen.append((name == "IterationOp", list((feed_dict or {}).values()), options, threads()))
            return alone(fetches, feed_dict, options, run_metadata)

        sess.run = recorded
        op = util.set_iteration_per_loop(sess, training.train, 5)
        training.init(sess)
        for _ in range(2):
            sess.run(op)
        assert sess.run(training.step) == 10
        sess.run(op)
        got = training.state(sess)
    single, one = (True, [], None, before), single_thread.CALLING_THREAD
    first, again = [single, (False, [3], one, 1), single], [(False, [], one, 1), single]
    assert seen == first + again + first
    assert threads() == before
    same(got, run(1, 15)[0])


def test_a_loop_needs_no_private_symbol(monkeypatch):
    monkeypatch.setattr(tf_threads, "_parallelism_getter_and_setter", lambda: None)
    same(run(10, 3)[0], run(1, 30)[0])
