"""Errors of ``npu-shim verify`` for wrong input."""

from __future__ import annotations

import os
import pathlib
import signal
from typing import Any

import pytest

from npu_shim.cli import main
from npu_shim.distributed.collectives.errors import stall_text
from npu_shim.rehearsal.running import Run

pytestmark = pytest.mark.once


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["missing.py"], "file not found: missing.py. Give the script that trains."),
        (["train.py", "missing.py"], "file not found: missing.py."),
        (["--ranks", "2", "--seeds", "2", "train.py"], "--ranks compares one pair of runs, so it excludes --seeds."),
        (["--seeds", "1", "train.py"], "'1' is not allowed: it must be an integer of at least 2"),
        (["--tolerance", "much", "train.py"], "'much' is not allowed: it must be a positive number"),
        (["--tolerance", "0", "train.py"], "'0' is not allowed: it must be a positive number"),
        (["--seeds", "3", "--deterministic", "train.py"], "not allowed with argument"),
        (
            ["--half", "--ranks", "2", "train.py"],
            "--half compares runs of one process with equal random numbers, so it",
        ),
        (["--half", "--seeds", "2", "train.py"], "so it excludes --seeds. Give one of them."),
        (["--half", "--perturbed", "1", "train.py"], "'1' is not allowed: it must be an integer of at least 2"),
        (["--perturbed", "2", "train.py"], "--perturbed needs --half or --record. Add one of them."),
        (["--tensors", "1", "train.py"], "--tensors needs --record. Add it."),
        (["--record", "r", "--tensors", "1,0", "train.py"], "'0' is not allowed: it must be an integer of at least 1"),
        (["--record", "r", "--seeds", "5", "train.py"], "--record writes one run, so it excludes --seeds."),
        (["--record", ".", "train.py"], "--record . has other files in it. Name a new folder."),
        (["--record", "r", "--against", "r", "train.py"], "not allowed with argument"),
        (["--initial-variables", "train.py"], "--initial-variables needs --against. Add it."),
        (["--against", "r", "train.py"], "file not found: r/manifest.json. Name a folder"),
        (["--against", "r", "train.py", "train.py"], "--against runs the migrated script only. Leave train.py out."),
        (
            ["--against", "r", "--seed", "2", "train.py"],
            "--seed comes from the recording. Leave it out with --against.",
        ),
        (
            ["--predict", "--steps", "3", "train.py"],
            "--predict compares runs that do not train, so it excludes --steps.",
        ),
        (["--against", "r", "--predict", "train.py"], "--predict comes from the recording. Leave it out"),
        (["--saturate", "train.py"], "--saturate needs --half. Add it."),
        (["--half=float8", "train.py"], "invalid choice: 'float8'"),
        (["--half", "--mixlist", "missing.json", "train.py"], "file not found: missing.json."),
        (["--copy", "../train.py"], "is not in it. Change to a folder above the script."),
        ([], "the following arguments are required: ORIGINAL"),
    ],
)
def test_wrong_arguments_are_errors(
    arguments: list[str], text: str, tmp_path: pathlib.Path, monkeypatch: Any, capsys: Any
) -> None:
    (tmp_path / "train.py").write_text("")
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below" if "--copy" in arguments else tmp_path)
    try:
        code: Any = main(["verify", *arguments])
    except SystemExit as end:
        code = end.code
    assert code == 2 and text in capsys.readouterr().err


def test_a_script_that_trains_nothing_is_an_error(tmp_path: pathlib.Path, capsys: Any) -> None:
    (tmp_path / "train.py").write_text("import sys\nprint(sys.argv[1:])\n")
    assert main(["verify", "-r", str(tmp_path / "r"), str(tmp_path / "train.py"), "--", "--a={seed}", "{run}"]) == 2
    assert "No training step, log, summary or session run was recorded." in capsys.readouterr().out
    log = (tmp_path / "r" / "original" / "output.log").read_text()
    assert log == f"['--a=1', '{tmp_path / 'r' / 'original' / 'files'}']\n"


def test_quiet_prints_the_result_only(tmp_path: pathlib.Path, capfd: Any) -> None:
    (tmp_path / "train.py").write_text("print(1)\n")
    assert main(["verify", "-q", "-r", str(tmp_path / "r"), str(tmp_path / "train.py")]) == 2
    out, err = capfd.readouterr()
    assert "No training step" in out and err == ""


