"""Recordings that travel: format, checksums, limits and errors, without TensorFlow."""

from __future__ import annotations

import json
import pathlib
import shutil
import subprocess
import sys
from typing import Any, Callable

import numpy as np
import pytest

from npu_shim.rehearsal import portable, recorded_original
from npu_shim.rehearsal.comparing.comparison import compare_recordings
from npu_shim.rehearsal.comparing.read_recording import read_initial_variables, read_recording
from npu_shim.rehearsal.comparing.versions import drop_redefined_values
from npu_shim.rehearsal.recording.kinds import FINAL, GRADIENT, INITIAL, INPUT, LOG, LOSS, VARIABLE
from npu_shim.rehearsal.recording.recorder import Recorder
from npu_shim.rehearsal.recording.settings import Changes, WholeTensors
from npu_shim.rehearsal.recording.writer import TENSORS, Writer
from npu_shim.rehearsal.running import Run
from npu_shim.rehearsal.verifying import Settings
from tests.recordings import recording

KERNEL = np.arange(120, dtype="f4").reshape(40, 3)
ROWS = np.random.RandomState(0).rand(3, 8, 4).astype("f4")  # of three steps


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> pathlib.Path:
    """Return the folder of a recording."""
    script = tmp_path / "train.py"
    script.write_text("print(1)\n")
    found = recording(tmp_path / "run")
    (tmp_path / "run" / "output.log").write_text("1\n")
    (tmp_path / "run" / "kept.npy").write_text("not for the recording")
    recording(tmp_path / "run" / "again")
    run = Run("original", str(script), ["--a={run}"], str(tmp_path / "run"), seed=7, steps=5)
    portable.replace_recording(str(tmp_path / "r"), run, 0, found, None, 1e9)
    return tmp_path / "r"


def test_a_recording_stands_for_the_run(folder: pathlib.Path) -> None:
    shutil.move(str(folder), str(folder.parent / "moved"))
    folder = folder.parent / "moved"
    run = portable.load_recording(str(folder))
    assert (run.script, run.arguments, run.seed, run.steps, run.run_script()) == ("train.py", ["--a={run}"], 7, 5, 0)
    assert (
        compare_recordings(read_recording(run.folder), read_recording(str(folder.parent / "run"))).first_departure
        is None
    )
    files = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    assert files == ["again/recording.jsonl", "manifest.json", "output.log", "recording.jsonl"]


def manifest(change: Callable[[Any], Any]) -> Callable[[pathlib.Path], None]:
    """Return a function that changes the manifest in a folder."""

    def act(folder: pathlib.Path) -> None:
        path = folder / portable.MANIFEST
        path.write_text(json.dumps(change(json.loads(path.read_text()))))

    return act


def cut(folder: pathlib.Path) -> None:
    """Lose the last byte of the recording."""
    path = folder / "recording.jsonl"
    path.write_bytes(path.read_bytes()[:-1])


@pytest.mark.parametrize(
    "damage, text",
    [
        (cut, "recording.jsonl is damaged: its SHA-256 differs from the manifest. Copy the recording again."),
        (lambda folder: (folder / "output.log").unlink(), "output.log. Copy the recording again."),
        (
            lambda folder: (folder / "manifest.json").unlink(),
            "manifest.json. Name a folder",
        ),
        (lambda folder: (folder / "manifest.json").write_text("{"), "manifest.json is no JSON. Record again."),
        (lambda folder: (folder / "manifest.json").write_bytes(b"\xff\xfe{}"), "manifest.json is no JSON."),
        (manifest(lambda found: {}), "manifest.json is not of a recording. Name a folder of verify --record."),
        (manifest(lambda found: [found]), "manifest.json is not of a recording."),
        (manifest(lambda found: {**found, "version": 1}), "has version 1 of the format, and this release reads 3."),
        (manifest(lambda found: {**found, "files": {}}), "manifest.json lacks recording.jsonl. Record again."),
        (
            manifest(lambda found: {**found, "files": {**found["files"], "../r/output.log": ""}}),
            "no file of a recording",
        ),
        (manifest(lambda found: {**found, "files": {**found["files"], "/etc/passwd": ""}}), "no file of a recording"),
        (manifest(lambda found: {k: v for k, v in found.items() if k != "seed"}), "manifest.json lacks seed."),
    ],
)
def test_a_damaged_or_foreign_folder_is_one_error(
    damage: Callable[[pathlib.Path], Any], text: str, folder: pathlib.Path
) -> None:
    damage(folder)
    with pytest.raises(portable.RecordingError) as raised:
        portable.load_recording(str(folder))
    assert text in str(raised.value) and "\n" not in str(raised.value)


