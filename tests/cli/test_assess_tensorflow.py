"""``npu-shim assess`` with TensorFlow: graphs with known figures, and whole scripts."""

from __future__ import annotations

import json
import pathlib
from dataclasses import replace
from typing import Any

import pytest
import tensorflow as tf

from npu_shim._tensorflow import patches, tf_graph
from npu_shim.rehearsal.assess import (
    capture,
    flat,
    inventory,
    loops,
    memory,
    operators,
    partition,
    precision,
    report,
    training_ops,
    work,
)
from npu_shim.rehearsal.assess.assessment import Operators
from npu_shim.rehearsal.reports.amounts import duration_text
from samples import training
from tests.distributed import forks
from tests.marks import in_forks

v1 = tf.compat.v1


def lenet(batch: int) -> Any:
    """LeNet-5 of 1998 for images of 32x32, with its sizes, and a step of gradient descent."""
    x = v1.placeholder(tf.float32, [None, 32, 32, 1], name="x")
    labels = v1.placeholder(tf.int32, [None], name="labels")
    h: Any = x
    for name, shape in (("c1", [5, 5, 1, 6]), ("c3", [5, 5, 6, 16]), ("c5", [5, 5, 16, 120])):
        h = tf.nn.relu(tf.nn.conv2d(h, v1.get_variable(name, shape), strides=[1, 1, 1, 1], padding="VALID"))
        h = h if name == "c5" else tf.nn.max_pool2d(h, 2, 2, "VALID")
    h = tf.nn.relu(tf.matmul(tf.reshape(h, [-1, 120]), v1.get_variable("f6", [120, 84])))
    logits = tf.matmul(h, v1.get_variable("out", [84, 10]))
    loss = v1.losses.sparse_softmax_cross_entropy(labels, logits)
    op = v1.train.GradientDescentOptimizer(0.1).minimize(loss)
    return [op, loss.op], {"x:0": (batch, 32, 32, 1), "labels:0": (batch,)}


def lenet_forward(batch: int) -> int:
    """2 operations for each weight and place: 5*5*1*6 at 28x28, 5*5*6*16 at 10x10, 5*5*16*120 at 1x1, two layers."""
    return 2 * batch * (150 * 784 + 2400 * 100 + 48000 + 120 * 84 + 84 * 10)


def test_flops_of_lenet_are_those_computed_by_hand() -> None:
    with tf.Graph().as_default() as graph:
        targets, given = lenet(16)
        made = flat.flatten(graph, targets, given)
    done = work.work_of_nodes(made, {})
    convolutions = sum(n for n, node in zip(done.flops, made.nodes) if node.op == "Conv2D")
    assert convolutions == 2 * 16 * (150 * 784 + 2400 * 100 + 48000)
    matrix = sum(n for n, node in zip(done.flops, made.nodes) if work.MATRIX.match(node.op))
    assert matrix == 3 * lenet_forward(16), "forward, and a gradient for the input and the weights of each layer"
    assert done.unknown == {}
    assert {"Conv2D", "MatMul", "BiasAdd"} & set(done.by_profiler) == {"Conv2D", "MatMul"}


@pytest.mark.parametrize("use_resource", [False, True])
def test_updates_read_and_write_the_variables_and_a_gather_the_rows(use_resource: bool) -> None:
    with tf.Graph().as_default() as graph:
        weights = v1.get_variable("weights", [100, 50], use_resource=use_resource)
        rows = v1.get_variable("rows", [1000, 8], use_resource=use_resource)
        loss = tf.reduce_sum(tf.square(weights)) + tf.reduce_sum(tf.square(tf.nn.embedding_lookup(rows, [3, 5, 7])))
        targets = [
            v1.train.AdamOptimizer(0.1).minimize(loss, var_list=[weights]),
            v1.train.AdagradOptimizer(0.1).minimize(loss, var_list=[rows]),
        ]
        made = flat.flatten(graph, targets, {})
    moved = {node.op.replace("Resource", ""): n for n, node in zip(work.work_of_nodes(made, {}).bytes, made.nodes)}
    assert moved["ApplyAdam"] == 100 * 50 * (7 * 4) + 6 * 4, "weights and two slots, their gradient, and six scalars"
    assert moved["SparseApplyAdagrad"] == 3 * 8 * (5 * 4) + 4, "three rows and their slot, their gradient, and the rate"
    gather = "Gather" if use_resource else "GatherV2"
    assert moved[gather] == 2 * 3 * 8 * 4 + 3 * 4


