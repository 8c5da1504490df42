"""The command of the record with a small program, and with programs of the record, others each night."""

from __future__ import annotations

import os
import pathlib
import re
import subprocess
import sys
from typing import Any

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
_NIGHTLY = 2  # programs
_SCRIPT = """
import numpy as np
import tensorflow as tf

x = np.random.RandomState(0).rand(64, 4).astype("float32")
data = tf.data.Dataset.from_tensor_slices((x, x.sum(1, keepdims=True))).batch(8)
with tf.distribute.MirroredStrategy().scope():
    model = tf.keras.Sequential([tf.keras.layers.Dense(3, "tanh", input_shape=(4,)), tf.keras.layers.Dense(1)])
    model.compile(tf.keras.optimizers.SGD(0.1), "mse")
model.fit(data, epochs=2, verbose=0)
model.save("model.h5")
"""


@pytest.fixture
def make_record(monkeypatch: Any) -> Any:
    """The script."""
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    import make_record

    return make_record


def test_a_program_is_migrated_with_its_defect_ranks_and_export(
    make_record: Any, tmp_path: pathlib.Path, monkeypatch: Any
) -> None:
    clone = tmp_path / "owner" / "name"
    clone.mkdir(parents=True)
    (clone / "train.py").write_text(_SCRIPT, encoding="utf-8")
    git = ["git", "-C", str(clone), "-c", "user.name=a", "-c", "user.email=a@b"]
    for arguments in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "one"]):
        subprocess.run([*git, *arguments], check=True)
    commit = subprocess.check_output([*git, "rev-parse", "HEAD"]).decode().strip()
    os.rename(clone / ".git", tmp_path / "owner" / "bare")
    program = make_record.Program("owner/bare", commit, "fit", "2.15", "", "train.py", steps=4, ranks=2)
    defect = sys.modules["record_list"].Defect("rate", [make_record.Edit("train.py", r"SGD\(0\.1\)", "SGD(0.102)")])
    (tmp_path / "work").mkdir()
    program = program._replace(defect=defect, export="model.h5")
    result = make_record.Measuring(program, str(tmp_path), str(tmp_path / "work")).measure(None)
    assert (result.verdict, result.reason, result.steps) == ("agree", "", 4) and result.names > 10
    assert result.calls > 5 and result.rewrites > 0 and result.ran == commit
    assert result.defect.startswith("differ at step 1: learning rate")
    assert result.ranks == "agree" and result.export.startswith("equal: ")


def test_pictures_are_encoded_where_no_code_runs_eagerly(make_record: Any, tmp_path: pathlib.Path) -> None:
    import public_data
    import tensorflow as tf

    with tf.Graph().as_default():  # as in TensorFlow 1
        public_data.main(["folders", str(tmp_path), "2", "8", "cat", "dog"])
        features = "image=jpeg:256:8,8,3", "shape=integers:8,8,3", "xmin=numbers:0.5"
        public_data.main(["examples", str(tmp_path), "a.tfrecord", "1", *features])
    assert tf.io.decode_jpeg((tmp_path / "dog" / "0001.jpg").read_bytes()).shape == (8, 8, 3)
    record = next(iter(tf.data.TFRecordDataset(str(tmp_path / "a.tfrecord")))).numpy()
    written = tf.train.Example.FromString(record).features.feature
    assert tf.io.decode_jpeg(written["image"].bytes_list.value[0]).shape == (8, 8, 3)
    assert list(written["shape"].int64_list.value) == [8, 8, 3] and list(written["xmin"].float_list.value) == [0.5]


def test_a_sample_of_the_record_is_not_worse_than_its_rows(make_record: Any) -> None:
    command = [sys.executable, str(ROOT / "docs" / "make_record.py"), "--check", "--quick", "--sample", str(_NIGHTLY)]
    done = subprocess.run(
        command,
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    output = done.stdout.decode("utf-8", "replace")
    assert done.returncode == 0, output
    # a program without its checkout, or without its packages, is named with what brings them
    measured = re.findall(r"(?m)^\S.*@2\.15: ran \w+, .*", output)
    missing = re.findall(
        r"(?m)^\S.*@2\.15: (?:no checkout\. Run: git clone |not measured\. ModuleNotFoundError).*", output
    )
    print(*missing, sep="\n")
    assert len(measured) + len(missing) == _NIGHTLY, output
    names = [line.split("@")[0] for line in missing]
    clones = [name for name in names if os.path.isdir(os.path.join(make_record.verified.SOURCES, *name.split("/")[:2]))]
    assert measured or not clones, f"nothing was measured, although there are clones: {missing}"
