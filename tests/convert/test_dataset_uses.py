"""Datasets are followed to the code that reads them: the reads count, and names never count against them."""

from __future__ import annotations

import pathlib
import textwrap
from typing import Any

import pytest
from convert_tf2npu.engine.converter import CHANGE, Converter
from convert_tf2npu.engine.settings import Settings
from convert_tf2npu.project.project import Project

SETTINGS = Settings(select=("NPU109",))
MADE = "tf.data.Dataset.from_tensor_slices((x, y)).shuffle(100).batch(8)"
ONLY = "Only in training, use npu_shim.data.enforce_static_batch(%s)"
BOTH = "this dataset feeds training and %s (see %s). " + ONLY


def messages(text: str) -> list[tuple[str, str]]:
    """Return the kind and the message of each result; MADE stands for a shuffled dataset of batches."""
    script = "import numpy as np\nimport tensorflow as tf\n" + textwrap.dedent(text).lstrip().replace("MADE", MADE)
    return [(d.kind, d.message) for d in Converter(SETTINGS).convert(script.encode("utf-8")).diagnostics]


# The lines begin with 3, after two imports.
KEPT = {
    "predict": (
        "train = MADE\nmodel.fit(train)\nmodel.predict(train)",
        BOTH % ("prediction", "predict, line 5", "train"),
    ),
    "evaluate": (
        "train = MADE\nmodel.fit(train)\nmodel.evaluate(train)",
        BOTH % ("evaluation", "evaluate, line 5", "train"),
    ),
    "validation data": (
        "train = MADE\nmodel.fit(train, validation_data=train)",
        BOTH % ("evaluation", "validation_data, line 4", "train"),
    ),
    "a loop that computes": (
        "train = MADE\nmodel.fit(train)\nfor a, b in train:\n    n += len(a)",
        BOTH % ("other code", "the loop, line 5", "train"),
    ),
    "a comprehension": (
        "train = MADE\nmodel.fit(train)\nf = [model(a) for a, b in train]",
        BOTH % ("other code", "the loop, line 5", "train"),
    ),
    "a metric after a training loop": (
        """
        train = MADE
        for a, b in train:
            with tf.GradientTape() as tape:
                pass
        for a, b in train.prefetch(1):
            metric.update_state(b, model(a))
        """,
        BOTH % ("evaluation", "the loop, line 7", "train"),
    ),
    "adapt": (
        "train = MADE\nmodel.fit(train)\nlayer.adapt(train.map(lambda a, b: a))",
        BOTH % ("preprocessing", "adapt, line 5", "train"),
    ),
    "the rows as a list": (
        "train = MADE\nmodel.fit(train)\nrows = list(train)",
        BOTH % ("preprocessing", "list, line 5", "train"),
    ),
    "other functions": (
        """
        def make():
            train = MADE
            return train
        def fit(data):
            model.fit(data)
        def score(data):
            return model.predict(data)
        def main():
            data = make()
            fit(data)
            score(data)
        """,
        BOTH % ("prediction", "predict, line 9", "data"),
    ),
    "an attribute": (
        """
        class Trainer:
            def __init__(self):
                self.train = MADE
            def fit(self):
                model.fit(self.train)
            def report(self):
                return model.predict(self.train)
        """,
        BOTH % ("prediction", "predict, line 9", "self.train"),
    ),
    "an attribute of a base class": (
        """
        class Data:
            def __init__(self):
                self.train = MADE
        class Trainer(Data):
            def fit(self):
                model.fit(self.train)
                model.evaluate(self.train)
        """,
        BOTH % ("evaluation", "evaluate, line 9", "self.train"),
    ),
    "an argument of a class": (
        """
        class Report:
            def __init__(self, data):
                self.data = data
            def show(self):
                return model.predict(self.data)
        train = MADE
        model.fit(train)
        Report(train).show()
        """,
        BOTH % ("prediction", "predict, line 7", "train"),
    ),
    "a tuple of datasets": (
        """
        def make():
            train = MADE
            return train, 3
        train, n = make()
        model.fit(train)
        model.predict(train)
        """,
        BOTH % ("prediction", "predict, line 8", "train"),
    ),
    "a dictionary of datasets": (
        "sets = {}\nsets['train'] = MADE\nmodel.fit(sets['train'])\nmodel.predict(sets['train'])",
        BOTH % ("prediction", "predict, line 6", "sets['train']"),
    ),
    "datasets of a loop": (
        "train = MADE\nmodel.fit(train)\nfor data in (train, other):\n    model.evaluate(data)",
        BOTH % ("evaluation", "evaluate, line 6", "train"),
    ),
    "a part for validation": (
        "train = MADE\nmodel.fit(train.skip(9), validation_data=train.take(9))",
        BOTH % ("evaluation", "validation_data, line 4", "train.skip(9)"),
    ),
    "a generator": (
        """
        train = MADE
        def batches():
            for a, b in train:
                yield a
        model.fit(train)
        model.predict(batches())
        """,
        BOTH % ("prediction", "predict, line 8", "train"),
    ),
    "an initializable iterator": (
        """
        train = MADE
        iterator = train.make_initializable_iterator()
        a, b = iterator.get_next()
        logits = tf.layers.dense(a, 1)
        step = tf.train.AdamOptimizer(0.1).minimize(tf.losses.mean_squared_error(b, logits))
        session.run(iterator.initializer)
        while True:
            session.run(step)
        session.run(iterator.initializer)
        while True:
            total += len(session.run(logits))
        """,
        BOTH % ("other code", "session.run, line 11", "dataset"),
    ),
    "an iterator of several datasets": (
        """
        train = MADE
        iterator = tf.data.Iterator.from_structure(train.output_types, train.output_shapes)
        begin = iterator.make_initializer(train)
        a, b = iterator.get_next()
        logits = tf.layers.dense(a, 1)
        step = tf.train.AdamOptimizer(0.1).minimize(tf.losses.mean_squared_error(b, logits))
        for epoch in range(3):
            session.run(begin)
            while True:
                session.run(step)
        session.run(begin)
        while True:
            total += len(session.run(logits))
        """,
        BOTH % ("other code", "session.run, line 13", "dataset"),
    ),
    "an input function": (
        "def train_input_fn():\n    return MADE\nestimator.train(train_input_fn)\nestimator.predict(train_input_fn)",
        "this dataset feeds training and prediction (see predict, line 6). Add an is_training argument to train_input_fn",
    ),
    "an input function in a lambda": (
        "def train_input_fn(n):\n    return MADE\nestimator.train(lambda: train_input_fn(3))\n"
        "estimator.evaluate(lambda: train_input_fn(4))",
        "this dataset feeds training and evaluation (see evaluate, line 6). Add an is_training argument to train_input_fn",
    ),
    "a function that makes one for each": (
        "def train_data():\n    return MADE\nmodel.fit(train_data())\nmodel.predict(train_data())",
        "this dataset feeds training and prediction (see predict, line 6). Add an is_training argument to train_data",
    ),
    "one that a function of the branch for training returns": (
        """
        def make(is_training):
            if is_training:
                return MADE
            return other
        data = make(True)
        model.fit(data)
        model.predict(data)
        """,
        BOTH % ("prediction", "predict, line 9", "data"),
    ),
    "a name for evaluation that trains, too": (
        "test = MADE\nmodel.fit(test)\nmodel.evaluate(test)",
        BOTH % ("evaluation", "evaluate, line 5", "test"),
    ),
}


