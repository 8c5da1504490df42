"""The nodes of one step: branches that run, loops by their length, and bounds for sizes that only values decide."""

from __future__ import annotations

import collections
import contextlib
from typing import Any, Callable, Counter, Iterator

import numpy as np
import pytest

from npu_shim._tensorflow.op_types import LOOPS
from npu_shim._tensorflow.tf_api import tf, v1
from npu_shim.rehearsal.assess import flat, given_shapes, loops, run_sizes, step_nodes, work
from npu_shim.rehearsal.assess.step_nodes import StepNodes
from npu_shim.rehearsal.predict import other_batches

BATCH = 8
IS_2 = not tf.__version__.startswith("1.")
VERSIONS = pytest.mark.parametrize("version", [1, 2])


@contextlib.contextmanager
def control_flow(version: int) -> Iterator[None]:
    """Build loops and conditions of a version of TensorFlow."""
    before = v1.control_flow_v2_enabled()
    (v1.enable_control_flow_v2 if version == 2 else v1.disable_control_flow_v2)()
    try:
        yield
    finally:
        (v1.enable_control_flow_v2 if before else v1.disable_control_flow_v2)()


def weight(name: str, *shape: int) -> Any:
    """Return a variable."""
    return v1.get_variable(name, shape, use_resource=True)


def step_of(build: Callable[[Any], Any], version: int = 2, **values: Any) -> StepNodes:
    """Return the nodes of a training step on rows, with values that are fed."""
    with tf.Graph().as_default() as graph, control_flow(version):
        rows = v1.placeholder(tf.float32, [None, 64], name="rows")
        train = v1.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_mean(build(rows) ** 2))
    given = {f"{name}:0": np.shape(value) for name, value in values.items()}
    fed = given_shapes.fed_integers(
        [(graph.get_tensor_by_name(f"{name}:0"), np.array(values[name])) for name in values]
    )
    whole = flat.flatten(graph, [train], {"rows:0": (BATCH, 64), **given}, fed)
    trips = loops.loop_trip_counts(whole.nodes)
    return step_nodes.nodes_of_step(whole, [], trips, work.work_of_nodes(whole, trips))


def widths(step: StepNodes) -> Counter[Any]:
    """Return the number of products by the width of their results."""
    return collections.Counter(
        node.shapes[0][-1] for node in step.flat.nodes if node.op == "MatMul" and node.shapes[0][0] == BATCH
    )


