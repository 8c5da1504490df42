"""``npu-shim export`` with TensorFlow: small models, and the same models built for inference."""

from __future__ import annotations

import importlib
import json
import pathlib
import re
import sys
import types
from typing import Any

import google.protobuf
import numpy as np
import pytest
import tensorflow as tf
from google.protobuf import text_format

import npu_shim
from npu_shim import cli
from npu_shim._tensorflow import tf_graph
from npu_shim.exporting import freezing, graph_defs, inference_model, ports, proof, sources
from npu_shim.ops.gelu import gelu
from samples import training
from tests.distributed import forks

v1 = tf.compat.v1
SHAPE = [4, 6, 6, 3]


def zero_debiased(average: Any, value: Any) -> Any:
    """Update an average as zero_debias_moving_mean of tf.contrib.layers.batch_norm does."""
    biased = v1.get_variable("biased", average.shape, trainable=False, initializer=v1.zeros_initializer())
    steps = v1.get_variable("steps", [], trainable=False, initializer=v1.zeros_initializer())
    sums = v1.assign_sub(biased, (biased - value) * 0.2)
    return v1.assign(average, sums / (1 - 0.8 ** v1.assign_add(steps, 1.0)))


def batch_norm(x: Any, name: str, training: Any, fused: bool) -> Any:
    """Batch normalization as layers write it, with the updates of its averages in UPDATE_OPS."""
    size = [int(x.shape[-1])]
    with v1.variable_scope(name):
        gamma, beta = v1.get_variable("gamma", size), v1.get_variable("beta", size)
        mean = v1.get_variable("mean", size, trainable=False, initializer=v1.zeros_initializer())
        variance = v1.get_variable("variance", size, trainable=False, initializer=v1.ones_initializer())
        if training is False:
            return tf.nn.batch_normalization(x, mean, variance, beta, gamma, 1e-3)
        if fused:
            y, now, spread = v1.nn.fused_batch_norm(x, gamma, beta, epsilon=1e-3, is_training=True)[:3]
        else:
            now, spread = tf.nn.moments(x, [0])
            y = tf.nn.batch_normalization(x, now, spread, beta, gamma, 1e-3)
            v1.add_to_collection(v1.GraphKeys.UPDATE_OPS, zero_debiased(mean, now))
        for average, value in ((mean, now), (variance, spread))[not fused :]:
            v1.add_to_collection(v1.GraphKeys.UPDATE_OPS, v1.assign_sub(average, (average - value) * 0.2))
        if training is True:
            return y
        averaged = tf.nn.batch_normalization(x, mean, variance, beta, gamma, 1e-3)
        return v1.cond(training, lambda: y, lambda: averaged)


def network(x: Any, training: Any) -> Any:
    """A convolution, both kinds of batch normalization, gelu, dropout."""
    h = tf.nn.conv2d(x, v1.get_variable("kernel", [3, 3, 3, 8]), strides=[1, 1, 1, 1], padding="SAME")
    h = tf.nn.relu(batch_norm(h, "fused", training, True))
    h = tf.matmul(tf.reshape(h, [-1, 6 * 6 * 8]), v1.get_variable("dense", [6 * 6 * 8, 16]))
    h = gelu(batch_norm(h, "by_hand", training, False))
    if training is True:
        h = v1.nn.dropout(h, rate=0.4)
    elif training is not False:
        h = v1.cond(training, lambda: v1.nn.dropout(h, rate=0.4), lambda: h)
    return tf.nn.softmax(tf.matmul(h, v1.get_variable("logits", [16, 5])), name="prob")


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A folder with a checkpoint of training, of a graph with a mode, a SavedModel, inputs and expected outputs."""
    folder = tmp_path_factory.mktemp("trained")
    images = np.random.RandomState(1).rand(20, 6, 6, 3).astype(np.float32)
    np.savez(folder / "data.npz", images=images[:4])
    with tf.Graph().as_default(), v1.Session() as session:
        data = v1.data.Dataset.from_tensor_slices(images).repeat().batch(4)
        prob = network(v1.data.make_one_shot_iterator(data).get_next(), True)
        with tf.control_dependencies(v1.get_collection(v1.GraphKeys.UPDATE_OPS)):
            loss = -tf.reduce_mean(tf.math.log(prob[:, 0]))
            step = v1.train.GradientDescentOptimizer(0.05).minimize(loss)
        session.run(v1.global_variables_initializer())
        for _ in range(5):
            session.run(step)
        v1.train.Saver().save(session, str(folder / "train" / "model.ckpt"))
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, [None, *SHAPE[1:]], "images")
        prob = network(x, v1.placeholder(tf.bool, [], "is_training"))
        saver = v1.train.Saver()
        saver.restore(session, str(folder / "train" / "model.ckpt"))
        saver.save(session, str(folder / "mode" / "model.ckpt"))
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, [None, *SHAPE[1:]], "images")
        prob = network(x, False)
        v1.train.Saver().restore(session, str(folder / "train" / "model.ckpt"))
        np.save(folder / "expected.npy", session.run(prob, {x: images[:4]}))
        v1.saved_model.simple_save(session, str(folder / "saved"), {"images": x}, {"prob": prob})
    return folder


def read(path: pathlib.Path) -> Any:
    return v1.GraphDef.FromString((path / "model.pb").read_bytes())


def run(path: pathlib.Path, values: Any) -> Any:
    """Return the outputs of an exported graph, by the names that are written beside it."""
    names = json.loads((path / "model.json").read_text())
    with tf.Graph().as_default(), v1.Session() as session:
        tf.import_graph_def(read(path), name="")
        feed = {port["tensor"]: values[key] for key, port in names["inputs"].items()}
        return session.run({key: port["tensor"] for key, port in names["outputs"].items()}, feed)


SOURCES = {
    "train": ["--outputs", "prob", "--inputs", "images=IteratorGetNext:0:4,6,6,3"],
    "mode": ["--outputs", "prob", "--inputs", "images:?,6,6,3"],
    "saved": [],
}


@pytest.mark.parametrize("source", SOURCES)
def test_the_export_is_the_graph_built_for_inference(
    source: str, trained: pathlib.Path, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = str(trained / "data.npz")
    assert cli.main(["export", str(trained / source), "-o", str(tmp_path), "--data", data, *SOURCES[source]]) == 0
    shown = capsys.readouterr().out
    assert "equal to the source" in shown
    assert ("1 dropout replaced" in shown, "2 batch norms use moving averages" in shown) == (source == "train",) * 2
    expected = np.load(trained / "expected.npy")
    np.testing.assert_allclose(run(tmp_path, np.load(data))["prob"], expected, atol=1e-5)
    graph = read(tmp_path)
    assert [node.name for node in graph.node if node.op == "Placeholder"] == ["images"]
    types = {node.op for node in graph.node}
    assert "Tanh" in types and not graph.library.function
    assert not types & {"Switch", "Merge", "RandomUniform", "IdentityN", "VariableV2", "VarHandleOp", "MulNoNan"}
    assert all("data_format" not in node.attr for node in graph.node), "defaults, which older versions may not know"


@pytest.fixture(scope="module")
def of_one_batch(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A checkpoint as a migrated script writes it: the batch is static, and reshapes have its size."""
    folder = tmp_path_factory.mktemp("of_one_batch")
    with tf.Graph().as_default(), v1.Session() as session:
        values = np.random.RandomState(1).rand(32, 6, 4).astype(np.float32), np.arange(32) % 3
        data = v1.data.Dataset.from_tensor_slices(values).repeat().batch(16, drop_remainder=True)
        images, labels = v1.data.make_one_shot_iterator(data).get_next()
        size = int(images.shape[0])
        h = tf.matmul(tf.reshape(images, [size, 24]), v1.get_variable("w", [24, 3]))
        tf.add(h, tf.zeros([size, 3]), "with_zeros")
        tf.nn.softmax(h, name="prob")
        loss = v1.losses.sparse_softmax_cross_entropy(labels, h)
        v1.train.GradientDescentOptimizer(0.05).minimize(loss)
        session.run(v1.global_variables_initializer())
        v1.train.Saver().save(session, str(folder / "model.ckpt"))
    return folder


