"""The phase that a dataset feeds, by evidence around it and in all files; the changes and the findings."""

from __future__ import annotations

import pathlib
import textwrap
from typing import Any

import pytest
from convert_tf2npu.engine.converter import CHANGE, Converter
from convert_tf2npu.engine.settings import Settings
from convert_tf2npu.project.project import Project

HEAD = "import tensorflow as tf\n"
SETTINGS = Settings(select=("NPU109", "NPU114"))


def results(text: str) -> list[tuple[str, str]]:
    """Return the kind and the message of each result."""
    result = Converter(SETTINGS).convert((HEAD + textwrap.dedent(text)).encode("utf-8"))
    return [(d.kind, d.message) for d in result.diagnostics]


def verdict(text: str) -> str:
    """Return what is done with the one batch of a script, in one word."""
    found = results(text)
    if not found:
        return "nothing"
    ((kind, message),) = found
    if kind == CHANGE:
        return "training" if "training" in message else "lossless"
    for start, word in (
        ("this dataset feeds training and ", "both"),
        ("this dataset feeds training", "training, reported"),
        ("this dataset feeds evaluation", "evaluation"),
        ("this dataset feeds prediction", "prediction"),
        ("unclear if", "unclear"),
        ("each bucket", "window"),
        ("the arguments", "hidden"),
        ("the batch dimension is dynamic", "lossless, reported"),
    ):
        if message.startswith(start):
            return word
    raise AssertionError(message)


