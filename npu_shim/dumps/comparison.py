"""The comparison of a folder of dumps with a reference: every pair, the first departure, and the path to it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Sequence

from npu_shim.dumps import causes, dump, files, formats, graph_files, limits, reference, second_run, slices
from npu_shim.dumps.figures import Figures, compare
from npu_shim.dumps.pairing import Pair, Pairing
from npu_shim.dumps.reference import Reference

_RANDOM = re.compile("Random|TruncatedNormal|Multinomial")  # types of ops of TensorFlow
AGREES, DEPARTS, NOT_COMPARED = "agrees", "departs", "not compared"
_MOST_PATH = 40


class NothingComparable(ValueError):
    """There is no pair of a dump and a reference."""


@dataclass
class Compared:
    """A pair and what was found.

    Attributes:
        step: of the reference; -1 without steps.
        state: AGREES, DEPARTS or NOT_COMPARED.
        why: the limits that it exceeds, or why it was not compared.
        cause: what a departure looks like.
        figures: None if it was not compared, or has no elements.
    """

    pair: Pair
    step: int
    output: reference.Output
    device_type: str
    layout: str
    state: str
    why: list[str] = field(default_factory=list)
    cause: str = ""
    figures: Figures | None = None


@dataclass
class Departure:
    """The first pair that departs.

    Attributes:
        inputs: "agree", "differ" or "not compared".
        path: the outputs from an input of the graph to the departure.
    """

    at: Compared
    inputs: str
    path: list[Compared]


@dataclass
class Comparison:
    """The result for all steps.

    Attributes:
        problems: what is wrong with files, by path.
        of_device, of_reference: (name, cause) of what has no pair.
    """

    compared: list[Compared] = field(default_factory=list)
    first: Departure | None = None
    graphs: list[str] = field(default_factory=list)
    problems: dict[str, str] = field(default_factory=dict)
    of_device: list[tuple[str, str]] = field(default_factory=list)
    of_reference: list[tuple[str, str]] = field(default_factory=list)


def run(
    device: str, other: str, graphs: Sequence[str] = (), step: int | None = None, tolerance: float = 1
) -> Comparison:
    """Compare a folder of dumps with a reference.

    Args:
        device: folder of the dumps.
        other: folder of the reference, or of the dumps of another run.
        graphs: further folders with graph files.
        step: the only step; all without it.
        tolerance: a factor of all limits.
    Raises:
        NothingComparable: there is no pair.
    """
    made = Comparison()
    found, made.problems = files.find(device)
    if not found:
        raise NothingComparable(f"{device} has no dump files, TYPE.NAME.TASK.STREAM.TIMESTAMP. Give the dump_path.")
    graph = graph_files.find([device, *graphs], made.problems)
    made.graphs = graph.paths
    found = files.latest(found)
    sides = second_run.steps(other, made.problems) or reference.steps(other)
    for number in sorted({each.step for each in found}):
        at = number if number in sides else -1 if -1 in sides else min(sides) if number == -1 else None
        if at is None or (step is not None and number not in (step, -1)):
            continue
        side = sides[at]
        against = side if isinstance(side, Reference) else reference.read(side, made.problems)
        dumps = slices.merged(
            dump.read_all([each for each in found if each.step == number], made.problems), made.problems
        )
        _step(made, Pairing(dumps, graph, against), max(number, at), tolerance)
        if -1 in sides and number != -1:
            break  # the reference has one step
    if not any(each.state != NOT_COMPARED for each in made.compared):
        steps = ", ".join(str(each) for each in sorted({each.step for each in found}))
        raise NothingComparable(
            f"no output in {device} (steps {steps}) has a counterpart in {other}. "
            "Give dumps and reference of one step, and --graph with the engine's graph files."
        )
    return made


def _step(made: Comparison, pairing: Pairing, step: int, tolerance: float) -> None:
    pairs = pairing.pairs()
    compared = [_compare(pair, pairing.reference, step, tolerance) for pair in pairs.pairs]
    if not pairing.reference.of_device:
        _leave_random(compared, pairing.reference)
    made.compared += compared
    made.of_device += pairs.of_device
    made.of_reference += pairs.of_reference
    if made.first is None:
        first = next((each for each in compared if each.state == DEPARTS and each.pair.slot == "output"), None)
        if first:
            made.first = Departure(first, _inputs(first, compared, pairing), _path(first, compared, pairing))


def _leave_random(compared: list[Compared], against: Reference) -> None:
    """Leave out what departs because it follows from random numbers, which the device draws itself."""
    equal = {each.pair.place for each in compared if each.state == AGREES}
    drawn: set[str] = set()
    for place, output in enumerate(against.outputs):
        is_random = _RANDOM.search(output.type) and place not in equal
        if is_random or any(taken.rpartition(":")[0] in drawn for taken in output.inputs):
            drawn.add(output.op)
    for each in compared:
        if each.state == DEPARTS and each.output.op in drawn:
            each.state, each.cause = NOT_COMPARED, ""
            each.why = ["follows from random numbers, which the device draws itself"]


def _compare(pair: Pair, against: Reference, step: int, tolerance: float) -> Compared:
    output, tensor = against.outputs[pair.place], pair.tensor
    made = Compared(pair, step, output, dump.type_name(tensor), formats.name(tensor.format), NOT_COMPARED)
    try:
        theirs = against.load(pair.place)
        ours = dump.original(pair.operator.file.path, tensor, pair.layout)
    except (ValueError, OSError) as error:
        made.why = [str(error)]
        return made
    output.dtype, output.shape = output.dtype or str(theirs.dtype), list(theirs.shape)
    if ours.shape != theirs.shape:
        if [n for n in ours.shape if n != 1] != [n for n in theirs.shape if n != 1]:
            made.state = DEPARTS
            made.why = [f"shape {list(ours.shape)} on the device, {list(theirs.shape)} in the reference"]
            made.cause = "shape: the two sides compute different things, or a file is of another step"
            return made
        ours = ours.reshape(theirs.shape)
    if not ours.size:
        made.state = AGREES
        return made
    made.figures = compare(ours, theirs)
    made.why = limits.reasons(made.figures, made.device_type, output.band, tolerance)
    made.state = DEPARTS if made.why else AGREES
    if made.why:
        made.cause = causes.cause(ours, theirs, made.figures, made.device_type)
    return made


def _inputs(first: Compared, compared: list[Compared], pairing: Pairing) -> str:
    taken = [each for each in compared if each.pair.operator is first.pair.operator and each.pair.slot == "input"]
    states = {each.state for each in taken or _producers(first, compared, pairing)} - {NOT_COMPARED}
    return "differ" if DEPARTS in states else "agree" if states else NOT_COMPARED


def _producers(of: Compared, compared: list[Compared], pairing: Pairing) -> list[Compared]:
    places = pairing.producers(of.pair)
    return [each for each in compared if each.pair.slot == "output" and each.pair.place in places]


def _path(first: Compared, compared: list[Compared], pairing: Pairing) -> list[Compared]:
    """Return the way from an input of the graph, always along the producer that differs most."""
    path = [first]
    while len(path) < _MOST_PATH:
        producers = [each for each in _producers(path[0], compared, pairing) if each not in path]
        if not producers:
            break
        path.insert(0, max(producers, key=_distance))
    return path


def _distance(each: Compared) -> float:
    return each.figures.relative_euclidean if each.figures else -1.0
