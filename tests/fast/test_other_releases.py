"""Files that one release wrote are read by another one, or refused with a sentence that says what to do.

Each file is written by this release. Then its version is changed, and each of its fields is taken away, added or
replaced, as another release may write it.
"""

from __future__ import annotations

import hashlib
import json
import pathlib
import re
from typing import Any, Callable, Iterator, NamedTuple, Sequence

import numpy as np
import pytest
from convert_tf2npu import api
from convert_tf2npu.facts import facts as facts_module
from convert_tf2npu.files import transaction

from npu_shim.dumps import dump_comparison, files, reference
from npu_shim.dumps.diagnosis import stage_results
from npu_shim.profiles import profile_reader
from npu_shim.rehearsal import portable
from npu_shim.rehearsal.comparing.read_recording import read_recording
from npu_shim.rehearsal.files.kept import JOURNAL, leftover_stores_with_copies
from npu_shim.rehearsal.half_run import Half, Precision
from npu_shim.rehearsal.recording.settings import Changes
from npu_shim.rehearsal.recording.writer import FILE
from npu_shim.rehearsal.running import Run
from tests.convert.test_facts import facts_of
from tests.recordings import FOUND, recording

pytestmark = pytest.mark.once

FIX = re.compile(r"[.:] .*(again|Give|Name|Restore|Move|remove)|names of the files are used")
MORE_EVENTS: Sequence[dict[str, Any]] = (  # beside those of tests/recordings.py
    {"event": "skip", "optimizer": 0, "number": 1},
    {"event": "seed", "call": "tf.set_random_seed", "value": 3, "line": "train.py:3"},
    {"event": "line", "kind": "loss", "name": "loss", "line": "train.py:5"},
    {"event": "saved", "path": "model", "line": "train.py:8"},
    {"event": "restored", "path": "model", "line": "train.py:2"},
    {"event": "deliberate", "what": "batch", "function": "batch", "number": 1},
    {"event": "notes", "tensorflow": "2.15.1"},
)


class File(NamedTuple):
    """A file between releases.

    Attributes:
        write: writes it below a folder and returns its path.
        read: reads the folder and returns why it was refused, empty if it was read.
        version: the field with its version; empty for one without.
    """

    write: Callable[[pathlib.Path], pathlib.Path]
    read: Callable[[pathlib.Path], str]
    version: str = ""


def refusal(kind: type[Exception], read: Callable[[], object]) -> str:
    """Return the message of an error of a kind, which is the only one that may be raised; empty without one."""
    try:
        read()
    except kind as error:
        return str(error)
    return ""


def write_recording(folder: pathlib.Path) -> pathlib.Path:
    (folder / "train.py").write_text("print(1)\n")
    recorded = recording(folder / "run")
    with open(folder / "run" / FILE, "a") as stream:
        stream.writelines(json.dumps(event) + "\n" for event in MORE_EVENTS)
    changes = Changes(batches=[("batch", 1)], training_batches=[("batch", 2)], static_initializers=[("begin", 1)])
    run = Run("original", str(folder / "train.py"), [], str(folder / "run"), steps=5, deliberate=changes)
    portable.replace_recording(str(folder / "r"), run, 0, recorded, Half(Precision(), 4, FOUND), 1e9)
    return folder / "r" / portable.MANIFEST


def load_recording(folder: pathlib.Path) -> str:
    return refusal(portable.RecordingError, lambda: portable.load_recording(str(folder / "r")))


def read_events(folder: pathlib.Path) -> str:
    return refusal(portable.RecordingError, lambda: read_recording(str(folder / "r")))


def write_facts(folder: pathlib.Path) -> pathlib.Path:
    (folder / "train.py").write_bytes(b"import tensorflow as tf\n")
    path = folder / "facts.json"
    path.write_text(facts_of(folder, 3, 7).to_text(str(path)))
    return path


def read_facts(folder: pathlib.Path) -> str:
    return refusal(api.UsageError, lambda: api.read_facts(str(folder / "facts.json")))