READ = "def read(files, %s):\n    return tf.data.TFRecordDataset(files).batch(64)\n"
EVIDENCE = {
    # tests around it
    "a mode key": (
        "d = tf.data.Dataset.range(9)\nif mode == tf.estimator.ModeKeys.TRAIN:\n    d = d.batch(4)",
        "training",
    ),
    "another mode key": (
        "d = tf.data.Dataset.range(9)\nif mode == tf.estimator.ModeKeys.EVAL:\n    d = d.batch(4)",
        "evaluation",
    ),
    "a mode key that it is not": (
        "d = tf.data.Dataset.range(9)\nif mode != tf.estimator.ModeKeys.TRAIN:\n    d = d.batch(4)",
        "evaluation",
    ),
    "the rest of a mode key that it is not": (
        'd = tf.data.Dataset.range(9)\nif mode != "train":\n    pass\nelse:\n    d = d.batch(4)',
        "training",
    ),
    "not is_training": ("d = tf.data.Dataset.range(9)\nif not is_training:\n    d = d.batch(4)", "evaluation"),
    "is_training and more": (
        "d = tf.data.Dataset.range(9)\nif self.is_training and n > 3:\n    d = d.batch(4)",
        "training",
    ),
    "a choice": ("d = tf.data.Dataset.range(9)\nd = d.batch(4) if FLAGS.do_train else d", "training"),
    "a folder for training is no switch": (
        "d = tf.data.Dataset.range(9)\nif train_dir:\n    d = d.batch(4)",
        "unclear",
    ),
    "an early return": (
        "def read(is_training):\n    d = tf.data.Dataset.range(9)\n    if not is_training:\n        return d\n"
        "    return d.batch(4)",
        "training",
    ),
    # names
    "the name it is assigned to": ("val_set = tf.data.Dataset.range(9).batch(4)", "evaluation"),
    "an attribute it is assigned to": (
        "class A:\n    def f(self):\n        self.train_data = tf.data.Dataset.range(9).batch(4)",
        "training",
    ),
    "the function": ("def make_test_input():\n    return tf.data.Dataset.range(9).batch(4)", "evaluation"),
    "a function of two phases": ("def train_or_eval():\n    return tf.data.Dataset.range(9).batch(4)", "unclear"),
    "what it reads": (
        "d = tf.data.Dataset.from_tensor_slices((x_train, y_train)).shuffle(9)\nd = d.batch(4)",
        "training",
    ),
    "a file that it reads": ('d = tf.data.TextLineDataset("dev.csv")\nd = d.batch(4)', "evaluation"),
    "a number for training says nothing": ("d = tf.data.Dataset.range(train_batch_size)\nd = d.batch(4)", "unclear"),
    # what it is given to
    "fit": ("d = tf.data.Dataset.range(9).batch(4)\nmodel.fit(d, epochs=3)", "training"),
    "validation data": ("d = tf.data.Dataset.range(9).batch(4)\nmodel.fit(x, validation_data=d)", "evaluation"),
    "fit and validation data": ("d = tf.data.Dataset.range(9).batch(4)\nmodel.fit(d, validation_data=d)", "both"),
    "a loop that applies gradients": (
        "d = tf.data.Dataset.range(9).batch(4)\nfor x in d:\n    with tf.GradientTape() as t:\n        pass",
        "training",
    ),
    "a loop that predicts": (
        "d = tf.data.Dataset.range(9).batch(4)\nfor x in d:\n    print(model.predict(x))",
        "prediction",
    ),
    "TrainSpec": (
        "def f():\n    return tf.data.Dataset.range(9).batch(4)\ns = tf.estimator.TrainSpec(input_fn=f)",
        "training",
    ),
    "a lambda for EvalSpec": (
        "def f(n):\n    return tf.data.Dataset.range(9).batch(n)\ns = tf.estimator.EvalSpec(lambda: f(3))",
        "evaluation",
    ),
    "partial": (
        "import functools\ndef f(mode):\n    return tf.data.Dataset.range(9).batch(4)\n"
        'g = functools.partial(f, mode="train")',
        "training",
    ),
    "a function inside one": (
        "def builder(is_training):\n    def input_fn(params):\n        return tf.data.Dataset.range(9).batch(4)\n"
        "    return input_fn\ntrain_input_fn = builder(True)\nestimator.train(train_input_fn)",
        "training",
    ),
    # calls
    "a constant": (READ % "is_training" + "x = read(a, is_training=True)", "training"),
    "constants that differ": (READ % "is_training" + "x = read(a, True)\ny = read(b, False)", "both"),
    "a mode": (READ % "mode" + "x = read(a, tf.estimator.ModeKeys.PREDICT)", "prediction"),
    "a split": (READ % "split" + 'x = read(a, split="validation")', "evaluation"),
    "through another function": (
        READ % "is_training" + "def make(files, is_training):\n    return read(files, is_training)\nx = make(a, True)",
        "training",
    ),
    "through another function, for both": (
        READ % "is_training" + "def make(files, is_training):\n    return read(files, is_training)\n"
        "x = make(a, True)\ny = make(b, False)",
        "both",
    ),
    "data that is handed over": (READ % "n" + "x = read(train_files, 3)", "training"),
    "a name for training, called for both": (
        "def make_training_input(files):\n    return tf.data.TFRecordDataset(files).batch(4)\n"
        "train = make_training_input(a)\neval_input = make_training_input(b)",
        "both",
    ),
    "a call that does not tell": (READ % "n" + "x = read(train_files, 3)\ny = read(files, 3)", "unclear"),
    "a method": (
        "class Data:\n    def read(self, is_training):\n        return tf.data.Dataset.range(9).batch(4)\n"
        "x = Data().read(True)\n",
        "training",
    ),
    "a function that is handed on": (
        "def f(is_training):\n    return tf.data.Dataset.range(9).batch(4)\n"
        "def run(input_function):\n    estimator.train(lambda: input_function(is_training=True))\n"
        "    estimator.evaluate(lambda: input_function(is_training=False))\nrun(f)",
        "both",
    ),
    "a function that calls itself": (
        "def f(n):\n    f(n - 1)\n    return tf.data.Dataset.range(9).batch(4)",
        "unclear",
    ),
    "the unit tests say nothing": (
        "def f():\n    return tf.data.Dataset.range(9).batch(4)\n"
        "class FTest(tf.test.TestCase):\n    def test_train(self):\n        f()\n",
        "unclear",
    ),
    # what loses nothing, in whatever phase
    "repeated for ever": ("eval_set = tf.data.Dataset.range(9).repeat().map(f).batch(4)", "lossless"),
    "repeated for ever by shuffle_and_repeat": (
        "d = tf.data.Dataset.range(9).apply(tf.data.experimental.shuffle_and_repeat(5))\nd = d.batch(4)",
        "lossless",
    ),
    "repeated for ever in one branch": (
        "d = tf.data.Dataset.range(9)\nif a:\n    d = d.repeat()\nelse:\n    d = d.repeat(3)\nd = d.batch(4)",
        "unclear",
    ),
    "repeated for ever, then cut": ("d = tf.data.Dataset.range(9).repeat().take(7).batch(4)", "unclear"),
    "a name that is its own value": ("def f():\n    return d.batch(4)\nd = d.shuffle(3).prefetch(1)", "nothing"),
    "one example": ("test_set = tf.data.Dataset.range(9).batch(1)", "lossless"),
    "one example, with False": ("test_set = tf.data.Dataset.range(9).batch(1, False)", "lossless, reported"),
    # what the script decides, or hides
    "dropped": ("train_set = tf.data.Dataset.range(9).batch(4, True)", "nothing"),
    "computed": ("train_set = tf.data.Dataset.range(9).batch(4, drop_remainder=use_tpu)", "nothing"),
    "given by position": ("train_set = tf.data.Dataset.range(9).padded_batch(4, [], 0, True)", "nothing"),
    "False in training": ("train_set = tf.data.Dataset.range(9).batch(4, drop_remainder=False)", "training, reported"),
    "False in evaluation": ("eval_set = tf.data.Dataset.range(9).batch(4, False)", "evaluation"),
    "hidden": ("train_set = tf.data.Dataset.range(9).batch(**options)", "hidden"),
    # what is no batch for the card
    "taken apart again": ("train_set = tf.data.Dataset.range(9).batch(4).map(f).unbatch()", "nothing"),
    "taken apart again by a function": (
        "d = tf.data.Dataset.range(9).batch(4)\ntrain_set = d.apply(tf.contrib.data.unbatch())",
        "nothing",
    ),
    "taken apart again in a branch": (
        "train_set = tf.data.Dataset.range(9).batch(4)\nif flip:\n    train_set = train_set.unbatch().batch(5, True)",
        "training, reported",
    ),
    "windows": ("train_set = tf.data.Dataset.range(9).window(3).flat_map(lambda w: w.prefetch(1).batch(3))", "nothing"),
    "buckets": (
        "def f(key, d):\n    return d.padded_batch(4, [9])\n"
        "train = tf.data.Dataset.range(9).apply(tf.data.experimental.group_by_window(k, f, 4))",
        "window",
    ),
    "a unit test": (
        "class ATest(tf.test.TestCase):\n    def test_training(self):\n        d = tf.data.Dataset.range(9).batch(4)",
        "nothing",
    ),
    "a serving function": ("def serving_input_fn():\n    return tf.data.Dataset.range(9).batch(4)", "nothing"),
    "a function that writes records": (
        "def export_training_set(name):\n    d = tf.data.Dataset.range(9).batch(4)\n"
        "    w = tf.python_io.TFRecordWriter(name)",
        "nothing",
    ),
    "no dataset": ("train_set = loader.batch(5)", "nothing"),
    "a method of the script": ("class A:\n    def train(self, it):\n        return self.batch(it)", "nothing"),
    # functions that batch
    "legacy map_and_batch": (
        "def train_fn(d):\n    return d.apply(tf.data.experimental.map_and_batch_with_legacy_function(f, 4))",
        "training",
    ),
    "map_and_batch by a private path": (
        "from tensorflow.contrib.data.python.ops import batching\ndef train_fn(d):\n"
        "    return d.apply(batching.map_and_batch(f, 4))",
        "training",
    ),
    "map_and_batch of what repeats for ever": (
        "d = tf.data.Dataset.range(9).repeat()\nd = d.apply(tf.contrib.data.map_and_batch(f, 4))",
        "lossless",
    ),
    "buckets by length": (
        "def train_fn(d):\n    return d.apply(tf.data.experimental.bucket_by_sequence_length(f, b, s))",
        "training",
    ),
    "buckets by length, as a method": (
        "train_set = tf.data.Dataset.range(9).bucket_by_sequence_length(f, b, s)",
        "training",
    ),
    "buckets by length of contrib, which cannot drop": (
        "def train_fn(d):\n    return d.apply(tf.contrib.data.bucket_by_sequence_length(f, b, s))",
        "training, reported",
    ),
    "dropped by another function": (
        "def train_fn(d):\n    return d.apply(tf.contrib.data.padded_batch_and_drop_remainder(4, [9]))",
        "nothing",
    ),
    "csv without end": ('train_set = tf.data.experimental.make_csv_dataset("a", 4)', "nothing"),
    "csv with an end": (
        'train_set = tf.data.experimental.make_csv_dataset("a", 4, num_epochs=3)',
        "training, reported",
    ),
    "csv with an end by place": (
        'test_set = tf.data.experimental.make_csv_dataset("a", 4, c, d, l, s, ",", True, "", True, 1)',
        "evaluation",
    ),
    "features without end": ('test_set = tf.data.experimental.make_batched_features_dataset("a", 4, f)', "nothing"),
    "features whose last batch stays": (
        'test_set = tf.data.experimental.make_batched_features_dataset("a", 4, f, num_epochs=1)',
        "evaluation",
    ),
}


