"""The table of a comparison with the columns of the vendor's ``result_*.csv``, which its advisor reads."""

from __future__ import annotations

import csv
import io

from npu_shim.dumps.comparison_result import ComparedTensor, DumpComparison, finite_or_none
from npu_shim.dumps.figures import FIGURES
from npu_shim.dumps.limits import LARGEST_HALF

_HEADS = (
    "Index OpType NPUDump DataType Address GroundTruth Type TensorIndex Shape OverFlow CosineSimilarity "
    "MaxAbsoluteError AccumulatedRelativeError RelativeEuclideanDistance KullbackLeiblerDivergence StandardDeviation "
    "MeanAbsoluteError RootMeanSquareError MaxRelativeError MeanRelativeError CompareFailReason"
).split()
_FIGURES = dict(zip(_HEADS[10:15] + _HEADS[16:20], FIGURES))


def to_csv(result: DumpComparison) -> str:
    """Return the table: a row for each tensor, and for each operator or op without a pair."""
    stream = io.StringIO()
    writer = csv.DictWriter(stream, _HEADS, restval="NaN")
    writer.writerow({**dict(zip(_HEADS, _HEADS)), "Type": "DataType"})  # the second column of this name
    rows = [(tensor.operator, _tensor_row(tensor)) for tensor in result.tensors]
    for group in result.unpaired:
        names = ("NPUDump", "GroundTruth") if group.side == "device" else ("GroundTruth", "NPUDump")
        for name in group.names:
            rows.append((f"{group.side} {name}", {names[0]: name, names[1]: "*", "CompareFailReason": group.cause}))
    numbers: dict[str, int] = {}
    for key, row in rows:
        index = numbers.setdefault(key, len(numbers))
        writer.writerow({"Index": index, **{head: _escape_formula(cell) for head, cell in row.items()}})
    return stream.getvalue()


def _tensor_row(tensor: ComparedTensor) -> dict[str, str]:
    figures = tensor.figures
    row = {"OpType": tensor.type, "NPUDump": tensor.operator, "DataType": tensor.device_type}
    row.update(GroundTruth=tensor.op.rpartition(":")[0], TensorIndex=f"{tensor.operator}:{tensor.slot}")
    row.update(Shape=str(tensor.shape).replace(" ", ""), CompareFailReason="" if figures else "; ".join(tensor.why))
    row.update({"Type": tensor.reference_type} if tensor.reference_type else {})
    if figures:
        numbers = {head: finite_or_none(getattr(figures, name)) for head, name in _FIGURES.items()}
        row.update((head, f"{number:.6f}") for head, number in numbers.items() if number is not None)
        if None not in map(finite_or_none, figures.deviations):
            row["StandardDeviation"] = "({:.3f};{:.3f}),({:.3f};{:.3f})".format(*figures.deviations)
        if tensor.device_type == "float16":
            is_over = figures.not_finite > 0 or figures.largest >= LARGEST_HALF
            row["OverFlow"] = "YES" if is_over else "NO"
    return row


def _escape_formula(cell: str) -> str:
    """Return a cell that a spreadsheet does not take for a formula."""
    return f" {cell}" if cell[:1] in "=+-@" and cell[1:2].isalpha() else cell
