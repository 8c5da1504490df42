"""The places where programs of several commands, or of several scripts, open the device."""

from __future__ import annotations

import pathlib

import pytest
from convert_tf2npu.engine.converter import Converter
from convert_tf2npu.engine.settings import Settings
from convert_tf2npu.main import main

OPEN = "npu.open().as_default()"
CLICK = """import click
import tensorflow as tf

@click.group()
def cli():
    pass

@cli.command()
def train(gpu):
    for device in tf.config.list_physical_devices('GPU'):
        tf.config.experimental.set_memory_growth(device, True)
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.fit(x, y, epochs=2)

@cli.command('score')
def score():
    predict()

@cli.command()
def check():
    predict()

@cli.command()
def clean():
    remove('logs')

def predict():
    tf.keras.models.load_model('model').predict(x)

if __name__ == '__main__':
    cli()
"""
TYPER = CLICK.replace("import click", "import typer").replace("@click.group()\ndef cli", "def unused")
TYPER = TYPER.replace("import tensorflow as tf\n", "import tensorflow as tf\n\ncli = typer.Typer()\n")
CLASS = """import fire
import tensorflow as tf

class Trainer:
    def __init__(self, rate=0.1):
        self.rate = rate
        self.model = tf.keras.Sequential([tf.keras.layers.Dense(1)])

    def train(self):
        self.model.fit(x, y, epochs=2)

if __name__ == '__main__':
    fire.Fire(Trainer)
"""
DICT = """import fire
import tensorflow as tf

def train(steps='1'):
    steps = int(steps)
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.fit(x, y, epochs=steps)

def show():
    print('nothing')

fire.Fire({'train': train, 'show': show})
"""
ALL = DICT.replace("{'train': train, 'show': show}", "")
ELSEWHERE = CLICK.replace("    cli()\n", "    cli.add_command(other.command)\n    cli()\n")
MODEL = "model = tf.keras.Sequential([tf.keras.layers.Dense(1)])"
SCORE = "predict()"


@pytest.mark.parametrize(
    ("script", "behind"),
    [
        pytest.param(CLICK, [MODEL, SCORE, SCORE], id="each command of a click group that uses TensorFlow"),
        pytest.param(TYPER, [MODEL, SCORE, SCORE], id="each command of typer that uses TensorFlow"),
        pytest.param(
            CLICK.replace("@cli.command()\ndef train", "@train.group()\n@cli.group()\ndef train"),
            ["cli()"],
            id="before a group in itself",
        ),
        pytest.param(CLASS, ["self." + MODEL], id="the constructor of a class that fire makes"),
        pytest.param(DICT, [MODEL], id="the function that fire calls"),
        pytest.param(ALL, [MODEL], id="the functions of a script that fire starts"),
        pytest.param(
            ELSEWHERE, ["cli.add_command(other.command)"], id="before a group with a command of another module"
        ),
    ],
)
def test_a_program_of_several_commands_opens_the_device_in_those_that_use_it(script: str, behind: list[str]) -> None:
    converted = (Converter(Settings()).convert(script.encode()).new or b"").decode()
    lines = [line.strip() for line in converted.splitlines()]
    assert [lines[index + 1] for index, line in enumerate(lines) if line == OPEN] == behind
    assert Converter(Settings()).convert(converted.encode()).new is None


SETUP = """import tensorflow as tf
from arguments import PARSER, define_model_flags, get_main_args

define_model_flags()

def main():
    assert tf.version.VERSION.startswith('2.')
    args = PARSER.parse_args()
    for gpu in tf.config.list_physical_devices('GPU'):
        tf.config.experimental.set_memory_growth(gpu, True)
    policy = tf.keras.mixed_precision.experimental.Policy('float32')
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.fit(x, y, epochs=2)
    return model

if __name__ == '__main__':
    rate = get_main_args().rate
    main()
"""


@pytest.mark.parametrize(
    "script",
    [
        pytest.param(SETUP, id="a function that the script calls"),
        pytest.param(SETUP.replace("    main()", "    trained = main()"), id="a function whose result it keeps"),
    ],
)
def test_the_device_opens_behind_arguments_of_other_modules_and_the_settings_of_devices(script: str) -> None:
    converted = (Converter(Settings()).convert(script.encode()).new or b"").decode()
    lines = [line.strip() for line in converted.splitlines()]
    assert [lines[index + 1] for index, line in enumerate(lines) if line == OPEN] == [MODEL]


STEP = "import tensorflow as tf\n\ndef train(rate):\n    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])\n"
STEP += "    model.fit(x, y, epochs=2)\n\nif __name__ == '__main__':\n    train(0.1)\n"
GROWTH = "    tf.config.experimental.set_memory_growth(gpu, True)\n"


@pytest.mark.parametrize(
    ("train", "starts", "behind"),
    [
        pytest.param(STEP, "main.py", ["train(0.1)"], id="outside the function that another script calls"),
        pytest.param(STEP, "test_train.py", [MODEL], id="inside the function that a test calls"),
        pytest.param(
            STEP.replace("    model =", GROWTH + "    model =", 1), "main.py", [MODEL], id="behind the settings of GPUs"
        ),
    ],
)
def test_a_function_that_another_script_starts_does_not_open_the_device(
    tmp_path: pathlib.Path, train: str, starts: str, behind: list[str]
) -> None:
    source, out = tmp_path / "source", tmp_path / "out"
    source.mkdir()
    (source / "train.py").write_text(train)
    (source / starts).write_text("from train import train\n\nif __name__ == '__main__':\n    train(0.2)\n")
    assert main(["-i", str(source), "-o", str(out)]) == 0
    lines = [line.strip() for line in (out / "train.py").read_text().splitlines()]
    assert [lines[index + 1] for index, line in enumerate(lines) if line == OPEN] == behind
    assert (OPEN in (out / starts).read_text()) == (starts == "main.py")