@pytest.mark.parametrize("text, wanted", EVIDENCE.values(), ids=list(EVIDENCE))
def test_the_phase_of_a_batch(text: str, wanted: str) -> None:
    assert verdict(text) == wanted


WORDS = {
    "evaluation": (
        "def eval_input_fn():\n    return tf.data.Dataset.range(9).batch(4)",
        "this dataset feeds evaluation (see the name eval_input_fn). Use npu_shim.data.pad_last_batch("
        "tf.data.Dataset.range(9).batch(4)) and its mask",
    ),
    "prediction": (
        "def predict(x):\n    return tf.data.Dataset.from_tensor_slices(x).batch(4)",
        "Without NPUEstimator, use npu_shim.data.pad_last_batch("
        "tf.data.Dataset.from_tensor_slices(x).batch(4)) and its mask",
    ),
    "apply": (
        "def eval_fn(d):\n    return d.apply(tf.data.experimental.map_and_batch(\n        parse, 4,\n        num_parallel_calls=2))",
        "Use npu_shim.data.pad_last_batch(d.apply(...)) and its mask",
    ),
    "a long chain": (
        "def eval_fn(files):\n    return (tf.data.TFRecordDataset(files)  # read\n            .map(parse, num_parallel_calls=8)\n"
        "            .batch(4))",
        "Use npu_shim.data.pad_last_batch((...).batch(4)) and its mask",
    ),
    "a switch": (
        READ % "is_training" + "x = read(a, True)\ny = read(b, False)",
        "this dataset feeds training and evaluation (see the calls of read). Pass drop_remainder=is_training",
    ),
    "a switch in place of False": (
        "def read(files, training):\n    return tf.data.TFRecordDataset(files).batch(4, drop_remainder=False)",
        "Pass drop_remainder=training instead of False",
    ),
    "a mode": (
        "def read(files, mode):\n    d = tf.data.TFRecordDataset(files)\n"
        "    if mode == tf.estimator.ModeKeys.TRAIN:\n        d = d.shuffle(9)\n    return d.batch(4)",
        "this dataset feeds training and evaluation. Pass drop_remainder=mode == tf.estimator.ModeKeys.TRAIN",
    ),
    "a mode by text": (
        'def read(files, mode):\n    d = tf.data.TFRecordDataset(files)\n    if mode == "train":\n        d = d.shuffle(9)\n'
        "    return d.batch(4)",
        'Pass drop_remainder=mode == "train"',
    ),
    "no switch": (
        READ % "n" + "x = read(train_files, 3)\ny = read(test_files, 3)",
        "Add an is_training argument to read and pass drop_remainder=is_training",
    ),
    "open": (
        "d = tf.data.Dataset.range(9)\nd = d.batch(4)",
        "unclear if this dataset feeds training or evaluation. Pass drop_remainder=True in training, else use "
        "npu_shim.data.pad_last_batch",
    ),
    "calls that do not tell": (
        READ % "n" + "x = read(train_files, 3)\ny = read(files, 3)",
        "evaluation (not all of the calls of read show it). Pass",
    ),
    "buckets": (
        "def eval_fn(d):\n    return d.apply(tf.data.experimental.bucket_by_sequence_length(f, b, s))",
        "s)), batch_size=N) and its mask",
    ),
    "buckets of contrib": (
        "def train_fn(d):\n    return d.apply(tf.contrib.data.bucket_by_sequence_length(f, b, s))",
        "Use tf.data.experimental.bucket_by_sequence_length(..., drop_remainder=True)",
    ),
    "csv": (
        'train_set = tf.data.experimental.make_csv_dataset("a", 4, num_epochs=3)',
        'Use npu_shim.data.enforce_static_batch(tf.data.experimental.make_csv_dataset("a", 4, num_epochs=3))',
    ),
}


