"""The runs that a plan of a verification makes, without TensorFlow."""

from __future__ import annotations

import os
import pathlib
from dataclasses import replace
from typing import Callable, Sequence

import pytest

from npu_shim.import_hook import migrated_run
from npu_shim.rehearsal import preloaded_runs
from npu_shim.rehearsal.half_run import Precision
from npu_shim.rehearsal.planning import Plan
from npu_shim.rehearsal.recording.kinds import FINAL, INITIAL
from npu_shim.rehearsal.running import Run

pytestmark = pytest.mark.once
Planned = Callable[[Plan], "tuple[Run, Run]"]


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> Planned:
    """planned(plan) -> the runs of original and migrated script that it would start."""

    class Found(Exception):
        pass

    def preloaded(runs: Sequence[Run]) -> None:
        raise Found(*runs)

    def runs(plan: Plan) -> tuple[Run, Run]:
        with pytest.raises(Found) as found:
            plan.verify(print)
        original, migrated = found.value.args
        return original, migrated

    monkeypatch.setattr(preloaded_runs, "preloaded", preloaded)
    return runs


@pytest.fixture
def plan(tmp_path: pathlib.Path) -> Plan:
    for name in ("train.py", "train_npu.py"):
        (tmp_path / name).write_text("import tensorflow as tf\n")
    return Plan(str(tmp_path / "train.py"), str(tmp_path / "runs"), migrated_run.rule_arguments(), ["--steps=3"])


def test_without_a_migrated_script_the_original_is_converted(plan: Plan, planned: Planned) -> None:
    original, migrated = planned(plan)
    assert (original.name, original.convert) == ("original", None)
    assert (migrated.name, migrated.script) == ("migrated", original.script) and migrated.convert is not None
    assert [os.path.basename(run.folder) for run in (original, migrated)] == ["original", "migrated"]
    other = os.path.join(os.path.dirname(plan.original), "train_npu.py")
    original, migrated = planned(replace(plan, migrated=other, migrated_arguments="--rate '0.1'"))
    assert (migrated.script, migrated.convert) == (other, None)
    assert (original.arguments, migrated.arguments) == (["--steps=3"], ["--steps=3", "--rate", "0.1"])


def test_only_the_original_is_recorded_with_tensors_and_only_the_migrated_script_has_ranks(
    plan: Plan, planned: Planned
) -> None:
    original, migrated = planned(replace(plan, record="recording", tensors=[1, 2], most_bytes=5.0))
    assert original.whole is not None and migrated.whole is None
    assert (original.whole.steps, original.whole.kinds, original.whole.most_bytes) == ([1, 2], (INITIAL, FINAL), 5.0)
    assert original.initial == migrated.initial == ""
    original, migrated = planned(replace(plan, ranks=2, predicts=True, steps=7))
    assert (original.ranks, migrated.ranks, original.steps, migrated.steps) == (None, 2, 0, 0)
    assert original.of_ranks and migrated.of_ranks


def test_half_precision_converts_both_and_names_no_deliberate_change(plan: Plan, planned: Planned) -> None:
    original, migrated = planned(replace(plan, half=Precision()))
    assert original.convert == migrated.convert is not None and original.deliberate is None
    assert planned(plan)[0].deliberate is not None and planned(replace(plan, is_strict=True))[0].deliberate is None
