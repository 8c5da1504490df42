"""The assessment as one HTML page in the style of the migration report: no script, no network, light and dark."""

from __future__ import annotations

import os
from typing import Any, Sequence

from npu_shim.import_hook import tool
from npu_shim.rehearsal.assess.operators import MEANINGS
from npu_shim.rehearsal.assess.table import amount, duration, shape_text

_START = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>Assessment of {script}</title>
<style>
{style}
table {{ border-collapse: collapse; width: 100%; background: var(--card); border: 1px solid var(--line); }}
th, td {{ padding: .35rem .8rem; text-align: left; border-bottom: 1px solid var(--line); vertical-align: top; }}
td.n, th.n {{ text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }}
td {{ overflow-wrap: anywhere; }}
.wide {{ overflow-x: auto; }}
.badge.host {{ color: var(--error); background: var(--error-soft); }}
.badge.unclear {{ color: var(--finding); background: var(--finding-soft); }}
.badge.device, .badge.input {{ color: var(--change); background: var(--change-soft); }}
</style>
</head>
<body>
<header><div>
<h1>What a card would make of the script</h1>
<p class="source">{script} {arguments}</p>
<p class="quiet">TensorFlow {tensorflow}; operators of the device: {lists}</p>
</div></header>
<main>
"""
_END = """
</main>
<footer>npu-shim assess {version}. Times are bounds from data sheets, not promises.</footer>
</body>
</html>
"""


def html(found: dict[str, Any]) -> str:
    """Return the page of an assessment."""
    parts = [
        _START.format(
            script=clean(found["script"]),
            arguments=clean(" ".join(found["arguments"])),
            tensorflow=found["tensorflow"],
            lists=clean(found["operator_lists"]),
            style=_style(),
        ),
        _cards(found),
        "<h2>Not on the device</h2>",
        _problems(found["problems"]),
    ]
    for graph in found["graphs"]:
        parts += _graph(graph)
    return "\n".join(parts) + _END.format(version=found["tool_version"])


def clean(text: str) -> str:
    """Return a text escaped for HTML."""
    tool.load()
    from convert_tf2npu.report.html import parts

    return parts.clean(text)


def _style() -> str:
    """Return the style sheet of the migration report."""
    tool.load()
    from convert_tf2npu.report import html as package

    with open(os.path.join(os.path.dirname(os.path.abspath(package.__file__)), "page.css"), encoding="utf-8") as stream:
        return stream.read()


def _cards(found: dict[str, Any]) -> str:
    first = found["graphs"][0]
    compiled = found["compiled_graphs"]
    cards = [
        (str(len(found["problems"])), "not on the device", "error" if found["problems"] else "change"),
        (str(compiled["before_training"] + compiled["assessed"]), "graphs compiled", ""),
        (str(len(first["partition"]["clusters"])), "device clusters", ""),
        (amount(first["variables"]["bytes"], "B", 1024), "variables", ""),
        (amount(first["memory"]["peak"], "B", 1024), "activations", ""),
        (amount(first["work"]["flops"], "FLOP"), "per step", ""),
    ]
    made = (
        f'<div class="card {kind}"><strong>{value}</strong><span>{label}</span></div>' for value, label, kind in cards
    )
    return f'<div class="cards">{"".join(made)}</div>'


def _problems(rows: Sequence[dict[str, Any]]) -> str:
    if not rows:
        return "<p>All operators of the training step run on the device.</p>"
    return _table(
        ("graph", "operator", "why", "lines"),
        [(row["graph"], row["what"], row["why"], ", ".join(row["lines"])) for row in rows],
    )


def _graph(graph: dict[str, Any]) -> list[str]:
    name = f"{graph['name']} ({graph['kind']}), {graph['line']}"
    parts = [f"<h2>{clean(name)}</h2>", _table((), _facts(graph), False)]
    sections: tuple[tuple[str, tuple[str, ...], list[tuple[str, ...]]], ...] = (
        (
            "Dynamic shapes",
            ("operator", "shape", "in this run", "lines"),
            [_dynamic(r) for r in graph["dynamic_shapes"]],
        ),
        ("Types", ("type", "tensors", "operators", "lines"), [_dtype(row) for row in graph["dtypes"]]),
        ("Collectives", ("operator", "number", "bytes"), [_collective(row) for row in graph["collectives"]]),
    )
    for title, heads, cells in sections:
        if cells:
            parts += [f"<h2>{title}</h2>", _table(heads, cells)]
    parts.append(f'<h2>Operators<span class="number">{len(graph["operators"])}</span></h2>')
    rows = [
        f'<tr><th scope="row">{clean(row["op"])}</th><td class="n">{row["count"]:,}</td>'
        f'<td><span class="badge {row["status"]}" title="{clean(MEANINGS[row["status"]])}">{row["status"]}</span></td>'
        f'<td class="n">{amount(row["flops"], "FLOP")}</td><td class="n">{amount(row["bytes"], "B")}</td>'
        f"<td>{clean(', '.join(row['lines']))}</td></tr>"
        for row in graph["operators"]
    ]
    top = '<th>operator</th><th class="n">number</th><th>status</th><th class="n">work</th><th class="n">bytes</th>'
    parts.append(f'<div class="wide"><table><tr>{top}<th>lines</th></tr>{"".join(rows)}</table></div>')
    return parts


def _facts(graph: dict[str, Any]) -> list[tuple[str, ...]]:
    done, roof, half = graph["work"], graph["roofline"], graph["precision"]
    facts = [
        ("nodes", f"{graph['nodes']:,}"),
        ("inputs", ", ".join(f"{each['name']} {shape_text(each['shape'])}" for each in graph["inputs"])),
        ("device clusters", ", ".join(str(n) for n in graph["partition"]["clusters"])),
        ("variables", f"{graph['variables']['count']:,}, {amount(graph['variables']['bytes'], 'B', 1024)}"),
        ("activations", f"{amount(graph['memory']['peak'], 'B', 1024)} at {graph['memory']['at']}"),
        ("work per step", f"{amount(done['flops'], 'FLOP')}; matrix unit {amount(done['matrix_flops'], 'FLOP')}"),
        ("bytes per step", amount(done["bytes"], "B")),
        ("not counted", ", ".join(f"{row['op']} ({row['why']})" for row in done["unknown"])),
        ("loops", ", ".join(f"{row['name']}: {row['runs'] or 'unknown number of'} runs" for row in done["loops"])),
        ("16 bits with mixed precision", ", ".join(f"{row['count']} {row['op']}" for row in half["reduced"])),
        ("precision_mode", half["mode"] or "not set"),
    ]
    if roof:
        facts += [
            (
                f"bound on {roof['product']}",
                f"{duration(roof['bound_seconds'])} by the {roof['bound_by']}; "
                f"{duration(roof['operators_seconds'])} if each operator reads and writes memory",
            ),
            ("figures", roof["source"]),
        ]
    return [fact for fact in facts if fact[1]]


def _dynamic(row: dict[str, Any]) -> tuple[str, ...]:
    now = shape_text(row["in_this_run"]) if row["in_this_run"] is not None else ""
    return f"{row['op']} {row['name']}", shape_text(row["shape"]), now, ", ".join(row["lines"])


def _dtype(row: dict[str, Any]) -> tuple[str, ...]:
    return row["dtype"], str(row["tensors"]), ", ".join(row["operators"]), ", ".join(row["lines"])


def _collective(row: dict[str, Any]) -> tuple[str, ...]:
    return row["op"], str(row["count"]), amount(row["bytes"], "B")


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]], heads_shown: bool = True) -> str:
    top = "<tr>" + "".join(f"<th>{head}</th>" for head in heads) + "</tr>" if heads_shown else ""
    body = "".join(
        "<tr>"
        + "".join((f'<th scope="row">{clean(c)}</th>' if not k else f"<td>{clean(c)}</td>") for k, c in enumerate(r))
        + "</tr>"
        for r in rows
    )
    return f'<div class="wide"><table>{top}{body}</table></div>'
