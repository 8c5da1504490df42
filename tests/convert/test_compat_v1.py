"""Lifting TensorFlow 1 code to tf.compat.v1: spellings of names, entry scripts, projects, and unchanged code."""

from __future__ import annotations

import json
import pathlib

import pytest
from convert_tf2npu.engine.converter import FINDING, Converter
from convert_tf2npu.engine.settings import Settings
from convert_tf2npu.main import main

LIFTING = Converter(Settings(select=("NPU100",), compat_v1=True))
ALL = Converter(Settings(compat_v1=True))
SWITCH = "tf.disable_v2_behavior()\n"


def lifted(text: str, converter: Converter = LIFTING) -> str:
    result = converter.convert(text.encode())
    assert not result.unreadable, result.diagnostics
    new = text if result.new is None else result.new.decode()
    for again in (converter, Converter()):
        assert again is not converter or again.convert(new.encode()).new is None
    return new


IMPORTS = {
    "import tensorflow as tf\ndef f():\n    return tf.placeholder(tf.float32)\n": "import tensorflow.compat.v1 as tf\ndef f():\n    return tf.placeholder(tf.float32)\n",
    "import tensorflow\ndef f():\n    return tensorflow.placeholder(tensorflow.float32)\n": "import tensorflow.compat.v1 as tensorflow\ndef f():\n    return tensorflow.placeholder(tensorflow.float32)\n",
    "import numpy as np, tensorflow as tf, os\ndef f(x=tf.AUTO_REUSE):\n    pass\n": "import numpy as np, tensorflow.compat.v1 as tf, os\ndef f(x=tf.AUTO_REUSE):\n    pass\n",
    "from tensorflow import placeholder\n": "from tensorflow.compat.v1 import placeholder\n",
    "from tensorflow import (\n    float32,\n    get_variable as var,  # made below\n)\n": "from tensorflow.compat.v1 import (\n    float32,\n    get_variable as var,  # made below\n)\n",
    "from tensorflow import layers\ndef f(x):\n    return layers.dense(x, 2)\n": "from tensorflow.compat.v1 import layers\ndef f(x):\n    return layers.dense(x, 2)\n",
    "from tensorflow.train import AdamOptimizer\n": "from tensorflow.compat.v1.train import AdamOptimizer\n",
    "import tensorflow.keras.backend as K\ndef f(s):\n    K.set_session(s)\n": "import tensorflow.compat.v1.keras.backend as K\ndef f(s):\n    K.set_session(s)\n",
    "from tensorflow.keras import backend as K\ndef f(s):\n    K.set_session(s)\n": "from tensorflow.compat.v1.keras import backend as K\ndef f(s):\n    K.set_session(s)\n",
    "from tensorflow.keras.layers import LSTM, Dense\n": "from tensorflow.compat.v1.keras.layers import LSTM, Dense\n",
    'def f():\n    import tensorflow as tf\n    return tf.get_collection("a")\n': 'def f():\n    import tensorflow.compat.v1 as tf\n    return tf.get_collection("a")\n',
    "import tensorflow as tf\nS = tf.Session\ndef f(x):\n    return isinstance(x, S)\n": "import tensorflow.compat.v1 as tf\nS = tf.Session\ndef f(x):\n    return isinstance(x, S)\n",
    "import tensorflow as tf\ndef f():\n    try:\n        pass\n    except tf.OpError:\n        pass\n": "import tensorflow.compat.v1 as tf\ndef f():\n    try:\n        pass\n    except tf.OpError:\n        pass\n",
    'import tensorflow as tf\n@tf.RegisterGradient("A")\ndef f(x: tf.Session):  # type: (tf.Tensor) -> None\n    pass\n': 'import tensorflow.compat.v1 as tf\n@tf.RegisterGradient("A")\ndef f(x: tf.Session):  # type: (tf.Tensor) -> '
    "None\n    pass\n",
    "import tensorflow as tf\ndef f(name):\n    return getattr(tf, name)\n": "import tensorflow.compat.v1 as tf\ndef f(name):\n    return getattr(tf, name)\n",
    "import tensorflow as tf\nclass A:\n    def __init__(self):\n        self.tf = tf\n    def f(self):\n"
    "        return self.tf.placeholder(self.tf.float32)\n": "import tensorflow.compat.v1 as tf\nclass A:\n    def __init__(self):\n        self.tf = tf\n    def f(self):\n"
    "        return self.tf.placeholder(self.tf.float32)\n",
    'import tensorflow as tf\ndef f(x):\n    return f"{tf.to_float(x)}"\n': 'import tensorflow.compat.v1 as tf\ndef f(x):\n    return f"{tf.to_float(x)}"\n',
    # on the way to compat.v1 already, but not everywhere
    'import tensorflow as tf\ndef f(x):\n    tf.compat.v1.logging.info("a")\n    return tf.to_float(x)\n': 'import tensorflow.compat.v1 as tf\ndef f(x):\n    tf.logging.info("a")\n    return tf.to_float(x)\n',
    # names of TensorFlow 2 as well
    "import tensorflow as tf\ndef f(x):\n    tf.random.set_seed(1)\n    return tf.where(x), tf.to_float(x)\n": "import tensorflow as tf\ndef f(x):\n    tf.random.set_seed(1)\n    return tf.where(x), "
    "tf.compat.v1.to_float(x)\n",
    # the root is bound by more than one import
    "import tensorflow\nimport tensorflow.keras\ndef f(x):\n    return tensorflow.where(x), tensorflow.rank(x)\n": "import tensorflow\nimport tensorflow.keras\ndef f(x):\n    return tensorflow.compat.v1.where(x), "
    "tensorflow.rank(x)\n",
    "from npu_bridge.npu_init import *\ndef f():\n    return tf.placeholder(tf.float32)\n": "from npu_bridge.npu_init import *\nimport tensorflow.compat.v1 as tf\ndef f():\n"
    "    return tf.placeholder(tf.float32)\n",
    "import tensorflow as tf\nfrom npu_shim.npu_init import *\ndef f():\n    return tf.placeholder(tf.float32)\n": "from npu_shim.npu_init import *\nimport tensorflow.compat.v1 as tf\ndef f():\n"
    "    return tf.placeholder(tf.float32)\n",
}


