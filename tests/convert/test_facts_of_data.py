"""Datasets, placeholders and batches: what facts settle, and what they do not."""

from __future__ import annotations

import functools
import pathlib
from typing import Any

import pytest
from convert_tf2npu.engine.converter import Converter, make_project
from convert_tf2npu.engine.results import FINDING, UNREACHED, FileResult
from convert_tf2npu.engine.settings import Settings
from convert_tf2npu.facts.facts import Facts, digest
from convert_tf2npu.facts.seen import Block, FileFacts, Seen

from tests.convert.observed import converted_with_facts, findings_and_text, messages

SELECT = {"select": ("NPU109", "NPU114", "NPU234", "NPU238", "NPU276")}
converted = functools.partial(findings_and_text, **SELECT)
READ = """import tensorflow as tf

def read(files):
    return tf.data.TextLineDataset(files).batch(64)
"""
TRAINED = {
    "used": "training",
    "trained_by": "next",
    "size": 64,
    "batch": [64, 6],
    "partial": True,
    "lost": True,
    "mixed": True,
}
EVALUATED = {"used": ["evaluation", "prediction"], "size": 64, "batch": [64, 6], "partial": True, "mixed": False}


@pytest.mark.parametrize("by", ["keras", "for", ["keras", "for"]])
def test_a_dataset_that_keras_or_loops_only_trained_on_drops_by_use(by: object) -> None:
    result = converted_with_facts(READ, {**TRAINED, "trained_by": by}, **SELECT)
    assert b"return npu_data.drop_in_training(tf.data.TextLineDataset(files).batch(64))" in (result.new or b"")
    assert [d.runs for d in result.diagnostics] == [2]


@pytest.mark.parametrize("by", ["next", "session", ["keras", "next"]])
def test_a_dataset_that_others_only_trained_on_stays_a_finding(by: object) -> None:
    (message,), text = converted(READ, {**TRAINED, "trained_by": by})
    assert text == READ and message.startswith("observed runs only trained on this dataset. Pass drop_remainder=True")
    both = READ + "\n\nmodel = tf.keras.Sequential()\nmodel.fit(read(a))\nmodel.evaluate(read(b))\n"
    assert converted(both, {**TRAINED, "trained_by": by}) == (converted(both, {})[0], both)


ENDLESS = {"used": ["training", "evaluation"], "trained_by": "session", "size": 64, "batch": [64, 6], "endless": True}


@pytest.mark.parametrize(
    "notes, is_settled",
    [
        ({}, True),
        ({"used": "training", "batch": 64}, True),
        ({"endless": [True, False]}, False),  # another run trained to the end
        ({"used": ["training", "other"]}, False),
    ],
)
def test_a_dataset_of_endless_examples_has_no_partial_batch_in_training(
    notes: dict[str, Any], is_settled: bool
) -> None:
    result, text = converted(READ, {**ENDLESS, **notes})
    assert (text, not result) == (READ, is_settled)


def test_endless_examples_of_keras_still_drop_by_use() -> None:
    result = converted_with_facts(READ, {**ENDLESS, "trained_by": "keras"}, **SELECT)
    assert b"npu_data.drop_in_training(" in (result.new or b"")


@pytest.mark.parametrize(
    "notes",
    [
        {},
        {"used": "other", "size": 64, "batch": 64},
        {**TRAINED, "used": ["training", "other"]},
        {"size": 64, "batch": [64, 6], "partial": True},
        {"used": "training", "trained_by": "next", "batch": [64, 6]},
        {"used": [str(n) for n in range(70)], "size": 64, "batch": 64},
    ],
)
def test_an_unproven_use_stays_a_finding(notes: dict[str, Any]) -> None:
    without, _ = converted(READ, {})
    assert without[0].startswith("unclear if this dataset feeds training")
    assert converted(READ, notes) == (without, READ)


def test_nothing_is_said_of_a_dataset_that_fed_evaluation_only() -> None:
    assert converted(READ, EVALUATED) == ([], READ)


def test_nothing_is_said_of_it_either_if_the_source_says_so_too() -> None:
    text = READ.replace("read", "eval_input_fn")
    assert converted(text, {})[0] != []
    assert converted(text, EVALUATED) == ([], text)
    assert converted(text, {**EVALUATED, "used": ["evaluation", "other"]})[0] != []


