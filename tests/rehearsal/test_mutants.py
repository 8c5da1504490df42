"""verify finds each planted defect at its tensor, and none in the true migrations."""

from __future__ import annotations

import pathlib
import re

import pytest

from npu_shim.rehearsal.comparing import TOLERANCE, ranks, together
from npu_shim.rehearsal.comparing.comparison import compare_recordings
from npu_shim.rehearsal.comparing.read_recording import Recording, read_recording
from tests.distributed import forks
from tests.rehearsal.mutants import MUTANTS, RANK_MUTANTS, Mutant
from tests.rehearsal.recorded_runs import (
    HAS_ESTIMATOR,
    HAS_GRAPH_KERAS,
    IS_TF2,
    Record,
    environment,
    process_of_a_run,
    record as record,
    settings,
)

STEPS = "--steps=12"
RUNNABLE = {
    "digits_session": True,
    "digits_estimator": HAS_ESTIMATOR,
    "text_keras": HAS_GRAPH_KERAS,
    "digits_fit": IS_TF2,
    "digits_loop": IS_TF2,
}
SAMPLES = [name for name, runs in RUNNABLE.items() if runs]


def planted(mutant: Mutant, script: pathlib.Path, folder: pathlib.Path) -> pathlib.Path:
    """Write a migrated script with a defect."""
    text = script.read_text(encoding="utf-8")
    for old, new in mutant.edits:
        assert old in text, f"{mutant.name}: {script} has no {old!r}"
        text = text.replace(old, new, 1)
    path = folder / "mutant.py"
    path.write_text(text, encoding="utf-8")
    return path


def check(mutant: Mutant, first: object) -> None:
    assert first is not None, f"{mutant.name}: not found"
    assert (first.step, bool(re.fullmatch(mutant.tensor, f"{first.kind} {first.name}"))) == (mutant.step, True), first


def cases(mutants: tuple[Mutant, ...]) -> list[object]:
    return [
        pytest.param(mutant, id=mutant.name, marks=[pytest.mark.smoke] if mutant.is_cheap else [])
        for mutant in mutants
        if RUNNABLE[mutant.sample]
    ]


@pytest.mark.parametrize("mutant", cases(MUTANTS))
def test_a_defect_is_found_at_its_tensor(
    mutant: Mutant, record: Record, repo_root: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    folder = repo_root / "samples" / mutant.sample
    found = compare_recordings(
        record(folder / "original.py", STEPS), record(planted(mutant, folder / "expected_npu.py", tmp_path), STEPS)
    )
    check(mutant, found.first_departure)


@pytest.mark.parametrize(
    "sample", [pytest.param(name, marks=[pytest.mark.smoke] * (name == "digits_session")) for name in SAMPLES]
)
def test_a_true_migration_agrees(sample: str, record: Record, repo_root: pathlib.Path) -> None:
    folder = repo_root / "samples" / sample
    found = compare_recordings(record(folder / "original.py", STEPS), record(folder / "expected_npu.py", STEPS))
    assert found.departures == [] and found.compared
    converted = compare_recordings(
        record(folder / "original.py", STEPS), record(folder / "original.py", STEPS, converts=True)
    )
    assert converted.departures == [] and len(converted.compared) == len(found.compared)


def on_ranks(script: pathlib.Path, folder: pathlib.Path, repo_root: pathlib.Path) -> list[Recording]:
    command = (str(process_of_a_run(repo_root)), settings(folder, False, True), str(script), STEPS)
    forks.run_ranks(2, *command, "--dropout=0", folder=folder, environ=environment())
    return [read_recording(str(folder / f"rank_{rank}")) for rank in range(2)]


@pytest.mark.parametrize("sample", SAMPLES)
def test_two_ranks_agree_with_one_process_on_the_global_batch(
    sample: str, record: Record, repo_root: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    folder = repo_root / "samples" / sample
    size = 256 if sample == "text_keras" else 128  # twice the default
    whole = record(folder / "original.py", STEPS, "--dropout=0", f"--batch_size={size}")
    both = on_ranks(folder / "distributed_npu.py", tmp_path, repo_root)
    found = ranks.compare_with_one(whole, both, TOLERANCE)
    assert found.departures == []
    assert ranks.compare_ranks(both, TOLERANCE) == []
    assert together.fault_sentences(whole, both, tuple) == []


@pytest.mark.parametrize("mutant", cases(RANK_MUTANTS))
def test_a_defect_of_ranks_is_found_at_its_tensor(
    mutant: Mutant, record: Record, repo_root: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    folder = repo_root / "samples" / mutant.sample
    whole = record(folder / "original.py", STEPS, "--dropout=0", "--batch_size=128")
    both = on_ranks(planted(mutant, folder / "distributed_npu.py", tmp_path), tmp_path, repo_root)
    check(mutant, ranks.compare_with_one(whole, both, TOLERANCE).first_departure)
    if "one layer" in mutant.name:
        [(rank, among)] = ranks.compare_ranks(both, TOLERANCE)
        check(mutant, among.first_departure)


def test_there_are_25_defects_in_one_process() -> None:
    assert len(MUTANTS) >= 25 and len({mutant.name for mutant in MUTANTS + RANK_MUTANTS}) == len(MUTANTS + RANK_MUTANTS)
    assert 3 <= sum(mutant.is_cheap for mutant in MUTANTS) <= 4