def write_index(folder: pathlib.Path) -> pathlib.Path:
    np.save(folder / "a.0.1700000000000.npy", np.zeros(3, "f4"))
    row = {"op": "a", "output": 0, "file": "a.0.1700000000000.npy", "type": "Relu", "inputs": ["b"], "line": "t.py:1"}
    path = folder / reference.INDEX
    path.write_text(json.dumps({"schema_version": 1, "outputs": [row]}))
    return path


def read_index(folder: pathlib.Path) -> str:
    problems: files.Problems = {}
    assert {output.op for output in reference.read_step(str(folder), problems).outputs} <= {"a", "another"}
    return "; ".join(problems.values())


def write_draws(folder: pathlib.Path) -> pathlib.Path:
    path = folder / reference.DRAWS
    path.write_text(json.dumps({"schema_version": 1, "shared": ["dropout/random_uniform"], "left": []}))
    return path


def read_draws(folder: pathlib.Path) -> str:
    problems: files.Problems = {}
    dump_comparison._read_shared_draws(str(folder), problems)
    return "; ".join(problems.values())


def write_diagnosis(folder: pathlib.Path) -> pathlib.Path:
    stage = stage_results.StageResult("run", "Run", "Agrees.", stage_results.Facts("run"), 1.0, "run")
    cause = stage_results.Cause("a", ["b"], "c")
    finding = stage_results.ToolFinding("NPU201", "train.py:1", "a")
    path = folder / "diagnosis.json"
    diagnosis = stage_results.Diagnosis("key", "train.py", [], "r", "", cause, [stage], [finding])
    path.write_text(json.dumps(diagnosis.to_json()))
    return path


def read_diagnosis(folder: pathlib.Path) -> str:
    is_read = stage_results.read_diagnosis(str(folder / "diagnosis.json")) is not None
    return "" if is_read else "changed: all stages run again"  # as the command says


def write_assessment(folder: pathlib.Path) -> pathlib.Path:
    path = folder / "assess.json"
    graphs = [{"operators": [{"op": "Relu", "lines": ["train.py:3"]}]}]
    path.write_text(json.dumps({"tool": "npu-shim assess", "schema_version": 1, "graphs": graphs}))
    return path


def read_assessment(folder: pathlib.Path) -> str:
    profile = profile_reader.Profile(str(folder))
    profile_reader._lines_by_op_name_and_type(str(folder), [str(folder)], profile)
    return "; ".join(profile.problems.values())


def write_copies(folder: pathlib.Path) -> pathlib.Path:
    path = folder / "kept" / JOURNAL
    path.parent.mkdir()
    path.write_text(json.dumps({"path": str(folder / "model"), "copy": "0"}) + "\n")
    return path


def read_copies(folder: pathlib.Path) -> str:
    return ". Move them back" if leftover_stores_with_copies(str(folder)) else ""


def write_moves(folder: pathlib.Path) -> pathlib.Path:
    (folder / "new").mkdir()
    (folder / "new" / "0").write_text("new")
    path = folder / "new" / "journal"
    path.write_text(json.dumps([[str(folder / "out")], [[str(folder / "new" / "0"), str(folder / "a"), False, 3, 7]]]))
    return path


def read_moves(folder: pathlib.Path) -> str:
    return refusal(api.UsageError, lambda: transaction.undo_moves_of_journal(str(folder / "new" / "journal")))


FILES = {
    "recording": File(write_recording, load_recording, "version"),
    "facts": File(write_facts, read_facts, "version"),
    "index of dumps": File(write_index, read_index, "schema_version"),
    "random numbers of dumps": File(write_draws, read_draws, "schema_version"),
    "diagnosis": File(write_diagnosis, read_diagnosis, "schema_version"),
    "assessment": File(write_assessment, read_assessment, "schema_version"),
    "copies of files": File(write_copies, read_copies),
    "moves of files": File(write_moves, read_moves),
}


