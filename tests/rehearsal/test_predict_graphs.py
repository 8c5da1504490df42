"""The gradients and the memory of graphs that TensorFlow builds."""

from __future__ import annotations

from typing import Any, Callable

import pytest

from npu_shim._tensorflow.tf_api import tf, v1
from npu_shim.rehearsal.assess.flat import Flat, flatten
from npu_shim.rehearsal.predict import gradients

BATCH = 16


def dense_step() -> Flat:
    """Return a step of a session: an embedding, two dense layers and Adam."""
    graph = tf.Graph()
    with graph.as_default():
        words = v1.placeholder(tf.int32, [None, 5], name="words")
        labels = v1.placeholder(tf.int32, [None], name="labels")
        table = v1.get_variable("table", [100, 8])
        hidden = tf.reshape(tf.nn.embedding_lookup(table, words), [-1, 40])
        first, second = v1.get_variable("first", [40, 32]), v1.get_variable("second", [32, 10])
        logits = tf.matmul(tf.nn.relu(tf.matmul(hidden, first)), second)
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
        train = v1.train.AdamOptimizer().minimize(loss)
    return flatten(graph, [train, loss.op], {"words:0": (BATCH, 5), "labels:0": (BATCH,)})


def tape_step() -> Flat:
    """Return a step of a tf.function with a tape and an update by assignment."""
    kernel = tf.Variable(tf.ones([40, 32]))

    @tf.function
    def step(images: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.nn.relu(tf.matmul(images, kernel)))
        kernel.assign_sub(0.1 * tape.gradient(loss, kernel))
        return loss

    graph = step.get_concrete_function(tf.TensorSpec([BATCH, 40])).graph
    targets = [output.op for output in graph.outputs] + list(graph.control_outputs)
    return flatten(graph, targets, {graph.inputs[0].name: (BATCH, 40)})


# Each with the bytes of its gradients, and of those that are rows.
STEPS: list[Any] = [(dense_step, 4 * (40 * 32 + 320), [4 * BATCH * 5 * 8])]
STEPS += [(tape_step, 4 * 40 * 32, [])] * (tf.__version__ >= "2")


@pytest.mark.parametrize("make, dense, rows", STEPS)
def test_the_gradients_of_a_step(make: Callable[[], Flat], dense: int, rows: list[int]) -> None:
    nodes = make().nodes
    messages = gradients.messages_of_step(nodes, [float(place) for place in range(len(nodes))])
    assert sum(each.size for each in messages if not each.gathers) == dense
    assert [each.size for each in messages if each.gathers] == rows
    assert all(each.ready > 0 for each in messages) and not gradients.collectives_of_step(nodes, [0.0] * len(nodes))