def test_a_migrated_script_outside_the_copied_folder_runs_in_its_place(
    tmp_path: pathlib.Path, monkeypatch: Any, capsys: Any
) -> None:
    for name in ("project", "migrated"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "train.py").write_text("import os\nprint(__file__, os.listdir('.'))\n")
    monkeypatch.chdir(tmp_path / "project")
    assert main(["verify", "--copy", "-r", str(tmp_path / "r"), "train.py", "../migrated/train.py"]) == 2
    assert "No training step, log, summary or session run was recorded." in capsys.readouterr().out
    log = (tmp_path / "r" / "migrated" / "output.log").read_text()
    assert log == f"{tmp_path / 'migrated' / 'train.py'} ['train.py']\n"


@pytest.fixture
def empty_tensorflow(tmp_path: pathlib.Path, monkeypatch: Any) -> None:
    """Make a module tensorflow for the process that runs are forked from: it imports TensorFlow for these scripts."""
    (tmp_path / "tensorflow.py").write_text("")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)


@pytest.mark.slow
@pytest.mark.usefixtures("empty_tensorflow")
def test_the_alias_serves_both_scripts(tmp_path: pathlib.Path, monkeypatch: Any, capsys: Any) -> None:
    (tmp_path / "train.py").write_text("import npu_bridge\nprint(npu_bridge.__name__)\n")
    monkeypatch.setenv("NPU_SHIM_ALIAS", "1")
    assert main(["verify", "-r", str(tmp_path / "r"), str(tmp_path / "train.py"), str(tmp_path / "train.py")]) == 2
    assert "No training step, log, summary or session run was recorded." in capsys.readouterr().out
    for name in ("original", "migrated"):
        assert "npu_bridge" in (tmp_path / "r" / name / "output.log").read_text()


@pytest.mark.slow
@pytest.mark.usefixtures("empty_tensorflow")
def test_a_missing_package_that_npu_shim_serves_is_named_with_its_fix(
    tmp_path: pathlib.Path, monkeypatch: Any, capsys: Any
) -> None:
    (tmp_path / "train.py").write_text("import npu_bridge.npu_init\n")
    monkeypatch.delenv("NPU_SHIM_ALIAS", raising=False)
    assert main(["verify", "-r", str(tmp_path / "r"), str(tmp_path / "train.py")]) == 2
    out = capsys.readouterr().out
    assert "npu_bridge is not installed: set NPU_SHIM_ALIAS=1, and npu_shim serves it. See its output in" in out


ENTROPY = """
import copy, datetime, os, pickle, random, secrets, time, uuid
import numpy as np

def draw():
    print(random.Random().random(), random.SystemRandom().random(), np.random.RandomState().rand())
    random.seed()
    print(random.random(), uuid.uuid4().int, int.from_bytes(os.urandom(8), "little"), secrets.randbelow(10**9))
    for seed in (int(time.time()), int(time.time() * 1000) % 2**32):
        np.random.seed(seed)
        print(np.random.rand(), np.random.RandomState(seed).rand())
    np.random.seed(datetime.datetime.now().microsecond)
    print(np.random.rand(), isinstance(np.random.mtrand._rand, np.random.RandomState))
    random.seed(time.time())
    print(random.random())

draw()
if hasattr(np.random, "default_rng"):
    print(np.random.default_rng().random(), np.random.default_rng(time.time_ns()).random())
np.random.seed(42)
assert np.random.rand() == 0.3745401188473625
name = uuid.uuid4()
for each in (copy.deepcopy(name), pickle.loads(pickle.dumps(name))):
    assert each == name and len(str(each)) == 36 and len(each.hex) == 32
print("text", uuid.uuid4(), secrets.token_hex(8), uuid.uuid4().hex)
"""


def test_both_scripts_get_the_same_entropy_but_other_names_of_folders(tmp_path: pathlib.Path, capsys: Any) -> None:
    (tmp_path / "train.py").write_text(ENTROPY)
    path = str(tmp_path / "train.py")
    assert main(["verify", "-r", str(tmp_path / "r"), path, path]) == 2
    assert "No training step, log, summary or session run was recorded." in capsys.readouterr().out
    logs = [(tmp_path / "r" / name / "output.log").read_text().splitlines() for name in ("original", "migrated")]
    assert logs[0][:-1] == logs[1][:-1] and len(logs[0]) >= 6
    texts = {text for log in logs for text in log[-1].split()}
    assert len(texts) == 7 and len({number for line in logs[0] for number in line.split()}) > 12


def test_a_script_that_fails_is_an_error_with_its_log(tmp_path: pathlib.Path, capsys: Any) -> None:
    (tmp_path / "train.py").write_text("import sys\nprint('no data')\nsys.exit(7)\n")
    assert main(["verify", "-r", str(tmp_path / "r"), str(tmp_path / "train.py")]) == 2
    out = capsys.readouterr().out
    assert "train.py ended with exit code 7 after 0 recorded steps. Its last line: no data. See its output in" in out


