"""Predict the training steps whose published throughputs op_times/throughputs.tsv has, and compare.

``python docs/make_predictions.py`` builds the step of each row that names a graph of `networks`, with its batch and
sizes, predicts it with ``npu-shim assess --predict``, and writes op_times/predicted.tsv. It prints how many predictions
are within a factor of the stated time. The range of a step, ``npu_shim/rehearsal/predict/step_range.json``, and the
tables of docs/predict.md are made anew. ``--missing`` keeps the predictions that are there, ``--only TEXT`` measures
rows whose model has a text, ``--table`` measures nothing, ``--jobs N`` runs N at a time. It needs TensorFlow 2.15.
``--example CLONE`` makes the example of the page anew instead, with a clone of the vendor's model zoo and TensorFlow
2.6.
"""

from __future__ import annotations

import argparse
import csv
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from typing import Any, Callable, Iterable, Mapping, NamedTuple, Sequence

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
sys.path[:0] = [HERE, ROOT, os.path.join(ROOT, "tools")]

import verified  # noqa: E402

from npu_shim import cli  # noqa: E402
from npu_shim.rehearsal.predict.ranges import StepRange  # noqa: E402

FOLDER = os.path.join(HERE, "op_times")
STATED = os.path.join(FOLDER, "throughputs.tsv")
PREDICTED = os.path.join(FOLDER, "predicted.tsv")
RANGE = os.path.join(ROOT, "npu_shim", "rehearsal", "predict", "step_range.json")
PAGES = [os.path.join(HERE, "predict.md"), os.path.join(HERE, "zh", "predict.md")]
_BEGIN, _END = "<!-- throughputs -->\n", "<!-- end of throughputs -->\n"
_EXAMPLE_BEGIN, _EXAMPLE_END = "<!-- example -->\n", "<!-- end of example -->\n"
_EXAMPLE = "TensorFlow2/built-in/cv/image_classification/ResNet50_ID0360_for_TensorFlow2.X/tensorflow"
_COMMAND = (
    "npu-shim assess --alias --predict --processor Ascend910A --ranks 8 --apply resnet_ctl_imagenet_main.py -- "
    "--use_synthetic_data --data_format=channels_last --batch_size=256 --train_steps=3 --train_epochs=1 "
    "--steps_per_loop=1 --skip_eval --distribution_strategy=off --model_dir={}"
)
NO_GRAPH = "no builder of its graph"
PROCESSORS = {"Ascend910": "Ascend910A"}  # what a page means by a name
_HELD = 0.8  # of the published steps, for the range
_TAILS = [share / 200 for share in range(20, 0, -1)]  # of the steps on each side of the range
_ADDED = (0.0, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05)  # seconds of the host and the input


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
        graph: a network of op_times/networks with its arguments, or "".
        repository, commit, path: where it is stated, on GitHub with the line, else a site, a version and a page.
        note: how it was read.
        cause: the probable one of a prediction that is far from it.
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
    def network(self) -> str:
        """The network, with any number of layers."""
        name, *words = self.graph.split()
        return words[0] if name == "keras" else name

    @property
    def run(self) -> tuple[str, ...]:
        """The graph and what its prediction depends on: rows with the same share it."""
        processor = PROCESSORS.get(self.processor, self.processor)
        loop = "100" if self.framework == "MindSpore" else "1"  # steps of a call: MindSpore sinks its data
        return self.graph, self.batch, self.size, self.precision, processor, loop


