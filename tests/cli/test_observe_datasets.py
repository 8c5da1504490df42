"""``npu-shim observe`` of datasets and placeholders: their uses and sizes, from the run to the converted script."""

from __future__ import annotations

import json
import pathlib
import subprocess
from typing import Any, Callable, Sequence

import pytest
import tensorflow as tf

from npu_shim._tensorflow.types import Dataset
from npu_shim.data.dropping import never_ends
from tests.rehearsal.recorded_runs import HAS_GRAPH_KERAS
from tests.verify_command import VerifyCommand

Python = Callable[..., "subprocess.CompletedProcess[str]"]
ONE = tf.__version__.startswith("1.")
DATA = """
import sys
import numpy as np
import tensorflow as tf

x = np.arange(40, dtype=np.float32).reshape(20, 2)
y = np.arange(20, dtype=np.float32)


def first(n):
    return tf.data.Dataset.from_tensor_slices((x, y)).shuffle(20).batch(n).prefetch(1)


def second(n):
    return tf.data.Dataset.from_tensor_slices((x, y)).batch(n)


def third(n):
    return tf.data.Dataset.from_tensor_slices((x, y)).batch(n)


def made(name, n):  # by name, so that the source does not show what is for evaluation
    return globals()[name](n)

"""
LOOP = (
    DATA
    + """
w = tf.Variable(tf.zeros([2, 1]))
optimizer = tf.keras.optimizers.SGD(0.001)


@tf.function
def step(a, b):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((a @ w - b) ** 2)
    optimizer.apply_gradients(zip(tape.gradient(loss, [w]), [w]))


for a, b in made("first", 8):
    step(a, b)
    for c, d in made("second", 6):
        tf.reduce_mean(c @ w - d)
    iterator = iter(made("second", 6))
    next(iterator)
    tf.train.Checkpoint(iterator=iterator).save("checkpoints/it")
for pair in zip(made("third", 5), made("third", 5)):
    step(*pair[0])
"""
)
TRACED_LOOP = """
@tf.function
def epoch(data):
    for a, b in data:
        step(a, b)


epoch(made("second", 6))
with tf.Graph().as_default(), tf.compat.v1.Session() as session:
    session.run(tf.compat.v1.data.make_one_shot_iterator(made("second", 6)).get_next())
"""
BY_HAND = (
    DATA
    + """
w = tf.Variable(tf.zeros([2, 1]))


def gradient(a, b):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((a @ w - b) ** 2)
    return tape.gradient(loss, w)


for a, b in made("first", 8):
    w.assign_sub(0.001 * gradient(a, b))
    for c, d in made("second", 6):
        tf.reduce_mean(c @ w - d)
gradient = tf.function(gradient) if TRACED else gradient
for a, b in made("third", 5):
    w.assign_sub(0.001 * gradient(a, b))
for c, d in made("second", 6):
    tf.reduce_mean(c @ w - d)
"""
)
KERAS = (
    DATA
    + """
model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
model.compile("sgd", "mse")


def call(name, data):
    getattr(model, name)(data, verbose=0)


call("fit", made("first", 8))
call("evaluate", made("second", 6))
call("fit", made("third", 5))
call("predict", made("third", 5).map(lambda a, b: a))
"""
)
GRAPH = (
    DATA.replace("tensorflow as", "tensorflow.compat.v1 as")
    + """
tf.disable_eager_execution()
w = tf.get_variable("w", [2, 1])
scale, shift = tf.placeholder(tf.float32, [None, 1]), tf.placeholder(tf.float32, [None])


def loss(data):
    a, b = tf.data.make_initializable_iterator(data).get_next()
    return tf.reduce_mean((tf.matmul(a, w) - b) ** 2) * tf.reduce_sum(scale) + tf.reduce_sum(shift)


losses = [loss(made("first", 8)), loss(made("second", 6)), loss(made("third", 3))]
updates = [tf.train.GradientDescentOptimizer(0.001).minimize(losses[i]) for i in (0, 2)]
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    session.run([op for op in tf.get_default_graph().get_operations() if op.type == "MakeIterator"])
    for i in range(3):
        feed = {scale: [[0.5], [0.5]], shift: np.zeros([i % 2])}
        if i % 2:  # the order makes no other graph
            losses, updates, feed = losses[:1] + losses[:0:-1], updates[::-1], dict(reversed(list(feed.items())))
        session.run(losses[1:], feed)
        session.run(updates, feed)
"""
)

