"""Recompute the numbers of ``npu-shim profile --json`` from op_summary and step_trace, by other means: exact, op by op.

    python tests/profiles/recompute.py PROFILE result.json

It knows nothing of the package: fractions for times, a sweep over the begins and ends of ops for what is busy.
"""

from __future__ import annotations

import csv
import json
import pathlib
import re
import sys
from collections import defaultdict
from fractions import Fraction
from typing import Any

ORDER = ("compute", "AI CPU", "communication", "copies", "host", "input pipeline")


def rows(folder: str, name: str) -> list[dict[str, str]]:
    """Return the rows of all tables of a name, with plain heads."""
    found = []
    for path in sorted(pathlib.Path(folder).rglob(f"{name}*.csv")):
        with open(path, encoding="utf-8-sig", newline="") as stream:
            heads, *cells = csv.reader(stream)
            plain = [re.sub(r"^(task |op |accelerator )|\(us\)|iteration (?=id)", "", head.lower()) for head in heads]
            found += [{"rank": str(path), **dict(zip(plain, map(str.strip, row)))} for row in cells]
    return found


def unit(row: dict[str, str]) -> str:
    """Return who is busy with an op."""
    of_type, core = row["type"], row.get("core") or row["type of task"]
    if re.match("GetNext|Iterator|QueueDequeue", of_type):
        return "input pipeline"
    if "PyFunc" in of_type:
        return "host"
    marks = {"COMMUNICATION": "communication", "HCCL": "communication", "AI_CPU": "AI CPU", "MEMCPY_ASYNC": "copies"}
    return marks.get(core, "compute")


def read(folder: str) -> tuple[dict[str, list[Any]], dict[str, list[Any]]]:
    """Return the runs and the steps of each rank."""
    runs: dict[str, list[Any]] = defaultdict(list)
    steps: dict[str, list[Any]] = defaultdict(list)
    for path in ("op_summary", "kernel_details"):
        for file in sorted(pathlib.Path(folder).rglob(f"{path}*.csv")):
            with open(file, encoding="utf-8-sig", newline="") as stream:
                for cells in csv.DictReader(stream):
                    row = {
                        re.sub(r"^(task |op |accelerator )|\(us\)", "", key.lower()): (value or "").strip()
                        for key, value in cells.items()
                        if key
                    }
                    row["type of task"] = (cells.get("Task Type") or cells.get("Accelerator Core") or "").strip()
                    row["type"] = (cells.get("OP Type") or cells.get("Type") or "").strip()
                    start = Fraction(row["start time"])
                    device = row.get("device_id", "") or re.sub(r".*op_summary_(\d)_\d_\d.*|.*", r"\1", file.name)
                    runs[str(file.parent) + device].append((start, start + Fraction(row["duration"]), unit(row), row))
    for file in sorted(pathlib.Path(folder).rglob("step_trace_2*.csv")):
        with open(file, encoding="utf-8-sig", newline="") as stream:
            for row in csv.DictReader(stream):
                times = [
                    Fraction(row[f"{name}(us)"].strip())
                    for name in ("FP Start", "BP End", "Iteration End", "Iteration Time")
                ]
                steps[str(file.parent) + row.get("Device_id", "")].append(times)
    return runs, steps


