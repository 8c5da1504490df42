"""The history of a run as one HTML page."""

from __future__ import annotations

import statistics
from typing import Iterator

import npu_shim
from npu_shim.rehearsal.numerics.history import BadOp, History, Step, finite
from npu_shim.rehearsal.reports.chart import Line, chart
from npu_shim.rehearsal.web import clean, page, section

_MOST_ROWS = 30


def to_html(history: History, command: str, tensorflow: str) -> str:
    """Return the page.

    Args:
        history: of the run.
        command: the script and its arguments.
        tensorflow: its version.
    """
    footer = f"npu_shim {npu_shim.__version__}, TensorFlow {tensorflow}"
    return page("Numbers of a run", "Numbers of a run", command, "", "\n".join(_body(history)), footer)


def _body(history: History) -> Iterator[str]:
    problems = list(history.problems())
    state, verdict = ("differ", "Problems") if problems else ("agree", "No problem was found.")
    yield f'<p class="verdict {state}">{verdict}</p>\n'
    for problem in problems:
        yield f"<p>{clean(problem)}</p>\n"
    yield (
        f'<p class="quiet">{history.count} steps, {history.skipped} of them skipped by the loss scale, '
        f"{history.bad} with Inf or NaN in the loss or the gradients.</p>\n"
    )
    by_optimizer: dict[int, list[Step]] = {}
    for step in history.steps:
        by_optimizer.setdefault(step.optimizer, []).append(step)
    for number, steps in sorted(by_optimizer.items()):
        mark = f" of optimizer {number + 1}" if len(by_optimizer) > 1 else ""
        yield from _curves(mark, steps)
        yield section(
            f"Gradient norms by variable{mark}", ["variable", "first", "median", "largest", "last"], _norms(steps)
        )
    bad = [step for step in history.steps if step.is_bad][:_MOST_ROWS]
    if bad:
        rows = [
            [str(step.step), "skipped" if step.skipped else "applied", "" if step.scale is None else f"{step.scale:g}"]
            + _op_cells(step.ops[0] if step.ops else None)
            for step in bad
        ]
        head = ["step", "update", "loss scale", "first op", "line", "outputs", "inputs"]
        yield section("Steps with Inf or NaN", head, rows)
    if history.harmless:
        rows = [_op_cells(op) for op in list(history.harmless.values())[:_MOST_ROWS]]
        head = ["op", "line", "outputs", "inputs"]
        yield section("Inf or NaN that reached neither the loss nor a gradient", head, rows)


def _curves(mark: str, steps: list[Step]) -> Iterator[str]:
    for title, points, logarithmic in (
        ("Loss", [(step.step, step.loss) for step in steps], False),
        ("Loss scale, logarithmic", [(step.step, step.scale) for step in steps], True),
        ("Norm of all gradients, logarithmic", [(step.step, step.norm) for step in steps], True),
    ):
        shown = [
            (n, value)
            for n, value in points
            if value is not None and finite([value]) and (value > 0 or not logarithmic)
        ]
        if shown:
            name = f"{title}{mark}"
            yield f"<h2>{clean(name)}</h2>\n" + chart(f"{name} by step", [Line(title, "one", shown)], logarithmic)


def _norms(steps: list[Step]) -> list[list[str]]:
    rows = []
    for name in dict.fromkeys(name for step in steps for name in step.norms):
        all_norms = [step.norms[name] for step in steps if name in step.norms]
        norms = finite(all_norms)
        middle, largest = (statistics.median(norms), max(norms)) if norms else (float("nan"), float("nan"))
        rows.append([name, *(f"{value:.4g}" for value in (all_norms[0], middle, largest, all_norms[-1]))])
    return rows


def _op_cells(op: BadOp | None) -> list[str]:
    if op is None:
        return ["not found: the values came from the outside", "", "", ""]
    return [f"{op.op_type} {op.name}".strip(), ", ".join(op.lines), "; ".join(op.outputs), "; ".join(op.inputs)]
