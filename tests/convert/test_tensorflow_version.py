"""The TensorFlow that a program speaks, and the two lines that open the device."""

from __future__ import annotations

import pathlib
from typing import Any

import pytest
from convert_tf2npu.analysis.near_frameworks import near_frameworks
from convert_tf2npu.engine.converter import Converter
from convert_tf2npu.engine.settings import Settings
from convert_tf2npu.main import main
from convert_tf2npu.project.project import Project

TF = "import tensorflow as tf\n"
KERAS = TF + "model = tf.keras.Sequential([tf.keras.layers.Dense(1)])\nmodel.fit(x, y)\n"
PACKAGE = "import keras, os\nmodel = keras.Sequential([keras.layers.Dense(1)])\nmodel.fit(x, y)\n"
TAPE = "with tf.GradientTape() as tape:\n    loss = model(x)\n"


def diagnostics(text: str, **settings: Any) -> list[tuple[str, str]]:
    result = Converter(Settings(**settings)).convert(text.encode())
    return [(each.code, each.message) for each in result.diagnostics]


def opened(text: str, **settings: Any) -> str:
    """Return the message of NPU121, or nothing."""
    return next((message for code, message in diagnostics(text, **settings) if code == "NPU121"), "")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (TF + TAPE, "TensorFlow 2, tf.GradientTape in line 2"),
        (KERAS, "TensorFlow 1 or 2, Keras"),
        (KERAS + "@tf.function\ndef f(x):\n    return x\n", "TensorFlow 2, tf.function in line 4"),
        (KERAS + "tf.keras.utils.set_random_seed(1)\n", "TensorFlow 2, tf.keras.utils.set_random_seed in line 4"),
        (KERAS + "print(loss.numpy())\n", "TensorFlow 2, .numpy() in line 4"),
        (KERAS + "for x in tf.data.Dataset.range(3):\n    print(x)\n", "TensorFlow 2, a loop over a dataset in line 4"),
        (
            TF + "@tf.function\ndef f(v):\n    return tf.gradients(v * v, [v])\nf(v)\n",
            "TensorFlow 2, tf.function in line 2",
        ),
        # to limit the memory of GPUs
        (
            TF + "tf.compat.v1.InteractiveSession(config=tf.compat.v1.ConfigProto())\n" + TAPE,
            "TensorFlow 2, tf.GradientTape in line 3",
        ),
        (TF + "tf.compat.v1.logging.set_verbosity('ERROR')\n" + TAPE, "TensorFlow 2, tf.GradientTape in line 3"),
        # runs in eager code, too
        (TF + "w = tf.compat.v1.get_variable('w', [3])\n" + TAPE, "TensorFlow 2, tf.GradientTape in line 3"),
        # of TensorFlow 1.15 and of the first versions of TensorFlow 2
        (KERAS + "tf.data.experimental.MapVectorizationOptions()\n", "TensorFlow 1 or 2, Keras"),
        (
            TF + "w = tf.Variable(1.0)\ntf.keras.optimizers.SGD(0.1).minimize(lambda: w * w, [w])\n",
            "TensorFlow 1 or 2, Keras",
        ),
        (PACKAGE, "TensorFlow 1 or 2, Keras"),
        (PACKAGE.replace("import keras", "import tf_keras as keras"), "TensorFlow 1 or 2, Keras"),
        (PACKAGE + "keras.utils.set_random_seed(1)\n", "TensorFlow 2, keras.utils.set_random_seed in line 4"),
        (
            TF + "if tf.version.VERSION < '2':\n    s = tf.compat.v1.Session()\n" + KERAS.replace(TF, ""),
            "TensorFlow 1 or 2, Keras",
        ),
        # TensorFlow 1, or both
        (KERAS + "w = tf.compat.v1.get_variable('w', [3])\n", ""),
        (PACKAGE + "keras.backend.get_session()\n", ""),
        (PACKAGE + "model.fit(x, y, nb_epoch=3)\n", ""),
        (PACKAGE + "os.environ['KERAS_BACKEND'] = 'jax'\n", ""),
        (KERAS + "tf.compat.v1.disable_eager_execution()\n", ""),
        (TF + "tf.compat.v1.disable_v2_behavior()\ntf.random.set_seed(1)\n" + KERAS.replace(TF, ""), ""),
        (KERAS + "s = tf.Session()\n", ""),
        (KERAS + "y = tf.nn.dropout(x, keep_prob=0.5)\n", "TensorFlow 1 or 2, Keras"),  # it is replaced
        (TF + "tf.enable_eager_execution()\n" + TAPE, ""),
        (TF + "tf.Session().run(tf.keras.optimizers.SGD(0.1).minimize(loss, [w]))\n", ""),
        (TF + "train = tf.train.AdamOptimizer().minimize(loss)\n", ""),
        # nothing is trained
        (TF + "@tf.function\ndef f(x):\n    return x\nf(1)\n", ""),
        ("import torch\nmodel.fit(loss.numpy())\n", ""),
    ],
)
def test_evidence(text: str, message: str) -> None:
    said = opened(text)
    assert said == (f"NPU device opened: {message}" if message else "")


@pytest.mark.parametrize("graph", ["tf.placeholder(tf.float32)", "tf.get_variable('w', [3])"])
def test_both_versions(graph: str) -> None:
    said = opened(f"{KERAS}x = {graph}\n{TAPE}")
    assert said.startswith("this program shows TensorFlow 2, tf.GradientTape in line 5, and 1, tf.")
    assert "in line 4. Convert it with --tf 2, or with --tf 1 if it builds graphs" in said


