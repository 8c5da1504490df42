"""Files that can hold nothing for a rule are not analysed; no other file is left out."""

from __future__ import annotations

import gc
import pathlib
import weakref
from typing import Any

import pytest
from convert_tf2npu.engine.converter import Converter, make_project
from convert_tf2npu.engine.plan import Planner
from convert_tf2npu.engine.results import UNTOUCHED, FileResult
from convert_tf2npu.engine.settings import Settings
from convert_tf2npu.project import project as project_module
from convert_tf2npu.project.module_cache import LRU
from convert_tf2npu.project.project import Project
from convert_tf2npu.syntax.source import Source, SourceError

TF = "import tensorflow as tf\n"
TRAINS = "def train(dataset):\n    return dataset.batch(32)\n"
# Files, and those among them that are understood.
PROJECTS: dict[str, tuple[dict[str, str], str]] = {
    "no TensorFlow anywhere": ({"a.py": "from b import x\nimport c\n", "b.py": "import c\n", "c.py": "x = 1\n"}, ""),
    "a package of TensorFlow": ({"a.py": "import tf_slim as slim\ny = slim.dropout(x)\n", "b.py": "x = 1\n"}, "a"),
    "a file that imports nothing of it": ({"a.py": TF, "b.py": "import c\n", "c.py": "import os\n"}, "a"),
    "a name from another file": ({"a.py": TF, "b.py": "from a import tf\n", "c.py": "from b import tf\n"}, "a b c"),
    "a name through a star": ({"a.py": TF, "b.py": "from a import *\n"}, "a b"),
    "a module of a package that nothing imports by name": (
        {"p/__init__.py": "", "p/a.py": TF, "b.py": "import p\nx = p.a\n"},
        "p/a b",
    ),
    "a module behind packages": (
        {"p/__init__.py": TF, "p/q/__init__.py": "", "p/q/c.py": "x = 1\n", "b.py": "import p.q.c\np.tf.Session()\n"},
        "p/__init__ b",
    ),
    "an import in the middle of a line": (
        {"a.py": TF, "c.py": "x = 1\n", "b.py": "import c\nif c.x: import a\n"},
        "a b",
    ),
    "an import by a function": (
        {"a.py": TF, "c.py": "x = 1\n", "b.py": "import c, importlib\na = importlib.import_module('a')\n"},
        "a b",
    ),
    "a dataset that is handed to it": (
        {"a.py": TF + 'import b\nb.train(tf.data.TFRecordDataset("x"))\n', "b.py": "import c\n" + TRAINS, "c.py": ""},
        "a b",
    ),
    "a dataset that is handed to a file without imports of the project": (
        {"a.py": TF + 'import b\nb.train(tf.data.TFRecordDataset("x"))\n', "b.py": "import os\n" + TRAINS},
        "a b",
    ),
    "nothing that is handed to it": (
        {
            "a.py": TF + 'import b\nb.train(tf.data.TFRecordDataset("x"))\n',
            "c.py": "",
            "b.py": "import c\ndef train(dataset):\n    return dataset\n",
        },
        "a",
    ),
    "its name in a text and a comment": (
        {"a.py": "# as tensorflow has it\nSTUBS = {'tensorflow': 1}\n", "b.py": "from a import STUBS\n"},
        "a",
    ),
    "an import of it behind another one": ({"a.py": "import os; " + TF, "b.py": "from a import tf\n"}, "a b"),
    "an import of it in several lines": (
        {"a.py": "from \\\n  keras \\\n  import layers\n", "b.py": "import a\n"},
        "a b",
    ),
    "an import of it between other ends of lines": ({"a.py": "x = 1\r" + TF, "b.py": "from a import tf\n"}, "a b"),
    "an import of it by a function": (
        {"a.py": "import importlib\ntf = importlib.import_module(\n    'tensorflow')\n", "b.py": "from a import tf\n"},
        "a b",
    ),
    "a mark before the first import": ({"a.py": TF, "b.py": "\ufefffrom a import tf\n"}, "a b"),
}


@pytest.mark.parametrize("name", sorted(PROJECTS))
def test_only_what_may_concern_a_rule_is_understood(name: str, tmp_path: pathlib.Path, monkeypatch) -> None:
    files, understood = PROJECTS[name]
    paths = []
    for relative, text in files.items():
        path = tmp_path / relative
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
        paths.append(str(path))
    converter = Converter(Settings(), make_project(Settings(), paths))
    seen: list[str] = []
    real = Planner.plan

    def plan(self: Planner, raw: bytes, path: str) -> Any:
        seen.append(str(pathlib.Path(path).relative_to(tmp_path))[: -len(".py")])
        return real(self, raw, path)

    monkeypatch.setattr(Planner, "plan", plan)
    for path in paths:
        with open(path, "rb") as stream:
            assert not converter.convert(stream.read(), path).unreadable
    assert sorted(seen) == sorted(understood.split())


