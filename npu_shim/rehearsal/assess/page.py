"""The assessment as one HTML page."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Sequence

from npu_shim.rehearsal.assess.operators import MEANINGS
from npu_shim.rehearsal.assess.table import (
    amount,
    duration,
    memory_text,
    partition_text,
    shape_text,
    unknown_text,
    work_text,
)
from npu_shim.rehearsal.web import Html, clean, page, section

if TYPE_CHECKING:
    from npu_shim._tensorflow.types import JsonObject


def html(assessment: JsonObject) -> str:
    """Return the page of an assessment."""
    ranks = f"; rank 0 of {assessment['ranks']} ranks" if assessment["ranks"] > 1 else ""
    about = f"TensorFlow {assessment['tensorflow']}; operators of the device: {assessment['operator_lists']}{ranks}"
    return page(
        f"Assessment of {assessment['script']}",
        "What a card would make of the script",
        [" ".join([assessment["script"], *assessment["arguments"]]), about],
        [
            _cards(assessment),
            _problems(assessment["problems"]),
            *chain.from_iterable(map(_graph, assessment["graphs"])),
        ],
        f"npu-shim assess {assessment['tool_version']}. Times are bounds from data sheets, not promises.",
    )


def _cards(assessment: JsonObject) -> str:
    first = assessment["graphs"][0]
    compiled = assessment["compiled_graphs"]
    cards = [
        (str(len(assessment["problems"])), "not on the device", "error" if assessment["problems"] else "change"),
        (str(compiled["before_training"] + compiled["assessed"]), "graphs compiled", ""),
        (str(len(first["partition"]["clusters"])), "device clusters", ""),
        (amount(first["variables"]["bytes"], "B", 1024), "variables", ""),
        (amount(first["memory"]["peak"], "B", 1024), "activations", ""),
        (amount(first["work"]["flops"], "FLOP"), "per step", ""),
    ]
    parts = (
        f'<div class="card {kind}"><strong>{value}</strong><span>{label}</span></div>' for value, label, kind in cards
    )
    return f'<div class="cards">{"".join(parts)}</div>'


def _problems(rows: Sequence[JsonObject]) -> str:
    title = "Not on the device"
    cells = [(row["graph"], row["what"], row["why"], ", ".join(row["lines"])) for row in rows]
    return (
        section(title, ("graph", "operator", "why", "lines"), cells)
        or f"<h2>{title}</h2>\n<p>All operators of the training step run on the device.</p>"
    )


def _graph(graph: JsonObject) -> list[str]:
    name = f"{graph['name']} ({graph['kind']}), {graph['line']}"
    of_shapes = ("operator", "shape", "in this run", "lines", "tensors of unknown size")
    parts = [
        section(name, (), _facts(graph)),
        section("Dynamic shapes", of_shapes, list(map(_dynamic, graph["dynamic_shapes"]))),
        section("Types", ("type", "tensors", "operators", "lines"), list(map(_dtype, graph["dtypes"]))),
        section("Collectives", ("operator", "number", "bytes"), list(map(_collective, graph["collectives"]))),
    ]
    not_counted = {row["op"] for row in graph["work"]["unknown"]}
    rows = [
        (
            row["op"],
            f"{row['count']:,}",
            Html(
                f'<span class="badge {row["status"]}" title="{clean(MEANINGS[row["status"]])}">{row["status"]}</span>'
            ),
            work_text(row, not_counted),
            amount(row["bytes"], "B"),
            ", ".join(row["lines"]),
        )
        for row in graph["operators"]
    ]
    heads = ("operator", "number", "status", "work", "bytes", "lines")
    return [*parts, section(f"Operators: {len(rows)}", heads, rows, (1, 3, 4))]


def _facts(graph: JsonObject) -> list[tuple[str, ...]]:
    done, roof, half = graph["work"], graph["roofline"], graph["precision"]
    facts = [
        ("nodes", f"{graph['nodes']:,}"),
        ("inputs", ", ".join(f"{given['name']} {shape_text(given['shape'])}" for given in graph["inputs"])),
        ("partition", partition_text(graph["partition"])),
        ("variables", f"{graph['variables']['count']:,}, {amount(graph['variables']['bytes'], 'B', 1024)}"),
        ("activations", memory_text(graph["memory"])),
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


def _dynamic(row: JsonObject) -> tuple[str, ...]:
    now = shape_text(row["in_this_run"]) if row["in_this_run"] is not None else ""
    return f"{row['op']} {row['name']}", shape_text(row["shape"]), now, ", ".join(row["lines"]), unknown_text(row)


def _dtype(row: JsonObject) -> tuple[str, ...]:
    return row["dtype"], str(row["tensors"]), ", ".join(row["operators"]), ", ".join(row["lines"])


def _collective(row: JsonObject) -> tuple[str, ...]:
    return row["op"], str(row["count"]), amount(row["bytes"], "B")
