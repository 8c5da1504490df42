"""The assessment as text for a terminal, and as one HTML page."""

from __future__ import annotations

from typing import Iterator, Sequence

import npu_shim
from npu_shim.distributed.ranktable.model import count_text
from npu_shim.rehearsal.assess.assessment import (
    Activations,
    Assessment,
    Cut,
    DynamicShape,
    Graph,
    MixedPrecision,
    OpCount,
    Operators,
)
from npu_shim.rehearsal.assess.operators import MEANINGS
from npu_shim.rehearsal.predict.prediction_report import prediction_sections
from npu_shim.rehearsal.reports.amounts import amount_text, duration_text
from npu_shim.rehearsal.sections import to_html as sections_to_html, to_lines
from npu_shim.rehearsal.web import Html, escape_html, page_html, section_html

_MOST, _FEW_OPS = 12, 4  # rows of a table, and operators of a line
_FIXES = {
    "Where": "Use npu_shim.data.masked_select or masked_where",
    "Unique": "Use npu_shim.data.unique_padded; for a sparse gradient, tf.convert_to_tensor",
}
_FIX = "Use an operator with a static shape, or a mask"
_ALL_RUN = "All operators of the training step run on the device."


def to_text(assessment: Assessment) -> str:
    """Return the assessment as tables for a terminal."""
    return "\n".join(_report_lines(assessment))


def unknown_sizes_text(row: DynamicShape) -> str:
    """Return the number of tensors whose size an operator leaves open in this run, and the fix; "" for none."""
    fix = _FIXES.get(row.op.replace("V2", ""), _FIX)
    number = row.unknown_tensors
    return f"{count_text(number, 'tensor')} of unknown size. {fix} (docs/static-shapes.md)" if number else ""


def operations_text(row: Operators, not_counted: set[str]) -> str:
    """Return the operations of a row of operators.

    Args:
        row: of an operator type.
        not_counted: the types that have nodes without a count.
    """
    return "not counted" if row.op in not_counted and not row.flops else amount_text(row.flops, "FLOP")


def _report_lines(assessment: Assessment) -> Iterator[str]:
    yield f"{assessment.script} {' '.join(assessment.arguments)}".rstrip() + f"  (TensorFlow {assessment.tensorflow})"
    yield f"Operators of the device: {assessment.operator_lists}"
    if assessment.ranks > 1:
        yield f"Rank 0 of {assessment.ranks} ranks"
    compiled = assessment.compiled_graphs
    more = ", and again for each new shape" if compiled.for_each_new_shape else ""
    yield (
        f"Graphs that a card compiles: {compiled.before_training} before training, {compiled.assessed} assessed "
        f"below{more}"
    )
    yield ""
    problems = assessment.problems
    yield f"Not on the device: {len(problems)}" if problems else _ALL_RUN
    for problem in problems:
        yield f"  {problem.graph}: {problem.what} {problem.why}{_lines_in_parentheses(problem.lines)}"
    for graph in assessment.graphs:
        yield from ("", f"== {graph.name} ({graph.kind}), {graph.line}: {graph.nodes:,} nodes")
        for label, text in (*_graph_facts(graph, _FEW_OPS), *_graph_findings(graph)):
            yield f"{label} {text}" if label.startswith(" ") else f"{label:13}  {text}"
        yield ""
        yield from _operator_table(graph.operators, {row.op for row in graph.work.unknown})
        if graph.prediction is not None:
            yield from to_lines(prediction_sections(graph.prediction))