@pytest.mark.parametrize(
    "notes, said",
    [
        ({"batch": 6, "lost": False}, "an observed run had fewer examples than a batch of 64"),
        ({"lost": [True, False]}, "an observed run had fewer examples than a batch of 64"),
        ({"mixed": False}, "would drop the same examples in each epoch. Call shuffle(n) before batch"),
        (
            {"mixed": False, "examples": 70},
            "would drop the same 6 of 70 examples in each epoch. Call shuffle(70) before batch",
        ),
    ],
)
def test_examples_that_training_would_lose_are_reported(notes: dict[str, Any], said: str) -> None:
    (message,), text = converted(READ, {**TRAINED, **notes})
    assert said in message and text == READ


def test_estimators_drop_in_training_themselves() -> None:
    shared = {**TRAINED, "used": ["training", "evaluation"]}
    assert converted(READ, {**shared, "trained_by": "estimator"}) == ([], READ)
    assert converted(READ, {**shared, "trained_by": ["estimator", "next"]})[0] != []


def test_a_loop_that_asks_for_the_length_of_its_dataset_reads_all_of_it() -> None:
    for used in ("training", ["training", "evaluation"]):
        facts = {**TRAINED, "used": used, "trained_by": "for", "counted": True}
        assert converted(READ, facts)[1] == READ and converted(READ, facts)[0] != []
    assert converted(READ, {**TRAINED, "trained_by": "keras", "counted": True})[1] != READ


def test_a_dataset_on_which_keras_trains_and_evaluates_drops_by_use() -> None:
    shared = {**TRAINED, "used": ["training", "evaluation"], "trained_by": "keras"}
    found, text = converted(READ, shared)
    assert found == [] and "from npu_shim import data as npu_data\n" in text
    assert "    return npu_data.drop_in_training(tf.data.TextLineDataset(files).batch(64))\n" in text
    assert converted(text) == ([], text)
    assert converted(READ, {**shared, "used": ["training", "evaluation", "other"]})[1] == READ
    assert converted(READ, {**shared, "lost": False})[1] == READ


def test_a_function_without_the_argument_drops_in_training() -> None:
    text = "import tensorflow as tf\n\nds = tf.keras.utils.image_dataset_from_directory(path, batch_size=64)\n"
    assert "ds = npu_data.drop_in_training(tf.keras." in converted(text, {**TRAINED, "trained_by": "keras"})[1]
    assert converted(text, TRAINED)[1] == text


WINDOW = """import tensorflow as tf

def read(dataset: tf.data.Dataset, key):
    def batches(key, window: tf.data.Dataset):
        return window.padded_batch(32, [64])
    return dataset.apply(tf.data.experimental.group_by_window(key, batches, window_size=32))
"""


def test_buckets_that_were_always_full_are_not_reported() -> None:
    assert converted(WINDOW, {"size": 32, "batch": 32}) == ([], WINDOW)
    assert "each bucket of group_by_window" in converted(WINDOW, {"size": 32, "batch": [32, 5], "partial": True})[0][0]


PLACEHOLDERS = """import tensorflow.compat.v1 as tf

x = tf.placeholder(tf.float32, [None, 784], name="x")
y = tf.placeholder(tf.int64, shape=(None,))
z = tf.placeholder(tf.float32)
"""


def test_placeholders_get_the_shape_that_they_are_fed() -> None:
    found, text = converted(PLACEHOLDERS, {"shape": (32, 784)}, {"shape": (32,)}, {"shape": ()})
    assert (found, text.splitlines()[2:]) == (
        [],
        [
            'x = tf.placeholder(tf.float32, [32, 784], name="x")',
            "y = tf.placeholder(tf.int64, shape=(32,))",
            "z = tf.placeholder(tf.float32, shape=[])",
        ],
    )


def test_the_others_stay_one_finding_that_names_shapes() -> None:
    several = {"shape": [(n, 784) for n in range(1, 7)]}
    (message,), text = converted(PLACEHOLDERS, several, {"shape": (32,)}, {})
    assert message.startswith(
        "2 placeholders with a dynamic shape: observed runs fed [1, 784], [2, 784], [3, 784], [4, 784] and 2 more shapes"
    )
    assert text.count("None") == 1


