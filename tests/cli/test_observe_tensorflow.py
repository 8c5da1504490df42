"""``npu-shim observe``: an unmodified script runs as ever, and the facts say what its source does not."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
from typing import Any, Callable

import pytest

from tests.verify_command import VerifyCommand

Python = Callable[..., "subprocess.CompletedProcess[str]"]

MASKS = """
import sys
import numpy as np
import tensorflow as tf

if hasattr(tf.compat.v1, "disable_eager_execution") and "graph" in sys.argv:
    tf.compat.v1.disable_eager_execution()


def positive(x):
    return tf.boolean_mask(x, x > 0.0)


def never(x):
    return tf.boolean_mask(x, x < 0.0)


def show(x):
    if tf.__version__.startswith("1.") or "graph" in sys.argv:
        given = tf.compat.v1.placeholder(tf.float32, [None])
        with tf.compat.v1.Session() as session:
            print(session.run(positive(given), {given: x}))
    else:
        print(tf.function(positive)(x).numpy())


for values in [1.0, 2.0, -1.0], [-1.0, 5.0, -1.0, 0.0]:
    show(np.array(values, np.float32))
if "fail" in sys.argv:
    raise ValueError("as asked")
"""


def observed(python: Python, folder: pathlib.Path, *arguments: str) -> tuple[str, dict[str, Any]]:
    """Run the script, observed. Return what it prints, and the facts."""
    (folder / "masks.py").write_text(MASKS)
    run = python(folder, "-m", "npu_shim", "observe", "-o", "facts.json", "masks.py", *arguments)
    assert run.returncode == (1 if "fail" in arguments else 0), run.stdout[-3000:]
    return run.stdout, json.loads((folder / "facts.json").read_text())


def test_sizes_are_seen_in_graphs_and_eagerly_and_merged(python: Python, tmp_path: pathlib.Path) -> None:
    output, facts = observed(python, tmp_path)
    assert "[1. 2.]\n" in output and "[5.]\n" in output
    _, facts = observed(python, tmp_path, "graph")
    file = facts["files"]["masks.py"]
    (rows,) = [fact for fact in file["facts"] if fact["kind"] == "rows"]
    assert (rows["at"][0], rows["runs"]) == (11, 2)
    assert rows["values"]["rows"]["distinct"] == [2, 1]
    assert [runs for first, _, runs in file["blocks"] if first == 15] == [0]
    assert [run["command"] for run in facts["runs"]] == [["masks.py"], ["masks.py", "graph"]]


LOOP = """
import tensorflow as tf

tf.compat.v1.enable_eager_execution()


@tf.function
def total(x):
    rows = tf.boolean_mask(x, x > 0.0)
    sum_of_rows = 0.0
    for row in tf.range(tf.shape(rows)[0]):
        tf.autograph.experimental.set_loop_options(parallel_iterations=1)
        sum_of_rows += rows[row]
    return sum_of_rows


print("total", total(tf.constant([1.0, 2.0, -1.0])).numpy())
"""


@pytest.mark.once_tf115
def test_a_loop_with_options_of_autograph_runs_and_is_seen(python: Python, tmp_path: pathlib.Path) -> None:
    (tmp_path / "loop.py").write_text(LOOP)
    run = python(tmp_path, "-m", "npu_shim", "observe", "-o", "facts.json", "loop.py")
    assert run.returncode == 0 and "total 3.0" in run.stdout, run.stdout[-3000:]
    file = json.loads((tmp_path / "facts.json").read_text())["files"]["loop.py"]
    assert [1 for first, last, runs in file["blocks"] if (first, last) == (12, 13) and runs] == [1]


@pytest.mark.once_tf115
def test_a_script_that_fails_leaves_what_was_seen(python: Python, tmp_path: pathlib.Path) -> None:
    output, facts = observed(python, tmp_path, "fail")
    assert output.rstrip().endswith("ValueError: as asked") and "npu_shim" not in output.split("Traceback")[1]
    assert facts["runs"][0]["ended"] == "error"
    rows = [fact["values"]["rows"] for fact in facts["files"]["masks.py"]["facts"] if fact["kind"] == "rows"]
    assert [values["most"] for values in rows] == [2]


@pytest.mark.once_tf115
def test_facts_of_other_files_are_kept_and_refused(python: Python, tmp_path: pathlib.Path) -> None:
    observed(python, tmp_path)
    (tmp_path / "masks.py").write_text(MASKS + "\n")
    before = (tmp_path / "facts.json").read_bytes()
    run = python(tmp_path, "-m", "npu_shim", "observe", "-o", "facts.json", "masks.py")
    assert run.returncode == 2 and "masks.py has changed since it was observed" in run.stdout
    assert (tmp_path / "facts.json").read_bytes() == before


STEPS = """
import numpy as np
import tensorflow as tf