def two_towers(predicate: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a network with a wide layer in one branch, and a narrow one in the other."""

    def build(rows: Any) -> Any:
        wide, narrow = weight("wide", 64, 48), weight("narrow", 64, 32)
        return tf.cond(
            predicate(rows),
            lambda: tf.reduce_sum(tf.matmul(tf.matmul(rows, wide), wide, transpose_b=True)),
            lambda: tf.reduce_sum(tf.matmul(rows, narrow)),
        )

    return build


@VERSIONS
@pytest.mark.parametrize("is_training", [True, False])
def test_the_branch_of_a_fed_predicate_runs_alone(version: int, is_training: bool) -> None:
    step = step_of(
        two_towers(lambda rows: v1.placeholder(tf.bool, [], name="is_training")), version, is_training=is_training
    )
    assert (48 in widths(step), 32 in widths(step)) == (is_training, not is_training)
    assert step.branches == []


@VERSIONS
def test_a_placeholder_with_a_default_decides_if_it_is_not_fed(version: int) -> None:
    def predicate(rows: Any) -> Any:
        return tf.logical_not(v1.placeholder_with_default(True, []))

    assert 48 not in widths(step_of(two_towers(predicate), version))


@VERSIONS
def test_a_step_has_the_batch_for_which_a_strategy_asks(version: int) -> None:
    def build(rows: Any) -> Any:
        wide, narrow = weight("wide", 64, 48), weight("narrow", 64, 32)
        batch = tf.raw_ops.OptionalFromValue(components=[rows])
        return tf.cond(
            tf.raw_ops.OptionalHasValue(optional=batch),
            lambda: tf.reduce_sum(tf.matmul(rows, narrow)),
            lambda: tf.reduce_sum(tf.matmul(tf.matmul(rows, wide), wide, transpose_b=True)),
        )

    step = step_of(build, version)
    assert 32 in widths(step) and 48 not in widths(step) and not step.branches


@VERSIONS
def test_of_a_condition_that_values_decide_the_dearer_branch_counts(version: int) -> None:
    step = step_of(two_towers(lambda rows: tf.reduce_sum(rows) > 0), version)
    assert 48 in widths(step) and 32 not in widths(step)
    assert [name.rpartition("/")[2].startswith(("cond", "Switch", "switch", "pred")) for name in step.branches] == [
        True
    ]


@VERSIONS
def test_batch_normalization_runs_in_the_mode_that_is_fed(version: int) -> None:
    def build(rows: Any) -> Any:
        images = tf.reshape(tf.matmul(rows, weight("w", 64, 64)), [-1, 4, 4, 4])
        is_training = v1.placeholder(tf.bool, [], name="is_training")
        scale, mean, variance = weight("scale", 4), weight("mean", 4), weight("variance", 4)
        return tf.cond(
            is_training,
            lambda: v1.nn.fused_batch_norm(images, scale, scale)[0],
            lambda: v1.nn.fused_batch_norm(images, scale, scale, mean, variance, is_training=False)[0],
        )

    def modes(**values: Any) -> list[bool]:
        nodes = step_of(build, version, **values).flat.nodes
        return [node.definition.attr["is_training"].b for node in nodes if node.op.startswith("FusedBatchNorm")]

    assert modes(is_training=True) == [True, True], "forward and gradient"
    assert modes(is_training=False) == [False, False]


def repeated(start: int, limit: Callable[[Any], Any], by: int = 1) -> Callable[[Any], Any]:
    """Return a network that applies a layer in a loop."""

    def build(rows: Any) -> Any:
        w = weight("w", 64, 64)
        most = limit(rows)
        return tf.while_loop(
            lambda i, y: i < most, lambda i, y: (i + by, tf.tanh(tf.matmul(y, w))), [tf.constant(start), rows]
        )[1]

    return build


@VERSIONS
@pytest.mark.parametrize(
    "build, values, runs",
    [
        (repeated(2, lambda rows: 7), {}, 5),
        (repeated(0, lambda rows: 10, by=3), {}, 4),
        (repeated(0, lambda rows: tf.shape(rows)[0] * 2), {}, 2 * BATCH),
        (repeated(1, lambda rows: v1.placeholder(tf.int32, [], name="length")), {"length": 6}, 5),
    ],
    ids=["constants", "a step of three", "sizes", "fed"],
)
def test_loops_run_as_often_as_their_counters_say(version: int, build: Any, values: Any, runs: int) -> None:
    step = step_of(build, version, **values)
    assert step.loops == []
    products = [work.repetitions_in_step(node, step.trips) for node in step.flat.nodes if node.op == "MatMul"]
    assert products == [runs] * 3, "forward, and two gradients"


@VERSIONS
def test_a_loop_that_values_end_has_an_unknown_length(version: int) -> None:
    step = step_of(repeated(0, lambda rows: tf.cast(tf.reduce_sum(rows), tf.int32)), version)
    assert len(step.loops) == 2, "the loop, and that of its gradient"


@VERSIONS
def test_loops_in_loops_multiply(version: int) -> None:
    def build(rows: Any) -> Any:
        w = weight("w", 64, 64)

        def rounds(i: Any, y: Any) -> Any:
            inner = tf.while_loop(lambda j, z: j < 3, lambda j, z: (j + 1, tf.matmul(z, w)), [0, y])
            return i + 1, inner[1]

        return tf.stop_gradient(tf.while_loop(lambda i, y: i < 5, rounds, [0, rows])[1]) + tf.matmul(rows, w)

    step = step_of(build, version)
    products = [
        work.repetitions_in_step(node, step.trips) for node in step.flat.nodes if node.op == "MatMul" and node.inside
    ]
    assert products == [15]


def masked(rows: Any) -> Any:
    """Return a layer on the rows that a mask selects."""
    return tf.matmul(tf.boolean_mask(rows, rows[:, 0] > 0), weight("w", 64, 32))


def suppressed(rows: Any) -> Any:
    """Return a layer on the rows of the boxes that overlap least."""
    kept = tf.image.non_max_suppression(rows[:, :4], rows[:, 4], max_output_size=5)
    return tf.matmul(tf.gather(rows, kept), weight("w", 64, 32))


def unique(rows: Any) -> Any:
    """Return a layer on the rows of different numbers."""
    values, _ = tf.unique(tf.cast(rows[:, 0], tf.int32))
    return tf.matmul(tf.gather(rows, tf.math.floormod(values, BATCH)), weight("w", 64, 32))


def cut(rows: Any) -> Any:
    """Return a layer on the first rows."""
    return tf.matmul(rows[: tf.cast(tf.reduce_sum(rows), tf.int32)], weight("w", 64, 32))


@pytest.mark.parametrize("build, most", [(masked, BATCH), (suppressed, 5), (unique, BATCH), (cut, BATCH)])
def test_sizes_that_values_decide_have_bounds(build: Any, most: int) -> None:
    step = step_of(build)
    [layer] = [
        node
        for node in step.flat.nodes
        if node.op == "MatMul" and node.shapes[0][-1:] == (32,) and node.shapes[0] != (64, 32)
    ]
    assert layer.shapes == [(most, 32)]
    assert step.flat.nodes.index(layer) in step.bounded
    plain = step_of(lambda rows: tf.matmul(rows, weight("w", 64, 32)))
    assert plain.bounded == frozenset()


LENGTHS = np.array([5, 3] * (BATCH // 2), np.int32)


def recurrent(version: int) -> StepNodes:
    """Return the step of a recurrent network on sequences whose batch and length only this run says."""
    with tf.Graph().as_default() as graph, control_flow(version):
        words, lengths = v1.placeholder(tf.int32, [None, None], "words"), v1.placeholder(tf.int32, [None], "lengths")
        hidden = tf.nn.embedding_lookup(weight("table", 100, 16), words)
        total = tf.reduce_max(lengths)
        w = weight("w", 16, 16)
        inputs = v1.TensorArray(tf.float32, tf.shape(words)[1]).unstack(tf.transpose(hidden, [1, 0, 2]))
        outputs = v1.TensorArray(tf.float32, tf.shape(words)[1])

        def cell(time: Any, state: Any, outputs: Any) -> Any:
            state = tf.tanh(tf.matmul(state + inputs.read(time), w))
            return time + 1, state, outputs.write(time, state)

        start = tf.zeros([tf.shape(words)[0], 16])
        loop = [tf.constant(0), start, outputs]
        shapes = [tf.TensorShape([]), tf.TensorShape([None, 16]), tf.TensorShape(None)]
        _, last, outputs = tf.while_loop(lambda time, *_: time < total, cell, loop, shape_invariants=shapes)
        loss = tf.reduce_mean(tf.matmul(last, weight("out", 16, 4)) ** 2) + tf.reduce_sum(outputs.stack())
        train = v1.train.GradientDescentOptimizer(0.1).minimize(loss)
    fed = {words: np.ones([BATCH, 9], np.int32), lengths: LENGTHS}
    given = {tensor.name: value.shape for tensor, value in fed.items()}
    whole = flat.flatten(graph, [train], given, given_shapes.fed_integers(list(fed.items())))
    trips = loops.loop_trip_counts(whole.nodes)
    return step_nodes.nodes_of_step(whole, [], trips, work.work_of_nodes(whole, trips))


@VERSIONS
def test_a_recurrent_network_has_the_sizes_and_lengths_of_this_run(version: int) -> None:
    step = recurrent(version)
    assert (step.loops, step.branches, set(step.trips.values())) == ([], [], {5})
    tensors = [node for node in step.flat.nodes if "float32" in node.dtypes and node.op not in LOOPS]
    assert [node.name for node in tensors if run_sizes.is_open(node)] == []
    tanh = next(node for node in step.flat.nodes if node.op == "Tanh")
    assert tanh.shapes == [(BATCH, 16)] and work.repetitions_in_step(tanh, step.trips) == 5


def test_the_loop_of_a_gradient_in_a_loop_of_steps_runs_as_often_as_its_own_loop() -> None:
    with tf.Graph().as_default() as graph, control_flow(2):
        w = weight("w", 64, 64)

        def train(step: Any) -> Any:
            out = tf.while_loop(
                lambda i, _: i < 5, lambda i, h: (i + 1, tf.tanh(tf.matmul(h, w))), (0, tf.ones([BATCH, 64]))
            )[1]
            with tf.control_dependencies([w.assign_sub(tf.gradients(tf.reduce_sum(out), w)[0])]):
                return step + 1

        steps = tf.while_loop(lambda step: step < 3, train, [0])
    nodes = flat.flatten(graph, [tf.nest.flatten(steps)[0].op], {}).nodes
    trips = loops.loop_trip_counts(nodes)
    assert sorted(trips.values()) == [3, 5, 5], "the steps, the loop, and that of its gradient"
    products = [work.repetitions_in_step(node, trips) for node in nodes if node.op == "MatMul"]
    assert products == [15, 15, 15]


@VERSIONS
@pytest.mark.parametrize("is_in_loop", [False, True])
def test_a_gradient_has_the_sizes_that_a_condition_keeps_and_reads_no_batch(version: int, is_in_loop: bool) -> None:
    def dropped(rows: Any) -> Any:
        is_training = v1.placeholder(tf.bool, [], name="is_training")
        w = tf.identity(weight("w", 64, 64))

        def layer(hidden: Any) -> Any:
            return tf.cond(
                is_training,
                lambda: tf.matmul(hidden, w) * tf.random.uniform(tf.shape(hidden)),
                lambda: hidden * 0.5,
            )

        if not is_in_loop:
            return layer(rows)
        return tf.while_loop(lambda i, _: i < 5, lambda i, hidden: (i + 1, tf.tanh(layer(hidden))), (0, rows))[1]

    step = step_of(dropped, version, is_training=True)
    tensors = [node for node in step.flat.nodes if "float32" in node.dtypes and node.definition.op != "NoOp"]
    assert [node.name for node in tensors if run_sizes.is_open(node)] == []
    assert step.steps == 1 and set(step.trips.values()) == ({5} if is_in_loop else set())
    assert other_batches.batch_of_step(step.flat.nodes) == BATCH
    doubled = other_batches.flat_at_batch(step.flat, BATCH, 2 * BATCH)
    assert {node.shapes[0] for node in doubled.nodes if node.op == "RandomUniform"} == {(2 * BATCH, 64)}
    kept = {node.shapes[0] for node in doubled.nodes if node.op == "OptionalGetValue" and node.dtypes == ["float32"]}
    assert kept <= {(2 * BATCH, 64), (64, 64)} and bool(kept) == (version == 2)


def test_sizes_that_a_branch_refuses_are_those_of_a_branch_that_is_not_taken() -> None:
    with tf.Graph().as_default() as graph, control_flow(1):
        rows = v1.placeholder(tf.float32, [None, None, 16], name="rows")
        w = weight("w", 16, 4)
        out = tf.cond(
            tf.equal(tf.shape(rows)[1], 1),
            lambda: tf.matmul(tf.squeeze(rows, [1]), w),
            lambda: tf.matmul(tf.reshape(rows, [-1, 16]), w),
        )
        train = v1.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_mean(out**2))
    whole = flat.flatten(graph, [train], {"rows:0": (BATCH, 3, 16)})
    step = step_nodes.nodes_of_step(whole, [], {}, work.work_of_nodes(whole, {}))
    assert step.branches == []
    products = [node.shapes for node in step.flat.nodes if node.op == "MatMul" and node.shapes[0][-1] == 4]
    assert products == [[(3 * BATCH, 4)], [(16, 4)]], "the layer, and the gradient of its weights"


def test_a_look_up_has_the_shape_of_its_keys() -> None:
    with tf.Graph().as_default() as graph:
        words = v1.placeholder(tf.string, [None, None], name="words")
        table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(["a", "b"], [0, 1]), -1)
        tf.nn.embedding_lookup(weight("table", 4, 16), table.lookup(words), name="rows")
    nodes = flat.flatten(graph, [graph.get_operation_by_name("rows/Identity")], {"words:0": (BATCH, 7)}).nodes
    assert nodes[-1].shapes == [(BATCH, 7, 16)]


def test_a_loop_over_the_examples_runs_more_often_with_a_larger_batch() -> None:
    step = step_of(repeated(0, lambda rows: tf.shape(rows)[0]))
    doubled = other_batches.flat_at_batch(step.flat, BATCH, 2 * BATCH)
    assert set(step.trips.values()) == {BATCH}
    assert set(other_batches.trips_at_batch(doubled, step.trips).values()) == {2 * BATCH}


def test_bounds_follow_the_batch() -> None:
    def largest(build: Any, batch: int) -> int:
        nodes = other_batches.flat_at_batch(step_of(build).flat, BATCH, batch).nodes
        return max(node.shapes[0][0] for node in nodes if node.op == "GatherV2")

    assert (largest(masked, 3 * BATCH), largest(suppressed, 3 * BATCH)) == (3 * BATCH, 5)


def test_a_queue_gives_as_many_elements_as_are_asked_for() -> None:
    with tf.Graph().as_default() as graph:
        queue = v1.FIFOQueue(100, [tf.float32], [[64]])
        for name, rows in (("many", queue.dequeue_many(BATCH)), ("up_to", queue.dequeue_up_to(BATCH))):
            tf.matmul(rows, tf.ones([64, 16]), name=name)
    for name in ("many", "up_to"):
        nodes = flat.flatten(graph, [graph.get_operation_by_name(name)], {}).nodes
        assert [node.shapes for node in nodes if node.op == "MatMul"] == [[(BATCH, 16)]]


if IS_2:

    def test_a_loop_has_the_length_of_an_integer_that_a_function_captures_or_is_passed() -> None:
        steps = tf.Variable(4, trainable=False, dtype=tf.int64)
        w = tf.Variable(tf.ones([64, 64]))

        @tf.function
        def train(rows: Any, times: Any) -> Any:
            for _ in tf.range(steps):
                for _ in tf.range(times):
                    w.assign_sub(0.1 * tf.matmul(rows, rows, transpose_a=True))
            return w.read_value()

        arguments = (tf.ones([BATCH, 64]), tf.constant(3))
        concrete = train.get_concrete_function(*arguments)
        graph = concrete.graph
        whole = flat.flatten(
            graph,
            [output.op for output in graph.outputs] + list(graph.control_outputs),
            *given_shapes.given_arguments(graph, arguments, {}),
        )
        trips = loops.loop_trip_counts(whole.nodes)
        products = [node for node in whole.nodes if node.op == "MatMul"]
        assert [work.repetitions_in_step(node, trips) for node in products] == [12]