SWITCHED = (
    DATA.replace("tensorflow as", "tensorflow.compat.v1 as")
    + """
tf.disable_eager_execution()
w = tf.get_variable("w", [2, 1])
first_data, second_data, third_data = made("first", 8), made("second", 6), made("third", 3)
types, shapes = tf.data.get_output_types(second_data), tf.data.get_output_shapes(second_data)
BEGIN
loss = tf.reduce_mean((tf.matmul(a, w) - b) ** 2)
update = tf.train.GradientDescentOptimizer(0.001).minimize(loss)


def read_all(session, fetched, feed=None):
    try:
        while True:
            session.run(fetched, feed)
    except tf.errors.OutOfRangeError:
        pass


with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    READ
"""
)
INITIALIZED = """
iterator = tf.data.Iterator.from_structure(types, shapes)
a, b = iterator.get_next()
begins = [iterator.make_initializer(data) for data in (first_data, second_data, third_data)]
"""
ONE_AFTER_THE_OTHER = """
    for _ in range(2):
        session.run(begins[0])
        read_all(session, update)
        session.run(begins[1])
        read_all(session, loss)
    session.run(begins[2])
    session.run(loss)
"""
FED_HANDLES = """
chosen = tf.placeholder(tf.string, [])
a, b = tf.data.Iterator.from_string_handle(chosen, types, shapes).get_next()
iterators = [tf.data.make_one_shot_iterator(data) for data in (first_data, second_data, third_data)]
"""
BY_HANDLES = """
    handles = session.run([iterator.string_handle() for iterator in iterators])
    session.run(update, {chosen: handles[0]})
    for handle in handles[1:]:
        session.run(loss, {chosen: handle})
    read_all(session, update, {chosen: handles[0]})
"""
BRANCHES = INITIALIZED.replace("iterator.make_initializer(data)", "begin(data)").replace(
    "begins =", "begin = BEGIN_IN_BRANCH\nbegins ="
)
IN_BRANCH = "lambda data: tf.cond(w[0, 0] > -9, lambda: tf.group(iterator.make_initializer(data)), tf.no_op)"


def observed(
    python: Python, folder: pathlib.Path, text: str, functions: Sequence[str] = ("first", "second", "third")
) -> dict[str, dict[str, Any]]:
    """Run a script, observed, and return what was seen, by the function around it."""
    (folder / "script.py").write_text(text)
    run = python(folder, "-m", "npu_shim", "observe", "-o", "facts.json", "script.py")
    assert run.returncode == 0, run.stdout[-3000:]
    file = json.loads((folder / "facts.json").read_text())["files"]["script.py"]
    names = {text[: text.index(f"def {name}(")].count("\n") + 2: name for name in functions}
    return {
        names[fact["at"][0]]: {name: values["distinct"] for name, values in fact["values"].items()}
        for fact in file["facts"]
        if fact["kind"] == "dataset" and fact["at"][0] in names
    }


HANDLES = """
counter = tf.get_variable("counter", [], tf.int32)
count = counter.assign_add(1)
with tf.control_dependencies([count]):
    counted = iterators[0].string_handle("counted")
in_branch = tf.cond(w[0, 0] > 9, lambda: iterators[1].string_handle("in_branch"), lambda: tf.constant(b""))
fed = tf.data.make_one_shot_iterator(tf.data.Dataset.range(0, 10, 0)).string_handle()  # 0 is no step, so it never runs
update = tf.group(tf.data.Iterator.from_string_handle(fed, types, shapes).get_next(), update)
"""
READ_HANDLES = """
    handle = session.run(iterators[0].string_handle())
    counter.load(0, session)
    session.run([counted, in_branch])
    session.run(update, {fed: handle, chosen: handle})
    print("runs", session.run(counter))
"""


@pytest.mark.once_tf115
def test_reading_handles_adds_nothing_to_a_run(python: Python, tmp_path: pathlib.Path) -> None:
    text = SWITCHED.replace("BEGIN\n", FED_HANDLES).replace("    READ\n", READ_HANDLES)
    text = text.replace("\n\ndef read_all", f"{HANDLES}\n\ndef read_all")
    seen = observed(python, tmp_path, text)
    assert seen["first"]["used"] == ["training"]
    run = python(tmp_path, "-m", "npu_shim", "observe", "-o", "facts.json", "script.py")
    assert "runs 1\n" in run.stdout, run.stdout[-3000:]


EAGER_ITERATOR = """
import tensorflow as tf

tf.compat.v1.enable_eager_execution()


def first():
    return tf.data.Dataset.range(12).batch(8)


print(tf.compat.v1.data.make_one_shot_iterator(first()).get_next())
"""


