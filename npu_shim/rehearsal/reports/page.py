"""The report as one HTML page with the losses, the differences and the first departure."""

from __future__ import annotations

from typing import Any, Iterator

from npu_shim.rehearsal.reports.chart import Line, chart
from npu_shim.rehearsal.reports.text import PARTS, elements, kinds, number, verdict
from npu_shim.rehearsal.result import Result
from npu_shim.rehearsal.web import clean, page, section


def to_html(result: Result) -> str:
    """Return the page."""
    script = result["original"]["script"]
    footer = f"npu-shim verify {result['tool_version']}"
    return page(
        f"Verification of {script}", "Verification of a migration", script, "", "\n".join(_body(result)), footer
    )


def _body(result: Result) -> Iterator[str]:
    state = result["verdict"].replace(" ", "-")
    yield f'<p class="verdict {state}">{clean(verdict(result))}</p>'
    for problem in result["problems"]:
        yield f"<p>{clean(problem)}</p>"
    if result["curve"]:
        yield from _curves(result)
    if result["first_departure"]:
        yield _departure(result["first_departure"])
        rows = elements(result["first_departure"])
        if rows:
            yield section("Its elements that differ most", ["index", "original", "migrated"], rows)
    if result.get("undetermined_variables"):  # results before this field have none
        rows = [[name, "gradients are zero but for rounding"] for name in result["undetermined_variables"]]
        yield section("Not compared", ["variable", "why"], rows)
    if result["bands"]:
        rows = [
            [f"{each['kind']} {each['name']}", *(number(each[key], ".6g") for key in ("original", "migrated", "band"))]
            for each in result["bands"]
        ]
        yield section("Means over the seeds", ["quantity", "original", "migrated", "99 % band"], rows)
    if result["metrics"]:
        rows = [[each["name"], number(each["original"]), number(each["migrated"])] for each in result["metrics"]]
        yield section("Metrics", ["metric", "original", "migrated"], rows)
    head = ["recorded", "names", "values", "largest difference", "names that depart"]
    if result["streams"]:
        yield section("Recorded values", head, kinds(result["streams"]))
    if result["final_variables"]:
        rows = [
            [each["name"], str(each["shape"]), number(each["difference"], ".1e")] for each in result["final_variables"]
        ]
        yield section("Final variables", ["variable", "shape", "difference"], rows)
    both = result["original"], result["migrated"]
    rows = [[name, *(value(part) for part in both)] for name, value in PARTS]
    rows.append(["arguments", *(" ".join(part["arguments"]) for part in both)])
    yield section("Environment", ["", "original", "migrated"], rows)
    rows = [[name, str(value)] for name, value in result["settings"].items()]
    yield section("Settings", ["setting", "value"], rows)
    alone = [
        [side, f"{each['kind']} {each['name']}", str(each["values"])]
        for side in ("original", "migrated")
        for each in result[f"only_{side}"]
    ]
    if alone:
        yield section("Values of one script only", ["script", "value", "number"], alone)


def _curves(result: Result) -> Iterator[str]:
    curve = result["curve"]
    losses = [
        Line(key, style, [(each["step"], each[key]) for each in curve if each[key] is not None])
        for key, style in (("original", "one"), ("migrated", "two"))
    ]
    if losses[0].points or losses[1].points:
        yield "<h2>Loss</h2>\n" + chart("Loss of both scripts by training step", losses, False)
    differences = [(each["step"], each["difference"]) for each in curve]
    limit = result["settings"]["tolerance"]
    lines = [
        Line("largest difference", "one", [(step, value) for step, value in differences if value]),
        Line("allowed, float32", "allowed", [(step, limit * (1 + step / 100)) for step, _ in differences]),
    ]
    if lines[0].points:
        yield "<h2>Difference, logarithmic</h2>\n" + chart("Largest relative difference by step", lines, True)
    else:
        yield '<h2>Difference</h2>\n<p class="quiet">All values are equal, bit by bit.</p>'


def _departure(first: Any) -> str:
    rows = [
        [f"{each['kind']} {each['name']}", number(each["difference"], ".1e"), f"{each['allowed']:.1e}", each["values"]]
        for each in first["tensors"]
    ]
    head = ["tensor", "difference", "allowed", "original and migrated"]
    return section(f"First departure: step {first['step']}, {first['kind']} {first['name']}", head, rows)
