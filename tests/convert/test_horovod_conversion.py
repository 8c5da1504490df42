"""With -d horovod the import of Horovod is replaced, and nothing else that is Horovod's."""

from __future__ import annotations

import ast
import importlib
import json
import pathlib

import pytest
from convert_tf2npu.engine.converter import CHANGE, FINDING, Converter
from convert_tf2npu.engine.results import FileResult
from convert_tf2npu.engine.settings import Settings
from convert_tf2npu.main import main

WITH = Converter(Settings(distributed="horovod"))
STAR = "from npu_shim.npu_init import *\n"
BOTH = "import npu_shim.horovod.tensorflow\nfrom npu_shim import horovod\n"
REPLACED = {
    "an alias": ("import horovod.tensorflow as hvd\n", "import npu_shim.horovod.tensorflow as hvd\n"),
    "the alias horovod": ("import horovod.keras as horovod\n", "import npu_shim.horovod.keras as horovod\n"),
    "no alias": ("import horovod.tensorflow\nhorovod.tensorflow.init()\n", BOTH + "horovod.tensorflow.init()\n"),
    "no alias and no line end": ("import horovod.tensorflow", BOTH[:-1]),
    "no alias, before a comment": (
        "import horovod.tensorflow  # noqa\n",
        BOTH.replace("flow\n", "flow  # noqa\n"),
    ),
    "no alias, in one line": (
        "if x: import horovod.keras; y = 1\n",
        "if x: import npu_shim.horovod.keras; from npu_shim import horovod; y = 1\n",
    ),
    "the package": (
        "import horovod\nhorovod.__version__\n",
        "import npu_shim.horovod as horovod\nhorovod.__version__\n",
    ),
    "the package by another name": ("import horovod as h\n", "import npu_shim.horovod as h\n"),
    "other modules beside it": (
        "import os, horovod.tensorflow as hvd\n",
        "import os, npu_shim.horovod.tensorflow as hvd\n",
    ),
    "several aliases": (
        "import horovod.tensorflow as hvd,horovod.keras as k , json\n",
        "import npu_shim.horovod.tensorflow as hvd,npu_shim.horovod.keras as k , json\n",
    ),
    "continued lines": (
        "import json, \\\n    horovod.tensorflow \\\n    as hvd\n",
        "import json, \\\n    npu_shim.horovod.tensorflow \\\n    as hvd\n",
    ),
    "a module of the package": (
        "from horovod import tensorflow as hvd\n",
        "from npu_shim.horovod import tensorflow as hvd\n",
    ),
    "names": ("from horovod.tensorflow import init, rank\n", "from npu_shim.horovod.tensorflow import init, rank\n"),
    "names in parentheses": (
        "from horovod.tensorflow import (\n    init,  # first\n    rank,\n)\n",
        "from npu_shim.horovod.tensorflow import (\n    init,  # first\n    rank,\n)\n",
    ),
    "a star": ("from horovod.keras import *\n", "from npu_shim.horovod.keras import *\n"),
    "blanks in the name": ("from  horovod . keras import rank\n", "from  npu_shim.horovod . keras import rank\n"),
    "a submodule": (
        "from horovod.tensorflow.keras import callbacks\ncallbacks.MetricAverageCallback()\n",
        "from npu_shim.horovod.tensorflow.keras import callbacks\ncallbacks.MetricAverageCallback()\n",
    ),
    "common errors": (
        "from horovod.common.exceptions import HorovodInternalError\n",
        "from npu_shim.horovod.common.exceptions import HorovodInternalError\n",
    ),
    "a comment for pylint": (
        "import horovod.tensorflow as hvd  # pylint: disable=import-error\n",
        "import npu_shim.horovod.tensorflow as hvd  # pylint: disable=import-error\n",
    ),
    "an import that may fail": (
        "try:\n    import horovod.tensorflow as hvd\nexcept ImportError:\n    hvd = None\n",
        "try:\n    import npu_shim.horovod.tensorflow as hvd\nexcept ImportError:\n    hvd = None\n",
    ),
    "a condition in a function": (
        "def main():\n  if FLAGS.horovod:\n    import horovod.tensorflow as hvd\n    hvd.init()\n",
        "def main():\n  if FLAGS.horovod:\n    import npu_shim.horovod.tensorflow as hvd\n    hvd.init()\n",
    ),
    "import_module": (
        "import importlib\nhvd = importlib.import_module('horovod.tensorflow')\n",
        "import importlib\nhvd = importlib.import_module('npu_shim.horovod.tensorflow')\n",
    ),
    "find_spec": (
        'from importlib.util import find_spec\nhas = find_spec(r"horovod") is not None\n',
        'from importlib.util import find_spec\nhas = find_spec(r"npu_shim.horovod") is not None\n',
    ),
    "spark's launcher beside it": (
        "import horovod.spark\nimport horovod.tensorflow as hvd\n",
        "import horovod.spark\nimport npu_shim.horovod.tensorflow as hvd\n",
    ),
    "the data service beside it": (
        "import horovod.tensorflow as hvd\nfrom horovod.tensorflow.data.compute_service import TfDataServiceConfig\n",
        "import npu_shim.horovod.tensorflow as hvd\n"
        "from horovod.tensorflow.data.compute_service import TfDataServiceConfig\n",
    ),
}
USES = {
    "the module handed on": "train(hvd, hvd=hvd if FLAGS.horovod else None)\n",
    "options of the optimizer": "opt = hvd.DistributedOptimizer(\n    opt, op=hvd.Adasum, sparse_as_dense=True,  # rows\n)\n",
    "callbacks": "callbacks = [hvd.callbacks.MetricAverageCallback()]\n",
    "a tape": "tape = hvd.DistributedGradientTape(tape, compression=hvd.Compression.fp16)\n",
    "start and end": "def main():\n    hvd.init(comm)\n    hvd.shutdown()\nmain()\n",
    "variables": "op = hvd.broadcast_variables(net.weights, root_rank=0)\n",
    "an f-string": "print(f'rank {hvd.rank()} of {hvd.size()}')\n",
    "elastic training": "@hvd.elastic.run\ndef train(state):\n    pass\n",
    "the GPU of a rank": "c = tf.ConfigProto()\nc.gpu_options.visible_device_list = str(hvd.local_rank())\n",
    "the GPU of a rank, if there is one": "gpus = tf.config.experimental.list_physical_devices('GPU')\n"
    "for gpu in gpus:\n    tf.config.experimental.set_memory_growth(gpu, True)\n"
    "if gpus:\n    tf.config.experimental.set_visible_devices(gpus[hvd.local_rank()], 'GPU')\n",
    "a shard": "d = d.shard(hvd.size(), hvd.rank())\n",
}
HEAD = "import tensorflow as tf\nimport horovod.tensorflow as hvd\n"
NEW_HEAD = "import tensorflow as tf\nimport npu_shim.horovod.tensorflow as hvd\n"


