"""Findings on batches and tensors of more than one shape: generators, keras.utils.Sequence, array_split, growing shapes."""

from __future__ import annotations

import pathlib

import pytest
from convert_tf2npu.engine.converter import Converter
from convert_tf2npu.engine.settings import Settings
from convert_tf2npu.project.project import Project

TF = "import numpy as np\nimport tensorflow as tf\n"
KERAS = TF + "model = tf.keras.Sequential([tf.keras.layers.Dense(1)])\n"
STEP = TF + "@tf.function\ndef step(x, n=0):\n    return model(x) * n\n"


def lines(text: str, code: str, path: str = "", project: Project | None = None) -> list[int]:
    """Return the lines that a rule reports."""
    return [each.line for each in Converter(Settings(select=(code,)), project).convert(text.encode(), path).diagnostics]


@pytest.mark.parametrize(
    ("loop", "count"),
    [
        ("for b in np.array_split(x, 9):\n    step(b)\n", 1),
        ("parts = np.array_split(x, 9)\nfor i, b in enumerate(tqdm(parts)):\n    step(b)\n", 1),
        ("for b, c in zip(np.array_split(x, 9), np.array_split(y, 9)):\n    step(b)\n", 1),
        ("for b in np.array_split(x, 9):\n    show(b)\n", 0),
        ("for b in np.split(x, 9):\n    step(b)\n", 0),
        ("x = np.zeros([90, 3])\nfor b in np.array_split(x, 9):\n    step(b)\n", 0),
        ("x = np.zeros([91, 3])\nfor b in np.array_split(x, 9):\n    step(b)\n", 1),
        ("for i in range(9):\n    step(tf.zeros([i, 3]))\n", 1),
        ("for i in range(9):\n    step(tf.random.uniform(shape=(8, i + 1)))\n", 1),
        ("for i in range(9):\n    mask = np.ones((1, i))\n    step(mask)\n", 1),
        ("for i in range(9):\n    step(tf.zeros([n, 3]))\n", 0),
        ("for i in range(9):\n    step(tf.zeros([3]) + i)\n", 0),
        ("for i in range(9):\n    step(tf.fill([3], i))\n", 0),
        ("for x in d:\n    step(tf.zeros([x, 3]))\n", 0),
        ("for i in range(9):\n    show(tf.zeros([i, 3]))\n", 0),
    ],
)
def test_arguments_of_more_than_one_shape(loop: str, count: int) -> None:
    assert len(lines(STEP + loop, "NPU276")) == count


BATCHES = (
    "def batches(x, y, n):\n    while True:\n        for i in range(0, {stop}, n):\n"
    "            yield (x[i:i + n], x[i:i + n]), y[i:i + n]\n"
)


@pytest.mark.parametrize(
    ("stop", "fit", "count"),
    [
        ("len(x)", "fit(batches(x, y, 32), steps_per_epoch=9)", 1),
        ("len(x)", "fit_generator(batches(x, y, 32), steps_per_epoch=9)", 1),
        ("len(x)", "evaluate(batches(x, y, 32), steps=9)", 0),
        ("len(x)", "fit(d, validation_data=batches(x, y, 32))", 0),
        ("len(x) - n + 1", "fit(batches(x, y, 32), steps_per_epoch=9)", 0),
        ("len(x)", "fit(tf.data.Dataset.from_generator(batches, t))", 0),
    ],
)
def test_generators_that_fit_takes(stop: str, fit: str, count: int) -> None:
    assert len(lines(KERAS + BATCHES.format(stop=stop) + f"model.{fit}\n", "NPU248")) == count


UP, DOWN = "return int(np.ceil(len(self.x) / self.n))", "return len(self.x) // self.n"
SLICE = "return self.x[i * self.n:(i + 1) * self.n]"


@pytest.mark.parametrize(
    ("length", "item", "fit", "count"),
    [
        (UP, SLICE, "fit(Batches(x, 9))", 1),
        (UP, SLICE, "fit_generator(Batches(x, 9))", 1),
        (DOWN + " + 1", SLICE, "fit(Batches(x, 9))", 1),
        (DOWN, SLICE, "fit(Batches(x, 9))", 0),
        (UP, SLICE, "fit(d, validation_data=Batches(x, 9))", 0),
        (UP, SLICE, "evaluate(Batches(x, 9))", 0),
        (UP, "if i == 0:\n            i = 1\n        " + SLICE, "fit(Batches(x, 9))", 0),
        (f"if self.trains:\n            {DOWN}\n        {UP}", SLICE, "fit(Batches(x, 9))", 0),
        (UP, "return self.x[i]", "fit(Batches(x, 9))", 0),
    ],
)
def test_sequences_that_fit_takes(length: str, item: str, fit: str, count: int, tmp_path: pathlib.Path) -> None:
    batches = (
        "class Batches(tf.keras.utils.Sequence):\n    def __len__(self):\n        "
        f"{length}\n    def __getitem__(self, i):\n        {item}\n"
    )
    train = f"train = model.{fit}\n"
    assert len(lines(KERAS + batches + train, "NPU248")) == count
    (tmp_path / "batches.py").write_text(TF + batches)
    main = KERAS.replace("import numpy as np", "from batches import Batches") + train
    (tmp_path / "main.py").write_text(main)
    project = Project([str(tmp_path / name) for name in ("main.py", "batches.py")])
    assert len(lines(main, "NPU248", str(tmp_path / "main.py"), project)) == count