def test_kernels_for_all_devices_are_kernels_for_cpus() -> None:
    assert tf_graph.has_cpu_kernel("IdentityN") and tf_graph.has_cpu_kernel("MatMul")
    assert not tf_graph.has_cpu_kernel("NoSuchOperator")


def test_work_without_a_formula_is_not_shown_as_none() -> None:
    row = Operators("FFT", 1, "host", 0, 0, [])
    assert (report.operations_text(row, {"FFT"}), report.operations_text(row, set())) == ("not counted", "0 FLOP")
    assert report.operations_text(Operators("MatMul", 1, "device", 2000, 0, []), {"MatMul"}) == "2.00 kFLOP"
    assert [duration_text(seconds) for seconds in (2e-9, 2e-7, 0.0)] == [
        "less than 0.01 us",
        "0.20 us",
        "0.00 us",
    ]


def test_shapes_are_those_of_the_values_that_are_fed() -> None:
    with tf.Graph().as_default() as graph:
        targets, given = lenet(16)
        made = flat.flatten(graph, targets, given)
    conv = next(node for node in made.nodes if node.op == "Conv2D")
    assert conv.declared == [(None, 28, 28, 6)] and conv.shapes == [(16, 28, 28, 6)]


def test_activations_of_lenet_live_until_their_gradient() -> None:
    with tf.Graph().as_default() as graph:
        targets, given = lenet(16)
        made = flat.flatten(graph, targets, given)
    found = memory.peak_memory(made.nodes, {})
    first = 16 * 28 * 28 * 6 * 4  # the largest tensor, of which the relu keeps one, and its gradient is a second
    assert 2 * first < found.peak < 4 * first
    twice = {name: (32,) + shape[1:] for name, shape in given.items()}
    larger = memory.peak_memory(flat.flatten(graph, targets, twice).nodes, {})
    assert 1.7 < larger.peak / found.peak < 2.1


def step_with_host_op(graph: Any, in_the_middle: bool) -> list[Any]:
    x = v1.placeholder(tf.float32, [4, 3], name="x")
    w = v1.get_variable("w", [3, 3])
    h = tf.matmul(x, w)
    text = v1.py_func(lambda a: a, [h], tf.float32) if in_the_middle else h
    text.set_shape([4, 3])
    out = tf.reduce_sum(tf.matmul(tf.nn.relu(text), w))
    v1.summary.scalar("out", out)
    return [out.op, v1.summary.merge_all().op]


@pytest.mark.parametrize("in_the_middle", [True, False], ids=["cuts the step", "summaries at the end"])
def test_a_host_operator_cuts_the_step_only_if_device_operators_follow(in_the_middle: bool) -> None:
    with tf.Graph().as_default() as graph:
        made = flat.flatten(graph, step_with_host_op(graph, in_the_middle), {})
    parts = partition.partition_nodes(made.nodes, operators.built_in_lists())
    host = sorted(made.nodes[i].op for i in parts.host)
    assert host == ["MergeSummary"] + ["PyFunc"] * in_the_middle + ["ScalarSummary"]
    assert len(parts.clusters) == 1 + in_the_middle


