"""``--dump`` on the CPU: a file for each output of each op at the chosen steps, with the numbers of the plain run."""

from __future__ import annotations

import argparse
import pathlib
import re
import subprocess
import sys
from typing import Callable

import numpy as np
import pytest
import tensorflow as tf

from npu_shim import cli
from npu_shim.cli import _dumped
from npu_shim.dumps import reference
from npu_shim.dumps.dump_settings import Dumping
from npu_shim.rehearsal import recorded_run
from npu_shim.rehearsal.running import Run
from samples import training
from tests.distributed import forks

Python = Callable[..., "subprocess.CompletedProcess[str]"]
RUN = "import sys\nfrom npu_shim.cli import run\nsys.exit(run.main(sys.argv[1:]))\n"
HEAD = """
import numpy as np
import tensorflow as tf
v1 = tf.compat.v1
x = np.linspace(-1, 1, 32, dtype="f4").reshape(8, 4)
y = x[:, :1] * 2
"""
SESSION = """
v1.disable_eager_execution()
images, labels = v1.placeholder(tf.float32, [8, 4], "images"), v1.placeholder(tf.float32, [8, 1], "labels")
w = v1.get_variable("w", [4, 1], initializer=v1.ones_initializer())
product = tf.matmul(images, w, name="product")
_, sum_of_three = tf.while_loop(lambda n, s: n < 3, lambda n, s: (n + 1, tf.add(s, product, name="sum")), [0, product])
loss = tf.reduce_mean(tf.square(sum_of_three - labels), name="loss")
train = v1.train.GradientDescentOptimizer(0.1).minimize(loss)
with v1.Session() as session:
    session.run(v1.global_variables_initializer())
    for step in range(20):
        print("loss", step, session.run([train, loss], {images: x, labels: y})[1])
"""
LOOP = """
w, k = tf.Variable(tf.ones([4, 1])), tf.Variable(tf.ones([1, 1, 1, 1]))
optimizer = tf.keras.optimizers.SGD(0.1)
{decorator}
def train():
    with tf.GradientTape() as tape:
        images = tf.reshape(tf.nn.conv2d(tf.reshape(x, [8, 2, 2, 1]), k, 1, "SAME"), [8, 4])
        product = tf.matmul(images, w, name="product")
        loss = tf.reduce_mean(tf.square(product - y), name="loss")
    optimizer.apply_gradients(zip(tape.gradient(loss, [w, k]), [w, k]))
    return loss
for step in range(20):
    print("loss", step, float(train()))
"""
FIT = """
model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(4,))])
model.compile("sgd", "mse")
shows = tf.keras.callbacks.LambdaCallback(on_epoch_begin=lambda epoch, logs: print("epoch", epoch))
model.fit(x, y, batch_size=4, epochs=3, verbose=0, callbacks=[shows])
print("after fit")
"""
SCRIPTS = {"session": SESSION, "function": LOOP.format(decorator="@tf.function"), "eager": LOOP.format(decorator="")}
ONLY_2 = [pytest.mark.nightly] * tf.__version__.startswith("1.")


def dumped(folder: pathlib.Path, script: str, *options: str) -> str:
    """Run a script with --dump. Return what it prints."""
    (folder / "run.py").write_text(RUN)
    (folder / "train.py").write_text(HEAD + script)
    arguments = ["--dump", str(folder / "dump"), *options, str(folder / "train.py")]
    environ = training.environment()
    return forks.run_script(folder / "run.py", *arguments, log=folder / "log", environ=environ, cwd=folder)


def of_step(folder: pathlib.Path, step: int) -> dict[str, np.ndarray]:
    """Return the outputs of a step by the names of their ops; those that the index names are there."""
    problems: dict[str, str] = {}
    made = reference.read_step(str(folder / "dump" / str(step)), problems)
    assert made.indexed and not problems
    assert len(made.outputs) == len(list((folder / "dump" / str(step)).glob("*.npy"))) > 5
    return {each.op: np.array(made.load_output(place)) for place, each in enumerate(made.outputs) if not each.output}