x = np.ones((64, 4), np.float32)
model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
model.compile("sgd", "mse")
losses = model.fit(x, x[:, :1], batch_size=8, epochs=5, verbose=0).history["loss"]
print("epochs", len(losses))
model.save_weights("w.weights.h5")
print("last loss", losses[4])
"""


def test_a_run_ends_after_its_steps_and_takes_its_files_back(python: Python, tmp_path: pathlib.Path) -> None:
    (tmp_path / "fit.py").write_text(STEPS)
    for options, kept in ((["--take-back"], []), ([], ["w.weights.h5"])):
        run = python(tmp_path, "-m", "npu_shim", "observe", "--steps", "3", *options, "fit.py")
        assert run.returncode == 0 and "epochs 1\n" in run.stdout, run.stdout[-3000:]
        assert "the script ended with IndexError after its last step" in run.stdout
        assert [path.name for path in tmp_path.glob("w*")] == kept
    (first, second) = json.loads((tmp_path / "facts.json").read_text())["runs"]
    assert first == second == {**first, "steps": 3, "ended": "stopped"}


@pytest.mark.once_tf115
def test_a_run_has_a_folder_of_its_own_and_a_seed(python: Python, tmp_path: pathlib.Path) -> None:
    script = 'import os, sys, tensorflow\nopen(sys.argv[1], "w").close()\nprint(*sys.argv[1:], os.listdir("."))\n'
    (tmp_path / "save.py").write_text(script)
    run = python(tmp_path, "-m", "npu_shim", "observe", "save.py", "{run}/w.h5", "--seed={seed}")
    path, seed, listed = run.stdout.splitlines()[-1].split(" ", 2)
    assert seed == "--seed=1" and listed == "['save.py']", run.stdout[-3000:]
    assert path.endswith("w.h5") and not os.path.exists(os.path.dirname(path))
    (run,) = json.loads((tmp_path / "facts.json").read_text())["runs"]
    assert run["command"] == ["save.py", "{run}/w.h5", "--seed={seed}"]  # as npu-shim migrate compares it


NESTED = """
import time
import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_eager_execution()
x = tf.placeholder(tf.float32, [])
slow = tf.py_func(lambda value: (time.sleep(0.05), value)[1], [x], tf.float32)
inner = tf.Session(config=tf.ConfigProto(use_per_session_threads=True, inter_op_parallelism_threads=2))
read = lambda number: np.float32(inner.run(slow, {x: number}))
data = tf.data.Dataset.range(40).map(lambda n: tf.py_func(read, [tf.cast(n, tf.float32)], tf.float32)).prefetch(2)
batch = data.make_one_shot_iterator().get_next()
w = tf.Variable(1.0)
fed = tf.placeholder(tf.float32, [])
step = tf.train.GradientDescentOptimizer(0.1).minimize(tf.square(w - fed))
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    for _ in range(20):
        session.run(step, {fed: session.run(batch)})
"""


@pytest.mark.once_tf115
def test_sessions_that_a_dataset_runs_do_not_end_after_the_steps(python: Python, tmp_path: pathlib.Path) -> None:
    (tmp_path / "nested.py").write_text(NESTED)
    run = python(tmp_path, "-m", "npu_shim", "observe", "--steps", "3", "nested.py")
    assert run.returncode == 0 and "StepsReached" not in run.stdout, run.stdout[-3000:]
    (seen,) = json.loads((tmp_path / "facts.json").read_text())["runs"]
    assert (seen["steps"], seen["ended"]) == (3, "stopped")


OWN_UPDATES = """
import tensorflow as tf

tf.compat.v1.enable_eager_execution()
w = tf.Variable([1.0, 2.0])


@tf.function
def gradient():
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(w * w)
    return tape.gradient(loss, w)


for step in range(1000):
    w.assign(w - 0.1 * gradient())