@pytest.mark.parametrize("text, words", WORDS.values(), ids=list(WORDS))
def test_messages(text: str, words: str) -> None:
    ((_, message),) = results(text)
    assert words in message and "\n" not in message and len(message) < 185


# --- across files

READER = HEAD + "def input_fn(files, is_training):\n    return tf.data.TFRecordDataset(files).batch(4)\n"
TRAINING = "training batches made static (see the calls of input_fn)"
PROJECTS: dict[str, tuple[dict[str, str], str]] = {
    "one call for training": (
        {"main.py": "from reader import input_fn\nd = input_fn(f, is_training=True)\n"},
        TRAINING,
    ),
    "called as an attribute of the module": ({"main.py": "import reader\nd = reader.input_fn(f, True)\n"}, TRAINING),
    "called for both, in two files": (
        {
            "main.py": "import reader\nd = reader.input_fn(f, True)\n",
            "check.py": "import reader\nd = reader.input_fn(f, False)\n",
        },
        "this dataset feeds training and evaluation (see the calls of input_fn)",
    ),
    "a function of the same name elsewhere": (
        {
            "main.py": "import reader\nd = reader.input_fn(f, True)\n",
            "other.py": "def input_fn(files, is_training):\n    pass\nd = input_fn(f, False)\n",
        },
        TRAINING,
    ),
    "handed to an Estimator": (
        {
            "main.py": "import tensorflow as tf, reader\n"
            "def run(flags):\n    spec = tf.estimator.EvalSpec(lambda: reader.input_fn(flags.files, flags.x))\n"
        },
        "this dataset feeds evaluation (see EvalSpec, line main.py:3)",
    ),
    "handed on to a function of another file": (
        {
            "main.py": "import reader, loop\nloop.run(reader.input_fn)\n",
            "loop.py": "def run(make):\n    train(make(a, is_training=True))\n    test(make(b, is_training=False))\n",
        },
        "this dataset feeds training and evaluation (see test, line loop.py:3). Pass drop_remainder=is_training",
    ),
    "called by nobody": ({"main.py": "import reader\n"}, "this dataset feeds training and evaluation. "),
    "a test does not count": (
        {
            "main.py": "import reader\nd = reader.input_fn(f, True)\n",
            "reader_test.py": "import reader\nd = reader.input_fn(f, False)\n",
        },
        TRAINING,
    ),
    "a file that cannot be read": (
        {
            "main.py": "import reader\nd = reader.input_fn(f, True)\n",
            "old.py": 'import reader\nprint "x", reader.input_fn(f, False)\n',
        },
        "this dataset feeds training and evaluation. ",
    ),
}


