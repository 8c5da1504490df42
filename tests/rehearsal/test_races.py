"""Reads of variables that no op orders with an update in the same run: found, ordered, and compared in that order."""

from __future__ import annotations

import time
import weakref
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from npu_shim.rehearsal.recording.races import Races, order_races
from npu_shim.rehearsal.recording.settings import Race
from tests.marks import OF_VERSION_1
from tests.rehearsal.conftest import Verify

v1 = tf.compat.v1

# In the shape of BERT: the rate follows from the global step, which the script assigns itself.
TRAINING = """
import threading

import numpy as np
import tensorflow as tf

v1 = tf.compat.v1
v1.disable_eager_execution()
is_done = {"read": threading.Event(), "write": threading.Event()}


def call(function, *arguments):
    return v1.py_func(lambda: [function(*arguments), np.int32(0)][1], [], tf.int32)


def wait(name):
    return call(is_done[name].wait, 0.5)


def train_op(x):
    weight = v1.get_variable("weight", [4, 1])
    loss = tf.reduce_mean(tf.square(tf.matmul(x, weight) - x[:, :1]))
    step = v1.train.get_or_create_global_step()
    with tf.control_dependencies([wait("write")] if LATE == "read" else []):
        done = tf.cast(tf.identity(step), tf.float32)
        rate = tf.cond(done < 3.0, lambda: 0.1 * done / 3.0, lambda: 0.1 - 0.01 * done)
    optimizer = v1.train.GradientDescentOptimizer(rate)
    train = optimizer.apply_gradients(optimizer.compute_gradients(loss))
    with tf.control_dependencies([rate]):
        after_read = call(is_done["read"].set)
    with tf.control_dependencies([wait("read")] if LATE == "write" else []):
        following = step + 1
    assigned = step.assign(following)
    with tf.control_dependencies([assigned]):
        after_write = call(is_done["write"].set)
    return tf.group(train, after_read, after_write)


x = np.random.RandomState(0).randn(8, 4).astype("f4")
train = train_op(tf.constant(x))
config = v1.ConfigProto(inter_op_parallelism_threads=8)
with v1.train.MonitoredTrainingSession(config=config) as session:
    for _ in range(4):
        for event in is_done.values():
            event.clear()
        session.run(train)
"""


def training(late: str) -> str:
    """Return the script, with what waits half a second for the other: its read or its write."""
    return TRAINING.replace("LATE", repr(late))


def races_in(graph: tf.Graph, *runs: Any) -> list[Race]:
    """Return the races in runs of a graph."""
    noted: list[list[Race]] = [[]]
    races = Races(noted.append)
    for fetches in runs:
        races.look_for_races(graph, fetches)
    return noted[-1]


@pytest.mark.smoke
@pytest.mark.parametrize("is_resource", [False, True])
@pytest.mark.parametrize("is_ordered", [False, True])
def test_an_update_that_races_with_the_loss_of_another_one_is_found(is_resource: bool, is_ordered: bool) -> None:
    with tf.Graph().as_default() as graph:
        real, fake = (v1.get_variable(name, [2], use_resource=is_resource) for name in ("real", "fake"))
        optimizer = v1.train.GradientDescentOptimizer(0.1)
        x = v1.placeholder(tf.float32, [])
        loss = tf.reduce_sum(tf.square(real - fake))
        critic = optimizer.minimize(loss, var_list=[real])
        with tf.control_dependencies([critic] if is_ordered else []):
            other_loss = tf.reduce_sum(tf.square(x * real + fake))
        generator = optimizer.minimize(other_loss, var_list=[fake])
        with tf.control_dependencies([generator]):
            after = tf.identity(fake)
        assert races_in(graph, [critic, loss]) == []
        both = [critic, generator, after]
        found = races_in(graph, [critic, loss], both, both)
        assert [race.variable for race in found] == ([] if is_ordered else ["real", "fake"])
        # What needs the placeholder must not run with the critic alone; the read of a resource may.
        assert [bool(race.waits) for race in found] == ([] if is_ordered else [is_resource, True])
        assert all(race.waits for race in races_in(graph, both))


@pytest.mark.smoke
def test_hooks_that_read_the_global_step_do_not_race() -> None:
    with tf.Graph().as_default() as graph:
        step = v1.train.get_or_create_global_step()
        train = v1.train.GradientDescentOptimizer(0.1).minimize(v1.get_variable("weight", []) ** 2, step)
        hook = v1.train.StopAtStepHook(last_step=3)
        hook.begin()
        [read] = graph.get_collection("global_step_read_op_cache")
        assert races_in(graph, {"caller": train, object(): [read], None: "no name"}) == []
        assert races_in(graph, [train, tf.cast(step, tf.float32) * 2]) != []