RNN = "outputs, state = tf.nn.dynamic_rnn(cell, x, dtype=tf.float32)\n"
TRAIN_AND_TEST = {"shape": [(64, 784), (100, 784)]}


def test_one_shape_for_each_graph_needs_nothing() -> None:
    text = PLACEHOLDERS + RNN
    assert (
        converted(text, {**TRAIN_AND_TEST, "changes": False}, {"shape": (32,)}, {"shape": (), "changes": False})[0]
        == []
    )
    for changes in True, [False, True]:
        said, _ = converted(text, {**TRAIN_AND_TEST, "changes": changes}, {"shape": (32,)}, {})
        assert "observed runs fed [64, 784], [100, 784], and" in said[0] and "loops and conditions" in said[1]


FED = """import tensorflow.compat.v1 as tf

x = tf.placeholder(tf.float32, [None, 3])
with tf.Session() as session:
    session.run(train, feed_dict={x: batch})
    %s
    session.run(accuracy, feed_dict=feeds)
"""


@pytest.mark.parametrize("other", ["feeds = {model.x: tests}", "feeds[x] = tests", "feeds[model.x] = tests"])
def test_a_placeholder_with_a_feed_that_no_run_reached_stays(other: str) -> None:
    once, again = {"shape": (8, 3)}, {"shape": (8, 3)}
    (message,), text = converted(FED % other, once, again, {})
    assert message.startswith("placeholder with a dynamic shape: no observed run reached the feed at line 6. Observe a")
    assert text == FED % other
    assert converted(FED % other, once, again, again)[0] == []


@pytest.mark.parametrize("changes, kind", [(False, "unreached"), (True, "finding")])
def test_a_feed_that_no_run_reached_counts_as_not_reached_beside_those_that_need_nothing(
    changes: bool, kind: str
) -> None:
    seen = {"shape": (8, 3), "changes": changes}
    result = converted_with_facts(FED % "feeds = {x: tests}" + RNN, seen, seen, {}, **SELECT)
    assert [diagnostic.kind for diagnostic in result.diagnostics] == [kind] * 2


KEYED = """import tensorflow.compat.v1 as tf

def inputs():
    return x, model.labels

def batches():
    return x

x = tf.placeholder(tf.float32, [None, 3])
with tf.Session() as session:
    session.run(train, feed_dict={x: batch})

%s
"""
OTHERS = {
    "a loop variable": "def count(words):\n    seen = {}\n    for x in words:\n        seen[x] = seen.get(x, 0) + 1",
    "of a comprehension": "def count(words):\n    return {x: len(x) for x in words}\ntable = {y: 1 for y in ()}",
    "a literal": "def table():\n    x = 'a'\n    return {x: 1}",
    "a known call": "def table(word):\n    x = tf.constant(word)\n    return {x: 1}",
    "another placeholder": "def other():\n    x = tf.placeholder(tf.float32, [4, 3])\n    session.run(y, {x: rows})",
    "an argument": "def table(x):\n    return {x: 1}\nif stats:\n    table('a')",
}
FEEDS = {
    "the global": "def test():\n    session.run(y, {x: rows})",
    "an argument": "def test(x):\n    session.run(y, {x: rows})\ntest(x)",
    "an argument without a call": "def test(x):\n    session.run(y, {x: rows})",
    "a result": "def test():\n    x = batches()\n    session.run(y, {x: rows})",
    "a part of a result": "def test():\n    x, z = inputs()\n    session.run(y, {x: rows})",
    "an unknown result": "def test():\n    x = graph.get_tensor_by_name('x:0')\n    session.run(y, {x: rows})",
    "an attribute": "def test():\n    x = model.x\n    session.run(y, {x: rows})",
    "in a loop": "for rows in tests:\n    session.run(y, {x: rows})",
}


@pytest.mark.parametrize("code", OTHERS.values(), ids=list(OTHERS))
def test_a_key_of_the_same_name_in_another_scope_is_no_feed(code: str) -> None:
    fed = {"shape": (8, 3)}
    said, text = converted(KEYED % code, fed, fed)
    assert (said, text) == ([], (KEYED % code).replace("[None, 3]", "[8, 3]"))