@pytest.fixture
def project(tmp_path: pathlib.Path) -> Any:
    def make(files: dict[str, str]) -> Converter:
        for name, text in files.items():
            (tmp_path / name).write_text(text, encoding="utf-8")
        return Converter(SETTINGS, Project([str(tmp_path / name) for name in files]))

    return make


@pytest.mark.parametrize("files, words", PROJECTS.values(), ids=list(PROJECTS))
def test_calls_in_other_files(files: dict[str, str], words: str, project: Any, tmp_path: pathlib.Path) -> None:
    converter = project(dict(files, **{"reader.py": READER}))
    result = converter.convert(READER.encode("utf-8"), str(tmp_path / "reader.py"))
    (diagnostic,) = result.diagnostics
    assert words in diagnostic.message
    assert (result.new is not None) == (words == TRAINING)


def test_methods_are_found_through_the_importers_of_their_module(project: Any, tmp_path: pathlib.Path) -> None:
    text = HEAD + "class Images:\n    def batches(self, subset):\n        return tf.data.Dataset.range(9).batch(4)\n"
    converter = project(
        {
            "images.py": text,
            "data.py": "import images\ndef make():\n    return images.Images()\n",
            "score.py": 'import data\nprint(data.make().batches(subset="validation"))\n',
        }
    )
    (diagnostic,) = converter.convert(text.encode("utf-8"), str(tmp_path / "images.py")).diagnostics
    assert "this dataset feeds evaluation (see the calls of batches)" in diagnostic.message


@pytest.mark.parametrize(
    "name, wanted",
    [("predict.py", "this dataset feeds prediction (see the name of the file)"), ("reading.py", "unclear if")],
)
def test_the_name_of_a_file_that_does_not_train(name: str, wanted: str, project: Any, tmp_path: pathlib.Path) -> None:
    text = HEAD + "d = tf.data.TextLineDataset(files)\nd = d.batch(4)\n"
    (diagnostic,) = project({name: text}).convert(text.encode("utf-8"), str(tmp_path / name)).diagnostics
    assert diagnostic.message.startswith(wanted)


