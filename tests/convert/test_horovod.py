"""With -d horovod either all uses of Horovod are converted or none."""

from __future__ import annotations

import ast
import pathlib

import pytest
from convert_tf2npu.engine.converter import CHANGE, FINDING, Converter
from convert_tf2npu.engine.settings import Settings
from convert_tf2npu.main import main

HEAD = "import tensorflow as tf\nimport horovod.tensorflow as hvd\n"
WITH = Converter(Settings(distributed="horovod"))
CONVERTED = {
    "nested uses": (
        "opt = hvd.DistributedOptimizer(tf.train.AdamOptimizer(0.1 * hvd.size()))\n",
        "opt = npu_distributed_optimizer_wrapper(tf.train.AdamOptimizer(0.1 * get_npu_rank_size()))\n",
    ),
    "a rank that is handed on": ("report(hvd.rank)\n", "report(get_npu_rank_id)\n"),
    "arguments by keyword": (
        "opt = hvd.DistributedOptimizer(name='d', optimizer=opt, sparse_as_dense=True)\n",
        "opt = npu_distributed_optimizer_wrapper(opt)\n",
    ),
    "a compression": (
        "opt = hvd.DistributedOptimizer(opt, compression=hvd.Compression.fp16)\n",
        "opt = npu_distributed_optimizer_wrapper(opt)\n",
    ),
    "a start in the main guard": (
        "if __name__ == '__main__':\n    hvd.init()\n    train()\n",
        "if __name__ == '__main__':\n    npu_sess, npu_shutdown = init_resource()\n    train()\n"
        "    shutdown_resource(npu_sess, npu_shutdown)\n    close_session(npu_sess)\n",
    ),
    "a start under a condition": (
        "def main(_):\n  if FLAGS.spread:\n    hvd.init()\n  train()\n",
        "def main(_):\n  if FLAGS.spread:\n    npu_sess, npu_shutdown = init_resource()\n  train()\n"
        "  if FLAGS.spread:\n    shutdown_resource(npu_sess, npu_shutdown)\n    close_session(npu_sess)\n",
    ),
    "a start in a helper, which does not end there": (
        "def start():\n    hvd.init()\nstart()\ntrain()\n",
        "def start():\n    npu_sess, npu_shutdown = init_resource()\nstart()\ntrain()\n",
    ),
    "a start in the last call of a script": (
        "def run():\n    hvd.init()\n    train()\nrun()\n",
        "def run():\n    npu_sess, npu_shutdown = init_resource()\n    train()\n"
        "    shutdown_resource(npu_sess, npu_shutdown)\n    close_session(npu_sess)\nrun()\n",
    ),
    "an end of its own": (
        "def main(_):\n    hvd.init()\n    train()\n    hvd.shutdown()\n    report()\n",
        "def main(_):\n    npu_sess, npu_shutdown = init_resource()\n    train()\n"
        "    shutdown_resource(npu_sess, npu_shutdown)\n    close_session(npu_sess)\n    report()\n",
    ),
    "options in a variable": (
        "fp16 = hvd.Compression.fp16\nopt = hvd.DistributedOptimizer(opt, compression=fp16)\n",
        "*\nopt = npu_distributed_optimizer_wrapper(opt)\n",
    ),
    "an import that may fail": (
        "try:\n    import horovod.keras as h\nexcept ImportError:\n    pass\nh.rank()\n",
        "*\nget_npu_rank_id()\n",
    ),
    "a comment behind the import": (
        "import horovod.keras as h  # ranks\nh.rank()\n",
        "*\n# ranks\nget_npu_rank_id()\n",
    ),
    "an import in a function": ("def f():\n    import horovod.tensorflow\n", "def f():\n    pass\n"),
    "names imported one by one": (
        "from horovod.tensorflow import rank, size as n\nx = [rank(), n()]\n",
        "*\nx = [get_npu_rank_id(), get_npu_rank_size()]\n",
    ),
    "a sum": ("loss = hvd.allreduce(loss, op=hvd.Sum)\n", "loss = npu_allreduce(loss, 'sum')\n"),
    "some variables": (
        "op = hvd.broadcast_variables(net.weights, root_rank=0)\n",
        "op = tf.group(*[v.assign(hccl_ops.broadcast([v], 0)[0]) for v in net.weights])\n",
    ),
    "a mean": ("loss = hvd.allreduce(loss)\n", "loss = npu_allreduce(loss)\n"),
}


