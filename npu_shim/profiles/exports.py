"""Other exports of the profiler: data bases (msprof*.db), timelines (msprof*.json), messages (communication*.json)."""

from __future__ import annotations

import contextlib
import json
import re
import sqlite3
import urllib.parse
from typing import Any, Dict, Iterator, Mapping, Sequence, Tuple

import numpy as np

from npu_shim.profiles import columns, kinds
from npu_shim.profiles.kinds import Signature
from npu_shim.profiles.runs import Runs

# ranks of source and target, transport, and run -> bytes and nanoseconds
Links = Dict[Tuple[int, int, str, str], np.ndarray]
Waits = Dict[Tuple[str, str], Dict[str, float]]  # step and collective -> rank -> milliseconds

_HARDWARE = re.compile("Ascend Hardware|AI Core|AI CPU|Communication|HCCL|NPU", re.I)
_SUMMARY = re.compile("Overlap Analysis|Free|Computing", re.I)
_LINKS = (
    "SELECT c.srcRank, c.dstRank, c.transportType, sum(c.size), sum(t.endNs - t.startNs) FROM TASK t "
    "JOIN COMMUNICATION_TASK_INFO c ON t.globalTaskId = c.globalTaskId WHERE c.size > 0 GROUP BY 1, 2, 3"
)
_LINK = ("src rank", "dst rank", "transport type", "size(Byte)")  # arguments of an event
_SUMS = re.compile(r"Total Op Info|.*-(top|middle|bottom)\d*@")  # and single ops, beside the totals of all
_ERRORS = (sqlite3.Error, OSError, ValueError, TypeError, KeyError, IndexError, OverflowError, RecursionError)


def read_database(path: str, source: str, runs: Runs, links: Links, problems: dict[str, str]) -> None:
    """Read the runs and links in a data base of CANN 8 and 9, or of a plugin of PyTorch or MindSpore."""
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
            if {"srcRank", "dstRank", "size", "transportType"}.issubset(_columns(base, "COMMUNICATION_TASK_INFO")):
                for row in base.execute(_LINKS):
                    _link(links, source, row)
    except _ERRORS as error:
        problems[path] = f"it is no data base of a profile: {error}. Export it again"


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


def _columns(base: sqlite3.Connection, table: str) -> list[str]:
    return [row[1] for row in base.execute(f"PRAGMA table_info({table})")]


def _selected(base: sqlite3.Connection, table: str, fields: Mapping[str, str]) -> Iterator[tuple[Any, ...]]:
    """Yield the cells of a signature, the start and the duration of the rows of a table."""
    cells = ", ".join(f"coalesce({fields.get(field, 'NULL')}, '')" for field in Signature._fields)
    for *found, start, took in base.execute(f"SELECT {cells}, t.startNs, t.endNs - t.startNs FROM {table}"):
        yield tuple(map(str, found)), int(start), int(took)


def _operators(base: sqlite3.Connection, runs: Runs) -> None:
    """Add the operators, and the copies between host and device, which have a row in TASK alone."""
    heads = _columns(base, "COMPUTE_TASK_INFO")
    fields = {field: f"text(c.{heads[of[0]]})" for field, of in columns.places(heads, "COMPUTE_TASK_INFO").items()}
    fields["core"] = f"coalesce({fields.get('core', 'NULL')}, text(t.taskType))"
    fields["name"] = f"coalesce({fields.get('name', 'NULL')}, {fields['core']})"
    fields["device"] = "t.deviceId"
    table = "TASK t WHERE 1"
    if heads:
        base.create_function("copies", 1, lambda core: kinds.category(Signature(core=core or "")) == kinds.TRANSFER)
        table = "TASK t LEFT JOIN COMPUTE_TASK_INFO c ON c.globalTaskId = t.globalTaskId "
        table += "WHERE (c.globalTaskId IS NOT NULL OR copies(text(t.taskType)))"
    if _columns(base, "COMMUNICATION_TASK_INFO"):
        table += " AND t.globalTaskId NOT IN (SELECT globalTaskId FROM COMMUNICATION_TASK_INFO)"
    runs.add_rows(_selected(base, table, fields))


