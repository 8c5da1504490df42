"""Names and types across the files of a project."""

from __future__ import annotations

import ast
import json
import pathlib

import convert_tf2npu.syntax.source as source_module
import pytest
from convert_tf2npu.engine.converter import Converter
from convert_tf2npu.main import main
from convert_tf2npu.project.project import Project
from convert_tf2npu.rules.compat_v1.lift_plan import plan_lift_and_rebind_names
from convert_tf2npu.semantics.module_index import Module
from convert_tf2npu.semantics.resolved_name import ResolvedName
from convert_tf2npu.semantics.tf_types import Type

USE = "sess = tf.Session()\n"
CASES: dict[str, dict[str, str]] = {
    "from a module beside it": {
        "compat.py": "import tensorflow.compat.v1 as tf\n",
        "train.py": "from compat import tf\n" + USE,
    },
    "below a folder that is called tensorflow": {
        "models/tensorflow/__init__.py": "",
        "models/tensorflow/utils.py": "import tensorflow as tf\n",
        "models/tensorflow/train.py": "import tensorflow as tf\n" + USE,
    },
    "in a package with a folder that is called tensorflow": {
        "pkg/__init__.py": "",
        "pkg/tensorflow/__init__.py": "",
        "pkg/tensorflow/hooks.py": "def hook(x):\n    return x\n",
        "pkg/train.py": "import tensorflow as tf\n" + USE,
    },
    "beside a folder that is called tensorflow and is no package": {
        "examples/tensorflow/compat/v1.py": "def run(x):\n    return x\n",
        "examples/train.py": "import tensorflow.compat.v1 as tf\n" + USE,
    },
    "from the module at the root, not from the one in the package": {
        "compat.py": "import tensorflow as tf\n",
        "pkg/__init__.py": "",
        "pkg/compat.py": "tf = None\n",
        "pkg/train.py": "from compat import tf\n" + USE,
    },
    "from the module in the package, in which a script is started": {
        "compat.py": "tf = None\n",
        "pkg/__init__.py": "",
        "pkg/compat.py": "import tensorflow as tf\n",
        "pkg/train.py": "from compat import tf\nif __name__ == '__main__':\n    " + USE,
    },
    "from a module with the name of its folder and of the function": {
        "tf/tf.py": "import tensorflow as tf\n",
        "tf/train.py": "from tf import tf\n" + USE,
    },
    "relatively in a package": {
        "pkg/__init__.py": "",
        "pkg/compat.py": "import tensorflow as tf\n",
        "pkg/train.py": "from .compat import tf\n" + USE,
    },
    "from the package itself": {
        "pkg/__init__.py": "import tensorflow as tf\n",
        "pkg/sub/__init__.py": "",
        "pkg/sub/train.py": "from .. import tf\n" + USE,
    },
    "by the full path": {
        "pkg/__init__.py": "",
        "pkg/compat.py": "import tensorflow as tf\n",
        "train.py": "import pkg.compat\nsess = pkg.compat.tf.Session()\n",
    },
    "as an attribute of the module": {
        "util.py": "import tensorflow\ntf = tensorflow.compat.v1\n",
        "train.py": "import util as u\nsess = u.tf.Session()\n",
    },
    "through two modules": {
        "a.py": "import tensorflow as tf\n",
        "b.py": "from a import tf\n",
        "train.py": "from b import tf\n" + USE,
    },
    "through a star": {"common.py": "import tensorflow as tf\n", "train.py": "from common import *\n" + USE},
    "through a function that returns the module": {
        "contrib.py": "def session():\n    from tensorflow.python.client import session as s\n    return s\n",
        "train.py": "import contrib\nsess = contrib.session().Session()\n",
    },
    "through functions of a package, unpacked": {
        "pkg/__init__.py": "from .framework import try_import_tf\n",
        "pkg/framework.py": "def try_import_tf():\n    try:\n        import tensorflow as tf_module\n"
        "    except ImportError:\n        return None, None\n"
        "    try:\n        tf1 = tf_module.compat.v1\n    except AttributeError:\n"
        "        tf1 = tf_module\n    return tf1, tf_module\n",
        "train.py": "from pkg import try_import_tf\ntf1, tf = try_import_tf()\nsess = tf1.Session()\n",
    },
    "from the attributes of a class of another file": {
        "base.py": "import tensorflow as tf\nclass Base:\n    def __init__(self):\n        self.tf = tf\n",
        "train.py": "import base\nclass Trainer(base.Base):\n    def run(self):\n"
        "        self.sess = self.tf.Session()\n",
    },
    "from a class of another file": {
        "base.py": "import tensorflow as tf\nclass Modules:\n    tf = tf\n",
        "train.py": "from base import Modules\nsess = Modules.tf.Session()\n",
    },
    "from a package with a module of its name": {
        "net/__init__.py": "from net.net import Sess\n",
        "net/net.py": "from tensorflow import Session as Sess\n",
        "train.py": "from net import Sess\nsess = Sess()\n",
    },
    "from a folder that the script adds to sys.path": {
        "parts/compat.py": "import tensorflow as tf\n",
        "train.py": "import sys\nsys.path.insert(0, 'parts')\nfrom compat import tf\n" + USE,
    },
    "from a folder beside its own that the file adds": {
        "utils/compat.py": "import tensorflow as tf\n",
        "models/net.py": "import os, sys\nHERE = os.path.dirname(os.path.abspath(__file__))\n"
        "sys.path.append(os.path.join(HERE, '..', 'utils'))\nfrom compat import tf\n" + USE,
    },
    "a class by another name": {
        "common.py": "from tensorflow import Session as Sess\n",
        "train.py": "from common import Sess as S\nsess = S()\n",
    },
}