print("ended")
"""


OWN_LOOPS = {
    "traced": OWN_UPDATES,
    "eager": OWN_UPDATES.replace("@tf.function\n", ""),
    "inside": OWN_UPDATES.replace(
        "return tape.gradient(loss, w)", "w.assign_sub(0.1 * tape.gradient(loss, w))"
    ).replace("w.assign(w - 0.1 * gradient())", "gradient()"),
    "concrete": OWN_UPDATES.replace("\n\nfor", "\n\ngradient = gradient.get_concrete_function()\nfor"),
    "nested": OWN_UPDATES.replace(
        "\n\nfor", "\n\ninner = gradient\ninner()\ngradient = tf.function(lambda: 1.0 * inner())\nfor"
    ),
}


@pytest.mark.parametrize("text", OWN_LOOPS.values(), ids=list(OWN_LOOPS))
@pytest.mark.once
def test_steps_of_a_script_without_an_optimizer_count(python: Python, tmp_path: pathlib.Path, text: str) -> None:
    (tmp_path / "own.py").write_text(text)
    run = python(tmp_path, "-m", "npu_shim", "observe", "--steps", "3", "own.py")
    assert run.returncode == 0 and "ended" not in run.stdout, run.stdout[-3000:]
    (run,) = json.loads((tmp_path / "facts.json").read_text())["runs"]
    assert (run["steps"], run["ended"]) == (3, "stopped")


@pytest.mark.once_tf115
def test_code_after_the_last_step_is_not_reached(python: Python, tmp_path: pathlib.Path) -> None:
    text = OWN_UPDATES.replace(
        "for step in range(1000):\n    w", "def train():\n    for step in range(1000):\n        w"
    )
    masks = "tf.boolean_mask(w, w > 0.0)\n"
    (tmp_path / "own.py").write_text(text.replace("print", f"    {masks}{masks}train()\n{masks}print"))
    for options in ["--steps", "3"], []:
        run = python(tmp_path, "-m", "npu_shim", "observe", *options, "own.py")
        assert run.returncode == 0, run.stdout[-3000:]
        convert = (
            "-m",
            "npu_shim",
            "convert",
            "own.py",
            "--facts",
            "facts.json",
            "-v",
            "--select",
            "NPU231",
            "--no-cache",
        )
        said = [line for line in python(tmp_path, *convert).stdout.splitlines() if "NPU231" in line]
        # Of the second the other run has seen the same size, which eager code may have.
        assert ["no observed run" in line for line in said] == ([False, True, True] if options else [False] * 2), said


@pytest.mark.once
def test_steps_of_a_script_without_an_optimizer_are_verified(
    verify_command: VerifyCommand, tmp_path: pathlib.Path
) -> None:
    (tmp_path / "own.py").write_text(OWN_UPDATES)
    code, output, found = verify_command(tmp_path, "--steps", "3", "own.py")
    assert code == 0, output[-3000:]
    assert found["original"]["steps"] == 3


LEFT_OPEN = """
import multiprocessing.pool
import sys
import threading
import time
import tensorflow as tf

tf.compat.v1.enable_eager_execution()


def rows_when_wanted():
    for row in range(50):
        while row > taken + 4:
            time.sleep(0.01)
        yield row


def wait():
    while True:
        time.sleep(1)


taken = 0
w = tf.Variable(1.0)
pool = multiprocessing.pool.Pool(1)
multiprocessing.Process(target=wait).start()
threading.Thread(target=wait).start()
for row in pool.imap(float, rows_when_wanted()):
    taken += 1
    with tf.GradientTape() as tape:
        loss = (w * row - 1.0) ** 2
    w.assign_sub(1e-5 * tape.gradient(loss, w))
"""


@pytest.mark.once
def test_a_stopped_script_ends_with_its_threads_and_processes(
    python: Python, verify_command: VerifyCommand, tmp_path: pathlib.Path
) -> None:
    (tmp_path / "left.py").write_text(LEFT_OPEN)
    run = python(tmp_path, "-m", "npu_shim", "observe", "--steps", "3", "left.py")
    assert run.returncode == 0 and "They are ended." in run.stdout, run.stdout[-3000:]
    (seen,) = json.loads((tmp_path / "facts.json").read_text())["runs"]
    assert (seen["steps"], seen["ended"]) == (3, "stopped")
    code, output, found = verify_command(tmp_path, "--steps", "3", "left.py")
    assert (code, found["original"]["steps"]) == (0, 3), output[-3000:]


SAVES = """
import subprocess
import sys
import tensorflow as tf

tf.compat.v1.enable_eager_execution()
PATH = "saved"


class Model(tf.Module):
    def __init__(self):
        super().__init__()
        self.w = tf.Variable([[1.0], [2.0]])

    @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float32)])
    def train(self, x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.boolean_mask(x, x[:, 0] > 0.0) @ self.w)
        self.w.assign_sub(0.1 * tape.gradient(loss, self.w))
        return {"loss": loss}


if "load" in sys.argv:
    model = tf.compat.v2.saved_model.load(PATH)
    print("loaded", float(model.train(tf.ones([4, 2]))["loss"]) != 0.0)
else:
    model = Model()
    SAVE
    print("went", subprocess.call([sys.executable, __file__, "load"]))
