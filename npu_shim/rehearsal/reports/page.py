"""The report as one HTML page: inline styles and pictures, no script, no network, light and dark."""

from __future__ import annotations

from html import escape
from typing import Any, Iterable, Iterator, Sequence

from npu_shim.rehearsal.reports.chart import Line, chart
from npu_shim.rehearsal.reports.text import PARTS, kinds, number, verdict
from npu_shim.rehearsal.result import Result

_STYLE = """
:root { color-scheme: light dark; --ink: #1c2430; --quiet: #5b6675; --page: #fff; --card: #f5f7fa; --line: #d7dde5;
  --one: #0b66c3; --two: #c2410c; --good: #15703a; --bad: #b3261e; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6eaf0; --quiet: #9aa6b5; --page: #12161c; --card: #1a2028;
  --line: #303a46; --one: #6cb2ff; --two: #ff9a62; --good: #6fd39a; --bad: #ff8f86; } }
* { box-sizing: border-box; }
body { margin: 0; font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--page); }
main, header, footer { max-width: 62rem; margin: 0 auto; padding: 1rem; }
h1 { font-size: 1.5rem; margin: .5rem 0; } h2 { font-size: 1.1rem; margin: 2rem 0 .5rem; }
.verdict { font-weight: 600; } .agree { color: var(--good); } .differ, .not-run { color: var(--bad); }
.scroll { overflow-x: auto; background: var(--card); border: 1px solid var(--line); border-radius: 6px; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: .3rem .7rem; border-top: 1px solid var(--line); vertical-align: top; }
thead th { border-top: 0; color: var(--quiet); font-weight: 600; }
td { font-variant-numeric: tabular-nums; } .quiet, footer { color: var(--quiet); }
svg { width: 100%; height: auto; display: block; } svg text { fill: var(--quiet); font-size: 12px; }
.axis { stroke: var(--line); } .one { stroke: var(--one); } .two { stroke: var(--two); }
.allowed { stroke: var(--bad); } path { fill: none; stroke-width: 1.6; }
.two { stroke-dasharray: 6 3; } .allowed { stroke-dasharray: 2 3; }
.key.one { color: var(--one); } .key.two { color: var(--two); } .key.allowed { color: var(--bad); }
"""
_HEAD = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>Verification of {title}</title>
<style>{style}</style>
</head>
<body>
"""


def to_html(result: Result) -> str:
    """Return the page."""
    script = escape(result["original"]["script"])
    return "".join(
        [
            _HEAD.format(title=script, style=_STYLE),
            f"<header><h1>Verification of a migration</h1><p>{script}</p></header>\n<main>\n",
            *_body(result),
            f"</main>\n<footer>npu-shim verify {escape(result['tool_version'])}</footer>\n</body>\n</html>\n",
        ]
    )


def _body(result: Result) -> Iterator[str]:
    state = result["verdict"].replace(" ", "-")
    yield f'<p class="verdict {state}">{escape(verdict(result))}</p>\n'
    for problem in result["problems"]:
        yield f"<p>{escape(problem)}</p>\n"
    if result["curve"]:
        yield from _curves(result)
    if result["first_departure"]:
        yield from _departure(result["first_departure"])
    if result["bands"]:
        rows = [
            [f"{each['kind']} {each['name']}", *(number(each[key], ".6g") for key in ("original", "migrated", "band"))]
            for each in result["bands"]
        ]
        yield from _section("Means over the seeds", ["quantity", "original", "migrated", "99 % band"], rows)
    if result["metrics"]:
        rows = [[each["name"], number(each["original"]), number(each["migrated"])] for each in result["metrics"]]
        yield from _section("Metrics", ["metric", "original", "migrated"], rows)
    head = ["recorded", "names", "values", "largest difference", "names that depart"]
    if result["streams"]:
        yield from _section("Recorded values", head, kinds(result["streams"]))
    if result["final_variables"]:
        rows = [
            [each["name"], str(each["shape"]), number(each["difference"], ".1e")] for each in result["final_variables"]
        ]
        yield from _section("Final variables", ["variable", "shape", "difference"], rows)
    both = result["original"], result["migrated"]
    rows = [[name, *(value(part) for part in both)] for name, value in PARTS]
    rows.append(["arguments", *(" ".join(part["arguments"]) for part in both)])
    yield from _section("Environment", ["", "original", "migrated"], rows)
    rows = [[name, str(value)] for name, value in result["settings"].items()]
    yield from _section("Settings", ["setting", "value"], rows)
    alone = [
        [side, f"{each['kind']} {each['name']}", str(each["values"])]
        for side in ("original", "migrated")
        for each in result[f"only_{side}"]
    ]
    if alone:
        yield from _section("Values of one script only", ["script", "value", "number"], alone)


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
        yield '<h2>Difference</h2>\n<p class="quiet">All values are equal, bit by bit.</p>\n'


def _departure(first: Any) -> Iterator[str]:
    rows = [
        [f"{each['kind']} {each['name']}", number(each["difference"], ".1e"), f"{each['allowed']:.1e}", each["values"]]
        for each in first["tensors"]
    ]
    head = ["tensor", "difference", "allowed", "original and migrated"]
    yield from _section(f"First departure: step {first['step']}, {first['kind']} {first['name']}", head, rows)


def _section(title: str, head: Sequence[str], rows: Iterable[list[str]]) -> Iterator[str]:
    yield f"<h2>{escape(title)}</h2>\n"
    yield f'<div class="scroll" tabindex="0" role="group" aria-label="{escape(title)}"><table>'
    yield "<thead><tr>" + "".join(f'<th scope="col">{escape(text)}</th>' for text in head) + "</tr></thead><tbody>\n"
    for row in rows:
        yield "<tr>" + "".join(f"<td>{escape(text)}</td>" for text in row) + "</tr>\n"
    yield "</tbody></table></div>\n"