@pytest.mark.parametrize("code", FEEDS.values(), ids=list(FEEDS))
def test_a_key_that_may_hold_the_placeholder_is_a_feed(code: str) -> None:
    fed = {"shape": (8, 3)}
    (message,), text = converted(KEYED % code, fed, fed, {})
    assert "no observed run reached the feed at line" in message and text == KEYED % code


MODEL = b"""import tensorflow.compat.v1 as tf

class Model:
    def __init__(self):
        self.x = tf.placeholder(tf.float32, [None, 3])
"""
TRAIN = b"""from model import Model

model = Model()
session.run(train, {model.x: batch})
def evaluate():
    session.run(accuracy, {model.x: tests})
"""


BUILDER = b"""import tensorflow.compat.v1 as tf

def inputs():
    x = tf.placeholder(tf.float32, [None, 3])
    return x, tf.placeholder(tf.int32, [8])
"""
CALLER = b"""import model

images, labels = model.inputs()
session.run(train, {images: batch, labels: numbers})
def evaluate():
    session.run(accuracy, {images: tests, labels: numbers})
"""
OWN = b"""import tensorflow.compat.v1 as tf

def inputs():
    x = tf.placeholder(tf.float32, [None, 3])
    return x

images = inputs()
session.run(train, {images: batch})
def evaluate():
    session.run(accuracy, {images: tests})
"""
LITERAL = b"""import tensorflow.compat.v1 as tf

places = {'x': tf.placeholder(tf.float32, [None, 3]), 'y': tf.placeholder(tf.int32, [8])}
feeds = {places['x']: batch, places['y']: numbers}
session.run(train, feeds)
def evaluate():
    feeds[places['x']] = tests
    session.run(accuracy, feeds)
"""
NAMED = b"""import tensorflow.compat.v1 as tf

x = tf.placeholder(tf.float32, [None, 3])
places = {'x': x, 'y': 1}
session.run(train, {places['x']: batch})
def evaluate():
    session.run(accuracy, {places['x']: tests})
"""
IN_TUPLE = NAMED.replace(b"{'x': x, 'y': 1}", b"(1, x)").replace(b"places['x']", b"places[-1]")
FILLED = b"""import tensorflow.compat.v1 as tf
import train

places = {}
places['x'] = tf.placeholder(tf.float32, [None, 3])
session.run(train, train.feeds(places, batch))
train.feeds_of_tests(places, tests)
"""
FILLER = b"""def feeds(places, batch):
    return {places['x']: batch}

def feeds_of_tests(places, batch):
    return {places['y']: 0, places['x']: batch}
"""


@pytest.mark.parametrize("times", [0, 1])
@pytest.mark.parametrize(
    "model, train, line",
    [
        pytest.param(MODEL, TRAIN, "train.py:6", id="of an attribute"),
        pytest.param(BUILDER, CALLER, "train.py:6", id="of a part of a result"),
        pytest.param(OWN, b"", "model.py:10", id="of a result in its file"),
        pytest.param(LITERAL, b"", "model.py:7", id="in a literal dictionary"),
        pytest.param(NAMED, b"", "model.py:7", id="in a dictionary, by its name"),
        pytest.param(IN_TUPLE, b"", "model.py:7", id="in a tuple"),
        pytest.param(FILLED, FILLER, "train.py:5", id="in a dictionary that is filled and passed"),
    ],
)
def test_a_feed_under_another_name_that_no_run_reached_counts(
    model: bytes, train: bytes, line: str, times: int, tmp_path: pathlib.Path
) -> None:
    paths = {name: str(tmp_path / name) for name in ("model.py", "train.py")}
    for name, text in (("model.py", model), ("train.py", train)):
        (tmp_path / name).write_bytes(text)
    (place,) = (asked.place for asked in Converter(Settings(**SELECT)).convert(model, paths["model.py"]).asked)
    seen = Seen(1, 1)
    seen.note("shape", (8, 3))
    name, number = line.split(":")
    blocks = {"model.py": {Block(1, 10): 1}, "train.py": {Block(1, 10): 1}}
    blocks[name][Block(int(number) - 1, 10)] = times
    files = {"model.py": FileFacts(digest(model), blocks["model.py"], {place: seen})}
    files["train.py"] = FileFacts(digest(train), blocks["train.py"])
    settings = Settings(facts=Facts(str(tmp_path), (), files), **SELECT)
    result = Converter(settings, make_project(settings, [*paths.values()], [*paths.values()])).convert(
        model, paths["model.py"]
    )
    (diagnostic,) = result.diagnostics
    assert (f"the feed at {line}. Observe a longer run" in diagnostic.message) == (times == 0)
    assert (diagnostic.kind == FINDING) == (times == 0)


