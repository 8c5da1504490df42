"""The history of a run as one HTML page."""

from __future__ import annotations

import statistics
from typing import Iterator

import npu_shim
from npu_shim.rehearsal.numerics.history import BadOp, History, Step, finite_values, layer_norms
from npu_shim.rehearsal.reports.chart import Line, chart
from npu_shim.rehearsal.web import Html, escape_html, page_html, section_html, verdict_html

_MOST_ROWS = 30


def to_html(history: History, command: str, tensorflow: str) -> str:
    """Return the page.

    Args:
        history: of the run.
        command: the script and its arguments.
        tensorflow: its version.
    """
    footer = f"npu_shim {npu_shim.__version__}, TensorFlow {tensorflow}"
    return page_html("Numbers of a run", "Numbers of a run", [command], _page_body(history), footer)


def _page_body(history: History) -> Iterator[str]:
    problems = list(history.problem_sentences())
    state, first = ("differ", "Problems") if problems else ("agree", "No problem was found.")
    yield from verdict_html(state, first, *problems)
    yield (
        f'<p class="quiet">{history.count} steps, {history.skipped} of them skipped by the loss scale, '
        f"{history.bad} with Inf or NaN in the loss or the gradients.</p>\n"
    )
    by_optimizer: dict[int, list[Step]] = {}
    for step in history.steps:
        by_optimizer.setdefault(step.optimizer, []).append(step)
    for number, steps in sorted(by_optimizer.items()):
        mark = f" of optimizer {number + 1}" if len(by_optimizer) > 1 else ""
        yield from _step_charts(mark, steps)
        for what, norms in (
            ("layer", [layer_norms(step.norms) for step in steps]),
            ("variable", [step.norms for step in steps]),
        ):
            head = [what, "first", "median", "largest", "last"]
            yield section_html(f"Gradient norms by {what}{mark}", head, _norm_rows(norms), (1, 2, 3, 4))
    bad = [step for step in history.steps if step.is_bad][:_MOST_ROWS]
    rows = [
        [str(step.step), "skipped" if step.skipped else "applied", "" if step.scale is None else f"{step.scale:g}"]
        + _op_cells(step.ops[0] if step.ops else None)
        for step in bad
    ]
    head = ["step", "update", "loss scale", "first op", "line", "outputs", "inputs"]
    yield section_html("Steps with Inf or NaN", head, rows)
    rows = [_op_cells(op) for op in list(history.harmless.values())[:_MOST_ROWS]]
    head = ["op", "line", "outputs", "inputs"]
    yield section_html("Inf or NaN while the loss and the gradients were finite", head, rows)


def _step_charts(mark: str, steps: list[Step]) -> Iterator[str]:
    for title, points, logarithmic in (
        ("Loss", [(step.step, step.loss) for step in steps], False),
        ("Loss scale, logarithmic", [(step.step, step.scale) for step in steps], True),
        ("Norm of all gradients, logarithmic", [(step.step, step.norm) for step in steps], True),
    ):
        shown = [
            (n, value)
            for n, value in points
            if value is not None and finite_values([value]) and (value > 0 or not logarithmic)
        ]
        name, ends = f"{title}{mark}", (steps[0].step, steps[-1].step)
        yield chart(name, f"{name} by step", [Line(title, "one", shown)], logarithmic, ends)


def _norm_rows(by_step: list[dict[str, float]]) -> list[list[str]]:
    rows = []
    for name in dict.fromkeys(name for norms in by_step for name in norms):
        all_norms = [norms[name] for norms in by_step if name in norms]
        norms = finite_values(all_norms)
        middle, largest = (statistics.median(norms), max(norms)) if norms else (float("nan"), float("nan"))
        rows.append([name, *(f"{value:.4g}" for value in (all_norms[0], middle, largest, all_norms[-1]))])
    return rows


def _op_cells(op: BadOp | None) -> list[str]:
    if op is None:
        return ["not found: the values came from the outside", "", "", ""]
    lines = Html("<br>".join(f'<span class="place">{escape_html(line)}</span>' for line in op.lines))
    return [f"{op.op_type} {op.name}".strip(), lines, "; ".join(op.outputs), "; ".join(op.inputs)]