def test_a_folder_with_other_files_is_not_replaced(folder: pathlib.Path) -> None:
    assert portable.target_problem(str(folder)) is None
    assert portable.target_problem(str(folder.parent / "new")) is None
    assert "has other files in it. Name a new folder." in str(portable.target_problem(str(folder.parent)))
    assert "is a file. Name a folder." in str(portable.target_problem(str(folder / "manifest.json")))


def test_a_recording_that_is_too_large_is_not_written(folder: pathlib.Path) -> None:
    run = Run("original", str(folder.parent / "train.py"), [], str(folder.parent / "run"))
    with pytest.raises(portable.RecordingError, match="more than 1e-06 GB. Record fewer steps with --steps"):
        portable.replace_recording(str(folder.parent / "other"), run, 0, read_recording(run.folder), None, 1000)
    assert not (folder.parent / "other").exists()


def test_whole_tensors_are_those_that_were_recorded(tmp_path: pathlib.Path) -> None:
    writer = Writer(str(tmp_path), whole=WholeTensors([2], [INITIAL], 1e9))
    values = [KERNEL, np.array([True, False]), np.float64(0.5), np.arange(3, dtype=">i4"), KERNEL.astype("f2")]
    writer.write_rows(0, [(INITIAL, str(number), np.asarray(value)) for number, value in enumerate(values)])
    for step in (1, 2, 3):
        writer.write_rows(step, [(VARIABLE, "kernel", KERNEL + step)])
    found = read_initial_variables(str(tmp_path))
    assert [name for name, _ in found] == ["0", "1", "2", "3", "4"]
    for (_, one), other in zip(found, values):
        assert one.shape == np.shape(other) and one.dtype.name == np.asarray(other).dtype.name
        np.testing.assert_array_equal(one, other)
    tensors = [value.load_tensor() for value in read_recording(str(tmp_path)).streams[VARIABLE, "kernel"].values]
    assert tensors[0] is None and tensors[2] is None
    np.testing.assert_array_equal(tensors[1], KERNEL + 2)


def record_share(folder: pathlib.Path, rows: slice, is_averaged: bool, gradient: float) -> None:
    """Write the recording of a process that trains on some rows of each step."""
    folder.mkdir(parents=True, exist_ok=True)
    recorder = Recorder(Writer(str(folder)))
    recorder.of_ranks = True
    recorder.writer.write_event("start", command=["train.py"], python="3.11.7", rank=None)
    recorder.writer.write_event("note", broadcast=True)
    for batch in ROWS:
        recorder.reduced = 40 * is_averaged
        values = [(INPUT, "batch 0", batch[rows]), (LOSS, "loss", batch[rows].mean())]
        values += [(GRADIENT, "kernel", np.full(40, gradient, "f4")), (VARIABLE, "kernel", np.ones(40, "f4"))]
        recorder.record_update(0, values)
    recorder.writer.write_event("end", ended="returned", steps=len(ROWS), seconds=1.5, peak_bytes=10**8)


