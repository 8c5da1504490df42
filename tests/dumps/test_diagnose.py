"""``npu-shim diagnose``: each stage finds its cause, in order, and goes on after an interruption.

The processes of the scripts are stood for by ``Card``, which writes the recordings and dumps that they would.
"""

from __future__ import annotations

import json
import os
import pathlib
from typing import Any, Iterator

import numpy as np
import pytest

from npu_shim._host import host_device
from npu_shim.cli import main
from npu_shim.dumps import reference
from npu_shim.dumps.dump_settings import Dumping
from npu_shim.rehearsal import portable
from npu_shim.rehearsal.comparing.read_recording import read_recording
from npu_shim.rehearsal.recording.kinds import DRAW, FEED, FETCH, INITIAL, INPUT, LOSS, RATE
from npu_shim.rehearsal.recording.recorder import Recorder
from npu_shim.rehearsal.recording.writer import Writer
from npu_shim.rehearsal.running import Run
from tests.dumps.written_reference import write as write_reference

pytestmark = pytest.mark.once
STEPS = 4
SCRIPT = """
import tensorflow as tf
from npu_shim.npu_init import *

dataset = tf.data.Dataset.range(9).batch(4)
with tf.Session(config=npu_config_proto()) as session:
    session.run(dataset.make_one_shot_iterator().get_next())
"""
FUSED = "MatMuladdRelu_of_dense/MatMul"
OPERATOR = "loss/Mul_renamed_by_a_pass"


def graph() -> Iterator[tuple[reference.Output, np.ndarray]]:
    """Yield what TensorFlow computes in a step."""
    random = np.random.RandomState(0)
    x, w = random.rand(8, 16).astype("f4"), random.rand(16, 4).astype("f4")
    product = x @ w
    for op, kind, taken, array in (
        ("x", "Placeholder", [], x),
        ("w", "ReadVariableOp", [], w),
        ("dense/MatMul", "MatMul", ["x:0", "w:0"], product),
        ("dense/add", "AddV2", ["dense/MatMul:0"], product + 1),
        ("dense/Relu", "Relu", ["dense/add:0"], np.maximum(product + 1, 0)),
        ("loss/Mul", "Mul", ["dense/Relu:0"], np.square(product + 1)),
        ("loss/Mean", "Mean", ["loss/Mul:0"], np.asarray(np.square(product + 1).mean())),
    ):
        yield reference.Output(op, type=kind, inputs=taken, line="train.py:7"), array