def _link(links: Links, run: str, row: Sequence[Any]) -> None:
    """Add what went over a link, if anything did: source, target, transport, bytes and nanoseconds."""
    source, target, transport, size, took = row
    if None not in (source, target, transport, size) and float(size) > 0 and source != target:
        links[int(source), int(target), str(transport), run] += float(size), took


def _json(path: str, problems: dict[str, str]) -> Any:
    try:
        with open(path, encoding="utf-8-sig", errors="replace") as stream:
            return json.load(stream)
    except _ERRORS as error:
        problems[path] = f"it is no JSON: {error}. Export it again"
        return None


def read_timeline(path: str, source: str, runs: Runs, links: Links, problems: dict[str, str]) -> None:
    """Read the runs and links in a timeline in the format of Chrome's trace viewer."""
    events = _json(path, problems)
    events = events.get("traceEvents") if isinstance(events, dict) else events
    events = events if isinstance(events, list) else []
    events = [each for each in events if isinstance(each, dict) and isinstance(each.get("args"), dict)]
    process = {
        str(each.get("pid")): str(each["args"].get("name")) for each in events if each.get("name") == "process_name"
    }
    rows: list[tuple[Any, ...]] = []
    broken = 0
    for each in events:
        arguments, of_process = each["args"], process.get(str(each.get("pid")), "")
        if each.get("ph") != "X" or not _HARDWARE.search(of_process) or _SUMMARY.search(of_process):
            continue
        try:
            start, took = (columns.shifted(str(each[name]), 3) for name in ("ts", "dur"))
            _link(links, source, [*map(arguments.get, _LINK), took])
            if (
                arguments.get("src rank") is None and "notify_id" not in arguments
            ):  # no part of a collective with an event
                rows.append((_cells(each, arguments, of_process), start, took))
        except _ERRORS:
            broken += 1
            problems[path] = f"{broken} events are broken and were skipped"
    runs.add_rows(rows)


def _cells(event: dict[str, Any], arguments: dict[str, Any], process: str) -> Signature:
    name = str(event.get("name", ""))
    return Signature(
        device=str(arguments.get("Device Id", arguments.get("device id", "0"))),
        name=name,
        type=str(arguments.get("OP Type", name.rpartition("/")[2].rstrip("0123456789_") or name)),
        core="COMMUNICATION" if re.search("Communication|HCCL", process, re.I) else str(arguments.get("Task Type", "")),
    )


def read_messages(path: str, source: str, rank: str, links: Links, waits: Waits, problems: dict[str, str]) -> None:
    """Read the traffic of links, and how long ranks wait for another, in communication*.json of one rank or of all.

    Args:
        path: of the file.
        source: the run that it belongs to.
        rank: whose file it is.
        links, waits: receive them.
        problems: receives what is wrong with the file.
    """
    try:
        for keys, cells in _leaves(_json(path, problems)):
            step = next((key for key in keys if key.startswith("step")), "")
            if _SUMS.match(keys[2]):
                continue
            if "Transport Type" in cells:
                size, took = (1e6 * float(cells[f"Transit {name}"]) for name in ("Size(MB)", "Time(ms)"))
                _link(links, source, [*map(int, keys[3].split("-")), cells["Transport Type"], size, took])
            else:
                whose = (*keys, rank)[3]
                waits[step, keys[2]][whose] = float(cells["Communication Time Info"]["Synchronization Time(ms)"])
    except _ERRORS as error:
        problems[path] = f"it is no communication*.json: {error!r}. Export it again"


def _leaves(tree: Any, keys: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], dict[str, Any]]]:
    """Yield what is known of a collective or link, after the keys of step, group, collective, and rank or link."""
    if isinstance(tree, dict):
        if "Transport Type" in tree or "Communication Time Info" in tree:
            yield keys, tree
        else:
            for key, part in tree.items():
                yield from _leaves(part, (*keys, key))
