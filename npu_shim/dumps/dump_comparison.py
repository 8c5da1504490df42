"""The comparison of a folder of dumps with a reference: every pair, the first departure, and the path to it."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from typing import NamedTuple, Sequence

from npu_shim.dumps import dump, files, formats, graph_files, limits, reference
from npu_shim.dumps.comparison_result import (
    AGREES,
    DEPARTS,
    NOT_COMPARED,
    ComparedTensor,
    Departure,
    DumpComparison,
    TypeOutputs,
    Unpaired,
    finite_or_none,
)
from npu_shim.dumps.figures import difference_figures_of_tensors
from npu_shim.dumps.pairing import Pair, Pairing
from npu_shim.dumps.reference import Reference

_RANDOM = re.compile("Random|TruncatedNormal|Multinomial")  # types of ops of TensorFlow
_MOST_PATH = 40
_MOST_NAMES = 2000  # of a cause


class Compared(NamedTuple):
    """A pair of tensors, and the row of the result about it."""

    pair: Pair
    row: ComparedTensor


def compare_dumps(
    device: str, other: str, graphs: Sequence[str] = (), step: int | None = None, tolerance: float = 1
) -> DumpComparison:
    """Compare a folder of dumps with a reference.

    Args:
        device: folder of the dumps.
        other: folder of the reference, or of the dumps of another run.
        graphs: further folders with graph files.
        step: the only step; all without it.
        tolerance: a factor of all limits.
    Raises:
        ValueError: there is no pair.
    """
    dump_files, problems = files.find_dump_files_and_problems(device)
    is_cpu = not dump_files and next(files.paths_below(device, ".npy"), None) is not None
    if not dump_files and not is_cpu:
        text = "has no dump files, TYPE.NAME.TASK.STREAM.TIMESTAMP or NAME.OUTPUT.TIMESTAMP.npy"
        raise ValueError(f"{device} {text}. Give the folder of --dump, or the dump_path.")
    ops, graph_paths = graph_files.read_built_graphs_and_paths([device, *graphs], problems)
    shared = _read_shared_draws(device, problems)
    sides = reference.read_steps(other, problems)
    compared: list[Compared] = []
    unpaired: dict[tuple[str, str], list[str]] = {}
    first = None
    dumped = {} if is_cpu else files.last_operator_dumps_by_step(dump_files)
    by_step = {number: dump.read_dumps(members, problems) for number, members in dumped.items()}
    by_step.update(reference.read_as_dumps(device, problems) if is_cpu else {})
    for number, members in by_step.items():
        at = number if number in sides else -1 if -1 in sides else min(sides) if number == -1 else None
        if at is None or (step is not None and number not in (step, -1)):
            continue
        pairing = Pairing(members, ops, sides[at])
        pairs, without = pairing.pair_outputs_and_list_unpaired()
        here = [Compared(pair, _compare_pair(pair, sides[at], max(number, at), tolerance)) for pair in pairs]
        if not is_cpu:  # two runs on the CPU draw the same numbers
            _exclude_random_departures(here, sides[at], shared)
        first = first or _first_departure(here, pairing)
        compared += here
        for side, cause, name in without:
            unpaired.setdefault((side, cause), []).append(name)
        if -1 in sides and number != -1:
            break  # the reference has one step
    states = Counter(row.state for _, row in compared)
    if not states[AGREES] + states[DEPARTS]:
        raise ValueError(
            f"no output in {device} (steps {', '.join(map(str, by_step))}) has a counterpart in {other}. "
            "Give dumps and reference of one step, and --graph with the engine's graph files."
        )
    causes = sorted(unpaired.items(), key=lambda cause: cause[0][0])
    return DumpComparison(
        device=device,
        reference=other,
        graphs=graph_paths,
        verdict=DEPARTS if states[DEPARTS] else AGREES,
        pairs=len(compared),
        states=dict(states),
        first_departure=first,
        types=_outputs_by_type(compared),
        tensors=[row for _, row in compared],
        unpaired=[Unpaired(*key, len(names), names[:_MOST_NAMES]) for key, names in causes],
        problems=files.problem_list(problems),
    )


def _read_shared_draws(device: str, problems: files.Problems) -> set[str]:
    """Return the random ops whose numbers the device got from the host, as files have their names."""
    names: set[str] = set()
    for path in files.paths_below(device, reference.DRAWS):
        with files.collect_problem(problems, path, "it has no list of random ops: {}. Dump again"), open(
            path, encoding="utf-8"
        ) as stream:
            content = json.load(stream)
            reference.check_schema_version(content["schema_version"])
            names.update(map(files.name_in_files, content["shared"]))
    return names


def _exclude_random_departures(compared: list[Compared], against: Reference, shared: set[str]) -> None:
    """Leave out what departs because it follows from random numbers, which the device draws itself."""
    equal = {pair.place for pair, row in compared if row.state == AGREES}
    drawn: set[str] = set()
    for place, output in enumerate(against.outputs if not against.tensors else ()):
        is_random = _RANDOM.search(output.type) and place not in equal and files.name_in_files(output.op) not in shared
        if is_random or any(taken.rpartition(":")[0] in drawn for taken in output.inputs):
            drawn.add(output.op)
    for pair, row in compared:
        if row.state == DEPARTS and against.outputs[pair.place].op in drawn:
            row.state, row.cause = NOT_COMPARED, ""
            row.why = ["follows from random numbers, which the device draws itself"]


def _compare_pair(pair: Pair, against: Reference, step: int, tolerance: float) -> ComparedTensor:
    """Compare a pair. Return its row of the result."""
    output, operator = against.outputs[pair.place], pair.operator
    row = ComparedTensor(
        step=step,
        operator=operator.name,
        type=operator.type,
        originals=operator.originals or [],
        slot=f"{pair.slot}:{pair.index}",
        op=f"{output.op}:{output.output}",
        line=output.line,
        device_type=dump.type_name(pair.tensor),
        reference_type=output.dtype,
        layout=formats.format_name(pair.tensor.format),
        shape=output.shape,
        file=operator.file.path,
    )
    try:
        theirs = against.load_output(pair.place)
        ours = dump.tensor_in_graph_shape(pair.tensor, pair.layout, theirs.shape)
    except (ValueError, OSError) as error:
        row.why = [str(error)]
        return row
    row.reference_type, row.shape = output.dtype or str(theirs.dtype), list(theirs.shape)
    if [n for n in ours.shape if n != 1] != [n for n in theirs.shape if n != 1]:
        row.why = [f"shape {list(ours.shape)} on the device, {list(theirs.shape)} in the reference"]
        row.cause = "shape: the sides compute different things, or a slice is missing, or a file is of another step"
    elif ours.size:
        ours = ours.reshape(theirs.shape)
        row.figures = difference_figures_of_tensors(ours, theirs)
        row.why = limits.departure_reasons(row.figures, row.device_type, output.band, tolerance)
        row.cause = limits.departure_cause(ours, theirs, row.figures, row.device_type) if row.why else ""
    row.state = DEPARTS if row.why else AGREES
    return row


def _first_departure(compared: list[Compared], pairing: Pairing) -> Departure | None:
    """Return the first output that departs, the state of its inputs, and the way to it from an input of the graph."""
    outputs = {member.pair.place: member for member in compared if member.pair.slot == "output"}
    first = next((member for member in compared if member.pair.slot == "output" and member.row.state == DEPARTS), None)
    if first is None:
        return None
    path, operator = [first], first.pair.operator
    inputs = [member for member in compared if member.pair.operator is operator and member.pair.slot == "input"]
    while len(path) < _MOST_PATH:  # always along the producer that differs most
        before = [outputs[at[0]] for at in pairing.origins_of_inputs(path[0].pair) if at and at[0] in outputs]
        inputs = inputs or before
        before = [member for member in before if member not in path]
        if not before:
            break
        path.insert(0, max(before, key=lambda member: _distance_or(member.row, -1.0)))
    states = {member.row.state for member in inputs} - {NOT_COMPARED}
    of_inputs = "differ" if DEPARTS in states else "agree" if states else NOT_COMPARED
    return Departure(**vars(first.row), inputs=of_inputs, path=[member.row for member in path])


def _distance_or(row: ComparedTensor, default: float) -> float:
    distance = row.figures.relative_euclidean if row.figures else math.nan
    return distance if math.isfinite(distance) else default


def _outputs_by_type(compared: list[Compared]) -> list[TypeOutputs]:
    """Return how the types of operators fare, those that depart first."""
    by_type: dict[str, list[ComparedTensor]] = {}
    for pair, row in compared:
        if pair.slot == "output":
            by_type.setdefault(row.type, []).append(row)
    types = []
    for name, members in by_type.items():
        cosines = [row.figures.cosine for row in members if row.figures and math.isfinite(row.figures.cosine)]
        farthest = max(_distance_or(row, -math.inf) for row in members)
        departing = sum(row.state == DEPARTS for row in members)
        types.append(TypeOutputs(name, len(members), departing, farthest, min(cosines, default=math.inf)))
    return sorted(types, key=lambda of: (-of.departing, -(finite_or_none(of.largest_distance) or 0.0), of.type))
