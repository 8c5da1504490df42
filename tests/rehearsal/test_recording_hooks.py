"""Hooks of recordings in this process."""

from __future__ import annotations

import pathlib
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.data.util import random_seed as dataset_seed
from tensorflow.python.eager import context
from tensorflow.python.framework import random_seed

from npu_shim._tensorflow import tf_op_creation, tf_recording
from npu_shim.rehearsal.recording.by_version import ByVersion
from npu_shim.rehearsal.recording.graph_inputs import inputs_of, learning_rates_of
from npu_shim.rehearsal.recording.keras_models import named_results
from npu_shim.rehearsal.recording.kinds import FINAL, RATE
from npu_shim.rehearsal.recording.methods import wrap_methods
from npu_shim.rehearsal.recording.optimizers import UpdateRecording
from npu_shim.rehearsal.recording.queue_sizes import ops_from_queue_sizes, scalar_summary_tags
from npu_shim.rehearsal.recording.random_seeds import seed_ops_by_call_site
from npu_shim.rehearsal.recording.recorder import Recorder
from npu_shim.rehearsal.recording.sessions import fed_arrays, untrained_variables_in
from npu_shim.rehearsal.recording.summaries import scalars_of, watch_summaries
from npu_shim.rehearsal.recording.unordered_reads import UnorderedReads
from npu_shim.rehearsal.recording.update_hooks import UpdateHooks
from npu_shim.rehearsal.recording.variables import weights_of
from npu_shim.rehearsal.recording.writer import NoWriter, Writer

pytestmark = pytest.mark.smoke
v1 = tf.compat.v1


def test_a_tuple_of_rows_is_one_fed_array_and_a_sparse_value_three() -> None:
    rows, places, size = (np.zeros(3), np.ones(3)), [[0, 1]], (4, 4)
    with tf.Graph().as_default(), v1.Session() as session:
        x, s = v1.placeholder(tf.float32, [None, 3], "x"), v1.sparse_placeholder(tf.float32, name="s")
        assert [(name, array.shape) for name, array in fed_arrays(session, {"x:0": rows})] == [("x", (2, 3))]
        for value in (v1.SparseTensorValue(places, [1.0], size), (places, [1.0], size)):
            shapes = [array.shape for _, array in fed_arrays(session, {x: rows, s: value})]
            assert shapes == [(2, 3), (1, 2), (1,), (2,)]
        assert list(fed_arrays(session, None)) == []


@pytest.mark.parametrize("gradients, variables", [("ab", "vw"), ("a", "vw"), ("ab", "v")])
def test_an_optimizer_gets_the_gradients_that_the_script_gives_it(gradients: str, variables: str) -> None:
    seen: list[Any] = []

    class Hooks(UpdateHooks):
        def _apply_and_watch(self, optimizer: Any, pairs: Any, apply: Any, is_reduced: bool = False) -> Any:
            seen.append(pairs)
            return apply([(gradient.upper(), variable) for gradient, variable in pairs])

    def original(optimizer: Any, grads: Any, trainable_variables: Any) -> Any:
        return grads, trainable_variables

    paired = min(len(gradients), len(variables))
    given = list(gradients[:paired].upper() + gradients[paired:])
    assert Hooks().apply(original, None, iter(gradients), variables) == (given, variables)
    assert seen == [list(zip(gradients, variables))]


class Dumped(tf_op_creation.OpHook):
    """Puts an op behind each output, as a dump does."""

    def replace_outputs(self, op_type: str, op: Any, inputs: Any, outputs: Any) -> list[Any]:
        """Return the outputs through an op."""
        with tf_op_creation.create_hook_ops(op.graph):
            return [tf.identity(each) if each.dtype in (tf.float32, tf.int32) else each for each in outputs]


@pytest.mark.parametrize("use_resource", [True, False])
def test_variables_whose_reads_are_dumped_are_updated_all_the_same(use_resource: bool) -> None:
    hook = Dumped()
    tf_op_creation.add_hook(hook)
    try:
        with tf.Graph().as_default() as graph:
            w = v1.get_variable("w", [4], use_resource=use_resource)
            v1.get_variable("mean", [4], use_resource=use_resource, trainable=False)
            v1.train.AdamOptimizer(0.1).minimize(tf.reduce_sum(w * w))
            names = [name for name, _ in untrained_variables_in(graph)]
    finally:
        tf_op_creation.remove_hook(hook)
    assert names == ["mean"]  # not beta1_power and beta2_power


