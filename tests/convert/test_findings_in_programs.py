"""Findings in programs of common shapes: those that they need, and none where nothing has to be done."""

from __future__ import annotations

import pathlib

import pytest
from convert_tf2npu.engine.converter import Converter
from convert_tf2npu.engine.settings import Settings
from convert_tf2npu.main import main

TF = "import tensorflow as tf\n"
TRAIN = TF + "train_op = tf.train.AdamOptimizer(0.1).minimize(loss)\n"


def found(text: str, code: str, distributed: str = "tf_strategy") -> list[tuple[int, str]]:
    result = Converter(Settings(select=(code,), distributed=distributed)).convert(text.encode())
    assert not result.unreadable
    return [(each.line, each.message) for each in result.diagnostics]


def reports(files: dict[str, str], code: str, folder: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Return the lines of the terminal on a project, as ``file:line:column: code message``."""
    for name, text in files.items():
        (folder / name).write_text(text)
    main(["-i", str(folder), "-d", "tf_strategy", "--select", code, "-v"])
    return [line for line in capsys.readouterr().err.splitlines() if f" {code} " in line]


@pytest.mark.parametrize(
    "initialize, fix",
    [
        ("tf.global_variables_initializer().run()", "tf.get_default_session()"),
        ("init = tf.global_variables_initializer()\ninit.run()", "tf.get_default_session()"),
        ("tf.global_variables_initializer().run(session=sess)", "sess"),
        ("tf.initialize_all_variables().run({}, self.sess)", "self.sess"),
        ("sess.run(tf.global_variables_initializer())", "sess"),
        ("sess.run([tf.tables_initializer(), tf.global_variables_initializer()])", "sess"),
    ],
)
def test_variables_are_broadcast_after_each_form_of_the_initializer(initialize: str, fix: str) -> None:
    text = TRAIN + "with tf.Session() as sess:\n" + "".join(f"    {line}\n" for line in initialize.splitlines())
    [(line, message)] = found(text + "    sess.run(train_op)\n", "NPU251")
    assert line == 3 + len(initialize.splitlines())
    assert message.endswith(f"write {fix}.run(hccl_ops.broadcast(tf.global_variables(), 0))")


def test_the_fix_takes_tensorflow_as_the_initializer_does() -> None:
    text = TF + "train_op = tf.compat.v1.train.AdamOptimizer(0.1).minimize(loss)\n"
    [(_, message)] = found(text + "tf.compat.v1.global_variables_initializer().run()\n", "NPU251")
    assert "tf.compat.v1.get_default_session().run(hccl_ops.broadcast(tf.compat.v1.global_variables(), 0))" in message


@pytest.mark.parametrize(
    "files, line",
    [
        (
            {
                "model.py": TF + "class Model:\n    def __init__(self, loss):\n"
                "        self.train = tf.train.AdamOptimizer(0.1).minimize(loss)\n"
                "        self.init = tf.global_variables_initializer()\n",
                "train.py": TF
                + "from model import Model\nmodel = Model(loss)\nsess = tf.Session()\nsess.run(model.init)\n",
            },
            "train.py:5",
        ),
        (
            {
                "setup.py": TF + "def prepare(sess):\n    sess.run(tf.global_variables_initializer())\n",
                "train.py": TRAIN
                + "from setup import prepare\nsess = tf.Session()\nprepare(sess)\nsess.run(train_op)\n",
            },
            "setup.py:3",
        ),
    ],
    ids=["the initializer", "the function that runs it"],
)
def test_an_initializer_of_another_file_is_found(
    files: dict[str, str], line: str, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    [shown] = reports(files, "NPU251", tmp_path, capsys)
    assert line in shown and "sess.run(hccl_ops.broadcast(tf.global_variables(), 0))" in shown


@pytest.mark.parametrize(
    "save",
    [
        "model.saver.save(sess, 'ckpt')",
        "self.saver.save(sess, 'ckpt', global_step=3)",
        "tf.train.Saver().save(sess, 'c')",
    ],
)
def test_a_saver_is_found_where_it_is_an_attribute(save: str) -> None:
    assert found(TRAIN + save + "\n", "NPU253") == [
        (3, f"all ranks write to the same checkpoint folder. Write if get_rank_id() == 0: {save}")
    ]


@pytest.mark.parametrize(
    "save", ["model.save('m.h5')", "model.save_weights('w')", "tf.keras.models.save_model(model, 'm')"]
)
def test_the_files_of_a_keras_model_are_found(save: str) -> None:
    model = TF + "model = tf.keras.Sequential()\nmodel.compile('adam', 'mse')\nmodel.fit(x, y); tf.Session()\n"
    assert found(model + save + "\n", "NPU253") == [
        (5, f"all ranks write to the same checkpoint folder. Write if get_rank_id() == 0: {save}")
    ]
    assert found(model + f"if get_rank_id() == 0:\n    {save}\n", "NPU253") == []


def test_a_script_that_only_exports_a_model_may_save_it() -> None:
    assert found(TF + "tf.keras.models.save_model(tf.keras.models.load_model('a'), 'b')\n", "NPU253") == []


def test_dropout_of_the_inputs_and_the_outputs_of_a_cell_is_one_finding() -> None:
    text = TF + "cell = tf.nn.rnn_cell.DropoutWrapper(cell, 0.9, output_keep_prob=keep)\n"
    [(_, message)] = found(text, "NPU246", "")
    assert "npu_ops.dropout(inputs, keep_prob=0.9) and npu_ops.dropout(outputs, keep_prob=keep)" in message


@pytest.mark.parametrize("save", ["image.save('a.png')", "np.save('a', x)", "game.save(slot)", "self.saver = 1"])
def test_savers_of_other_objects_are_not_reported(save: str) -> None:
    assert found(TRAIN + save + "\n", "NPU253") == []


@pytest.mark.parametrize(
    "data",
    [
        "tf.data.Dataset.list_files('train.tfrecord').shard(2, 0)",
        "tf.data.Dataset.list_files('train.tfrecord').shuffle(9).repeat().shard(2, 0)",
        "tf.data.Dataset.from_tensor_slices(['train.tfrecord']).shard(2, 0)",
    ],
)
def test_a_dataset_of_one_file_name_that_is_sharded_is_reported(data: str) -> None:
    text = TRAIN + f"def train_input_fn():\n    return {data}.interleave(tf.data.TFRecordDataset, 4)\n"
    assert found(text, "NPU252") == [
        (4, "this dataset has one file name, so all ranks but one get no data. Shard after the file is read")
    ]


@pytest.mark.parametrize(
    "data",
    [
        "tf.data.Dataset.list_files('train-*').shard(2, 0)",
        "tf.data.Dataset.list_files(FLAGS.files).shard(2, 0)",
        "tf.data.Dataset.from_tensor_slices(['a', 'b']).shard(2, 0)",
        "tf.data.TFRecordDataset('train.tfrecord').shard(2, 0)",
    ],
)
def test_other_sharded_data_is_not_reported(data: str) -> None:
    assert found(TRAIN + f"def train_input_fn():\n    return {data}.batch(3)\n", "NPU252") == []


def test_the_records_of_files_are_sharded_and_not_their_names() -> None:
    text = TRAIN + "def train_input_fn():\n    files = tf.data.Dataset.list_files('train-*')\n"
    [(line, message)] = found(text + "    return files.interleave(tf.data.TFRecordDataset, 4).batch(8)\n", "NPU252")
    assert line == 4 and "After they are read, write dataset = dataset.shard(get_rank_size(), get_rank_id())" in message


@pytest.mark.parametrize("word", ["test", "eval", "val", "valid", "validation", "dev", "test_images", "x_test"])
def test_evaluation_data_is_not_training_data(word: str) -> None:
    text = TF + f"{word}_ds = tf.data.Dataset.from_tensor_slices(({word}, y)).batch(32)\n"
    text += f"other = tf.data.Dataset.from_tensor_slices(({word}, {word}_labels)).batch(32)\n"
    assert found(text + "model.fit(train_ds)\n", "NPU252") == []


@pytest.mark.parametrize(
    "apply",
    [
        "tf.train.AdamOptimizer(0.1).apply_gradients(zip(clipped, v))",
        "opt = tf.train.AdamOptimizer(0.1)\nopt.apply_gradients(zip(clipped, v))",
    ],
)
def test_gradients_are_averaged_once_and_before_they_are_clipped(apply: str) -> None:
    text = (
        TF + "v = tf.trainable_variables()\nclipped, norm = tf.clip_by_global_norm(tf.gradients(loss, v), 5)\n" + apply
    )
    result = Converter(Settings(distributed="tf_strategy")).convert((text + "\n").encode())
    assert result.new is not None
    new = result.new.decode()
    assert "tf.clip_by_global_norm(npu_allreduce(tf.gradients(loss, v)), 5)" in new
    assert "npu_distributed_optimizer_wrapper" not in new and new.count("npu_allreduce") == 1


def test_the_mixed_precision_of_an_estimator_is_set_in_its_run_configuration(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rewrite = TF + "def build(opt):\n    return tf.train.experimental.enable_mixed_precision_graph_rewrite(opt)\n"
    shown = reports({"optimization.py": rewrite}, "NPU116", tmp_path, capsys)
    assert "pass precision_mode='allow_mix_precision' to npu_config_proto" in shown[0]
    run = TF + "from optimization import build\ntf.estimator.Estimator(fn, config=tf.estimator.RunConfig())\n"
    shown = reports({"optimization.py": rewrite, "run.py": run}, "NPU116", tmp_path, capsys)
    assert "pass precision_mode='allow_mix_precision' to NPURunConfig" in shown[0]


@pytest.mark.parametrize(
    "line, count",
    [
        ("tf.keras.mixed_precision.set_global_policy('mixed_float16')", 1),
        (
            "policy = tf.keras.mixed_precision.Policy('mixed_float16')\ntf.keras.mixed_precision.set_global_policy(policy)",
            1,
        ),
        ("tf.keras.mixed_precision.experimental.set_policy('mixed_float16')", 1),
        ("opt = tf.keras.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.Adam())", 1),
        ("tf.keras.mixed_precision.set_global_policy('float32')", 0),
    ],
)
def test_the_mixed_precision_of_keras_is_reported_in_graph_mode(line: str, count: int) -> None:
    off = TF + "tf.compat.v1.disable_v2_behavior()\n"
    assert len(found(off + line + "\n", "NPU116", "")) == count


@pytest.mark.parametrize("line, count", [("", 1), ("tf.enable_eager_execution()\n", 0)])
def test_the_mixed_precision_of_keras_in_a_module_of_a_program_of_tensorflow_1(
    line: str, count: int, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    policy = TF + "tf.keras.mixed_precision.experimental.set_policy('mixed_float16')\n"
    train = TF + "import policy\n" + line + "x = tf.placeholder(tf.float32)\n"
    assert len(reports({"policy.py": policy, "train.py": train}, "NPU116", tmp_path, capsys)) == count


def test_the_mixed_precision_of_keras_in_eager_programs() -> None:
    eager = TF + "@tf.function\ndef f(x):\n    return x\n"
    ((_, message),) = found(eager + "tf.keras.mixed_precision.set_global_policy('mixed_float16')\n", "NPU116", "")
    option = "npu.global_options().precision_mode = 'allow_mix_precision' before npu.open()"
    assert option + " and use NpuLossScaleOptimizer" in message


@pytest.mark.parametrize(
    "use, fix",
    [
        ("tf.Session()", "npu_config_proto"),
        ("tf.train.Supervisor().managed_session()", "npu_config_proto"),
        ("tf.contrib.slim.learning.train(op, 'logs')", "npu_config_proto"),
        ("", "npu_config_proto"),
        ("tf.keras.Sequential().train_on_batch(x, y)", "set_keras_session_npu_config(config=npu_config_proto("),
        ("tf.keras.Sequential().fit(x, y)", "set_keras_session_npu_config(config=npu_config_proto("),
    ],
)
def test_the_advice_on_mixed_precision_names_the_configuration_that_the_tool_writes(use: str, fix: str) -> None:
    rewrite = "opt = tf.train.experimental.enable_mixed_precision_graph_rewrite(opt)\n"
    text = TF + "tf.disable_v2_behavior()\nhidden = tf.keras.layers.Dense(3)(x)\n" + rewrite + use + "\n"
    ((_, message),) = found(text, "NPU116", "")
    assert fix in message
    written = Converter(Settings()).convert(text.encode()).new
    assert not use or written is None or fix.partition("(")[0].encode() in written


ADAM = "opt = tf.train.experimental.enable_mixed_precision_graph_rewrite(tf.train.AdamOptimizer())\n"


@pytest.mark.parametrize(
    "text",
    [
        ADAM + "sess = tf.Session(config=config)\n",
        "def build():\n    "
        + ADAM
        + "    return opt.minimize(loss)\ndef main():\n    op = build()\n    sess = tf.Session()\n",
        ADAM + "sess = tf.train.MonitoredSession()\n",
        ADAM + "with tf.train.Supervisor().managed_session(master, config) as sess:\n    pass\n",
        ADAM.replace("())", "(), 128)") + "tf.contrib.slim.learning.train(opt.minimize(loss), 'logs')\n",
    ],
)
def test_a_graph_rewrite_becomes_the_precision_mode_of_each_session(text: str) -> None:
    written = Converter(Settings()).convert((TF + text).encode()).new.decode()
    assert (
        "precision_mode='allow_mix_precision')" in written
        and "NPULossScaleOptimizer(tf.train.AdamOptimizer()" in written
    )
    assert found(written, "NPU116", "") == [] and Converter(Settings()).convert(written.encode()).new is None


@pytest.mark.parametrize(
    "text",
    [
        "if fp16:\n    " + ADAM + "sess = tf.Session()\n",  # in some runs only
        "sess = tf.Session()\n" + ADAM,  # rewrites no graph of an earlier session
        "def train():\n    " + ADAM + "    sess = tf.Session()\ndef evaluate():\n    sess = tf.Session()\n",
        "def build(opt):\n    if not amp:\n        return opt\n    return "
        "tf.train.experimental.enable_mixed_precision_graph_rewrite(tf.train.AdamOptimizer())\n"
        "op = build(o)\nsess = tf.Session()\n",
        "from npu_shim.npu_init import *\n" + ADAM + "sess = tf.Session(config=npu_config_proto())\n",
        ADAM + "sess = tf.Session(**options)\n",
        ADAM + "make = functools.partial(tf.Session, graph=graph)\nsess = tf.Session()\n",
        ADAM + "sess = tf.Session()  # npu: ignore[NPU101]\n",
        ADAM + "sess = tf.Session()\nmodel.train_on_batch(x, y)\n",
        "def build():\n    " + ADAM + "def other():\n    sess = tf.Session()\n",  # may not run before
        ADAM.replace("tf.train.AdamOptimizer()", "tf.keras.optimizers.Adam()") + "sess = tf.Session()\n",
        ADAM.replace("())", "(), scale)") + "sess = tf.Session()\n",
        ADAM + "sess = tf.Session()\ntf.estimator.Estimator(fn)\n",
    ],
)
def test_a_graph_rewrite_that_may_not_hold_for_all_sessions_is_reported(text: str) -> None:
    text = TF + "import functools\ntf.disable_v2_behavior()\n" + text
    assert len(found(text, "NPU116", "")) == 1
    written = Converter(Settings()).convert(text.encode()).new
    assert written is None or b"precision_mode" not in written


@pytest.mark.parametrize("code", ["NPU101", "NPU116"])
def test_a_graph_rewrite_stays_if_one_of_its_two_rules_is_off(code: str) -> None:
    text = TF + "tf.disable_v2_behavior()\n" + ADAM + "sess = tf.Session()\n"
    written = Converter(Settings(ignore=(code,))).convert(text.encode()).new
    assert written is None or b"precision_mode" not in written and b"NPULossScaleOptimizer" not in written


@pytest.mark.parametrize(
    "text, code",
    [
        ("tf.flags.DEFINE_float('limit', float('inf'), '')", "NPU209"),
        ("files = tf.placeholder(tf.string, [None])\ndata = tf.data.TFRecordDataset(files)", "NPU234"),
        ("for batch in tf.data.Dataset.range(9).batch(4):\n    print(batch)", "NPU109"),
        ("data = tf.data.Dataset.range(9).batch(4)\nfor batch in data.take(2):\n    print(batch.numpy())", "NPU109"),
        (
            "data = tf.data.Dataset.range(9).batch(4)\ndata = data.prefetch(2)\nfor i, b in enumerate(data):\n    print(i, b)",
            "NPU109",
        ),
        ("if FLAGS.use_tpu:\n    c = tf.contrib.tpu.RunConfig(model_dir=d)", "NPU102"),
        ("sess = tf.Session()\nprint(sess.run(tf.image.decode_png(tf.gfile.GFile(p, 'rb').read())))", "NPU101"),
        (
            "from tensorflow.contrib import tensorrt as trt\ntrt.create_inference_graph(g, o)\ns = tf.Session()",
            "NPU101",
        ),
        ("import horovod.tensorflow as hvd\nhvd.broadcast_variables([v] if flag else [w], 0)", "NPU000"),
    ],
)
def test_nothing_is_done_where_nothing_has_to_be_done(text: str, code: str) -> None:
    result = Converter(Settings(distributed="horovod")).convert((TF + text + "\n").encode())
    assert code not in [each.code for each in result.diagnostics]


@pytest.mark.parametrize(
    "text, code",
    [
        ("x = tf.where(mask, x, float('-inf'))", "NPU209"),
        ("x = tf.placeholder(tf.float32, [None, 3])", "NPU234"),
        ("data = tf.data.Dataset.range(9).batch(4)\nfor batch in data:\n    step(batch)", "NPU109"),
        ("if not FLAGS.use_tpu:\n    c = tf.contrib.tpu.RunConfig(model_dir=d)", "NPU102"),
        ("sess = tf.Session()\nprint(sess.run(tf.nn.relu(tf.image.decode_png(data))))", "NPU101"),
        (
            "from tensorflow.contrib import tensorrt as trt\ndef export():\n    trt.create_inference_graph(g, o)\n"
            "def train():\n    with tf.Session() as s:\n        s.run(train_op)",
            "NPU101",
        ),
        ("import resnet\nsess = tf.Session()\nprint(sess.run(resnet.build(tf.image.decode_png(data))))", "NPU101"),
    ],
)
def test_and_the_rest_is_done(text: str, code: str) -> None:
    result = Converter(Settings(distributed="horovod")).convert((TF + text + "\n").encode())
    assert code in [each.code for each in result.diagnostics]


def test_a_script_that_builds_tensorrt_graphs_of_a_trained_model_stays_on_the_host(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    build = "import model\nfrom tensorflow.python.compiler.tensorrt import trt_convert as trt\n"
    build += "with tf.Session() as sess:\n    net = model.net(x)\nconverter = trt.TrtGraphConverter(g)\n"
    files = {
        "model.py": TF + "def net(x):\n    return tf.train.AdamOptimizer(0.1).minimize(x)\n",
        "build.py": TF + build,
        "predict.py": TF + "import model\nwith tf.Session() as sess:\n    net = model.net(x)\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    main(["-i", str(tmp_path), "--select", "NPU101"])
    output = capsys.readouterr().out
    assert "+++ b/predict.py" in output and "build.py" not in output


def test_a_table_of_a_projects_own_helper_is_reported(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = {
        "vocabulary.py": TF + "def make_table(path):\n    return tf.contrib.lookup.index_table_from_file(path)\n",
        "model.py": TF + "from vocabulary import make_table\ndef model_fn(features, labels, mode):\n"
        "    return make_table('words.txt').lookup(features)\n",
    }
    [shown] = reports(files, "NPU240", tmp_path, capsys)
    assert "vocabulary.py:3" in shown


def test_an_import_without_a_star_has_only_the_names_in_use() -> None:
    text = "import tensorflow.compat.v1 as tf\ntrain_op = tf.train.AdamOptimizer(0.1).minimize(loss)\n"
    text += "with tf.Session() as sess:\n    sess.run(tf.global_variables_initializer())\n"
    result = Converter(Settings(distributed="tf_strategy")).convert(text.encode())
    assert result.new is not None
    names = "npu_config_proto, npu_distributed_optimizer_wrapper"
    assert f"from npu_shim.npu_init import {names}\n" in result.new.decode()


@pytest.mark.parametrize(
    "made",
    [
        "return npu_shim.data.pad_last_batch(d.batch(4))",
        "d = d.batch(4)\n    return npu_shim.data.pad_last_batch(d)",
        "d = d.batch(4).prefetch(1)\n    d = npu_shim.data.pad_last_batch(d)\n    return d",
    ],
)
def test_batches_that_are_padded_as_the_advice_says_are_not_reported(made: str) -> None:
    text = TF + "import npu_shim\ndef eval_input_fn(d=tf.data.Dataset.range(9)):\n    " + made + "\n"
    assert found(text, "NPU109", "") == []


def test_a_method_of_a_model_of_the_project_that_a_function_is_given_is_not_reported(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = TF + "class Net(tf.keras.Model):\n    def compute_loss(self, fn, x):\n        return fn(self(x))\n"
    step = TF + "def train(model, x):\n    with tf.GradientTape():\n        return model.compute_loss(f, x)\n"
    script = "from net import Net\nfrom step import train\nif __name__ == '__main__':\n    train(Net(), 1)\n"
    files = {"net.py": model, "step.py": step, "main.py": script}
    assert reports(files, "NPU275", tmp_path, capsys) == []
    files["net.py"] = model.replace("compute_loss", "loss_of")
    assert [line.split(":")[1] for line in reports(files, "NPU275", tmp_path, capsys)] == ["4"]
