"""Findings that the library makes needless: devices chosen at run time, and sessions that nothing closes."""

from __future__ import annotations

import pathlib

import pytest
from convert_tf2npu.engine.run import convert_source
from convert_tf2npu.engine.settings import Settings

TF = "import tensorflow as tf\n"
LAYERS = TF + "\n\ndef build(x, device):\n    with tf.device(device):\n        return tf.layers.dense(x, 2)\n"
KERAS = """import tensorflow as tf

device = {}
model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
with tf.device(device):
    model.compile('adam', 'mse')
    model.fit(images, labels)
"""
AGENT = "\n\nclass Agent:\n    def __init__(self, *options):\n        self.sess = tf.Session(*options)\n"


def messages(folder: pathlib.Path, files: dict[str, str], code: str) -> list[str]:
    for name, text in files.items():
        (folder / name).write_text(text)
    run = convert_source(str(folder), Settings())
    return [
        f"{entry.relative}: {diagnostic.message}"
        for entry, result in run.results
        for diagnostic in result.diagnostics
        if diagnostic.code == code and diagnostic.kind == "finding"
    ]


PROGRAMS = {
    "with tf.Session() as sess:\n    sess.run(step)\n": 0,
    "tf.estimator.Estimator(model_fn).train(input_fn)\n": 0,
    "with tf.train.MonitoredTrainingSession(config=config) as sess:\n    sess.run(step)\n": 0,
    "import npu_shim.npu_init\nnpu_shim.npu_init.npu_config_proto()\n": 0,
    "from tensorflow.contrib.slim import learning as loop\nloop.train(step, folder)\n": 0,
    "import tensorflow.contrib.training as loop\nloop.train(step, folder)\n": 0,
    "from tensorflow.contrib.training import (  # one session\n    train as run,\n)\nrun(step, folder)\n": 0,
    "from tensorflow.contrib import training\nprint(training.HParams())\n": 1,
    "sess = tf.Session(*options)\n": 1,  # the session may get no configuration for the NPU
    "print(tf.trainable_variables())\n": 1,
}


@pytest.mark.parametrize("program,count", PROGRAMS.items())
def test_the_program_of_a_graph_decides(program: str, count: int, tmp_path: pathlib.Path) -> None:
    files = {"layers.py": LAYERS, "train.py": TF + "import layers\ny = layers.build(x, FLAGS.device)\n" + program}
    assert len(messages(tmp_path, files, "NPU110")) == count


def test_a_program_beside_it_does_not_decide(tmp_path: pathlib.Path) -> None:
    files = {
        "layers.py": LAYERS,
        "train.py": TF + "import layers\nlayers.build(tf.placeholder(tf.float32, [2]), FLAGS.device)\n",
        "other.py": TF + "with tf.Session() as sess:\n    sess.run(step)\n",
    }
    assert messages(tmp_path, files, "NPU110")[0].startswith("layers.py: the device is chosen at run time")


DEVICES = {
    "FLAGS.device": "",
    "'/gpu:%d' % number": "",
    "'/gpu:%s:%d' % pair": "",
    "'/gpu:0' if tf.test.is_gpu_available() else '/cpu:0'": "the device may be the CPU, and then this runs on the host",
    "'GPU' if FLAGS.cuda else 'CPU'": "the device may be the CPU, and then this runs on the host",
}


@pytest.mark.parametrize("device,expected", DEVICES.items())
def test_a_program_of_tensorflow_2_is_reported_where_it_may_choose_the_host(
    device: str, expected: str, tmp_path: pathlib.Path
) -> None:
    found = messages(tmp_path, {"train.py": KERAS.format(device)}, "NPU110")
    assert len(found) == bool(expected) and all(expected in message for message in found)


@pytest.mark.parametrize(
    "text",
    [
        "strategy = tf.distribute.OneDeviceStrategy(FLAGS.device)\n"
        "with strategy.scope():\n    model = tf.keras.Sequential()\nmodel.compile()\nmodel.fit(images, labels)\n",
        "with tf.device(FLAGS.device):\n    print(tf.keras.models.load_model(FLAGS.path)(images).numpy())\n",
    ],
    ids=["a strategy", "no training"],
)
def test_other_devices_of_tensorflow_2_stay_findings(text: str, tmp_path: pathlib.Path) -> None:
    (found,) = messages(tmp_path, {"train.py": TF + text}, "NPU110")
    assert "the device is chosen at run time" in found


@pytest.mark.parametrize("program,count", PROGRAMS.items())
def test_a_session_of_an_object_is_closed_in_a_program_with_the_patch(
    program: str, count: int, tmp_path: pathlib.Path
) -> None:
    files = {"agent.py": TF + AGENT, "train.py": TF + "import agent\nagent.Agent(*options)\n" + program}
    assert len(messages(tmp_path, files, "NPU206")) == count