@pytest.mark.parametrize("kind", ["session", *(pytest.param(each, marks=ONLY_2) for each in ("function", "eager"))])
def test_each_output_of_the_chosen_steps_is_written(kind: str, tmp_path: pathlib.Path) -> None:
    printed = dumped(tmp_path, SCRIPTS[kind], "--dump-steps", "0,2-3")
    losses = {int(step): float(loss) for step, loss in re.findall(r"loss (\d+) (\S+)", printed)}
    assert sorted(losses) == [0, 1, 2, 3]  # the script ends after the last step
    assert sorted(each.name for each in (tmp_path / "dump").iterdir()) == ["0", "2", "3"]
    x = np.linspace(-1, 1, 32, dtype="f4").reshape(8, 4)
    for step in (0, 2, 3):
        found = of_step(tmp_path, step)
        np.testing.assert_allclose(found["Mean" if kind == "eager" else "loss"], losses[step], rtol=1e-6)
        if not step:
            np.testing.assert_allclose(
                found["MatMul" if kind == "eager" else "product"], x @ np.ones((4, 1)), rtol=1e-6
            )
    if kind == "session":
        first = of_step(tmp_path, 0)
        np.testing.assert_array_equal(first["images"], x)
        last = first.get("while/sum", first.get("sum"))  # a function of the loop has names of its own
        np.testing.assert_allclose(last, first["product"] * 4, rtol=1e-6)


@pytest.mark.once_tf115
def test_the_index_has_type_line_and_inputs_in_the_order_of_the_graph(tmp_path: pathlib.Path) -> None:
    dumped(tmp_path, SESSION)
    made = reference.read_step(str(tmp_path / "dump" / "0"), {})
    place = {each.op: number for number, each in enumerate(made.outputs)}
    product = made.outputs[place["product"]]
    assert (product.type, product.dtype, product.shape) == ("MatMul", "float32", [8, 1])
    source = product.inputs[1].partition(":")[0]  # the read of the variable
    assert product.inputs[0] == "images:0" and (made.load_output(place[source]) == 1).all()
    assert product.line == f"train.py:{(HEAD + SESSION)[: (HEAD + SESSION).index('product =')].count(chr(10)) + 1}"
    assert place["images"] < place[source] < place["product"] < place["loss"]


@pytest.mark.once_tf115
def test_named_ops_only_are_written(tmp_path: pathlib.Path) -> None:
    dumped(tmp_path, SESSION, "--dump-layers", "product,loss")
    made = reference.read_step(str(tmp_path / "dump" / "0"), {})
    assert [each.op for each in made.outputs] == ["product", "loss"]


