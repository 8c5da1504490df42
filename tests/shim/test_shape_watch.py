"""Shapes that change from run to run are reported once, with the line of the definition, and counted."""

from __future__ import annotations

import inspect
import os

import numpy as np
import pytest
import tensorflow as tf

import npu_shim
from npu_shim.data import watch_shapes

v1 = tf.compat.v1


@pytest.fixture
def watch():
    yield watch_shapes(summary_at_exit=False)
    npu_shim.uninstall()


def line_of(text):
    """Return the line of a text in this file."""
    with open(__file__, encoding="utf-8") as file:
        return f"{os.path.basename(__file__)}:{[text in one for one in file].index(True) + 1}"


def test_fed_shapes(watch, log):
    with tf.Graph().as_default(), v1.Session() as sess:
        x = v1.placeholder(tf.float32, [None, 3], "x")  # the line that is reported
        rate = v1.placeholder(tf.float32, [], "rate")
        y = tf.reduce_sum(x) * rate
        for rows in (4, 4, 2, 4, 1):
            assert sess.run(y, {x: np.ones([rows, 3]), rate: 2.0}) == 6 * rows
        sess.run(y, {"x:0": [[1, 2, 3]], rate: 1.0})
    ((told, counts),) = watch.changes()
    assert told == "the feed of x" and counts == {((4, 3),): 3, ((2, 3),): 1, ((1, 3),): 2}
    (warned,) = [m for m in log() if "recompiles" in m]
    assert line_of("# the line that is reported") in warned
    assert "the shape of the feed of x changed from [4, 3] to [2, 3]" in warned
    assert "x: 3 shapes: [4, 3] 3 times, [1, 3] 2 times, [2, 3] 1 time" in watch.summary()
    assert "The NPU would compile 3 graphs" in watch.summary()


@pytest.mark.parametrize("version", [1, 2])
def test_loops_of_version_1_are_reported_beside_dynamic_shapes(watch, log, version):
    (v1.disable_control_flow_v2 if version == 1 else v1.enable_control_flow_v2)()
    try:
        with tf.Graph().as_default(), v1.Session() as sess:
            x = v1.placeholder(tf.float32, [None, 3], "x")
            total = tf.while_loop(lambda i, _: i < 2, lambda i, s: (i + 1, s + tf.reduce_sum(x)), [0, 0.0])[1]
            for rows in (4, 2):
                sess.run(total, {x: np.ones([rows, 3])})
    finally:
        (v1.disable_control_flow_v2 if tf.__version__ < "2" else v1.enable_control_flow_v2)()
    (warned,) = [m for m in log() if "recompiles" in m]
    assert ("call tf.enable_control_flow_v2()" in warned) == (version == 1)


def test_a_sparse_placeholder_has_the_shape_of_its_values(watch):
    with tf.Graph().as_default(), v1.Session() as sess:
        x = v1.sparse_placeholder(tf.float32, [3, 3], "x")
        total = tf.sparse.reduce_sum(x)
        for places in ([[0, 1]], [[0, 1], [2, 2]]):
            assert sess.run(total, {x: (places, [1.0] * len(places), (3, 3))}) == len(places)
    ((told, counts),) = watch.changes()
    assert told == "the feed of x/indices, x/values" and counts == {((1, 2), (1,)): 1, ((2, 2), (2,)): 1}


def test_a_second_call_returns_the_watch_that_runs(watch):
    assert watch_shapes() is watch
    npu_shim.uninstall()
    after = watch_shapes(summary_at_exit=False)
    assert after is not watch and watch_shapes() is after


@pytest.mark.parametrize("drop", [True, False])
def test_iterators(watch, log, drop):
    data = np.arange(10, dtype=np.float32)
    with tf.Graph().as_default(), v1.Session() as sess:
        dataset = tf.data.Dataset.from_tensor_slices({"a": data, "b": data}).batch(4, drop_remainder=drop)
        element = v1.data.make_one_shot_iterator(dataset).get_next()
        total, untouched = tf.reduce_sum(element["a"]), tf.constant(1)
        got = []
        with pytest.raises(tf.errors.OutOfRangeError):
            while True:
                assert sess.run(untouched) == 1
                got.append(sess.run({"total": total, "rest": [element["b"]]}))
    assert [float(one["total"]) for one in got] == ([6, 22] if drop else [6, 22, 17])
    assert [len(one["rest"][0]) for one in got] == ([4, 4] if drop else [4, 4, 2])
    if drop:
        assert watch.changes() == [] and watch.summary() == ""
        assert not [text for text in log() if "recompiles" in text]
    else:
        ((told, counts),) = watch.changes()
        assert told.startswith("the iterator ") and counts == {((4,), (4,)): 2, ((2,), (2,)): 1}


def test_it_works_with_monitored_sessions_and_changes_no_signature(watch):
    assert list(inspect.signature(v1.Session.run).parameters) == [
        "self",
        "fetches",
        "feed_dict",
        "options",
        "run_metadata",
    ]
    with tf.Graph().as_default():
        x = v1.placeholder(tf.float32, [None], "x")
        y = tf.reduce_sum(x)
        with v1.train.MonitoredSession() as sess:
            assert [sess.run(y, feed_dict={x: [1.0] * n}) for n in (1, 2)] == [1, 2]
    assert [told for told, _ in watch.changes()] == ["the feed of x"]


def test_uninstall_ends_it(watch):
    npu_shim.uninstall()
    with tf.Graph().as_default(), v1.Session() as sess:
        x = v1.placeholder(tf.float32, [None], "x")
        for n in (1, 2):
            sess.run(x, {x: [1.0] * n})
    assert watch.changes() == []


@pytest.mark.once
def test_the_summary_comes_at_the_end_of_the_process(tmp_path, python):
    (tmp_path / "train.py").write_text("""
import tensorflow.compat.v1 as tf
from npu_shim.data import watch_shapes
watch_shapes()
with tf.Graph().as_default(), tf.Session() as sess:
    x = tf.placeholder(tf.float32, [None], "x")
    for n in (1, 2, 3):
        sess.run(x, {x: [0.0] * n})
print("the end")
""")
    done = python(tmp_path, "train.py")
    before, told = done.stdout.split("the end\n")
    assert "the feed of x: 3 shapes: [1] 1 time, [2] 1 time, [3] 1 time (" in told and "train.py:6)\n" in told
    assert "3 shapes" not in before