def converted(text: str) -> str:
    result = WITH.convert(text.encode())
    assert not result.unreadable, result.diagnostics
    return text if result.new is None else result.new.decode()


def findings(result: FileResult) -> list[tuple[str, int, str]]:
    return [(d.code, d.line, d.message) for d in result.diagnostics if d.kind == FINDING]


@pytest.mark.parametrize("before,after", list(REPLACED.values()), ids=list(REPLACED))
def test_the_import_is_replaced(before: str, after: str) -> None:
    assert converted(before) == after
    assert converted(after) == after
    ast.parse(after)


@pytest.mark.parametrize("text", list(USES.values()), ids=list(USES))
def test_uses_are_unchanged(text: str) -> None:
    result = WITH.convert((HEAD + text).encode())
    assert result.new is not None and result.new.decode() == NEW_HEAD + text
    assert [(d.code, d.line, d.kind) for d in result.diagnostics] == [("NPU301", 2, CHANGE)]


def test_the_gpu_of_a_rank_is_removed_where_it_fails_without_gpus() -> None:
    pin = "gpus = tf.config.experimental.list_physical_devices('GPU')\n"
    text = HEAD + pin + "tf.config.experimental.set_visible_devices(gpus[hvd.local_rank()], 'GPU')\n"
    assert converted(text) == NEW_HEAD + pin


