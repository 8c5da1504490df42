"""Samples that npu-shim observe runs, against the same samples that Python runs.

    python benchmarks/observing.py            prints a table; takes some minutes
    python benchmarks/observing.py --write    and puts it into benchmarks/RESULTS.md and results.json

An Estimator and a session train with TensorFlow 1.15, a loop over a gradient tape and Keras' fit with TensorFlow 2.
Each run is a process from its start to its end, with the conversion of the script and the file of facts. Python and
observe take turns, and a second run of Python in each round shows how much is chance.
"""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import tempfile
import time
from typing import Any, NamedTuple, Sequence

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks import results, turns  # noqa: E402
from samples import training  # noqa: E402

SAMPLES = {True: ("digits_estimator", "digits_session"), False: ("digits_loop", "digits_fit")}  # of TensorFlow 1, of 2
NAMES = ("plain", "observed", "again")
STEPS, ROUNDS = 4000, 5


class Taken(NamedTuple):
    """The seconds that a process took: of the clock, and of the processor in user mode."""

    seconds: float
    cpu_seconds: float


def run(command: Sequence[str]) -> Taken:
    """Run Python with some arguments."""
    begin = time.perf_counter()
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(
            [sys.executable, *command], env=training.environment(), stdout=output, stderr=subprocess.STDOUT
        )
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = status  # it is waited for
        if status:
            output.seek(0)
            raise RuntimeError(f"{' '.join(command)} has failed:\n{output.read()[-3000:]}")
    return Taken(time.perf_counter() - begin, usage.ru_utime)


def row_of(sample: str, steps: int, rounds: int) -> dict[str, Any]:
    """The row of a sample."""
    import tensorflow as tf

    script = [str(ROOT / "samples" / sample / "original.py"), f"--steps={steps}"]
    with tempfile.TemporaryDirectory() as folder:
        facts = os.path.join(folder, "facts.json")
        sides = {name: script for name in NAMES}
        sides["observed"] = ["-m", "npu_shim", "observe", "-o", facts, *script]
        taken: dict[str, list[Taken]] = {name: [] for name in NAMES}
        for number in range(rounds):
            for name in sorted(NAMES, reverse=number % 2 == 1):
                taken[name].append(run(sides[name]))
        assert os.path.getsize(facts), "nothing was observed"
    row: dict[str, Any] = {"TensorFlow": tf.__version__, "sample": sample, "steps": steps}
    for what in Taken._fields:
        seconds = {name: [getattr(one, what) for one in runs] for name, runs in taken.items()}
        row["plain " + what] = min(seconds["plain"])
        for name in NAMES[1:]:
            row[f"{name} {what}"] = 1 / turns.ratio(seconds["plain"], seconds[name])
    return row


def table(rows: list[dict[str, Any]]) -> str:
    """For people."""
    head = ("TensorFlow", "sample", "steps", "CPU time of a plain run, s", "observed", "plain, again")
    head += ("time of a plain run, s", "observed", "plain, again")
    return results.markdown(
        head,
        [
            (
                row["TensorFlow"],
                row["sample"],
                str(row["steps"]),
                *(
                    cell
                    for what in ("cpu_seconds", "seconds")
                    for cell in (
                        f"{row['plain ' + what]:.3g}",
                        f"{row['observed ' + what]:.2f}",
                        f"{row['again ' + what]:.2f}",
                    )
                ),
            )
            for row in rows
        ],
    )


def main(argv: list[str]) -> int:
    """Measures, and says or writes what it found."""
    import tensorflow as tf

    samples = SAMPLES[tf.__version__.startswith("1.")]

    def measured(quick: bool) -> list[dict[str, Any]]:
        return [row_of(sample, *((20, 1) if quick else (STEPS, ROUNDS))) for sample in samples]

    return results.run("observing", __doc__ or "", argv, "few steps, once: to see that it works", measured, table)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
