"""Training input has a static batch whatever an input_fn returns, and what is dropped is counted."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from npu_shim.data import enforce_static_batch
from npu_shim.npu_init import NPUEstimator, NPURunConfig

pytestmark = pytest.mark.twice

v1 = tf.compat.v1
X = np.arange(70, dtype=np.float32).reshape(70, 1)


def of_unknown_size(passes=1):
    return tf.data.Dataset.from_tensor_slices(X).filter(lambda x: x[0] < 65).repeat(passes).batch(16)


@pytest.mark.parametrize("passes", [1, 3])
def test_dropped_examples_are_counted_while_they_are_read(log, passes):
    with tf.Graph().as_default(), v1.Session() as sess:
        dataset = enforce_static_batch(of_unknown_size(passes).repeat(2))
        element = v1.data.make_one_shot_iterator(dataset).get_next()
        assert element.shape.as_list() == [16, 1]
        with pytest.raises(tf.errors.OutOfRangeError):
            while True:
                sess.run(element)
        for counts in v1.get_collection("npu_shim/dropped"):
            counts.report()
            counts.report()  # reports once
    left = 65 * passes % 16
    told = [m for m in log() if m.startswith("npu_shim: dropped")]
    assert told == [
        f"npu_shim: dropped {2 * left} examples in 2 partial batches of the training input (batch size 16)."
    ]


SHAPES = []


def model_fn(features, labels, mode):
    SHAPES.append((mode, features.shape.as_list()))
    w = v1.get_variable("w", [1, 1], initializer=v1.zeros_initializer())
    loss = tf.reduce_mean(tf.square(tf.matmul(features, w) - labels))
    train = v1.train.GradientDescentOptimizer(1e-5).minimize(loss, v1.train.get_or_create_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train)


def pairs(passes):
    return tf.data.Dataset.from_tensor_slices((X, X)).repeat(passes).batch(16)


def initializable():
    iterator = v1.data.make_initializable_iterator(pairs(2))
    v1.add_to_collection(v1.GraphKeys.TABLE_INITIALIZERS, iterator.initializer)
    return iterator.get_next()


INPUTS = {
    "a dataset": lambda: pairs(2),
    "tensors of a one-shot iterator": lambda: v1.data.make_one_shot_iterator(pairs(2)).get_next(),
    "tensors of an initializable iterator": initializable,
    "features and labels apart": lambda: tuple(v1.data.make_one_shot_iterator(pairs(2)).get_next()),
}


@pytest.mark.parametrize("name", INPUTS)
def test_every_kind_of_result_of_the_input_fn(has_estimator, tmp_path, log, name):
    if not has_estimator:
        with pytest.raises(RuntimeError, match="NPUEstimator needs tf.estimator"):
            NPUEstimator(model_fn)
        return
    del SHAPES[:]
    job = NPUEstimator(model_fn, str(tmp_path), NPURunConfig())
    job.train(INPUTS[name], max_steps=1000)
    assert SHAPES == [("train", [16, 1])] and job.get_variable_value("global_step") == 140 // 16
    assert [m for m in log() if "drops the same 12 of 140 examples per epoch" in m]
    job.evaluate(INPUTS[name])  # evaluation keeps every example
    assert SHAPES[1] == ("eval", [None, 1])


def test_the_count_is_logged_when_training_ends(has_estimator, tmp_path, log):
    if not has_estimator:
        return
    NPUEstimator(model_fn, str(tmp_path), NPURunConfig()).train(lambda: of_unknown_size().map(lambda x: (x, x)))
    assert [m for m in log() if "dropped 1 example in 1 partial batch of the training input" in m]