@pytest.mark.parametrize("batch", ["16", "8", "1", "?"])
@pytest.mark.once
def test_a_batch_of_training_may_be_any_other(
    batch: str, of_one_batch: pathlib.Path, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["--inputs", f"images=IteratorGetNext:0:{batch},6,4", "--outputs", "prob"]
    assert cli.main(["export", str(of_one_batch), "-o", str(tmp_path), *given]) == 0
    assert ("reshapes to the batch 16 of training take any batch" in capsys.readouterr().out) == (batch != "16")
    size = int(batch) if batch.isdigit() else 5
    assert run(tmp_path, {"images": np.ones([size, 6, 4], "f4")})["prob"].shape == (size, 3)


@pytest.mark.once
def test_a_batch_that_is_needed_elsewhere_is_named(
    of_one_batch: pathlib.Path, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["--inputs", "images=IteratorGetNext:0:8,6,4", "--outputs", "with_zeros"]
    assert cli.main(["export", str(of_one_batch), "-o", str(tmp_path / "out"), *given]) == 2
    error = capsys.readouterr().err
    assert "the graph has the batch 16 of training, and does not fit the batch 8: " in error
    assert error.endswith(" Give --inputs with 16.\n") and not (tmp_path / "out").exists()


def test_candidates_are_results_and_their_inputs(
    of_one_batch: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Labels and losses are of training."""
    assert cli.main(["export", str(of_one_batch), "--list"]) == 0
    shown = [line.split()[0] for line in capsys.readouterr().out.splitlines()[3:]]
    assert shown[:3] == ["inputs", "IteratorGetNext:16,6,4", "outputs"]
    assert sorted(shown[3:]) == ["MatMul:16,3", "prob:16,3", "with_zeros:16,3"]


@pytest.mark.once
def test_another_export_is_overwritten_on_demand(
    trained: pathlib.Path, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["export", str(trained / "saved"), "-o", str(tmp_path)]
    assert cli.main([*command, "--inputs", "images:2,6,6,3"]) == 0
    assert cli.main([*command, "--inputs", "images:2,6,6,3", "--for", "npu"]) == 0, "with the same graph"
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    capsys.readouterr()
    assert cli.main([*command, "--inputs", "images:3,6,6,3"]) == 2
    assert "is another export. Give --force to overwrite it, or another -o or --name." in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    assert cli.main([*command, "--inputs", "images:3,6,6,3", "--force"]) == 0
    assert cli.main([*command, "--inputs", "images:4,6,6,3", "--name", "other"]) == 0
    assert json.loads((tmp_path / "model.json").read_text())["inputs"]["images"]["shape"][0] == 3


def test_a_keras_model_with_two_inputs_and_a_loop(tmp_path: pathlib.Path) -> None:
    layers = tf.keras.layers
    images, words = tf.keras.Input((6, 6, 3), name="images"), tf.keras.Input((5,), dtype="int32", name="words")
    h = layers.Dropout(0.5)(layers.BatchNormalization()(layers.Conv2D(4, 3, name="conv")(images)))
    read_words = layers.LayerNormalization()(layers.Embedding(9, 4)(words))
    both = layers.Concatenate()([layers.Flatten()(h), layers.LSTM(3)(read_words)])
    tf.keras.Model([images, words], layers.Dense(2, name="scores")(both)).save(str(tmp_path / "m.h5"))
    out = tmp_path / "out"
    given = ["--inputs", "images:2,6,6,3", "words:2,5", "--range", "0", "9"]
    assert cli.main(["export", str(tmp_path / "m.h5"), "-o", str(out), *given]) == 0
    scores = json.loads((out / "model.json").read_text())["outputs"]["scores"]
    assert scores["shape"] == [2, 2]
    again = ["--outputs", f"scores={scores['tensor']}", "--range", "0", "9"]
    assert cli.main(["export", str(out / "model.pb"), "-o", str(tmp_path / "again"), *again]) == 0
    assert not read(out).library.function
    assert not [node.name for node in read(out).node if graph_defs.is_training_batch_norm(node)]
    tf.keras.backend.clear_session()


@pytest.mark.parametrize("rounds_only", [False, True])
@pytest.mark.parametrize("installed", [False, True])
@pytest.mark.once
def test_sixteen_bits_round_more(
    rounds_only: bool, installed: bool, tmp_path: pathlib.Path, request: pytest.FixtureRequest
) -> None:
    """With npu_shim installed, an op without a kernel for 16 bits computes in float32 and casts its result."""
    request.addfinalizer(npu_shim.uninstall)
    if installed:
        npu_shim.install()
    for dtype, most in ((tf.float32, 1e-5), (tf.float16, 5e-3), (tf.bfloat16, 4e-2)):
        with tf.Graph().as_default() as graph:
            stored = tf.cast(tf.constant([0.5], tf.float16), tf.float32)
            x = tf.cast(stored + v1.placeholder(tf.float32, [1], "x"), dtype)
            tf.tanh(tf.cast(x, tf.float32) if rounds_only else x, "y")
        path = tmp_path / f"{dtype.name}.pb"
        path.write_bytes(graph.as_graph_def().SerializeToString())
        source = sources.open_source(str(path))
        made = inference_model.make_inference_model(
            source,
            graph,
            *ports.choose_inputs_and_outputs(source, graph, None, [], [ports.parse_asked_output("y")]),
            {},
        )
        assert proof.output_tolerance(made) == most


def test_strings_of_a_signature_are_left_out() -> None:
    classes, scores = ports.Port("classes", "a:0", tf.string, [2]), ports.Port("scores", "b:0", tf.float32, [2])
    kept, lines = ports.drop_string_outputs_and_note([classes, scores], False, "onnx")
    assert kept == [scores] and lines == ["classes is left out: onnx has no strings"]
    for outputs, is_asked in (([classes, scores], True), ([classes], False)):
        with pytest.raises(
            graph_defs.ExportError, match="classes is a string, which onnx does not have. Give --outputs"
        ):
            ports.drop_string_outputs_and_note(outputs, is_asked, "onnx")


def test_onnxruntime_runs_the_model(trained: pathlib.Path, tmp_path: pathlib.Path) -> None:
    given = ["-o", str(tmp_path), "--for", "onnx", "--data", str(trained / "data.npz"), "--opset", "13"]
    assert cli.main(["export", str(trained / "saved"), *given]) == 0
    session = importlib.import_module("onnxruntime").InferenceSession(str(tmp_path / "model.onnx"))
    [prob] = session.run(["prob"], {"images": np.load(trained / "data.npz")["images"]})
    np.testing.assert_allclose(prob, np.load(trained / "expected.npy"), atol=1e-5)


def test_buckets_are_comparisons_in_onnx(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    with tf.Graph().as_default() as graph:
        tf.raw_ops.Bucketize(input=v1.placeholder(tf.float32, [50], "x"), boundaries=[0.2, 0.5], name="bucket")
    (tmp_path / "graph.pb").write_bytes(graph.as_graph_def().SerializeToString())
    begun = ["export", str(tmp_path / "graph.pb"), "-o", str(tmp_path), "--outputs", "bucket"]
    assert cli.main([*begun, "--for", "onnx"]) == 0
    assert "buckets are counted by comparisons" in capsys.readouterr().out
    assert cli.main(begun) == 0
    assert "Bucketize" in {node.op for node in read(tmp_path).node}


def test_a_loop_with_variables(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    with tf.Graph().as_default(), v1.Session() as session:
        words = v1.placeholder(tf.int32, [None], "words")
        table = v1.get_variable("table", [9, 4], use_resource=True)
        kernel = v1.get_variable("kernel", [4, 4], use_resource=True)

        def loop(step: Any) -> Any:
            begin = (0, tf.zeros([tf.shape(words)[0], 4]))
            return tf.while_loop(lambda number, h: number < 3, lambda number, h: (number + 1, step(h)), begin)[1]

        tf.identity(loop(lambda h: tf.tanh(tf.matmul(h + tf.gather(table, words), kernel))), "h")
        tf.identity(loop(lambda h: gelu(h + tf.gather(table, words))), "gelu")
        tf.identity(loop(lambda h: tf.gather(table, words) + tf.random.uniform([])), "noise")
        keep = v1.placeholder(tf.float32, [], "keep_prob")
        tf.identity(loop(lambda h: h + v1.nn.dropout(tf.gather(table, words), keep_prob=keep)), "dropped")
        session.run(v1.global_variables_initializer())
        v1.train.Saver().save(session, str(tmp_path / "model.ckpt"))
    begun = ["export", str(tmp_path), "-o", str(tmp_path / "out"), "--force", "--range", "0", "9", "--outputs"]
    assert cli.main([*begun, "h", "gelu"]) == 0
    assert cli.main([*begun, "dropped", "--set", "keep_prob=1.0"]) == 0
    assert "1 dropout replaced by the input" in capsys.readouterr().out
    assert cli.main([*begun, "h", "--for", "onnx"]) == 0
    assert cli.main([*begun, "noise", "--for", "onnx"]) == 2
    assert "makes the outputs random" in capsys.readouterr().err


@pytest.mark.once
def test_a_missing_package_is_an_error_that_says_what_to_install(
    trained: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "tf2onnx.tfonnx", None)
    assert cli.main(["export", str(trained / "saved"), "-o", str(tmp_path), "--for", "onnx"]) == 2
    shown = capsys.readouterr().err
    assert "cannot import tf2onnx.tfonnx" in shown
    assert f"packaging numpy=={np.__version__} protobuf=={google.protobuf.__version__}. If pip finds none" in shown


@pytest.mark.once
def test_a_failure_of_onnxruntime_names_its_version_and_another(
    trained: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class InferenceSession:
        def __init__(self, path: str, providers: object) -> None:
            raise RuntimeError("Exception during initialization: RemoveNode failed.\n\n")

    runtime = types.SimpleNamespace(InferenceSession=InferenceSession, __version__="1.10.0")
    monkeypatch.setitem(sys.modules, "onnxruntime", runtime)
    assert cli.main(["export", str(trained / "saved"), "-o", str(tmp_path), "--for", "onnx"]) == 2
    shown = capsys.readouterr().err
    assert "onnxruntime 1.10.0 does not run" in shown and "RemoveNode failed. Try another --opset" in shown


def test_operators_of_libraries(tmp_path: pathlib.Path) -> None:
    """TensorFlow 1 has the operators of contrib; another operator is an error that names it."""
    graph = tf.Graph().as_graph_def()  # with the version of its operators
    for name, shape in (("steps", [3, 1, 2]), ("parents", [3, 1, 2]), ("lengths", [1]), ("end", [])):
        node = graph.node.add(name=name, op="Placeholder")
        node.attr["dtype"].type = tf.int32.as_datatype_enum
        node.attr["shape"].shape.CopyFrom(tf.TensorShape(shape).as_proto())
    tree = graph.node.add(name="tree", op="GatherTree", input=["steps", "parents", "lengths", "end"])
    tree.attr["T"].type = tf.int32.as_datatype_enum
    (tmp_path / "tree.pb").write_bytes(graph.SerializeToString())
    shown = command(tmp_path, "tree.pb", "--outputs", "tree", "-o", "out")
    assert ("equal to the source" if tf.__version__.startswith("1.") else "'GatherTree'") in shown
    assert shown.endswith(f"exit code {0 if tf.__version__.startswith('1.') else 2}\n") and "Traceback" not in shown


@pytest.mark.once
def test_the_command_of_atc_names_inputs_shapes_and_outputs(
    trained: pathlib.Path, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    begin = ["export", str(trained / "saved"), "-o", str(tmp_path), "--force", "--for", "atc"]
    begin += ["--soc-version", "Ascend310P3"]
    fixed = "--framework=3 --output=model --soc_version=Ascend310P3 --input_format=NHWC"
    end = "--out_nodes=prob:0 --precision_mode=force_fp16 --output_type=FP32"
    assert cli.main([*begin, "--inputs", "images:4,6,6,3"]) == 0
    shown = capsys.readouterr().out
    assert f"atc --model=model.pb {fixed} --input_shape=images:4,6,6,3 {end}\n" in shown
    assert "dynamic shape" not in shown and "not in the table" not in shown
    assert cli.main([*begin, "--inputs", "images:?,6,6,3", "--dynamic-batch", "1", "8", "--aipp"]) == 0
    batches = "--dynamic_batch_size=1,8 --insert_op_conf=model.aipp.cfg"
    assert f"--input_shape=images:-1,6,6,3 {end} {batches}\n" in capsys.readouterr().out
    assert (tmp_path / "model.atc.sh").read_text().split("atc \\\n")[1].count("--") == 11
    assert "src_image_size_w: 6" in (tmp_path / "model.aipp.cfg").read_text()
    assert cli.main([*begin, "--inputs", "images:4,6,6,3", "--dynamic-batch", "1", "8"]) == 2
    assert cli.main([*begin, "--inputs", "images:?,6,6,3"]) == 2
    assert "images:?,6,6,3 has an unknown size. Give all, like images:1,6,6,3." in capsys.readouterr().err


@pytest.mark.once
def test_the_npu_gets_a_session_config(trained: pathlib.Path, tmp_path: pathlib.Path) -> None:
    begin = ["export", str(trained / "saved"), "-o", str(tmp_path), "--for", "npu", "--inputs"]
    assert cli.main([*begin, "images:4,6,6,3", "--precision-mode", "must_keep_origin_dtype"]) == 0
    config = text_format.Parse((tmp_path / "model.config.pbtxt").read_text(), v1.ConfigProto())
    [npu] = config.graph_options.rewrite_options.custom_optimizers
    assert (npu.name, npu.parameter_map["graph_run_mode"].i) == ("NpuOptimizer", 0)
    assert npu.parameter_map["precision_mode"].s == b"must_keep_origin_dtype"
    assert cli.main([*begin, "images:?,6,6,3"]) == 2


@pytest.mark.once
def test_the_server_gets_versions_with_requests_for_its_warm_up(
    trained: pathlib.Path, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = np.load(trained / "data.npz")
    given = ["--for", "serving", "--name", "net", "--data", str(trained / "data.npz")]
    for _ in range(2):
        assert cli.main(["export", str(trained / "saved"), "-o", str(tmp_path), *given]) == 0
    assert f"--model_base_path={tmp_path / 'net'} --platform_config_file={tmp_path}" in capsys.readouterr().out
    with tf.Graph().as_default(), v1.Session() as session:
        loaded = v1.saved_model.load(session, ["serve"], str(tmp_path / "net" / "2")).signature_def["serving_default"]
        [x], y = loaded.inputs.values(), loaded.outputs["prob"]
        scores = session.run(y.name, {x.name: data["images"]})
    np.testing.assert_allclose(scores, np.load(trained / "expected.npy"), atol=1e-5)
    warm_up = tmp_path / "net" / "1" / "assets.extra" / "tf_serving_warmup_requests"
    [record, again] = v1.io.tf_record_iterator(str(warm_up))
    image = tf.make_tensor_proto(data["images"]).SerializeToString()
    assert record == again and record.endswith(image)


def test_the_files_for_the_server_are_those_that_parse_with_its_definitions(
    tmp_path: pathlib.Path, repo_root: pathlib.Path
) -> None:
    with tf.Graph().as_default() as graph:
        tf.add(v1.placeholder(tf.float32, [2], "x"), 1.0, "y")
    (tmp_path / "graph.pb").write_bytes(graph.as_graph_def().SerializeToString())
    np.savez(tmp_path / "data.npz", x=np.float32([1, 2]))
    given = ["--outputs", "y", "--for", "serving", "--name", "net", "--data", str(tmp_path / "data.npz")]
    assert cli.main(["export", str(tmp_path / "graph.pb"), "-o", str(tmp_path), *given]) == 0
    for name, kept in (
        ("net.platform.pbtxt", "net.platform.pbtxt"),
        ("net/1/assets.extra/tf_serving_warmup_requests", "net.warmup_requests"),
    ):  # tests/schemas/test_serving_definitions.py parses these
        assert (tmp_path / name).read_bytes() == (repo_root / "tests" / "schemas" / kept).read_bytes()


def test_ops_that_the_device_lacks_are_named(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    with tf.Graph().as_default() as graph:
        x = v1.placeholder(tf.float32, [4, 3], "x")
        tf.add(tf.cast(tf.where(x > 0), tf.float32), 1.0, "places")
    (tmp_path / "graph.pb").write_bytes(graph.as_graph_def().SerializeToString())
    (tmp_path / "ops.json").write_text('{"Greater": {"isGray": false}, "Cast": {"isGray": false}}')
    card = ["--for", "atc", "--soc-version", "Ascend310P3", "--opp", str(tmp_path / "ops.json")]
    arguments = ["--outputs", "places", "--range", "-1", "1", *card]
    assert cli.main(["export", str(tmp_path / "graph.pb"), "-o", str(tmp_path), *arguments]) == 0
    shown = capsys.readouterr().out
    assert "not in ops.json: Where, 1 times, first Where" in shown and "not in ops.json: Cast" not in shown
    assert "dynamic shape: Where:0 (Where)" in shown


SESSION = """
import sys
import numpy as np
import tensorflow as tf

v1 = tf.compat.v1
v1.disable_eager_execution()
x = v1.placeholder(tf.float32, [None, 4], "x")
keep = v1.placeholder(tf.float32, [], "keep_prob")
h = v1.nn.dropout(tf.matmul(x, v1.get_variable("kernel", [4, 3])), keep_prob=keep)
places = tf.cast(tf.where(h > 0), tf.float32, name="places")
loss = v1.losses.mean_squared_error(tf.zeros_like(h), h)
step = v1.train.GradientDescentOptimizer(0.1).minimize(loss)
session = v1.train.MonitoredSession()
if "train" in sys.argv:
    session.run(step, {x: np.ones([2, 4]), keep: 0.5})
open("not_left.txt", "w").close()
print(session.run([places, h], {x: np.ones([2, 4]), keep: 1.0}))
"""
FUNCTIONS = """
import numpy as np
import tensorflow as tf

kernel = tf.Variable(tf.ones([4, 3]))

@tf.function
def halve(x):
    return x / 2

@tf.function
def size_of_kernel():
    return tf.reduce_sum(kernel)

@tf.function
def predict(x):
    return tf.matmul(x, kernel)

print(size_of_kernel())
predict(halve(tf.ones([2, 4])))
"""
KERAS = """
import numpy as np
import tensorflow as tf

class Net(tf.keras.Model):
    def __init__(self):
        super().__init__()
        self.dense, self.drop = tf.keras.layers.Dense(3), tf.keras.layers.Dropout(0.5)

    def call(self, x, training=False):
        return self.drop(self.dense(x), training=training)

net = Net()
net.predict(np.ones([6, 4], "float32"))
"""
GAN = """
import tensorflow as tf

layers = tf.keras.layers
augment = tf.keras.Sequential([layers.Rescaling(0.5)])
generator = tf.keras.Sequential([layers.Input((3,)), tf.keras.Sequential([layers.Dense(4)])], name="generator")
judge = tf.keras.Sequential([layers.Input((4,)), layers.Dense(1)], name="judge")

@tf.function
def step(noise):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(judge(generator(augment(noise), training=True), training=True))
    weights = generator.trainable_variables
    tf.keras.optimizers.SGD().apply_gradients(zip(tape.gradient(loss, weights), weights))

step(tf.ones([2, 3]))
"""


def export(folder: pathlib.Path, text: str, *arguments: str) -> str:
    """Export the model of a script, and return what the command prints, its exit code in the last line."""
    folder.mkdir(exist_ok=True)
    (folder / "script.py").write_text(text)
    return command(folder, "--script", "script.py", "-o", str(folder / "out"), "--force", *arguments)


def command(folder: pathlib.Path, *arguments: str) -> str:
    """Return what the command prints in a process of its own, with its exit code in the last line."""
    driver = folder.parent / f"{folder.name}_driver.py"
    driver.write_text("import sys\nfrom npu_shim import cli\nprint('exit code', cli.main(['export', *sys.argv[1:]]))\n")
    log = folder.parent / f"{folder.name}.log"
    return forks.run_script(driver, *arguments, log=log, environ=training.environment(), cwd=folder)


def test_a_script_runs_until_it_predicts(tmp_path: pathlib.Path) -> None:
    (tmp_path / "ops.json").write_text('{"MatMul": {"isGray": false}, "Cast": {"isGray": false}}')
    card = ["--for", "atc", "--soc-version", "Ascend310P3", "--opp", str(tmp_path / "ops.json"), "--inputs", "x:2,4"]
    shown = export(tmp_path / "predict", SESSION, *card)
    assert shown.endswith("equal to the source\nexit code 0\n"), shown
    assert "script.py: graph at script.py:18, " in shown and "keep_prob is 1.0" in shown
    assert "1 dropout replaced by the input" in shown
    assert "not in ops.json: Where, 1 times, first Where, at script.py:11" in shown
    assert not (tmp_path / "predict" / "not_left.txt").exists()
    shown = export(tmp_path / "train", SESSION, "--list", "--", "train")
    assert "script.py: graph at script.py:16\n" in shown and re.search(
        r"  outputs\n    dropout/\w+:\?,3  float32\n", shown
    )


def test_a_checkpoint_without_its_graph_and_the_script(tmp_path: pathlib.Path) -> None:
    with tf.Graph().as_default(), v1.Session() as session:
        kernel, _ = v1.get_variable("kernel", [4, 3]), v1.train.create_global_step()
        session.run(v1.global_variables_initializer())
        v1.train.Saver().save(session, str(tmp_path / "steps" / "model.ckpt"), write_meta_graph=False)
        expected = session.run(tf.reduce_sum(kernel, 0))
    shown = export(tmp_path / "predict", SESSION, str(tmp_path / "steps"), "--outputs", "MatMul", "--inputs", "x:2,4")
    assert shown.endswith("equal to the source\nexit code 0\n"), shown
    [made] = run(tmp_path / "predict" / "out", {"x": np.ones([2, 4])}).values()
    np.testing.assert_allclose(made, [expected] * 2, rtol=1e-5)


@pytest.mark.once
def test_a_script_runs_until_it_calls_its_model(tmp_path: pathlib.Path) -> None:
    scope: Any = {}
    exec(KERAS, scope)
    tf.train.Checkpoint(other=tf.Variable([1.0]), model=scope["net"]).save(str(tmp_path / "steps" / "model"))
    (tmp_path / "ops.json").write_text('{"BiasAdd": {"isGray": false}}')
    card = ["--for", "atc", "--soc-version", "Ascend310P3", "--opp", str(tmp_path / "ops.json")]
    shown = export(tmp_path / "keras", KERAS, str(tmp_path / "steps"), *card, "--inputs", "input_0:2,4")
    assert "MatMul, at script.py:11" in shown, shown
    shown = export(tmp_path / "keras", KERAS, str(tmp_path / "steps"))
    assert shown.endswith("equal to the source\nexit code 0\n"), shown
    assert re.search(r"script.py: (net|graph) at script.py:14, ", shown) and ":?,4  float32" in shown
    ones = np.ones([2, 4], np.float32)
    [(key, _)] = json.loads((tmp_path / "keras" / "out" / "model.json").read_text())["inputs"].items()
    [made] = run(tmp_path / "keras" / "out", {key: ones}).values()
    np.testing.assert_allclose(made, scope["net"](ones), rtol=1e-5)


@pytest.mark.once
def test_a_function_without_variables_or_without_inputs_is_not_the_model(tmp_path: pathlib.Path) -> None:
    shown = export(tmp_path / "functions", FUNCTIONS)
    assert shown.endswith("equal to the source\nexit code 0\n"), shown
    assert "predict at script.py:20" in shown and ":2,4  float32" in shown, shown


@pytest.mark.once
def test_a_script_with_several_models_asks_for_one(tmp_path: pathlib.Path) -> None:
    shown = export(tmp_path / "gan", GAN)
    assert "script.py has the signatures generator, judge, sequential" in shown and "exit code 2" in shown, shown
    shown = export(tmp_path / "judge", GAN, "--signature", "judge")
    assert shown.endswith("equal to the source\nexit code 0\n") and ":?,4  float32" in shown, shown


@pytest.mark.once
def test_list_shows_signatures_and_candidates(trained: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["export", str(trained / "saved"), "--list"]) == 0
    shown = capsys.readouterr().out
    assert "signature serving_default" in shown and "images:?,6,6,3  float32" in shown and "prob:?,5  float32" in shown
    assert cli.main(["export", str(trained / "train"), "--list"]) == 0
    shown = capsys.readouterr().out
    assert "IteratorGetNext:?,6,6,3  float32" in shown and "prob:?,5  float32" in shown and "gradients" not in shown


def test_updates_of_variables_are_no_likely_outputs() -> None:
    with tf.Graph().as_default() as graph:
        x = v1.placeholder(tf.float32, [4, 3], "x")
        v1.assign_sub(v1.get_variable("average", [3]), tf.reduce_mean(x, 0), name="update")
        tf.matmul(x, v1.get_variable("kernel", [3, 2]), name="y")
    assert [port.tensor for port in ports.candidate_outputs(graph)] == ["y:0"]


def test_sides_of_branches_are_no_likely_outputs() -> None:
    with tf.Graph().as_default() as graph:
        x = v1.placeholder(tf.float32, [4], "x") * v1.get_variable("w", [4])
        _, side = tf.raw_ops.Switch(data=x, pred=v1.placeholder(tf.bool, []))
        tf.add(side, 1.0, "y")
    assert [port.tensor for port in ports.candidate_outputs(graph)] == ["y:0"]


@pytest.mark.parametrize("distance", [tf.square, tf.abs, tf.nn.l2_loss], ids=["square", "abs", "l2_loss"])
def test_distances_of_a_loss_name_likely_outputs(distance: Any) -> None:
    with tf.Graph().as_default() as graph:
        x, y = (v1.placeholder(tf.float32, [4, 3], name) for name in "xy")
        out = tf.add(tf.matmul(x, v1.get_variable("kernel", [3, 3])), 1.0, "out")
        centered = tf.square(out - tf.reduce_mean(out, 0))
        tf.reduce_sum(distance(out - y)) + tf.reduce_sum(centered)
    assert ports.candidate_outputs(graph)[0].tensor == "out:0"


@pytest.mark.parametrize("fixed", [False, True])
def test_the_batch_of_training_may_become_another(
    fixed: bool, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with tf.Graph().as_default() as graph:
        x = v1.placeholder(tf.float32, [8, 2, 3], "x")
        flat = tf.reshape(x, [8 if fixed else -1, 6])
        tf.add(flat, np.ones([8, 6]) if fixed else 1.0, "y")
    (tmp_path / "graph.pb").write_bytes(graph.as_graph_def().SerializeToString())
    arguments = ["export", str(tmp_path / "graph.pb"), "-o", str(tmp_path), "--outputs", "y", "--inputs"]
    assert cli.main([*arguments, "x:1,2,3"]) == (2 if fixed else 0)
    shown = capsys.readouterr()
    assert (
        "the graph has the batch 8 of training, and does not fit the batch 1: y:0 keeps 8." in shown.err
        if fixed
        else "y:1,6" in shown.out
    )
    assert cli.main([*arguments, "x:8,2,4"]) == 2
    assert "x has the shape (8, 2, 3), not [8, 2, 4]" in capsys.readouterr().err


def test_a_model_that_computes_something_else_is_reported(
    trained: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    real = freezing.freeze_variables
    monkeypatch.setattr(
        freezing,
        "freeze_variables",
        lambda graph, values, kept: real(graph, {k: v * 1.01 for k, v in values.items()}, kept),
    )
    assert cli.main(["export", str(trained / "saved"), "-o", str(tmp_path)]) == 1
    assert "differs from the source by more than 1e-05: no file was written" in capsys.readouterr().out
    assert not list(tmp_path.iterdir())


def test_ops_without_a_form_for_inference_are_errors(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with tf.Graph().as_default() as graph:
        x = v1.placeholder(tf.float32, [4, 3], "x")
        tf.identity(x + tf.random.normal([4, 3]), "noisy")
        mean, variance = tf.nn.moments(x, [0])
        tf.nn.batch_normalization(x, mean, variance, None, None, 1e-3, name="of_batch")
        tf.add(x, v1.placeholder(tf.float32, [], "rate"), name="fed")
        tf.reshape(v1.placeholder(tf.float32, [None, None], "any"), [-1, 7], "sevens")
        keep = v1.placeholder(tf.float32, [None], "keep")
        tf.identity(v1.nn.dropout(x, keep_prob=keep[0]), "kept")
        tf.multiply(x / keep[0], tf.cast(tf.random.uniform([4, 3]) < keep[1], tf.float32), "confused")
        tf.multiply(x / 0.5, tf.cast(tf.random.uniform([4, 3]) < 0.9, tf.float32), "scaled")
        tf.multiply(x * 3.0, tf.floor(0.8 + tf.random.uniform([4, 1])) / 0.8, "path")
        tf.identity(tf.strings.to_number(v1.placeholder(tf.string, [2], "text")), "read")
        v1.py_func(lambda value: value, [x], tf.float32, name="python")
    path = tmp_path / "graph.pb"
    path.write_bytes(graph.as_graph_def().SerializeToString())
    for arguments, message in (
        (["--outputs", "noisy"], "makes the outputs random. Make it an input"),
        (["--outputs", "of_batch/add_1"], "is the variance of a batch, and has no moving average. Build the graph"),
        (["--outputs", "sevens"], "the model does not run on these inputs: "),
        (["--outputs", "kept"], "1 dropout replaced by the input"),
        (["--outputs", "path"], "1 dropout replaced by the input"),
        (["--outputs", "read"], "text is a string, and no values can be drawn"),
        (["--outputs", "confused"], "confused keeps 0.25 of its input and scales it by 2"),
        (["--outputs", "scaled"], "scaled keeps 0.9 of its input and scales it by 2, which changes the mean. Build"),
        (["--outputs", "fed", "--inputs", "x"], "rate"),
        (["--outputs", "python"], "calls Python"),
        ([], "has no signature. Give --outputs. Candidates:"),
        (["--outputs", "nothing"], "the graph has no tensor nothing:0"),
        (["--outputs", "fed", "--inputs", "x:4,4"], "x has the shape (4, 3), not [4, 4]"),
        (["--outputs", "fed", "--inputs", "x:0,3"], "is not allowed. Write [KEY=]TENSOR[:SHAPE]"),
        (["--outputs", "fed", "--signature", "other"], "has no signature other"),
        (["--outputs", "fed", "--set", "rate"], "--set rate is not allowed"),
        (["--outputs", "fed", "--data", str(tmp_path / "none.npz")], "Give a file that numpy.savez wrote"),
    ):
        expected = 0 if message in ("rate", "1 dropout replaced by the input") else 2
        assert cli.main(["export", str(path), "-o", str(tmp_path / "out"), "--force", *arguments]) == expected, (
            arguments
        )
        shown = capsys.readouterr()
        assert message in shown.out + shown.err
    assert cli.main(["export", str(path), "-o", str(tmp_path), "--outputs", "fed", "--set", "rate=0.5"]) == 0
    assert run(tmp_path, {"x": np.zeros([4, 3])})["fed"].tolist() == [[0.5] * 3] * 4


def test_each_version_loads_what_another_exported() -> None:
    saved = np.load(
        pathlib.Path(__file__).parent / "models" / "exported_by_2_21.npz"
    )  # of Keras 3: layers of all kinds
    with tf.Graph().as_default(), v1.Session() as session:
        tf.import_graph_def(v1.GraphDef.FromString(saved["graph"].tobytes()), name="")
        prob = session.run(str(saved["tensor"]), {str(saved["input"]): saved["images"]})
    np.testing.assert_allclose(prob, saved["prob"], atol=1e-5)


def test_ops_that_1_15_does_not_have_are_named() -> None:
    graph = tf.Graph().as_graph_def()  # with the version of its operators
    graph.node.add(name="a", op="Abs").attr["T"].type = 1
    assert inference_model.ops_later_than_1_15(graph) == []
    graph.node.add(name="b", op="Abs").attr["later"].i = 1
    graph.node.add(name="c", op="BatchMatMulV3")
    abs_, matmul = inference_model.ops_later_than_1_15(graph)
    assert "no Abs with later: the graph" in abs_ and "no BatchMatMulV3: the graph" in matmul
    known = inference_model.operator_attributes_of_1_15()
    for op in tf_graph.operator_definitions():
        attributes = {each.name for each in op.attr}
        if op.name in known:
            assert attributes == known[op.name] if tf.__version__.startswith("1.") else attributes >= known[op.name]
    assert len(known) > 800


def test_a_frozen_layer_normalization_keeps_its_epsilon() -> None:
    """TensorFlow's remapping pass replaces it by 0.001 in some versions if gamma and beta are constants."""
    x = np.random.RandomState(0).randn(2, 8, 16).astype("f4") * 0.01
    with tf.Graph().as_default() as graph:
        given = v1.placeholder(tf.float32, x.shape, "x")
        mean = tf.reduce_mean(given, [2], keepdims=True)
        variance = tf.reduce_mean(tf.math.squared_difference(given, tf.stop_gradient(mean)), [2], keepdims=True)
        scale = tf.math.rsqrt(variance + 1e-6) * tf.constant(np.ones(16, "f4"))
        tf.identity(given * scale + (tf.constant(np.zeros(16, "f4")) - mean * scale), "y")
    sides = [[ports.Port(name, f"{name}:0", tf.float32, list(x.shape))] for name in "xy"]
    found = proof.run_graph(graph.as_graph_def(), {}, *sides, {"x": x})["y"]
    expected = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-6)
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_names_of_inputs_and_differences() -> None:
    assert ports.parse_asked_input("images=IteratorGetNext:0:8,?,3") == ("images", "IteratorGetNext:0", [8, None, 3])
    assert ports.parse_asked_input("x:8") == (None, "x", [8]) and ports.parse_asked_input("a/b:1:") == (
        None,
        "a/b:1",
        [],
    )
    ((key, largest, _),) = proof.output_differences({"y": np.array([0.0, 4.0])}, {"y": np.array([0.0, 5.0])})
    assert (key, largest) == ("y", 0.25)
    assert proof.output_differences({"y": np.array([np.nan])}, {"y": np.array([0.0])})[0].largest == float("inf")
    assert proof.output_differences({"y": np.array([1, 2])}, {"y": np.array([1, 3])})[0].largest == 0.5
