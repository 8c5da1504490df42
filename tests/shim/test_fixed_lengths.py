"""fixed_lengths: padded batches of one length get its static shape, and others are an error."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from npu_shim.data import fixed_lengths

pytestmark = pytest.mark.twice


def padded(lengths):
    data = tf.data.Dataset.from_generator(
        lambda: ({"x": np.ones([n], np.float32), "y": (n, np.ones([n, 2]))} for n in lengths),
        {"x": tf.float32, "y": (tf.int32, tf.float64)},
        {"x": [None], "y": ([], [None, 2])},
    )
    shapes = {"x": [None], "y": ([], tf.TensorShape([None, 2]))}
    return fixed_lengths(data.padded_batch(2, shapes), {"x": [5], "y": ([], [5, -1])})


def read(data):
    """Return the batches."""
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        value = tf.compat.v1.data.make_one_shot_iterator(data()).get_next()
        batches = []
        with pytest.raises(tf.errors.OutOfRangeError):
            while True:
                batches.append(session.run(value))
        return batches


def test_batches_stay_and_their_shape_is_static() -> None:
    assert tf.compat.v1.data.get_output_shapes(padded([5]))["x"].as_list() == [None, 5]
    assert tf.compat.v1.data.get_output_shapes(padded([5]))["y"][1].as_list() == [None, 5, 2]
    batches = read(lambda: padded([2, 5, 5]))
    assert [batch["x"].sum() for batch in batches] == [7, 5] and batches[0]["y"][1].shape == (2, 5, 2)


@pytest.mark.parametrize("lengths", [[2, 5, 3, 4], [5, 5, 5, 6], [1]])
def test_another_length_is_an_error_with_its_line(lengths) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError) as error:
        read(lambda: padded(lengths))
    assert "test_fixed_lengths.py:21: all batches that were seen had the lengths" in str(error.value)
    assert "observe again and convert again" in str(error.value)


def test_other_objects_are_refused() -> None:
    with pytest.raises(TypeError, match="must be a tf.data.Dataset"):
        fixed_lengths([1], [1])