class Card:
    """Stands for the processes of scripts.

    Attributes:
        planted: the cause.
        killed: the number of runs after which the process of the command is killed.
        draws: True for a script with dropout, whose numbers the card gets from the host.
    """

    def __init__(self, planted: str, killed: int = 100, draws: bool = False) -> None:
        self.planted = planted
        self.killed = killed
        self.draws = draws
        self.runs: list[str] = []

    def run(self, run: Run, directory: str) -> int:
        """Write what a process of this run would."""
        name = os.path.relpath(run.folder, str(pathlib.Path(run.folder).parents[1]))
        if len(self.runs) == self.killed:
            raise KeyboardInterrupt
        self.runs.append(name)
        dumping = run.dumping if isinstance(run.dumping, Dumping) else Dumping()
        for folder in run.recording_folders():
            self.record(folder, run, self.differs(run, dumping))
        if dumping.folder:
            self.dump(pathlib.Path(dumping.folder), run, dumping)
        pathlib.Path(run.log_path).write_text("trained\n")
        return 0

    def differs(self, run: Run, dumping: Dumping) -> float:
        """Return by which factor the loss of a run differs."""
        agrees = {
            "clean": True,
            "sharding": run.ranks is None,
            "precision": bool(dumping.precision),
            "fusion": dumping.fusion == "off",
        }.get(self.planted, False)
        if run.name == "original" or agrees or (run.on_host and self.planted not in ("script", "seeds", "rate")):
            return 1.0
        if run.on_host and self.planted == "rate":
            return 1.0 + 1e-9
        if self.planted == "sharding":
            return 3.0
        return 1.1 + 0.01 * len(self.runs) * (self.planted == "random")

    def record(self, folder: str, run: Run, factor: float) -> None:
        """Write a recording."""
        os.makedirs(folder, exist_ok=True)
        writer = Writer(folder)
        recorder = Recorder(writer)
        on_card = run.name != "original" and not run.on_host
        writer.write_event("start", command=["train.py"], python="3.7.5", rank=None)
        options = {"precision_mode": "force_fp16" if self.planted == "precision" else "must_keep_origin_dtype"}
        writer.write_event("note", tensorflow="1.15.5", on_device=on_card, npu_options=options)
        planted = self.planted if factor != 1 else ""
        if not on_card:
            recorder.record_values(INITIAL, [("w", np.float32(2 if planted == "seeds" else 1))])
        gets_draws = (
            self.draws and isinstance(run.dumping, Dumping) and run.dumping.draws == 1
        )  # the seed of the recording
        if (self.planted == "draws" or self.draws) and not on_card or gets_draws:
            recorder.record_line(DRAW, "dropout/RandomUniform", "train.py:7")
            recorder.record_values(DRAW, [("dropout/RandomUniform", np.ones(4, "f4"))], 1)
        for step in range(1, STEPS + 1):
            batch = np.arange(4, dtype="f4") + step + (planted == "data")
            rows = [(INPUT, "batch", batch), (LOSS, "loss", np.float32(factor / step))]
            rows.append((RATE, "learning_rate", np.float32(0.2 if planted == "rate" else 0.1)))
            recorder.record_update(
                0, [] if on_card else [(kind, name, np.asarray(value)) for kind, name, value in rows]
            )
            recorder.record_values(FEED, [("x", batch)])
            recorder.record_values(FETCH, [("loss", np.float32(factor / step))])
        recorder.record_final_variables([("w", np.float32(factor))])
        writer.write_event("end", ended="returned", steps=STEPS, seconds=3.0, peak_bytes=10**8)

    def dump(self, folder: pathlib.Path, run: Run, dumping: Dumping) -> None:
        """Write dumps: of TensorFlow on the host, of the engine on the card."""
        folder.mkdir(parents=True)
        for step in dumping.steps if run.on_host else ():
            write_reference(str(folder / str(step)), graph())
        if run.on_host:
            return
        from tests.dumps.engine import Engine  # protobuf is not in every environment that writes recordings
        from tests.dumps.messages import tensor
        from tests.dumps.test_overflow import old_report, write as write_overflow

        if dumping.overflow:
            if self.planted == "overflow":
                write_overflow(folder, 2, "dense/MatMul", old_report(7, 3, 2, 32), op_type="MatMul")
            return
        beside = folder.parent / f"{folder.name}_of_the_engine"
        write_reference(str(beside), graph())
        engine = Engine(reference.read_step(str(beside), {}))
        for step in dumping.steps:
            engine.write(folder, step)
            name = {"fusion": FUSED, "random": FUSED, "operator": OPERATOR}.get(self.planted)
            if name:
                made = engine.operators[name]
                array = made.arrays[0].copy()
                array[0] *= 1 + 0.2 * len(self.runs)
                changed = tensor(array, made.layout, made.letters, made.dtype)
                engine.write_operator(folder, name, lambda _, changed=changed: changed, step)