def test_ranks_that_wait_for_each_other_are_named(tmp_path: pathlib.Path, capsys: Any) -> None:
    missing = [("rank 0 (process 7)", "at /a/train.py:38", ["allgather of int32 (collective 6)"])]
    text = stall_text("allreduce sum of float32 (collective 3) @ Mean:0", 20, ["rank 1 (process 8)"], missing, "")
    (tmp_path / "train.py").write_text(f"import sys\nprint({'Stalled: ' + text!r})\nsys.exit(1)\n")
    assert main(["verify", "-r", str(tmp_path / "r"), str(tmp_path / "train.py")]) == 2
    out = " ".join(capsys.readouterr().out.split())
    assert "Rank 1 waits in allreduce, and rank 0 is at /a/train.py:38: give all ranks the same number of steps" in out


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (
            signal.SIGKILL,
            "The system kills a process when memory runs out: free memory, or make the model or its batch",
        ),
        (signal.SIGSEGV, "Run it alone: if it ends so, too, the cause is in the script or one of its libraries."),
    ],
)
def test_a_script_that_a_signal_ends_is_an_error_with_its_last_lines(
    number: signal.Signals, text: str, tmp_path: pathlib.Path, capsys: Any
) -> None:
    (tmp_path / "train.py").write_text(
        f"import os\nfor i in range(5): print('line', i, flush=True)\nos.kill(os.getpid(), {int(number)})\n"
    )
    assert main(["verify", "-r", str(tmp_path / "r"), str(tmp_path / "train.py")]) == 2
    out = capsys.readouterr().out
    assert f"train.py ended with signal {int(number)} ({number.name}) after 0 recorded steps." in out
    assert f"Its last lines: line 2 | line 3 | line 4. {text}" in out and "See its output in" in out
    assert (tmp_path / "r" / "verify.json").exists()


def test_a_script_that_takes_longer_than_the_timeout_is_an_error(tmp_path: pathlib.Path, capsys: Any) -> None:
    (tmp_path / "train.py").write_text("import time\ntime.sleep(60)\n")
    assert main(["verify", "--timeout", "0.1", str(tmp_path / "train.py")]) == 2
    assert "It printed nothing. It took longer than --timeout: raise it" in capsys.readouterr().out


def test_a_run_in_the_folder_of_an_earlier_one_starts_anew(tmp_path: pathlib.Path) -> None:
    """Its progress is read from its recording, in which an earlier one was, and its files are its own."""
    (tmp_path / "train.py").write_text(
        "import os, sys, time\n\ntime.sleep(1)\nprint(os.listdir(sys.argv[1]))\n"
        "open(os.path.join(sys.argv[1], 'checkpoint'), 'w').close()\n"
    )
    run = Run("original", str(tmp_path / "train.py"), ["{run}"], str(tmp_path / "again"))
    (tmp_path / "again").mkdir()
    (tmp_path / "again" / "recording.jsonl").write_text('{"event": "note"}\n')  # shorter than the first line of the run
    for _ in range(2):
        assert run.run_script() == 0
        assert (tmp_path / "again" / "output.log").read_text() == "[]\n"


def test_the_error_of_a_script_is_shown_from_its_first_line(tmp_path: pathlib.Path, capsys: Any) -> None:
    (tmp_path / "train.py").write_text("raise ValueError('no data.\\nSee the notes')\n")
    assert main(["verify", "-r", str(tmp_path / "r"), str(tmp_path / "train.py")]) == 2
    assert "Its error: ValueError: no data. See the notes. See its output in" in capsys.readouterr().out


def test_half_precision_needs_a_script_with_tensorflow(tmp_path: pathlib.Path, capsys: Any) -> None:
    (tmp_path / "train.py").write_text("print('no TensorFlow')\n")
    assert main(["verify", "--half", "-r", str(tmp_path / "r"), str(tmp_path / "train.py")]) == 2
    out = capsys.readouterr().out
    assert "train.py did not import TensorFlow. Give the script that trains." in out
    assert out.splitlines()[0].split() == ["float32", "float16"]


def test_wrong_settings_of_the_tool_are_an_error(tmp_path: pathlib.Path, capsys: Any) -> None:
    (tmp_path / "train.py").write_text("import tensorflow as tf\n")
    (tmp_path / "pyproject.toml").write_text("[tool.convert_tf2npu]\nselect = 3\n")
    assert main(["verify", str(tmp_path / "train.py")]) == 2
    assert "select: 3 is not an array of strings" in capsys.readouterr().err