def _graph_facts(graph: Graph, most_ops: int | None = None) -> Iterator[tuple[str, str]]:
    """Yield label and text of each fact about a graph. A label that begins with spaces belongs to the fact before."""
    yield "inputs", ", ".join(f"{given.name} {_shape_text(given.shape)}" for given in graph.inputs) or "none"
    yield "partition", _partition_text(graph.partition)
    yield "variables", f"{graph.variables.count:,}, {amount_text(graph.variables.bytes, 'B', 1024)}"
    yield "activations", _memory_text(graph.memory)
    work = graph.work
    yield (
        "work per step",
        f"{amount_text(work.flops, 'FLOP')}, of which {amount_text(work.matrix_flops, 'FLOP')} on the matrix unit; "
        f"operators read and write {amount_text(work.bytes, 'B')}",
    )
    for loop in work.loops:
        runs = f"runs {loop.runs} times" if loop.runs else "is counted once: its number of runs is not known"
        yield "  loop", f"{loop.name} {runs}"
    for why in dict.fromkeys(row.why for row in work.unknown):
        yield "  not counted:", f"{', '.join(row.op for row in work.unknown if row.why == why)} ({why})"
    yield "mixed precision", _mixed_precision_text(graph.precision, most_ops)
    roof = graph.roofline
    if roof:
        yield (
            "bound",
            f"{duration_text(roof.bound_seconds)} at least on {roof.product} (by the {roof.bound_by}), "
            f"{duration_text(roof.operators_seconds)} if each operator reads and writes memory. A bound, not a promise",
        )
        if roof.memory_share is not None:
            yield "", f"variables and activations are {100 * roof.memory_share:.1f} % of the memory"
        yield "", roof.source


def _graph_findings(graph: Graph) -> Iterator[tuple[str, str]]:
    """Yield label and text of what a page shows in tables of their own."""
    for collective in graph.collectives:
        yield "collective", f"{collective.op}: {collective.count}, {amount_text(collective.bytes, 'B')}"
    for rare in graph.dtypes:
        yield (
            rare.dtype,
            f"{count_text(rare.tensors, 'tensor')}: {', '.join(rare.operators[:5])}{_lines_in_parentheses(rare.lines)}",
        )
    for row in graph.dynamic_shapes:
        now = f", {_shape_text(row.in_this_run)} in this run" if row.in_this_run is not None else ""
        yield "dynamic shape", f"{row.op} {row.name} {_shape_text(row.shape)}{now}{_lines_in_parentheses(row.lines)}"
        if row.unknown_tensors:
            yield "", unknown_sizes_text(row)


def _operator_table(rows: list[Operators], not_counted: set[str]) -> Iterator[str]:
    shown = rows[:_MOST] + [row for row in rows[_MOST:] if row.status in ("host", "unclear")]
    width = max(len(row.op) for row in shown)
    yield f"{'operator'.ljust(width)}  {'number':>6}  {'status':8}  {'FLOP':>12}  {'bytes':>10}"
    for row in shown:
        yield (
            f"{row.op.ljust(width)}  {row.count:6}  {row.status:8}  {operations_text(row, not_counted):>12}  "
            f"{amount_text(row.bytes, 'B'):>10}{_lines_in_parentheses(row.lines)}"
        )
    hidden = len(rows) - len(shown)
    if hidden:
        yield f"... and {count_text(hidden, 'operator type')} more, all on the device or in the input pipeline"


def to_html(assessment: Assessment) -> str:
    """Return the page of an assessment."""
    ranks = f"; rank 0 of {assessment.ranks} ranks" if assessment.ranks > 1 else ""
    return page_html(
        f"Assessment of {assessment.script}",
        "What a card would make of the script",
        [
            " ".join([assessment.script, *assessment.arguments]),
            f"TensorFlow {assessment.tensorflow}; operators of the device: {assessment.operator_lists}{ranks}",
        ],
        _page_sections(assessment),
        f"npu-shim assess {npu_shim.__version__}. Times are bounds and predictions, not measurements.",
    )


def _page_sections(assessment: Assessment) -> Iterator[str]:
    first, compiled, problems = assessment.graphs[0], assessment.compiled_graphs, assessment.problems
    cards = (
        (str(len(problems)), "not on the device", "error" if problems else "change"),
        (str(compiled.before_training + compiled.assessed), "graphs compiled", ""),
        (str(len(first.partition.clusters)), "device clusters", ""),
        (amount_text(first.variables.bytes, "B", 1024), "variables", ""),
        (amount_text(first.memory.peak, "B", 1024), "activations", ""),
        (amount_text(first.work.flops, "FLOP"), "per step", ""),
    )
    parts = (
        f'<div class="card {kind}"><strong>{value}</strong><span>{label}</span></div>' for value, label, kind in cards
    )
    yield f'<div class="cards">{"".join(parts)}</div>'
    rows = [(problem.graph, problem.what, problem.why, ", ".join(problem.lines)) for problem in problems]
    heads = ("graph", "operator", "why", "lines")
    yield section_html("Not on the device", heads, rows) or f"<h2>Not on the device</h2>\n<p>{_ALL_RUN}</p>"
    for graph in assessment.graphs:
        if graph.prediction is not None:
            yield from sections_to_html(prediction_sections(graph.prediction))
        yield from _graph_sections(graph)