@pytest.mark.parametrize(
    ("head", "opens"),
    [
        ("if mode == 'graph':\n    tf.compat.v1.disable_eager_execution()\n", True),
        ("import os\nif os.environ.get('GRAPH'):\n    tf.compat.v1.disable_v2_behavior()\n", True),
        ("tf.compat.v1.disable_eager_execution()\n", False),
        ("y = tf.zeros([3])\nif mode == 'graph':\n    tf.compat.v1.disable_eager_execution()\n", False),
        ("if mode == 'graph':\n    tf.compat.v1.disable_eager_execution()\n    x = tf.zeros([3])\n", False),
        (
            "def to_graphs():\n    if True:\n        tf.compat.v1.disable_eager_execution()\ndevice()\nto_graphs()\n",
            False,
        ),
    ],
)
def test_both_versions_with_a_switch(head: str, opens: bool) -> None:
    text = TF + head + "x = tf.compat.v1.placeholder(tf.float32, [3])\n" + KERAS.replace(TF, "") + TAPE
    said = opened(text)
    assert said.startswith("NPU device opened: TensorFlow 1 and 2, tf.GradientTape in line") == opens
    codes = [code for code, _ in diagnostics(text)]
    assert ("NPU105" in codes) != ("NPU121" in codes)  # the device gives Keras a session


def test_ranks_train_no_script_of_which_the_version_is_open() -> None:
    text = f"{KERAS}x = tf.placeholder(tf.float32)\ntf.distribute.MirroredStrategy()\n{TAPE}"
    text += "model.compile(tf.keras.optimizers.Adam(), 'mse')\ntf.keras.backend.clear_session()\n"
    codes = [code for code, _ in diagnostics(text, distributed="tf_strategy")]
    assert "NPU121" in codes and not {"NPU105", "NPU115"} & set(codes)
    assert not [code for code in codes if code.startswith("NPU3")]


def test_a_script_of_both_versions_gets_one_advice() -> None:
    text = "import keras\nmodel = build()\nmodel.compile(loss='mse', optimizer='adam')\nmodel.fit_generator(x)\n"
    text = f"{text}import tensorflow as tf\nx = tf.placeholder(tf.float32)\n{TAPE}"
    assert "Convert it with --tf 2, or with --tf 1 if it builds graphs" in opened(text)
    assert "NPU105" not in [code for code, _ in diagnostics(text)]
    assert "NPU105" in [code for code, _ in diagnostics(text, tf="1")]


def test_the_user_knows_better() -> None:
    assert opened(KERAS, tf="1") == "" and ("NPU105" in [code for code, _ in diagnostics(KERAS, tf="1")])
    graph = KERAS + "s = tf.Session()\n"
    assert opened(graph, tf="2") and "NPU105" not in [code for code, _ in diagnostics(graph, tf="2")]
    assert opened(KERAS, compat_v1=True) == ""


