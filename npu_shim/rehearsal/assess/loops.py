"""The number of runs of the loops of a step, and the loop of steps that a call may make."""

from __future__ import annotations

from typing import Iterator, NamedTuple, Sequence

from npu_shim._tensorflow.op_types import LOOPS
from npu_shim._tensorflow.types import Value
from npu_shim.rehearsal.assess.flat import Node, reads_batch
from npu_shim.rehearsal.assess.known_values import Key, is_inside, known_values
from npu_shim.rehearsal.assess.training_ops import GRADIENT_SCOPE, UPDATE_OPS

_SAME = frozenset({"Identity", "Enter", "RefEnter", "Switch", "Merge"})  # they hand on their first input
_LESS, _AND = ("Less", "LessEqual"), ("LogicalAnd", "Identity")
_STEPS = ("Add", "AddV2")


class _Comparison(NamedTuple):
    """A counter of a loop and its limit: the tensors of both, and of the step of the counter."""

    loop: str
    start: Key
    limit: Key
    step: Key | None
    is_inclusive: bool


def loop_names(nodes: Sequence[Node]) -> list[str]:
    """Return the names of the loops of a step: of their nodes, or of the frames of TensorFlow 1."""
    frames = {node.inside for node in nodes if node.op == "LoopCond"}
    return [node.name for node in nodes if node.op in LOOPS] + sorted(frames)


def loop_trip_counts(nodes: Sequence[Node]) -> dict[str, int]:
    """Return how often loops run at most, where it is known: a counter goes up to a number.

    The number may be written into the graph, follow from sizes, be fed, or be an integer variable. The loop of a
    gradient runs as often as the loop that it belongs to.
    """
    comparisons = list(_comparisons(nodes))
    keys = [
        key for compared in comparisons for key in (compared.start, compared.limit, compared.step) if key is not None
    ]
    values = known_values(nodes, keys, with_variables=True)
    trips: dict[str, int] = {}
    for compared in comparisons:
        start, limit, step = (
            _integer(values.get(key)) for key in (compared.start, compared.limit, compared.step or compared.start)
        )
        if start is not None and limit is not None:
            by = step if compared.step is not None and step is not None and step > 0 else 1
            number = (limit - start) // by + 1 if compared.is_inclusive else -(-(limit - start) // by)
            if number > 0:
                trips[compared.loop] = min(number, trips.get(compared.loop, number))
    return {**trips, **_of_gradients(nodes, trips)}


def steps_in_call(nodes: Sequence[Node], trips: dict[str, int]) -> tuple[str, int | None]:
    """Return the loop of training steps that a call makes, "" without one, and its number of steps.

    Such a loop reads batches and updates variables, as with ``steps_per_execution`` of Keras.
    """
    around = [{node.inside for node in nodes if kind(node)} for kind in (_reads_batch, updates_variable)]
    for name in loop_names(nodes):
        if all(any(is_inside(place, name) for place in places) for places in around):
            return name, trips.get(name)
    return "", 1


def _reads_batch(node: Node) -> bool:
    return reads_batch(node.op, node.name) or node.op == "IteratorGetNextAsOptional"


def updates_variable(node: Node) -> bool:
    """Return True for a node of an optimizer or of gradients."""
    return bool(UPDATE_OPS.match(node.op) or GRADIENT_SCOPE.search(node.name))


def _integer(value: Value | None) -> int | None:
    return int(value) if value is not None and value.shape == () and value.dtype.kind == "i" else None


def _comparisons(nodes: Sequence[Node]) -> Iterator[_Comparison]:
    """Yield the comparisons of counters in the conditions of loops."""
    loops = {node.name: node for node in nodes if node.op in LOOPS}
    for node in nodes:
        if node.op in _LESS and len(node.inputs) == 2:
            if node.inside in loops and "/cond/" in node.name:
                step = _step_of_body(nodes, loops[node.inside], node.inputs[0])
                counter, limit = node.inputs
                yield _Comparison(node.inside, counter, limit, step, node.op == "LessEqual")
    for condition in (node for node in nodes if node.op == "LoopCond"):
        waiting = [source for source, _ in condition.inputs]
        while waiting:
            node = nodes[waiting.pop()]
            if node.op in _AND:
                waiting += [source for source, _ in node.inputs]
            elif node.op in _LESS:
                counter, limit = node.inputs
                step = _step_of_frame(nodes, counter)
                ends = (_origin(nodes, counter), _origin(nodes, limit))
                yield _Comparison(condition.inside, *ends, step, node.op == "LessEqual")


def _origin(nodes: Sequence[Node], key: Key) -> Key:
    """Return the tensor that a loop is given for one in it."""
    seen = set()
    while nodes[key[0]].op in _SAME and nodes[key[0]].inputs and key not in seen:
        seen.add(key)
        key = nodes[key[0]].inputs[0]
    return key


def _step_of_body(nodes: Sequence[Node], loop: Node, counter: Key) -> Key | None:
    """Return what the body of a loop adds to a counter; None if it is not a sum."""
    for given, result in zip(loop.inputs, loop.results):
        while result is not None and nodes[result[0]].op == "Identity" and nodes[result[0]].inputs:
            result = nodes[result[0]].inputs[0]
        if given == counter and result is not None and nodes[result[0]].op in _STEPS:
            return next((key for key in nodes[result[0]].inputs if key != counter), None)
    return None


def _step_of_frame(nodes: Sequence[Node], counter: Key) -> Key | None:
    """Return what a loop of TensorFlow 1 adds to a counter; None if it is not a sum."""
    merge = nodes[counter[0]]
    last = nodes[merge.inputs[-1][0]] if merge.op == "Merge" else merge
    while last.op in ("NextIteration", "Identity") and last.inputs:
        last = nodes[last.inputs[0][0]]
    if last.op not in _STEPS:
        return None
    start = _origin(nodes, counter)
    return next((_origin(nodes, key) for key in last.inputs if _origin(nodes, key) != start), None)


def _of_gradients(nodes: Sequence[Node], trips: dict[str, int]) -> dict[str, int]:
    """Return how often loops of gradients run, which count back what the loops before them counted."""
    loops = [node.name for node in nodes if node.op in LOOPS]
    result: dict[str, int] = {}
    for name in loops:
        if name not in trips and "grad" in name:
            others = [other for other in loops if other in trips and not is_inside(name, other)]
            forward = [other for other in others if "grad" not in other.rsplit("/", 1)[-1]]
            same = [other for other in forward if other.rsplit("/", 1)[-1].split("_grad")[0] in name]
            if len({trips[other] for other in same or forward}) == 1:
                result[name] = trips[(same or forward)[0]]
    for condition in (node for node in nodes if node.op == "LoopCond" and node.inside not in trips):
        compared = [nodes[source] for source, _ in condition.inputs]
        for node in compared:
            counted = _origin(nodes, node.inputs[0]) if node.op in ("GreaterEqual", "Greater") else None
            if counted is not None and nodes[counted[0]].op == "Exit":
                forward_loop = nodes[nodes[counted[0]].inputs[0][0]].inside
                if forward_loop in trips:
                    result[condition.inside] = trips[forward_loop]
    return result