@pytest.mark.parametrize("text,part", list(CONVERTED.values()), ids=list(CONVERTED))
def test_converts(text: str, part: str) -> None:
    new = WITH.convert((HEAD + text).encode()).new
    assert new is not None and part in new.decode()
    assert "hvd" not in new.decode() and "horovod" not in new.decode()
    assert WITH.convert(new).new is None
    ast.parse(new)


@pytest.mark.parametrize(
    "text",
    [
        "opt = hvd.DistributedOptimizer(opt, op=hvd.Adasum)\n",
        "hvd.init(comm)\n",
        "hvd.init()\nif x:\n    hvd.init()\n",
        "f = hvd.broadcast_variables\n",
        "hvd.allreduce(x, average=flag)\n",
        "hvd.rank()\nx = hvd.Compression.fp16\n",
        "x = hvd.Compression.fp16\nopt = hvd.DistributedOptimizer(opt, compression=x)\nprint(x)\n",
        "hvd.allreduce(x, prescale_factor=0.5)\n",
        "hvd.allreduce(x, op=hvd.Adasum)\n",
        "hvd.broadcast_variables(find(hvd.rank()), 0)\n",
        "train(hvd=None if not FLAGS.horovod else hvd)\n",
        "def f():\n    hvd.init()\ndef g():\n    hvd.shutdown()\n",
        "import horovod.tensorflow.keras as k\nmean = k.allreduce(3.0)\n",
        "from horovod.tensorflow import *\n",
        "callbacks = [hvd.callbacks.MetricAverageCallback()]\n",
        "opt = hvd.DistributedOptimizer(*a)\n",
        'opt = hvd.DistributedOptimizer(opt,  # the optimizer\n    name="a")\n',
    ],
)
def test_one_unsupported_use_leaves_the_file_unchanged(text: str) -> None:
    result = WITH.convert((HEAD + text).encode())
    assert result.new is None
    assert any(d.message.startswith("Horovod not converted in this file: ") for d in result.diagnostics) and not any(
        "replaced" in d.message for d in result.diagnostics
    )


@pytest.mark.parametrize("text", [t for t, _ in CONVERTED.values()], ids=list(CONVERTED))
def test_without_the_option_horovod_is_unchanged(text: str) -> None:
    assert Converter().convert((HEAD + text).encode()).new is None


@pytest.mark.parametrize(
    "text",
    ["f = lambda hvd: hvd.rank()\n", "x = [hvd.rank() for hvd in engines]\n", "def f(hvd):\n    return hvd.size()\n"],
)
def test_other_objects_of_that_name_are_unchanged(text: str) -> None:
    new = WITH.convert((HEAD + text).encode()).new
    assert new is not None and text in new.decode()


def test_an_unknown_end_of_the_training_is_reported() -> None:
    result = WITH.convert((HEAD + "def start():\n    hvd.init()\nstart()\ntrain()\n").encode())
    reported = [d for d in result.diagnostics if d.kind == FINDING]
    assert (
        len(reported) == 1
        and reported[0].line == 4
        and "shutdown_resource(npu_sess, npu_shutdown)" in reported[0].message
    )