@pytest.mark.parametrize("value", ["1", '"2"', "3", "true"])
def test_the_version_in_pyproject(value: str, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "pyproject.toml").write_text(f"[tool.convert_tf2npu]\ntf = {value}\n")
    (tmp_path / "train.py").write_text(KERAS)
    code = main(["-i", str(tmp_path), "--no-cache"])
    out, err = capsys.readouterr()
    if value in ("1", '"2"'):
        assert code == 0 and ("npu.open()" in out) == (value == '"2"')
    else:
        assert code == 2 and "is not a version of TensorFlow. Write 1 or 2" in err


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"a.py": TF + "@tf.function\ndef f(x):\n    return tf.nn.relu(x)\nf(x)\n"}, "a.py"),
        (
            {"a.py": TF + "print(tf.zeros([3]).numpy())\n", "b.py": TF + "print(tf.ones([3]).numpy())\n"},
            "a.py and 1 other file",
        ),
        ({"a.py": KERAS}, ""),
        ({"a.py": KERAS.replace(TF, TF + "import npu_shim.npu_device as npu\nnpu.open().as_default()\n")}, ""),
        ({"test_a.py": TF + "print(tf.zeros([3]).numpy())\n"}, ""),
        ({"a.py": TF + "with tf.Session() as s:\n    s.run(tf.zeros([3]))\n"}, ""),
        ({"a.py": TF + "x = tf.zeros([3])\n"}, ""),
        # a module of a script that trains, and one of none
        ({"a.py": "from b import f\n" + KERAS, "b.py": TF + "@tf.function\ndef f(x):\n    return tf.nn.relu(x)\n"}, ""),
        # a module of a script that a test imports
        (
            {
                "test_a.py": "import a\n",
                "a.py": "from b import f\n" + KERAS + "if __name__ == '__main__':\n    f(x)\n",
                "b.py": TF + "@tf.function\ndef f(x):\n    return tf.nn.relu(x)\n",
            },
            "",
        ),
    ],
)
def test_code_that_stays_on_the_cpu(
    files: dict[str, str], expected: str, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The last line names the code of TensorFlow 2 for which no script opens the NPU."""
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    main(["-i", str(tmp_path), "--no-cache"])
    said = capsys.readouterr().err
    assert ("No script opens the NPU for" in said) == bool(expected)
    assert f"{expected}: TensorFlow 2 runs there on the CPU" in said if expected else True


FUNCTION = TF + "@tf.function\ndef f(x):\n    return tf.nn.relu(x)\n"


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"a.py": FUNCTION}, "a.py"),
        ({"a.py": FUNCTION, "b.py": "from a import f\n" + FUNCTION.replace("def f", "def g")}, "a.py and 1 other file"),
        ({"a.py": FUNCTION, "b.py": "from a import f\nf(x)\n"}, ""),  # a script opens nothing
        ({"a.py": FUNCTION, "b.py": "from a import f\n" + KERAS}, ""),
        ({"a.py": FUNCTION, "b.py": '"""Usage:\n\nfrom a import f\n"""\n' + KERAS}, "a.py"),
        ({"a.py": FUNCTION, "a_test.py": "from a import f\nf(x)\n"}, ""),
        (
            {
                "b.py": TF
                + "class Trainer:\n    def run(self, x):\n        "
                + KERAS.replace(TF, "").replace("\n", "\n        ")
                + "\n",
                "setup.py": "from setuptools import setup\nfrom b import __version__\nsetup(version=__version__)\n",
            },
            "b.py",
        ),
    ],
)
def test_modules_that_no_script_imports(
    files: dict[str, str], expected: str, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A library has no script that could open the NPU; the program that imports it must."""
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    main(["-i", str(tmp_path), "--no-cache"])
    said = capsys.readouterr().err
    assert ("No script imports" in said) == bool(expected)
    assert f"{expected}. Write npu.open().as_default() in the program that does" in said if expected else True


SWITCH = """from nets import build
try:
    import tensorflow.compat.v1 as tf
except ImportError:
    import tensorflow as tf
if __name__ == "__main__":
    model = build()
    model.compile("adam", "mse")
    if not hasattr(tf, "version") or tf.version.VERSION < "2.0.0":
        with tf.Session() as sess:
            sess.run(tf.tables_initializer())
            model.fit(x, y, batch_size=256)
    else:
        model.fit(x, y, batch_size=256)
"""
NETS = TF + "def build():\n    return tf.keras.Sequential([tf.keras.layers.Dense(1)])\n"
TRAINS = TF + "from nets import build\nmodel = build()\nmodel.compile('adam', 'mse')\nmodel.fit(x, y)\n"
CLEARS = "tf.keras.backend.clear_session()\ntf.keras.Sequential([]).fit(x, y)\n"


@pytest.mark.parametrize(
    "files",
    [
        {"main.py": SWITCH, "nets.py": NETS},
        {"main.py": TRAINS, "nets.py": NETS + CLEARS, "one.py": "import nets\n" + TF + "tf.placeholder(tf.int32)\n"},
        {"main.py": TRAINS, "nets.py": NETS + "if tf.__version__ < '2':\n    tf.estimator.Estimator(f)\n"},
    ],
    ids=["a session", "npu_clear_session", "an Estimator"],
)
def test_nothing_that_the_tool_wrote_is_evidence_for_another_file(
    files: dict[str, str], tmp_path: pathlib.Path
) -> None:
    (tmp_path / "src").mkdir()
    for name, text in files.items():
        (tmp_path / "src" / name).write_text(text)
    for before, after in [("src", "once"), ("once", "twice")]:
        assert main(["-i", str(tmp_path / before), "-o", str(tmp_path / after), "--no-cache"]) == 0
    once, twice = [{path.name: path.read_text() for path in (tmp_path / n).iterdir()} for n in ("once", "twice")]
    assert once == twice
    assert once != files


def test_an_import_in_a_string_makes_no_module(tmp_path: pathlib.Path) -> None:
    """The script is started as a program, although the docstring of another file has a line that imports it."""
    fit = "def main():\n    model.fit(x, y)\n\nmain()\n"
    folder, out = tmp_path / "src", tmp_path / "out"
    folder.mkdir()
    (folder / "train.py").write_text(KERAS.replace("model.fit(x, y)\n", fit))
    (folder / "other.py").write_text('"""Call it:\n\nimport train\n"""\nimport numpy\n')
    main(["-i", str(folder), "-o", str(out), "--no-cache"])
    assert "npu.open()" in (out / "train.py").read_text()


def test_the_package_keras_in_a_program_of_tensorflow_1(tmp_path: pathlib.Path) -> None:
    """A session in the script decides for the modules that it imports, in whichever order they are converted."""
    files = {
        "back.py": "from keras import backend as K\n",
        "model.py": "from keras.layers import Dense\nfrom back import K\ndef made():\n    K.clear_session()\n",
        "train.py": TF + "from keras.models import Sequential\nfrom model import made\nmade()\n"
        "s = tf.Session()\nmodel = Sequential()\nmodel.fit(x, y)\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    paths = [str(tmp_path / name) for name in files]
    for order in (paths, paths[::-1]):
        converter = Converter(project=Project(order))
        found = {path: converter.convert(pathlib.Path(path).read_bytes(), path) for path in order}
        assert [d.code for path in paths for d in found[path].diagnostics] == ["NPU228", "NPU228", "NPU228", "NPU101"]


def test_a_module_beside_others_of_tensorflow_1(tmp_path: pathlib.Path) -> None:
    """A module that shows no version has that of what its script imports besides, so that a program has one Keras."""
    (tmp_path / "losses.py").write_text("from keras import backend as K\ndef loss(a, b):\n    return K.mean(a - b)\n")
    (tmp_path / "parts.py").write_text("from keras.engine.topology import Layer\nclass Part(Layer):\n    pass\n")
    script = "from keras.models import Sequential\nfrom losses import loss\nfrom parts import Part\n"
    script += "model = Sequential([Part()])\nmodel.compile('sgd', loss)\nmodel.fit(x, y)\n"
    (tmp_path / "train.py").write_text(script)
    assert main(["-i", str(tmp_path), "--in-place", "--no-cache"]) == 0
    assert not any("tensorflow" in path.read_text() for path in tmp_path.iterdir())  # NPU228 reports the package


def test_the_session_that_a_script_gives_the_package_keras_is_the_only_one() -> None:
    script = TF + "from keras import backend as K\nfrom keras.models import Sequential\n"
    script += "K.set_session(tf.Session(config=tf.ConfigProto()))\n"
    script += "def train():\n    model = Sequential()\n    model.fit(x, x)\n"
    new = Converter().convert(script.encode()).new
    assert new is not None and b"npu_config_proto(config_proto=" in new and b"keras_sess" not in new


def test_scripts_that_share_a_training_module_have_one_version(tmp_path: pathlib.Path) -> None:
    """The script that shows nothing does not open the device where the shared module sets a session for another one."""
    files = {
        "net.py": "from keras.models import Sequential\ndef build():\n    return Sequential()\n"
        "def train(model, x):\n    model.fit(x, x, epochs=2, validation_data=(x, x))\n",
        "settings.py": TF + "def session():\n    return tf.Session(config=tf.ConfigProto())\n",
        "search.py": "import keras\nfrom net import build, train\nfrom settings import session\n"
        "keras.backend.set_session(session())\ntrain(build(), x)\n",
        "train.py": "from net import build, train\ntrain(build(), x)\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    assert main(["-i", str(tmp_path), "--in-place", "--no-cache"]) == 0
    after = {name: (tmp_path / name).read_text() for name in files}
    assert after["train.py"] == files["train.py"] and after["search.py"] == files["search.py"]
    assert "session(config=npu_config_proto(config_proto=" in after["settings.py"].replace("Session", "session")
    assert "set_keras_session_npu_config()" in after["net.py"]


def test_a_project(tmp_path: pathlib.Path) -> None:
    """The module of the model shows nothing; the script that imports it does, and only that opens the device."""
    files = {
        "model.py": TF + "def net(x):\n    with tf.device('/GPU:0'):\n        return tf.nn.dropout(x, rate=0.5)\n",
        "steps.py": TF
        + "from model import net\n@tf.function\ndef step(x):\n    "
        + TAPE.replace("\n    ", "\n        "),
        "train.py": TF
        + "from steps import step\n\ndef main():\n    size = 3\n    x = tf.zeros([size])\n    step(x)\n\n"
        + "if __name__ == '__main__':\n    main()\n",
        "test_train.py": TF + "from steps import step\nstep(tf.zeros([3]))\n",
        "pictures.py": "def show(gan):\n    print(gan)\n\ndef compare():\n    from gan import GAN\n    show(GAN())\n\n"
        + "if __name__ == '__main__':\n    show(1)\n",
        "gan.py": TF
        + "from pictures import show\n\nclass GAN:\n    def step(self, x):\n        with tf.GradientTape() as tape:\n"
        + "            return tape.gradient(x, x)\n\nif __name__ == '__main__':\n    show(GAN())\n",
        "heat.py": TF
        + "class Net:\n    def fit(self, x):\n        with tf.GradientTape() as tape:\n"
        + "            return tape.gradient(x, x)\n\nnet = Net()\nnet.fit(1)\n",
        "speed.py": "from heat import net\nprint(net)\n",
        "agent.py": TF
        + "import helper\nclass Agent:\n    def train(self, x):\n        with tf.GradientTape() as tape:\n"
        + "            return tape.gradient(x, x)\n",
        "helper.py": TF + "def once(period):\n    with tf.variable_scope('a'):\n        return tf.zeros([3])\n",
        "run_agent.py": "from agent import Agent\nif __name__ == '__main__':\n    Agent().train(1)\n",
        "trainer.py": TF + "@tf.function\ndef step(v):\n    return tf.gradients(v * v, [v])\n",
        "train_gan.py": "import trainer\n" + TF + "v = tf.Variable(1.0)\ntrainer.step(v)\n",
        "parts.py": "from keras import layers\n\ndef head():\n    return layers.Dense(1)\n",
        "fitting.py": "import keras\n\ndef fit(layer):\n    keras.Sequential([layer]).fit(1)\n",
        "run_keras.py": "import fitting\nimport parts\nfitting.fit(parts.head())\n",
        "graph.py": TF + "s = tf.Session()\nwith tf.device('/GPU:0'):\n    x = tf.zeros([3])\n",
    }
    source, out = tmp_path / "src", tmp_path / "out"
    source.mkdir()
    for name, text in files.items():
        (source / name).write_text(text)
    assert main(["-i", str(source), "-o", str(out), "--no-cache"]) == 0
    after = {name: (out / name).read_text() for name in files}
    assert after["model.py"] == files["model.py"].replace("/GPU:0", "/device:NPU:0")
    assert after["steps.py"] == files["steps.py"] and after["test_train.py"] == files["test_train.py"]
    assert after["train.py"] == files["train.py"].replace(TF, TF + "import npu_shim.npu_device as npu\n").replace(
        "    x = ", "    npu.open().as_default()\n    x = "
    )
    assert all("npu.open()" in after[name] for name in ("heat.py", "run_agent.py", "train_gan.py"))
    assert after["pictures.py"] == files["pictures.py"] and "npu.open()" in after["gan.py"]
    assert "from tensorflow.keras import layers" in after["parts.py"]  # one Keras in all files of a program
    assert "from tensorflow import keras" in after["fitting.py"]
    assert "/CPU:0" in after["graph.py"] and "npu_config_proto" in after["graph.py"]


def test_place_behind_arguments_that_a_star_import_checks(tmp_path: pathlib.Path) -> None:
    (tmp_path / "utils.py").write_text(
        TF + "import os\ndef folder(d):\n    if not os.path.exists(d):\n        os.mkdir(d)\n"
    )
    script = "from utils import *\ndef parse(a):\n    folder(a)\n    return a\n" + TF
    script += "def main():\n    a = parse('logs')\n    model = tf.keras.Sequential()\n    model.fit(x, x)\n"
    (tmp_path / "train.py").write_text(script + "if __name__ == '__main__':\n    main()\n")
    assert main(["-i", str(tmp_path), "--in-place", "--no-cache"]) == 0
    assert "parse('logs')\n    npu.open().as_default()\n    model" in (tmp_path / "train.py").read_text()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        # the name npu is taken
        (
            TF + "npu = 1\nmodel = tf.keras.Sequential()\nmodel.fit(x, y)\n",
            "from npu_shim import npu_device\nnpu = 1\nnpu_device.open().as_default()\nmodel",
        ),
        # behind the arguments and the seeds, and before the strategy
        (
            TF + "import argparse\nargs = argparse.ArgumentParser().parse_args()\ntf.random.set_seed(args.seed)\n"
            "strategy = tf.distribute.get_strategy()\nwith strategy.scope():\n    model = tf.keras.Sequential()\n"
            "model.fit(x, y)\n",
            "set_seed(args.seed)\nnpu.open().as_default()\nstrategy =",
        ),
        (
            TF
            + "import os\nassert tf.__version__.startswith('2.')\nprint(tf.executing_eagerly())\nos.environ['A'] = 'b'\n"
            "model = tf.keras.Sequential()\nmodel.fit(x, y)\n",
            "os.environ['A'] = 'b'\nnpu.open().as_default()\nmodel",
        ),
        (
            "import horovod.tensorflow.keras as hvd\n" + TF + "hvd.init()\n"
            "gpus = tf.config.list_physical_devices('GPU')\nif gpus:\n"
            "    tf.config.set_visible_devices(gpus[hvd.local_rank()], 'GPU')\ntf.random.set_seed(hvd.rank())\n"
            "model = tf.keras.Sequential()\nmodel.fit(x, y)\n",
            "set_seed(hvd.rank())\nnpu.open().as_default()\nmodel",
        ),
        # in the function that the program runs
        (
            TF + "def run(a):\n    '''Train.'''\n    model = tf.keras.Sequential()\n    model.fit(x, y)\n"
            "def main():\n    a = 3\n    run(a)\nif __name__ == '__main__':\n    main()\n",
            "'''Train.'''\n    npu.open().as_default()\n    model",
        ),
        # behind arguments that a function with a function in it reads
        (
            TF + "import argparse\ndef parse():\n    def pair(s):\n        return s.split(',')\n"
            "    p = argparse.ArgumentParser()\n    p.add_argument('--a', type=pair)\n    return p.parse_args()\n"
            "args = parse()\nmodel = tf.keras.Sequential()\nmodel.fit(x, y)\n",
            "args = parse()\nnpu.open().as_default()\nmodel",
        ),
        # names of two star imports
        (
            "from tensorflow.keras.layers import *\nfrom tensorflow.keras.models import *\n"
            "inputs = Input((3,))\nmodel = Model(inputs, Dense(1)(inputs))\nmodel.fit(x, y)\n",
            "import npu_shim.npu_device as npu\nnpu.open().as_default()\ninputs",
        ),
        # an object of unknown type, trained as only Keras does
        *(
            (
                TF + f"import zoo\nmodel = zoo.make(tf.keras.losses.mse)\nmodel.{call}\n",
                "npu.open().as_default()\nmodel = zoo.make(",
            )
            for call in ("fit_generator(data)", "train_on_batch(x, y)", "fit(x, y, epochs=2)")
        ),
        # the arguments are work
        (
            TF + "def run(a):\n    model = tf.keras.Sequential()\n    model.fit(a, a)\n"
            "if __name__ == '__main__':\n    run(load())\n",
            "    npu.open().as_default()\n    run(load())",
        ),
        (
            TF + "import click\n@click.command()\ndef main():\n    model = tf.keras.Sequential()\n    model.fit(x, x)\n"
            "if __name__ == '__main__':\n    main()\n",
            "def main():\n    npu.open().as_default()\n    model",
        ),
        # behind a partial layer and the configuration, which build nothing, and in the function that a launcher is given
        *(
            (
                TF + "import functools\nimport launcher\nfrom absl import app\ndense = functools.partial(\n"
                "    tf.keras.layers.Dense, kernel_initializer=tf.compat.v1.variance_scaling_initializer(2.0))\n"
                "def main(_):\n    tf.compat.v1.enable_eager_execution(config=tf.compat.v1.ConfigProto())\n"
                f"    model = tf.keras.Sequential([dense(1)])\n    model.fit(x, x)\nif __name__ == '__main__':\n    {start}\n",
                "ConfigProto())\n    npu.open().as_default()\n    model",
            )
            for start in ("launcher.run(functools.partial(app.run, main))", "launcher.run(lambda _: app.run(main))")
        ),
        # behind arguments that transformers reads, and an argument that builds nothing
        (
            TF + "from transformers import HfArgumentParser\ndef main(a):\n    model = tf.keras.Sequential()\n"
            "    model.fit(x, x)\nif __name__ == '__main__':\n    parser = HfArgumentParser(Options)\n"
            "    main(parser.parse_args_into_dataclasses())\n",
            "def main(a):\n    npu.open().as_default()\n    model",
        ),
        # behind settings that fail when the devices are open, also behind unknown calls
        (
            TF + "import dist\ntf.config.threading.set_inter_op_parallelism_threads(dist.workers())\n"
            "model = tf.keras.Sequential()\nmodel.fit(x, x)\n",
            "(dist.workers())\nnpu.open().as_default()\nmodel",
        ),
        (
            TF + "import conf\nparams = conf.read()\nif params.grow:\n"
            "    for gpu in tf.config.list_physical_devices('GPU'):\n"
            "        tf.config.experimental.set_memory_growth(gpu, True)\nmodel = tf.keras.Sequential()\nmodel.fit(x, x)\n",
            "set_memory_growth(gpu, True)\nnpu.open().as_default()\nmodel",
        ),
        # behind the devices that TensorFlow lists
        (
            "from tensorflow.python.client import device_lib\nprint(device_lib.list_local_devices())\n"
            + TF
            + "for gpu in tf.config.list_physical_devices('GPU'):\n"
            "    tf.config.experimental.set_memory_growth(gpu, True)\nmodel = tf.keras.Sequential()\nmodel.fit(x, x)\n",
            "set_memory_growth(gpu, True)\nnpu.open().as_default()\nmodel",
        ),
        # behind what runs before the import of TensorFlow
        (
            "import subprocess\ndef run(line):\n    subprocess.Popen(line).wait()\nrun('pip install tensorflow')\n"
            + TF
            + "model = tf.keras.Sequential()\nmodel.fit(x, x)\n",
            "import npu_shim.npu_device as npu\nnpu.open().as_default()\nmodel",
        ),
        # behind an initializer and a loss that the script registers, which make no variables
        (
            TF + "class Gate(tf.keras.initializers.Initializer):\n    def __call__(self, shape, dtype=None):\n"
            "        return tf.ones(shape)\ntf.keras.utils.get_custom_objects().update({'gate': Gate()})\n"
            "init = tf.keras.initializers.RandomNormal(stddev=0.02)\ntf.keras.utils.get_custom_objects()['init'] = init\n"
            "loss = tf.keras.losses.BinaryCrossentropy()\ndef main():\n    model = tf.keras.Sequential()\n"
            "    model.fit(x, x)\nif __name__ == '__main__':\n    main()\n",
            "def main():\n    npu.open().as_default()\n    model",
        ),
        # but not behind another module, which may use it, or a function that does
        (
            "import zoo\nzoo.start()\n" + TF + "model = tf.keras.Sequential()\nmodel.fit(x, x)\n",
            "npu.open().as_default()\nzoo.start()",
        ),
        (
            "def load():\n    import tensorflow as tf\n    return tf.zeros([1])\nx = load()\n"
            + TF
            + "model = tf.keras.Sequential()\nmodel.fit(x, x)\n",
            "npu.open().as_default()\nx = load()",
        ),
        # but not behind TensorFlow's first use
        (
            TF + "import conf\nparams = conf.read(tf.zeros([1]))\ntf.config.set_visible_devices(params.gpus, 'GPU')\n"
            "model = tf.keras.Sequential()\nmodel.fit(x, x)\n",
            "npu.open().as_default()\nparams",
        ),
    ],
)
def test_the_place(before: str, after: str) -> None:
    result = Converter().convert(before.encode())
    assert result.new is not None and after in result.new.decode()
    assert Converter().convert(result.new).new is None


def test_place_behind_gpu_settings_of_another_file(tmp_path: pathlib.Path) -> None:
    """The place is behind a function of the project that sets up GPUs, and in the main function that a try starts."""
    gpus = "def grow():\n    for gpu in tf.config.list_physical_devices('GPU'):\n        "
    gpus += "tf.config.experimental.set_memory_growth(gpu, True)\n"
    (tmp_path / "gpus.py").write_text(TF + gpus)
    start = "from absl import app\nfrom gpus import grow\n" + TF
    main_function = "\ndef main(argv):\n    if len(argv) > 1:\n        raise app.UsageError('too many')\n    grow()\n"
    rest = "    with tf.GradientTape() as tape:\n        print(tape)\n\n"
    end = "try:\n    app.run(main)\nexcept SystemExit:\n    pass\n"
    (tmp_path / "train.py").write_text(start + main_function + rest + end)
    assert main(["--in-place", "--force", str(tmp_path), "--no-cache", "--ignore", "NPU120"]) == 0
    after = (tmp_path / "train.py").read_text()
    assert main_function + "    npu.open().as_default()\n" + rest in after


@pytest.mark.parametrize(
    "text",
    [
        TF + "import zoo\nmodel = zoo.make()\nmodel.fit(x, y)\n",
        TF + "import torch\nimport zoo\nmodel = zoo.make()\nmodel.fit(x, y, epochs=2)\n",
        TF + "class Net:\n    def fit(self, x, epochs):\n        pass\nmodel = Net()\nmodel.fit(x, epochs=2)\n",
        "from tensorflow.keras.layers import *\nfrom zoo import *\nmodel = Model(x)\nmodel.fit(x, y)\n",
    ],
)
def test_an_object_that_may_be_no_keras_model(text: str) -> None:
    assert b"npu" not in (Converter().convert(text.encode()).new or b"")


@pytest.mark.parametrize(
    "line, after",
    [
        ("import sys; MODEL", "import sys; OPEN; MODEL"),
        ("tf.random.set_seed(1); n = 2; MODEL", "tf.random.set_seed(1); n = 2; OPEN; MODEL"),
        ("n = (1 +\n     1); MODEL", "OPEN\nn = (1 +\n     1); MODEL"),
        ("n = 1; \\\nMODEL", "OPEN\nn = 1; \\\nMODEL"),
        ("# of two\nn = 1; m = 2; MODEL", "OPEN\n# of two\nn = 1; m = 2; MODEL"),
        ("if __name__ == '__main__': n = 1; MODEL", "if __name__ == '__main__': n = 1; OPEN; MODEL"),
        ("if __name__ == '__main__':\n    n = 1; MODEL", "if __name__ == '__main__':\n    OPEN\n    n = 1; MODEL"),
    ],
    ids=["an import", "a setting", "brackets", "a backslash", "a comment", "a condition", "a block"],
)
def test_a_line_with_semicolons(line: str, after: str) -> None:
    text = TF + line.replace("MODEL", "model = tf.keras.Sequential(); model.fit(x, y)") + "\n"
    wanted = after.replace("OPEN", "npu.open().as_default()").replace("MODEL", "model = tf.keras.Sequential(); ")
    new = Converter().convert(text.encode()).new or b""
    assert wanted in new.decode()
    assert Converter().convert(new).new is None


STEP = "@tf.function\ndef step(x):\n    with tf.GradientTape() as tape:\n        return model(x)\n"
NET = "model = tf.keras.Sequential([tf.keras.layers.Dense(1)])\n"
HELPERS = TF + "def loss(a, b):\n    return tf.reduce_mean(a - b)\ndef old(f):\n    return tf.estimator.Estimator(f)\n"
HELPERS += "class Old:\n    def run(self, f):\n        return tf.contrib.tpu.TPUEstimator(f)\n"
MAIN = "if __name__ == '__main__':\n    "
TIMER = "timer = tf.estimator.SecondOrStepTimer(every_steps=10)\n"
CONTRIB = TF + "def build():\n    return tf.keras.Sequential(tf.contrib.layers.maxout)\n"
EAGER = TF + "tf.compat.v1.enable_eager_execution()\n"


@pytest.mark.parametrize(
    ("files", "codes"),
    [
        pytest.param({"train.py": TF + NET + STEP + TIMER + "step(x)\n"}, ["NPU121"], id="a timer of estimators"),
        pytest.param(
            {
                "train.py": "import helpers\n" + TF + NET + STEP + MAIN + "step(helpers.loss(x, y))\n",
                "helpers.py": HELPERS,
            },
            ["NPU121"],
            id="unused functions of version 1",
        ),
        pytest.param(
            {"train.py": "from helpers import loss\n" + TF + NET + "model.fit(x, y)\n", "helpers.py": HELPERS},
            ["NPU121"],
            id="unused functions of version 1 beside Keras",
        ),
        pytest.param(
            {"train.py": "import helpers\n" + KERAS + "helpers.old(f)\n", "helpers.py": HELPERS},
            ["NPU105"],
            id="a function of version 1 that runs",
        ),
        pytest.param(
            {"train.py": "import helpers\n" + KERAS + "helpers.Old().run(f)\n", "helpers.py": HELPERS},
            ["NPU105"],
            id="a method of version 1 that runs",
        ),
        pytest.param(
            {"train.py": "import helpers\n" + KERAS + "getattr(helpers, name)(f)\n", "helpers.py": HELPERS},
            ["NPU105"],
            id="a function that no name shows",
        ),
        pytest.param(
            {"train.py": EAGER + "from b import build\nmodel = build()\n" + TAPE, "b.py": CONTRIB},
            ["NPU210"],
            id="eager code of version 1 in two files",
        ),
        pytest.param({"train.py": EAGER + NET + "a = tf.contrib.layers.maxout\n" + TAPE}, ["NPU210"], id="and in one"),
        pytest.param(
            {"train.py": EAGER + "from tensorflow.contrib import layers\n" + NET + TAPE}, ["NPU210"], id="an import"
        ),
        pytest.param(
            {
                "train.py": KERAS
                + STEP
                + "with tf.Graph().as_default():\n    x = tf.compat.v1.placeholder('int32', [3])\n"
            },
            ["NPU121"],
            id="a graph of its own",
        ),
        pytest.param(
            {
                "words.py": "import b\n" + MAIN + "b.words()\n",
                "b.py": TF + "def words():\n    pass\ndef train():\n    " + NET + "    model.fit(x, y)\n",
            },
            [],
            id="a script that never trains",
        ),
        pytest.param(
            {
                "run.py": TF + "import b\ndef main(_):\n    b.train()\n" + MAIN + "tf.compat.v1.app.run()\n",
                "b.py": TF + "def words():\n    pass\ndef train():\n    " + NET + "    model.fit(x, y)\n",
            },
            ["NPU121"],
            id="a main function that no name shows",
        ),
        pytest.param(
            {
                "run.py": "import pkg as p\n" + MAIN + "p.loops.Loop().start()\n",
                "pkg/__init__.py": "from pkg.inner import loops\n",
                "pkg/inner/__init__.py": "",
                "pkg/inner/loops.py": "from .base import Base\nclass Loop(Base):\n    def step(self):\n        pass\n",
                "pkg/inner/base.py": TF
                + "class Base:\n    def start(self):\n        self._go()\n    def _go(self):\n        "
                + "with tf.GradientTape() as tape:\n            self.step()\n",
            },
            ["NPU121"],
            id="through packages and bases",
        ),
    ],
)
def test_the_code_that_a_script_reaches(files: dict[str, str], codes: list[str], tmp_path: pathlib.Path) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    paths = [str(tmp_path / name) for name in files]
    script = paths[0]
    found = Converter(project=Project(paths)).convert(pathlib.Path(script).read_bytes(), script).diagnostics
    assert [each.code for each in found if each.code in ("NPU105", "NPU121", "NPU210")] == codes


NEUTRAL = TF + "def train(x):\n    " + NET + "    model.fit(x[:64], x[:64])\n"


def test_a_neutral_module_of_programs_of_both_versions(tmp_path: pathlib.Path) -> None:
    """It gets neither a device nor a session: the script of each version makes its own."""
    files = {
        "nets.py": NEUTRAL,
        "eager.py": TF + "import nets\nmodel = nets.train(x)\n" + TAPE,
        "graph.py": TF + "import nets\nwith tf.Session() as s:\n    nets.train(x)\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    paths = [str(tmp_path / name) for name in files]
    converter = Converter(project=Project(paths))
    found = [converter.convert(pathlib.Path(path).read_bytes(), path) for path in paths]
    assert found[0].new is None and [d.code for d in found[0].diagnostics] == ["NPU105"]
    assert "programs of TensorFlow 1 and 2 train this Keras model" in found[0].diagnostics[0].message
    assert b"npu.open()" in (found[1].new or b"") and b"npu_config_proto()" in (found[2].new or b"")


@pytest.mark.parametrize("arguments", [[], ["--tf", "2"]])
def test_the_version_of_single_files_in_pyproject(arguments: list[str], tmp_path: pathlib.Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.convert_tf2npu]\ntf-1 = ["old"]\ntf-2 = ["new_*.py", "app.py"]\n')
    files = {
        "old/a.py": KERAS,
        "new_a.py": KERAS + "tf.compat.v1.placeholder('int32')\n",
        "other.py": KERAS,
        "app.py": "import nets\nnets.train(x)\n",
        "nets.py": NEUTRAL,
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert main(["-i", str(tmp_path), "--in-place", "--no-cache", *arguments]) == 0
    opened = {name for name in files if "npu.open()" in (tmp_path / name).read_text()}
    assert opened == {"new_a.py", "other.py", "app.py"} | ({"old/a.py"} if arguments else set())
    assert ("set_keras_session_npu_config()" in (tmp_path / "old/a.py").read_text()) == (not arguments)
    assert (tmp_path / "nets.py").read_text() == NEUTRAL


def test_a_ported_script_is_unchanged() -> None:
    for start in (
        "import npu_device as npu\n",
        "import npu_device\nnpu = npu_device\n",
        "import npu_shim.npu_device as npu\n",
    ):
        assert opened(start + KERAS.replace("model =", "npu.open().as_default()\nmodel =")) == ""


def test_the_support_of_eager_programs(tmp_path: pathlib.Path) -> None:
    (tmp_path / "train.py").write_text(TF + TAPE + "y = tf.nn.depthwise_conv2d(x, w)\n")
    main(["-i", str(tmp_path), "-r", str(tmp_path / "report"), "--no-cache"])
    report = (tmp_path / "report" / "report.txt").read_text()
    assert "2.6" in report


def test_libraries_beside_the_scripts_are_not_analysed(tmp_path: pathlib.Path) -> None:
    files = {
        "net.py": KERAS,
        "train.py": "import net\n",
        "start.py": "import train\n",
        "regression.py": "model.fit(x, y)\n",
        "bagging.py": "import regression\nmodel = regression.model\nmodel.fit(x, y)\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    project = Project([str(tmp_path / name) for name in files])
    assert {pathlib.Path(path).name for path in near_frameworks(project)} == {"net.py", "train.py", "start.py"}


JAX = "os.environ['KERAS_BACKEND'] = 'jax'\n"
LAYERS = "import keras\ndef layer():\n    return keras.layers.Dense(1)\n"


@pytest.mark.parametrize(
    ("files", "converted"),
    [
        ({"a.py": "import os\n" + JAX + PACKAGE}, []),
        ({"a.py": "import os\nimport b\n" + JAX + PACKAGE, "b.py": LAYERS}, []),
        ({"a.py": "import settings\nimport b\n" + PACKAGE, "b.py": LAYERS, "settings.py": "import os\n" + JAX}, []),
        (
            {
                "a.py": "import settings\n" + PACKAGE,
                "settings.py": "import os\ndef use_jax():\n    " + JAX,
            },
            ["a.py"],
        ),
        (
            {
                "a.py": "import os\nimport b\n" + JAX + PACKAGE,
                "other.py": "import b\n" + PACKAGE,
                "b.py": LAYERS,
            },
            ["b.py", "other.py"],
        ),
        (
            {"test_a.py": "import os\nimport b\n" + JAX + PACKAGE, "c.py": "import b\n" + PACKAGE, "b.py": LAYERS},
            ["b.py", "c.py"],
        ),
        ({"a.py": "import os\n" + JAX.replace("jax", "tensorflow") + PACKAGE}, ["a.py"]),
    ],
    ids=["script", "its module", "a module for settings", "a function", "a module of two", "a test", "tensorflow"],
)
def test_programs_with_another_backend_of_keras(
    files: dict[str, str], converted: list[str], tmp_path: pathlib.Path
) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    paths = [str(tmp_path / name) for name in files]
    converter = Converter(project=Project(paths))
    found = {path: converter.convert(pathlib.Path(path).read_bytes(), path) for path in paths}
    assert sorted(pathlib.Path(path).name for path, result in found.items() if result.new is not None) == converted


TRAINER = (
    TF
    + "class Trainer:\n    def run(self, x):\n        with tf.GradientTape() as tape:\n            return self.model(x)\n"
)


@pytest.mark.parametrize(
    ("script", "opens"),
    [
        ("from setuptools import setup\nfrom b import __version__\nsetup(version=__version__)\n", False),
        ("import inspect, b\ndef main():\n    print(inspect.getdoc(b), b.__doc__)\nmain()\n", False),
        ("import inspect\nimport b\nPAGES = [b.Trainer.run]\nfor page in PAGES:\n    write(page)\n", False),
        (
            "from tensorflow_docs.api_generator import generate_lib\nimport b\n"
            "def main():\n    generate_lib.DocGenerator(py_modules=[('b', b)], base=b.__file__).build('docs')\n"
            "if __name__ == '__main__':\n    main()\n",
            False,
        ),
        ("import inspect\nimport b\ndef main():\n    b.Trainer().run(x)\nmain()\n", True),
        ("import inspect\nfrom b import Trainer\ndef main():\n    started(Trainer)\nmain()\n", True),
        (
            "import inspect\nfrom b import Trainer\nclass Mine(Trainer):\n    pass\nif __name__ == '__main__':\n    Mine().run(x)\n",
            True,
        ),
        ("import inspect\nfrom b import *\nif __name__ == '__main__':\n    Trainer().run(x)\n", True),
        ("import inspect\nimport b\nprint(inspect.getdoc(b))\n" + KERAS, True),
        ("import b\nTRAINERS = [b.Trainer]\nif __name__ == '__main__':\n    TRAINERS[0]().run(x)\n", True),
    ],
)
def test_scripts_that_describe_a_package(script: str, opens: bool, tmp_path: pathlib.Path) -> None:
    (tmp_path / "a.py").write_text(script)
    (tmp_path / "b.py").write_text(TRAINER)
    project = Project([str(tmp_path / "a.py"), str(tmp_path / "b.py")])
    new = Converter(project=project).convert(script.encode(), str(tmp_path / "a.py")).new
    assert (new is not None and b"npu.open().as_default()" in new) == opens
