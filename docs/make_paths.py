"""Take the samples through assess, convert, verify and two ranks, for the table of docs/verify.md.

``python docs/make_paths.py`` runs the commands with the TensorFlow of this Python and writes the table; some minutes.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from typing import NamedTuple, Sequence

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

from verified import ROOT, TOOL, markdown, put, read, run  # noqa: E402

_BEGIN, _END = "<!-- made by docs/make_paths.py -->\n", "<!-- end -->\n"
_STEPS = "--steps=12"
_COLUMNS = (
    "sample",
    "TensorFlow",
    "operators, not on the device",
    "changes, findings",
    "verify",
    "two ranks",
    "seconds",
)


class Sample(NamedTuple):
    """A sample and how it is run.

    Attributes:
        name: its folder.
        flags: arguments of one process.
        rank_flags: arguments of one process and of ranks when these are compared.
        batch_size: of a rank; one process takes twice as many examples.
        mode: the option -d of the migration tool, "" for none.
        whole_flags: arguments of the one process with which ranks are compared.
    """

    name: str
    flags: Sequence[str] = ()
    rank_flags: Sequence[str] = ("--dropout=0",)
    batch_size: int = 64
    mode: str = ""
    whole_flags: str = ""


SAMPLES = (
    Sample("digits_estimator"),
    Sample("digits_session"),
    Sample("text_keras"),
    Sample("digits_fit"),
    Sample("digits_loop"),
    Sample(
        "digits_horovod",
        rank_flags=("--optimizer=sgd",),
        batch_size=32,
        mode="horovod",
        whole_flags="--learning_rate=0.002",
    ),
    Sample("digits_gan", rank_flags=(), mode="horovod"),
)


class Row(NamedTuple):
    """A row of the table.

    Attributes:
        name, version: of the sample, and of TensorFlow.
        operators, problems: nodes of the training steps, and what would not run on the device.
        rewrites, findings: of the migration tool.
        verdict, ranks_verdict: of verify, with one process and with two ranks.
        difference, ranks_difference: the largest relative difference of a loss.
        seconds: of the four commands together.
    """

    name: str
    version: str
    operators: int
    problems: int
    rewrites: int
    findings: int
    verdict: str
    difference: float
    ranks_verdict: str
    ranks_difference: float
    seconds: float


def measure(sample: Sample, folder: str) -> Row:
    """Run the four commands for a sample.

    Args:
        sample: which.
        folder: an empty folder for reports.
    """
    begin = time.time()
    path = os.path.join(ROOT, "samples", sample.name)
    original = os.path.join(path, "original.py")
    assessed, report = os.path.join(folder, "assess.json"), os.path.join(folder, "report")
    mode, alias = (["-d", sample.mode], ["--alias"]) if sample.mode else ([], [])
    run(["-m", "npu_shim", "assess", *alias, "--json", assessed, original, "--", *sample.flags])
    run([TOOL, "-i", original, "-o", folder, "-r", report, *mode])
    verdict, difference = verify(
        os.path.join(folder, "one"), [original, os.path.join(folder, "original.py")], [_STEPS, *sample.flags]
    )
    ranks = os.path.join(path, "distributed_npu.py")
    scripts = [original, ranks if os.path.exists(ranks) else os.path.join(folder, "original.py")]
    sizes = [
        f"--original-arguments=--batch_size={2 * sample.batch_size} {sample.whole_flags}",
        f"--migrated-arguments=--batch_size={sample.batch_size}",
    ]
    both = verify(os.path.join(folder, "two"), ["--ranks", "2", *sizes, *scripts], [_STEPS, *sample.rank_flags])
    graphs = read(assessed)
    operators = [each for graph in graphs["graphs"] if graph["kind"] == "train" for each in graph["operators"]]
    counts = read(os.path.join(report, "report.json"))["summary"]
    return Row(
        sample.name,
        graphs["tensorflow"],
        sum(each["count"] for each in operators),
        len(graphs["problems"]),
        counts["rewrites"],
        counts["findings"],
        verdict,
        difference,
        *both,
        time.time() - begin,
    )


def verify(report: str, arguments: Sequence[str], flags: Sequence[str]) -> tuple[str, float]:
    """Return the verdict of verify in a folder, and the largest relative difference of a loss."""
    run(["-m", "npu_shim", "verify", "-r", report, *arguments, "--", *flags])
    found = read(os.path.join(report, "verify.json"))
    streams = [each for each in found["streams"] if each["kind"] == "loss"]
    return found["verdict"], max(each["largest_difference"] for each in streams)


def table(rows: Sequence[Row]) -> str:
    """Return the rows as Markdown."""
    cells = [
        (
            f"[{row.name}](../samples/{row.name})",
            row.version,
            f"{row.operators}, {row.problems}",
            f"{row.rewrites}, {row.findings}",
            f"{row.verdict}, {number(row.difference)}",
            f"{row.ranks_verdict}, {number(row.ranks_difference)}",
            f"{row.seconds:.0f}",
        )
        for row in rows
    ]
    return markdown(_COLUMNS, cells)


def number(value: float) -> str:
    """Return a difference with one digit, 0 without one."""
    return f"{value:.0e}" if value else "0"


def main() -> int:
    """Write the table."""
    rows = []
    for sample in SAMPLES:
        with tempfile.TemporaryDirectory() as folder:
            rows.append(measure(sample, folder))
    put(table(rows), _BEGIN, _END)
    return 0


if __name__ == "__main__":
    sys.exit(main())
