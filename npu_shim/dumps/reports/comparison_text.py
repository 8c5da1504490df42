"""The report of a comparison as text: answers first, then a table by type, then all tensors."""

from __future__ import annotations

from typing import Iterator, Sequence

from npu_shim.dumps.comparison_result import (
    AGREES,
    DEPARTS,
    NOT_COMPARED,
    ComparedTensor,
    DumpComparison,
    finite_or_none,
)
from npu_shim.dumps.files import Problem
from npu_shim.rehearsal.sections import Section, to_lines

_MOST, _MOST_NAMES = 12, 3  # rows and names without all_rows
_TYPES = ("type", "outputs", "departing", "largest distance", "least cosine")
_TENSORS = ("state", "operator", "type", "tensor", "op of TensorFlow", "types", "distance", "cosine", "cause", "line")


def to_text(result: DumpComparison, all_rows: bool = False) -> str:
    """Return the report as text that ends with a line feed.

    Args:
        result: of the comparison.
        all_rows: list all tensors, files and names, not the first of them.
    """
    return (
        "\n".join(
            [*answer_sentences(result), *to_lines(report_sections(result, all_rows), None if all_rows else _MOST)]
        )
        + "\n"
    )


def answer_sentences(result: DumpComparison) -> list[str]:
    """Return the sentences that the report begins with."""
    states, first = result.states, result.first_departure
    departing = states.get(DEPARTS, 0)
    lines = ["all outputs agree" if result.verdict == AGREES else "only inputs depart, no output does"]
    if first:
        of_step = f"step {first.step}: " if first.step >= 0 else ""
        line = f"{first.line}, " if first.line else ""
        what = f"{first.operator} ({first.type}), {line}inputs {first.inputs}"
        lines = [f"{of_step}first op that departs in the order of the graph: {what}"]
        lines += [f"  {first.slot} for {first.op}: {'; '.join(first.why)}", f"  {first.cause}"]
        lines += ["  path: " + " > ".join(f"{row.operator} ({row.state})" for row in first.path)]
    lines.append(f"{states.get(AGREES, 0) + departing} tensors compared, {departing} depart")
    if states.get(NOT_COMPARED):
        lines.append(f"{states[NOT_COMPARED]} tensors not compared: see their rows")
    return lines


def report_sections(result: DumpComparison, all_rows: bool = True) -> Iterator[Section]:
    """Yield the tables of the report, at last that of the tensors: without all_rows, those that do not agree."""
    rows = [
        [of.type, str(of.outputs), str(of.departing), *_figure_texts(of.largest_distance, of.least_cosine)]
        for of in result.types
    ]
    yield Section("by type", (), _TYPES, rows, (1, 2, 3, 4))
    if result.unpaired:
        most = None if all_rows else _MOST_NAMES
        rows = [[of.side, of.cause, str(of.number), ", ".join(of.names[:most])] for of in result.unpaired]
        yield Section("without a pair", (), ("side", "cause", "number", "names"), rows, (2,))
    yield from unread_section(result.problems)
    title = "all tensors" if all_rows else "tensors that do not agree"
    rows = [_tensor_row(tensor) for tensor in result.tensors if all_rows or tensor.state != AGREES]
    if rows:
        yield Section(title, (), _TENSORS, rows, (6, 7))


def unread_section(problems: Sequence[Problem]) -> Iterator[Section]:
    """Yield the table of the files that were not read, if there are any."""
    if problems:
        rows = [[unread_file.file, unread_file.problem] for unread_file in problems]
        yield Section("files that were not read", (), ("file", "problem"), rows)


def _tensor_row(tensor: ComparedTensor) -> list[str]:
    cells = [tensor.state, tensor.operator, tensor.type, tensor.slot, tensor.op]
    types = f"{tensor.device_type}, {tensor.reference_type}"
    figures = _figure_texts(tensor.figures.relative_euclidean, tensor.figures.cosine) if tensor.figures else ["", ""]
    return [*cells, types, *figures, tensor.cause or "; ".join(tensor.why), tensor.line]


def _figure_texts(distance: float, cosine: float) -> list[str]:
    """Return a distance and a cosine as text, empty if they are not finite."""
    both = (("{:.1e}", distance), ("{:.6f}", cosine))
    return ["" if finite_or_none(number) is None else form.format(number) for form, number in both]