def test_a_placeholder_that_is_itself_the_key_of_a_feed_takes_its_shape(tmp_path: pathlib.Path) -> None:
    text = b"import tensorflow.compat.v1 as tf\n\nf = {tf.placeholder(tf.float32, [None, 3]): 1, places['x']: 2}\n"
    path = str(tmp_path / "model.py")
    (place,) = (asked.place for asked in Converter(Settings(**SELECT)).convert(text, path).asked)
    seen = Seen(1, 1)
    seen.note("shape", (8, 3))
    files = {"model.py": FileFacts(digest(text), {Block(1, 4): 1}, {place: seen})}
    result = Converter(Settings(facts=Facts(str(tmp_path), (), files), **SELECT)).convert(text, path)
    assert result.new is not None and b"[8, 3]" in result.new


TRAINS = """import tensorflow.compat.v1 as tf
x = tf.placeholder(tf.float32, [None, 3], name="x")
model.y = tf.placeholder(tf.float32, [8], name="y")
session.run(train, {x: batch, model.y: 1})
"""
UNRESOLVED = {
    "a string": "session.run(y, {'x:0': tests})",
    "a string with a scope": "session.run(y, {'model/x_1:0': tests})",
    "a tensor by its name": "y = graph.get_tensor_by_name('x:0')\n    session.run(z, {y: tests})",
    "a collection": "y = tf.get_collection('inputs')[0]\n    session.run(z, {y: tests})",
    "pairs": "session.run(y, feed_dict=dict([(x, tests)]))",
    "zip": "session.run(y, dict(zip([x], [tests])))",
    "a comprehension": "y.eval({k: v for k, v in pairs})",
    "setdefault": "feeds = {}\n    feeds.setdefault(x, tests)\n    session.run(y, feeds)",
    "get": "session.run(y, {inputs.get('x'): tests})",
    "a list": "session.run(y, {inputs[0]: tests})",
    "getattr": "session.run(y, {getattr(model, 'x'): tests})",
    "a callable": "session.make_callable(y, [x])(tests)",
    "partial_run": "session.partial_run(handle, y, {x: tests})",
    "arguments": "session.run(*arguments)",
    "keywords": "session.run(y, **arguments)",
    "a hook": "return tf.train.SessionRunArgs(y, feeds)",
    "a dictionary that a function fills": "feeds = {}\n    fill(feeds)\n    session.run(y, feeds)",
    "an unknown dictionary": "session.run(y, feeds)",
    "its function": "session.run(y, fed(tests))",
    "a call of a function that feeds": "step(tests)",
    "a call of a callable": "call(tests)",
    "a call of a lambda": "short(tests)",
}
PROVEN = {
    "another string": "session.run(y, {'y:0': tests})",
    "another tensor by its name": "session.run(z, {graph.get_tensor_by_name('y:0'): tests})",
    "another attribute": "session.run(y, {model.y: tests})",
    "another placeholder": "y = tf.placeholder(tf.float32)\n    session.run(z, {y: tests})",
    "a variable key": "feeds = {}\n    feeds[model.y] = tests\n    session.run(y, feeds)",
    "nothing": "session.run(y, feed_dict=None)\n    y.eval()\n    session.run(z)",
    "a function of a library": "subprocess.run(command, 1)",
    "an own function": "run(y, tests)",
    "nothing by a callable": "session.make_callable(y)()",
}
HELPERS = """import subprocess
def fed(rows):
    return {x: rows}
def fill(feeds):
    feeds[x] = 1
def run(y, rows):
    return y
def step(rows):
    return session.run(train, fed(rows))
step(batch)
call = session.make_callable(train, [x])
call(batch)
short = lambda rows: session.run(train, {x: rows})
short(batch)
def test():
    """


