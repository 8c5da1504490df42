"""The result of a comparison as data: what docs/dumps.schema.json describes and all reports are made of."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from typing import TYPE_CHECKING, Any

import npu_shim
from npu_shim.dumps.comparison import AGREES, DEPARTS, Compared, Comparison

if TYPE_CHECKING:
    from npu_shim._tensorflow.types import JsonObject

_MOST_NAMES = 2000  # of a cause


def to_result(found: Comparison, device: str, other: str) -> JsonObject:
    """Return the result.

    Args:
        found: the comparison.
        device, other: the folders as given.
    """
    first = found.first
    return {
        "schema_version": 1,
        "tool": "npu-shim dumps compare",
        "tool_version": npu_shim.__version__,
        "device": device,
        "reference": other,
        "graphs": found.graphs,
        "verdict": DEPARTS if any(each.state == DEPARTS for each in found.compared) else AGREES,
        "pairs": len(found.compared),
        "states": dict(Counter(each.state for each in found.compared)),
        "first_departure": first
        and {**_entry(first.at), "inputs": first.inputs, "path": [_entry(each) for each in first.path]},
        "types": _types(found.compared),
        "tensors": [_entry(each) for each in found.compared],
        "unpaired": _causes("device", found.of_device) + _causes("reference", found.of_reference),
        "problems": [{"file": path, "problem": text} for path, text in found.problems.items()],
    }


def _entry(each: Compared) -> JsonObject:
    pair, figures = each.pair, each.figures
    return {
        "step": each.step,
        "operator": pair.operator.name,
        "type": pair.operator.op.op_type if pair.operator.op else pair.operator.file.op_type,
        "originals": pair.operator.originals or [],
        "slot": f"{pair.slot}:{pair.index}",
        "op": f"{each.output.op}:{each.output.output}",
        "line": each.output.line,
        "device_type": each.device_type,
        "reference_type": each.output.dtype,
        "layout": each.layout,
        "shape": each.output.shape or [],
        "state": each.state,
        "why": each.why,
        "cause": each.cause,
        "file": pair.operator.file.path,
        "figures": figures and {name: _finite(value) for name, value in dataclasses.asdict(figures).items()},
    }


def _finite(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [_finite(each) for each in value]
    return None if not math.isfinite(value) else int(value) if isinstance(value, int) else float(value)


def _types(compared: list[Compared]) -> list[JsonObject]:
    """Return how the types of operators fare, those that depart first."""
    by_type: dict[str, list[Compared]] = {}
    for each in compared:
        if each.pair.slot == "output":
            op = each.pair.operator
            by_type.setdefault(op.op.op_type if op.op else op.file.op_type, []).append(each)
    rows = []
    for name, members in by_type.items():
        figures = [each.figures for each in members if each.figures]
        distances = [each.relative_euclidean for each in figures if math.isfinite(each.relative_euclidean)]
        cosines = [each.cosine for each in figures if math.isfinite(each.cosine)]
        rows.append(
            {
                "type": name,
                "outputs": len(members),
                "departing": sum(each.state == DEPARTS for each in members),
                "largest_distance": max(distances) if distances else None,
                "least_cosine": min(cosines) if cosines else None,
            }
        )
    return sorted(rows, key=lambda row: (-row["departing"], -(row["largest_distance"] or 0.0), row["type"]))


def _causes(side: str, found: list[tuple[str, str]]) -> list[JsonObject]:
    by_cause: dict[str, list[str]] = {}
    for name, cause in found:
        by_cause.setdefault(cause, []).append(name)
    return [
        {"side": side, "cause": cause, "number": len(names), "names": names[:_MOST_NAMES]}
        for cause, names in by_cause.items()
    ]