@pytest.mark.parametrize("before,after", list(IMPORTS.items()))
def test_a_file_that_only_defines_is_lifted_without_a_switch(before: str, after: str) -> None:
    assert lifted(before) == after
    assert lifted(after) == after


@pytest.mark.parametrize(
    "text",
    [
        "import tensorflow as tf\nx = tf.reshape(tf.cast(y, tf.float32), [-1])\n",
        "from tensorflow.keras.layers import Dense, Dropout\nfrom tensorflow.keras.models import Sequential\n",
        "import tensorflow.compat.v1 as tf\ntf.disable_v2_behavior()\nx = tf.placeholder(tf.float32)\n",
        "from tensorflow.compat import v1 as tf\ntf.disable_eager_execution()\nx = tf.placeholder(tf.float32)\n",
        "import tensorflow as tf\nwith tf.compat.v1.Graph().as_default():\n    x = tf.compat.v1.placeholder(tf.float32)\n",
        "import tensorflow as tf\n@tf.function\ndef f(x):\n    return tf.where(x)\n",
        "import tensorflow as tf\nfor x in tf.data.Dataset.range(3):\n    print(x)\n",
        "import tensorflow as tf\nprint(tf.reduce_sum([1, 2]).numpy())\n",
        "import tensorflow as tf\ntf.random.set_seed(1)\nx = tf.gather(y, z)\n",
        'import tensorflow as tf\nif tf.__version__[0] == "2":\n    import tensorflow.compat.v1 as tf\nS = tf.Session\n',
        "try:\n    import tensorflow.compat.v1 as tf\nexcept ImportError:\n    import tensorflow as tf\nS = tf.Session\n",
        "import tensorflow as tf  # npu: ignore[NPU100]\nx = tf.to_float(y)\n",
        "from tensorflow.python.ops import array_ops\nx = array_ops.where(y)\n",
        "import torch as tf\nx = tf.placeholder(1)\n",
    ],
    ids=lambda text: text[:60],
)
def test_code_that_needs_no_lifting_is_unchanged(text: str) -> None:
    assert lifted(text) == text