class Result(NamedTuple):
    """A row of predicted.tsv: seconds of a step, what takes them, or a reason.

    Attributes:
        model: as in throughputs.tsv.
        seconds: stated.
        predicted: on the stated number of cards, in servers of eight.
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


def assess(run: tuple[str, ...]) -> dict[str, Any] | str:
    """Return the assessed graph with its prediction, or a reason. It needs a process of its own."""
    graph, batch, size, precision, processor, loop = run
    with tempfile.TemporaryDirectory() as folder:
        path, log = (os.path.join(folder, name) for name in ("assessment.json", "log"))
        words = ["assess", "--predict", "--processor", processor, "--product", "ascend910", "--json", path]
        script = [os.path.join(FOLDER, "train_step.py"), "--", graph, "--batch", batch, "--size", size]
        with open(log, "w", encoding="utf-8") as stream:
            for descriptor in (1, 2):
                os.dup2(stream.fileno(), descriptor)
        os.chdir(folder)
        cli.main([*words, *script, "--precision", precision, "--loop", loop])
        if not os.path.exists(path):
            with open(log, encoding="utf-8") as stream:
                return f"fails: {' '.join(stream.read().split())[-160:]}"
        with open(path, encoding="utf-8") as stream:
            graphs: list[dict[str, Any]] = json.load(stream)["graphs"]
            return graphs[-1]


def result_of(statement: Statement, found: dict[str, Any] | str) -> Result:
    """Return the row of a statement by the assessment of its graph."""
    if isinstance(found, str):
        return Result(statement.model, statement.seconds, reason=found)
    prediction, cards = found["prediction"], int(statement.cards)
    one = prediction["step"]
    waits = next((on["seconds"] - one["value"] for on in prediction["ranks"] if on["ranks"] == cards), 0.0)
    by_type: dict[str, float] = {}
    for op in prediction["ops"]:
        by_type[op["type"]] = by_type.get(op["type"], 0.0) + op["seconds"]
    longest = sorted(by_type.items(), key=lambda item: -item[1])[:4]
    total = sum(by_type.values()) or 1.0
    return Result(
        statement.model,
        statement.seconds,
        predicted=f"{one['value'] + waits:.4g}",
        ratio=f"{(one['value'] + waits) / float(statement.seconds):.3g}",
        bound=f"{found['roofline']['bound_seconds']:.4g}",
        ops=str(prediction["op_runs"]),
        unmeasured=str(prediction["not_measured"]),
        longest=", ".join(f"{name} {100 * part / total:.0f} %" for name, part in longest),
    )


def rows_of(found: dict[tuple[str, ...], dict[str, Any] | str], known: dict[str, Result]) -> list[Result]:
    """Return the rows of predicted.tsv: of new assessments, else those that are known."""
    rows = []
    for statement in statements():
        if not statement.graph:
            rows.append(Result(statement.model, statement.seconds, reason=NO_GRAPH))
        elif statement.run in found:
            rows.append(result_of(statement, found[statement.run]))
        else:
            not_measured = Result(statement.model, statement.seconds, reason="not measured")
            rows.append(known.get(statement.model, not_measured))
    return rows


def measure(wanted: Callable[[Statement], bool], jobs: int) -> None:
    """Predict the rows that are wanted, and write predicted.tsv after each graph."""
    known = results()
    runs = list(dict.fromkeys(row.run for row in statements() if row.graph and wanted(row)))
    found: dict[tuple[str, ...], dict[str, Any] | str] = {}
    server = multiprocessing.get_context("forkserver")
    server.set_forkserver_preload(["tensorflow"])  # once, not for each graph
    with ProcessPoolExecutor(jobs, server, max_tasks_per_child=1) as pool:
        for run, assessed in zip(runs, pool.map(assess, runs)):
            found[run] = assessed
            print(*run, assessed if isinstance(assessed, str) else "", file=sys.stderr, flush=True)
            write(rows_of(found, known))


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


def fitted_range(pairs: Sequence[Compared], tail: float) -> StepRange:
    """Return the narrowest range that leaves a share of the steps on each side of it."""
    stated, predicted = (
        np.array(column, dtype=float)
        for column in zip(*((pair.statement.seconds, pair.result.predicted) for pair in pairs))
    )
    above = [(float(np.quantile((stated - added) / predicted, 1 - tail)), added) for added in _ADDED]
    high, added = min(above, key=lambda pair: np.log(pair[0] + pair[1] / predicted).mean())
    networks = len({pair.statement.network for pair in pairs})
    return StepRange(float(np.quantile(stated / predicted, tail)), high, added, len(pairs), networks, 0.0)


def step_range(pairs: Sequence[Compared]) -> tuple[StepRange, dict[str, bool]]:
    """Return the range of a step, and by model whether the range of the other networks holds for it."""
    networks = sorted({pair.statement.network for pair in pairs})
    for tail in _TAILS:
        holds = {}
        for network in networks:
            others = fitted_range([pair for pair in pairs if pair.statement.network != network], tail)
            for row, result in pairs:
                around = others.around(float(result.predicted))
                if row.network == network:
                    holds[row.model] = around.low <= float(row.seconds) <= around.high
        if sum(holds.values()) >= _HELD * len(pairs):
            break
    held = sum(holds.values()) / len(pairs)
    rounded = (round(number, 3) for number in fitted_range(pairs, tail)[:3])
    return StepRange(*rounded, len(pairs), len(networks), round(held, 3)), holds


def within(pairs: Sequence[Compared], holds: Mapping[str, bool]) -> list[str]:
    """Return the shares of predictions within factors of the stated time, in the range, and the median ratio."""
    shares = [sum(pair.factor <= factor for pair in pairs) / len(pairs) for factor in (1.5, 2, 3)]
    inside = sum(holds[pair.statement.model] for pair in pairs) / len(pairs)
    middle = sorted(float(pair.result.ratio) for pair in pairs)[len(pairs) // 2]
    return [*(f"{100 * share:.0f} %" for share in (*shares, inside)), f"{middle:.2f}"]


def groups(pairs: Sequence[Compared]) -> dict[str, list[Compared]]:
    """Return the rows by what they have in common."""
    found: dict[str, list[Compared]] = {"all": list(pairs)}
    for place in range(4):
        for pair in pairs:
            row, seconds = pair.statement, float(pair.statement.seconds)
            cards = "one card" if row.cards == "1" else "several cards"
            time = "below 20 ms" if seconds < 0.02 else "20 to 100 ms" if seconds < 0.1 else "100 ms and more"
            found.setdefault((row.kind, row.framework, cards, time)[place], []).append(pair)
    return found


_COLUMNS = ("networks", "rows", "within 1.5", "within 2", "within 3", "in the range", "median of predicted / stated")


def summary() -> str:
    """Return the shares of all and of groups, and the worst with their causes."""
    pairs = comparisons()
    of_all, holds = step_range(pairs)
    lines = ["\t".join(_COLUMNS)]
    lines += ["\t".join([name, str(len(group)), *within(group, holds)]) for name, group in groups(pairs).items()]
    above = [pair.statement.model for pair in pairs if float(pair.result.bound) > float(pair.statement.seconds)]
    lines.append(f"stated below the bound of the data sheet: {', '.join(above) or 'none'}")
    lines.append(
        f"a step takes {of_all.low:g} to {of_all.high:g} times the predicted time and {1000 * of_all.added:g} ms more: "
        f"so do {of_all.held:.0%} of {of_all.steps} steps, each of them by the range of the other networks"
    )
    worst = sorted((pair for pair in pairs if pair.factor > 2), key=lambda pair: -pair.factor)
    lines += [f"{result.ratio:>7} {row.model}: {row.cause or result.longest}" for row, result in worst]
    return "\n".join(lines)


def tables() -> str:
    """Return the tables of the page: shares of groups, and each row."""
    pairs = comparisons()
    of_all, holds = step_range(pairs)
    shares = [[name, len(group), *within(group, holds)] for name, group in groups(pairs).items()]
    rows = []
    for row, result in pairs:
        around = of_all.around(float(result.predicted))
        stated, predicted, low, high = (
            f"{1000 * number:.3g}" for number in (float(row.seconds), around.value, around.low, around.high)
        )
        cells = [f"[{row.model}]({row.link})", row.framework, row.cards, row.batch, stated, predicted]
        rows.append([*cells, f"{low} to {high}", result.ratio, row.cause if is_far(result) else ""])
    columns = (
        "network",
        "framework",
        "cards",
        "batch",
        "stated, ms",
        "predicted, ms",
        "range",
        "ratio",
        "probable cause beyond 2",
    )
    return verified.markdown(_COLUMNS, shares) + "\n" + verified.markdown(columns, rows)


def is_far(result: Result) -> bool:
    """Return True if a prediction is off by more than a factor of 2."""
    return not 0.5 <= float(result.ratio) <= 2


def example(clone: str) -> str:
    """Return the block of the page: the command, and what it prints of the prediction."""
    path = os.pathsep.join([ROOT, os.path.join(ROOT, "tools"), ".."])
    with tempfile.TemporaryDirectory() as folder:
        words = [sys.executable, "-m", "npu_shim", *_COMMAND.format(folder).split()[1:]]
        done = subprocess.run(
            words,
            cwd=os.path.join(clone, _EXAMPLE),
            env={**os.environ, "PYTHONPATH": path},
            stdout=subprocess.PIPE,
            check=True,
            text=True,
        )
    shown = done.stdout[done.stdout.index("a step on ") :].rstrip()
    lines = "\n".join(line.rstrip() for line in shown.splitlines())
    return f"```bash\n{_COMMAND.format('model')}\n```\n\n```text\n{lines}\n```\n"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--missing", action="store_true")
    parser.add_argument("--only", default="", metavar="TEXT")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--jobs", type=int, default=1, metavar="N")
    parser.add_argument("--example", metavar="CLONE")
    given = parser.parse_args(arguments)
    if given.example:
        verified.put(example(given.example), _EXAMPLE_BEGIN, _EXAMPLE_END, PAGES)
        return
    if not given.table:
        known = results()
        absent = {row.model for row in statements() if not known.get(row.model, Result("", "")).predicted}
        measure(lambda row: given.only in row.model and (not given.missing or row.model in absent), given.jobs)
    with open(RANGE, "w", encoding="utf-8", newline="\n") as file:
        json.dump(step_range(comparisons())[0]._asdict(), file, indent=1)
        file.write("\n")
    verified.put(tables(), _BEGIN, _END, PAGES)
    print(summary())


if __name__ == "__main__":
    main()