@pytest.mark.parametrize("text, words", KEPT.values(), ids=list(KEPT))
def test_a_dataset_that_feeds_more_than_training_keeps_its_rows(text: str, words: str) -> None:
    ((kind, message),) = messages(text)
    assert kind != CHANGE and message.startswith(words)


def test_a_script_that_drops_in_training_only_has_no_finding() -> None:
    text = "import npu_shim\ntrain = MADE\nmodel.fit(npu_shim.data.enforce_static_batch(train))\nmodel.predict(train)"
    assert messages(text) == []


@pytest.mark.parametrize(
    ("text", "edited"),
    [
        ("train = MADE\nmodel.fit(train, epochs=9, steps_per_epoch=math.ceil(n / 4))", "drop_in_training"),
        ("train = MADE\nmodel.fit(x=train.prefetch(1), epochs=9, steps_per_epoch=n)", "drop_in_training"),
        ("train = MADE.repeat(2)\nmodel.fit(train, epochs=9, steps_per_epoch=n)", "drop_in_training"),
        ("train = MADE.repeat()\nmodel.fit(train, epochs=9, steps_per_epoch=n)", "drop_remainder"),
        ("train = MADE\ntrain = train.repeat(-1)\nmodel.fit(train, epochs=9, steps_per_epoch=n)", "drop_remainder"),
        ("train = MADE\nmodel.fit(train, epochs=9, steps_per_epoch=None)", "drop_remainder"),
        ("train = MADE\nmodel.fit(train, epochs=9, steps_per_epoch=len(train))", "drop_remainder"),
    ],
)
def test_passes_that_fit_counts_in_steps_stay_passes(text: str, edited: str) -> None:
    script = "import math\nimport tensorflow as tf\n" + text.replace("MADE", MADE)
    converted = Converter(SETTINGS).convert(script.encode("utf-8")).new or b""
    assert [word for word in (b"drop_in_training", b"drop_remainder") if word in converted] == [edited.encode()]
    again = Converter(SETTINGS).convert(converted)
    assert again.new is None and not again.diagnostics