def test_mixed_precision_reaches_what_follows_a_matrix_operator() -> None:
    with tf.Graph().as_default() as graph:
        x = v1.placeholder(tf.float32, [4, 3], name="x")
        y = tf.nn.relu(tf.matmul(x, v1.get_variable("w", [3, 3])))
        z = tf.reduce_mean(y) + tf.exp(tf.reduce_sum(x))
        nodes = flat.flatten(graph, [z.op], {}).nodes
    half = {
        node.op: is_half for node, is_half in zip(nodes, precision.are_nodes_in_half(nodes, operators.built_in_lists()))
    }
    assert half["MatMul"] and half["Relu"]
    assert not half["Mean"] and not half["Sum"] and not half["Exp"]


def test_a_loop_counts_as_often_as_it_runs() -> None:
    with tf.Graph().as_default() as graph:
        v1.enable_control_flow_v2()
        x = v1.placeholder(tf.float32, [8, 8], name="x")
        end = tf.while_loop(lambda i, a: i < 7, lambda i, a: (i + 1, tf.matmul(a, a)), [0, x])[1]
        v1.disable_control_flow_v2()
        made = flat.flatten(graph, [end.op], {})
    trips = loops.loop_trip_counts(made.nodes)
    assert list(trips.values()) == [7]
    done = work.work_of_nodes(made, trips)
    assert sum(n for n, node in zip(done.flops, made.nodes) if node.op == "MatMul") == 7 * 2 * 8 * 8 * 8


def test_sizes_that_the_graph_does_not_know_are_named_where_they_come_in() -> None:
    with tf.Graph().as_default() as graph:
        x = v1.placeholder(tf.float32, [None, 3], name="x")
        y = tf.nn.relu(x) + tf.zeros(tf.shape(x))
        places = tf.where(y > 0)
        made = flat.flatten(graph, [places.op], {"x:0": (5, 3)})
    rows = inventory.dynamic_shape_rows(made.nodes, str(pathlib.Path(__file__).parent))
    assert [(row.name, row.shape, row.in_this_run) for row in rows] == [("x", [None, 3], [5, 3])]
    assert rows[0].lines[0].startswith(pathlib.Path(__file__).name + ":")


def test_operators_that_leave_sizes_unknown_in_this_run_are_named_with_their_tensors() -> None:
    with tf.Graph().as_default() as graph:
        x = v1.placeholder(tf.float32, [None, 3], name="x")
        kept = tf.boolean_mask(x * 2.0, x[:, 0] > 0, name="mask")
        distinct = tf.unique(tf.cast(x[:, 1], tf.int32), name="distinct")[0]
        sums = tf.math.unsorted_segment_sum(kept[:, 0], tf.cast(kept[:, 1], tf.int32), tf.size(distinct), name="sums")
        made = flat.flatten(graph, [tf.exp(sums).op], {"x:0": (5, 3)})
    found = memory.peak_memory(made.nodes, {})
    rows = inventory.dynamic_shape_rows(made.nodes, str(pathlib.Path(__file__).parent), found.unknown_nodes)
    by_op = {row.op: row for row in rows}
    assert set(by_op) == {"Placeholder", "Where", "Unique"} and by_op["Placeholder"].unknown_tensors == 0
    assert by_op["Where"].unknown_tensors + by_op["Unique"].unknown_tensors == found.unknown > 2
    assert by_op["Unique"].unknown_tensors > 1  # its own and the sums, whose number it decides
    for row in (by_op["Where"], by_op["Unique"]):
        assert row.in_this_run is None and row.lines[0].startswith(pathlib.Path(__file__).name + ":")
    assert report.unknown_sizes_text(by_op["Placeholder"]) == ""
    assert report.unknown_sizes_text(replace(by_op["Where"], unknown_tensors=1)) == (
        "1 tensor of unknown size. Use npu_shim.data.masked_select or masked_where (docs/static-shapes.md)"
    )
    assert "unique_padded" in report.unknown_sizes_text(replace(by_op["Unique"], op="UniqueV2"))


