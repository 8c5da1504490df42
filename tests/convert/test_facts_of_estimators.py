"""Lookup tables in the graph of an Estimator, and classes of Estimators, with facts."""

from __future__ import annotations

import os
from typing import Any

import pytest
from convert_tf2npu.engine.converter import Converter
from convert_tf2npu.engine.results import FINDING, UNREACHED
from convert_tf2npu.engine.settings import Settings
from convert_tf2npu.facts.facts import Facts, digest
from convert_tf2npu.facts.seen import Block, FileFacts

from tests.convert.observed import converted_with_facts

TABLES = """import tensorflow as tf


def model_fn(features, labels, mode):
    ids = tf.contrib.lookup.index_table_from_file("words.txt").lookup(features)
    names = tf.contrib.lookup.index_to_string_table_from_file("words.txt")
    return tf.estimator.EstimatorSpec(mode, predictions=names.lookup(ids))


config = tf.estimator.RunConfig(save_checkpoints_secs=120)
estimator = tf.estimator.Estimator(model_fn, "out", config)
estimator.train(input_fn)
"""
GRAPH, CONFIG = {"in": "graph"}, {"is": "other"}
CODES = ("NPU102", "NPU240")


def left(text: str, *notes: Any, **settings: Any) -> list[int]:
    """Return the lines of the findings about tables that are left; also check that the option is written for none."""
    result = converted_with_facts(text, *notes, select=CODES, **settings)
    new = (result.new or text.encode()).decode()
    lines = [diagnostic.line for diagnostic in result.diagnostics if diagnostic.code == "NPU240"]
    assert ("mix_compile_mode=True" in new) is not bool(lines)
    assert [d.runs for d in result.diagnostics if d.kind == "change"] == [None if lines else 2]
    return lines


def test_tables_in_the_graph_of_an_estimator_are_computed_on_the_host() -> None:
    result = converted_with_facts(TABLES, GRAPH, GRAPH, CONFIG, select=CODES)
    assert result.new is not None
    assert "config = NPURunConfig(save_checkpoints_secs=120, mix_compile_mode=True)\n" in result.new.decode()
    assert left(TABLES, GRAPH, {}, CONFIG) == []  # as of a part of the model that no run reached
    in_place = TABLES.replace('"out", config)', '"out", tf.estimator.RunConfig(train_distribute=None))')
    in_place = in_place.replace("config = tf.estimator.RunConfig(save_checkpoints_secs=120)\n", "")
    assert left(in_place, GRAPH, GRAPH, CONFIG) == []


@pytest.mark.parametrize(
    "notes",
    [({}, {}, CONFIG), ({"in": "data"}, {}, CONFIG), ({"in": ["graph", "data"]}, {}, CONFIG), (GRAPH, GRAPH, {})],
)
def test_tables_stay_that_no_run_of_the_estimator_had(notes: Any) -> None:
    assert left(TABLES, *notes) == [5, 6]


@pytest.mark.parametrize("code", ["NPU240", "NPU102"])
def test_tables_stay_where_facts_are_off(code: str) -> None:
    assert left(TABLES, GRAPH, GRAPH, CONFIG, no_facts_for=(code,)) == [5, 6]


OTHERS = {
    "batch normalization": TABLES.replace(
        "    return", "    features = tf.layers.batch_normalization(features)\n    return"
    ),
    "several steps in a loop": TABLES + "steps = dict(iterations_per_loop=10)\n",
    "Keras": TABLES + "import keras\n",
    "a session": TABLES + "session = tf.Session()\n",
    "another Estimator": TABLES + "second = tf.estimator.DNNClassifier([4], columns)\n",
    "two configurations": TABLES + "second = tf.estimator.RunConfig()\n",
    "two Estimators": TABLES + "second = tf.estimator.Estimator(model_fn, 'second')\n",
    "a configuration that is not passed": TABLES.replace('"out", config)', '"out")'),
    "another value of the name": TABLES.replace("estimator = tf", "config = changed(config)\nestimator = tf"),
    "arguments without effect": TABLES.replace("save_checkpoints_secs=120", "train_distribute=strategy()"),
}


@pytest.mark.parametrize("text", OTHERS.values(), ids=OTHERS)
def test_programs_with_other_needs_stay(text: str) -> None:
    result = converted_with_facts(text, select=("NPU240",))
    assert [diagnostic.line for diagnostic in result.diagnostics] == [5, 6]


TRAINER = b"""import tensorflow as tf


class Trainer(tf.estimator.Estimator):
    def __init__(self, model_fn, config):
        \"\"\"Make it.\"\"\"
        super().__init__(model_fn, config=config)

    def name(self):
        return "trainer"
"""


@pytest.mark.parametrize(
    "text,made,kind",
    [
        (TRAINER, 1, FINDING),
        (TRAINER, 0, UNREACHED),
        (TRAINER.replace(b"__init__", b"described"), 0, FINDING),  # inherited methods may have run
    ],
)
def test_a_class_that_no_run_made_counts_as_not_reached(text: bytes, made: int, kind: str) -> None:
    path = os.path.realpath("train.py")
    file = FileFacts(digest(text), {Block(1, 10): 1, Block(7, 7): made, Block(10, 10): 0})
    facts = Facts(os.path.dirname(path), (), {"train.py": file})
    result = Converter(Settings(facts=facts, select=("NPU203",))).convert(text, path)
    assert [d.kind for d in result.diagnostics] == [kind]
