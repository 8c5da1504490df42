"""Training steps that npu-shim verify records, against the same steps without a recording.

    python benchmarks/recording.py            prints a table; takes about two minutes
    python benchmarks/recording.py --write    and puts it into benchmarks/RESULTS.md and results.json

A session, Keras' fit and a loop over a gradient tape train a CNN whose step takes 50 ms or more, and one with
ten times as many weights. Each script runs in two processes, plain and recorded, and in a third one that is plain, too,
and shows how much is chance. They train a window of steps each in turns.
"""

from __future__ import annotations

import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
from typing import Any, NamedTuple, Sequence

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks import results, turns  # noqa: E402
from npu_shim.rehearsal.running import PROCESS, Run  # noqa: E402

SCRIPTS = ROOT / "benchmarks" / "rehearsed"
NAMES = ("plain", "recorded", "again")
WINDOW_SECONDS = 1.0
_SETS = ("NPU_SHIM_", "TF_CPU_", "TF_ENABLE_", "TF_NUM_", "GLIBC_TUNABLES", "MALLOC_", "LD_PRELOAD", "RANK_")


class Model(NamedTuple):
    """A script of benchmarks/rehearsed, and its flags."""

    script: str
    flags: tuple[str, ...]


MODELS = {
    "session": Model("cnn", ("--dropout=0",)),
    "session, wide": Model("cnn", ("--dropout=0", "--hidden=2048")),
    "fit": Model("keras_cnn", ()),
    "loop": Model("keras_cnn", ("--loop",)),
    "loop, wide": Model("keras_cnn", ("--loop", "--hidden=2048")),
}
SIZES = {True: ("--batch_size=4", "--size=8", "--channels=4"), False: ("--batch_size=32",)}


class Training:
    """A script in a process of its own, which trains when it is asked to.

    Args:
        model: which, and with which flags.
        before: arguments of Python before the script.
    """

    def __init__(self, model: Model, before: Sequence[str] = ()) -> None:
        env = {name: value for name, value in os.environ.items() if not name.startswith(_SETS)}
        env.update(PYTHONPATH=str(ROOT), NPU_SHIM_FALLBACK="silent", TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="")
        self._errors = tempfile.TemporaryFile("w+")
        self._process = subprocess.Popen(
            [sys.executable, *before, str(SCRIPTS / (model.script + ".py")), *model.flags],
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            universal_newlines=True,
        )

    def answer(self, question: Any = None) -> dict[str, Any]:
        """Return the next answer of the script; without a question, wait until it is ready."""
        assert self._process.stdin is not None and self._process.stdout is not None
        if question is not None:
            print(question, file=self._process.stdin, flush=True)
        for line in self._process.stdout:
            if line.startswith("{"):
                return json.loads(line)
        self._errors.seek(0)
        raise RuntimeError(f"{self._process.args} has ended:\n{self._errors.read()[-3000:]}")

    def end(self) -> None:
        """Ends the process."""
        self._process.communicate()
        self._errors.close()


def row_of(kind: str, quick: bool, rounds: int) -> dict[str, Any]:
    """The row of a kind of training."""
    import tensorflow as tf

    model = MODELS[kind]._replace(flags=(*MODELS[kind].flags, *SIZES[quick]))
    with tempfile.TemporaryDirectory() as folder:
        recorded = ("-m", PROCESS, Run("original", "", [], folder).settings_text())
        sides = {name: Training(model, recorded if name == "recorded" else ()) for name in NAMES}
        for training in sides.values():
            weights = training.answer()["weights"]
            training.answer(10)  # these are recorded as a whole
        steps = 1 if quick else max(1, round(WINDOW_SECONDS / sides["plain"].answer(3)["seconds"]))
        windows: dict[str, list[dict[str, Any]]] = {name: [] for name in sides}
        for number in range(rounds):
            for name in sorted(sides, reverse=number % 2 == 1):
                windows[name].append(sides[name].answer(steps))
        for training in sides.values():
            training.end()
        size = (pathlib.Path(folder) / "recording.jsonl").stat().st_size
    assert size, "nothing was recorded"
    row: dict[str, Any] = {"TensorFlow": tf.__version__, "kind": kind, "weights": weights, "steps": steps * rounds}
    for what in ("seconds", "cpu_seconds"):
        taken = {name: [window[what] for window in found] for name, found in windows.items()}
        row["plain " + what] = statistics.median(taken["plain"])
        for name in NAMES[1:]:
            row[f"{name} {what}"] = 1 / turns.ratio(taken["plain"], taken[name])
    return row


def table(rows: list[dict[str, Any]]) -> str:
    """For people."""
    head = ("TensorFlow", "training", "weights, million", "CPU time of a plain step, ms", "recorded", "plain, again")
    return results.markdown(
        head,
        [
            (
                row["TensorFlow"],
                row["kind"],
                f"{row['weights'] / 1e6:.2g}",
                "{:.3g}".format(row["plain cpu_seconds"] * 1e3),
                "{:.2f}".format(row["recorded cpu_seconds"]),
                "{:.2f}".format(row["again cpu_seconds"]),
            )
            for row in rows
        ],
    )


def main(argv: list[str]) -> int:
    """Measures, and says or writes what it found."""
    import tensorflow as tf

    kinds = [kind for kind in MODELS if kind.startswith("session") or hasattr(tf.keras.utils, "set_random_seed")]

    def measured(quick: bool) -> list[dict[str, Any]]:
        return [row_of(kind, quick, 1 if quick else 5) for kind in kinds]

    return results.run(
        "recording", __doc__ or "", argv, "one step of small models: to see that it works", measured, table
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