SPARSE = """
import numpy as np
import tensorflow as tf
tf = tf.compat.v1
if hasattr(tf, 'disable_eager_execution'):
    tf.disable_eager_execution()
x, size = tf.sparse_placeholder(tf.float32, name='x'), tf.placeholder(tf.int32, [], name='size')
w = tf.get_variable('w', [5, 4])
hidden = tf.sparse_tensor_dense_matmul(x, w)
loss = tf.reduce_sum(tf.matmul(hidden, hidden, transpose_b=True)) + tf.reduce_sum(tf.zeros([size, 7]))
step = tf.train.GradientDescentOptimizer(.1).minimize(loss)
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    while True:
        session.run(step, {x: ([[0, 1], [2, 4]], [1., 2.], (3, 5)), size: 6})
"""
SESSION = """
import sys
import numpy as np
import tensorflow as tf
tf = tf.compat.v1
if hasattr(tf, 'disable_eager_execution'):
    tf.disable_eager_execution()
open('log.txt', 'w').write('begun')
x = tf.placeholder(tf.float32, [None, 4], name='x')
def network(name):
    with tf.variable_scope(name):
        w = tf.get_variable('w', [4, 4])
        return tf.reduce_mean(tf.py_func(lambda a: a, [tf.matmul(x, w)], tf.float32) ** 2 if 'host' in sys.argv
                              else tf.matmul(x, w) ** 2), w
(d, wd), (g, wg) = network('d'), network('g')
train_d = tf.train.AdamOptimizer().minimize(d, var_list=[wd]) if 'host' not in sys.argv else (
    tf.train.AdamOptimizer().minimize(d + tf.reduce_mean(wd ** 2), var_list=[wd]))
train_g = tf.train.MomentumOptimizer(.1, .9).minimize(tf.reduce_mean(tf.matmul(x, wg) ** 2), var_list=[wg])
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    before = session.run(wd)
    if 'never' in sys.argv:
        sys.exit(0)
    for step in range(1000):
        _, loss = session.run([train_d, d], {x: np.ones([6, 4], np.float32)})
        session.run(train_g, {x: np.ones([3, 4], np.float32)})
        assert step == 0, 'the second step'
        tf.train.Saver().save(session, './model')
"""
EAGER = """
import tensorflow as tf
tf.compat.v1.enable_eager_execution()
w, is_1 = tf.Variable([1., 2.]), tf.__version__[0] == '1'
optimizer = tf.compat.v1.train.GradientDescentOptimizer(0.1) if is_1 else tf.keras.optimizers.SGD(0.1)
with tf.GradientTape() as tape:
    loss = tf.reduce_sum(w ** 2)
optimizer.apply_gradients([(tape.gradient(loss, w), w)])
"""
FUNCTION = """
import tensorflow as tf
import npu_shim.npu_device as npu
npu.global_options().precision_mode = "allow_mix_precision"
model = tf.keras.Sequential([tf.keras.layers.Dense(4, input_shape=(3,)), tf.keras.layers.Dense(1)])
optimizer = tf.keras.optimizers.SGD(0.1)
def apply(gradients, variables):  # Keras 3 has a method apply
    optimizer.apply_gradients(zip(gradients, variables))
@tf.function
def train(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(model(x) ** 2)
    getattr(optimizer, 'apply', apply)(tape.gradient(loss, model.trainable_variables), model.trainable_variables)
train(tf.ones([8, 3]))
raise AssertionError('the second step')
"""


IN_DATASET = """
import tensorflow as tf
w = tf.Variable(tf.ones([3, 3]))
optimizer = tf.compat.v1.train.GradientDescentOptimizer(0.1)
@tf.function
def epoch(dataset):
    for x in dataset:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.matmul(x, w) ** 2)
        optimizer.apply_gradients([(tape.gradient(loss, w), w)])
epoch(tf.data.Dataset.from_tensor_slices(tf.ones([16, 3])).batch(8))
raise AssertionError('the second epoch')
"""


DRIVER = """
import sys
from npu_shim.cli import main
print('exit code', main(['assess', 'script.py', *sys.argv[1:]]))
"""