def test_a_dataset_is_followed_into_a_file_without_tensorflow(tmp_path: pathlib.Path) -> None:
    result = _converted(PROJECTS["a dataset that is handed to it"][0], "b.py", tmp_path)
    assert result.new is not None and b"drop_remainder=True" in result.new


def test_a_keras_model_is_followed_into_a_file_without_tensorflow(tmp_path: pathlib.Path) -> None:
    files = {
        "a.py": TF + "import b\ntf.disable_v2_behavior()\nb.train(tf.keras.Sequential([]))\n",
        "b.py": 'import json\nimport c\ndef train(model):\n    json.loads("1")\n    model.fit(1)\n',
        "c.py": "",
    }
    result = _converted(files, "b.py", tmp_path)
    assert [d.code for d in result.diagnostics] == ["NPU105"]
    assert result.calls == (0, 1, 0)  # and json.loads is none of them


def test_a_fork_is_reported_in_a_file_without_tensorflow(tmp_path: pathlib.Path) -> None:
    files = {
        "a.py": TF + "import b\nb.start()\n",
        "c.py": "",
        "b.py": "import multiprocessing\nimport c\ndef start(runner):\n"
        '    runner.run(multiprocessing.get_context("fork"))\n',
    }
    assert [d.code for d in _converted(files, "b.py", tmp_path).diagnostics] == ["NPU229"]


def _converted(files: dict[str, str], name: str, folder: pathlib.Path) -> FileResult:
    for relative, text in files.items():
        (folder / relative).write_text(text)
    converter = Converter(Settings(), make_project(Settings(), [str(folder / each) for each in files]))
    return converter.convert(files[name].encode(), str(folder / name))


def test_a_file_of_no_concern_is_not_analysed_and_is_reported_if_it_is_no_python(monkeypatch) -> None:
    monkeypatch.setattr(project_module, "Resolver", None)
    assert Converter().convert(b"import os\nx = [f(y) for y in z]\n") is UNTOUCHED
    (told,) = Converter().convert(b'import os\nprint "x"\n').diagnostics
    assert (told.line, told.kind) == (2, "error")


@pytest.mark.parametrize(
    "raw",
    [
        b"return 1\n",
        b"x = 1\nglobal y\n",
        b"break\n",
        b"def f(a):\n    global a\n",
        b"nonlocal x\n",
        b'"\\d"\n',
        b"",
        b"\xef\xbb\xbfx = 1\r\n",
        b'# -*- coding: latin-1 -*-\nx = "\xe9"\n',
    ],
    ids=repr,
)
def test_code_that_only_the_compiler_rejects_is_read(raw: bytes) -> None:
    Source(raw)


@pytest.mark.parametrize("raw", [b"x = (\n", b"x = 1\0\n", b'x = "\xe9"\n', b'exec "x"\n', b"  x = 1\n"], ids=repr)
def test_code_that_the_parser_rejects_is_not_read(raw: bytes) -> None:
    with pytest.raises(SourceError):
        Source(raw)


def test_analysed_files_are_freed_without_the_garbage_collector(tmp_path: pathlib.Path) -> None:
    paths = [tmp_path / (f"train{number}.py") for number in range(12)]
    for path in paths:
        path.write_text(
            TF + "class Net:\n    def __init__(self, x):\n        self.sess = tf.Session()\n"
            "        self.x = [y for y in x]\n    def run(self, z):\n"
            "        return self.sess.run(self.x, {z: lambda: z})\n"
            "def main():\n    return Net(1)\nmain()\n"
        )
    project = Project([str(path) for path in paths])
    converter = Converter(Settings(), project)
    gc.disable()
    try:
        assert all(converter.convert(path.read_bytes(), str(path)).new for path in paths)
        known = [weakref.ref(module.names) for module in map(project.module, map(str, paths)) if module]
        assert len(known) == 12 and all(names() is not None for names in known)
        project._store._modules = LRU(1)
        assert sum(names() is not None for names in known) <= 4  # which caches of functions hold
    finally:
        gc.enable()
