"""The deliberate changes of a migration: where they are, which ones the original is given, and how a report names them."""

from __future__ import annotations

import argparse
import json
import pathlib
import re
from dataclasses import replace
from typing import Any

import pytest

from npu_shim.import_hook import migrated_run, tool
from npu_shim.rehearsal import deliberate_changes
from npu_shim.rehearsal.comparing.read_recording import Recording
from npu_shim.rehearsal.recording.events import Deliberate, End, Notes
from npu_shim.rehearsal.recording.settings import Changes
from npu_shim.rehearsal.reports.text import verdict_text
from npu_shim.rehearsal.result import Result, RunPart, Terms
from npu_shim.rehearsal.running import Run

SCRIPT = """
import tensorflow as tf

train = (
    tf.data.Dataset.from_tensor_slices((x, y))
    .batch(32)
)
test = tf.data.Dataset.from_tensor_slices((x, y)).batch(32)
model.fit(train)
model.evaluate(test)
"""


def recording(*events: Deliberate) -> Recording:
    return Recording({}, deliberate=list(events))


def changes(*events: Deliberate) -> Changes:
    """Return the changes of the original after a migrated run with these events."""
    made = deliberate_changes.run_with_deliberate_changes(
        Run("original", "a.py", [], "", deliberate=Changes()), [recording(*events)]
    )
    assert made.deliberate is not None
    return made.deliberate


def test_the_statements_of_training_batches_are_found(tmp_path: pathlib.Path, monkeypatch: Any) -> None:
    tool.make_importable()
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(SCRIPT)
    args = argparse.Namespace(
        select=None, ignore=None, distributed="", compat_v1=None, tf=None, facts=None, no_facts_for=None
    )
    results = migrated_run.make_conversions(["train.py"], args, None, [str(tmp_path)]).convert_all()
    assert deliberate_changes.deliberate_places(results) == {"NPU109": [("train.py", 4, 6)]}


def test_each_deliberate_rule_says_in_a_clause_what_it_changes() -> None:
    tool.make_importable()
    found = deliberate_changes.sentence_by_rule()
    assert {"NPU103", "NPU108", "NPU109", "NPU114", "NPU116", "NPU123"} <= set(found)
    assert all(re.fullmatch(r"[a-z][^.]{10,90}", text) for text in found.values())


def test_half_precision_does_not_name_the_policy() -> None:
    tool.make_importable()
    event = Deliberate("given", code="NPU116", place="train.py:4")
    assert deliberate_changes.deliberate_changes_given_to([recording(event)], in_half=True) == []
    assert [each.code for each in deliberate_changes.deliberate_changes_given_to([recording(event)])] == ["NPU116"]


def test_the_original_is_given_what_the_migrated_script_has() -> None:
    batch = Deliberate("static batch", "read", 2)
    made = changes(batch)
    assert (
        made
        == Changes(batches=[("read", 2)], float32=True)
        == Changes.from_json(json.loads(json.dumps(made.to_json())))
    )
    fit = changes(Deliberate("full batches of fit", "train", 3))
    assert (
        fit
        == Changes(batches=[], float32=True, fits=(("train", 3),))
        == Changes.from_json(json.loads(json.dumps(fit.to_json())))
    )
    initializer = changes(Deliberate("static initializer", "begin", 1))
    assert initializer == Changes(batches=[], static_initializers=(("begin", 1),), float32=True)
    assert initializer == Changes.from_json(json.loads(json.dumps(initializer.to_json())))
    assert changes(Deliberate("mixed policy")).float32 is False
    assert changes(Deliberate("static input")).input is True
    untouched = Run("original", "a.py", [], "")
    assert deliberate_changes.run_with_deliberate_changes(untouched, [recording(batch)]) is untouched


@pytest.mark.parametrize(
    "notes, end, given",
    [
        (Notes("1.15.5"), End("error", 1, 1.0, 1), True),
        (Notes("2.15.1"), End("error", 1, 1.0, 1), False),
        (Notes("1.15.5", keras=True), End("error", 1, 1.0, 1), False),
        (Notes("1.15.5"), None, False),
    ],
    ids=["another library", "the same library", "the package itself", "unknown, since the script was killed"],
)
def test_the_original_takes_keras_of_tensorflow_where_the_package_is_another_library(
    notes: Notes, end: End | None, given: bool
) -> None:
    original = Run("original", "a.py", [], "", deliberate=Changes({"NPU123": [("a.py", 3, 3)]}))
    made = deliberate_changes.run_with_deliberate_changes(original, [Recording({}, notes, end=end)])
    assert made.deliberate is not None and made.deliberate.library == given
    assert made.convert == (["--select=NPU123"] if given else None)


@pytest.mark.parametrize("state, text", [("agree", "The two scripts agree."), ("differ", "The two scripts differ.")])
def test_the_verdict_names_each_change_once(state: str, text: str) -> None:
    tool.make_importable()
    event = Deliberate("given", code="NPU109", cost="4 of 100 examples", place="train.py:4")
    named = deliberate_changes.deliberate_changes_given_to([recording(event, event, replace(event, cost=""))])
    change = "NPU109 leaves out the partial training batches"
    part = RunPart("a.py", [], False, 1, 0, True, 1, 1.0, None, None, None, None, "log")
    found = Result(state, Terms(1e-5, 1, None, True, 1), part, part)
    assert verdict_text(found) == text
    found.deliberate = named
    assert verdict_text(found) == f"{text} Deliberate: {change}, 4 of 100 examples, train.py:4. {change}, train.py:4."
