"""Predict the training steps whose published throughputs op_times/throughputs.tsv has, and compare.

``python docs/make_predictions.py`` builds the step of each row that names a graph in `networks.py`, with its batch and
sizes, predicts it with ``npu-shim assess --predict`` on one card, and writes op_times/predicted.tsv. It prints how
many predictions are within a factor of the stated time. ``--missing`` keeps the rows that are there, ``--only TEXT``
measures rows whose model has a text, ``--summary`` prints without a measurement, ``--table`` prints the table of
docs/predict.md, ``--jobs N`` runs N at a time. It needs TensorFlow 2.15.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from typing import Callable, Iterable, NamedTuple, Sequence

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
FOLDER = os.path.join(HERE, "op_times")
STATED = os.path.join(FOLDER, "throughputs.tsv")
PREDICTED = os.path.join(FOLDER, "predicted.tsv")
NO_GRAPH = "no builder of its graph"
PROCESSORS = {"Ascend910": "Ascend910A"}  # what a page means by a name
_TIMEOUT = 1200


class Statement(NamedTuple):
    """A row of throughputs.tsv.

    Attributes:
        model: names the row.
        kind: of network.
        framework: of the statement.
        processor, cards: as stated.
        batch: of a card; "" if it is not stated, as for the next two.
        precision: the precision_mode of the graph.
        size: of an example.
        stated, unit: the number as it is stated.
        seconds: of a step; "" if the statement does not say.
        graph: a network of networks.py with its arguments, or "".
        repository, commit, path: where it is stated, on GitHub with the line, else a site, a version and a page.
        note: how it was read.
        cause: of a prediction that is far from it.
    """

    model: str
    kind: str
    framework: str
    processor: str
    cards: str
    batch: str
    precision: str
    size: str
    stated: str
    unit: str
    seconds: str
    graph: str
    repository: str
    commit: str
    path: str
    note: str
    cause: str

    @property
    def link(self) -> str:
        """The address of the page."""
        if "/" not in self.repository:
            return f"https://{self.repository}/{self.path}"
        return f"https://github.com/{self.repository}/blob/{self.commit}/{self.path}"

    @property
    def run(self) -> tuple[str, ...]:
        """The graph and its arguments: rows with the same have the same prediction."""
        return self.graph, self.batch, self.size, self.precision, PROCESSORS.get(self.processor, self.processor)


class Result(NamedTuple):
    """A row of predicted.tsv: seconds of a step, what takes them, or a reason.

    Attributes:
        model: as in throughputs.tsv.
        seconds: stated.
        predicted, low, high: of one card, with the range.
        ratio: predicted / stated.
        bound: by the data sheet.
        ops: of the device in a step.
        unmeasured: those whose type was not measured on this family.
        longest: the types of ops that take the most time, with their shares.
        reason: why there is no prediction.
    """

    model: str
    seconds: str
    predicted: str = ""
    low: str = ""
    high: str = ""
    ratio: str = ""
    bound: str = ""
    ops: str = ""
    unmeasured: str = ""
    longest: str = ""
    reason: str = ""


def read(path: str) -> list[dict[str, str]]:
    """Return the rows of a table."""
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


def statements() -> list[Statement]:
    """Return the rows of throughputs.tsv."""
    return [Statement(**row) for row in read(STATED)]


def results() -> dict[str, Result]:
    """Return the rows of predicted.tsv by their models."""
    return {row["model"]: Result(**row) for row in read(PREDICTED)} if os.path.exists(PREDICTED) else {}


def write(rows: Iterable[Result]) -> None:
    """Write predicted.tsv."""
    with open(PREDICTED, "w", encoding="utf-8", newline="\n") as file:
        for row in (Result._fields, *rows):
            print(*row, sep="\t", file=file)


def predict(run: tuple[str, ...]) -> Result:
    """Return the prediction of a graph, without a model."""
    graph, batch, size, precision, processor = run
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "assessment.json")
        words = ["assess", "--predict", "--processor", processor, "--product", "ascend910", "--json", path]
        script = [os.path.join(FOLDER, "networks.py"), "--", graph, "--batch", batch, "--size", size]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([ROOT, os.path.join(ROOT, "tools")])}
        try:
            done = subprocess.run(
                [sys.executable, "-m", "npu_shim", *words, *script, "--precision", precision],
                cwd=folder,
                env=environment,
                capture_output=True,
                text=True,
                timeout=_TIMEOUT,
            )
        except subprocess.TimeoutExpired:
            return Result("", "", reason=f"no prediction in {_TIMEOUT} s")
        if not os.path.exists(path):
            return Result("", "", reason=f"fails: {' '.join(done.stderr.split())[-160:]}")
        with open(path, encoding="utf-8") as file:
            found = json.load(file)["graphs"][-1]
    prediction, bound = found["prediction"], found["roofline"]["bound_seconds"]
    step, by_type = prediction["step"], dict.fromkeys((op["type"] for op in prediction["ops"]), 0.0)
    for op in prediction["ops"]:
        by_type[op["type"]] += op["seconds"]
    total = sum(by_type.values()) or 1.0
    longest = sorted(by_type.items(), key=lambda item: -item[1])[:4]
    return Result(
        "",
        "",
        *(f"{step[name]:.4g}" for name in ("value", "low", "high")),
        bound=f"{bound:.4g}",
        ops=str(prediction["op_runs"]),
        unmeasured=str(prediction["not_measured"]),
        longest=", ".join(f"{name} {100 * seconds / total:.0f} %" for name, seconds in longest),
    )


def compared(statement: Statement, result: Result) -> Result:
    """Return a prediction as that of a statement."""
    row = result._replace(model=statement.model, seconds=statement.seconds)
    if not statement.graph:
        return Result(statement.model, statement.seconds, reason=NO_GRAPH)
    if row.predicted and statement.seconds:
        row = row._replace(ratio=f"{float(row.predicted) / float(statement.seconds):.3g}")
    return row


def measure(wanted: Callable[[Statement], bool], jobs: int) -> None:
    """Predict the rows that are wanted, and write predicted.tsv after each graph."""
    rows, known = statements(), results()
    runs = {row.run: "" for row in rows if row.graph and wanted(row)}
    done = {row.run: known[row.model] for row in rows if row.model in known and row.run not in runs}
    with ThreadPoolExecutor(jobs) as pool:
        for run, result in zip(runs, pool.map(predict, runs)):
            done[run] = result
            print(*run, result.predicted or result.reason, file=sys.stderr, flush=True)
            write(compared(row, done.get(row.run, Result("", "", reason="not measured"))) for row in rows)
    write(compared(row, done.get(row.run, Result("", "", reason="not measured"))) for row in rows)


class Compared(NamedTuple):
    """A statement with its prediction."""

    statement: Statement
    result: Result

    @property
    def factor(self) -> float:
        """By how much the prediction is off, at least 1."""
        ratio = float(self.result.ratio)
        return max(ratio, 1 / ratio)


def comparisons() -> list[Compared]:
    """Return the rows that have a prediction and a stated time."""
    known = results()
    pairs = [Compared(row, known[row.model]) for row in statements() if row.model in known]
    return [pair for pair in pairs if pair.result.ratio]


def share_line(name: str, pairs: Sequence[Compared]) -> str:
    """Return the shares of predictions within factors of the stated time."""
    shares = (sum(pair.factor <= factor for pair in pairs) / len(pairs) for factor in (1.5, 2, 3))
    inside = sum(float(p.result.low) <= float(p.statement.seconds) <= float(p.result.high) for p in pairs) / len(pairs)
    middle = sorted(float(pair.result.ratio) for pair in pairs)[len(pairs) // 2]
    within = " ".join(f"{100 * share:6.0f} %" for share in (*shares, inside))
    return f"{name:24} {len(pairs):4} {within}   {middle:.2f}"


def summary() -> str:
    """Return the shares of all, by kind, framework and time, and the worst with their causes."""
    pairs = comparisons()
    groups: dict[str, list[Compared]] = {"all": pairs}
    for pair in pairs:
        row = pair.statement
        seconds = float(row.seconds)
        of_time = "below 20 ms" if seconds < 0.02 else "20 to 100 ms" if seconds < 0.1 else "100 ms and more"
        for name in (row.kind, row.framework, "one card" if row.cards == "1" else "several cards", of_time):
            groups.setdefault(name, []).append(pair)
    lines = [f"{'within a factor':24} {'rows':>4} {'1.5':>8} {'2':>8} {'3':>8} {'range':>8}   median predicted/stated"]
    lines += [share_line(name, group) for name, group in groups.items()]
    above = [pair.statement.model for pair in pairs if float(pair.result.bound) > float(pair.statement.seconds)]
    lines.append(f"stated below the bound of the data sheet: {', '.join(above) or 'none'}")
    for pair in sorted(pairs, key=lambda pair: -pair.factor)[:20]:
        row, result = pair
        lines.append(f"{result.ratio:>6} {row.model}: {row.cause or result.longest}")
    return "\n".join(lines)


def table() -> str:
    """Return the table of the page in Markdown."""
    lines = ["| network | framework | cards | batch | stated | predicted | range | ratio |"]
    lines.append("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for row, result in comparisons():
        stated, predicted, low, high = (
            f"{1000 * float(text):.3g}" for text in (row.seconds, result.predicted, result.low, result.high)
        )
        cells = [f"[{row.model}]({row.link})", row.framework, row.cards, row.batch, f"{stated} ms", f"{predicted} ms"]
        lines.append(f"| {' | '.join(cells)} | {low} to {high} | {result.ratio} |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--missing", action="store_true")
    parser.add_argument("--only", default="", metavar="TEXT")
    parser.add_argument("--summary", action="store_true")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--jobs", type=int, default=1, metavar="N")
    given = parser.parse_args(arguments)
    if given.table:
        print(table())
        return
    if not given.summary:
        known = results()
        absent = {row.model for row in statements() if not known.get(row.model, Result("", "")).predicted}
        measure(lambda row: given.only in row.model and (not given.missing or row.model in absent), given.jobs)
    print(summary())


if __name__ == "__main__":
    main()