@pytest.mark.parametrize(
    "name", ["Session", "layers.dense", "data.Dataset", "gfile.Open", "keras.layers.LSTM", "nn.rnn_cell.LSTMCell"]
)
def test_each_name_with_another_meaning_is_lifted(name: str) -> None:
    text = f"import tensorflow as tf\ndef f():\n    return tf.{name}\n"
    assert lifted(text).startswith("import tensorflow.compat.v1 as tf\n")


@pytest.mark.parametrize(
    "name", ["float32", "train.latest_checkpoint", "keras.layers.Dense", "estimator.RunConfig", "io.gfile.GFile"]
)
def test_a_name_with_one_meaning_is_not(name: str) -> None:
    text = f"import tensorflow as tf\ndef f():\n    return tf.{name}\n"
    assert lifted(text) == text


WORK = "with tf.Session() as sess:\n    sess.run(x)\n"
SWITCHED: dict[str, str] = {
    "a script": "import tensorflow as tf\n" + WORK,
    "behind a guard": "import tensorflow as tf\ndef main(_):\n    "
    + WORK.replace("\n", "\n    ")
    + '\nif __name__ == "__main__":\n    tf.app.run()\n',
    "a function that is called within another call": "import tensorflow as tf\ndef run():\n    "
    + WORK.replace("\n", "\n    ")
    + "\nprint(run())\n",
    "a function that is called": "import tensorflow as tf\ndef run():\n    "
    + WORK.replace("\n", "\n    ")
    + "\nrun()\n",
}


@pytest.mark.parametrize("text", list(SWITCHED.values()), ids=list(SWITCHED))
def test_a_script_that_is_started_gets_the_switch_once(text: str) -> None:
    made = lifted(text)
    assert made == text.replace("import tensorflow as tf\n", "import tensorflow.compat.v1 as tf\n" + SWITCH)


def test_the_switch_comes_before_the_session_that_the_npu_needs() -> None:
    text = 'import tensorflow as tf\nm = tf.keras.Sequential([tf.keras.layers.LSTM(2)])\nm.compile("sgd")\nm.fit(x)\n'
    made = lifted(text, ALL)
    assert made.index(SWITCH) < made.index("npu_keras_sess =") < made.index("m = tf")
    assert Converter().convert(made.encode()).new is None


@pytest.mark.parametrize(
    "head,after",
    [
        (
            "from tensorflow import Session, placeholder\n",
            "from tensorflow.compat.v1 import Session, placeholder\nimport tensorflow.compat.v1 as tf\n" + SWITCH,
        ),
        (
            '"""Doc."""\nimport os\ntry:\n    import tensorflow as tf\nexcept ImportError:\n    tf = None\n',
            '"""Doc."""\nimport os\ntry:\n    import tensorflow.compat.v1 as tf\n    '
            + SWITCH
            + "except ImportError:\n    tf = None\n",
        ),
        (
            "import os; import tensorflow as tf; import sys\n",
            "import os; import tensorflow.compat.v1 as tf; tf.disable_v2_behavior(); import sys\n",
        ),
    ],
)
def test_the_switch_stands_behind_the_import(head: str, after: str) -> None:
    work = "sess = %sSession()\n" % ("" if "from" in head else "tf.")
    assert lifted(head + work) == after + work


def test_an_import_in_one_function_gets_the_switch_there() -> None:
    text = 'def main():\n    import tensorflow as tf\n    tf.Session()\nif __name__ == "__main__":\n    main()\n'
    assert lifted(text) == text.replace("import tensorflow as tf\n", "import tensorflow.compat.v1 as tf\n    " + SWITCH)