DROPPED = {
    "fit": "train = MADE\nmodel.fit(train)",
    "a name for evaluation": "test = MADE\nmodel.fit(test)",
    "a look at the first batch": "train = MADE\nmodel.fit(train)\nfor a, b in train.take(1):\n    print(a.shape)",
    "a loop that ends at once": "train = MADE\nmodel.fit(train)\nfor a, b in train:\n    show(a)\n    break",
    "the first batch": "train = MADE\nmodel.fit(train)\na, b = next(iter(train))",
    "the number of batches": "train = MADE\nmodel.fit(train, steps_per_epoch=len(train))\nprint(train.cardinality())",
    "another dataset of the same name": "train = MADE\nmodel.fit(train)\ntrain = other()\nmodel.predict(train)",
    "other data of a tuple": (
        "def make():\n    train = MADE\n    return train, 3\ntrain, test = make()\nmodel.fit(train)\nmodel.predict(test)"
    ),
    "the other branch": """
        def make(is_training):
            if is_training:
                return MADE
            return other
        model.fit(make(True))
        model.predict(make(False))
        """,
    "the steps of an object": """
        class Step:
            def __call__(self, a):
                with tf.GradientTape() as tape:
                    pass
        step = Step()
        train = MADE
        for a, b in train:
            step(a)
        """,
    "session runs that train": """
        train = MADE
        iterator = train.make_initializable_iterator()
        a, b = iterator.get_next()
        step = tf.train.AdamOptimizer(0.1).minimize(tf.losses.mean_squared_error(b, a))
        for epoch in range(3):
            session.run(iterator.initializer)
            while True:
                session.run(step)
        """,
}


@pytest.mark.parametrize("text", DROPPED.values(), ids=list(DROPPED))
def test_a_dataset_that_only_feeds_training_is_made_static(text: str) -> None:
    ((kind, _),) = messages(text)
    assert kind == CHANGE


PASS = """
def one_pass(data, {parameter}):
    for a, b in data:
        with tf.GradientTape() as tape:
            loss = model(a)
{body}
d = MADE
one_pass(d, {given})
"""
BODIES = {
    "a test": "        if {parameter}:\n            optimizer.apply_gradients(tape.gradient(loss, variables))",
    "a test of the other phase": (
        "        if not {parameter}:\n            show(loss)\n        else:\n"
        "            optimizer.apply_gradients(tape.gradient(loss, variables))"
    ),
    "an exit": (
        "        if not {parameter}:\n            continue\n"
        "        optimizer.apply_gradients(tape.gradient(loss, variables))"
    ),
    "a function": (
        "        update(tape.gradient(loss, variables), {parameter})\n"
        "def update(gradients, flag):\n    if flag:\n        optimizer.apply_gradients(gradients)"
    ),
    "a call under a test": (
        "        if {parameter}:\n            update(tape.gradient(loss, variables))\n"
        "def update(gradients):\n    optimizer.apply_gradients(gradients)"
    ),
}
EITHER = (
    "        if {parameter}:\n            optimizer.apply_gradients(clipped)\n        else:\n"
    "            optimizer.apply_gradients(gradients)"
)


@pytest.mark.parametrize("body", BODIES.values(), ids=list(BODIES))
def test_a_loop_that_trains_for_some_arguments_has_the_phase_of_its_call(body: str) -> None:
    def of(parameter: str, given: str, more: str = "") -> tuple[str, str]:
        lines = body.format(parameter=parameter)
        (said,) = messages(PASS.format(parameter=parameter, given=given, body=lines) + more)
        return said

    assert of("training", "True")[0] == of("is_training", "is_training=True")[0] == CHANGE
    kind, message = of("training", "False")
    assert kind != CHANGE and message.startswith("this dataset feeds evaluation (see the loop, line")
    kind, message = of("training", "True", "one_pass(d, False)\n")
    assert kind != CHANGE and message.startswith("this dataset feeds training and evaluation (see the loop, line")


