"""Runs of ops from the profiler's other exports: data bases (msprof*.db) and timelines (msprof*.json)."""

from __future__ import annotations

import collections
import contextlib
import json
import re
import sqlite3
import urllib.parse
from typing import Any, Iterator, Mapping, NamedTuple, Sequence

import numpy as np

from npu_shim.profiles import columns
from npu_shim.profiles.kinds import TRANSFER, Signature
from npu_shim.profiles.runs import Runs

_COMPUTE = {  # field of a signature -> column of COMPUTE_TASK_INFO
    "name": "name",
    "type": "opType",
    "core": "taskType",
    "shapes": "inputShapes",
    "types": "inputDataTypes",
    "out_shapes": "outputShapes",
    "out_types": "outputDataTypes",
    "out_formats": "outputFormats",
}
_HARDWARE = re.compile("Ascend Hardware|AI Core|AI CPU|Communication|HCCL|NPU", re.I)
_SUMMARY = re.compile("Overlap Analysis|Free|Computing", re.I)
_LINKS = (
    "SELECT c.srcRank, c.dstRank, c.transportType, sum(c.size), sum(t.endNs - t.startNs) FROM TASK t "
    "JOIN COMMUNICATION_TASK_INFO c ON t.globalTaskId = c.globalTaskId WHERE c.size > 0 AND c.srcRank <> c.dstRank "
    "GROUP BY c.srcRank, c.dstRank, c.transportType"
)
_LINK = ("src rank", "dst rank", "transport type", "size(Byte)")  # arguments of an event
_ERRORS = (sqlite3.Error, ValueError, TypeError, OverflowError, UnicodeDecodeError)


class Link(NamedTuple):
    """The traffic of a link between two ranks: bytes and nanoseconds."""

    source: int
    target: int
    transport: str
    size: float
    took: float


def read_database(path: str, runs: Runs, problems: dict[str, str]) -> list[Link]:
    """Read the runs, and return the links, of a data base of CANN 8 and 9 or of a plugin of PyTorch or MindSpore."""
    try:
        with _opened(path) as base:
            if _columns(base, "STRING_IDS"):
                base.create_function("text", 1, dict(base.execute("SELECT id, value FROM STRING_IDS")).get)
            if _columns(base, "TASK"):
                _operators(base, runs)
            found = _columns(base, "COMMUNICATION_OP")
            if found:
                device = "deviceId" if "deviceId" in found else "(SELECT min(deviceId) FROM TASK)"
                kind = "opType" if "opType" in found else "opName"
                fields = {"device": f"coalesce({device}, 0)", "name": "text(opName)", "type": f"text({kind})"}
                runs.add_rows(_selected(base, "COMMUNICATION_OP t", {**fields, "core": "'COMMUNICATION'"}))
            if {"srcRank", "dstRank", "size", "transportType"} <= _columns(base, "COMMUNICATION_TASK_INFO"):
                rows = base.execute(_LINKS)
                return [Link(int(row[0]), int(row[1]), str(row[2]), *map(float, row[3:])) for row in rows]
    except _ERRORS as error:
        problems[path] = f"it is no data base of a profile: {error}. Export it again"
    return []


def read_steps(path: str) -> np.ndarray:
    """Return the starts and ends of steps that a data base marks, in nanoseconds."""
    try:
        with _opened(path) as base:
            query = "SELECT startNs, endNs FROM STEP_TIME WHERE endNs > startNs ORDER BY startNs"
            return np.array(base.execute(query).fetchall(), np.int64).reshape(-1, 2)
    except _ERRORS:
        return np.zeros((0, 2), np.int64)


def _opened(path: str) -> contextlib.closing[sqlite3.Connection]:
    return contextlib.closing(sqlite3.connect(f"file:{urllib.parse.quote(path)}?mode=ro&immutable=1", uri=True))


def _columns(base: sqlite3.Connection, table: str) -> set[str]:
    return {row[1] for row in base.execute(f"PRAGMA table_info({table})")}