def run(folder: pathlib.Path, text: str, *arguments: str) -> str:
    """Assess a script in a folder of its own, and return what the command prints, its exit code in the last line."""
    (folder / "script.py").write_text(text)
    driver = folder.parent / f"{folder.name}_driver.py"
    driver.write_text(DRIVER)
    log = folder.parent / f"{folder.name}.log"
    return forks.run_script(driver, *arguments, log=log, environ=training.environment(), cwd=folder)


def conforms(value: Any, schema: dict[str, Any], place: str = "") -> None:
    """Fail if a value has other fields or types than a schema says."""
    types = {"object": dict, "array": list, "string": str, "boolean": bool, "integer": int, "number": (int, float)}
    wanted = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    if value is None:
        assert "null" in wanted, place
        return
    assert isinstance(value, tuple(types[each] for each in wanted if each != "null")), (place, value)
    assert value in schema.get("enum", [value]) and value == schema.get("const", value), (place, value)
    if isinstance(value, dict):
        assert sorted(value) == sorted(schema["properties"]) == sorted(schema["required"]), place
        for name, each in value.items():
            conforms(each, schema["properties"][name], f"{place}.{name}")
    for each in value if isinstance(value, list) else ():
        conforms(each, schema["items"], place + "[]")


def test_shapes_follow_from_the_sizes_that_are_fed(tmp_path: pathlib.Path) -> None:
    folder, report = tmp_path / "project", tmp_path / "report.json"
    folder.mkdir()
    out = run(folder, SPARSE, "--json", str(report))
    assert out.endswith("exit code 0\n"), out
    [graph] = json.loads(report.read_text())["graphs"]
    inputs = {row["name"]: row["shape"] for row in graph["inputs"]}
    assert inputs == {"x/indices:0": [2, 2], "x/values:0": [2], "x/shape:0": [2], "size:0": []}
    flops = {row["op"]: row["flops"] for row in graph["operators"]}
    assert flops["MatMul"] == 3 * 2 * 3 * 4 * 3, "3x4 by 4x3, and its two gradients"


def test_two_networks_are_two_graphs_and_no_file_stays(tmp_path: pathlib.Path, repo_root: pathlib.Path) -> None:
    folder, report = tmp_path / "project", tmp_path / "report.json"
    folder.mkdir()
    out = run(folder, SESSION, "--json", str(report), "--strict", "--product", "ascend910", "--predict")
    assert out.endswith("exit code 0\n"), out
    found = json.loads(report.read_text())
    conforms(found, json.loads((repo_root / "docs" / "assess.schema.json").read_text()))
    first, second = found["graphs"]
    assert [graph["name"] for graph in (first, second)] == ["session.run", "session.run (2)"]
    assert first["kind"] == second["kind"] == "train"
    assert first["inputs"] == [{"name": "x:0", "shape": [6, 4]}] and second["inputs"][0]["shape"] == [3, 4]
    assert [row["count"] for row in second["operators"] if row["op"].endswith("ApplyMomentum")] == [1]
    assert first["line"].startswith("script.py:") and first["line"] != second["line"]
    assert found["compiled_graphs"]["before_training"] == 2 and found["problems"] == []
    assert first["roofline"]["bound_seconds"] > 0
    assert first["prediction"]["step"]["value"] > second["prediction"]["device"]["value"] > 0
    assert [path.name for path in folder.iterdir()] == ["script.py"]