INIT = "import tensorflow as tf\nimport horovod.tensorflow as hvd\nimport model\nhvd.init()\nmodel.make()\n"
MODEL = "import tensorflow as tf\nimport horovod.tensorflow as hvd\ndef make():\n    return hvd.size()\n"
ADASUM = "import horovod.tensorflow as hvd\nopt = hvd.DistributedOptimizer(opt, op=hvd.Adasum)\n"
PROJECTS: dict[str, dict[str, str]] = {
    "a file that the other imports": {"train.py": INIT, "model.py": MODEL},
    "the module through another file": {
        "comm.py": "import horovod.tensorflow as hvd\n",
        "train.py": "import tensorflow as tf\nfrom comm import hvd\nhvd.init()\nprint(hvd.rank())\n",
    },
    "the module as an attribute, through two files": {
        "a.py": "import horovod.tensorflow as hvd\n",
        "b.py": "from a import hvd as h\n",
        "train.py": "import tensorflow as tf\nimport b\nprint(b.h.rank())\n",
    },
    "a name among others": {
        "comm.py": "import horovod.tensorflow as hvd\nseed = 1\n",
        "train.py": "import tensorflow as tf\nfrom comm import hvd, seed\nprint(hvd.rank(), seed)\n",
    },
}


def convert(folder: pathlib.Path, files: dict[str, str], *arguments: str) -> dict[str, str]:
    for name, text in files.items():
        (folder / "src" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "src" / name).write_text(text)
    main(["-i", str(folder / "src"), "-o", str(folder / "out"), "-d", "horovod"] + list(arguments))
    return {name: (folder / "out" / name).read_text() for name in files}


@pytest.mark.parametrize("files", list(PROJECTS.values()), ids=list(PROJECTS))
def test_a_project_is_converted(files: dict[str, str], tmp_path: pathlib.Path) -> None:
    made = convert(tmp_path, files)
    for name, text in made.items():
        assert "hvd" not in text and "horovod" not in text, name
        ast.parse(text)
    assert "get_npu_rank" in "".join(made.values())


STAYING: list[dict[str, str]] = [
    {"train.py": INIT, "model.py": MODEL + "tape = hvd.DistributedGradientTape(t)\n"},
    {"train.py": INIT + "tape = hvd.DistributedGradientTape(t)\n", "model.py": MODEL},
    {"train.py": INIT, "model.py": "import deep\n", "deep.py": ADASUM},
    {"train.py": "import one\nimport two\n", "one.py": ADASUM, "two.py": MODEL},
    {"train.py": INIT, "model.py": MODEL + "npu_sess = 1\ndef get_npu_rank_size():\n    pass\n"},
    {"train.py": INIT, "model.py": MODEL.replace("as hvd", "as hvd  # npu: ignore[NPU301]")},
    {"train.py": INIT, "model.py": MODEL + 'print "rank"\n'},
    {"pkg/__init__.py": "", "pkg/main.py": INIT.replace("import model", "from . import model"), "pkg/model.py": ADASUM},
]


@pytest.mark.parametrize("files", STAYING)
def test_files_that_train_together_are_all_unchanged_or_none(files: dict[str, str], tmp_path: pathlib.Path) -> None:
    assert convert(tmp_path, files) == files


def test_an_excluded_file_keeps_those_that_train_with_it(tmp_path: pathlib.Path) -> None:
    files = {"train.py": INIT, "model.py": MODEL}
    assert convert(tmp_path, files, "--exclude", "model.py") == files


def test_scripts_that_train_apart_are_converted_apart(tmp_path: pathlib.Path) -> None:
    files = {
        "log.py": "def log(x):\n    pass\n",
        "one.py": "import log\n" + ADASUM,
        "two.py": "import log\nimport tensorflow as tf\nimport horovod.tensorflow as hvd\nprint(hvd.rank())\n",
    }
    made = convert(tmp_path, files)
    assert made["one.py"] == files["one.py"] and "get_npu_rank_id()" in made["two.py"]


def test_the_file_with_the_unsupported_use_is_named(tmp_path: pathlib.Path, capsys) -> None:
    convert(tmp_path, {"train.py": INIT, "model.py": MODEL + "hvd.elastic.run(f)\n"})
    printed = capsys.readouterr().out
    assert (
        "train.py:2:1: NPU301" in printed and "Horovod not converted in this file, because of model.py:5: " in printed
    )


def test_a_change_is_reported_at_the_import() -> None:
    result = WITH.convert((HEAD + "hvd.rank()\n").encode())
    assert [(d.line, d.kind) for d in result.diagnostics] == [(2, CHANGE)]