def test_sessions_are_converted_as_without_the_option() -> None:
    text = HEAD + "hvd.init()\ns = tf.Session(config=c)\n"
    plain = Converter().convert(text.encode()).new
    assert plain is not None
    assert converted(text) == plain.decode().replace("import horovod", "import npu_shim.horovod")


def test_one_statement_imports_horovod_and_tensorflow() -> None:
    text = "import horovod.tensorflow, tensorflow as tf\ns = tf.Session()\n"
    new = converted(text)
    assert new.startswith("import npu_shim.horovod.tensorflow, tensorflow as tf\n")
    assert set(new.split("\n")[1:3]) == {STAR[:-1], "from npu_shim import horovod"}
    assert converted(new) == new


@pytest.mark.parametrize("text", [t for t, _ in REPLACED.values()], ids=list(REPLACED))
def test_without_the_option_one_finding_names_it(text: str) -> None:
    result = Converter().convert(text.encode())
    assert result.new is None
    found = findings(result)
    if "import horovod\n" in text or "import horovod as h" in text or "common" in text or "find_spec" in text:
        assert found == []  # nothing of it is TensorFlow's
    else:
        assert len(found) == 1 and found[0][0] == "NPU254"
        assert "Run the tool with -d horovod to replace the import" in found[0][2]


FOREIGN = {
    "PyTorch": ("import horovod.torch as hvd\nimport tensorflow\n", 1, "Use horovod.tensorflow or remove it"),
    "MXNet": ("from horovod import mxnet as hvd\nfrom keras import layers\n", 1, "horovod.mxnet is not for TensorFlow"),
    "Spark": ("import horovod.spark\n", 1, "Start them with npu-shim launch"),
    "the data service": (
        "from horovod.tensorflow.data.compute_service import tf_data_service\n",
        1,
        "Give each rank its part: dataset.shard(hvd.size(), hvd.rank())",
    ),
    "several": (
        "import horovod.torch as hvd, tensorflow\nfrom horovod.torch.mpi_ops import rank\n",
        1,
        "horovod.torch",
    ),
    "private names beside it": (
        "import horovod.torch, tensorflow\nfrom horovod.common.util import num_rank_is_power_2\n",
        1,
        "torch",
    ),
}


@pytest.mark.parametrize("text,line,words", list(FOREIGN.values()), ids=list(FOREIGN))
def test_other_frameworks_and_launchers_are_reported_once(text: str, line: int, words: str) -> None:
    result = WITH.convert(text.encode())
    assert result.new is None
    ((code, at, message),) = findings(result)
    assert (code, at) == ("NPU301", line) and words in message
    assert Converter().convert(text.encode()).diagnostics == ()


@pytest.mark.parametrize(
    "text",
    [
        "import torch\nimport horovod.torch as hvd\nhvd.init()\n",
        "import horovod.torch\nfrom horovod.common.util import num_rank_is_power_2\n",
        "def train():\n    from horovod import mxnet as hvd\n    hvd.init()\n",
    ],
)
def test_files_of_other_frameworks_get_no_advice(text: str) -> None:
    assert WITH.convert(text.encode()).diagnostics == Converter().convert(text.encode()).diagnostics == ()


@pytest.mark.parametrize(
    "text", ["import horovod\nhorovod.run(train, np=2)\n", "\nfrom horovod import run\nrun(train)\n"]
)
def test_the_function_that_starts_ranks_is_reported(text: str) -> None:
    result = WITH.convert(text.encode())
    assert result.new and b"npu_shim" in result.new
    ((code, line, message),) = findings(result)
    assert (code, line) == ("NPU301", 2) and "npu-shim launch" in message
    with pytest.raises(NotImplementedError, match="npu-shim launch --ranks 2"):
        importlib.import_module("npu_shim.horovod").run(print, np=2)


@pytest.mark.parametrize(
    "text",
    [
        "import horovod.torch\nimport horovod.tensorflow\nhorovod.tensorflow.init()\n",
        "from horovod import tensorflow as hvd, torch\n",
    ],
)
def test_an_ambiguous_framework_is_reported(text: str) -> None:
    result = WITH.convert(text.encode())
    assert result.new is None
    assert any("Write import horovod.tensorflow as hvd" in message for _, _, message in findings(result))


