"""Read a profile: its devices with the runs of ops, their steps, and what other tables say."""

from __future__ import annotations

import json
import os
import re
from typing import Callable, Iterator, Mapping, Sequence

import numpy as np

from npu_shim.dumps import graph_files
from npu_shim.dumps.files import collect_problem, paths_below
from npu_shim.profiles import exports, op_kinds, steps, table_forms, tables
from npu_shim.profiles.devices import Device, Profile
from npu_shim.profiles.expected import ExpectedStep
from npu_shim.rehearsal.assess.products import Product

_READERS: Mapping[str, Callable[[table_forms.ProfileFile, Profile], None]] = {  # of kinds; small tables have one reader
    **dict.fromkeys(table_forms.TABLES, tables.read_rows),
    **dict.fromkeys(("op_summary", "task_time"), tables.read_runs),
    "database": exports.read_database,
    "timeline": exports.read_timeline,
    **dict.fromkeys(("communication_matrix", "communication"), exports.read_messages),
}
_LINES = ("lines", "fusion_op")
_MOST_BYTES = 1 << 26  # of an assessment; a timeline may have more
_PROBLEM = "it cannot be read as {}: {{}}. Export the profile again, of an NPU with msprof --export=on"


def read_profile(
    folder: str, graphs: Sequence[str] = (), product: Product | None = None, expected: ExpectedStep | None = None
) -> Profile:
    """Read a profile.

    Args:
        folder: with the exports of one job, at any depth.
        graphs: further folders that know the lines of ops.
        product: for bounds.
        expected: the prediction to compare with.
    Raises:
        ValueError: there is nothing to read.
    """
    profile = Profile(table_forms.find_profile_files(folder), product, expected)
    read_from = [
        *profile.files,
        *(file for graph in graphs for file in table_forms.find_profile_files(graph) if file.kind in _LINES),
    ]
    for kind in table_forms.TABLES:
        for runs in filter(None, profile.runs.values()):
            # The best export has the runs. Only task_time has copies between host and device, beside op_summary.
            runs.wanted = (op_kinds.TRANSFER,) if kind == "task_time" else ()
        for file in (file for file in read_from if file.kind == kind):
            with collect_problem(profile.problems, file.path, _PROBLEM.format(kind)):
                _READERS[kind](file, profile)
    profile.devices = [
        device
        for source in sorted(profile.runs)
        if profile.runs[source]
        for device in _devices_of_source(source, profile)
    ]
    _drop_earlier_runs(profile)
    profile.lines = _lines_by_op_name_and_type(folder, graphs, profile)
    if not (profile.devices or profile.rows["op_statistic"] or profile.rows["communication_statistic"]):
        collected = any(name.startswith("PROF_") for _, folders, _ in os.walk(folder) for name in folders)
        fix = f"Run msprof --export=on --output={folder}" if collected else "Give the DIR of npu-shim run --profile DIR"
        none = f"has no op_summary*.csv, msprof*.db or msprof*.json. {fix}"
        wrong = [f"has no table that can be read. {path}: {problem}" for path, problem in profile.problems.items()]
        raise ValueError(f"{folder} {[*wrong, none][0]}")
    return profile


def _devices_of_source(source: str, profile: Profile) -> Iterator[Device]:
    """Yield the devices of a source with their steps."""
    runs = profile.runs[source]
    rows = [row for row in profile.rows["step_trace"] if row.source == source]
    windows = [row for row in profile.rows["profiled_steps"] if row.source == os.path.dirname(source)]
    numbers = sorted({signature.device for signature in runs.signatures}, key=lambda text: (len(text), text))
    traced = {
        number: steps.steps_and_messages_of_trace(row for row in rows if row.device in (number, ""))
        for number in numbers
    }
    communicate = {
        signature.device for signature, busy in zip(runs.signatures, runs.category) if busy == op_kinds.COMMUNICATION
    }
    runs.wanted = (op_kinds.COMMUNICATION,)
    for number in set(numbers) - communicate:
        cells = op_kinds.Signature(number, name="gradients", type="AllReduce", core="COMMUNICATION")
        runs.add_rows((cells, *span) for span in traced[number][1])
    joined = runs.take_all_sorted()
    of_device = np.array([signature.device for signature in runs.signatures])
    for number in numbers:
        own = (of_device == number)[joined[0]]
        if own.any():
            columns = joined if own.all() else [column[own] for column in joined]
            own_steps = traced[number][0] or steps.find_steps(columns, runs)
            yield Device(
                profile,
                source,
                f"{source} {number}".strip() or "0",
                columns,
                steps.steps_in_windows(own_steps, windows),
            )


def _drop_earlier_runs(profile: Profile) -> None:
    """Leave out earlier runs of the same rank, and call devices by their ranks alone where these differ."""
    ranks = {
        device: table_forms.rank_of_run(device.source, device.name.rpartition(" ")[2]) for device in profile.devices
    }
    for device, rank in list(ranks.items()):
        if any(ranks[other] == rank and device.end.max() < other.start[0] for other in ranks):
            profile.problems[device.source] = "it is an earlier run and was left out. Give its folder alone to read it"
            profile.runs[device.source].links.clear()
            del ranks[device]
    if len(set(ranks.values())) == len(ranks):
        for device, rank in ranks.items():
            device.name = rank
    profile.devices = list(ranks)


def _lines_by_op_name_and_type(
    folder: str, graphs: Sequence[str], profile: Profile
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the lines by the names of ops, and by their types where only these are known.

    Args:
        folder: of the profile.
        graphs: further folders: graph files, a profile of the CPU, the JSON of ``npu-shim assess``.
        profile: has the tables of both, and receives what is wrong with files.
    """
    names = {row.cells["name"]: row.cells["line"] for row in profile.rows["lines"]}
    originals = {
        op.name: op.originals or []
        for op in graph_files.read_built_graphs_and_paths([folder, *graphs], profile.problems)[0].values()
    }
    originals.update(
        (row.cells["name"], re.split(r"\s*[,;]\s*", row.cells["originals"])) for row in profile.rows["fusion_op"]
    )
    for name, members in originals.items():
        names.setdefault(name, next((names[member] for member in members if names.get(member)), ""))
    types: dict[str, str] = {}
    for path in (
        path for graph in graphs for path in paths_below(graph, ".json") if os.path.getsize(path) <= _MOST_BYTES
    ):
        with collect_problem({}, path), open(path, encoding="utf-8") as stream:  # most are no assessment
            assessment = json.load(stream)
            is_assessment = assessment["tool"] == "npu-shim assess"
            if is_assessment and assessment.get("schema_version") != 1:
                profile.problems[path] = (
                    "it is an assessment of another release. Make it again with npu-shim assess --json"
                )
                continue
            graphs_of = assessment["graphs"] if is_assessment else []
            rows = [row for one in graphs_of for row in one["operators"] if row["lines"]]
            types.update((row["op"], row["lines"][0]) for row in rows)
    return names, types