def late_rate(step: Any, kind: str) -> Any:
    """Return a number that follows from a variable, read 50 ms after the run begins."""

    def wait() -> np.float32:
        time.sleep(0.05)
        return np.float32(0)

    in_another_shape = tf.reshape(step, [1])
    with tf.control_dependencies([v1.py_func(wait, [], tf.float32)]):
        now = v1.placeholder_with_default(1, []) + 0
        if kind == "branch":
            return v1.cond(now > 0, lambda: step * 2.0, lambda: step * 0.0) / 2.0
        if kind == "loop":
            return v1.while_loop(lambda i, total: i < 3, lambda i, total: (i + 1, total + step / 2.0), [now, 0.0])[1]
        return (in_another_shape if kind == "shape" else step) * tf.cast(now, tf.float32)


@pytest.mark.smoke
@pytest.mark.parametrize("is_resource", [False, True])
@pytest.mark.parametrize("kind", ["read", "shape", "branch", "loop", "update in a branch"])
def test_reads_are_ordered_before_an_update(is_resource: bool, kind: str) -> None:
    v1.disable_control_flow_v2()  # branches and loops are then many ops
    races: list[Race] = []
    try:
        for ordered in (False, True):
            with tf.Graph().as_default() as graph:
                step = v1.get_variable("step", [], initializer=v1.zeros_initializer(), use_resource=is_resource)
                rate = late_rate(step, kind)
                update = step.assign_add
                if kind == "update in a branch":
                    done = v1.cond(v1.placeholder_with_default(True, []), lambda: tf.group(update(1.0)), tf.no_op)
                else:
                    done = tf.group(update(1.0))
                known: Any = weakref.WeakKeyDictionary()
                with v1.Session() as session:
                    values = []
                    for fetches in [v1.global_variables_initializer()] + 3 * [(rate, done)]:
                        order_races(graph, races, known)
                        values.append(session.run(fetches))
                    races = races_in(graph, [rate, done])
                if ordered:
                    assert [float(np.squeeze(value[0])) for value in values[1:]] == [0.0, 1.0, 2.0]
                    assert races == []
                else:
                    assert [race.variable for race in races] == ["step"] and races[0].waits
    finally:
        if tf.__version__ >= "2":
            v1.enable_control_flow_v2()


@pytest.mark.smoke
def test_an_op_that_waits_for_the_update_is_not_ordered_before_it() -> None:
    with tf.Graph().as_default() as graph:
        step = v1.get_variable("step", [], initializer=v1.zeros_initializer())
        done = v1.assign_add(step, 1.0)
        with tf.control_dependencies([done]):
            after = tf.multiply(step, 2.0, name="after")
        order_races(
            graph, [Race("step", done.op.name, "", "after", "", ["after", "no op"])], weakref.WeakKeyDictionary()
        )
        with v1.Session() as session:
            session.run(v1.global_variables_initializer())
            assert session.run(after) == 2.0


class TestScripts:
    pytestmark = OF_VERSION_1

    @staticmethod
    @pytest.mark.smoke
    def test_a_race_that_turns_out_otherwise_is_no_difference(verify: Verify) -> None:
        found = verify(training("write"), training("read"))
        assert found["verdict"] == "agree", found["problems"]
        [sentence] = found["forced_order"]
        read = "Cast" if tf.__version__ < "2" else "Identity/ReadVariableOp"  # of a resource, which is another op
        assert sentence.startswith(f"{read} at original.py:25 reads global_step, ")
        assert " at original.py:33 writes it in the same run, and no op orders the two. " in sentence
        assert sentence.endswith(" Order them with tf.control_dependencies.")

    @staticmethod
    @pytest.mark.parametrize("old, new", [("0.1 * done", "0.11 * done"), ("tf.cond(done < 3.0", "tf.cond(done < 0.0")])
    def test_another_rate_beside_a_race_is_a_difference(old: str, new: str, verify: Verify) -> None:
        found = verify(training("write"), training("read").replace(old, new))
        assert (found["verdict"], found["first_departure"]["kind"]) == ("differ", "learning rate")
        assert found["first_departure"]["step"] == 2 - ("cond" in old) and found["forced_order"]

    @staticmethod
    def test_a_race_that_only_the_migrated_script_has_is_not_ordered(verify: Verify) -> None:
        ordered = training("write").replace('[wait("read")]', "[train]")
        found = verify(ordered, training("read"))
        assert (found["verdict"], found["forced_order"]) == ("differ", [])
