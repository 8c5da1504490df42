"""A card that exists only here: steps of a training whose ops and waits are given, in the exports of CANN 5 to 9."""

from __future__ import annotations

import csv
import json
import pathlib
import sqlite3
from dataclasses import dataclass, field, replace
from typing import Any, Callable, Sequence

BEGIN = 1_700_000_000_000_000_123  # nanoseconds


@dataclass(frozen=True)
class Op:
    """An op, or idle time if it has no type; times in microseconds.

    Attributes:
        beside: starts with the op before it and does not delay those behind it.
        ratios: of the matrix unit, the vector unit and memory.
    """

    name: str
    type: str
    us: float
    core: str = "AI_CORE"
    shapes: str = "4096,1024"
    types: str = "FLOAT16"
    out_shapes: str = "4096,1024"
    out_types: str = "FLOAT16"
    ratios: Sequence[float] = (0.0, 0.6, 0.7)
    beside: bool = False


@dataclass
class Step:
    """Ops of a step by its phases: before the forward pass, until the end of the backward pass, and after it."""

    data: list[Op] = field(default_factory=list)
    training: list[Op] = field(default_factory=list)
    refresh: list[Op] = field(default_factory=list)


@dataclass
class Run:
    """An op that ran: the op, and its start and end in nanoseconds."""

    op: Op
    start: int
    end: int


@dataclass
class Rank:
    """The ops of a rank in the order of time.

    Attributes:
        steps: of each its number, the start of the forward pass, the end of the backward pass and its end.
    """

    runs: list[Run] = field(default_factory=list)
    steps: list[tuple[int, int, int, int]] = field(default_factory=list)


def idle(us: float) -> Op:
    """Return idle time."""
    return Op("", "", us)


def matmul(name: str, us: float = 400, **changes: Any) -> Op:
    """Return a product that uses the matrix unit well."""
    shapes = {"shapes": "4096,1024;1024,1024", "types": "FLOAT16;FLOAT16", "ratios": (0.85, 0.0, 0.6)}
    return replace(Op(name, "MatMulV2", us, **shapes), **changes)


def message(name: str, us: float, beside: bool = True) -> Op:
    """Return an all-reduce."""
    return Op(name, "hcom_allReduce_", us, "COMMUNICATION", "N/A", "N/A", "N/A", "N/A", beside=beside)


def balanced() -> Step:
    """Return a step without a bottleneck."""
    step = Step([idle(40), Op("IteratorGetNext", "GetNext", 20, "AI_CPU")])
    for part in ("forward", "gradients"):
        for layer in range(10):
            step.training += [
                matmul(f"{part}/layer_{layer}/MatMul"),
                idle(2),
                Op(f"{part}/layer_{layer}/Relu", "Relu", 80),
                idle(2),
            ]
            if part == "gradients" and layer % 3 == 0:
                step.training[-3:-3] = [message(f"allReduce_{layer}", 300)]
    step.training.append(Op("forward/Cast", "Cast", 30, out_types="FLOAT"))
    step.refresh = [Op(f"update_{layer}/ApplyMomentum", "ApplyMomentum", 30, types="FLOAT") for layer in range(10)]
    return step


def run(make: Callable[[int], Step], steps: int = 12, begin: int = BEGIN) -> Rank:
    """Return what a rank runs; no two steps take exactly as long."""
    rank, now = Rank(), begin
    for number in range(steps):
        step, marks = make(number), []
        stretch = 1 + (number * 7 % 5 - 2) / 1000
        for ops in (step.data, step.training, step.refresh):
            if ops is step.refresh:
                marks.append(now)
            last = now
            for op in ops:
                start = last if op.beside else now
                end = start + int(op.us * stretch * 1000)
                last = start
                if op.type:
                    rank.runs.append(Run(op, start, end))
                if not op.beside:
                    now = end
            if ops is step.data:
                marks.append(now)
        rank.steps.append((number + 1, *marks, now))
    return rank


def _us(ns: int, version: int = 8) -> str:
    return f"{ns // 1000}.{ns % 1000:03d}" + ("\t" if version >= 8 else "")


