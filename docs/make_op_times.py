"""Fit the times of ops to public profiles, for ``npu_shim/rehearsal/predict/op_times.json``, with the errors.

``python docs/make_op_times.py DIR`` reads the profiles of op_times/sources.tsv from clones of their repositories,
DIR/OWNER+NAME or DIR/OWNER+NAME/repo, prints the errors on profiles that the fit has not seen as a table, and writes
the fitted numbers with the measurements behind each. No row of a profile is kept. ``--quick`` leaves the errors out.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import csv
import io
import itertools
import json
import os
import re
import sqlite3
import subprocess
import sys
import tempfile
from typing import Callable, Iterable, Iterator, Mapping, NamedTuple, Sequence

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.dirname(HERE)]

from npu_shim.rehearsal.predict import op_times as model  # noqa: E402
from npu_shim.rehearsal.predict.features import DeviceOp, Tensor  # noqa: E402
from npu_shim.rehearsal.predict.op_times import CLASS, TYPE, UNIT, OpTimes, Processor, Row  # noqa: E402

OUT = os.path.join(os.path.dirname(HERE), "npu_shim", "rehearsal", "predict", "op_times.json")
_PRIOR, _MOST_OF_ONE_MODEL = 3.0, 8  # measurements
_LEVELS = (UNIT, CLASS, TYPE)
_MOST_OF_HALF = 0.4  # of the measured time, which the types that are predicted to take half of it have to take
_LOWEST, _HIGHEST = np.log([0.3, 0.05, 0.05, 0.01]), np.log([60, 50, 50, 2000])
_DEVICE = re.compile(r"AI_CORE|AI_VECTOR_CORE|MIX_AI[CV]|AICORE|KERNEL_\w+")
_TYPES = {"DT_BF16": "BFLOAT16", "BF16": "BFLOAT16", "HALF": "FLOAT16", "FLOAT": "FLOAT32", "END": "FLOAT16"}
_TYPES["UNKNOWN"] = "FLOAT16"  # of MindSpore in 2020, on a device that computes in float16
# MindSpore names a type by its neighbour in the list of types in 2022: networks in float16 cast float16 to float32.
_NEIGHBOURS = {
    "INT16": "INT32", "INT32": "INT64", "FLOAT": "FLOAT16", "FLOAT16": "FLOAT32", "UINT": "UINT8", "UINT8": "UINT16",
    "BEGIN": "BOOL", "FLOAT32": "FLOAT64",
}  # fmt: skip
_LAYOUTS = {"DefaultFormat": "ND", "FracZ": "FRACTAL_Z"}


class Source(NamedTuple):
    """A row of sources.tsv: a profile in objects of a repository, some of its history."""

    folder: str
    model: str
    processor: str
    framework: str
    kind: str
    repository: str
    commit: str
    path: str
    objects: str


class Measured(NamedTuple):
    """An op with its shapes in a profile.

    Attributes:
        source, device, op: whose op, on which processor.
        runs, median, total: number of runs, and median and sum of their microseconds.
        share: of the time of the profile.
        work: microseconds of memory and matrix unit, and thousands of rows a core.
    """

    source: Source
    device: Processor
    op: DeviceOp
    runs: int
    median: float
    total: float
    share: float
    work: tuple[float, float, float]


def _tensors(shapes: str, types: str, layouts: str) -> tuple[Tensor, ...]:
    dtypes = itertools.chain(types.split(";"), itertools.repeat("FLOAT32"))
    forms = itertools.chain(layouts.split(";"), itertools.repeat("ND"))
    cells = zip(shapes.split(";"), dtypes, forms)
    return tuple(
        Tensor(tuple(int(size) for size in shape.split(",") if size.strip()), dtype, layout)
        for shape, dtype, layout in cells
        if re.fullmatch(r"[\d, ]*", shape)
    )


def _type_name(text: str) -> str:
    name = text.strip().upper()
    return _TYPES.get(name, _TYPES.get(name.replace("DT_", ""), name.replace("DT_", "")))


def _layout_name(text: str) -> str:
    name = text.strip().replace("FORMAT_", "")
    return _LAYOUTS.get(name, name)


def _clean(cells: Iterable[object]) -> list[str]:
    return [str(cell).replace('"', "").replace("N/A", "").strip() for cell in cells]


def _normal_op(type: str, cells: Sequence[str]) -> DeviceOp:
    sides = [
        (shapes, ";".join(map(_type_name, types.split(";"))), ";".join(map(_layout_name, layouts.split(";"))))
        for shapes, types, layouts in (cells[:3], cells[3:])
    ]
    return DeviceOp(type, *(_tensors(*side) for side in sides))


def _read_mindspore(objects: Sequence[bytes], names: Mapping[str, str]) -> Iterator[tuple[str, DeviceOp, float]]:
    ops, details = (list(csv.DictReader(io.StringIO(data.decode()))) for data in objects)
    took = {row["full_op_name"]: 1000 * float(row["execution_time"]) for row in details}
    for row in ops:
        name = row.get("full_op_name") or row["full_kernel_name"]
        if name in took:
            sides: dict[bool, list[tuple[str, str, str]]] = {True: [], False: []}
            for key, value in json.loads(row["op_info"]).items():
                dtype = value["data_type"].replace("NUMBER_TYPE_", "")
                cells = str(value["shape"]).replace(" ", ""), names.get(dtype, dtype), str(value["format"])
                sides[key.startswith("input")].append(cells)
            cells = [
                ";".join(cell) for side in (True, False) for cell in (zip(*sides[side]) if sides[side] else ("",) * 3)
            ]
            yield "AI_CORE", _normal_op(row.get("op_type") or row["kernel_type"], cells), took[name]


def _read_table(objects: Sequence[bytes]) -> Iterator[tuple[str, DeviceOp, float]]:
    sides = [f"{side} {what}" for side in ("Input", "Output") for what in ("Shapes", "Data Types", "Formats")]
    for row in csv.DictReader(io.StringIO(objects[0].decode("utf-8-sig"))):
        cells = _clean(row.get(name) or "" for name in sides)
        unit, type = (
            row.get(first) or row.get(second, "")
            for first, second in (("Accelerator Core", "Task Type"), ("Type", "OP Type"))
        )
        yield unit, _normal_op(type, cells), float(row.get("Duration(us)") or row["Task Duration(us)"])


_QUERY = (
    "SELECT opType, c.taskType, inputShapes, inputDataTypes, inputFormats, outputShapes, outputDataTypes, "
    "outputFormats, endNs - startNs FROM COMPUTE_TASK_INFO c JOIN TASK t ON t.globalTaskId = c.globalTaskId "
    "ORDER BY startNs"
)


def _read_database(objects: Sequence[bytes]) -> Iterator[tuple[str, DeviceOp, float]]:
    with tempfile.NamedTemporaryFile() as file:
        file.write(objects[0])
        file.flush()
        with contextlib.closing(sqlite3.connect(file.name)) as base:
            texts = dict(base.execute("SELECT id, value FROM STRING_IDS"))
            for *numbers, took in base.execute(_QUERY):
                type, unit, *cells = _clean(texts.get(number, "") for number in numbers)
                yield unit, _normal_op(type, cells), took / 1000


_READERS: dict[str, Callable[[Sequence[bytes]], Iterator[tuple[str, DeviceOp, float]]]] = {
    "mindspore-2022": lambda objects: _read_mindspore(objects, _NEIGHBOURS),
    "mindspore": lambda objects: _read_mindspore(objects, {}),
    "table": _read_table,
    "database": _read_database,
}


def measured(source: Source, clones: str) -> list[Measured]:
    """Return the ops of a profile with shapes."""
    clone = os.path.join(clones, source.repository.replace("/", "+"))
    clone = os.path.join(clone, "repo") if os.path.isdir(os.path.join(clone, "repo")) else clone
    read = ["git", "-C", clone, "cat-file", "blob"]
    objects = [subprocess.check_output([*read, name]) for name in source.objects.split()]
    times: dict[DeviceOp, list[float]] = collections.defaultdict(list)
    for unit, op, took in _READERS[source.kind](objects):
        has_shape = any(tensor.shape for tensor in (*op.inputs, *op.outputs))
        if _DEVICE.fullmatch(unit) and took > 0 and (has_shape or source.kind.startswith("mindspore")):
            times[op].append(took)
    device, total = model.processor(source.processor), sum(map(sum, times.values()))
    return [
        Measured(
            source,
            device,
            op,
            len(runs),
            float(np.median(runs)),
            sum(runs),
            sum(runs) / total,
            model.work_on_processor(op, device),
        )
        for op, runs in times.items()
    ]


def _solve(ops: Sequence[Measured], above: np.ndarray) -> np.ndarray:
    """Return the logarithms that fit best: least absolute errors of log times, drawn to those of the level above."""
    counts = collections.Counter(op.source.model for op in ops)
    weights = np.array([np.sqrt(op.share + 1e-6) for op in ops])
    sums: dict[str, float] = collections.defaultdict(float)
    for op, weight in zip(ops, weights):
        sums[op.source.model] += weight
    of_model = [min(counts[op.source.model], _MOST_OF_ONE_MODEL) / sums[op.source.model] for op in ops]
    weights, work_of = weights * of_model, np.array([(1.0, *op.work) for op in ops])
    wanted, logs = np.log([op.median for op in ops]), np.array(above)
    is_known = (work_of > 0).any(axis=0)
    for _ in range(15):
        parts = work_of * np.exp(logs)
        took = parts.sum(axis=1)
        error, slope = np.log(took) - wanted, parts / took[:, None]
        weight = weights / np.maximum(np.abs(error), 0.05)
        prior = _PRIOR / np.maximum(np.abs(logs - above), 0.3) * 0.5
        matrix = slope.T @ (slope * weight[:, None]) + np.diag(prior + 1e-6)
        step = np.linalg.solve(matrix, -(slope.T @ (weight * error)) - prior * (logs - above))
        step = np.clip(step, -1, 1) * is_known
        logs = np.clip(logs + step, _LOWEST, _HIGHEST)
        if np.abs(step).max() < 1e-3:
            break
    return logs


def fit(ops: Sequence[Measured]) -> list[Row]:
    """Return the rows of all units, classes and types that were measured."""
    groups: dict[tuple[str, str, str], list[Measured]] = collections.defaultdict(list)
    for op in ops:
        type, family = op.op.type, op.device.family
        names = model.unit_of_type(type), model.op_class(type), model.without_version(type)
        for level, name in zip(_LEVELS, names):
            groups[family, level, name].append(op)
    fitted: dict[tuple[str, str, str], Row] = {}
    for (family, level, name), members in sorted(groups.items(), key=lambda item: _LEVELS.index(item[0][1])):
        type = members[0].op.type
        if level == UNIT:
            above = model.start_logs(family)
        elif level == CLASS:
            above = model.logs_of_class(fitted[family, UNIT, model.unit_of_type(type)].logs, name)
        else:
            above = fitted[family, CLASS, model.op_class(type)].logs
        models, runs = len({op.source.model for op in members}), sum(op.runs for op in members)
        fitted[family, level, name] = Row(family, level, name, runs, len(members), models, _solve(members, above))
    return list(fitted.values())


class HeldOut(NamedTuple):
    """The prediction of a profile by a fit without it.

    Attributes:
        op: of the profile.
        ratio: its predicted by its measured time.
        within: the shares of this time in ops within 1.5 and 2.
        half: the share of this time in the types of ops that are predicted to take half of it.
    """

    op: Measured
    ratio: float
    within: tuple[float, float]
    half: float


def held_out(ops: Sequence[Measured], key: Callable[[Measured], str]) -> Iterator[HeldOut]:
    """Predict each profile by a fit without its key."""
    for left in sorted(set(map(key, ops))):
        table = OpTimes(fit([op for op in ops if key(op) != left]))
        folders: dict[str, list[Measured]] = collections.defaultdict(list)
        for op in ops:
            if key(op) == left:
                folders[op.source.folder].append(op)
        for members in folders.values():
            took = 1e6 * np.array(
                [each.seconds for each in table.estimates([op.op for op in members], members[0].device)]
            )
            factor = np.exp(np.abs(np.log(took / [op.median for op in members])))
            total = np.array([op.total for op in members])
            near, nearer = (float(total[factor < most].sum() / total.sum()) for most in (2, 1.5))
            predicted = took * [op.runs for op in members]
            half = _types_of_half([op.op.type for op in members], predicted)
            of_half = sum(op.total for op in members if op.op.type in half)
            ratio = float(predicted.sum() / total.sum())
            yield HeldOut(members[0], ratio, (nearer, near), float(of_half / total.sum()))


def _types_of_half(types: Sequence[str], times: Sequence[float]) -> set[str]:
    """Return the fewest types of ops that take half of the time together."""
    sums: collections.Counter[str] = collections.Counter()
    for type, took in zip(types, times):
        sums[type] += took
    chosen: set[str] = set()
    left = sum(sums.values()) / 2
    for type, took in sums.most_common():
        if left <= 0:
            break
        chosen.add(type)
        left -= took
    return chosen


def errors(ops: Sequence[Measured], title: str, key: Callable[[Measured], str]) -> dict[str, object]:
    """Print a row of the table of errors, and return the factors that hold for 80 % and 95 % of the profiles."""
    rows = list(held_out(ops, key))
    factor = np.exp(np.abs(np.log([row.ratio for row in rows])))
    logs: dict[str, list[float]] = collections.defaultdict(list)
    for row in rows:
        logs[row.op.source.model].append(np.log(row.ratio))
    by_model = np.array([np.exp(abs(np.mean(values))) for values in logs.values()])
    cells = [title, f"{len(rows)} ({len(logs)})", *(f"{100 * (factor < most).mean():.0f} %" for most in (1.5, 2))]
    cells += [f"{np.median(factor):.2f}", *(f"{np.percentile(factor, share):.2f}" for share in (80, 95))]
    cells += [f"{100 * (by_model < most).mean():.0f} %" for most in (1.5, 2)]
    cells += [f"{np.mean([row.within[place] for row in rows]):.2f}" for place in (0, 1)]
    cells.append(f"{100 * np.mean([row.half >= _MOST_OF_HALF for row in rows]):.0f} %")
    print("|", " | ".join(cells), "|")
    within = {f"within_{share}": round(float(np.percentile(factor, share)), 3) for share in (80, 95)}
    return {"profiles": len(rows), **within}


def main() -> None:
    """Read, fit, print errors, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("clones", help="folder of the clones")
    parser.add_argument("--quick", action="store_true", help="no errors; those of the table before stay")
    arguments = parser.parse_args()
    with open(os.path.join(HERE, "op_times", "sources.tsv"), encoding="utf-8", newline="") as stream:
        sources = [Source(*row) for row in itertools.islice(csv.reader(stream, delimiter="\t"), 1, None)]
    ops = [op for source in sources for op in measured(source, arguments.clones)]
    used = collections.Counter(f"{op.source.repository}@{op.source.commit}" for op in ops)
    folders = {op.source.folder for op in ops}
    print(f"{sum(op.runs for op in ops)} runs, {len(ops)} signatures, {len(folders)} profiles of {', '.join(used)}\n")
    if arguments.quick:
        with open(OUT, encoding="utf-8") as stream:
            of_steps = json.load(stream)["errors"]
    else:
        heads = ["held out", "profiles (models)", "step within 1.5", "within 2", "median factor", "factor of 80 %"]
        heads += ["of 95 %", "each model once: 1.5", "2", "ops by time within 1.5", "2", "types of half the time"]
        print("|", " | ".join(heads), "|")
        print("| --- |" + " --- |" * 11)
        keys = {"one profile": "folder", "one model": "model"}
        of_steps = {name: errors(ops, name, lambda op: str(getattr(op.source, key))) for name, key in keys.items()}
        of_steps["one family"] = errors(ops, "one family of processors", lambda op: op.device.family)
    head = {"errors": of_steps, "sources": sorted(used)}
    rows = sorted(fit(ops), key=lambda row: (row.family, _LEVELS.index(row.level), -row.runs, row.name))
    with open(OUT, "w", encoding="utf-8") as stream:
        text = json.dumps(head, indent=1)[:-2]
        lines = [json.dumps([*row[:-1], [float(f"{number:.4g}") for number in np.exp(row.logs)]]) for row in rows]
        stream.write(text + ',\n "rows": [\n  ' + ",\n  ".join(lines) + "\n ]\n}\n")


if __name__ == "__main__":
    main()
