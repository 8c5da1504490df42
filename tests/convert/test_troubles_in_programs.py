"""Troubles of the field that show only in a program of several files."""

from __future__ import annotations

import pathlib
import re

import pytest
from convert_tf2npu.main import main

TF = "import tensorflow as tf\n"
FORK = TF + "import multiprocessing\ndef read(files):\n    return multiprocessing.Pool(4).map(len, files)\n"
TRAIN = TF + "from reader import read\nread([])\nwith tf.Session() as sess:\n    sess.run(train_op)\n"
PREPARE = "from reader import read\nread([])\n"
LIBRARY = TRAIN.replace("read([])\n", "")
START = "import multiprocessing\nmultiprocessing.set_start_method('forkserver')\n"
ALONE = FORK[len(TF) :]  # names no TensorFlow
RUN = TF + "import trainer\nattention.get_context(query)\n"
BUFFER = TF + "class Buffer:\n    def __init__(self):\n        self.count = tf.Variable(0)\n"
STEP = "data = tf.data.Dataset.range(8).map(lambda x: buffer.count + x)\n@tf.function\ndef step(x):\n    return x\n"
ON_CPU = TF + "from buf import Buffer\nwith tf.device('/CPU:0'):\n    buffer = Buffer()\n" + STEP
ON_NPU = TF + "from buf import Buffer\nbuffer = Buffer()\n" + STEP
STRATEGY = "distribute.OneDeviceStrategy('/cpu:0').scope()"
RENAMED = ON_CPU.replace("import Buffer", "import Buffer as B").replace("= Buffer()", "= B()")
DERIVED = ON_CPU.replace("with", "class Own(Buffer):\n    pass\nwith").replace("= Buffer()", "= Own()")
LOG = TF + "def loss_of(x):\n    return tf.log(x + 1e-8) / (tf.square(x) + 1e-9)\n"
MASK = TF + "def masked(scores, mask):\n    return tf.where(mask, scores, tf.fill(tf.shape(scores), -1e9))\n"
MIXED = TF + "import losses\nconfig = npu_config_proto(precision_mode='allow_mix_precision')\n"
SCALED = TF + "import losses\nopt = NPULossScaleOptimizer(tf.train.AdamOptimizer(), FixedLossScaleManager(128))\n"
VARIABLE = TF + "mean = tf.Variable([0.5])\ndef centre(x):\n    return x - mean\n"
MAP = TF + "from pre import centre\nit = tf.data.TFRecordDataset(f).map(centre).make_initializable_iterator()\n"
COLLECT = TF + "def read(data):\n    iterator = data.make_initializable_iterator()\n"
COLLECT += "    tf.add_to_collection(tf.GraphKeys.TABLE_INITIALIZERS, iterator.initializer)\n    return iterator\n"
TABLES = TF + "import pipeline\nsess.run([tf.global_variables_initializer(), tf.tables_initializer()])\n"
OPEN = TF + "x = tf.placeholder(tf.float32, [None, 3])\n"
RNN = TF + "def encode(x):\n    return tf.nn.dynamic_rnn(cell, x, dtype=tf.float32)\n"
PADDED = "data = tf.data.TextLineDataset(f).padded_batch(8, [None], drop_remainder=True)\n"
OWN_LOOPS = "def scan(f, x):\n    return x\nscan(len, db.scan(x))  # tf.scan(\ntf.data.experimental.scan(0, len)\n"
HOST_LOOPS = "data = tf.data.TextLineDataset(f).map(lambda x: tf.map_fn(tf.identity, x))\n"
ON_2 = OPEN.replace("import tensorflow", "import tensorflow.compat.v1") + "tf.cond(a, b, c)\n"
NO_SELF = (
    "import numpy as np\nclass Array:\n    def __init__(*args, x=None):\n        tf.constant(x)\nArray(x=np.ones(3))\n"
)
HVD = TF + "import horovod.tensorflow as hvd\ntf.placeholder(tf.float32, [8])\n"
CHIEF = "import horovod.tensorflow as hvd\ndef is_chief():\n    return FLAGS.one or not hvd.rank()\n"
RANK = "rank, size = hvd.rank(), hvd.size()\n"
CONSTANT = "    tf.constant(1)\n"