@pytest.mark.parametrize(
    "shares, is_averaged, gradient, wanted",
    [
        ((slice(0, 4), slice(4, 8)), True, 0.5, []),
        (
            (slice(0, 8), slice(0, 8)),
            False,
            0.5,
            ["Both ranks train on the same 8 rows; nothing is averaged (NPU308, train.py:3)."],
        ),
        (
            (slice(0, 4), slice(4, 8)),
            False,
            0.75,
            [
                "Nothing is averaged (NPU308, train.py:3).",
                "The first difference is at step 1: gradient 'kernel', norm 3.16228 and 4.74342.",
                "Rank 1 departs from rank 0 at step 1: gradient 'kernel', norm 4.74342 and 3.16228.",
            ],
        ),
    ],
    ids=["work together", "train on the same rows", "average nothing"],
)
def test_ranks_are_compared_with_a_recording(
    shares: tuple[slice, slice], is_averaged: bool, gradient: float, wanted: list[str], tmp_path: pathlib.Path
) -> None:
    class Ranks(Run):
        def run_script(self) -> int:
            for folder, rows, value in zip(self.recording_folders(), shares, (gradient, 0.5)):
                record_share(pathlib.Path(folder), rows, is_averaged, value)
            return 0

    script = tmp_path / "train.py"
    script.write_text("print(1)\n")
    record_share(tmp_path / "run", slice(0, 8), False, 0.5)
    run = Run("original", str(script), [], str(tmp_path / "run"), deliberate=Changes())
    portable.replace_recording(str(tmp_path / "r"), run, 0, read_recording(run.folder), None, 1e9)
    migrated = Ranks("migrated", str(script), [], str(tmp_path / "ranks"), ranks=2, deliberate=Changes())
    settings = Settings(places=lambda: ["NPU308, train.py:3"])
    found = recorded_original.verify_against(
        portable.load_recording(str(tmp_path / "r")), migrated, settings, lambda _: None, False
    )
    assert (found.problems, found.verdict) == (wanted, "differ" if wanted else "agree")


LARGE = """
import sys
import numpy as np
from npu_shim.rehearsal.recording.settings import WholeTensors
from npu_shim.rehearsal.recording.writer import Writer
writer = Writer(sys.argv[1], whole=WholeTensors([1, 2, 3], [], 10000))
for step in range(1, 9):
    writer.write_rows(step, [("variable", "kernel", np.ones(1000, "f4"))])
"""


def test_a_process_ends_when_its_recording_is_too_large(tmp_path: pathlib.Path, repo_root: pathlib.Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LARGE, str(tmp_path)], cwd=str(repo_root), stderr=subprocess.PIPE, text=True
    )
    assert done.returncode == 1
    assert "the recording takes more than 1e-05 GB at step 3. Record fewer steps with --steps" in done.stderr
    assert (tmp_path / TENSORS).stat().st_size == 8000


def test_values_that_versions_define_differently_are_dropped(tmp_path: pathlib.Path) -> None:
    both = [recording(tmp_path / str(number)) for number in range(2)]
    for each, version in zip(both, ("1.15.5", "2.6.5")):
        each.notes.tensorflow = version
    assert drop_redefined_values(*both) == []
    for each in both:
        each.streams[LOG, "batch loss"] = each.streams[LOG, "epoch loss"] = next(iter(each.streams.values()))
    assert "TensorFlow 2.2" in drop_redefined_values(*both)[0]
    assert [name for kind, name in both[0].streams if kind == LOG] == ["epoch loss"]


def test_counts_that_keras_3_does_not_make_are_not_compared(tmp_path: pathlib.Path) -> None:
    both = [recording(tmp_path / str(number)) for number in range(2)]
    for each, version in zip(both, ("2.21.0", "2.6.5")):
        each.notes.tensorflow = version
        for name in ("normalization/count", "total/count"):
            each.streams[FINAL, name] = next(iter(each.streams.values()))
    assert "Normalization" in drop_redefined_values(*both)[0]
    assert [name for kind, name in both[0].streams if kind == FINAL] == ["total/count"]
