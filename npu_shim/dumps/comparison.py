"""The comparison of a folder of dumps with a reference: every pair, the first departure, and the path to it."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from typing import Sequence

from npu_shim._tensorflow.types import JsonObject
from npu_shim.dumps import dump, files, formats, graph_files, limits, reference
from npu_shim.dumps.figures import compare
from npu_shim.dumps.pairing import Pair, Pairing
from npu_shim.dumps.reference import Reference
from npu_shim.rehearsal.reports import about

_RANDOM = re.compile("Random|TruncatedNormal|Multinomial")  # types of ops of TensorFlow
AGREES, DEPARTS, NOT_COMPARED = "agrees", "departs", "not compared"
_MOST_PATH = 40
_MOST_NAMES = 2000  # of a cause


def run(
    device: str, other: str, graphs: Sequence[str] = (), step: int | None = None, tolerance: float = 1
) -> JsonObject:
    """Compare a folder of dumps with a reference. Return what docs/dumps.schema.json describes.

    Args:
        device: folder of the dumps.
        other: folder of the reference, or of the dumps of another run.
        graphs: further folders with graph files.
        step: the only step; all without it.
        tolerance: a factor of all limits.
    Raises:
        ValueError: there is no pair.
    """
    dump_files, problems = files.find(device)
    is_cpu = not dump_files and next(files.below(device, ".npy"), None) is not None
    if not dump_files and not is_cpu:
        text = "has no dump files, TYPE.NAME.TASK.STREAM.TIMESTAMP or NAME.OUTPUT.TIMESTAMP.npy"
        raise ValueError(f"{device} {text}. Give the folder of --dump, or the dump_path.")
    ops, graph_paths = graph_files.find([device, *graphs], problems)
    shared = _shared_draws(device, problems)
    sides = reference.read_steps(other, problems)
    compared: list[Pair] = []
    unpaired: dict[tuple[str, str], list[str]] = {}
    first = None
    dumped = {} if is_cpu else files.latest(dump_files)
    by_step = {number: dump.read_all(members, problems) for number, members in dumped.items()}
    by_step.update(reference.as_dumps(device, problems) if is_cpu else {})
    for number, members in by_step.items():
        at = number if number in sides else -1 if -1 in sides else min(sides) if number == -1 else None
        if at is None or (step is not None and number not in (step, -1)):
            continue
        pairing = Pairing(members, ops, sides[at])
        here, without = pairing.pairs()
        for pair in here:
            _compare(pair, sides[at], max(number, at), tolerance)
        if not is_cpu:  # two runs on the CPU draw the same numbers
            _leave_random(here, sides[at], shared)
        first = first or _first(here, pairing)
        compared += here
        for side, cause, name in without:
            unpaired.setdefault((side, cause), []).append(name)
        if -1 in sides and number != -1:
            break  # the reference has one step
    states = Counter(pair.row["state"] for pair in compared)
    if not states[AGREES] + states[DEPARTS]:
        raise ValueError(
            f"no output in {device} (steps {', '.join(map(str, by_step))}) has a counterpart in {other}. "
            "Give dumps and reference of one step, and --graph with the engine's graph files."
        )
    causes = sorted(unpaired.items(), key=lambda item: item[0][0])
    parts = ("side", "cause", "number", "names")
    return {
        **about("dumps compare"),
        "device": device,
        "reference": other,
        "graphs": graph_paths,
        "verdict": DEPARTS if states[DEPARTS] else AGREES,
        "pairs": len(compared),
        "states": dict(states),
        "first_departure": first,
        "types": _types(compared),
        "tensors": [pair.row for pair in compared],
        "unpaired": [dict(zip(parts, (*key, len(names), names[:_MOST_NAMES]))) for key, names in causes],
        "problems": [{"file": path, "problem": text} for path, text in problems.items()],
    }


def _shared_draws(device: str, problems: dict[str, str]) -> set[str]:
    """Return the random ops whose numbers the device got from the host, as files have their names."""
    names: set[str] = set()
    for path in files.below(device, reference.DRAWS):
        with files.noted(problems, path, "it has no list of random ops: {}"), open(path, encoding="utf-8") as stream:
            names.update(map(files.flat, json.load(stream)["shared"]))
    return names


def _leave_random(compared: list[Pair], against: Reference, shared: set[str]) -> None:
    """Leave out what departs because it follows from random numbers, which the device draws itself."""
    equal = {pair.place for pair in compared if pair.row["state"] == AGREES}
    drawn: set[str] = set()
    for place, output in enumerate(against.outputs if not against.tensors else ()):
        is_random = _RANDOM.search(output.type) and place not in equal and files.flat(output.op) not in shared
        if is_random or any(taken.rpartition(":")[0] in drawn for taken in output.inputs):
            drawn.add(output.op)
    for pair in compared:
        if pair.row["state"] == DEPARTS and against.outputs[pair.place].op in drawn:
            pair.row.update(
                state=NOT_COMPARED, cause="", why=["follows from random numbers, which the device draws itself"]
            )


def _compare(pair: Pair, against: Reference, step: int, tolerance: float) -> None:
    """Compare a pair, and fill its row."""
    output, operator = against.outputs[pair.place], pair.operator
    row: JsonObject = {
        "step": step,
        "operator": operator.name,
        "type": operator.type,
        "originals": operator.originals or [],
        "slot": f"{pair.slot}:{pair.index}",
        "op": f"{output.op}:{output.output}",
        "line": output.line,
        "device_type": dump.type_name(pair.tensor),
        "reference_type": output.dtype,
        "layout": formats.name(pair.tensor.format),
        "shape": output.shape,
        "state": NOT_COMPARED,
        "why": [],
        "cause": "",
        "file": operator.file.path,
        "figures": None,
    }
    pair.row = row
    try:
        theirs = against.load(pair.place)
        ours = dump.original(pair.tensor, pair.layout, theirs.shape)
    except (ValueError, OSError) as error:
        row["why"] = [str(error)]
        return
    row.update(reference_type=output.dtype or str(theirs.dtype), shape=list(theirs.shape))
    if [n for n in ours.shape if n != 1] != [n for n in theirs.shape if n != 1]:
        row["why"] = [f"shape {list(ours.shape)} on the device, {list(theirs.shape)} in the reference"]
        row["cause"] = "shape: the sides compute different things, or a slice is missing, or a file is of another step"
    elif ours.size:
        ours = ours.reshape(theirs.shape)
        figures = compare(ours, theirs)
        row["figures"] = {name: _finite(value) for name, value in figures.items()}
        row["why"] = limits.reasons(figures, row["device_type"], output.band, tolerance)
        row["cause"] = limits.cause(ours, theirs, figures, row["device_type"]) if row["why"] else ""
    row["state"] = DEPARTS if row["why"] else AGREES


def _finite(value: float) -> float | None:
    if isinstance(value, tuple):
        return list(map(_finite, value))
    return None if not math.isfinite(value) else int(value) if isinstance(value, int) else float(value)


def _first(compared: list[Pair], pairing: Pairing) -> JsonObject | None:
    """Return the first output that departs, the state of its inputs, and the way to it from an input of the graph."""
    outputs = {pair.place: pair for pair in compared if pair.slot == "output"}
    first = next((pair for pair in compared if pair.slot == "output" and pair.row["state"] == DEPARTS), None)
    if first is None:
        return None
    path, inputs = [first], [pair for pair in compared if pair.operator is first.operator and pair.slot == "input"]
    while len(path) < _MOST_PATH:  # always along the producer that differs most
        before = [outputs[at[0]] for at in pairing.taken(path[0]) if at and at[0] in outputs]
        inputs = inputs or before
        before = [pair for pair in before if pair not in path]
        if not before:
            break
        path.insert(0, max(before, key=lambda pair: _figure(pair.row, "relative_euclidean", -1.0)))
    states = {pair.row["state"] for pair in inputs} - {NOT_COMPARED}
    of_inputs = "differ" if DEPARTS in states else "agree" if states else NOT_COMPARED
    return {**first.row, "inputs": of_inputs, "path": [pair.row for pair in path]}


def _figure(row: JsonObject, name: str, default: float) -> float:
    figure = (row["figures"] or {}).get(name)
    return default if figure is None else float(figure)


def _types(compared: list[Pair]) -> list[JsonObject]:
    """Return how the types of operators fare, those that depart first."""
    by_type: dict[str, list[JsonObject]] = {}
    for pair in compared:
        if pair.slot == "output":
            by_type.setdefault(pair.row["type"], []).append(pair.row)
    rows = []
    for name, members in by_type.items():
        rows.append(
            {"type": name, "outputs": len(members), "departing": sum(row["state"] == DEPARTS for row in members)}
        )
        rows[-1]["largest_distance"] = _finite(max(_figure(row, "relative_euclidean", -math.inf) for row in members))
        rows[-1]["least_cosine"] = _finite(min(_figure(row, "cosine", math.inf) for row in members))
    return sorted(rows, key=lambda row: (-row["departing"], -(row["largest_distance"] or 0.0), row["type"]))