def _graph_sections(graph: Graph) -> Iterator[str]:
    facts = [("nodes", f"{graph.nodes:,}")]
    for label, text in _graph_facts(graph):
        name = label.strip(" :")
        before = facts[-1]
        facts[-1:] = [before, (name, text)] if name else [(before[0], f"{before[1]}; {text}")]
    yield section_html(f"{graph.name} ({graph.kind}), {graph.line}", (), facts)
    shapes = [
        (
            f"{row.op} {row.name}",
            _shape_text(row.shape),
            _shape_text(row.in_this_run) if row.in_this_run is not None else "",
            ", ".join(row.lines),
            unknown_sizes_text(row),
        )
        for row in graph.dynamic_shapes
    ]
    yield section_html(
        "Dynamic shapes", ("operator", "shape", "in this run", "lines", "tensors of unknown size"), shapes
    )
    types = [(rare.dtype, str(rare.tensors), ", ".join(rare.operators), ", ".join(rare.lines)) for rare in graph.dtypes]
    yield section_html("Types", ("type", "tensors", "operators", "lines"), types)
    collectives = [(row.op, str(row.count), amount_text(row.bytes, "B")) for row in graph.collectives]
    yield section_html("Collectives", ("operator", "number", "bytes"), collectives)
    not_counted = {row.op for row in graph.work.unknown}
    operators = [
        (
            row.op,
            f"{row.count:,}",
            Html(f'<span class="badge {row.status}" title="{escape_html(MEANINGS[row.status])}">{row.status}</span>'),
            operations_text(row, not_counted),
            amount_text(row.bytes, "B"),
            ", ".join(row.lines),
        )
        for row in graph.operators
    ]
    heads = ("operator", "number", "status", "work", "bytes", "lines")
    yield section_html(f"Operators: {len(operators)}", heads, operators, (1, 3, 4))


def _shape_text(shape: Sequence[object] | None) -> str:
    """Return a shape with ? for what is not known."""
    return "unknown rank" if shape is None else "[" + ", ".join("?" if n is None else str(n) for n in shape) + "]"


def _partition_text(cut: Cut) -> str:
    """Return the number and the sizes of the device clusters, and the number of nodes on the host."""
    clusters = cut.clusters
    more = ", ..." if len(clusters) > 6 else ""
    sizes = f" ({', '.join(f'{size:,}' for size in clusters[:6])}{more} nodes)" if clusters else ""
    on_host = sum(row.count for row in cut.host)
    return (
        f"{count_text(len(clusters), 'device cluster')}{sizes}, {count_text(on_host, 'node')} of the step on the host"
    )


def _memory_text(memory: Activations) -> str:
    """Return the most bytes of activations, where they live, and the number of tensors without a size."""
    unknown = f"; {count_text(memory.unknown, 'tensor')} of unknown size" if memory.unknown else ""
    return f"{amount_text(memory.peak, 'B', 1024)} at {memory.at}{unknown}"


def _mixed_precision_text(precision: MixedPrecision, most_ops: int | None) -> str:
    share = f"{100 * precision.matrix_share:.0f} % of the matrix unit's work"
    reduced = _op_counts_text(precision.reduced, most_ops)
    return f"{reduced} in 16 bits ({share}); precision_mode: {precision.mode or 'not set'}"


def _op_counts_text(rows: list[OpCount], most: int | None) -> str:
    names = [f"{row.count} {row.op}" for row in rows[:most]]
    return ", ".join(names) + (", ..." if len(names) < len(rows) else "") if names else "nothing"


def _lines_in_parentheses(lines: Sequence[str]) -> str:
    return f" ({', '.join(lines)})" if lines else ""