def shape_with_unreached_end(code: str, folder: pathlib.Path) -> FileResult:
    """Convert a script whose last function, with some code, no run reached."""
    raw, path = (TRAINS + HELPERS + code + "\n").encode(), str(folder / "train.py")
    (folder / "train.py").write_bytes(raw)
    end = (TRAINS + HELPERS).count("\n") + 1
    file = FileFacts(digest(raw), {Block(1, end + 5): 1, Block(end, end + 5): 0})
    for place in (asked.place for asked in Converter(Settings(**SELECT)).convert(raw, path).asked):
        if place.line < end:
            file.seen[place] = Seen(1, 1)
            file.seen[place].note("shape", (8, 3))
    settings = Settings(facts=Facts(str(folder), (), {"train.py": file}), **SELECT)
    return Converter(settings, make_project(settings, [path], [path])).convert(raw, path)


@pytest.mark.parametrize("code", UNRESOLVED.values(), ids=list(UNRESOLVED))
def test_an_unreached_feed_that_may_feed_the_placeholder_counts(code: str, tmp_path: pathlib.Path) -> None:
    result = shape_with_unreached_end(code, tmp_path)
    assert result.new is None and "no observed run reached the feed at " in messages(result)[0]


@pytest.mark.parametrize("code", PROVEN.values(), ids=list(PROVEN))
def test_an_unreached_feed_of_other_placeholders_does_not_count(code: str, tmp_path: pathlib.Path) -> None:
    result = shape_with_unreached_end(code, tmp_path)
    assert b"[8, 3]" in (result.new or b"") and messages(result) == []


UNFED = "import tensorflow.compat.v1 as tf\n\nx = tf.placeholder(tf.float32, [None, 3])\n"


@pytest.mark.parametrize(
    "text, notes, kind",
    [
        (UNFED, {"shape": []}, None),  # made, and never fed
        (UNFED, {"shape": [(1, 3), (2, 3)]}, FINDING),
        (UNFED, {"changes": True}, FINDING),  # fed by what shows no shapes
        (UNFED, {}, FINDING),
        (UNFED.replace("r(tf.float32", "r_with_default(x0"), {"shape": []}, FINDING),  # which is fed its default
        (READ, {"size": 64, "examples": 90}, UNREACHED),
        (READ, {"size": 64, "batch": 64}, FINDING),
        (READ, {}, FINDING),
    ],
)
def test_a_value_that_no_observed_run_used_is_no_place_left_in_reached_code(
    text: str, notes: dict[str, Any], kind: str | None
) -> None:
    with_facts = converted_with_facts(text, notes, **SELECT)
    assert [d.kind for d in with_facts.diagnostics] == [kind] * (kind is not None)


@pytest.mark.parametrize(
    "after, kinds",
    [
        ("print('trained')", []),  # nothing reads it
        ("if evaluating:\n    model.evaluate(test)", [UNREACHED]),
        ("test_all(test)", [UNREACHED]),  # which may read it
    ],
)
def test_a_dataset_that_nothing_reads_needs_nothing(after: str, kinds: list[str]) -> None:
    text = f"import tensorflow as tf\n\ntest = tf.data.TextLineDataset(files)\ntest = test.batch(64)\n{after}\n"
    with_facts = converted_with_facts(text, {"size": 64, "examples": 90}, **SELECT)
    assert [d.kind for d in with_facts.diagnostics] == kinds
    assert len(converted_with_facts(text, {}, **SELECT).diagnostics) == 1


def test_a_placeholder_that_was_never_fed_is_reported_if_the_program_may_feed_it_elsewhere() -> None:
    text = UNFED + "if export:\n    session.run(y, {x: rows})\n"
    (diagnostic,) = converted_with_facts(text, {"shape": []}, {}, **SELECT).diagnostics
    assert diagnostic.kind == UNREACHED
    assert "no observed run reached the feed at line 5" in str(diagnostic.message)


def test_a_placeholder_that_a_copy_of_its_graph_may_be_fed_for_is_reported() -> None:
    text = UNFED + "saver = tf.train.import_meta_graph(path)\n"
    assert len(converted_with_facts(text, {"shape": []}, **SELECT).diagnostics) == 1


def test_a_shape_that_is_no_literal_or_has_another_rank_stays() -> None:
    text = "import tensorflow.compat.v1 as tf\n\nsize = [None, 3]\nx = tf.placeholder(tf.float32, size)\n"
    assert converted(text, {"shape": (8, 3)})[1] == text
    assert converted(text.replace("size)", "[None] + [3])"), {"shape": (8, 3)})[0] != []


