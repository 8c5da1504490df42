"""The gradients and the memory of graphs that TensorFlow builds."""

from __future__ import annotations

from typing import Any, Callable, Sequence

import pytest

from npu_shim._tensorflow.tf_api import tf, v1
from npu_shim.rehearsal.assess.flat import Flat, flatten
from npu_shim.rehearsal.assess.inventory import variables_summary
from npu_shim.rehearsal.predict import gradients, memory_of_step, other_batches
from npu_shim.rehearsal.predict.prediction import PredictedMemory

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


@pytest.mark.parametrize("make", [step[0] for step in STEPS])
def test_shapes_follow_the_batch(make: Callable[[], Flat]) -> None:
    flat = make()
    assert other_batches.batch_of_step(flat.nodes) == BATCH
    same = other_batches.flat_at_batch(flat, BATCH, BATCH)
    assert [node.shapes for node in same.nodes] == [node.shapes for node in flat.nodes]
    doubled = other_batches.flat_at_batch(flat, BATCH, 2 * BATCH)
    products = {node.shapes[0] for node in doubled.nodes if node.op == "MatMul"}
    assert products >= {(2 * BATCH, 32), (40, 32)} and (BATCH, 32) not in products
    assert other_batches.batch_of_step(doubled.nodes) == 2 * BATCH
    assert variables_summary(doubled.nodes) == variables_summary(flat.nodes)


def test_a_batch_that_is_written_into_the_graph_is_scaled() -> None:
    graph = tf.Graph()
    with graph.as_default():
        images = v1.placeholder(tf.float32, [BATCH, 6], name="images")
        state = tf.concat([images, tf.zeros([BATCH, 4])], 1)
        loss = tf.reduce_sum(tf.matmul(state, v1.get_variable("kernel", [10, BATCH])))
        train = v1.train.GradientDescentOptimizer(0.1).minimize(loss)
    flat = flatten(graph, [train], {"images:0": (BATCH, 6)})
    larger = other_batches.flat_at_batch(flat, BATCH, 3 * BATCH).nodes
    assert [node.shapes for node in larger if node.op == "ConcatV2"] == [[(3 * BATCH, 10)]]
    assert (10, BATCH) in {node.shapes[0] for node in larger if node.op == "MatMul"}, "the gradient of the kernel"


@pytest.mark.parametrize("make", [step[0] for step in STEPS])
def test_memory_is_that_of_the_variables_and_of_the_batch(make: Callable[[], Flat]) -> None:
    flat = make()
    plain = [False] * len(flat.nodes)

    def memory_of(card: int, half: Sequence[bool] = plain, ranks: int = 1) -> PredictedMemory:
        return memory_of_step.memory_of_step(flat, half, {}, card, ranks)

    known = memory_of(2**30)
    assert known.parameters + known.optimizer == variables_summary(flat.nodes).bytes
    slots = 2 * known.parameters + 8 if make is dense_step else 0  # Adam has two, and two powers
    assert (known.optimizer, known.batch, known.why) == (slots, BATCH, "")
    assert memory_of(2**30, [True] * len(flat.nodes)).activations < known.activations
    assert memory_of(2**30, ranks=8).workspace - known.workspace == 400 * 2**20
    batches = [memory_of(card).largest_batch or 0 for card in (2**17, 2**20, 2**24, 2**30)]
    assert batches == sorted(batches) and batches[0] < batches[-1]
    fits = other_batches.flat_at_batch(flat, BATCH, batches[-1])
    peak = memory_of_step.memory_of_step(fits, plain, {}, 0)
    needed = peak.parameters + peak.optimizer + peak.activations + peak.workspace
    assert 0.9 * 2**30 < needed <= 2**30
    assert (peak.largest_batch, peak.why) == (None, "the memory of the card is not known")


def test_an_activation_may_have_the_shape_of_a_variable_with_as_many_rows_as_the_batch() -> None:
    graph = tf.Graph()
    with graph.as_default():
        rows = v1.placeholder(tf.float32, [40, 40])
        loss = tf.reduce_mean(tf.nn.relu(tf.matmul(rows, v1.get_variable("kernel", [40, 40]))))
        train = v1.train.GradientDescentOptimizer(0.1).minimize(loss)
    flat = flatten(graph, [train], {})
    known = memory_of_step.memory_of_step(flat, [False] * len(flat.nodes), {}, 2**30)
    assert (known.batch, known.largest_batch) == (40, None)
    assert known.why == "a variable has 40 rows, too. Predict the step with another batch"


def test_a_step_without_inputs_has_no_batch() -> None:
    graph = tf.Graph()
    with graph.as_default():
        loss = v1.get_variable("loss", []) ** 2
        train = v1.train.GradientDescentOptimizer(0.1).minimize(loss)
    flat = flatten(graph, [train], {})
    known = memory_of_step.memory_of_step(flat, [False] * len(flat.nodes), {}, 2**30)
    assert (known.batch, known.largest_batch, known.why) == (None, None, "no input of the step has a batch")


def test_a_step_whose_largest_tensors_are_of_no_example_has_no_largest_batch() -> None:
    graph = tf.Graph()
    with graph.as_default():
        rows = v1.placeholder(tf.float32, [4], name="rows")
        kernel = v1.get_variable("kernel", [512, 512])
        total = tf.reduce_sum(rows)
        with tf.control_dependencies([total]):  # then the rows are free
            product = tf.matmul(kernel, tf.tanh(kernel))
        loss = tf.reduce_sum(product) + total * v1.get_variable("scale", [])
        train = v1.train.GradientDescentOptimizer(0.1).minimize(loss)
    flat = flatten(graph, [train], {"rows:0": (4,)})
    known = memory_of_step.memory_of_step(flat, [False] * len(flat.nodes), {}, 2**30)
    assert (known.batch, known.largest_batch) == (4, None)
    assert known.why == "the memory of the step does not follow the batch"
