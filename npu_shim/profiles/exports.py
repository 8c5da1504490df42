"""Runs of ops from the profiler's other exports: data bases (msprof*.db) and timelines (msprof*.json)."""

from __future__ import annotations

import contextlib
import json
import re
import sqlite3
import urllib.parse
from typing import Any, Iterable, NamedTuple

import numpy as np

from npu_shim.profiles.kinds import TRANSFER, category
from npu_shim.profiles.tables import Runs, Signature, Signatures

_ROWS = 1 << 16
_COMPUTE = {  # column of COMPUTE_TASK_INFO -> field of a signature, from the latest release to the first
    "name": "name",
    "opType": "type",
    "opState": "state",
    "taskType": "core",
    "inputShapes": "shapes",
    "inputDataTypes": "types",
    "outputShapes": "out_shapes",
    "outputDataTypes": "out_types",
    "outputFormats": "out_formats",
}
_HARDWARE = re.compile("Ascend Hardware|AI Core|AI CPU|Communication|HCCL|NPU", re.I)
_SUMMARY = re.compile("Overlap Analysis|Free|Computing", re.I)


class Link(NamedTuple):
    """The traffic of a link between two ranks: bytes and nanoseconds."""

    source: int
    target: int
    transport: str
    size: float
    took: float


def read_database(path: str, signatures: Signatures, problems: dict[str, str]) -> tuple[list[Runs], list[Link]]:
    """Return the runs and links of a data base of CANN 8 and 9, and of the plugins of PyTorch and MindSpore."""
    try:
        with contextlib.closing(_open(path)) as base:
            rows = list(_operators(base)) + list(_collectives(base))
            return _as_runs(rows, signatures), list(_links(base))
    except (sqlite3.Error, ValueError, TypeError, OverflowError, UnicodeDecodeError) as error:
        problems[path] = f"it is no data base of a profile: {error}. Export it again"
        return [], []


def read_steps(path: str) -> np.ndarray:
    """Return the starts and ends of steps that a data base marks, in nanoseconds."""
    try:
        with contextlib.closing(_open(path)) as base:
            rows = base.execute(
                "SELECT startNs, endNs FROM STEP_TIME WHERE endNs > startNs ORDER BY startNs"
            ).fetchall()
            return np.array(rows, np.int64).reshape(-1, 2)
    except (sqlite3.Error, ValueError, TypeError, OverflowError):
        return np.zeros((0, 2), np.int64)


def _open(path: str) -> sqlite3.Connection:
    return sqlite3.connect(f"file:{urllib.parse.quote(path)}?mode=ro&immutable=1", uri=True)


def _columns(base: sqlite3.Connection, table: str) -> set[str]:
    return {row[1] for row in base.execute(f"PRAGMA table_info({table})")}


def _operators(base: sqlite3.Connection) -> Iterable[tuple[Signature, int, int]]:
    """Yield the operators, and the copies between host and device, which have a row in TASK alone."""
    if not _columns(base, "TASK"):
        return
    names = dict(base.execute("SELECT id, value FROM STRING_IDS"))
    found = _columns(base, "COMPUTE_TASK_INFO")
    kept = [column for column in _COMPUTE if column in found]
    parts = _columns(base, "COMMUNICATION_TASK_INFO")
    selected = "".join(f", c.{column}" for column in ("globalTaskId", *kept)) if kept else ", 0"
    join = "LEFT JOIN COMPUTE_TASK_INFO c ON c.globalTaskId = t.globalTaskId" if kept else ""
    where = "WHERE t.globalTaskId NOT IN (SELECT globalTaskId FROM COMMUNICATION_TASK_INFO)" if parts else ""
    query = (
        f"SELECT t.startNs, t.endNs, t.deviceId, t.modelId, t.streamId, t.taskType{selected} FROM TASK t {join} {where}"
    )
    for start, end, device, model, stream, core, task, *cells in base.execute(query):
        fields = {_COMPUTE[column]: str(names.get(cell, "")) for column, cell in zip(kept, cells) if cell is not None}
        fields.setdefault("core", str(names.get(core, "")))
        fields.setdefault("name", fields["core"])
        made = Signature(str(device), model=str(model), stream=str(stream), **fields)
        if task is not None or category(made) == TRANSFER:
            yield made, int(start), int(end)