def _selected(base: sqlite3.Connection, table: str, fields: Mapping[str, str]) -> Iterator[tuple[list[str], int, int]]:
    """Yield the cells of a signature, the start and the end of the rows of a table."""
    cells = ", ".join(f"coalesce({fields.get(field, 'NULL')}, '')" for field in Signature._fields)
    for *found, start, end in base.execute(f"SELECT {cells}, t.startNs, t.endNs FROM {table}"):
        yield [str(cell) for cell in found], int(start), int(end)


def _operators(base: sqlite3.Connection, runs: Runs) -> None:
    """Add the operators, and the copies between host and device, which have a row in TASK alone."""
    found, only = _columns(base, "COMPUTE_TASK_INFO"), runs.only
    fields = {field: f"text(c.{column})" for field, column in _COMPUTE.items() if column in found}
    fields["core"] = f"coalesce({fields.get('core', 'NULL')}, text(t.taskType))"
    fields["name"] = f"coalesce({fields.get('name', 'NULL')}, {fields['core']})"
    fields["device"] = "t.deviceId"
    table = "TASK t LEFT JOIN COMPUTE_TASK_INFO c ON c.globalTaskId = t.globalTaskId" if found else "TASK t"
    parts = "SELECT globalTaskId FROM COMMUNICATION_TASK_INFO"
    table += " WHERE 1" + (f" AND t.globalTaskId NOT IN ({parts})" if _columns(base, "COMMUNICATION_TASK_INFO") else "")
    runs.add_rows(_selected(base, f"{table} AND c.globalTaskId IS NOT NULL" if found else table, fields))
    if found:
        runs.only = TRANSFER
        runs.add_rows(_selected(base, f"{table} AND c.globalTaskId IS NULL", fields))
        runs.only = only


def read_timeline(path: str, runs: Runs, problems: dict[str, str]) -> list[Link]:
    """Read the runs, and return the links, of a timeline in the format of Chrome's trace viewer."""
    try:
        with open(path, encoding="utf-8-sig", errors="replace") as stream:
            events = json.load(stream)
    except (OSError, ValueError, RecursionError) as error:
        problems[path] = f"it is no JSON: {error}. Export it again"
        return []
    events = events.get("traceEvents") if isinstance(events, dict) else events
    events = events if isinstance(events, list) else []
    events = [each for each in events if isinstance(each, dict) and isinstance(each.get("args"), dict)]
    process = {
        str(each.get("pid")): str(each["args"].get("name")) for each in events if each.get("name") == "process_name"
    }
    sums: dict[tuple[int, int, str], np.ndarray] = collections.defaultdict(lambda: np.zeros(2))
    rows: list[tuple[Sequence[str], int, int]] = []
    broken = 0
    for each in events:
        arguments, of_process = each["args"], process.get(str(each.get("pid")), "")
        if each.get("ph") != "X" or not _HARDWARE.search(of_process) or _SUMMARY.search(of_process):
            continue
        try:
            start, took = (columns.shifted(str(each[name]), 3) for name in ("ts", "dur"))
            source, target, transport, size = map(arguments.get, _LINK)
            if None not in (source, target, transport, size) and float(size) > 0 and source != target:
                sums[int(source), int(target), str(transport)] += float(size), took
            if source is None and "notify_id" not in arguments:  # no part of a collective, which has an event
                rows.append((_cells(each, arguments, of_process), start, start + took))
        except (KeyError, TypeError, ValueError, OverflowError):
            broken += 1
            problems[path] = f"{broken} events are broken and were skipped"
    runs.add_rows(rows)
    return [Link(*key, *map(float, values)) for key, values in sums.items()]


def _cells(event: dict[str, Any], arguments: dict[str, Any], process: str) -> Signature:
    name = str(event.get("name", ""))
    return Signature(
        device=str(arguments.get("Device Id", arguments.get("device id", "0"))),
        name=name,
        type=str(arguments.get("OP Type", name.rpartition("/")[2].rstrip("0123456789_") or name)),
        core="COMMUNICATION" if re.search("Communication|HCCL", process, re.I) else str(arguments.get("Task Type", "")),
    )