def test_an_iterator_in_eager_code_uses_its_dataset_in_another_way(python: Python, tmp_path: pathlib.Path) -> None:
    assert observed(python, tmp_path, EAGER_ITERATOR, ["first"])["first"]["used"] == ["other"]


def converted(python: Python, folder: pathlib.Path) -> str:
    run = python(folder, "-m", "convert_tf2npu.main", "-i", "script.py", "--facts", "facts.json", "-o", "out")
    assert run.returncode == 0, run.stdout[-3000:]
    return (folder / "out" / "script.py").read_text()


@pytest.mark.parametrize(
    "text, third, drops",
    [
        pytest.param(GRAPH, ["evaluation", "training"], 0, id="graph", marks=pytest.mark.once_tf115),
        *([] if ONE else [pytest.param(LOOP, ["other"], 1, id="loop")]),
        *([] if ONE else [pytest.param(KERAS, ["training", "prediction"], 2, id="keras")]),
    ],
)
def test_the_use_of_a_dataset_decides(
    python: Python, verify_command: VerifyCommand, tmp_path: pathlib.Path, text: str, third: list[str], drops: int
) -> None:
    seen = observed(python, tmp_path, text)
    assert (seen["first"]["used"], seen["first"]["size"], seen["first"]["batch"]) == (["training"], [8], [8, 4])
    assert (seen["first"]["lost"], seen["first"]["mixed"]) == ([True], [True])
    assert (seen["second"]["used"], "mixed" in seen["second"]) == (["evaluation"], False)
    assert seen["third"]["used"] == third
    new = converted(python, tmp_path)
    assert new.count("return npu_data.drop_in_training(tf.data.") == drops
    if text is GRAPH:
        assert "scale, shift = tf.placeholder(tf.float32, [2, 1]), tf.placeholder(tf.float32, [None])" in new
        seen = json.loads((tmp_path / "facts.json").read_text())["files"]["script.py"]["facts"]
        fed = [fact["values"] for fact in seen if fact["kind"] == "shape" and "changes" in fact["values"]]
        assert [values["changes"]["distinct"] for values in fed] == [[False], [False, True]]
    assert "drop_remainder" not in new  # a later run may evaluate with what these runs trained on
    if drops:  # the partial batches that training no longer has are no difference
        verified = verify_command(tmp_path, "script.py", "out/script.py")
        assert verified.code == 0, verified.output[-3000:]
        assert "leaves out the partial training batches" in verified.output


@pytest.mark.once_tf115
def test_examples_that_repeat_forever_are_endless(python: Python, tmp_path: pathlib.Path) -> None:
    text = GRAPH.replace("shuffle(20)", "shuffle(20).repeat(-min(n, 1)).filter(lambda a, b: b < 19)")
    seen = observed(python, tmp_path, text)
    assert (seen["first"]["used"], seen["first"]["endless"]) == (["training"], [True])
    assert (seen["third"]["used"], seen["third"]["endless"]) == (["evaluation", "training"], [False])
    assert "endless" not in seen["second"]


@pytest.mark.parametrize("count, is_endless", [(None, True), (-1, True), (3, False)])
def test_a_dataset_never_ends_if_it_repeats_forever(count: int | None, is_endless: bool) -> None:
    def make() -> Dataset:
        return tf.data.Dataset.range(5).repeat(count).map(lambda x: x + 1).prefetch(1)

    assert never_ends(make()) is is_endless
    with tf.Graph().as_default():
        assert never_ends(make()) is is_endless
        assert not never_ends(make().take(4))


@pytest.mark.once_tf115
@pytest.mark.parametrize(
    "begin, read, uses",
    [
        pytest.param(INITIALIZED, ONE_AFTER_THE_OTHER, "t e e", id="the last initializer"),
        pytest.param(FED_HANDLES, BY_HANDLES, "t e e", id="a fed handle"),
        pytest.param(
            FED_HANDLES.replace("(chosen", "(tf.identity(chosen)"), BY_HANDLES, "o o o", id="a handle that is computed"
        ),
        pytest.param(
            BRANCHES.replace("BEGIN_IN_BRANCH", IN_BRANCH),
            ONE_AFTER_THE_OTHER,
            "te te te",
            id="an initializer in a branch",
        ),
        pytest.param(
            INITIALIZED,
            ONE_AFTER_THE_OTHER.replace("session.run(begins[1])", "session.make_callable(begins[1])()"),
            "te te te",
            id="a callable",
        ),
    ],
)
def test_a_run_reads_the_dataset_that_its_iterator_began_last(
    python: Python, tmp_path: pathlib.Path, begin: str, read: str, uses: str
) -> None:
    seen = observed(python, tmp_path, SWITCHED.replace("BEGIN\n", begin).replace("    READ\n", read))
    words = {"t": "training", "e": "evaluation", "o": "other"}
    for name, letters in zip(("first", "second", "third"), uses.split()):
        assert set(seen[name]["used"]) == {words[letter] for letter in letters}, (name, seen)