def test_a_script_on_compat_v1_gets_the_switch_where_nothing_does_it() -> None:
    text = "import tensorflow.compat.v1 as tf\nx = tf.placeholder(tf.float32)\n"
    assert lifted(text) == text.replace("tf\n", "tf\n" + SWITCH, 1)


def test_other_rules_see_the_lifted_names() -> None:
    text = "import tensorflow as tf\nx = tf.placeholder(tf.float32, [2])\ny = tf.nn.dropout(x, 0.5)\n" + WORK
    assert lifted(text, ALL) == (
        "import tensorflow.compat.v1 as tf\nfrom npu_shim.npu_init import npu_config_proto, npu_ops\n"
        + SWITCH
        + "x = tf.placeholder(tf.float32, [2])\ny = npu_ops.dropout(x, 0.5)\n"
        "with tf.Session(config=npu_config_proto()) as sess:\n    sess.run(x)\n"
    )


def test_names_that_another_rule_writes_are_lifted() -> None:
    text = "import tensorflow as tf\ndef f():\n    tf.random.set_seed(1)\n    return tf.train.MonitoredSession()\n"
    made = lifted(text, ALL)
    assert "tf.compat.v1.train.MonitoredSession(session_creator=tf.compat.v1.train.ChiefSessionCreator(" in made


def test_names_that_another_rule_writes_are_lifted_where_the_script_has_spaces_in_them() -> None:
    text = (
        "import os, tensorflow as tf\nif hasattr(tf.random, 'set_seed'):\n    tf.random.set_seed(1)\n"
        "with tf. train . MonitoredSession(hooks=hooks) as sess:\n    sess.run(op)\n"
    )
    assert "session_creator=tf.compat.v1.train.ChiefSessionCreator(" in lifted(text, ALL)


def test_names_that_another_rule_writes_are_lifted_if_a_function_imports_tensorflow() -> None:
    made = lifted(
        "def f(hooks):\n    import tensorflow as tf\n    return tf.train.MonitoredSession(hooks=hooks)\n"
        "def g(x):\n    import tensorflow as tf\n    return tf.random.set_seed(1)\n",
        ALL,
    )
    assert "session_creator=tf.compat.v1.train.ChiefSessionCreator(" in made


def test_the_switch_is_spelled_as_the_import_before_it_has_tf() -> None:
    made = lifted(
        "import tensorflow.compat.v1 as tf\nopt = tf.train.AdamOptimizer()\nimport tensorflow as tf\n"
        "tf.random.set_seed(1)\nx = tf.placeholder(tf.float32)\n",
        ALL,
    )
    assert made.startswith("import tensorflow.compat.v1 as tf\ntf.disable_v2_behavior()\n")


def test_code_for_both_versions_needs_no_switch_after_its_gelu_is_replaced() -> None:
    made = lifted(
        "import tensorflow.compat.v1 as v1\nimport tensorflow as tf\nx = v1.placeholder(v1.float32)\n"
        "y = tf.nn.gelu(x, approximate=True)\n",
        ALL,
    )
    assert "npu_unary_ops.gelu(x)" in made and "disable_v2_behavior" not in made


def test_without_the_argument_nothing_is_lifted() -> None:
    text = b"import tensorflow as tf\nx = tf.placeholder(tf.float32, [2])\n"
    assert Converter().convert(text).new is None
    assert Converter(Settings(compat_v1=True, ignore=("NPU100",))).convert(text).new is None


