"""The columns of the profiler's tables, by their names in CANN 5 to 9.

A row of a table gives the names of a column from the latest release to the first. Names are compared in lower case and
without their unit; CANN 5 and 6 wrote no unit at times, CANN 7 added one, CANN 9 replaced "Block Dim" by "Block Num".
PyTorch's and MindSpore's plugins write op_summary as kernel_details, with shorter names.
"""

from __future__ import annotations

import re
from typing import Mapping, Sequence, Tuple

Names = Mapping[str, Tuple[str, ...]]

OPS: Names = {
    "device": ("device_id",),
    "step": ("step id",),
    "model": ("model id",),
    "stream": ("stream id", "stream_id"),
    "name": ("op name", "name", "kernel_name"),
    "type": ("op type", "type"),
    "state": ("op state",),
    "core": ("task type", "accelerator core", "kernel_type"),
    "start": ("task start time", "start time", "task_start"),
    "duration": ("task duration", "duration", "task_time"),
    "shapes": ("input shapes",),
    "types": ("input data types",),
    "out_shapes": ("output shapes",),
    "out_types": ("output data types",),
    "out_formats": ("output formats",),
    "matrix": ("aic_mac_ratio", "mac_ratio", "ai*_mac_ratio", "aic_mac_fp16_ratio", "mac_fp16_ratio"),
    "vector": ("aiv_vec_ratio", "vec_ratio", "ai*_vec_ratio", "aiv_vec_fp32_ratio", "vec_fp32_ratio"),
    "memory": ("aic_mte2_ratio", "mte2_ratio", "ai*_mte2_ratio"),
    "memory of vectors": ("aiv_mte2_ratio",),
}
STEPS: Names = {
    "device": ("device_id",),
    "model": ("model id",),
    "step": ("iteration id",),
    "fp_start": ("fp start",),
    "bp_end": ("bp end",),
    "end": ("iteration end",),
    "time": ("iteration time",),
    "reduce_start": ("reduce start",),  # one for each message of gradients
    "reduce_duration": ("reduce duration",),
}
STATISTIC: Names = {
    "device": ("device_id",),
    "type": ("op type",),
    "core": ("core type",),
    "count": ("count",),
    "total": ("total time",),
}
APIS: Names = {
    "level": ("level", "type"),
    "name": ("api name", "name"),
    "total": ("time",),
    "count": ("count", "calls"),
}
FUSION: Names = {"name": ("fusion op",), "originals": ("original ops",)}
LINES: Names = {"name": ("op name",), "type": ("op type",), "line": ("line",)}

# kind -> names, and the columns without which it cannot be read
TABLES: Mapping[str, tuple[Names, Sequence[str]]] = {
    "op_summary": (OPS, ("name", "start", "duration")),
    "task_time": (OPS, ("name", "start", "duration")),
    "step_trace": (STEPS, ("end",)),
    "op_statistic": (STATISTIC, ("type", "count", "total")),
    "communication_statistic": (STATISTIC, ("type", "count", "total")),
    "api_statistic": (APIS, ("name", "total", "count")),
    "fusion_op": (FUSION, ("name", "originals")),
    "lines": (LINES, ("name", "line")),
}
NANOSECONDS = {"ns": 1, "us": 1000, "ms": 10**6, "s": 10**9}
_UNIT = re.compile(r"\s*\(([^()]*)\)\s*$")


def places(heads: Sequence[str], kind: str) -> dict[str, list[int]]:
    """Return the places of the columns that a table has.

    Raises:
        ValueError: a column is missing without which the table cannot be read.
    """
    names, needed = TABLES[kind]
    plain = [_UNIT.sub("", head.strip().lower()) for head in heads]
    found: dict[str, list[int]] = {}
    for column, spellings in names.items():
        for spelling in spellings:
            if spelling in plain:
                found[column] = [place for place, head in enumerate(plain) if head == spelling]
                break
    missing = [column for column in needed if column not in found]
    if missing:
        wanted = ", ".join(repr(names[column][0]) for column in missing)
        raise ValueError(f"its first line has no column {wanted}. Export the profile again with msprof --export=on")
    return found


def unit(head: str) -> int:
    """Return the nanoseconds of a column's unit, 0 if the head has none."""
    match = _UNIT.search(head.strip().lower())
    return NANOSECONDS.get(match.group(1), 0) if match else 0