@pytest.mark.parametrize(
    "text",
    [
        "mock.patch('horovod.tensorflow.rank')\n",
        "import importlib\nm = importlib.import_module('horovod.' + framework)\n",
        "m = __import__('horovod.tensorflow', fromlist=['rank'])\n",
    ],
)
def test_strings_with_names_of_modules_are_reported(text: str) -> None:
    result = WITH.convert(text.encode())
    assert result.new is None
    ((code, _, message),) = findings(result)
    assert code == "NPU301" and "Write 'npu_shim.horovod." in message


@pytest.mark.parametrize(
    "text",
    [
        '"""Trains with horovod.tensorflow on all GPUs."""\n',
        "x = 'horovod'\n",
        "import horovod_tools\n",
        "from .horovod import f\n",
    ],
)
def test_other_words_are_nothing(text: str) -> None:
    assert WITH.convert(text.encode()).new is None and WITH.convert(text.encode()).diagnostics == ()


def test_a_comment_suppresses_the_rule() -> None:
    assert converted("import horovod.tensorflow as hvd  # npu: ignore[NPU301]\n").startswith("import horovod.")


def convert(folder: pathlib.Path, files: dict[str, str], *arguments: str) -> dict[str, str]:
    for name, text in files.items():
        (folder / "src" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "src" / name).write_text(text)
    assert main(["-i", str(folder / "src"), "-o", str(folder / "out"), "-d", "horovod", *arguments]) == 0
    return {name: (folder / "out" / name).read_text() for name in files}


def test_scripts_with_one_helper_are_converted_together(tmp_path: pathlib.Path) -> None:
    helper = "import horovod.tensorflow as hvd\n\n\ndef scaled(rate):\n    return rate * hvd.size()\n"
    script = "import tensorflow as tf\nfrom helper import hvd, scaled\nhvd.init()\nprint({}, scaled(0.1))\n"
    files = {f"train_{i}.py": script.format(i) for i in range(5)}
    made = convert(tmp_path, {**files, "helper.py": helper})
    assert made == {**files, "helper.py": helper.replace("import horovod", "import npu_shim.horovod")}


def test_a_script_that_uses_what_is_unsupported_does_not_stop_the_others(tmp_path: pathlib.Path) -> None:
    files = {"a.py": HEAD + "import b\n", "b.py": "import horovod.torch as hvd\n"}
    assert convert(tmp_path, files) == {"a.py": NEW_HEAD + "import b\n", "b.py": files["b.py"]}


def test_a_module_of_the_project_with_that_name_stays(tmp_path: pathlib.Path) -> None:
    files = {"horovod/__init__.py": "", "horovod/tensorflow.py": "def init():\n    pass\n", "train.py": HEAD}
    assert convert(tmp_path, files) == files


def test_names_of_the_replacement_are_those_of_horovod() -> None:
    text = "import tensorflow as tf\nimport {}horovod.tensorflow as hvd\nif hvd.rank() == 0:\n    tf.summary.scalar('a', b)\n"
    for prefix in ("", "npu_shim."):
        result = Converter(Settings(select=("NPU241",))).convert(text.format(prefix).encode())
        assert [d.code for d in result.diagnostics] == ["NPU241"]


def test_notebooks(tmp_path: pathlib.Path) -> None:
    cell = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": 1}
    lines = ["%matplotlib inline\n", "import horovod.tensorflow\n", "horovod.tensorflow.init()"]
    book = {"cells": [{**cell, "source": lines}], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    made = json.loads(convert(tmp_path, {"a.ipynb": json.dumps(book)})["a.ipynb"])
    assert "".join(made["cells"][0]["source"]) == lines[0] + BOTH + lines[2]


@pytest.mark.parametrize("option", ["--select", "--ignore"])
@pytest.mark.parametrize("code", ["NPU216"])
def test_the_codes_of_removed_rules_are_unknown(option: str, code: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["-i", ".", option, code])
    assert caught.value.code == 2 and code in capsys.readouterr().err