TRAIN_AND_TEST = """
import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_eager_execution()
x = np.arange(40, dtype=np.float32).reshape(20, 2)
train = tf.data.Dataset.from_tensor_slices((x, x[:, 0])).shuffle(20).batch(8)
test = tf.data.Dataset.from_tensor_slices((x, x[:, 0])).batch(8)
iterator = tf.data.Iterator.from_structure(tf.data.get_output_types(train), tf.data.get_output_shapes(train))
a, b = iterator.get_next()
begin_training, begin_test = iterator.make_initializer(train), iterator.make_initializer(test)
w = tf.get_variable("w", [2, 1])
loss = tf.reduce_mean((tf.matmul(a, w)[:, 0] - b) ** 2)
update = tf.train.GradientDescentOptimizer(0.0001).minimize(loss)
rows = tf.shape(a)[0]
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    for epoch in range(2):
        session.run(begin_training)
        try:
            while True:
                session.run(update)
        except tf.errors.OutOfRangeError:
            session.run(begin_test)
        print("tested", [int(session.run(rows)) for _ in range(3)])
"""


@pytest.mark.once_tf115
def test_an_iterator_trains_on_full_batches_and_evaluates_all(
    python: Python, verify_command: VerifyCommand, tmp_path: pathlib.Path
) -> None:
    assert observed(python, tmp_path, TRAIN_AND_TEST, ()) == {}
    assert "make_initializer(npu_data.enforce_static_batch(train))" in converted(python, tmp_path)
    run = python(tmp_path, "out/script.py")
    assert run.returncode == 0 and run.stdout.count("tested [8, 8, 4]") == 2, run.stdout[-3000:]
    verified = verify_command(tmp_path, "script.py", "out/script.py")
    assert verified.code == 0, verified.output[-3000:]
    assert "leaves out the partial training batches" in verified.output


FIT_AND_TEST = """
import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_eager_execution()
x = np.arange(40, dtype=np.float32).reshape(20, 2)
data = tf.data.Dataset.from_tensor_slices((x, x[:, 0])).shuffle(20).batch(8)
model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(2,))])
model.compile("sgd", "mse")
model.fit(data, epochs=2, verbose=0)
iterator = tf.data.Iterator.from_structure(tf.data.get_output_types(data), tf.data.get_output_shapes(data))
begin, rows = iterator.make_initializer(data), tf.shape(iterator.get_next()[0])[0]
session = tf.keras.backend.get_session()
session.run(begin)
print("tested", [int(session.run(rows)) for _ in range(3)])
"""
SAME_DATA = TRAIN_AND_TEST.replace("make_initializer(test)", "make_initializer(train)")


@pytest.mark.once_tf115
@pytest.mark.parametrize(
    "script, function, wrapped",
    [
        *[
            pytest.param(
                FIT_AND_TEST,
                "drop_in_training",
                "tf.data.Dataset.from_tensor_slices((x, x[:, 0])).shuffle(20).batch(8)",
                id="marked",
            )
        ]
        * HAS_GRAPH_KERAS,
        pytest.param(SAME_DATA, "enforce_static_batch", "train", id="one of its initializers is static"),
    ],
)
def test_a_dataset_without_partial_batches_in_training_is_evaluated_whole(
    script: str, function: str, wrapped: str, verify_command: VerifyCommand, tmp_path: pathlib.Path
) -> None:
    (tmp_path / "script.py").write_text(script)
    begin = "make_initializer(" if wrapped == "train" else ""
    migrated = script.replace(f"{begin}{wrapped}", f"{begin}npu_shim.data.{function}({wrapped})", 1)
    assert migrated != script
    (tmp_path / "migrated.py").write_text(f"import npu_shim.data\n{migrated}")
    verified = verify_command(tmp_path, "script.py", "migrated.py")
    assert verified.code == 0, verified.output[-3000:]
    assert "leaves out the partial training batches" in verified.output