@pytest.mark.once_tf115
def test_two_runs_on_the_cpu_are_compared(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As those of a card, which docs/accuracy.md shows."""
    for name, factor in (("first", 1), ("second", 1), ("third", 2)):
        (tmp_path / name).mkdir()
        dumped(tmp_path / name, SESSION.replace("{images: x,", f"{{images: x * {factor},"))
    first, second, third = (str(tmp_path / name / "dump") for name in ("first", "second", "third"))
    assert cli.main(["dumps", "compare", first, second]) == 0
    shown = capsys.readouterr().out
    assert "all outputs agree" in shown and "without a pair" not in shown, shown
    assert cli.main(["dumps", "compare", third, first]) == 1
    shown = capsys.readouterr().out
    assert shown.startswith("step 0: first op that departs in the order of the graph: images (Placeholder)"), shown
    assert "factor: the elements are 2 times those of the reference" in shown


@pytest.mark.parametrize(
    "options, text",
    [
        (
            ["--dump-steps", "0,900"],
            "nothing was dumped at step 900: the script ends before. Give earlier --dump-steps.",
        ),
        (["--dump-layers", "loss,los"], "no op 'los' ran at step 0. Dump without --dump-layers to see the names."),
    ],
)
@pytest.mark.once_tf115
def test_a_dump_without_a_step_or_op_is_an_error(
    python: Python, options: list[str], text: str, tmp_path: pathlib.Path
) -> None:
    (tmp_path / "train.py").write_text(HEAD + SESSION)
    done = python(tmp_path, "-m", "npu_shim", "run", "--dump", "dump", *options, "train.py")
    assert done.returncode == 2 and done.stdout.endswith(f"npu-shim run: error: {text}\n"), done.stdout


def test_fit_ends_the_script_after_the_last_step(tmp_path: pathlib.Path) -> None:
    out = dumped(tmp_path, FIT)
    assert "after fit" not in out and "epoch 1" not in out and len(list((tmp_path / "dump").iterdir())) == 1


def test_a_card_gets_the_names_in_its_own_form() -> None:
    parser = argparse.ArgumentParser()
    _dumped.add_arguments(parser)
    for given, wanted in ((["--dump-layers", "dense/MatMul,loss"], "dense/MatMul loss"), ([], "")):
        settings = _dumped.dump_settings(parser.parse_args(["--dump", "card", *given]), False)
        assert settings is not None
        options = settings.npu_options("/card")
        assert (options["dump_layer"], options["dump_step"], options["dump_mode"]) == (wanted, "0", "all")


IMPORTED = """
v1.disable_eager_execution()
frozen = v1.GraphDef.FromString(open("frozen.pb", "rb").read())
images, labels = v1.placeholder(tf.float32, [8, 4], "images"), v1.placeholder(tf.float32, [8, 1], "labels")
sums, = tf.import_graph_def(frozen, {"images": images}, ["sums:0"], name="model")
w = v1.get_variable("w", [1, 1], initializer=v1.ones_initializer())
loss = tf.reduce_mean(tf.square(tf.matmul(sums, w) - labels), name="loss")
train = v1.train.GradientDescentOptimizer(0.1).minimize(loss)
with v1.Session() as session:
    session.run(v1.global_variables_initializer())
    for step in range(3):
        print("loss", step, session.run({"train": train, "loss": loss}, {images: x, labels: y})["loss"])
"""


@pytest.mark.parametrize(
    "script",
    [
        pytest.param(IMPORTED, marks=pytest.mark.once_tf115),
        *(pytest.param(SCRIPTS["function"], marks=each) for each in ONLY_2 or [()]),
    ],
)
def test_a_recording_dumps_the_ops_of_the_script_only(script: str, tmp_path: pathlib.Path) -> None:
    dumping = Dumping(str(tmp_path / "dump"), [0])
    folder = str(tmp_path / "recording")
    run = Run("original", "train.py", [], folder, steps=1, initial="", of_ranks=True, dumping=dumping)
    with tf.Graph().as_default() as frozen:
        images = tf.compat.v1.placeholder(tf.float32, [8, 4], "images")
        doubled = tf.compat.v1.cond(tf.reduce_sum(images) < 9, lambda: images * 2, lambda: images, name="branch")
        tf.reduce_sum(tf.add(doubled, 1, name="added"), 1, keepdims=True, name="sums")
    (tmp_path / "frozen.pb").write_bytes(frozen.as_graph_def().SerializeToString())
    (tmp_path / "train.py").write_text(HEAD + script)
    environ = training.environment()
    process = pathlib.Path(recorded_run.__file__)
    forks.run_script(process, run.settings_text(), "train.py", log=tmp_path / "log", environ=environ, cwd=tmp_path)
    found = of_step(tmp_path, 0)
    made = reference.read_step(str(tmp_path / "dump" / "0"), {})
    assert not [
        each.op for each in made.outputs if not each.line and each.type != "Placeholder" and "model/" not in each.op
    ]
    assert not [name for name in found if re.match("(npu_shim|[Rr]ead)", name)]
    if script is IMPORTED:
        x = np.linspace(-1, 1, 32, dtype="f4").reshape(8, 4)
        np.testing.assert_allclose(found["model/added"], 2 * x + 1, rtol=1e-6)
        np.testing.assert_allclose(found["model/sums"], (2 * x + 1).sum(1, keepdims=True), rtol=1e-5)
        assert "ops of imported graphs are in branches or loops, or call functions" in (tmp_path / "log").read_text()
        inputs = {each.op: each.inputs for each in made.outputs}
        assert inputs["model/added"][0].startswith("model/branch/") and inputs["model/sums"][0] == "model/added:0"


@pytest.mark.parametrize(
    "options,words",
    [
        (["--dump-steps", "1"], "--dump-steps needs --dump. Add it."),
        (["--dump", "d", "--dump-steps", "3-1"], "3-1 is not allowed: give 1 to 100 steps, like 5 or 10-12"),
        (["--dump", "d", "--dump-steps", "a"], "a is not allowed: give steps from 0, like 5 or 10-12"),
        (["--dump", "d", "--dump-steps", "0-200"], "0-200 is not allowed: give 1 to 100 steps, like 5 or 10-12"),
        (
            ["--dump", "d", "--dump-steps", "0", "--dump-overflow"],
            "--dump-overflow looks at every step, so it excludes",
        ),
        (["--dump", "d", "--dump-overflow"], "--dump-overflow needs an NPU. On the CPU, npu-shim run --numerics DIR"),
        (["--dump", "."], "--dump .: the folder is not empty. Give another one, or remove it."),
        (["--dump", "train.py"], "--dump train.py: it is a file. Name a folder."),
        (["--precision", "half"], "precision_mode='half' is not allowed"),
    ],
)
def test_wrong_usage_is_one_error(
    options: list[str],
    words: str,
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    from npu_shim.cli import main

    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("")
    with pytest.raises(SystemExit) as end:
        sys.exit(main(["run", *options, "train.py"]))
    assert end.value.code == 2 and words in capsys.readouterr().err
    assert not (tmp_path / "d").exists()