# --- projects ------------------------------------------------------------------------------------------------
def write(folder: pathlib.Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def run(tmp_path: pathlib.Path, files: dict[str, str], *more: str) -> dict[str, str]:
    write(tmp_path / "in", files)
    arguments = ["--compat-v1", "--select", "NPU100"] + list(more)
    assert main(["-i", str(tmp_path / "in"), "-o", str(tmp_path / "out")] + arguments) == 0
    made = {name: (tmp_path / "out" / name).read_text() for name in files}
    assert (
        main(
            ["-i", str(tmp_path / "out"), "-o", str(tmp_path / "again")]
            + [a.replace(str(tmp_path / "in"), str(tmp_path / "out")) for a in arguments]
        )
        == 0
    )
    assert {name: (tmp_path / "again" / name).read_text() for name in files} == made
    return made


PLAIN, LIFTED = "import tensorflow as tf\n", "import tensorflow.compat.v1 as tf\n"


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_names_that_other_files_import_are_lifted_there(tmp_path: pathlib.Path, jobs: str) -> None:
    made = run(
        tmp_path,
        {
            "pkg/__init__.py": "",
            "pkg/compat.py": PLAIN,
            "pkg/other.py": PLAIN,
            "pkg/model.py": "from .compat import tf\ndef net():\n    return tf.placeholder(tf.float32)\n",
            "train.py": "from pkg import model\nmodel.net()\n",
        },
        "-j",
        jobs,
    )
    assert made["pkg/compat.py"] == LIFTED and made["pkg/other.py"] == PLAIN
    assert made["pkg/model.py"].startswith("from .compat import tf\ndef")
    assert made["train.py"] == LIFTED + SWITCH + "from pkg import model\nmodel.net()\n"


@pytest.mark.parametrize(
    "use",
    [
        "from util import *\ntf.Session()\n",
        "import util\nutil.tf.Session()\n",
        "import util as u\nu.tf.Session()\n",
        "from util import tf\ntf.Session()\n",
    ],
)
def test_every_way_of_taking_it(tmp_path: pathlib.Path, use: str) -> None:
    made = run(tmp_path, {"util.py": PLAIN, "train.py": use})
    assert made["util.py"] == LIFTED and made["train.py"].startswith(LIFTED + SWITCH)


def test_only_what_is_started_gets_the_switch(tmp_path: pathlib.Path) -> None:
    model = PLAIN + "def net():\n    return tf.placeholder(tf.float32)\n"
    guard = 'if __name__ == "__main__":\n    tf.app.run()\n'
    made = run(
        tmp_path,
        {
            "model.py": model,
            "train.py": PLAIN + "import model\n" + guard,
            "evaluate.py": "import model\n" + PLAIN + guard,
            "unused.py": model,
        },
    )
    assert {name for name, text in made.items() if "disable" in text} == {"train.py", "evaluate.py"}
    assert made["evaluate.py"].startswith("import model\n" + LIFTED + SWITCH)


def test_the_switch_comes_before_a_module_that_makes_its_graph_when_it_is_imported(tmp_path: pathlib.Path) -> None:
    made = run(
        tmp_path,
        {"net.py": PLAIN + "x = tf.placeholder(tf.float32)\n", "train.py": "import net\n" + PLAIN + "tf.Session()\n"},
    )
    assert made["train.py"] == LIFTED + SWITCH + "import net\n" + LIFTED + "tf.Session()\n"
    assert "disable" not in made["net.py"]


@pytest.mark.parametrize("more,reported", [("", 1), ("y = tf.placeholder(tf.int32, [])\n", 0)])
def test_a_program_of_tensorflow_2_is_reported(more: str, reported: int, tmp_path: pathlib.Path, capsys) -> None:
    net = "import tensorflow as tf\ndef f(x):\n    return tf.where(x > 0, x, x)\n"
    train = "import tensorflow as tf\nimport net\nwith tf.GradientTape() as tape:\n    loss = net.f(tf.ones([2]))\n"
    run(tmp_path, {"net.py": net, "train.py": train + more})
    message = "the program uses tf.GradientTape of TensorFlow 2. Convert it without --compat-v1"
    assert capsys.readouterr().out.count(message) == reported


def test_a_switch_anywhere_in_the_program_is_enough(tmp_path: pathlib.Path) -> None:
    made = run(
        tmp_path,
        {
            "setup_tf.py": "import tensorflow.compat.v1 as tf\ntf.disable_v2_behavior()\n",
            "train.py": "import setup_tf\n" + PLAIN + "tf.Session()\n",
        },
    )
    assert made["train.py"] == "import setup_tf\n" + LIFTED + "tf.Session()\n"


def test_the_switch_is_written_once_where_a_star_import_brings_tf_anew(tmp_path: pathlib.Path) -> None:
    made = run(
        tmp_path,
        {
            "modules.py": PLAIN + "def net():\n    return tf.placeholder(tf.float32)\n",
            "train.py": PLAIN + "from modules import *\nnet()\ntf.Session()\n",
        },
    )
    assert made["train.py"].count("disable_v2_behavior()") == 1


def test_the_switch_is_spelled_rightly_in_a_file_for_both_versions(tmp_path: pathlib.Path) -> None:
    made = run(tmp_path, {"main.py": PLAIN + "tf.random.set_seed(1)\nx = tf.placeholder(tf.float32)\ntf.Session()\n"})
    assert made["main.py"].startswith(
        PLAIN + "tf.compat.v1.disable_v2_behavior()\ntf.random.set_seed(1)\nx = tf.compat"
    )


@pytest.mark.parametrize("named", ["b.py", "{folder}/b.py"])
def test_the_entry_script_can_be_named(tmp_path: pathlib.Path, named: str) -> None:
    text = PLAIN + 'if __name__ == "__main__":\n    tf.app.run()\n'
    made = run(tmp_path, {"a.py": text, "b.py": text}, "-m", named.format(folder=tmp_path / "in"))
    assert "disable" in made["b.py"] and "disable" not in made["a.py"]


def test_an_excluded_file_is_not_lifted_for_others(tmp_path: pathlib.Path) -> None:
    files = {"util.py": PLAIN, "train.py": "from util import tf\ntf.Session()\n"}
    made = run(tmp_path, files, "--exclude", "util.py")
    assert made == files


def test_a_notebook(tmp_path: pathlib.Path) -> None:
    cells = [
        {"cell_type": "code", "source": ["%matplotlib inline\n", "import tensorflow as tf"]},
        {"cell_type": "code", "source": ["s = tf.Session()"]},
    ]
    made = run(tmp_path, {"a.ipynb": json.dumps({"cells": cells}, indent=1)})
    assert ["".join(cell["source"]) for cell in json.loads(made["a.ipynb"])["cells"]] == [
        "%matplotlib inline\n" + LIFTED + SWITCH.strip(),
        "s = tf.Session()",
    ]


def test_standard_input_and_the_configuration(tmp_path: pathlib.Path, monkeypatch, capfdbinary) -> None:
    import io
    import sys

    (tmp_path / "pyproject.toml").write_text('[tool.convert_tf2npu]\ncompat-v1 = true\nselect = ["NPU100"]\n')
    monkeypatch.chdir(tmp_path)
    for more, wanted in (([], LIFTED + SWITCH), (["--no-compat-v1"], PLAIN)):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO((PLAIN + "tf.Session()\n").encode())))
        assert main(["-i", "-"] + more) == 0
        assert capfdbinary.readouterr().out.decode() == wanted + "tf.Session()\n"


def test_check_counts_what_would_be_lifted(tmp_path: pathlib.Path, capsys) -> None:
    write(tmp_path, {"a.py": PLAIN + "def f():\n    return tf.to_float(1)\n"})
    arguments = ["-i", str(tmp_path / "a.py"), "--check", "--select", "NPU100", "--statistics"]
    assert main(arguments) == 0
    assert main(arguments + ["--compat-v1"]) == 1
    assert "a.py:1:1: NPU100" in capsys.readouterr().out


@pytest.mark.parametrize(
    "text",
    [
        'import importlib\ntf = importlib.import_module("tensorflow")\nx = tf.placeholder(1)\n',
    ],
)
def test_names_that_cannot_be_lifted_are_reported(text: str) -> None:
    result = LIFTING.convert(text.encode())
    assert result.new is None
    assert [d.message for d in result.diagnostics if d.kind == FINDING and "tf.compat.v1.placeholder" in d.message]
