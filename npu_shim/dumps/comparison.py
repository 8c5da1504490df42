"""The comparison of a folder of dumps with a reference: every pair, the first departure, and the path to it."""

from __future__ import annotations

import dataclasses
import json
import math
import re
from collections import Counter
from typing import TYPE_CHECKING, Any, Iterable, NamedTuple, Sequence

import npu_shim
from npu_shim.dumps import dump, files, formats, graph_files, limits, reference, slices
from npu_shim.dumps.figures import compare
from npu_shim.dumps.pairing import Pair, Pairing
from npu_shim.dumps.reference import Reference

if TYPE_CHECKING:
    from npu_shim._tensorflow.types import JsonObject

_RANDOM = re.compile("Random|TruncatedNormal|Multinomial")  # types of ops of TensorFlow
AGREES, DEPARTS, NOT_COMPARED = "agrees", "departs", "not compared"
_MOST_PATH = 40
_MOST_NAMES = 2000  # of a cause


class NothingComparable(ValueError):
    """There is no pair of a dump and a reference."""


class Compared(NamedTuple):
    """A pair, and what was found as docs/dumps.schema.json describes a tensor."""

    pair: Pair
    row: JsonObject


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
        NothingComparable: there is no pair.
    """
    found, problems = files.find(device)
    if not found:
        raise NothingComparable(f"{device} has no dump files, TYPE.NAME.TASK.STREAM.TIMESTAMP. Give the dump_path.")
    graph = graph_files.find([device, *graphs], problems)
    shared = _shared_draws(device, problems)
    sides = reference.device_steps(other, problems) or reference.steps(other)
    compared: list[Compared] = []
    unpaired: dict[tuple[str, str], list[str]] = {}
    first = None
    by_step = files.latest(found)
    for number, members in by_step.items():
        at = number if number in sides else -1 if -1 in sides else min(sides) if number == -1 else None
        if at is None or (step is not None and number not in (step, -1)):
            continue
        side = sides[at]
        against = side if isinstance(side, Reference) else reference.read(side, problems)
        pairing = Pairing(slices.merged(dump.read_all(members, problems), problems), graph, against)
        pairs, without = pairing.pairs()
        here = [_compare(pair, against, max(number, at), tolerance) for pair in pairs]
        if not against.tensors:
            _leave_random(here, against, shared)
        first = first or _first(here, pairing)
        compared += here
        for of, cause, name in without:
            unpaired.setdefault((of, cause), []).append(name)
        if -1 in sides and number != -1:
            break  # the reference has one step
    states = Counter(each.row["state"] for each in compared)
    if not states[AGREES] + states[DEPARTS]:
        raise NothingComparable(
            f"no output in {device} (steps {', '.join(map(str, by_step))}) has a counterpart in {other}. "
            "Give dumps and reference of one step, and --graph with the engine's graph files."
        )
    return {
        "schema_version": 1,
        "tool": "npu-shim dumps compare",
        "tool_version": npu_shim.__version__,
        "device": device,
        "reference": other,
        "graphs": graph.paths,
        "verdict": DEPARTS if states[DEPARTS] else AGREES,
        "pairs": len(compared),
        "states": dict(states),
        "first_departure": first,
        "types": _types(compared),
        "tensors": [each.row for each in compared],
        "unpaired": [
            {"side": side, "cause": cause, "number": len(names), "names": names[:_MOST_NAMES]}
            for (side, cause), names in sorted(unpaired.items(), key=lambda each: each[0][0])
        ],
        "problems": [{"file": path, "problem": text} for path, text in problems.items()],
    }


def _shared_draws(device: str, problems: dict[str, str]) -> set[str]:
    """Return the random ops whose numbers the device got from the host, as files have their names."""
    found: set[str] = set()
    for path in files.below(device, (reference.DRAWS,)):
        try:
            with open(path, encoding="utf-8") as stream:
                found.update(map(reference.flat, json.load(stream)["shared"]))
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            problems[path] = f"it has no list of random ops: {error}"
    return found


def _leave_random(compared: list[Compared], against: Reference, shared: set[str]) -> None:
    """Leave out what departs because it follows from random numbers, which the device draws itself."""
    equal = {each.pair.place for each in compared if each.row["state"] == AGREES}
    drawn: set[str] = set()
    for place, output in enumerate(against.outputs):
        is_random = _RANDOM.search(output.type) and place not in equal and reference.flat(output.op) not in shared
        if is_random or any(taken.rpartition(":")[0] in drawn for taken in output.inputs):
            drawn.add(output.op)
    for each in compared:
        if each.row["state"] == DEPARTS and against.outputs[each.pair.place].op in drawn:
            why = ["follows from random numbers, which the device draws itself"]
            each.row.update(state=NOT_COMPARED, cause="", why=why)


def _compare(pair: Pair, against: Reference, step: int, tolerance: float) -> Compared:
    output, tensor, operator = against.outputs[pair.place], pair.tensor, pair.operator
    row: JsonObject = {
        "step": step,
        "operator": operator.name,
        "type": operator.type,
        "originals": operator.originals or [],
        "slot": f"{pair.slot}:{pair.index}",
        "op": f"{output.op}:{output.output}",
        "line": output.line,
        "device_type": dump.type_name(tensor),
        "reference_type": output.dtype,
        "layout": formats.name(tensor.format),
        "shape": output.shape or [],
        "state": NOT_COMPARED,
        "why": [],
        "cause": "",
        "file": operator.file.path,
        "figures": None,
    }
    try:
        theirs = against.load(pair.place)
        ours = dump.original(operator.file.path, tensor, pair.layout)
    except (ValueError, OSError) as error:
        return Compared(pair, {**row, "why": [str(error)]})
    row.update(reference_type=output.dtype or str(theirs.dtype), shape=list(theirs.shape), state=AGREES)
    if ours.shape != theirs.shape and [n for n in ours.shape if n != 1] != [n for n in theirs.shape if n != 1]:
        why = [f"shape {list(ours.shape)} on the device, {list(theirs.shape)} in the reference"]
        cause = "shape: the two sides compute different things, or a file is of another step"
        return Compared(pair, {**row, "state": DEPARTS, "why": why, "cause": cause})
    ours = ours.reshape(theirs.shape)
    if not ours.size:
        return Compared(pair, row)
    figures = compare(ours, theirs)
    row["figures"] = {name: _finite(value) for name, value in dataclasses.asdict(figures).items()}
    row["why"] = limits.reasons(figures, row["device_type"], output.band, tolerance)
    if row["why"]:
        row.update(state=DEPARTS, cause=limits.cause(ours, theirs, figures, row["device_type"]))
    return Compared(pair, row)


def _finite(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_finite(each) for each in value]
    return None if not math.isfinite(value) else int(value) if isinstance(value, int) else float(value)


def _first(compared: list[Compared], pairing: Pairing) -> JsonObject | None:
    """Return the first output that departs, the state of its inputs, and the way to it from an input of the graph."""
    outputs = [each for each in compared if each.pair.slot == "output"]
    first = next((each for each in outputs if each.row["state"] == DEPARTS), None)
    if first is None:
        return None

    def producers(of: Compared) -> list[Compared]:
        taken = {each[0] for each in pairing.taken(of.pair.operator, of.pair.place) if each} - {of.pair.place}
        return [each for each in outputs if each.pair.place in taken]

    def distance(each: Compared) -> float:
        found = (each.row["figures"] or {}).get("relative_euclidean")
        return -1.0 if found is None else float(found)

    path = [first]
    while len(path) < _MOST_PATH:  # always along the producer that differs most
        before = [each for each in producers(path[0]) if each not in path]
        if not before:
            break
        path.insert(0, max(before, key=distance))
    operator = first.pair.operator
    inputs = [each for each in compared if each.pair.operator is operator and each.pair.slot == "input"]
    states = {each.row["state"] for each in inputs or producers(first)} - {NOT_COMPARED}
    of_inputs = "differ" if DEPARTS in states else "agree" if states else NOT_COMPARED
    return {**first.row, "inputs": of_inputs, "path": [each.row for each in path]}


def _types(compared: list[Compared]) -> list[JsonObject]:
    """Return how the types of operators fare, those that depart first."""
    by_type: dict[str, list[JsonObject]] = {}
    for each in compared:
        if each.pair.slot == "output":
            by_type.setdefault(each.row["type"], []).append(each.row)
    rows = []
    for name, members in by_type.items():
        figures = [row["figures"] for row in members if row["figures"]]
        distances, cosines = (_present(figures, name) for name in ("relative_euclidean", "cosine"))
        departing = sum(row["state"] == DEPARTS for row in members)
        rows.append({"type": name, "outputs": len(members), "departing": departing})
        rows[-1].update(largest_distance=max(distances, default=None), least_cosine=min(cosines, default=None))
    return sorted(rows, key=lambda row: (-row["departing"], -(row["largest_distance"] or 0.0), row["type"]))


def _present(figures: Iterable[JsonObject], name: str) -> list[float]:
    return [each[name] for each in figures if each[name] is not None]