# --- loops that feed slices

FEEDS = {
    "a range": (
        "for i in range(0, n, 100):\n    p = sess.run(y, feed_dict={x: a[i:i + 100]})",
        "Write for feed, real in npu_shim.data.padded_batches({x: a}, 100): and keep [:real]",
    ),
    "a comprehension": (
        "p = [sess.run(y, feed_dict={x: a[i:i + m], z: b[i:i + m], k: 1.0}) for i in range(0, len(a), m)]",
        "padded_batches({x: a, z: b}, m)",
    ),
    "its end in a variable": (
        "for i in range(0, n, m):\n    j = i + m\n    p = y.eval(feed_dict={x: a[i:j, :]})",
        "padded_batches({x: a}, m)",
    ),
    "a minimum": (
        "while i < n:\n    j = min(i + m, n)\n    p = sess.run(y, feed_dict={x: a[i:j]})\n    i = j",
        "padded_batches({x: a}, m)",
    ),
    "a minimum the other way round": (
        "for b in range(k):\n    i = b * m\n    p = sess.run(y, feed_dict={x: a[i:min(n, m + i)]})",
        "padded_batches({x: a}, m)",
    ),
    "training": (
        "for i in range(0, len(a), m):\n    sess.run([train_op, loss], feed_dict={x: a[i:i + m]})",
        "Drop it in training: range(0, len(a) - m + 1, m)",
    ),
    "training by a minimum": (
        "while i < n:\n    j = min(i + m, n)\n    sess.run(optimizer, feed_dict={x: a[i:j]})\n    i = j",
        "Drop it in training: end the loop before",
    ),
    "a session without the keyword": (
        "sess = tf.Session()\nfor i in range(0, n, m):\n    p = sess.run(y, {x: a[i:i + m]})",
        "padded_batches({x: a}, m)",
    ),
    "another object without the keyword": ("for i in range(0, n, m):\n    p = job.run(y, {x: a[i:i + m]})", None),
    "numbers that fit": ("for i in range(0, 300, 100):\n    p = sess.run(y, feed_dict={x: a[i:i + 100]})", None),
    "numbers that do not fit": (
        "for i in range(0, 350, 100):\n    p = sess.run(y, feed_dict={x: a[i:i + 100]})",
        "{x: a}",
    ),
    "an end that is cut to fit": (
        "for i in range(0, n // m * m, m):\n    p = sess.run(y, feed_dict={x: a[i:i + m]})",
        None,
    ),
    "an end that is cut to fit before": (
        "last = n - n % m\nfor i in range(0, last, m):\n    p = sess.run(y, feed_dict={x: a[i:i + m]})",
        None,
    ),
    "steps that are not the size": ("for i in range(0, n, 2):\n    p = sess.run(y, feed_dict={x: a[i:i + m]})", None),
    "whole batches": ("for b in range(n // m):\n    p = sess.run(y, feed_dict={x: a[b * m:(b + 1) * m]})", None),
    "all at once": ("p = sess.run(y, feed_dict={x: a[i:i + m]})", None),
    "a smaller one is left out": (
        "for i in range(0, n, m):\n    if i + m > n:\n        break\n    p = sess.run(y, feed_dict={x: a[i:i + m]})",
        None,
    ),
}


@pytest.mark.parametrize("text, words", FEEDS.values(), ids=list(FEEDS))
def test_loops_that_feed_slices(text: str, words: str | None) -> None:
    result = Converter(Settings(select=("NPU245",))).convert((HEAD + text + "\n").encode("utf-8"))
    assert len(result.diagnostics) == (words is not None)
    assert all(words is not None and words in d.message for d in result.diagnostics)


@pytest.mark.parametrize(
    "text",
    [
        "ds = ds.apply(tf.data.experimental.bucket_by_sequence_length(n, [8], [4, 4]))",
        "a = tf.data.Dataset.range(9).batch(2)\nwhile True:\n    b = a.map(f)\n    a = b.map(g)",
    ],
)
def test_a_dataset_made_from_itself_is_traced_once(text: str) -> None:
    assert not Converter(SETTINGS).convert((HEAD + text + "\n").encode()).unreadable
