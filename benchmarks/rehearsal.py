"""The speed of a migrated script on the CPU, against the original under TensorFlow alone.

    python benchmarks/rehearsal.py            prints a table; takes about four minutes
    python benchmarks/rehearsal.py --write    and puts it into benchmarks/RESULTS.md and results.json

The scripts of benchmarks/rehearsed are migrated by the tool. Original and migrated
script train in processes of their own, a window of steps each in turns, and so do
the migrated one with NPU_SHIM_MEMORY=returned and a second one of the original, which
shows how much is chance. That all come to the same losses is seen without dropout,
whose masks differ.
"""

from __future__ import annotations

import argparse
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

SCRIPTS = ROOT / "benchmarks" / "rehearsed"
TOOL = ROOT / "tools" / "convert_tf2npu" / "main.py"
CHECKED_STEPS = 5
TOLERANCE = 1e-5  # relative, of a loss
WINDOW_SECONDS = 1.0
TRACES = 3
_SETS = ("NPU_SHIM_", "TF_CPU_", "TF_ENABLE_", "TF_NUM_", "GLIBC_TUNABLES", "MALLOC_", "LD_PRELOAD", "RANK_")


class Model(NamedTuple):
    """A script, and the size it is trained at."""

    script: str
    size: str
    flags: tuple[str, ...]


MODELS = (
    Model("cnn", "64 images of 8x8", ("--batch_size=64", "--size=8", "--channels=16")),
    Model("cnn", "128 images of 32x32", ("--batch_size=128",)),
    Model("encoder", "32x128 tokens, width 256", ("--batch_size=32",)),
    Model("encoder", "64x128 tokens, width 256", ("--batch_size=64",)),
    Model("lstm", "128 sequences of 50, width 256", ("--batch_size=128",)),
)
QUICK = (
    Model("cnn", "small", ("--batch_size=8", "--size=8", "--channels=4")),
    Model("encoder", "small", ("--batch_size=4", "--length=16", "--hidden=32", "--layers=1")),
    Model("lstm", "small", ("--batch_size=8", "--length=5", "--hidden=16")),
)