def page(runs: list[Any], traced: list[Any]) -> dict[str, Any]:
    """Return the step, the waits of each phase, and the ops, in milliseconds of a step."""
    edges, before = [], None
    for forward, backward, end, took in traced:
        if before is not None or len(traced) == 1:
            edges.append((before if before is not None else end - took, forward, backward, end))
        before = end
    of_step: dict[str, list[Any]] = defaultdict(list)
    for run in runs:
        of_step[run[3].get("step id", "")].append(run)
    if not edges and "" not in of_step:
        begin = min(start for start, *_ in runs)
        for until in sorted(max(end for _, end, *_ in members) for members in of_step.values()):
            edges.append((begin, min([run[0] for run in runs if run[0] >= begin] + [until]), until, until))
            begin = until
    if not edges:
        last = max(end for _, end, *_ in runs)
        edges = [(min(start for start, *_ in runs),) * 2 + (last,) * 2]
    events = sorted([(start, 1, name) for start, _, name, _ in runs] + [(end, -1, name) for _, end, name, _ in runs])
    marks = sorted({time for times in edges for time in times})
    busy: dict[str, int] = defaultdict(int)
    waits: dict[tuple[int, str], Fraction] = defaultdict(Fraction)
    place, now = 0, marks[0]
    while events and events[place][0] <= now:
        busy[events[place][2]] += events[place][1]
        place += 1
    for first, forward, backward, end in edges:
        for phase, (begin, until) in enumerate(((first, forward), (forward, backward), (backward, end))):
            now = begin
            while now < until:
                coming = min(events[place][0], until) if place < len(events) else until
                name = next((each for each in ORDER if busy[each]), "host" if phase == 0 else "launch gaps")
                waits[phase, name] += coming - now
                now = coming
                while place < len(events) and events[place][0] <= now:
                    busy[events[place][2]] += events[place][1]
                    place += 1
    thousand, number = 1000, len(edges)
    ops: dict[tuple[str, str], list[Fraction]] = defaultdict(lambda: [Fraction(0), Fraction(0)])
    for start, end, _, row in runs:
        if edges[0][0] <= start < edges[-1][-1]:
            ops[row["name"], row["type"]][0] += Fraction(1, number)
            ops[row["name"], row["type"]][1] += (end - start) / number / thousand
    lengths = sorted((end - first) / thousand for first, *_, end in edges)
    return {
        "mean": sum(lengths) / number,
        "median": (lengths[(number - 1) // 2] + lengths[number // 2]) / 2,
        "waits": {key: value / number / thousand for key, value in waits.items() if value},
        "ops": ops,
    }


def differences(folder: str, result: dict[str, Any]) -> list[str]:
    """Return the numbers of a result that are not those of the tables."""
    runs, steps = read(folder)
    pages = [page(runs[rank], steps.get(rank, [])) for rank in runs]
    step = result["step"]
    made = min(
        pages,
        key=lambda each: (
            abs(each["mean"] - Fraction(step["mean_ms"]))
            + abs(Fraction(result["ops"][0]["ms"]) - max(v[1] for v in each["ops"].values()))
        ),
    )
    wrong: list[str] = []

    def check(what: str, found: float, expected: Any) -> None:
        if abs(found - float(expected)) > 1e-6 + 1e-6 * abs(float(expected)):
            wrong.append(f"{what}: {found} and {float(expected)}")

    check("mean", step["mean_ms"], made["mean"])
    check("median", step["median_ms"], made["median"])
    names = {"AI Core": "compute", "ops on the CPU": "compute", "communication that nothing overlaps": "communication"}
    of_phase = {"data": 0, "forward and backward": 1, "gradient refresh": 2}
    for name in {key[1] for key in made["waits"]} | {names.get(each["what"], each["what"]) for each in result["waits"]}:
        expected = sum(value for key, value in made["waits"].items() if key[1] == name)
        check(
            name, sum(each["ms"] for each in result["waits"] if names.get(each["what"], each["what"]) == name), expected
        )
    for phase in result["phases"]:
        for name, ms in phase["waits"].items():
            expected = made["waits"].get((of_phase[phase["phase"]], names.get(name, name)), 0)
            check(f"{phase['phase']}, {name}", ms, expected)
    if sum(len(phase["waits"]) for phase in result["phases"]) != len(made["waits"]):
        wrong.append(f"waits: {made['waits'].keys()}")
    for row in result["ops"]:
        calls, ms = made["ops"][row["name"], row["type"]]
        check(f"{row['name']}, calls", row["calls"], calls)
        check(f"{row['name']}, ms", row["ms"], ms)
        check(f"{row['name']}, share", row["share"], ms / made["mean"])
    most = sorted((ms for _, ms in made["ops"].values()), reverse=True)[: len(result["ops"])]
    for place, row in enumerate(result["ops"]):
        check(f"op {place}", row["ms"], most[place])
    for row in result["types"]:
        check(
            f"{row['type']}, ms",
            row["ms"],
            sum(ms for (_, of_type), (_, ms) in made["ops"].items() if of_type == row["type"]),
        )
    return wrong


if __name__ == "__main__":
    found = differences(sys.argv[1], json.loads(pathlib.Path(sys.argv[2]).read_text(encoding="utf-8")))
    print("\n".join(found) or "all numbers agree")
    sys.exit(bool(found))