"""
TRAINS_AND_SAVES = """for _ in range(3):
        model.train(tf.ones([4, 2]))
    tf.saved_model.save(model, PATH, signatures={"train": model.train.get_concrete_function()})"""
SAVES_AND_TRAINS = """tf.saved_model.save(model, PATH)
    for _ in range(3):
        model.train(tf.ones([4, 2]))"""


@pytest.mark.parametrize("save", [TRAINS_AND_SAVES, SAVES_AND_TRAINS], ids=["trained", "first"])
@pytest.mark.once
def test_models_that_a_script_saves_have_no_note(python: Python, tmp_path: pathlib.Path, save: str) -> None:
    (tmp_path / "saves.py").write_text(SAVES.replace("SAVE\n", save + "\n"))
    run = python(tmp_path, "-m", "npu_shim", "observe", "saves.py")
    assert run.returncode == 0 and "went 0" in run.stdout and "loaded True" in run.stdout, run.stdout[-3000:]
    assert b"PyFunc" not in (tmp_path / "saved" / "saved_model.pb").read_bytes()
    facts = json.loads((tmp_path / "facts.json").read_text())
    (rows,) = [fact["values"]["rows"] for fact in facts["files"]["saves.py"]["facts"] if fact["kind"] == "rows"]
    assert rows["distinct"] == [4]  # the calls of this process noted it
    assert facts["runs"][0]["steps"] == 2  # the first values of the variables are those of the first call


@pytest.mark.once_tf115
def test_npu_shim_run_observes_too(python: Python, tmp_path: pathlib.Path) -> None:
    (tmp_path / "masks.py").write_text(MASKS)
    run = python(tmp_path, "-m", "npu_shim", "run", "--observe", "seen.json", "masks.py", "fail")
    assert run.returncode == 1 and run.stdout.rstrip().endswith("ValueError: as asked")
    assert "npu-shim run: " not in run.stdout  # it converts nothing
    assert json.loads((tmp_path / "seen.json").read_text())["files"]["masks.py"]["facts"]


@pytest.mark.once_tf115
def test_errors_of_the_script_are_those_of_python(python: Python, tmp_path: pathlib.Path) -> None:
    (tmp_path / "train.py").write_text("import no_such_package\n")
    run = python(tmp_path, "-m", "npu_shim", "observe", "train.py")
    assert run.returncode == 1 and "Traceback" in run.stdout
    assert run.stdout.rstrip().endswith("ModuleNotFoundError: No module named 'no_such_package'")


@pytest.mark.once_tf115
def test_the_script_imports_tensorflow_itself(python: Python, tmp_path: pathlib.Path) -> None:
    (tmp_path / "train.py").write_text("import sys\nprint('loaded', 'tensorflow' in sys.modules)\nimport tensorflow\n")
    for options in ([], ["--take-back"]):
        run = python(tmp_path, "-m", "npu_shim", "observe", *options, "train.py")
        assert run.returncode == 0 and "loaded False\n" in run.stdout, run.stdout[-2000:]


@pytest.mark.once_tf115
def test_the_vendors_packages_are_served_where_the_alias_is_wanted(python: Python, tmp_path: pathlib.Path) -> None:
    script = "import horovod.tensorflow as hvd\n\nhvd.init()\nprint('ranks', hvd.size())\n"
    (tmp_path / "ranks.py").write_text(script)
    run = python(tmp_path, "-m", "npu_shim", "observe", "-o", "facts.json", "ranks.py", NPU_SHIM_ALIAS="1")
    assert run.returncode == 0 and "ranks 1\n" in run.stdout, run.stdout[-3000:]


@pytest.mark.once_tf115
def test_the_folder_of_the_project_may_be_above_that_of_the_script(python: Python, tmp_path: pathlib.Path) -> None:
    package, scripts = tmp_path / "package", tmp_path / "scripts"
    for folder in (package, scripts):
        folder.mkdir()
    (package / "__init__.py").write_text("")
    (package / "masks.py").write_text(MASKS)
    (scripts / "train.py").write_text("import sys\n\nsys.path.insert(0, '.')\nimport package.masks\n")
    for options, files in (([], []), (["--project", "."], ["package/masks.py"])):
        output = f"facts{len(files)}.json"
        run = python(tmp_path, "-m", "npu_shim", "observe", "-o", output, *options, "scripts/train.py")
        assert run.returncode == 0, run.stdout[-3000:]
        facts = json.loads((tmp_path / output).read_text())["files"]
        assert [name for name, file in facts.items() if file["facts"]] == files
    run = python(tmp_path, "-m", "npu_shim", "observe", "--project", "none", "scripts/train.py")
    assert run.returncode == 2 and "folder not found: none. Give the folder of the project." in run.stdout