def _collectives(base: sqlite3.Connection) -> Iterable[tuple[Signature, int, int]]:
    found = _columns(base, "COMMUNICATION_OP")
    if not found:
        return
    names = dict(base.execute("SELECT id, value FROM STRING_IDS"))
    device = "deviceId" if "deviceId" in found else "(SELECT min(deviceId) FROM TASK)"
    kind = "opType" if "opType" in found else "opName"
    for name, of_type, start, end, number in base.execute(
        f"SELECT opName, {kind}, startNs, endNs, {device} FROM COMMUNICATION_OP"
    ):
        made = Signature(
            "0" if number is None else str(number),
            name=str(names.get(name, "")),
            type=str(names.get(of_type, "")),
            core="COMMUNICATION",
        )
        yield made, int(start), int(end)


def _links(base: sqlite3.Connection) -> Iterable[Link]:
    if not {"srcRank", "dstRank", "size", "transportType"} <= _columns(base, "COMMUNICATION_TASK_INFO"):
        return
    for source, target, transport, size, took in base.execute(
        "SELECT c.srcRank, c.dstRank, c.transportType, sum(c.size), sum(t.endNs - t.startNs) FROM "
        "COMMUNICATION_TASK_INFO c JOIN TASK t ON t.globalTaskId = c.globalTaskId WHERE c.size > 0 "
        "AND c.srcRank <> c.dstRank GROUP BY c.srcRank, c.dstRank, c.transportType"
    ):
        yield Link(int(source), int(target), str(transport), float(size), float(took))


def read_timeline(path: str, signatures: Signatures, problems: dict[str, str]) -> tuple[list[Runs], list[Link]]:
    """Return the runs and links of a timeline in the format of Chrome's trace viewer."""
    try:
        with open(path, encoding="utf-8-sig", errors="replace") as stream:
            events = json.load(stream)
    except (OSError, ValueError, RecursionError) as error:
        problems[path] = f"it is no JSON: {error}. Export it again"
        return [], []
    events = events.get("traceEvents", []) if isinstance(events, dict) else events
    events = [each for each in events if isinstance(each, dict)] if isinstance(events, list) else []
    process = {str(each.get("pid")): _argument(each, "name") for each in events if each.get("name") == "process_name"}
    sums: dict[tuple[int, int, str], list[float]] = {}
    rows, broken = [], 0
    for each in events:
        arguments = each.get("args")
        if each.get("ph") != "X" or not isinstance(arguments, dict):
            continue
        of_process = process.get(str(each.get("pid")), "")
        if not _HARDWARE.search(of_process) or _SUMMARY.search(of_process):
            continue
        try:
            start = int(str(each["ts"]).partition(".")[0]) * 1000 + int((str(each["ts"]).partition(".")[2] + "000")[:3])
            took = int(round(float(each["dur"]) * 1000))
            link: list[Any] = [arguments.get(name) for name in ("src rank", "dst rank", "transport type", "size(Byte)")]
            if None not in link and float(link[3]) > 0 and link[0] != link[1]:
                total = sums.setdefault((int(link[0]), int(link[1]), str(link[2])), [0.0, 0.0])
                total[0] += float(link[3])
                total[1] += took
            if "src rank" in arguments or "notify_id" in arguments:
                continue  # a part of a collective, which has an event of its own
            rows.append((_of_event(each, arguments, of_process), start, start + took))
        except (KeyError, TypeError, ValueError, OverflowError):
            broken += 1
            problems[path] = f"{broken} events are broken and were skipped"
    return _as_runs(rows, signatures), [Link(*key, *values) for key, values in sums.items()]


def _argument(event: dict[str, Any], name: str) -> str:
    arguments = event.get("args")
    return str(arguments.get(name, "")) if isinstance(arguments, dict) else ""


def _of_event(event: dict[str, Any], arguments: dict[str, Any], process: str) -> Signature:
    collective = re.search("Communication|HCCL", process, re.I)
    name = str(event.get("name", ""))
    return Signature(
        device=str(arguments.get("Device Id", arguments.get("device id", "0"))),
        model=str(arguments.get("Model Id", "")),
        stream=str(arguments.get("Stream Id", event.get("tid", ""))),
        name=name,
        type=str(arguments.get("OP Type", name.rpartition("/")[2].rstrip("0123456789_") or name)),
        core="COMMUNICATION" if collective else str(arguments.get("Task Type", "")),
    )


def _as_runs(rows: list[tuple[Signature, int, int]], signatures: Signatures) -> list[Runs]:
    rows = [row for row in rows if 0 <= row[1] <= row[2] < 1 << 62]
    if not rows:
        return []
    made, start, end = zip(*rows)
    starts = np.array(start, np.int64)
    none = np.full((3, len(rows)), np.nan, np.float32)
    return [
        Runs(
            np.array([signatures.number(each) for each in made], np.int32),
            starts,
            np.array(end, np.int64) - starts,
            none,
        )
    ]