def write(folder: pathlib.Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.fixture
def convert(tmp_path: pathlib.Path):
    def run(files: dict[str, str], *arguments: str) -> dict[str, str]:
        write(tmp_path / "src", files)
        main(["-i", str(tmp_path / "src"), "-o", str(tmp_path / "out")] + list(arguments))
        return {str(p.relative_to(tmp_path / "out")): p.read_text() for p in (tmp_path / "out").rglob("*.py")}

    return run


@pytest.mark.parametrize("jobs", ["1", "2"])
@pytest.mark.parametrize("files", list(CASES.values()), ids=list(CASES))
def test_a_name_is_followed(files, jobs, convert) -> None:
    last = list(files)[-1]
    assert "config=npu_config_proto()" in convert(files, "-j", jobs)[last]


@pytest.mark.parametrize(
    "files",
    [
        {"db.py": "class Session:\n    pass\n", "train.py": "from db import Session\nsess = Session()\n"},
        {"a.py": "from b import tf\n", "b.py": "from a import tf\n", "train.py": "from a import tf\n" + USE},
        {"common.py": "import tensorflow as tf\ntf = wrap(tf)\n", "train.py": "from common import tf\n" + USE},
        {"broken.py": 'print "tensorflow"\n', "train.py": "from broken import tf\n" + USE},
        {"a.py": "import tensorflow as tf\n", "train.py": "from a import *\nfrom b import *\n" + USE},
        {"a.py": 'import tensorflow as tf\n__all__ = ["f"]\ndef f(): pass\n', "train.py": "from a import *\n" + USE},
        {"a.py": "import fake as tf\n", "train.py": "import tensorflow as tf\nfrom a import *\n" + USE},
        {"a.py": "import tensorflow as tf\n", "train.py": "import a\na.tf = fake\nsess = a.tf.Session()\n"},
    ],
    ids=[
        "a class of the project",
        "a circle",
        "a wrapped module",
        "a broken module",
        "two stars",
        "a star that does not bring it",
        "a star that binds it again",
        "an attribute set from outside",
    ],
)
def test_uncertain_code_is_unchanged(files, convert) -> None:
    assert convert(files)["train.py"] == files["train.py"]


def test_a_folder_tensorflow_in_a_package_changes_nothing_in_a_second_run(convert, tmp_path) -> None:
    """The first run writes ``tensorflow.keras``, which is absolute."""
    files = {
        "pkg/__init__.py": "",
        "pkg/tensorflow/__init__.py": "",
        "pkg/tensorflow/keras/__init__.py": "from keras.callbacks import Callback\n",
        "pkg/train.py": "import keras\nmodel = keras.Sequential([keras.layers.Dense(1)])\n"
        "model.compile('adam', 'mse')\nmodel.fit(x[:64], x[:64])\n",
    }
    once = convert(files)
    assert "from tensorflow import keras" in once["pkg/train.py"]
    assert main(["-i", str(tmp_path / "out"), "-o", str(tmp_path / "twice"), "--no-cache"]) == 0
    assert {name: (tmp_path / "twice" / name).read_text() for name in files} == once


@pytest.mark.parametrize(("folder", "found"), [("net-main", True), ("owner+net", True), ("nets", False)])
def test_a_package_in_a_folder_of_another_name(folder, found, tmp_path) -> None:
    write(tmp_path / folder, {"__init__.py": "", "compat.py": "import tensorflow as tf\n"})
    write(tmp_path / folder, {"train/main.py": "from net.compat import tf\n" + USE})
    main(["-i", str(tmp_path / folder), "--in-place", "--no-cache"])
    after = (tmp_path / folder / "train" / "main.py").read_text()
    assert ("config=npu_config_proto()" in after) == found


def test_a_model_class_of_another_file_is_a_keras_model(convert) -> None:
    files = {
        "net.py": "import tensorflow as tf\nclass Base(tf.keras.Model):\n    pass\n",
        "big.py": "from net import Base\nclass Net(Base):\n    pass\n",
        "train.py": "import big\nnet = big.Net()\nnet.fit(x, y)\n",
    }
    made = convert(files)
    assert made["train.py"] == (
        "import big\nimport npu_shim.npu_device as npu\nnpu.open().as_default()\nnet = big.Net()\nnet.fit(x, y)\n"
    )
    assert made["net.py"] == files["net.py"] and made["big.py"] == files["big.py"]


def test_a_dataset_that_a_function_of_another_file_returns(convert) -> None:
    made = convert(
        {
            "data.py": "import tensorflow as tf\ndef read(p):\n    d = tf.data.TFRecordDataset(p)\n"
            "    return d.map(f)\n",
            "train.py": "from data import read\ntrain_set = read(p).batch(8)\n",
        }
    )
    assert "read(p).batch(8, drop_remainder=True)" in made["train.py"]


def test_a_function_that_other_files_mention_keeps_its_dropout(convert) -> None:
    text = (
        "import tensorflow.compat.v1 as tf\ndef cnn(x, training):\n"
        "    return tf.layers.dropout(x, 0.5, training=training)\ny = cnn(x, training=True)\n"
    )
    assert Converter().convert(text.encode()).new is not None
    made = convert({"net.py": text, "use.py": "from net import cnn\ncnn(x, placeholder)\n"})
    assert made["net.py"] == text


def test_a_file_that_has_changed_is_read_again(tmp_path) -> None:
    project = Project([str(tmp_path / "a.py")])
    converter = Converter(project=project)
    assert converter.convert(b"import tensorflow as tf\ntf.Session()\n", str(tmp_path / "a.py")).new
    assert converter.convert(b"import tensorflow as tf\ntf.Graph()\n", str(tmp_path / "a.py")).new is None


def test_lifted_modules_that_import_each_other_are_each_analysed_once(tmp_path, monkeypatch) -> None:
    for name, other in (("a", "b"), ("b", "a")):
        (tmp_path / f"{name}.py").write_text(
            f"import tensorflow as tf\nfrom {other} import *\ndef {name}_sum(xs):\n    for x in xs:\n"
            f"        tf.placeholder(tf.float32)\n    return tf.reduce_sum(xs)\n{other}_sum([1])\n"
        )
    analysed: list[str] = []
    analyse = Project._analyse

    def counted(self: Project, raw: bytes, path: str) -> Module:
        analysed.append(path)
        return analyse(self, raw, path)

    monkeypatch.setattr(Project, "_analyse", counted)
    paths = [str(tmp_path / "a.py"), str(tmp_path / "b.py")]
    project = Project(paths, prepare=plan_lift_and_rebind_names)
    assert all(project.module(path) is not None for path in paths)
    assert sorted(analysed) == paths


def test_names_of_modules_that_import_each_other_are_the_same_in_each_order(tmp_path: pathlib.Path) -> None:
    """A name that is unknown while another module waits for it is not kept as unknown."""
    files = {
        "net.py": "import tensorflow as tf\nimport tools\nclass Net(tf.keras.Model):\n    pass\nmade = tools.made\n",
        "tools.py": "import trainer\nmade = trainer.kind\n",
        "trainer.py": "import net\nkind = net.Net\nclass Trainer(kind):\n    pass\ntrained = Trainer()\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    net, tools, trainer = (str(tmp_path / name) for name in files)
    for asked in ((), ((net, "made"),), ((tools, "made"), (net, "made")), ((net, "made"), (tools, "made"))):
        project = Project([net, tools, trainer])
        for path, name in asked:
            project.resolve_attribute(ResolvedName("", path), name)
        module = project.module(trainer)
        assert module is not None
        (made,) = module.names.module.bindings["trained"]
        assert module.types.type_of(made.node, made.where) == Type.MODEL, asked


def test_data_that_a_script_of_tensorflow_trains_on_are_converted_in_a_file_that_imports_torch(convert) -> None:
    data = "import torch\nimport tensorflow as tf\ndef train_input(x):\n    d = tf.data.Dataset.from_tensor_slices(x)\n"
    data += "    return d.repeat().batch(32)\n"
    train = "import tensorflow as tf\nfrom data import train_input\nmodel = tf.keras.Sequential()\n"
    train += "model.compile('adam', 'mse')\nmodel.fit(train_input(x), steps_per_epoch=9)\n"
    assert "batch(32, drop_remainder=True)" in convert({"data.py": data, "train.py": train})["data.py"]
    assert "drop_remainder" not in convert({"data.py": data, "train.py": "import data\n"}, "--force")["data.py"]


@pytest.mark.parametrize("names", [("a", "b"), ("b", "a")])
def test_star_imports_of_each_other_bind_the_same_in_each_order(names: tuple[str, str], convert) -> None:
    with_tensorflow, with_session = names
    files = {
        f"{with_tensorflow}.py": f"import tensorflow as tf\nfrom {with_session} import *\nx = make(tf.float32)\n",
        f"{with_session}.py": f"from {with_tensorflow} import *\nsession = tf.Session()\n",
    }
    assert "config=npu_config_proto()" in convert(files, "--compat-v1", "-j", "1")[f"{with_session}.py"]


def test_definitions_in_a_notebook_are_known(tmp_path: pathlib.Path) -> None:
    """A notebook that is not converted yet is read as the script of its cells, not as the text of its file."""
    cell = {"cell_type": "code", "source": "def step(x):\n    return x\n", "metadata": {}, "outputs": []}
    path = tmp_path / "made.ipynb"
    path.write_text(json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
    module = Project([str(path)]).module(str(path))
    assert module is not None and "step" in module.names.module.bindings


def test_each_file_is_parsed_once_in_a_run(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {
        "a.py": b"import tensorflow as tf\nfrom b import *\ns = tf.Session()\n",
        "b.py": b"import tensorflow as tf\nimport c\ndef net(x, training):\n"
        b"    return tf.layers.dropout(x, 0.5, training=training)\n",
        "c.py": b"from b import net\nimport tensorflow as tf\nd = tf.data.Dataset.range(3).map(net)\n",
    }
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    paths = [str(tmp_path / name) for name in files]
    parsed: list[str] = []
    parse = ast.parse

    def counted(text: str, *arguments: object, **keywords: object) -> ast.AST:
        if text.encode() in files.values():
            parsed.append(text)
        return parse(text, *arguments, **keywords)  # type: ignore[arg-type, call-overload]

    monkeypatch.setattr(source_module.ast, "parse", counted)
    converter = Converter(project=Project(paths))
    for path, raw in zip(paths, files.values()):
        converter.convert(raw, path)
    assert sorted(parsed) == sorted(raw.decode() for raw in files.values())
