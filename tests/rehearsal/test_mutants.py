"""verify finds each planted defect at its tensor, and none in the true migrations."""

from __future__ import annotations

import json
import pathlib
import re
from typing import Callable

import pytest
import tensorflow as tf

from npu_shim.rehearsal.comparing import TOLERANCE, ranks, together
from npu_shim.rehearsal.comparing.comparison import compare
from npu_shim.rehearsal.comparing.recording import Recording, read
from npu_shim.rehearsal.running import DEFAULTS
from samples import training
from tests.distributed import forks
from tests.rehearsal.mutants import MUTANTS, RANK_MUTANTS, Mutant

STEPS = 12
IS_TF2 = tf.__version__ >= "2"
HAS_ESTIMATOR = hasattr(tf.compat.v1, "estimator")
HAS_GRAPH_KERAS = int(getattr(tf.keras, "__version__", "2").split(".")[0]) < 3
RUNNABLE = {
    "digits_session": True,
    "digits_estimator": HAS_ESTIMATOR,
    "text_keras": HAS_GRAPH_KERAS,
    "digits_fit": IS_TF2,
    "digits_loop": IS_TF2,
}
CHEAP = ("digits_session", "digits_loop")
SAMPLES = [name for name, runs in RUNNABLE.items() if runs]
Record = Callable[..., Recording]


def environment() -> dict[str, str]:
    return {**training.environment(), **DEFAULTS}


def settings(folder: pathlib.Path, converts: bool, in_ranks: bool) -> str:
    return json.dumps(
        {
            "folder": str(folder),
            "seed": 1,
            "by_call_site": True,
            "every": 1,
            "convert": ["--no-shape-watch"] if converts else None,
            "ranks": in_ranks,
            "of_ranks": True,
        }
    )


def process_of_a_run(repo_root: pathlib.Path) -> pathlib.Path:
    return repo_root / "npu_shim" / "cli" / "_recorded.py"


@pytest.fixture(scope="session")
def record(repo_root: pathlib.Path, tmp_path_factory: pytest.TempPathFactory) -> Record:
    """record(script, *flags, converts=False) -> its recording; the same run is made once."""
    known: dict[tuple[object, ...], Recording] = {}

    def run(script: pathlib.Path, *flags: str, converts: bool = False) -> Recording:
        key = (script, converts, *flags)
        if key not in known:
            folder = tmp_path_factory.mktemp("recording")
            arguments = (settings(folder, converts, False), str(script), f"--steps={STEPS}", *flags)
            process = process_of_a_run(repo_root)
            forks.run_script(process, *arguments, log=folder / "log", environ=environment(), cwd=folder)
            known[key] = read(str(folder))
        return known[key]

    return run


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
    found = compare(record(folder / "original.py"), record(planted(mutant, folder / "expected_npu.py", tmp_path)))
    check(mutant, found.first)


@pytest.mark.parametrize(
    "sample", [pytest.param(name, marks=[pytest.mark.smoke] if name in CHEAP else []) for name in SAMPLES]
)
def test_a_true_migration_agrees(sample: str, record: Record, repo_root: pathlib.Path) -> None:
    folder = repo_root / "samples" / sample
    found = compare(record(folder / "original.py"), record(folder / "expected_npu.py"))
    assert found.departures == [] and found.compared
    converted = compare(record(folder / "original.py"), record(folder / "original.py", converts=True))
    assert converted.departures == [] and len(converted.compared) == len(found.compared)


def on_ranks(script: pathlib.Path, folder: pathlib.Path, repo_root: pathlib.Path) -> list[Recording]:
    command = (str(process_of_a_run(repo_root)), settings(folder, False, True), str(script), f"--steps={STEPS}")
    forks.run_ranks(2, *command, "--dropout=0", folder=folder, environ=environment())
    return [read(str(folder / f"rank_{rank}")) for rank in range(2)]


@pytest.mark.parametrize("sample", SAMPLES)
def test_two_ranks_agree_with_one_process_on_the_global_batch(
    sample: str, record: Record, repo_root: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    folder = repo_root / "samples" / sample
    size = 256 if sample == "text_keras" else 128  # twice the default
    whole = record(folder / "original.py", "--dropout=0", f"--batch_size={size}")
    both = on_ranks(folder / "distributed_npu.py", tmp_path, repo_root)
    found = ranks.compare_with_one(whole, both, TOLERANCE)
    assert found.departures == []
    assert ranks.compare_ranks(both, TOLERANCE) == []
    assert together.faults(whole, both, tuple) == []


@pytest.mark.parametrize("mutant", cases(RANK_MUTANTS))
def test_a_defect_of_ranks_is_found_at_its_tensor(
    mutant: Mutant, record: Record, repo_root: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    folder = repo_root / "samples" / mutant.sample
    whole = record(folder / "original.py", "--dropout=0", "--batch_size=128")
    both = on_ranks(planted(mutant, folder / "distributed_npu.py", tmp_path), tmp_path, repo_root)
    check(mutant, ranks.compare_with_one(whole, both, TOLERANCE).first)
    if "one layer" in mutant.name:
        [(rank, among)] = ranks.compare_ranks(both, TOLERANCE)
        check(mutant, among.first)


def test_there_are_25_defects_in_one_process() -> None:
    assert len(MUTANTS) >= 25 and len({mutant.name for mutant in MUTANTS + RANK_MUTANTS}) == len(MUTANTS + RANK_MUTANTS)
    assert 3 <= sum(mutant.is_cheap for mutant in MUTANTS) <= 4
