"""Troubles of the field that show only in a program of several files."""

from __future__ import annotations

import pathlib

import pytest
from convert_tf2npu.main import main

TF = "import tensorflow as tf\n"
FORK = TF + "import multiprocessing\ndef read(files):\n    return multiprocessing.Pool(4).map(len, files)\n"
TRAIN = TF + "from reader import read\nread([])\nwith tf.Session() as sess:\n    sess.run(train_op)\n"
PREPARE = "from reader import read\nread([])\n"
LIBRARY = TRAIN.replace("read([])\n", "")
START = "import multiprocessing\nmultiprocessing.set_start_method('forkserver')\n"
LOG = TF + "def loss_of(x):\n    return tf.log(x + 1e-8) / (tf.square(x) + 1e-9)\n"
MASK = TF + "def masked(scores, mask):\n    return tf.where(mask, scores, tf.fill(tf.shape(scores), -1e9))\n"
MIXED = TF + "import losses\nconfig = npu_config_proto(precision_mode='allow_mix_precision')\n"
SCALED = TF + "import losses\nopt = NPULossScaleOptimizer(tf.train.AdamOptimizer(), FixedLossScaleManager(128))\n"
VARIABLE = TF + "mean = tf.Variable([0.5])\ndef centre(x):\n    return x - mean\n"
MAP = TF + "from pre import centre\nit = tf.data.TFRecordDataset(f).map(centre).make_initializable_iterator()\n"
COLLECT = TF + "def read(data):\n    iterator = data.make_initializable_iterator()\n"
COLLECT += "    tf.add_to_collection(tf.GraphKeys.TABLE_INITIALIZERS, iterator.initializer)\n    return iterator\n"
TABLES = TF + "import pipeline\nsess.run([tf.global_variables_initializer(), tf.tables_initializer()])\n"


@pytest.mark.parametrize(
    "files, code, places",
    [
        ({"reader.py": FORK, "train.py": TRAIN}, "NPU229", ["reader.py:4"]),
        ({"reader.py": FORK, "train.py": START + TRAIN}, "NPU229", []),
        ({"reader.py": FORK, "prepare.py": PREPARE, "train.py": LIBRARY}, "NPU229", []),
        ({"losses.py": LOG, "train.py": MIXED}, "NPU227", ["losses.py:3", "losses.py:3"]),
        ({"losses.py": LOG, "train.py": TF + "import losses\n"}, "NPU227", []),
        ({"losses.py": MASK, "train.py": SCALED}, "NPU227", ["losses.py:3"]),
        ({"losses.py": MASK, "tests/test_train.py": SCALED}, "NPU227", []),
        ({"pre.py": VARIABLE, "train.py": MAP}, "NPU224", ["pre.py:2"]),
        ({"pipeline.py": COLLECT, "train.py": TABLES}, "NPU220", ["train.py:3"]),
        ({"pipeline.py": TF, "train.py": TABLES}, "NPU220", []),
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
    lines = [line for line in (shown.out + shown.err).splitlines() if f": {code} " in line]
    assert [
        line[len(str(tmp_path)) + 1 :].rpartition(":")[0].split(f": {code}")[0].rpartition(":")[0] for line in lines
    ] == places
