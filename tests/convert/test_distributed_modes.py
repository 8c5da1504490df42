"""With -d auto each program is converted for the distributed training that it has, and a script of one device for none."""

from __future__ import annotations

import pathlib

import pytest
from convert_tf2npu.engine.converter import Converter, FileResult
from convert_tf2npu.engine.results import FINDING, UNREACHED
from convert_tf2npu.engine.run import convert_source
from convert_tf2npu.engine.settings import Settings
from convert_tf2npu.facts.facts import Facts, digest
from convert_tf2npu.facts.seen import Block, FileFacts
from convert_tf2npu.main import main

TRAIN = """
def train(x):
    loss = tf.reduce_mean(model.build(x))
    step = tf.train.AdamOptimizer(0.1).minimize(loss)
    with tf.train.MonitoredTrainingSession(checkpoint_dir='out') as sess:
        sess.run(step)
"""
MODEL = "import tensorflow as tf\n\n\ndef build(x):\n    return tf.layers.dense(x, 2)\n"
OPTIMIZER = """import tensorflow as tf


def minimize(loss):
    return tf.train.AdamOptimizer(0.1).minimize(loss)
"""
HOROVOD = "import horovod.tensorflow as hvd\nimport tensorflow as tf\nimport model\n\nhvd.init()\n" + TRAIN
STRATEGY = """import tensorflow as tf
import model

strategy = tf.distribute.MirroredStrategy()
config = tf.estimator.RunConfig(train_distribute=strategy)
"""
TOWERS = """import tensorflow as tf
import model

for i in range(FLAGS.num_gpus):
    with tf.device('/gpu:%d' % i), tf.variable_scope('model', reuse=i > 0):
        towers.append(optimizer.compute_gradients(model.build(parts[i])))
optimizer.apply_gradients(average(towers))
"""
ONE_DEVICE = "import tensorflow as tf\nimport model\n\nstrategy = tf.distribute.OneDeviceStrategy('/gpu:0')\n" + TRAIN
PROGRAMS = {"horovod": HOROVOD, "tf_strategy": STRATEGY, "towers": TOWERS, "": ONE_DEVICE}
MODES = {"towers": "tf_strategy"}


def of_folder(folder: pathlib.Path, files: dict[str, str], mode: str) -> dict[str, FileResult]:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    run = convert_source(str(folder), Settings(distributed=mode))
    return {entry.relative: result for entry, result in run.results}


@pytest.mark.parametrize("kind", PROGRAMS)
def test_a_program_is_converted_as_in_its_mode(kind: str, tmp_path: pathlib.Path) -> None:
    files = {"train.py": PROGRAMS[kind], "model.py": MODEL}
    assert of_folder(tmp_path, files, "auto") == of_folder(tmp_path, files, MODES.get(kind, kind))
    alone = PROGRAMS[kind].encode()
    assert Converter(Settings(distributed="auto")).convert(alone) == Converter(
        Settings(distributed=MODES.get(kind, kind))
    ).convert(alone)


def test_the_programs_of_a_folder_have_modes_of_their_own(tmp_path: pathlib.Path) -> None:
    files = {f"{kind or 'one'}.py": text for kind, text in PROGRAMS.items()}
    results = of_folder(tmp_path, {**files, "model.py": MODEL}, "auto")
    for kind in PROGRAMS:
        name = f"{kind or 'one'}.py"
        assert results[name] == of_folder(tmp_path, files, MODES.get(kind, kind))[name], kind


def test_a_file_has_the_mode_of_the_program_that_imports_it(tmp_path: pathlib.Path) -> None:
    single = "import tensorflow as tf\nimport single\n\nsingle.minimize(tf.reduce_mean(x))\n"
    files = {
        "strategies.py": STRATEGY.replace("import model\n", "from parts import optimizer\n"),
        "parts/__init__.py": "",
        "parts/optimizer.py": OPTIMIZER,
        "one.py": single,
        "single.py": OPTIMIZER,
    }
    results = of_folder(tmp_path, files, "auto")
    assert b"npu_distributed_optimizer_wrapper" in (results["parts/optimizer.py"].new or b"")
    assert results["single.py"].new is None and results["one.py"].new is None


def test_a_test_gives_no_mode_to_the_files_it_imports(tmp_path: pathlib.Path) -> None:
    files = {
        "one.py": "import tensorflow as tf\nimport optimizer\n\noptimizer.minimize(tf.reduce_mean(x))\n",
        "optimizer.py": OPTIMIZER,
        "strategies.py": STRATEGY.replace("import model\n", ""),
        "one_test.py": "import optimizer\nimport strategies\n",
    }
    assert of_folder(tmp_path, files, "auto")["optimizer.py"].new is None


def test_a_file_of_programs_of_both_is_reported_where_strategies_would_change_it(tmp_path: pathlib.Path) -> None:
    files = {
        "h.py": HOROVOD.replace("import model\n", "import model\nimport optimizer\n"),
        "s.py": STRATEGY.replace("import model\n", "import model\nimport optimizer\n"),
        "optimizer.py": OPTIMIZER,
        "model.py": MODEL,
    }
    results = of_folder(tmp_path, files, "auto")
    findings = {
        name: [d for d in result.diagnostics if "share this file" in d.message] for name, result in results.items()
    }
    assert [name for name, of_file in findings.items() if of_file] == ["optimizer.py"]
    assert findings["optimizer.py"][0].code == "NPU250" and results["optimizer.py"].new is None
    assert not any(
        "share this file" in diagnostic.message
        for entry, result in convert_source(str(tmp_path), Settings(ignore=("NPU250",), distributed="auto")).results
        for diagnostic in result.diagnostics
    )


@pytest.mark.parametrize("ran, kind", [(0, UNREACHED), (1, FINDING)])
def test_a_shared_file_is_not_reached_where_no_run_created_a_strategy(
    ran: int, kind: str, tmp_path: pathlib.Path
) -> None:
    files = {
        "h.py": HOROVOD.replace("import model\n", "import model\nimport optimizer\n"),
        "s.py": STRATEGY.replace("import model\n", "import model\nimport optimizer\n"),
        "optimizer.py": OPTIMIZER,
        "model.py": MODEL,
    }
    facts = Facts(str(tmp_path))
    for name, text in files.items():
        lines = Block(1, text.count("\n"))
        facts.files[name] = FileFacts(digest(text.encode()), {lines: ran if name == "s.py" else 1})
        (tmp_path / name).write_text(text)
    results = convert_source(str(tmp_path), Settings(facts=facts, distributed="auto")).results
    kinds = [d.kind for _, result in results for d in result.diagnostics if "share this file" in d.message]
    assert kinds == [kind]


def test_a_file_with_both_is_converted_for_horovod() -> None:
    text = (HOROVOD + STRATEGY).encode()
    assert Converter(Settings(distributed="auto")).convert(text) == Converter(Settings(distributed="horovod")).convert(
        text
    )


def test_converting_the_output_changes_nothing(tmp_path: pathlib.Path) -> None:
    for kind, text in PROGRAMS.items():
        (tmp_path / "src").mkdir(exist_ok=True)
        (tmp_path / "src" / f"{kind or 'one'}.py").write_text(text)
    (tmp_path / "src" / "model.py").write_text(MODEL)
    assert main(["-i", str(tmp_path / "src"), "-o", str(tmp_path / "out"), "-d", "auto", "-q", "--no-cache"]) == 0
    run = convert_source(str(tmp_path / "out"), Settings(distributed="auto"))
    assert {entry.relative for entry, result in run.results if result.new is not None} == set()