if not ONE:  # which has no tape

    @pytest.mark.parametrize("traced", ["False", "True"])
    def test_a_loop_without_gradients_evaluates_in_a_script_that_updates_by_hand(
        python: Python, tmp_path: pathlib.Path, traced: str
    ) -> None:
        seen = observed(python, tmp_path, BY_HAND.replace("TRACED", traced))
        assert [seen[name]["used"] for name in ("first", "second", "third")] == [
            ["training"],
            ["evaluation"],
            ["training"],
        ]
        assert (seen["first"]["trained_by"], seen["third"]["trained_by"]) == (["hand"], ["hand"])
        assert "drop_in_training" not in converted(python, tmp_path)  # which asks optimizers for their steps

    def test_a_loop_that_compares_its_own_count_keeps_all_batches(python: Python, tmp_path: pathlib.Path) -> None:
        begin, loop, rest = LOOP.partition("for a, b in made")
        counts = "    number += 1\n    if number == -(-len(x) // 8):\n        print('epoch ends')\n    for c, d"
        text = f"{begin}number = 0\n{loop}{rest}".replace("    for c, d", counts)
        seen = observed(python, tmp_path, text)
        assert (seen["first"]["used"], seen["first"]["counted"], "counted" in seen["second"]) == (
            ["training"],
            [True],
            False,
        )
        assert "drop_in_training" not in converted(python, tmp_path)

    @pytest.mark.parametrize(
        "body, drops",
        [
            ("if number % 2 == 0:\n        print(number)", True),
            ("if number == -(-len(x) // 8) - 1:\n        print('epoch ends')", False),
            ("losses = np.zeros(3)\n    losses[number] = 1", False),
        ],
    )
    def test_a_loop_that_numbers_its_batches_drops_if_nothing_computes_the_number(
        body: str, drops: bool, python: Python, tmp_path: pathlib.Path
    ) -> None:
        begin, _, rest = LOOP.partition('for a, b in made("first", 8):\n')
        numbered = f'for number, (a, b) in enumerate(made("first", 8)):\n    {body}\n'
        seen = observed(python, tmp_path, begin + numbered + rest)
        assert ("counted" in seen["first"]) is not drops
        assert ("drop_in_training" in converted(python, tmp_path)) is drops

    def test_a_function_may_read_a_dataset_on_which_a_loop_has_trained(python: Python, tmp_path: pathlib.Path) -> None:
        text = LOOP.replace("for pair in zip", TRACED_LOOP + "for pair in zip")
        seen = observed(python, tmp_path, text)
        assert (seen["first"]["used"], seen["second"]["used"]) == (["training"], ["evaluation", "other"])
        assert "drop_in_training" in converted(python, tmp_path)


SAVED_PIPELINE = """
import subprocess
import sys
import tensorflow as tf

v1 = tf.compat.v1


def batches(n):
    return v1.data.Dataset.from_tensor_slices(tf.ones([10, 3])).batch(n)


def evaluate(session, values):  # so that the source does not show that the dataset trains
    return session.run(values)


if "load" in sys.argv:
    with v1.Graph().as_default(), v1.Session() as session:
        v1.train.import_meta_graph("net/model.meta")
        session.run("begin")
        print("loaded", session.run("next:0").shape)
else:
    with v1.Graph().as_default(), v1.Session() as session:
        iterator = v1.data.make_initializable_iterator(batches(4))
        x = tf.identity(iterator.get_next(), name="next")
        tf.group(iterator.initializer, name="begin")
        w = v1.get_variable("w", [3, 1])
        train = v1.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_mean(x @ w))
        session.run([v1.global_variables_initializer(), "begin"])
        session.run(train)
        print(evaluate(session, x).shape)
        v1.train.Saver().save(session, "net/model")
    print("went", subprocess.call([sys.executable, __file__, "load"]))
"""


@pytest.mark.once_tf115
def test_input_pipelines_that_a_script_saves_have_no_note(python: Python, tmp_path: pathlib.Path) -> None:
    (tmp_path / "saves.py").write_text(SAVED_PIPELINE)
    run = python(tmp_path, "-m", "npu_shim", "observe", "saves.py")
    assert run.returncode == 0 and "went 0" in run.stdout and "loaded (4, 3)" in run.stdout, run.stdout[-3000:]
    (file,) = json.loads((tmp_path / "facts.json").read_text())["files"].values()
    (batches,) = [fact["values"] for fact in file["facts"] if fact["kind"] == "dataset"]
    assert (batches["used"]["distinct"], batches["batch"]["distinct"][0]) == (["training", "evaluation"], 4)