if tf.__version__ >= "2":

    @in_forks
    @pytest.mark.smoke
    def test_a_function_that_applies_gradients_is_a_training_step(tmp_path: pathlib.Path) -> None:
        folder, report = tmp_path / "project", tmp_path / "report.json"
        folder.mkdir()
        out = run(folder, FUNCTION, "--json", str(report), "--processor", "Ascend910A", "--apply")
        assert out.endswith("exit code 0\n"), out
        assert "a step on Ascend910A, predicted:" in out and "proposed options:" in out
        edit = out.partition("the proposed options as an edit:\n")[2]
        assert edit.splitlines()[0].startswith("# train, script.py:")
        assert edit.splitlines()[1].startswith("# batch size: ") and edit.splitlines()[1].endswith(" in place of 8")
        (graph,) = json.loads(report.read_text())["graphs"]
        assert graph["precision"]["mode"] == "allow_mix_precision"
        products = [op for op in graph["prediction"]["ops"] if op["type"].startswith("MatMul")]
        assert products and {op["inputs"][0].partition(";")[0] for op in products} == {"FLOAT16"}
        assert graph["kind"] == "train" and [each["shape"] for each in graph["inputs"]] == [[8, 3]]

    @in_forks
    def test_a_step_in_a_function_of_a_dataset_runs_on_the_host_and_is_not_predicted(tmp_path: pathlib.Path) -> None:
        folder, report = tmp_path / "project", tmp_path / "report.json"
        folder.mkdir()
        out = run(folder, IN_DATASET, "--json", str(report), "--predict", "--ranks", "8", "--strict")
        assert out.endswith("exit code 1\n") and "predicted" not in out, out
        (graph,) = json.loads(report.read_text())["graphs"]
        assert (graph["kind"], graph["prediction"]) == ("train", None)
        problems = [row["why"] for row in json.loads(report.read_text())["problems"] if "Dataset" in row["what"]]
        assert len(problems) == 1 and problems[0].startswith("runs on the host: its function holds the training step")

    @pytest.mark.smoke
    @pytest.mark.parametrize("method", sorted({"apply", "apply_gradients"} & set(dir(tf.keras.optimizers.SGD))))
    def test_eager_training_by_any_method_of_an_optimizer_is_noted(method: str) -> None:
        found = capture.Capture(str(pathlib.Path(__file__).parent))
        optimizer = tf.keras.optimizers.SGD(0.1)
        found.install()
        try:
            with pytest.raises(capture.Stop):
                getattr(optimizer, method)([])
        finally:
            patches.restore_all()
        assert pathlib.Path(__file__).name in str(found.eager_line)


def test_strict_fails_for_an_operator_of_the_host(tmp_path: pathlib.Path) -> None:
    folder, page = tmp_path / "project", tmp_path / "page.html"
    folder.mkdir()
    out = run(folder, SESSION, "--strict", "--html", str(page), "--", "host")
    assert out.endswith("exit code 1\n"), out
    assert "session.run: PyFunc runs on the host: the device has no such operator (script.py:13)" in out
    text = page.read_text()
    assert "PyFunc" in text and "<script" not in text and "prefers-color-scheme: dark" in text and "://" not in text


@pytest.mark.parametrize(
    "text, argument, message",
    [
        (SESSION, "never", "script.py ended without a training step: no session run, tf.function or Keras training"),
        (
            EAGER,
            "",
            "script.py trains in eager mode, at script.py:8, so there is no graph of a step. Put the step into",
        ),
    ],
    ids=["never", "eager"],
)
def test_a_script_without_a_training_step_in_a_graph_is_an_error(
    text: str, argument: str, message: str, tmp_path: pathlib.Path
) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    out = run(folder, text, "--", argument)
    assert message in out and out.endswith("exit code 2\n")
    assert [path.name for path in folder.iterdir()] == ["script.py"]


def test_updates_by_assignment_count_as_training() -> None:
    with tf.Graph().as_default():
        w = v1.get_variable("w", [3])
        gradient = v1.gradients(tf.reduce_sum(w * w), w)[0]
        update = v1.assign_sub(w, 0.1 * gradient)
        assert training_ops.has_gradient_updates(training_ops.needed_ops_with_functions([update.op]))
        assert not training_ops.has_gradient_updates(training_ops.needed_ops_with_functions([w.initializer]))
        assert not training_ops.has_gradient_updates(training_ops.needed_ops_with_functions([gradient.op]))
