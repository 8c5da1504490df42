"""Functions of arrays as ops: the arrays are TensorFlow's memory, in both directions."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest
import tensorflow as tf

from npu_shim._tensorflow.tf_numpy_function import add_array_function_op, add_background_function_op
from npu_shim.distributed.collectives.buffer_pool import BufferPool
from tests.control_flow import control_flow_v2

v1 = tf.compat.v1
TYPES = [np.float16, np.float32, np.float64, np.int8, np.int32, np.int64, np.uint8, np.uint16, np.bool_]


@pytest.mark.parametrize("shape", [(), (0, 2), (3, 5)], ids=str)
def test_arrays_of_every_type_are_passed_and_returned(shape):
    given = [np.ones(shape, t) for t in TYPES]
    with tf.Graph().as_default(), v1.Session() as sess:
        made = add_array_function_op(
            lambda *arrays: [np.asarray(a) for a in arrays][::-1],
            [tf.constant(a) for a in given],
            [tf.as_dtype(t) for t in TYPES[::-1]],
        )
        got = sess.run(made)
        nothing = add_array_function_op(lambda: [], [], [])
        assert sess.run(nothing) in (None, [])
    for value, expected in zip(got, given[::-1]):
        assert value.dtype == expected.dtype
        np.testing.assert_array_equal(value, expected)


def test_nothing_is_copied_and_memory_is_freed():
    """Arguments are read where the variable has them; results go back into Memory's one block."""
    pool, seen, made = BufferPool(), set(), set()

    def function(array):
        seen.add(array.ctypes.data)
        (result,) = pool.allocate([(array.size, array.dtype)])
        made.add(result.ctypes.data)
        result[...] = array + 1
        return [result]

    with tf.Graph().as_default(), v1.Session() as sess:
        variable = v1.Variable(tf.zeros([1 << 20]), use_resource=True)
        sess.run(variable.initializer)
        total = tf.reduce_sum(add_array_function_op(function, [variable.read_value()], [tf.float32])[0])
        assert [sess.run(total) for _ in range(5)] == [float(1 << 20)] * 5
    assert len(seen) == 1 and len(made) <= 2


def test_an_error_keeps_its_text_and_a_function_is_freed_with_its_graph():
    class Function:
        def __call__(self, array):
            raise ValueError(f"no good: {array.tolist()}")

    function = Function()
    with tf.Graph().as_default() as graph:
        made = add_array_function_op(function, [tf.constant([3])], [tf.int32])
        with v1.Session() as sess, pytest.raises(tf.errors.InvalidArgumentError, match=r"no good: \[3\]"):
            sess.run(made)
    gone = weakref.ref(function)
    del function, made, graph, sess
    gc.collect()
    assert gone() is None


def test_inside_functions_and_branches_and_loops():
    def twice(x):
        return add_array_function_op(lambda array: [array + array], [x], [tf.float32])[0]

    for on in (False, True):
        with control_flow_v2(on), tf.Graph().as_default(), v1.Session() as sess:
            looped = tf.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, tf.ensure_shape(twice(x), [])), [0, 1.0])[1]
            branch = tf.cond(looped > 7, lambda: twice(looped), lambda: looped)
            function = tf.function(lambda x: twice(x))
            gc.collect()
            assert sess.run([looped, branch, function(tf.constant(4.0))]) == [8.0, 16.0, 8.0]


def test_a_result_of_version_1_is_not_that_of_the_op_that_outlives_its_session():
    """DatasetToSingleElement of 1.15 crashes the process if the session is closed right after it."""
    with tf.Graph().as_default() as graph:
        add_background_function_op(lambda x: [x], [tf.zeros([2])], [tf.float32])
    types = {op.type for op in graph.get_operations()}
    assert ("DatasetToSingleElement" in types) == (not tf.__version__.startswith("1."))