def test_a_sparse_placeholder_of_one_number_of_values_is_not_reported() -> None:
    text = "import tensorflow.compat.v1 as tf\n\nx = tf.sparse_placeholder(tf.float32, [9, 9])\n"
    assert converted(text, {"shape": (40,)}) == ([], text)
    assert len(converted(text, {"shape": [(40,), (41,)]})[0]) == 1


SWITCHED = """import tensorflow.compat.v1 as tf

train = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(9000)
train = train.batch(64)
iterator = tf.data.Iterator.from_structure(train.output_types, train.output_shapes)
update = tf.train.AdamOptimizer().minimize(loss(iterator.get_next()))
begin = iterator.make_initializer(train.prefetch(1))
evaluate = iterator.make_initializer(tests)
with tf.Session() as session:
    session.run(begin)
    while True:
        session.run(update)
"""
BY_SESSION = {**TRAINED, "trained_by": "session"}
SHAPES = "an iterator that reads other datasets has the shapes of this one"


def test_an_initializer_for_training_gets_full_batches_and_the_iterator_keeps_its_shapes() -> None:
    result = converted_with_facts(SWITCHED, BY_SESSION, **SELECT)
    edited = "begin = iterator.make_initializer(npu_data.enforce_static_batch(train.prefetch(1)))"
    assert messages(result) == [] and [d.runs for d in result.diagnostics] == [2]
    new = (result.new or b"").decode()
    assert edited in new and new.replace(edited, "").count("enforce_static_batch") == 0 and "drop_remainder" not in new
    assert converted_with_facts(new, **SELECT).diagnostics == ()


@pytest.mark.parametrize(
    "text, facts, said",
    [
        (SWITCHED, {}, SHAPES),  # no run reached it
        (SWITCHED, {**BY_SESSION, "used": ["training", "evaluation"]}, SHAPES),
        (SWITCHED, {**BY_SESSION, "mixed": False}, SHAPES),  # the same examples would be lost in each epoch
        (SWITCHED.replace("(train.prefetch(1))", "(train if training else tests)"), BY_SESSION, SHAPES),
        (SWITCHED + "own = train.make_one_shot_iterator()\n", BY_SESSION, SHAPES),
    ],
)
def test_an_initializer_that_may_begin_something_else_stays(text: str, facts: dict[str, Any], said: str) -> None:
    (message,), new = converted(text, facts)
    assert message.startswith(said) and new == text


PADDED = """import tensorflow as tf

dataset = tf.data.TFRecordDataset(files).map(parse).repeat()
dataset = dataset.padded_batch(32, {"a": [None], "b": ([], tf.TensorShape([3, -1]))}, drop_remainder=True)
"""


def test_padded_batches_that_no_run_read_count_as_not_reached() -> None:
    assert [d.kind for d in converted_with_facts(PADDED, {"examples": 8}, select=("NPU238",)).diagnostics] == [
        UNREACHED
    ]
    for read in {"axis:0.1": [3, 4], "batch": 32}, {"used": "training"}, {}:
        assert [d.kind for d in converted_with_facts(PADDED, read, select=("NPU238",)).diagnostics] == [FINDING]


def test_padded_batches_get_the_only_length() -> None:
    found, text = converted(PADDED, {"axis:0.1": 128, "axis:2.2": 7, "batch": 32})
    shapes = '{"a": [None], "b": ([], tf.TensorShape([3, -1]))}'
    fixed = shapes.replace("None", "128").replace("-1", "7")
    assert found == [] and "from npu_shim import data as npu_data" in text
    assert f"npu_data.fixed_lengths(dataset.padded_batch(32, {shapes}, drop_remainder=True), {fixed})" in text
    assert converted(text) == ([], text)


def test_several_lengths_are_named() -> None:
    (message,), text = converted(PADDED, {"axis:0.1": [9, 120], "axis:2.2": 7, "batch": 32})
    assert "lengths from 7 to 120" in message and "with lengths [8, 16, 32, 64, 120]" in message and text == PADDED
    (message,), text = converted(PADDED, {"axis:0.1": 128, "batch": 32})  # it is unclear which length is another
    assert text == PADDED
