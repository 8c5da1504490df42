"""Findings that depend on the version of TensorFlow with which observed runs reached them."""

from __future__ import annotations

import pathlib
from typing import Any

import pytest
from convert_tf2npu.engine.converter import Converter
from convert_tf2npu.engine.settings import Settings
from convert_tf2npu.facts.facts import Facts, ObservedRun, digest
from convert_tf2npu.facts.seen import Block, FileFacts, Seen

PRIVATE = """from keras import backend
from keras.engine import base_layer
import tensorflow as tf

model = tf.keras.Sequential([base_layer.Layer()])
model.fit(tf.zeros([4, 1]) + backend.epsilon())
"""


def findings(folder: pathlib.Path, *runs: ObservedRun, reached: int = 1, last: int = 7, **settings: Any) -> list[int]:
    """Return the lines of the findings in the script with facts of runs; also check that other imports change."""
    path, raw = str(folder / "train.py"), PRIVATE.encode()
    facts = Facts(str(folder), runs, {"train.py": FileFacts(digest(raw), {Block(1, 7): 0, Block(1, last): reached})})
    result = Converter(Settings(select=("NPU123",), facts=facts, **settings)).convert(raw, path)
    assert result.new is not None and result.new.decode() == PRIVATE.replace(
        "from keras import", "from tensorflow.keras import"
    )
    return [diagnostic.line for diagnostic in result.diagnostics if diagnostic.kind != "change"]


def run(tensorflow: str, ended: str = "returned") -> ObservedRun:
    return ObservedRun(("train.py",), tensorflow, "3.9.18", 3, ended)


def test_an_import_that_ran_with_the_keras_of_the_npu_needs_nothing(tmp_path: pathlib.Path) -> None:
    assert findings(tmp_path, run("2.6.5"), run("2.6.0", "stopped")) == []


@pytest.mark.parametrize("runs", [[run("2.15.1")], [run("2.6.5"), run("2.15.1")], [run("")]])
def test_an_import_stays_that_ran_with_another_keras(runs: list[ObservedRun], tmp_path: pathlib.Path) -> None:
    assert findings(tmp_path, *runs) == [2]


def test_only_an_error_of_the_import_itself_makes_it_stay(tmp_path: pathlib.Path) -> None:
    for failed_in, lines in (1, [2]), (2, [2]), (3, []), (6, []):
        assert findings(tmp_path, run("2.6.5", "error"), last=failed_in) == lines
    assert findings(tmp_path, run("2.6.5", "stopped"), last=2) == []


def test_an_import_stays_that_no_run_reached_or_for_which_facts_are_off(tmp_path: pathlib.Path) -> None:
    assert findings(tmp_path, run("2.6.5"), reached=0) == [2]
    for code in ("NPU123", "NPU1", "NPU123:train.py:2"):
        assert findings(tmp_path, run("2.6.5"), no_facts_for=(code,)) == [2]


LAYER = """import tensorflow as tf
from tensorflow.keras.layers import Dropout

class Attention(tf.keras.layers.Layer):
    def build(self, shape):
        self.dropout = Dropout(0.1)
"""


def layer_findings(folder: pathlib.Path, tensorflow: str, places: list[str]) -> int:
    """Return the number of findings about a dropout layer that a run called in some places."""
    path, raw = str(folder / "attention.py"), LAYER.encode()
    (asked,) = Converter(Settings(select=("NPU201",))).convert(raw, path).asked
    seen = Seen(1, 1)
    for place in places:
        seen.note("in", place)
        seen.note("training", None)
    files = {"attention.py": FileFacts(digest(raw), {Block(1, 6): 1}, {asked.place: seen})}
    result = Converter(Settings(select=("NPU201",), facts=Facts(str(folder), (run(tensorflow),), files)))
    return len(result.convert(raw, path).diagnostics)


@pytest.mark.parametrize(
    "tensorflow, places, count",
    [
        ("2.15.1", ["function"], 0),
        ("2.6.5", ["eager", "function"], 0),
        ("1.15.5", ["eager", "function"], 1),
        ("1.15.5", ["eager"], 0),
        ("2.15.1", ["function", "data"], 1),
        ("2.15.1", ["graph", "function"], 1),
        ("2.15.1", [], 1),
    ],
)
def test_dropout_in_functions_of_version_2_needs_no_other_operator(
    tensorflow: str, places: list[str], count: int, tmp_path: pathlib.Path
) -> None:
    assert layer_findings(tmp_path, tensorflow, places) == count