@pytest.mark.parametrize("given", ["True", "flag", "learns=False"])
@pytest.mark.parametrize("body", BODIES.values(), ids=list(BODIES))
def test_a_loop_whose_calls_do_not_show_if_it_trains_stays_a_finding(body: str, given: str) -> None:
    text = PASS.format(parameter="learns", given=given, body=body.format(parameter="learns"))
    for more in ("", "model.fit(d)\n"):
        ((kind, message),) = messages(text + more)
        assert kind != CHANGE
        assert message.startswith(
            "unclear if this dataset feeds training or evaluation (not all of the calls of one_pass show it)"
        )
    ((kind, _),) = messages(
        text.replace("one_pass(d, ", "one_pass(").replace("(data, ", "(").replace("in data", "in d")
    )
    assert kind != CHANGE


@pytest.mark.parametrize(
    "parameters, given, said",
    [
        ("training=False", "", "this dataset feeds evaluation (see the loop, line"),
        ("training=True", "", "training batches made static (see the loop, line"),
        ("*, training=True", "", "training batches made static (see the loop, line"),
        ("training=True", ", training=False", "this dataset feeds evaluation (see the loop, line"),
        ("training=True", ", **options", "unclear if this dataset feeds"),
        ("training=True", ", *options", "unclear if this dataset feeds"),
        ("training=None, is_test=False", "", "unclear if this dataset feeds"),
        ("training=None, split='train'", "", "unclear if this dataset feeds"),
    ],
)
def test_a_loop_that_trains_by_default_has_the_phase_of_the_default(parameters: str, given: str, said: str) -> None:
    text = PASS.replace("one_pass(data, {parameter})", f"one_pass(data, {parameters})")
    text = text.replace("one_pass(d, {given})", f"one_pass(d{given})")
    ((_, message),) = messages(text.format(body=BODIES["a test"].format(parameter="training")))
    assert message.startswith(said)


TWO = """
train = tf.data.Dataset.from_tensor_slices((x, y)).repeat().batch(8)
{shapes}
iterator = tf.data.Iterator.{make}
train_step = iterator.make_initializer(train)
{other}
"""
STRUCTURE = "from_structure(train.output_types, train.output_shapes)"


@pytest.mark.parametrize(
    "make, shapes, other, is_shared",
    [
        (STRUCTURE, "", "iterator.make_initializer(test)", True),
        ("from_structure(types, shapes)", "shapes = train.output_shapes", "iterator.make_initializer(test)", True),
        (
            "from_structure(types, output_shapes=get_legacy_output_shapes(train))",
            "",
            "iterator.make_initializer(x)",
            True,
        ),
        ("from_string_handle(handle, types, train.output_shapes)", "", "", True),
        (STRUCTURE, "", "", False),
        ("from_structure(types, ((None, 3), (None,)))", "", "iterator.make_initializer(test)", False),
    ],
)
def test_a_dataset_stays_dynamic_if_its_shapes_are_those_of_others(
    make: str, shapes: str, other: str, is_shared: bool
) -> None:
    ((kind, message),) = messages(TWO.format(make=make, shapes=shapes, other=other))
    assert (kind != CHANGE) == message.startswith("an iterator that reads other datasets") == is_shared


LEARNER = """
class Learner:
    def walk(self, rows, training):
        for a, b in rows:
            self.see(a, training)
    def see(self, a, training):
        if training:
            with tf.GradientTape() as tape:
                loss = model(a)
            optimizer.apply_gradients(tape.gradient(loss, variables))
learner = Learner()
d = MADE
"""


@pytest.mark.parametrize(
    "calls, said",
    [
        ("learner.walk(d, training=False)", "this dataset feeds evaluation (see the loop, line"),
        ("learner.walk(d, True)", "training batches made static (see the loop, line"),
        ("learner.walk(d, True)\nlearner.walk(d, False)", "this dataset feeds training and evaluation (see the loop,"),
        ("Learner().walk(d, training=flag)", "unclear if this dataset feeds training or evaluation (not all of the"),
    ],
)
def test_a_dataset_is_followed_into_the_methods_of_an_object(calls: str, said: str) -> None:
    ((_, message),) = messages(LEARNER + calls)
    assert message.startswith(said)


def test_a_loop_that_trains_for_all_arguments_trains() -> None:
    lines = EITHER.format(parameter="clips")
    ((kind, _),) = messages(PASS.format(parameter="clips", given="3", body=lines))
    assert kind == CHANGE
    lines = BODIES["a test"].format(parameter="training").replace("if training", "if training and n % 4 == 0")
    ((kind, _),) = messages(PASS.format(parameter="training", given="True", body=lines))
    assert kind == CHANGE


