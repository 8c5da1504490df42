"""The table of a comparison with the columns of the vendor's ``result_*.csv``, which its advisor reads."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Any

from npu_shim.dumps.limits import LARGEST_HALF

if TYPE_CHECKING:
    from npu_shim._tensorflow.types import JsonObject

_HEADS = (
    "Index OpType NPUDump DataType Address GroundTruth DataType TensorIndex Shape OverFlow CosineSimilarity "
    "MaxAbsoluteError AccumulatedRelativeError RelativeEuclideanDistance KullbackLeiblerDivergence StandardDeviation "
    "MeanAbsoluteError RootMeanSquareError MaxRelativeError MeanRelativeError CompareFailReason"
).split()
_BEFORE = ("cosine", "max_absolute", "accumulated_relative", "relative_euclidean", "divergence")
_AFTER = ("mean_absolute", "root_mean_square", "max_relative", "mean_relative")
_NONE = "NaN"


def to_csv(result: JsonObject) -> str:
    """Return the table: a row for each tensor, and for each operator or op without a pair."""
    stream = io.StringIO()
    writer = csv.writer(stream)
    writer.writerow(_HEADS)
    numbers: dict[str, int] = {}
    for each in result["tensors"]:
        index = numbers.setdefault(each["operator"], len(numbers))
        writer.writerow([_safe(cell) for cell in [index, *_row(each)]])
    for group in result["unpaired"]:
        for name in group["names"]:
            npu, truth = (name, "*") if group["side"] == "device" else ("*", name)
            index = numbers.setdefault(f"{group['side']} {name}", len(numbers))
            row = [index, _NONE, npu, _NONE, _NONE, truth, *[_NONE] * (len(_HEADS) - 7), group["cause"]]
            writer.writerow([_safe(cell) for cell in row])
    return stream.getvalue()


def _row(each: JsonObject) -> list[Any]:
    figures = each["figures"] or {}
    half = each["device_type"] == "float16" and figures
    overflow = half and (figures["not_finite"] > 0 or figures["largest"] >= LARGEST_HALF)
    spread = figures.get("deviations")
    deviations = "({:.3f};{:.3f}),({:.3f};{:.3f})".format(*spread) if spread and None not in spread else _NONE
    reasons = each["why"] if each["state"] == "not compared" or not figures else []
    names = each["type"], each["operator"], each["device_type"], _NONE, each["op"].rpartition(":")[0]
    shape = "[" + ",".join(map(str, each["shape"])) + "]"
    tensor = each["reference_type"] or _NONE, f"{each['operator']}:{each['slot']}", shape
    before, after = ([_figure(figures.get(name)) for name in half_of] for half_of in (_BEFORE, _AFTER))
    is_over = ("YES" if overflow else "NO") if half else _NONE
    return [*names, *tensor, is_over, *before, deviations, *after, "; ".join(reasons)]


def _figure(value: float | None) -> str:
    return _NONE if value is None else f"{value:.6f}"


def _safe(cell: Any) -> Any:
    """Return a cell that a spreadsheet does not take for a formula."""
    return f" {cell}" if isinstance(cell, str) and cell[:1] in "=+-@" and cell[:1] and cell[1:2].isalpha() else cell