class Bench:
    """A recording, a script, and a card."""

    def __init__(self, folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.monkeypatch, self.out = monkeypatch, folder / "out"
        self.script = folder / "train.py"
        self.script.write_text(SCRIPT)
        self.recording = folder / "recording"
        self.record(Card("clean"))
        monkeypatch.setattr(host_device, "detect_without_import", lambda: host_device.Device("npu", "a test"))

    def record(self, card: Card) -> None:
        """Write the recording of the original."""
        original = Run("original", str(self.script), [], str(self.recording.parent / "run"))
        card.run(original, ".")
        portable.replace_recording(str(self.recording), original, 0, read_recording(original.folder), None, 1e9)

    def diagnose(self, card: Card, *more: str) -> tuple[int, Any]:
        """Run the command. Return its exit code and the result."""
        self.monkeypatch.setattr(Run, "_run_process", lambda run, *rest: card.run(run, *rest))
        arguments = ["diagnose", "--against", str(self.recording), "-r", str(self.out), str(self.script), *more]
        code = main(arguments)
        found = self.out / "diagnose.json"
        return code, json.loads(found.read_text(encoding="utf-8")) if found.exists() else None


@pytest.fixture
def bench(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    return Bench(tmp_path, monkeypatch)


CAUSES = [
    ("data", "card", "data order: the card gets other data", "feed 'x'", "in one thread"),
    ("draws", "card", "random numbers: the card draws its own", "dropout/RandomUniform at train.py:7", "--dropout=0"),
    ("sharding", "card", "sharding: one rank agrees", "", "average gradients"),
    ("seeds", "script", "initial variables: the CPU departs", "initial variable 'w'", "Load a checkpoint"),
    ("rate", "script", "learning rate: the CPU departs", "learning rate", "the global batch"),
    ("script", "script", "the script: the CPU departs", "loss", "npu-shim verify ORIGINAL MIGRATED"),
    ("precision", "precision", "precision mode force_fp16", "has no loss scale", "Add NPULossScaleOptimizer"),
    ("overflow", "overflow", "overflow in dense/MatMul (MatMul)", "forward pass", "Keep the operator in float32."),
    ("fusion", "fusion", "fusion of operators", FUSED, "fusion_switch_file"),
    ("random", "repeat", "random error: two runs differ", FUSED, "--deterministic"),
    ("operator", "operators", f"operator {OPERATOR} (Mul)", "train.py:7, inputs agree", "report it"),
]


@pytest.mark.parametrize("planted, stage, title, evidence, fix", CAUSES, ids=[each[0] for each in CAUSES])
def test_each_stage_finds_its_cause(
    planted: str,
    stage: str,
    title: str,
    evidence: str,
    fix: str,
    bench: Bench,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if planted == "draws":
        bench.record(Card(planted))
    code, found = bench.diagnose(Card(planted), *(["--ranks", "2"] if planted == "sharding" else []))
    assert (code, found["verdict"], found["stages"][-1]["name"]) == (1, "cause found", stage), found
    cause = found["cause"]
    assert cause["title"].startswith(title) and any(evidence in line for line in cause["evidence"]), cause
    assert fix in cause["fix"]
    shown = capsys.readouterr().out
    assert shown.startswith(f"cause: {cause['title']}\n") and f"fix: {cause['fix']}" in shown
    assert (bench.out / "diagnose.txt").read_text(encoding="utf-8") == shown
    assert cause["fix"] in (bench.out / "diagnose.html").read_text(encoding="utf-8")


def test_random_numbers_from_the_host_let_the_walk_go_on(bench: Bench) -> None:
    bench.record(Card("clean", draws=True))
    code, found = bench.diagnose(Card("operator", draws=True))
    assert (code, found["cause"]["title"]) == (1, f"operator {OPERATOR} (Mul)")
    bench.script.write_text(SCRIPT + "\n")
    code, found = bench.diagnose(Card("clean", draws=True))
    assert code == 0 and "Its random numbers are those of the recording" in found["stages"][0]["found"]


def test_a_card_that_agrees_ends_at_once(bench: Bench) -> None:
    card = Card("clean")
    code, found = bench.diagnose(card)
    assert (code, found["verdict"], found["cause"], card.runs) == (0, "agrees", None, ["card/run"])


def test_a_difference_without_a_cause_is_named_so(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    code, found = bench.diagnose(Card("none"))
    assert (code, found["verdict"], len(found["stages"])) == (3, "no cause found", 7)
    shown = capsys.readouterr()
    assert "no operator departs beyond its limits" in shown.out and "NPU109" in shown.out
    assert "runs of 3 s are left at most" in shown.err and "stage fusion: fusion off against on" in shown.err


@pytest.mark.parametrize("killed", [0, 1, 3, 6])
def test_an_interrupted_walk_goes_on(killed: int, bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    whole = Card("operator")
    bench.diagnose(whole)
    bench.out.rename(bench.out.parent / "whole")
    first = Card("operator", killed)
    assert bench.diagnose(first)[0] == 130
    assert "interrupted. Give the same command to go on" in capsys.readouterr().err
    second = Card("operator")
    code, found = bench.diagnose(second)
    assert (code, found["cause"]["title"]) == (1, f"operator {OPERATOR} (Mul)")
    repeated = set(first.runs) & set(second.runs)
    assert sorted({*first.runs, *second.runs}) == sorted(set(whole.runs)) and {each[:9] for each in repeated} <= {
        "operators"
    }
    assert bench.diagnose(Card("operator", 0))[0] == 1  # nothing is left to run


def test_a_changed_script_begins_anew(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    bench.diagnose(Card("operator"))
    bench.script.write_text(SCRIPT + "\n")
    card = Card("clean")
    assert bench.diagnose(card)[0] == 0 and card.runs == ["card/run"]
    assert "the script, its arguments, the recording or npu_shim changed" in capsys.readouterr().err
    assert not (bench.out / "operators").exists()
    again = Card("clean")
    assert bench.diagnose(again, "--", "--epochs=2")[0] == 0 and again.runs


def test_dumps_of_the_recording_count(bench: Bench) -> None:
    for step in ("0", "3"):
        write_reference(str(bench.out.parent / "cpu" / step), graph())
    card = Card("operator")
    assert bench.diagnose(card, "--dumps", str(bench.out.parent / "cpu"))[0] == 1
    assert "operators/run_of_cpu" not in card.runs


@pytest.mark.parametrize(
    "more, words",
    [
        (["--dumps", "missing"], "folder not found: missing. Give the one of verify --record --dump."),
        (["--report", "."], "--report . has other files in it. Name a new folder."),
    ],
)
def test_wrong_usage_is_one_error(
    more: list[str], words: str, bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    assert bench.diagnose(Card("clean"), *more)[0] == 2
    assert words in capsys.readouterr().err


def test_without_a_card_it_says_what_to_do(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    bench.monkeypatch.setattr(
        host_device, "detect_without_import", lambda: host_device.Device("cpu", "the driver shows no card")
    )
    code, found = bench.diagnose(Card("clean"))
    assert (code, found) == (2, None)
    assert "diagnose needs a card: the driver shows no card. Copy script and recording" in capsys.readouterr().err
