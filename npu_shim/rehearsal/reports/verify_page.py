"""The report as one HTML page with the losses, the differences and the first departure."""

from __future__ import annotations

from dataclasses import asdict
from typing import Iterator, Sequence

from npu_shim.rehearsal.reports import text
from npu_shim.rehearsal.reports.chart import Line, chart
from npu_shim.rehearsal.reports.half_rows import half_rows
from npu_shim.rehearsal.reports.text import (
    KINDS,
    full_name,
    kind_rows,
    metric_rows,
    number_text,
    run_rows,
    side_names,
    verdict_text,
)
from npu_shim.rehearsal.result import HalfPoint, Loss, Result
from npu_shim.rehearsal.web import page_html, section_html, table_html, verdict_html as sentences


def to_html(result: Result) -> str:
    """Return the page."""
    script = result.original.script
    footer = f"npu-shim verify {result.tool_version}"
    heading = f"Verification in {result.half.dtype}" if result.half else "Verification of a migration"
    return page_html(f"Verification of {script}", heading, [script], _page_body(result), footer)


def _page_body(result: Result) -> Iterator[str]:
    yield from sentences(result.verdict.replace(" ", "-"), verdict_text(result), *result.problems)
    names = side_names(result)
    if result.half:
        yield table_html("Half precision", [], [list(row) for row in half_rows(result.half)])
    if result.curve:
        yield from _loss_charts(result)
    if result.first_departure:
        first = result.first_departure
        title = f"First departure: step {first.step}, {first.kind} {first.name}"
        yield section_html(title, text.departing_heads("tensor", names), text.departing_rows(first))
        yield section_html("Its elements that differ most", ["index", *names], text.element_rows(first))
    rows = [[name, "gradients are zero but for rounding"] for name in result.undetermined_variables]
    yield section_html("Not compared", ["variable", "why"], rows)
    rows = [
        [full_name(band), *(number_text(value, ".6g") for value in (band.original, band.migrated, band.band))]
        for band in result.bands
    ]
    yield section_html("Means over the seeds", ["quantity", "original", "migrated", "99 % band"], rows)
    yield section_html("Metrics", ["metric", *names], metric_rows(result))
    yield section_html("Recorded values", KINDS, kind_rows(result.streams))
    rows = [
        [variable.name, str(variable.shape), number_text(variable.difference, ".1e")]
        for variable in result.final_variables
    ]
    yield section_html("Final variables", ["variable", "shape", "difference"], rows)
    arguments = [" ".join(part.arguments) for part in (result.original, result.migrated)]
    yield section_html("Environment", ["", *names], [*run_rows(result), ["arguments", *arguments]])
    words = {None: "-", True: "yes", False: "no"}
    rows = [
        [name, words[value] if value is None or isinstance(value, bool) else str(value)]
        for name, value in asdict(result.settings).items()
    ]
    yield section_html("Settings", ["setting", "value"], rows)
    rows = [
        [side, full_name(stream), str(stream.values)]
        for side, alone in (("original", result.only_original), ("migrated", result.only_migrated))
        for stream in alone
    ]
    yield section_html("Values of one script only", ["script", "value", "number"], rows)


def _loss_charts(result: Result) -> Iterator[str]:
    all_steps = [point.step for loss in result.losses for point in loss.curve]
    steps = (min(all_steps), max(all_steps)) if all_steps else None
    for loss in result.losses or [Loss("loss", "loss", list(result.curve))]:
        ours = [(point.step, point.original) for point in loss.curve]
        theirs = [(point.step, point.migrated) for point in loss.curve]
        lines = [
            Line(name, style, [(step, value) for step, value in points if value is not None])
            for name, style, points in zip(side_names(result), ("one", "two"), (ours, theirs))
        ]
        title = loss.name.capitalize()
        yield chart(title, f"{title} of both runs by training step", lines, False, steps)
    if result.half:
        yield from _half_charts([point for point in result.curve if isinstance(point, HalfPoint)])
        return
    limit = result.settings.tolerance
    lines = [
        Line(
            "largest difference", "one", [(point.step, point.difference) for point in result.curve if point.difference]
        ),
        Line("allowed, float32", "allowed", [(point.step, limit * (1 + point.step / 100)) for point in result.curve]),
    ]
    if lines[0].points:
        yield chart("Difference, logarithmic", "Largest relative difference by step", lines, True)
    else:
        yield '<h2>Difference</h2>\n<p class="quiet">All values are equal, bit by bit.</p>'


def _half_charts(curve: Sequence[HalfPoint]) -> Iterator[str]:
    """Yield the charts of half precision: the difference of the loss, and the largest share of a band."""
    title = "Difference of the loss, logarithmic"
    lines = [
        Line("difference", "one", [(point.step, point.loss_difference) for point in curve if point.loss_difference]),
        Line("band", "allowed", [(point.step, point.loss_band) for point in curve if point.loss_band]),
    ]
    yield chart(title, title, lines, True)
    title = "Largest difference of all values, in units of its band, logarithmic"
    shares = [(point.step, point.share) for point in curve if point.share]
    lines = [Line("difference", "one", shares), Line("band", "allowed", [(step, 1.0) for step, _ in shares])]
    yield chart(title, title, lines, True)