def test_inputs_and_rates_of_an_update_are_found_in_its_graph() -> None:
    with tf.Graph().as_default() as graph:
        x = v1.placeholder(tf.float32, [4], name="x")
        v1.placeholder(tf.float32, [], name="unused")
        batch, _ = v1.data.make_one_shot_iterator(
            tf.data.Dataset.from_tensors((np.ones(4, "f4"), [b"text"]))
        ).get_next()
        loss = tf.reduce_sum(v1.get_variable("w", [4]) * x * batch)
        start = len(graph.get_operations())
        v1.train.AdamOptimizer(v1.train.exponential_decay(0.1, v1.train.get_or_create_global_step(), 10, 0.5)).minimize(
            loss
        )
        rates = learning_rates_of(graph.get_operations()[start:], graph)
        assert sorted(name for name, _ in inputs_of([loss], graph, [])) == ["batch 0", "x"]
        assert [name for name, _ in rates] == ["learning_rate"]
        with v1.Session() as session:
            session.run(v1.global_variables_initializer())
            assert session.run(rates[0][1]) == pytest.approx(0.1)


class Rows(NoWriter):
    """Keeps what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: list[tuple[str, str, float]] = []

    def write_rows(self, step: int, rows: Any) -> None:
        self.kept += [(kind, name, float(np.sum(value))) for kind, name, value in rows]


def test_variables_of_a_model_with_one_name_are_kept_apart() -> None:
    writer = Rows()
    Recorder(writer).record_final_variables([("dense/kernel", np.float32(1)), ("dense/kernel", np.float32(2))])
    assert writer.kept == [(FINAL, "dense/kernel", 1.0), (FINAL, "dense/kernel (2)", 2.0)]


def test_fetches_that_no_op_orders_with_their_update_are_found(tmp_path: pathlib.Path) -> None:
    with tf.Graph().as_default() as graph:
        weight, bias = (v1.get_variable(name, [2], use_resource=True) for name in ("weight", "bias"))
        step = v1.train.get_or_create_global_step()
        loss = tf.reduce_sum(tf.square(weight * v1.placeholder(tf.float32, [2]) + bias))
        before = tf.norm(weight)
        with tf.control_dependencies([before]):
            train_op = v1.train.GradientDescentOptimizer(0.1).minimize(loss, step)
        with tf.control_dependencies([train_op]):
            after = weight.read_value()
        v1.train.SummarySaverHook(1, output_dir=str(tmp_path), summary_op=tf.constant(b"")).begin()
        [of_hooks] = graph.get_collection("global_step_read_op_cache")
        unordered = UnorderedReads()
        run = [
            train_op,
            loss,
            before,
            after,
            weight,
            tf.norm(weight),
            of_hooks,
            tf.identity(bias).name,
            "no name",
            None,
        ]
        assert unordered.are_unordered(graph, run) == [False] * 4 + [True] * 4 + [False] * 2
        assert unordered.are_unordered(graph, [weight, "weight:0", of_hooks]) == [
            False,
            False,
            True,
        ]  # nothing is updated


def test_a_batch_has_one_name_in_all_updates_of_a_graph() -> None:
    with tf.Graph().as_default() as graph:
        x, y = (v1.data.make_one_shot_iterator(tf.data.Dataset.from_tensors(each)).get_next() for each in (1.0, 2.0))
        known: list[str] = []
        found = [[name for name, _ in inputs_of(tensors, graph, known)] for tensors in ([y + 1.0], [x * y], [x])]
        assert found == [["batch 0"], ["batch 1", "batch 0"], ["batch 1"]]


@pytest.mark.parametrize("is_resource", [False, True])
def test_values_that_follow_from_the_size_of_a_queue_are_found(is_resource: bool) -> None:
    with tf.Graph().as_default() as graph:
        sizes = ByVersion(ops_from_queue_sizes)
        queue = v1.FIFOQueue(10, [tf.float32], [[]])
        assert sizes.findings_in(graph) == set()
        fill = tf.cast(queue.size(), tf.float32)
        mean, weight = (
            v1.get_variable(name, [], use_resource=is_resource, initializer=v1.zeros_initializer())
            for name in ("mean", "weight")
        )
        moved = tf.convert_to_tensor(v1.assign_sub(mean, 0.1 * (mean - fill)))
        v1.summary.scalar("fill", mean)
        v1.summary.scalar("weight", weight)
        taken = tf.cond(fill > 5, queue.dequeue, lambda: 0.0)
        v1.train.GradientDescentOptimizer(0.1 * fill).minimize(tf.square(weight - taken))
        variables = [each.op for each in v1.global_variables()]
        found = sizes.findings_in(graph)
        assert [op in found for op in (fill.op, moved.op, *variables, taken.op)] == [True, True, True, False, False]
        assert scalar_summary_tags(found) == {"fill"}


def test_an_op_made_in_a_thread_of_a_library_belongs_to_the_function_that_waits_for_it() -> None:
    with ThreadPoolExecutor(1) as pool:
        found = pool.submit(tf_recording.script_function_name).result()
    assert found == "test_an_op_made_in_a_thread_of_a_library_belongs_to_the_function_that_waits_for_it"


def test_scalars_of_summaries_leave_speeds_out() -> None:
    tags = "loss", "global_step/sec", "steps_per_sec", "words_per_second/source"
    values = [v1.Summary.Value(tag=tag, simple_value=2.5) for tag in tags]
    assert scalars_of(v1.Summary(value=values).SerializeToString()) == [("loss", 2.5)]


def test_scalars_of_tensorflow_2_leave_speeds_out(monkeypatch: pytest.MonkeyPatch) -> None:
    recorded: list[str] = []
    recorder: Any = SimpleNamespace(record_values=lambda kind, pairs: recorded.extend(name for name, _ in pairs))
    monkeypatch.setattr("npu_shim.rehearsal.recording.methods.wrap_methods", lambda *_: None)

    def scalar(name: str, data: float, step: int) -> bool:
        return True

    for owner in (tf.compat.v2.summary, tf.summary):
        monkeypatch.setattr(owner, "scalar", scalar)  # not TensorBoard's, which TensorFlow 2.21 comes without
    monkeypatch.setattr(tf, "executing_eagerly", lambda: True)
    watch_summaries(recorder)
    for name in ("loss", "steps_per_sec"):
        tf.compat.v2.summary.scalar(name, 2.5, step=1)
    assert recorded == ["loss"]


def test_a_wrapped_class_has_the_methods_of_a_class_that_takes_the_place_of_one_above() -> None:
    class Before:
        def call(self) -> str:
            return "before"

    class After:
        def call(self) -> str:
            return "after"

    class Model(Before):
        pass

    wrap_methods(Model, ("call",), lambda original, self: f"around {original(self)}")
    Model.__bases__ = (After,)
    assert Model().call() == "around after"


def test_methods_of_later_subclasses_and_beside_the_class_are_wrapped() -> None:
    calls = []

    class Base:
        def train(self) -> str:
            return "base"

    class Beside:
        def train(self) -> str:
            return "beside"

    class Before(Beside, Base):
        pass

    wrap_methods(Base, ("train",), lambda original, self: calls.append(type(self).__name__) or original(self))

    class Later(Base):
        def train(self) -> str:
            return "later " + super().train()

    assert (Base().train(), Before().train(), Later().train()) == ("base", "beside", "later base")
    assert calls == ["Base", "Before", "Later", "Later"]


def test_a_recorded_update_waits_for_all_gradients(tmp_path: pathlib.Path) -> None:
    watch = UpdateRecording(Recorder(Writer(str(tmp_path))), after_eager=lambda: None)
    with tf.Graph().as_default():
        first, second = (v1.get_variable(name, [2, 2], use_resource=False) for name in ("first", "second"))
        loss = tf.reduce_sum(tf.matmul(tf.matmul(tf.ones([2, 2]), first), second))
        gradients = tf.gradients(loss, [first, second])
        optimizer = v1.train.GradientDescentOptimizer(0.1)
        pairs = list(zip(gradients, [first, second]))
        train_op = watch.apply_gradients(type(optimizer).apply_gradients, optimizer, pairs)
        updates = [op for op in ops_above(train_op) if op.type == "ApplyGradientDescent"]
        assert len(updates) == 2
        assert all({gradient.op for gradient in gradients} <= ops_above(update) for update in updates)


def test_a_wrapper_of_any_name_may_return_gradients_without_variables(tmp_path: pathlib.Path) -> None:
    watch = UpdateRecording(Recorder(Writer(str(tmp_path))), after_eager=lambda: None)
    with tf.Graph().as_default():
        table = v1.get_variable("table", [4, 2], use_resource=False)
        loss = tf.reduce_sum(tf.gather(table, [1, 3]))

        def averaged(optimizer: object, loss: Any, params: list[Any]) -> list[Any]:
            return tf.gradients(loss, params)

        (gradient,) = watch.remember_loss(averaged, object(), loss, [table])
        assert isinstance(gradient, tf.IndexedSlices)
        assert watch.remember_loss(lambda optimizer, loss: [(gradient, table)], object(), loss) == [(gradient, table)]


@pytest.mark.parametrize("api", [tf, tf.compat.v2], ids=["tf", "tf.compat.v2"])
def test_random_boxes_without_a_seed_get_one(api: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def box() -> list[int]:
        with tf.Graph().as_default(), v1.Session() as session:
            return list(
                session.run(api.image.sample_distorted_bounding_box([9999, 9999, 3], [[[0.0, 0.0, 1.0, 1.0]]])[0])
            )

    for owner in {tf.image, v1.image, tf.compat.v2.image}:
        monkeypatch.setattr(owner, "sample_distorted_bounding_box", owner.sample_distorted_bounding_box)
    assert box() != box()
    tf_recording.seed_random_boxes(lambda: 7)
    assert box() == box()


def ops_above(op: Any) -> set[Any]:
    found = {op}
    for other in (*(tensor.op for tensor in op.inputs), *op.control_inputs):
        found |= {other} | ops_above(other)
    return found


def test_iterations_of_while_loops_run_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    for owner, name in ((tf_recording._control_flow.WhileContext, "__init__"), (tf_recording._while_v2, "while_loop")):
        monkeypatch.setattr(owner, name, getattr(owner, name))  # puts the originals back
    tf_recording.serialize_loop_iterations()

    def loop() -> Any:
        return tf.while_loop(lambda i, _: i < 5, lambda i, x: (i + 1, x + tf.random.uniform([])), (0, 0.0))

    with tf.Graph().as_default() as graph:
        loop()
        function = tf.function(loop).get_concrete_function()
    ops = [op for each in (graph, function.graph) for op in each.get_operations()]
    at_once = [op.get_attr("parallel_iterations") for op in ops if op.type in ("Enter", "While", "StatelessWhile")]
    assert len(at_once) > 1 and set(at_once) == {1}


def test_variables_that_a_tf_function_makes_are_those_of_scripts() -> None:
    made: list[Any] = []

    @tf.function
    def build(x: Any) -> Any:
        if not made:
            with tf.init_scope():  # as Keras builds a layer in its first step
                made.append(tf.Variable(2.0))
        return made[0] * x

    with context.eager_mode():
        assert float(build(tf.constant(3.0))) == 6 and tf_recording.is_resource(made[0])


def test_metrics_of_compile_have_their_own_names() -> None:
    class Model:  # of Keras 3
        metrics_names = ("loss", "compile_metrics")
        metrics = (SimpleNamespace(name="loss"), SimpleNamespace(metrics=[SimpleNamespace(name="mae")]))

    model: Any = Model()
    assert [name for name, _ in named_results(model, "evaluate", [1.0, 2.0])] == ["evaluate loss", "evaluate mae"]


def test_variables_of_a_model_with_a_part_that_nothing_has_called() -> None:
    class Net(tf.keras.Model):
        def __init__(self) -> None:
            super().__init__()
            self.used, self.unused = tf.keras.layers.Dense(2), tf.keras.Sequential([tf.keras.layers.Dense(3)])

        def call(self, x: Any) -> Any:
            return self.used(x)

    with context.eager_mode():
        model = Net()
        model.compile(tf.keras.optimizers.SGD(0.1))
        model(tf.zeros([1, 4]))
        assert [each.shape.as_list() for each in weights_of(model, "trainable_variables")] == [[4, 2], [2]]


def test_datasets_get_the_same_seeds_whatever_random_ops_come_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(random_seed, "get_seed", random_seed.get_seed)
    monkeypatch.setattr(dataset_seed, "get_seed", dataset_seed.get_seed)
    monkeypatch.setattr(tf_recording, "seed_random_boxes", lambda next_seed: None)
    monkeypatch.setattr(tf_recording, "seed_generators", lambda next_seed: None)
    monkeypatch.setattr(tf_recording, "set_default_seed", lambda: None)
    seed_ops_by_call_site(1, lambda *_: None)

    def order(ops: int) -> list[int]:
        with tf.Graph().as_default(), v1.Session() as session:
            for _ in range(ops):
                v1.random.uniform([2])
            row = v1.data.make_one_shot_iterator(tf.data.Dataset.range(50).shuffle(50).batch(50)).get_next()
            return list(session.run(row))

    assert order(0) == order(3) != list(range(50))


@pytest.mark.parametrize("in_function", [False, True])
def test_the_rate_of_a_schedule_is_that_of_the_update_and_not_of_the_next(in_function: bool) -> None:
    with context.eager_mode():
        writer = Rows()
        recording = UpdateRecording(Recorder(writer), lambda: None)
        optimizer = tf.keras.optimizers.SGD(tf.keras.optimizers.schedules.ExponentialDecay(0.1, 1, 0.5))
        weight = tf.Variable(1.0)

        def step() -> None:
            recording.apply_gradients(type(optimizer).apply_gradients, optimizer, [(tf.constant(1.0), weight)])

        run = tf.function(step) if in_function else step
        for _ in range(3):
            run()
    np.testing.assert_allclose([value for kind, _, value in writer.kept if kind == RATE], [0.1, 0.05, 0.025])