class Training:
    """A script in a process of its own, which trains when it is asked to.

    Args:
        folder: of the script.
        model: which, and with which flags.
        more: flags and, as NAME=VALUE without dashes, variables.
        before: arguments of Python before the script.
    """

    def __init__(self, folder: pathlib.Path, model: Model, *more: str, before: Sequence[str] = ()) -> None:
        env = {name: value for name, value in os.environ.items() if not name.startswith(_SETS)}
        env.update(PYTHONPATH=str(ROOT), NPU_SHIM_FALLBACK="silent", TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="")
        env.update(part.split("=", 1) for part in more if not part.startswith("--"))
        flags = [*model.flags, *(part for part in more if part.startswith("--"))]
        self._errors = tempfile.TemporaryFile("w+")
        self._process = subprocess.Popen(
            [sys.executable, *before, str(folder / (model.script + ".py")), *flags],
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


def row_of(folders: dict[str, pathlib.Path], model: Model, quick: bool, rounds: int) -> dict[str, Any]:
    """The row of a model; a quick one without dropout, and of original and migrated script alone."""
    sides = {name: Training(folder, model, "--dropout=0") for name, folder in folders.items()}
    if not quick:
        sides["again"] = Training(folders["original"], model, "--dropout=0")
    row: dict[str, Any] = {"model": model.script, "size": model.size, "difference": checked(sides, model)}
    if not quick:
        for training in sides.values():
            training.end()
        sides = {name: Training(folder, model) for name, folder in folders.items()}
        sides["returned"] = Training(folders["migrated"], model, "NPU_SHIM_MEMORY=returned")
        sides["again"] = Training(folders["original"], model)
        for training in sides.values():
            training.answer()
    row.update(measured(sides, rounds))
    for training in sides.values():
        training.end()
    return row


def checked(sides: dict[str, Training], model: Model) -> dict[str, float]:
    """The largest relative difference of a loss from the original's, by side.

    Raises:
        AssertionError: it is too large.
    """
    losses = {}
    for name, training in sides.items():
        training.answer()
        losses[name] = training.answer(CHECKED_STEPS)["losses"]
    found = {
        name: max(abs(one - other) / one for one, other in zip(losses["original"], made))
        for name, made in losses.items()
        if name != "original"
    }
    assert max(found.values()) <= TOLERANCE, f"{model.script}, {model.size}: the losses are {losses}"
    return found


def measured(sides: dict[str, Training], rounds: int) -> dict[str, Any]:
    """Seconds of a step, ratios to the original's, peak memory, and what no migration could be faster than."""
    for training in sides.values():
        training.answer(2)
    steps = max(1, min(100, round(WINDOW_SECONDS / sides["original"].answer(1)["seconds"]))) if rounds > 1 else 1
    windows: dict[str, list[dict[str, Any]]] = {name: [] for name in sides}
    for number in range(rounds):
        for name in sorted(sides, reverse=number % 2 == 1):
            windows[name].append(sides[name].answer(steps))
    share = statistics.median(sides["original"].answer("trace")["share"] for _ in range(TRACES))
    row: dict[str, Any] = {"steps": steps * rounds, "limit": 1 / share}
    seconds = {name: [window["seconds"] for window in found] for name, found in windows.items()}
    processor = {name: [window["cpu_seconds"] for window in found] for name, found in windows.items()}
    for name in sides:
        row[name] = {
            "seconds": statistics.median(seconds[name]),
            "peak_mb": windows[name][-1]["peak_mb"],
            "ratio": turns.ratio(seconds["original"], seconds[name]),
            "cpu_ratio": turns.ratio(processor["original"], processor[name]),
        }
    return row


def table(rows: list[dict[str, Any]]) -> str:
    """For people."""
    head = (
        "TensorFlow",
        "model",
        "size of a step",
        "original, ms",
        "migrated",
        "CPU time",
        "memory returned",
        "original, again",
        "limit",
        "original, peak MB",
        "migrated",
        "memory returned",
        "losses differ by",
        "original, again",
    )
    lines = []
    for row in rows:
        returned, again = row.get("returned"), row.get("again")
        lines.append(
            (
                row["TensorFlow"],
                row["model"],
                row["size"],
                f"{row['original']['seconds'] * 1e3:.3g}",
                "{:.2f}".format(row["migrated"]["ratio"]),
                "{:.2f}".format(row["migrated"]["cpu_ratio"]),
                "{:.2f}".format(returned["ratio"]) if returned else "-",
                "{:.2f}".format(again["ratio"]) if again else "-",
                "{:.2f}".format(row["limit"]),
                f"{row['original']['peak_mb']:.0f}",
                f"{row['migrated']['peak_mb']:.0f}",
                f"{returned['peak_mb']:.0f}" if returned else "-",
                *(
                    "{:.0e}".format(row["difference"][name]) if name in row["difference"] else "-"
                    for name in ("migrated", "again")
                ),
            )
        )
    return results.markdown(head, lines)


def main(argv: list[str]) -> int:
    """Measures, and says or writes what it found."""
    import tensorflow as tf

    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--write", action="store_true", help="put the table into benchmarks/RESULTS.md")
    parser.add_argument("--quick", action="store_true", help="one step of small models: to see that it works")
    parser.add_argument("--rounds", type=int, default=7, help="of which the median is taken (7)")
    parser.add_argument("--models", nargs="*", help="only these scripts, and what --write keeps of others stays")
    args = parser.parse_args(argv)
    rows = []
    with tempfile.TemporaryDirectory() as made:
        folders = {"original": SCRIPTS, "migrated": pathlib.Path(made) / "migrated"}
        subprocess.run(
            [sys.executable, str(TOOL), "-i", str(SCRIPTS), "-o", str(folders["migrated"])],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        for model in QUICK if args.quick else MODELS:
            if not args.models or model.script in args.models:
                row = row_of(folders, model, args.quick, 1 if args.quick else args.rounds)
                rows.append({"TensorFlow": tf.__version__, **row})
                print(json.dumps(rows[-1]), flush=True)
    if args.write:
        known = [_what(row) for row in rows]
        rows += [row for row in results.kept("rehearsal") if _what(row) not in known]
        rows.sort(key=lambda row: ([int(part) for part in row["TensorFlow"].split(".")], _what(row)))
    results.report("rehearsal", table(rows), rows, args.write)
    return 0


def _what(row: dict[str, Any]) -> tuple[str, ...]:
    return row["TensorFlow"], row["model"], row["size"]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