def changed(content: Any) -> Iterator[Any]:
    """Yield copies of JSON in which one field, at any depth, is missing, new, empty or of another type."""
    if isinstance(content, dict):
        yield {**content, "of_another_release": 1}
        for key, value in content.items():
            yield {name: kept for name, kept in content.items() if name != key}
            yield from ({**content, key: new} for new in (None, {}, "another"))
            yield from ({**content, key: new} for new in changed(value))
    elif isinstance(content, list):
        yield [*content, None]
        for place, value in enumerate(content):
            yield content[:place] + content[place + 1 :]
            yield from ([*content[:place], new, *content[place + 1 :]] for new in changed(value))


def put(path: pathlib.Path, content: Any) -> None:
    """Write changed JSON, with the checksum of facts."""
    if isinstance(content, dict) and content.get("schema") == facts_module.SCHEMA and "checksum" in content:
        content = {name: value for name, value in content.items() if name != "checksum"}
        content["checksum"] = facts_module._checksum(content)
    path.write_text(json.dumps(content) + "\n")


@pytest.mark.parametrize("name", FILES)
def test_a_file_of_another_shape_is_read_or_refused(name: str, tmp_path: pathlib.Path) -> None:
    path = FILES[name].write(tmp_path)
    content = json.loads(path.read_text())
    others = list(changed(content))
    for other in others:
        put(path, other)
        why = FILES[name].read(tmp_path)
        assert "\n" not in why and len(why) < 600, (other, why)
        assert not why or name == "index of dumps" or FIX.search(why), (other, why)
    print(name, len(others))
    assert len(others) > 5


@pytest.mark.parametrize("name", [name for name, file in FILES.items() if file.version])
@pytest.mark.parametrize("step", [-1, 1])
def test_a_file_of_another_version_is_refused(step: int, name: str, tmp_path: pathlib.Path) -> None:
    file = FILES[name]
    path = file.write(tmp_path)
    assert file.read(tmp_path) == ""
    content = json.loads(path.read_text())
    put(path, {**content, file.version: content[file.version] + step})
    assert FIX.search(file.read(tmp_path))


def test_events_of_another_shape_are_read_or_refused(tmp_path: pathlib.Path) -> None:
    manifest = write_recording(tmp_path)
    path = manifest.parent / FILE
    lines = path.read_text().splitlines()
    kinds: dict[str, int] = {}
    for number, line in enumerate(lines):
        kinds.setdefault(json.loads(line)["event"], number)
    print(sorted(kinds))
    assert len(kinds) >= 10
    refused = 0
    for number in kinds.values():
        for other in changed(json.loads(lines[number])):
            path.write_text("\n".join([*lines[:number], json.dumps(other), *lines[number + 1 :]]) + "\n")
            content = json.loads(manifest.read_text())
            content["files"][FILE] = hashlib.sha256(path.read_bytes()).hexdigest()
            manifest.write_text(json.dumps(content))
            assert load_recording(tmp_path) == ""
            why = read_events(tmp_path)
            assert why in ("", f"{path} has events that this release cannot read. Record again with this release."), why
            refused += bool(why)
    assert refused


def test_a_field_that_is_not_known_is_refused(tmp_path: pathlib.Path) -> None:
    path = write_recording(tmp_path)
    content = json.loads(path.read_text())
    for other in ({"perturbations": 3}, {"deliberate": {**content["deliberate"], "order": 1}}, {"half": {"dtype": 1}}):
        put(path, {**content, "tool_version": "9.1.0", **other})
        assert "manifest.json is of npu_shim 9.1.0, and this release cannot read its " in load_recording(tmp_path)


def test_a_field_that_was_added_since_has_its_default(tmp_path: pathlib.Path) -> None:
    path = write_recording(tmp_path)
    content = json.loads(path.read_text())
    del content["deliberate"]["training_batches"], content["half"], content["tensors"]
    put(path, content)
    manifest = portable.load_recording(str(path.parent)).manifest
    assert manifest.half is None and manifest.tensors == ()
    assert manifest.deliberate is not None and list(manifest.deliberate.training_batches) == []
    assert manifest.deliberate.batches == [("batch", 1)]
