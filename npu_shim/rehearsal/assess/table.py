"""The assessment as text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Iterator, Sequence

from npu_shim.distributed.ranktable.model import counted

if TYPE_CHECKING:
    from npu_shim._tensorflow.types import JsonObject


_MOST = 12  # rows of a table
_FIXES = {
    "Where": "Use npu_shim.data.masked_select or masked_where",
    "Unique": "Use npu_shim.data.unique_padded; for a sparse gradient, tf.convert_to_tensor",
}
_FIX = "Use an operator with a static shape, or a mask"


def text(assessment: JsonObject) -> str:
    """Return the assessment as tables for a terminal."""
    return "\n".join(_page(assessment))


def amount(number: float, unit: str, base: int = 1000) -> str:
    """Return a number with a prefix: ``amount(3.2e9, "FLOP")`` is "3.20 GFLOP"."""
    for prefix in ("", "K" if base == 1024 else "k", "M", "G", "T", "P"):
        if abs(number) < base or prefix == "P":
            break
        number /= base
    infix = "i" if base == 1024 and prefix else ""
    return f"{number:.0f} {unit}" if not prefix else f"{number:.2f} {prefix}{infix}{unit}"


def duration(seconds: float) -> str:
    """Return seconds in a unit that fits."""
    for factor, unit in ((1.0, "s"), (1e3, "ms")):
        if seconds * factor >= 1:
            return f"{seconds * factor:.2f} {unit}"
    return f"{seconds * 1e6:.2f} us" if seconds >= 1e-8 or not seconds else "less than 0.01 us"


def shape_text(shape: Sequence[object] | None) -> str:
    """Return a shape with ? for what is not known."""
    return "unknown rank" if shape is None else "[" + ", ".join("?" if n is None else str(n) for n in shape) + "]"


def partition_text(parts: JsonObject) -> str:
    """Return the number and the sizes of the device clusters, and the number of nodes on the host."""
    clusters = parts["clusters"]
    more = ", ..." if len(clusters) > 6 else ""
    sizes = f" ({', '.join(f'{size:,}' for size in clusters[:6])}{more} nodes)" if clusters else ""
    on_host = sum(row["count"] for row in parts["host"])
    return f"{counted(len(clusters), 'device cluster')}{sizes}, {counted(on_host, 'node')} of the step on the host"


def memory_text(peak: JsonObject) -> str:
    """Return the most bytes of activations, where they live, and the number of tensors without a size."""
    unknown = f"; {counted(peak['unknown'], 'tensor')} of unknown size" if peak["unknown"] else ""
    return f"{amount(peak['peak'], 'B', 1024)} at {peak['at']}{unknown}"


def unknown_text(row: JsonObject) -> str:
    """Return the number of tensors whose size an operator leaves open in this run, and the fix; "" for none."""
    number = row["unknown_tensors"]
    fix = _FIXES.get(row["op"].replace("V2", ""), _FIX)
    return f"{counted(number, 'tensor')} of unknown size. {fix} (docs/static-shapes.md)" if number else ""


def work_text(row: JsonObject, not_counted: set[str]) -> str:
    """Return the operations of a row of operators.

    Args:
        row: of an operator type.
        not_counted: the types that have nodes without a count.
    """
    return "not counted" if row["op"] in not_counted and not row["flops"] else amount(row["flops"], "FLOP")


def _page(assessment: JsonObject) -> Iterator[str]:
    yield (
        f"{assessment['script']} {' '.join(assessment['arguments'])}".rstrip()
        + f"  (TensorFlow {assessment['tensorflow']})"
    )
    yield f"Operators of the device: {assessment['operator_lists']}"
    if assessment["ranks"] > 1:
        yield f"Rank 0 of {assessment['ranks']} ranks"
    compiled = assessment["compiled_graphs"]
    more = ", and again for each new shape" if compiled["for_each_new_shape"] else ""
    yield (
        f"Graphs that a card compiles: {compiled['before_training']} before training, {compiled['assessed']} assessed "
        f"below{more}"
    )
    yield ""
    problems = assessment["problems"]
    yield f"Not on the device: {len(problems)}" if problems else "All operators of the training step run on the device."
    for row in problems:
        yield f"  {row['graph']}: {row['what']} {row['why']}{_at(row['lines'])}"
    for graph in assessment["graphs"]:
        yield ""
        yield from _graph(graph)


def _graph(graph: JsonObject) -> Iterator[str]:
    yield f"== {graph['name']} ({graph['kind']}), {graph['line']}: {graph['nodes']:,} nodes"
    yield "inputs         " + (", ".join(f"{i['name']} {shape_text(i['shape'])}" for i in graph["inputs"]) or "none")
    yield f"partition      {partition_text(graph['partition'])}"
    variables = graph["variables"]
    yield f"variables      {variables['count']:,}, {amount(variables['bytes'], 'B', 1024)}"
    yield f"activations    {memory_text(graph['memory'])}"
    done = graph["work"]
    yield (
        f"work per step  {amount(done['flops'], 'FLOP')}, of which {amount(done['matrix_flops'], 'FLOP')} on the "
        f"matrix unit; operators read and write {amount(done['bytes'], 'B')}"
    )
    for loop in done["loops"]:
        runs = f"runs {loop['runs']} times" if loop["runs"] else "is counted once: its number of runs is not known"
        yield f"  loop {loop['name']} {runs}"
    for row in done["unknown"]:
        yield f"  not counted: {row['op']} ({row['why']})"
    half = graph["precision"]
    yield (
        f"mixed precision  {_ops(half['reduced'])} in 16 bits ({100 * half['matrix_share']:.0f} % of the matrix unit's "
        f"work); precision_mode: {half['mode'] or 'not set'}"
    )
    roof = graph["roofline"]
    if roof:
        yield (
            f"bound          {duration(roof['bound_seconds'])} at least on {roof['product']} (by the "
            f"{roof['bound_by']}), "
            f"{duration(roof['operators_seconds'])} if each operator reads and writes memory. A bound, not a promise"
        )
        if roof["memory_share"] is not None:
            yield f"               variables and activations are {100 * roof['memory_share']:.1f} % of the memory"
        yield f"               {roof['source']}"
    for row in graph["collectives"]:
        yield f"collective     {row['op']}: {row['count']}, {amount(row['bytes'], 'B')}"
    for row in graph["dtypes"]:
        ops = ", ".join(row["operators"][:5])
        yield f"{row['dtype']:14} {counted(row['tensors'], 'tensor')}: {ops}{_at(row['lines'])}"
    for row in graph["dynamic_shapes"]:
        now = f", {shape_text(row['in_this_run'])} in this run" if row["in_this_run"] is not None else ""
        yield f"dynamic shape  {row['op']} {row['name']} {shape_text(row['shape'])}{now}{_at(row['lines'])}"
        if row["unknown_tensors"]:
            yield f"               {unknown_text(row)}"
    yield ""
    yield from _table(graph["operators"], {row["op"] for row in done["unknown"]})


def _table(rows: list[JsonObject], not_counted: set[str]) -> Iterator[str]:
    shown = rows[:_MOST] + [row for row in rows[_MOST:] if row["status"] in ("host", "unclear")]
    width = max(len(row["op"]) for row in shown)
    yield f"{'operator'.ljust(width)}  {'number':>6}  {'status':8}  {'FLOP':>12}  {'bytes':>10}"
    for row in shown:
        yield (
            f"{row['op'].ljust(width)}  {row['count']:6}  {row['status']:8}  {work_text(row, not_counted):>12}  "
            f"{amount(row['bytes'], 'B'):>10}{_at(row['lines'])}"
        )
    hidden = len(rows) - len(shown)
    if hidden:
        yield f"... and {counted(hidden, 'operator type')} more, all on the device or in the input pipeline"


def _ops(rows: list[JsonObject]) -> str:
    names = [f"{row['count']} {row['op']}" for row in rows[:4]]
    return ", ".join(names) + (", ..." if len(rows) > 4 else "") if names else "nothing"


def _at(lines: Sequence[str]) -> str:
    return f" ({', '.join(lines)})" if lines else ""
