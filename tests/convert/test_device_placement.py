"""Code that runs on the host gets no findings about the device, in whatever file it is used."""

from __future__ import annotations

import pathlib

import pytest
from convert_tf2npu.engine.converter import Converter
from convert_tf2npu.project.project import Project

HEAD = "import tensorflow as tf\n"
OPS = HEAD + "def keep(x):\n    return tf.boolean_mask(x, x > 0)\n"
DATASET = "dataset = tf.data.TFRecordDataset(files)\n"


def codes(files: dict[str, str], folder: pathlib.Path) -> str:
    """Return the codes of the findings in the first file."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    paths = [str(folder / name) for name in files]
    found = Converter(project=Project(paths)).convert((folder / list(files)[0]).read_bytes(), paths[0])
    return " ".join(d.code for d in found.diagnostics)


ON_HOST: dict[str, dict[str, str]] = {
    "handed to map in another file": {
        "use.py": HEAD + "from ops import keep\n" + DATASET + "dataset = dataset.map(keep)\n"
    },
    "handed to map as an attribute of its module": {
        "use.py": HEAD + "import ops\n" + DATASET + "dataset = dataset.map(ops.keep, num_parallel_calls=8)\n"
    },
    "called in a lambda that is handed to map": {
        "use.py": HEAD + "import ops\n" + DATASET + "dataset = dataset.map(lambda x: ops.keep(x))\n"
    },
    "called by a function of another file that is handed to map": {
        "use.py": HEAD + "import ops\ndef fix(x):\n    return ops.keep(x)\n" + DATASET + "dataset.map(fix)\n"
    },
    "called by a function of a file that a third one hands to map": {
        "fix.py": "from ops import keep\ndef fix(x):\n    return keep(x)\n",
        "use.py": HEAD + "import fix\n" + DATASET + "dataset.map(fix.fix)\n",
    },
    "handed through partial": {
        "use.py": HEAD + "import functools, ops\n" + DATASET + "dataset.map(functools.partial(ops.keep))\n"
    },
    "handed to py_func": {"use.py": HEAD + "import ops\ny = tf.py_func(ops.keep, [x], tf.float32)\n"},
    "handed as an input function": {"use.py": HEAD + "import ops\nest.train(input_fn=ops.keep)\n"},
    "passed on by a package": {
        "pkg/__init__.py": "from ops import keep\n",
        "use.py": HEAD + "from pkg import keep\n" + DATASET + "dataset.map(keep)\n",
    },
    "called in a Keras sequence alone": {
        "use.py": HEAD + "import ops\nclass Batches(tf.keras.utils.Sequence):\n    def __getitem__(self, i):\n"
        "        return ops.keep(i)\n"
    },
    "called in a test alone": {"use_test.py": "import ops\nops.keep(x)\n"},
    "called in code that makes input alone": {"use.py": "import ops\ndef parse_record(x):\n    return ops.keep(x)\n"},
}


@pytest.mark.parametrize("files", list(ON_HOST.values()), ids=list(ON_HOST))
def test_a_function_runs_on_the_host_if_it_is(files: dict[str, str], tmp_path: pathlib.Path) -> None:
    assert codes({"ops.py": OPS, **files}, tmp_path) == ""


ON_CARD: dict[str, dict[str, str]] = {
    "not used at all": {},
    "called by a model in another file": {"use.py": HEAD + "import ops\ndef model(x):\n    return ops.keep(x)\n"},
    "called by a model and by a test": {
        "use.py": HEAD + "import ops\ndef model(x):\n    return ops.keep(x)\n",
        "use_test.py": "import ops\nops.keep(x)\n",
    },
    "named like one that is handed to map": {
        "use.py": HEAD + "from other import keep\n" + DATASET + "dataset.map(keep)\n"
    },
    "put into a table": {"use.py": 'import ops\nLAYERS = {"keep": ops.keep}\n'},
    "handed to a map of something else, by another name": {
        "use.py": "from ops import keep as k\ndef keep(x):\n    pass\npool.map(keep, x)\n"
    },
}


@pytest.mark.parametrize("files", list(ON_CARD.values()), ids=list(ON_CARD))
def test_a_function_may_run_on_the_device_if_it_is(files: dict[str, str], tmp_path: pathlib.Path) -> None:
    assert codes({"ops.py": OPS, **files}, tmp_path) == "NPU231"


def test_functions_that_use_each_other_are_checked_once(tmp_path: pathlib.Path) -> None:
    ops = HEAD + "import use\ndef keep(x):\n    use.more(x)\n    return tf.boolean_mask(x, x > 0)\n"
    assert codes({"ops.py": ops, "use.py": "import ops\ndef more(x):\n    return ops.keep(x)\n"}, tmp_path) == "NPU231"