def test_the_device_is_opened_above_a_comment_and_below_the_encoding_of_the_file() -> None:
    text = "# -*- coding: utf-8 -*-\nimport tensorflow as tf\nn = 3\n\n# One-hot encoding\ny = tf.one_hot([1], n)\n"
    text += "model = tf.keras.Sequential()\nmodel.fit(x, y)\n"
    new = Converter(Settings()).convert(text.encode()).new
    assert new is not None
    lines = new.decode().split("\n")
    assert lines[0] == "# -*- coding: utf-8 -*-" and lines[lines.index("# One-hot encoding") - 1] == OPEN


RUN = "import fire\n\ndef run(component, command=None):\n    fire.Fire(component, command=command)\n"
MAIN = """import tensorflow as tf
import cli

def main(folder='logs', clean=False):
    if clean:
        tf.io.gfile.rmtree(folder)
    for gpu in tf.config.list_physical_devices('GPU'):
        tf.config.experimental.set_memory_growth(gpu, True)
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.fit(x, y, epochs=2)

if __name__ == '__main__':
    cli.run(main)
"""


def test_a_function_of_the_project_may_start_the_main_function(tmp_path: pathlib.Path) -> None:
    package = tmp_path / "source" / "scripts"
    package.mkdir(parents=True)
    (package.parent / "cli.py").write_text(RUN)
    (package / "__init__.py").write_text("from scripts import train\n")  # is no script that starts train.main
    (package / "train.py").write_text(MAIN)
    assert main(["-i", str(package.parent), "-o", str(tmp_path / "out")]) == 0
    lines = [line.strip() for line in (tmp_path / "out" / "scripts" / "train.py").read_text().splitlines()]
    assert [lines[index + 1] for index, line in enumerate(lines) if line == OPEN] == [MODEL]


@pytest.mark.parametrize(
    ("module", "opens"),
    [
        ("model = tf.keras.Sequential([tf.keras.layers.Dense(1)])\n", True),
        ("def make():\n    return tf.keras.Sequential()\nmodel = make()\n", True),
        ("class Config:\n    rate = 3\nMEAN = tf.Variable([0.5])\n", True),
        ("MEAN = tf.constant([0.5])\n", False),
        ("def make():\n    return tf.keras.Sequential()\n", False),
        ("class Net(tf.keras.Model):\n    pass\n", False),
        ("LAYER = tf.keras.layers.Dense(1)\n", False),
        ("def test():\n    tf.Variable(3)\nif __name__ == '__main__':\n    tf.Variable(3)\n", False),
        ("tf.config.set_visible_devices([], 'GPU')\nMEAN = tf.Variable([0.5])\n", False),
    ],
)
def test_a_module_that_makes_variables_is_imported_behind_the_opening(
    module: str, opens: bool, tmp_path: pathlib.Path
) -> None:
    source, out = tmp_path / "source", tmp_path / "out"
    source.mkdir()
    (source / "parts.py").write_text("import tensorflow as tf\n\n" + module)
    head = '"""Train."""\nimport sys\n'
    rest = "\nimport parts\nimport tensorflow as tf\n"
    work = "\nn = 3\nmodel = parts.model\nmodel.fit(d, epochs=n)\n"
    (source / "main.py").write_text(head + rest + work)
    assert main(["-i", str(source), "-o", str(out)]) == 0
    result = (out / "main.py").read_text()
    assert (out / "parts.py").read_text() == (source / "parts.py").read_text()
    before, _, behind = result.partition("npu.open().as_default()\n")
    assert (before == head + "import npu_shim.npu_device as npu\n\n") == opens
    assert behind.startswith("import parts\n" if opens else "model.fit(")
    assert main(["-i", str(out), "--check"]) == 0


TRAINER = """
class Registry:
    def add(self, each):
        return each

class Trainer:
    def __init__(self, epochs):
        self.epochs = epochs
        self.model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
        self.model.compile('sgd', 'mse')
    def train(self, x):
        return self.model.fit(x, epochs=self.epochs)

def train():
    trainer = Trainer(2)
    return trainer.train(tf.ones([3]))
"""


@pytest.mark.parametrize(
    ("statements", "first"),
    [
        ("trainer = Trainer(2)\ntrainer.train([3])\n", "trainer = Trainer(2)"),
        ("trainer = Trainer(2)\nfor i in range(3):\n    history = trainer.train([3])\n", "trainer = Trainer(2)"),
        ("history = train()\nprint(history)\n", "history = train()"),
        ("registry = Registry()\nregistry.add(Trainer)\n", ""),
    ],
)
@pytest.mark.parametrize("apart", [False, True], ids=["one file", "two files"])
def test_statements_that_use_an_object_or_a_result_of_the_project_start_a_program(
    statements: str, first: str, apart: bool, tmp_path: pathlib.Path
) -> None:
    source = tmp_path / "source"
    source.mkdir()
    parts = "import tensorflow as tf\n" + TRAINER
    (source / "main.py").write_text(("from parts import *\n\n" if apart else parts + "\n") + statements)
    if apart:
        (source / "parts.py").write_text(parts)
    assert main(["-i", str(source), "-o", str(tmp_path / "out")]) == 0
    lines = (tmp_path / "out" / "main.py").read_text().split("\n")
    assert [lines[index + 1] for index, line in enumerate(lines) if line == OPEN] == ([first] if first else [])