ROWS = "x = np.zeros((20, 3))\n"
FROM_X = "tf.data.Dataset.from_tensor_slices(x)"
SIZES = {
    "more than a batch": (ROWS + f"model.fit({FROM_X}.shuffle(20).batch(8))", "training batches made static"),
    "no full batch": (
        ROWS + f"model.fit({FROM_X}.shuffle(20).batch(1024))",
        "the batch size 1024 is larger than this dataset of 20, so drop_remainder=True would leave no batch. "
        "Write batch(20, drop_remainder=True)",
    ),
    "no shuffle": (
        ROWS + f"d = {FROM_X}.map(f).prefetch(1)\nmodel.fit(d.batch(8))",
        "drop_remainder=True would drop the same 4 of 20 examples in each epoch. Call shuffle(20) before batch",
    ),
    "a shuffle of the batches": (
        ROWS + f"model.fit({FROM_X}.batch(8).shuffle(9))",
        "drop_remainder=True would drop the",
    ),
    "a fixed order": (
        ROWS + f"model.fit({FROM_X}.shuffle(20, reshuffle_each_iteration=False).batch(8))",
        "drop_remainder=True would drop the same 4 of 20",
    ),
    "a cached order": (
        ROWS + f"model.fit({FROM_X}.shuffle(20).cache().batch(8))",
        "drop_remainder=True would drop the",
    ),
    "cached batches": (
        ROWS + f"model.fit({FROM_X}.shuffle(20).batch(8).cache())",
        "drop_remainder=True before cache() would drop the same 4 of 20 examples in each epoch. Cache before shuffle",
    ),
    "a part": (
        f"x = tf.zeros([50, 3])\nmodel.fit({FROM_X}.skip(10).take(20).batch(8))",
        "drop_remainder=True would drop the same 4 of 20",
    ),
    "several epochs in one": (ROWS + f"model.fit({FROM_X}.repeat(2).batch(16))", "training batches made static"),
    "a size that divides": (
        ROWS + f"d = {FROM_X}.batch(5)\nmodel.fit(d)\nmodel.predict(d)",
        "batches made static without loss: 5 divides the 20 examples",
    ),
    "a dictionary and a tuple": (
        ROWS + "d = tf.data.Dataset.from_tensor_slices(({'a': x, 'b': other}, y))\nmodel.fit(d.batch(30))",
        "the batch size 30 is larger than this dataset of 20",
    ),
    "rows that a filter drops": (ROWS + f"model.fit({FROM_X}.filter(f).batch(8))", "training batches made static"),
}


@pytest.mark.parametrize("text, words", SIZES.values(), ids=list(SIZES))
def test_known_sizes(text: str, words: str) -> None:
    ((_, message),) = messages(text)
    assert message.startswith(words)


HEAD = "import tensorflow as tf\n"
FILES = {
    "a function of a helper": (
        HEAD + "def load_train(x, y):\n    return " + MADE + "\n",
        "from helper import load_train\ntrain = load_train(x, y)\nmodel.fit(train)\nmodel.predict(train)\n",
        BOTH % ("prediction", "predict, line main.py:4", "dataset"),
    ),
    "a variable of a helper": (
        HEAD + "train = " + MADE + "\nmodel.fit(train)\n",
        "import helper\nmodel.predict(helper.train)\n",
        BOTH % ("prediction", "predict, line main.py:2", "train"),
    ),
    "an attribute of an object": (
        HEAD + "class Data:\n    def __init__(self, x, y):\n        self.train = " + MADE + "\n",
        "from helper import Data\ndata = Data(x, y)\nmodel.fit(data.train)\nmodel.evaluate(data.train)\n",
        BOTH % ("evaluation", "evaluate, line main.py:4", "dataset"),
    ),
    "a method": (
        HEAD + "class Data:\n    def train(self):\n        return " + MADE + "\n",
        "from helper import Data\ntrain = Data().train()\nmodel.fit(train)\nmodel.predict(train)\n",
        BOTH % ("prediction", "predict, line main.py:4", "dataset"),
    ),
    "a function of a helper that reads": (
        "def report(data):\n    return model.predict(data)\n",
        HEAD + "from helper import report\ntrain = " + MADE + "\nmodel.fit(train)\nreport(train)\n",
        BOTH % ("prediction", "predict, line helper.py:2", "train"),
    ),
}


@pytest.mark.parametrize("helper, main, words", FILES.values(), ids=list(FILES))
def test_reads_in_other_files(helper: str, main: str, words: str, tmp_path: pathlib.Path) -> None:
    paths = [tmp_path / "helper.py", tmp_path / "main.py"]
    for path, text in zip(paths, (helper, main)):
        path.write_text(text, encoding="utf-8")
    converter = Converter(SETTINGS, Project([str(path) for path in paths]))
    found: list[Any] = []
    for path in paths:
        found += converter.convert(path.read_bytes(), str(path)).diagnostics
    (diagnostic,) = found
    assert diagnostic.message.startswith(words)
