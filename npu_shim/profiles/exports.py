"""Other exports of the profiler: data bases (msprof*.db), timelines (msprof*.json), messages (communication*.json)."""

from __future__ import annotations

import contextlib
import json
import pathlib
import re
import sqlite3
import urllib.parse
from typing import Iterator

import numpy as np

from npu_shim._tensorflow.types import JsonObject, Value
from npu_shim.dumps.files import collect_problem
from npu_shim.profiles import op_kinds, table_forms
from npu_shim.profiles.devices import Profile

_HARDWARE = re.compile("(?!.*(Overlap|Free|Computing)).*(Ascend Hardware|AI Core|AI CPU|Communication|HCCL|NPU)", re.I)
_COLLECTIVES = re.compile("Communication|HCCL", re.I)
_SUMS = re.compile(r"Total Op Info|.*-(top|middle|bottom)\d*@")  # and single ops, beside the totals of all
_MOST_BYTES = 1 << 28  # of a timeline that is read for its links alone


def read_database(file: table_forms.ProfileFile, profile: Profile) -> None:
    """Read the runs, links and steps in a data base of CANN 8 and 9, or of a plugin of PyTorch or MindSpore."""
    runs, form = profile.runs[file.source], table_forms.TABLES["database"]
    address = f"file:{urllib.parse.quote(file.path)}?mode=ro&immutable=1"
    with contextlib.closing(sqlite3.connect(address, uri=True)) as base:
        base.execute("ATTACH ':memory:' AS empty")  # has the tables that the data base has not
        for name, heads in form.tables.items():
            base.execute(f"CREATE TABLE empty.{name} ({heads})")
        texts = dict(base.execute("SELECT id, value FROM STRING_IDS"))
        base.create_function("text", 1, lambda number: texts.get(number, ""))
        base.create_function(
            "copies", 1, lambda core: op_kinds.unit_category(op_kinds.Signature(core=core)) == op_kinds.TRANSFER
        )
        for query in ("operators", "collectives") if runs.wanted else ():
            runs.add_rows((map(str, cells), start, took) for *cells, start, took in base.execute(form.queries[query]))
        for *link, took in base.execute(form.queries["links"]):
            runs.add_link(link, took)
        if not runs.marks.size:
            runs.marks = np.array(base.execute(form.queries["steps"]).fetchall(), np.int64).reshape(-1, 2)


def read_timeline(file: table_forms.ProfileFile, profile: Profile) -> None:
    """Read the runs and links in a timeline in the format of Chrome's trace viewer."""
    runs = profile.runs[file.source]
    path, are_links_wanted = pathlib.Path(file.path), op_kinds.COMMUNICATION in runs.category and not runs.links
    if not runs.wanted and not (are_links_wanted and path.stat().st_size < _MOST_BYTES):
        return
    events = json.loads(path.read_bytes())
    events = events["traceEvents"] if isinstance(events, dict) else events
    names = {event.get("pid"): str(event["args"]["name"]) for event in events if event.get("name") == "process_name"}
    process = {pid: name for pid, name in names.items() if _HARDWARE.match(name)}
    rows: list[tuple[Value, ...]] = []
    for event in (event for event in events if event.get("ph") == "X" and event.get("pid") in process):
        with collect_problem(profile.problems, file.path, "events are broken and were skipped, the last one for {!r}"):
            arguments = event["args"]
            start, took = (table_forms.shift_decimal_point(str(event[name]), 3) for name in ("ts", "dur"))
            runs.add_link([*map(arguments.get, ("src rank", "dst rank", "transport type", "size(Byte)"))], took)
            # no part of a collective with an event
            if arguments.get("src rank") is None and "notify_id" not in arguments:
                device, name = arguments.get("Device Id", arguments.get("device id", "0")), str(event.get("name", ""))
                plain = name.rpartition("/")[2].rstrip("0123456789_") or name
                core = "COMMUNICATION" if _COLLECTIVES.search(process[event["pid"]]) else arguments.get("Task Type", "")
                made_of = op_kinds.Signature(str(device), "", name, str(arguments.get("OP Type", plain)), str(core))
                rows.append((made_of, start, took))
    runs.add_rows(rows)


def read_messages(file: table_forms.ProfileFile, profile: Profile) -> None:
    """Read how long ranks wait for another, in communication.json of one rank or of all, or the traffic of links.

    The traffic in communication_matrix.json counts if no other file has it.
    """
    runs = profile.runs[file.source]
    is_known = bool(runs.links)
    for keys, cells in _message_leaves(json.loads(pathlib.Path(file.path).read_bytes())):
        if _SUMS.match(keys[2]):
            continue
        if "Transport Type" not in cells:
            step = next((key for key in keys if key.startswith("step")), "")
            whose = (*keys, table_forms.rank_of_run(file.source, file.device))[3]
            profile.waits[step, keys[2]][whose] = float(cells["Communication Time Info"]["Synchronization Time(ms)"])
        elif not is_known:
            size, took = (1e6 * float(cells[f"Transit {name}"]) for name in ("Size(MB)", "Time(ms)"))
            runs.add_link([*map(int, keys[3].split("-")), cells["Transport Type"], size], took)


def _message_leaves(tree: Value, keys: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], JsonObject]]:
    """Yield what is known of a collective or link, after the keys of step, group, collective, and rank or link."""
    if isinstance(tree, dict):
        if "Transport Type" in tree or "Communication Time Info" in tree:
            yield keys, tree
        else:
            for key, part in tree.items():
                yield from _message_leaves(part, (*keys, key))