def _table(path: pathlib.Path, heads: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w", encoding="utf-8", newline="") as stream:
        csv.writer(stream).writerows([heads, *rows])


def folder_of(root: pathlib.Path, version: int, device: int) -> pathlib.Path:
    """Return where a version exports tables of a device."""
    run_folder = root / f"PROF_{device + 1:06d}_20240101000000000_ABCDEF"
    return run_folder / f"device_{device}" / "summary" if version < 7 else run_folder / "mindstudio_profiler_output"


def write(root: pathlib.Path, rank: Rank, version: int = 8, device: int = 0) -> pathlib.Path:
    """Write op_summary, task_time and step_trace in the columns of a version of CANN; return their folder."""
    place = folder_of(root, version, device)
    unit = "" if version == 5 else "(us)"
    start = (lambda ns: ns) if version == 5 else (lambda ns: _us(ns, version))  # CANN 5: nanoseconds without a unit
    blocks = "Block Num" if version >= 9 else "Block Dim"
    number = f"_{device}_1_1" if version < 7 else "_20240101000102"
    first = ["Device_id"] if version >= 7 else ["Model Name"]
    heads = [
        *first,
        "Model ID",
        "Task ID",
        "Stream ID",
        "Op Name",
        "OP Type",
        *(["OP State"] if version >= 7 else []),
        "Task Type",
    ]
    heads += [
        f"Task Start Time{unit}",
        "Task Duration(us)",
        "Task Wait Time(us)",
        blocks,
        f"Mix {blocks}",
        "Input Shapes",
    ]
    heads += ["Input Data Types", "Input Formats", "Output Shapes", "Output Data Types", "Output Formats", "Context ID"]
    prefix = ("", "", "") if version < 7 else ("aic_", "aiv_", "aic_")
    heads += [f"{part}{name}_ratio" for part, name in zip(prefix, ("mac", "vec", "mte2"))]
    rows, copies = [], []
    for task, each in enumerate(rank.runs):
        op = each.op
        took = _us(each.end - each.start, 7)
        if op.core == "MEMCPY_ASYNC":
            copies.append([device, "N/A", op.core, 3, task, took, _us(each.start), _us(each.end)])
            continue
        cells = [device if version >= 7 else "model", 1, task, 2 if op.beside else 1, op.name, op.type]
        cells += [*(["static"] if version >= 7 else []), op.core, start(each.start), took, "0.1", 8, 0]
        cells += [f'"{op.shapes}"', op.types, "ND", f'"{op.out_shapes}"', op.out_types, "ND", "N/A"]
        cells += [f"{ratio:.2f}" for ratio in op.ratios] if op.core.startswith("AI_CORE") else ["N/A"] * 3
        rows.append(cells)
    _table(place / f"op_summary{number}.csv", heads, rows)
    heads = [
        "Device_id",
        "kernel_name",
        "kernel_type",
        "stream_id",
        "task_id",
        "task_time(us)",
        "task_start(us)",
        "task_stop(us)",
    ]
    if copies:
        _table(place / f"task_time{number}.csv", heads, copies)
    heads = [
        "Iteration ID",
        f"FP Start{unit}",
        f"BP End{unit}",
        f"Iteration End{unit}",
        "Iteration Time(us)",
        "FP to BP Time(us)",
    ]
    heads = [*(first if version >= 7 else []), *heads, "Iteration Refresh(us)", "Data Aug Bound(us)", "Model ID"]
    rows, before = [], 0
    for step, forward, backward, end in rank.steps:
        times = [_us(end - (before or forward), 7), _us(backward - forward, 7), _us(end - backward, 7)]
        data = _us(forward - before, 7) if before else "N/A"
        rows.append(
            [*([device] if version >= 7 else []), step, start(forward), start(backward), start(end), *times, data, 1]
        )
        before = end
    _table(place / f"step_trace{number}.csv", heads, rows)
    return place


def write_database(path: pathlib.Path, rank: Rank, links: Sequence[tuple[int, int, float, float]] = ()) -> None:
    """Write the data base of CANN 8; links have source, target, bytes and microseconds."""
    path.parent.mkdir(parents=True, exist_ok=True)
    base = sqlite3.connect(str(path))
    texts: dict[str, int] = {}

    def text(value: str) -> int:
        return texts.setdefault(value, len(texts) + 1)

    base.execute("CREATE TABLE TASK (startNs, endNs, deviceId, globalTaskId, taskType, streamId, taskId, modelId)")
    base.execute(
        "CREATE TABLE COMPUTE_TASK_INFO (name, globalTaskId, taskType, opType, inputShapes, inputDataTypes, inputFormats, "
        "outputShapes, outputDataTypes, outputFormats)"
    )
    base.execute("CREATE TABLE COMMUNICATION_OP (opName, startNs, endNs, opType, deviceId, groupName)")
    base.execute("CREATE TABLE COMMUNICATION_TASK_INFO (globalTaskId, srcRank, dstRank, size, transportType)")
    base.execute("CREATE TABLE STEP_TIME (id, startNs, endNs)")
    for number, each in enumerate(rank.runs):
        op = each.op
        if op.core == "COMMUNICATION":
            row = (text(op.name), each.start, each.end, text(op.type), 0)
            base.execute("INSERT INTO COMMUNICATION_OP VALUES (?,?,?,?,?,0)", row)
            continue
        base.execute("INSERT INTO TASK VALUES (?,?,0,?,?,1,?,1)", (each.start, each.end, number, text(op.core), number))
        cells = (op.name, op.core, op.type, op.shapes, op.types, "ND", op.out_shapes, op.out_types, "ND")
        row = (text(op.name), number, *map(text, cells[1:]))
        base.execute("INSERT INTO COMPUTE_TASK_INFO VALUES (?,?,?,?,?,?,?,?,?,?)", row)
    for place, (source, target, size, us) in enumerate(links):
        number = len(rank.runs) + place
        base.execute("INSERT INTO TASK VALUES (?,?,0,?,?,2,0,1)", (BEGIN, BEGIN + int(us * 1000), number, text("SDMA")))
        base.execute("INSERT INTO COMMUNICATION_TASK_INFO VALUES (?,?,?,?,0)", (number, source, target, size))
    for (*_, before), (step, *_, end) in zip(rank.steps, rank.steps[1:]):
        base.execute("INSERT INTO STEP_TIME VALUES (?,?,?)", (step, before, end))
    base.execute("CREATE TABLE STRING_IDS (id, value)")
    base.executemany("INSERT INTO STRING_IDS VALUES (?,?)", [(number, value) for value, number in texts.items()])
    base.commit()
    base.close()


def write_timeline(path: pathlib.Path, rank: Rank, links: Sequence[tuple[int, int, float, float]] = ()) -> None:
    """Write the timeline of CANN 7 to 9; links have source, target, bytes and microseconds."""
    path.parent.mkdir(parents=True, exist_ok=True)
    events: list[dict[str, Any]] = [
        {"name": "process_name", "ph": "M", "pid": 1, "args": {"name": "Ascend Hardware"}},
        {"name": "process_name", "ph": "M", "pid": 2, "args": {"name": "Communication"}},
    ]
    for each in rank.runs:
        collective = each.op.core == "COMMUNICATION"
        arguments = {"Task Type": each.op.core, "Stream Id": 1, "OP Type": each.op.type}
        event = {"name": each.op.name, "ph": "X", "pid": 2 if collective else 1, "tid": 1, "args": arguments}
        events.append({**event, "ts": _us(each.start, 7), "dur": (each.end - each.start) / 1000})
    for source, target, size, us in links:
        arguments = {"src rank": source, "dst rank": target, "transport type": "SDMA", "size(Byte)": size}
        event = {"name": "Memcpy", "ph": "X", "pid": 2, "tid": 2, "args": arguments}
        events.append({**event, "ts": _us(BEGIN, 7), "dur": us})
    path.write_text(json.dumps(events), encoding="utf-8")


def write_messages(place: pathlib.Path, links: Sequence[tuple[int, int, float, float]]) -> None:
    """Write communication_matrix.json of CANN 8; links have source, target, bytes and microseconds."""
    total = {f"{link[0]}-{link[1]}": _transit(*link) for link in links}
    single = {"1-0": _transit(1, 0, 1e9, 1e6)}  # of one collective
    collectives = {"allreduce-top1@17": single, "allreduce-total@17": total, "Total Op Info": total}
    text = json.dumps({"step1": {"p2p": {}, "collective": collectives}})
    (place / "communication_matrix.json").write_text(text, encoding="utf-8")


def _transit(source: int, target: int, size: float, us: float) -> dict[str, Any]:
    kind = "LOCAL" if source == target else "HCCS"
    return {"Transport Type": kind, "Transit Size(MB)": size / 1e6, "Transit Time(ms)": us / 1000}


def write_waits(root: pathlib.Path, waits: Sequence[float], cluster: bool, steps: int = 2) -> None:
    """Write what ranks wait in the collective of each step, in milliseconds.

    Args:
        root: folder of the job, with folders of its ranks.
        waits: of each rank.
        cluster: True for the file of all ranks, as msprof-analyze writes it, else one for each rank.
        steps: the number of steps.
    """
    told = [{"Communication Time Info": {"Wait Time(ms)": ms, "Synchronization Time(ms)": ms}} for ms in waits]
    if cluster:
        ranks = {str(rank): each for rank, each in enumerate(told)}
        of_steps = {f"step{step}": {"hcom_allReduce__1_0@17": ranks, "Total Op Info": ranks} for step in range(steps)}
        place = root / "cluster_analysis_output"
        place.mkdir()
        (place / "cluster_communication.json").write_text(json.dumps({"(0, 1, 2)": of_steps}), encoding="utf-8")
        return
    for rank, each in enumerate(told):
        collective = {"hcom_allReduce__1_0@17": each, "Total Op Info": each}
        of_steps = {f"step{step}": {"p2p": {}, "collective": collective} for step in range(steps)}
        (root / f"rank_{rank}" / "communication.json").write_text(json.dumps(of_steps), encoding="utf-8")