@pytest.mark.parametrize(
    "files, code, places",
    [
        ({"reader.py": FORK, "train.py": TRAIN}, "NPU229", ["reader.py:4"]),
        ({"reader.py": FORK, "train.py": START + TRAIN}, "NPU229", []),
        ({"reader.py": FORK, "prepare.py": PREPARE, "train.py": LIBRARY}, "NPU229", []),
        ({"reader.py": ALONE, "train.py": TRAIN}, "NPU229", ["reader.py:3"]),
        ({"reader.py": ALONE, "train.py": START + TRAIN}, "NPU229", []),
        ({"reader.py": ALONE, "prepare.py": PREPARE, "train.py": LIBRARY}, "NPU229", []),
        ({"reader.py": ALONE, "trainer.py": TRAIN, "run.py": RUN}, "NPU229", ["reader.py:3"]),
        ({"buf.py": BUFFER, "train.py": ON_NPU}, "NPU278", ["train.py:4"]),
        ({"buf.py": BUFFER, "train.py": ON_CPU}, "NPU278", []),
        ({"buf.py": BUFFER, "train.py": ON_CPU, "other.py": ON_NPU}, "NPU278", ["other.py:4"]),
        ({"buf.py": BUFFER, "train.py": ON_CPU, "buf_test.py": ON_NPU + "import train\n"}, "NPU278", []),
        ({"buf.py": BUFFER, "train.py": RENAMED}, "NPU278", []),
        ({"buf.py": BUFFER, "train.py": DERIVED}, "NPU278", []),
        (
            {"buf.py": BUFFER, "train.py": ON_CPU.replace("tf.device('/CPU:0')", "open('cpu.txt')")},
            "NPU278",
            ["train.py:5"],
        ),
        ({"buf.py": BUFFER, "train.py": ON_CPU.replace("('/CPU:0')", "(host)")}, "NPU278", ["train.py:5"]),
        ({"buf.py": BUFFER, "train.py": "host = 'CPU:0'\n" + ON_CPU.replace("('/CPU:0')", "(host)")}, "NPU278", []),
        ({"buf.py": BUFFER, "train.py": ON_CPU.replace("device('/CPU:0')", STRATEGY)}, "NPU278", []),
        ({"losses.py": LOG, "train.py": MIXED}, "NPU227", ["losses.py:3", "losses.py:3"]),
        ({"losses.py": LOG, "train.py": TF + "import losses\n"}, "NPU227", []),
        ({"losses.py": MASK, "train.py": SCALED}, "NPU227", ["losses.py:3"]),
        ({"losses.py": MASK, "tests/test_train.py": SCALED}, "NPU227", []),
        ({"pre.py": VARIABLE, "train.py": MAP}, "NPU224", ["pre.py:2"]),
        ({"pipeline.py": COLLECT, "train.py": TABLES}, "NPU220", ["train.py:3"]),
        ({"pipeline.py": COLLECT.replace(", iter", ", value=iter"), "train.py": TABLES}, "NPU220", ["train.py:3"]),
        ({"pipeline.py": TF, "train.py": TABLES}, "NPU220", []),
        ({"train.py": OPEN + OWN_LOOPS + HOST_LOOPS}, "NPU234", ["train.py:2"]),
        ({"train.py": OPEN + "tf.scan(f, x)\n"}, "NPU234", ["train.py:2"] * 2),
        (
            {"train.py": OPEN + "tf.scan(f, x)\n", "main.py": TF + "import train\ntf.enable_v2_behavior()\n"},
            "NPU234",
            ["train.py:2"],
        ),
        ({"model.py": RNN, "train.py": OPEN + "import model\nmodel.encode(x)\n"}, "NPU234", ["train.py:2"] * 2),
        ({"model.py": RNN, "train.py": OPEN + "import model\n"}, "NPU234", ["train.py:2"]),
        (
            {
                "model.py": RNN,
                "train.py": OPEN + "from model import encode\ntf.data.TextLineDataset(f).map(lambda x: encode(x))\n",
            },
            "NPU234",
            ["train.py:2"],
        ),
        ({"train.py": ON_2 + "tf.disable_v2_behavior()\n"}, "NPU234", ["train.py:2"] * 2),
        ({"train.py": ON_2 + "tf.disable_eager_execution()\n"}, "NPU234", ["train.py:2"]),
        ({"train.py": RNN + PADDED + PADDED}, "NPU238", ["train.py:4", "train.py:4", "train.py:5"]),
        ({"train.py": RNN + OPEN + PADDED}, "NPU234,NPU238", ["train.py:5", "train.py:5", "train.py:6"]),
        ({"train.py": TF + NO_SELF}, "NPU221", ["train.py:5"]),
        ({"train.py": TF + PADDED + "tf.while_loop(a, b, c)\nmodel.fit(data)\n"}, "NPU238", ["train.py:2"]),
        (
            {"util.py": CHIEF, "train.py": HVD + "import util\nif util.is_chief():\n" + CONSTANT},
            "NPU241",
            ["train.py:6"],
        ),
        ({"train.py": HVD + RANK + "if int(rank) in (0, 8) and FLAGS.log:\n" + CONSTANT}, "NPU241", ["train.py:6"]),
        ({"train.py": HVD + RANK + "first = rank % size == 0\nif not first:\n" + CONSTANT}, "NPU241", ["train.py:7"]),
        ({"train.py": HVD + RANK + "d = {'r': rank, 'f': f}\nhalf = d['f']\nif half:\n" + CONSTANT}, "NPU241", []),
        ({"train.py": HVD + RANK + "seed = 1 + rank\nif seed is not None or size > 1:\n" + CONSTANT}, "NPU241", []),
        (
            {"train.py": HVD + "g = tf.Graph()\nif hvd.rank() == 0:\n  with g.as_default():\n" + CONSTANT},
            "NPU241",
            ["train.py:7"],
        ),
        (
            {"train.py": HVD + "if hvd.rank() == 0:\n  g = tf.Graph()\n  with g.as_default():\n" + CONSTANT},
            "NPU241",
            [],
        ),
        (
            {"train.py": HVD + "if hvd.rank() == 0:\n  def log(l):\n    tf.summary.scalar('l', l)\n"},
            "NPU241",
            ["train.py:6"],
        ),
    ],
)
def test_a_trouble_is_found_across_the_files_of_a_program(
    files: dict[str, str], code: str, places: list[str], tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    main(["-i", str(tmp_path), "--select", code, "-v", "--no-cache"])
    shown = capsys.readouterr()
    lines = [
        line for line in (shown.out + shown.err).splitlines() if any(f": {one} " in line for one in code.split(","))
    ]
    assert [re.sub(r":\d+: NPU.*", "", line)[len(str(tmp_path)) + 1 :] for line in lines] == places


def test_advice_to_compute_on_the_host_says_what_batch_normalization_needs(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = TF + "table = tf.contrib.lookup.index_table_from_file('words.txt')\n"
    (tmp_path / "plain.py").write_text(table)
    (tmp_path / "normalizes.py").write_text(table + "tf.layers.batch_normalization(x)\n")
    main(["-i", str(tmp_path), "--select", "NPU240", "-v", "--no-cache"])
    shown = capsys.readouterr()
    output = shown.out + shown.err
    found = {line.split(":")[0][len(str(tmp_path)) + 1 :]: line for line in output.splitlines() if "NPU240" in line}
    assert found["plain.py"].endswith("mix_compile_mode=True on the session")
    assert "build batch normalization in tf.compat.forward_compatibility_horizon(2019, 5, 1)" in found["normalizes.py"]
