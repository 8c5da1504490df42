"""Tensors of float64 in eager code: which of those that the tool asks about meet, and what else they meet.

The ops that run after the first of them are seen. A tensor that no op has made is a constant, which gets its type from
its user. Functions are not looked into: what is handed to one meets float64 that nothing is known of.
"""

from __future__ import annotations

import functools
import operator
import threading
from typing import TYPE_CHECKING, Callable, Iterator, Sequence

from npu_shim._tensorflow import script_frames, tf_api, tf_recording
from npu_shim._tensorflow.op_types import PYTHON_CALLS
from npu_shim.rehearsal.observing.double_values import ADDITIONS, OPTIMIZER, exceeds_float32, is_called_by_files

if TYPE_CHECKING:
    from convert_tf2npu.api import Seen

    from npu_shim._tensorflow.types import Graph, Value

tf = tf_api.tf
_ASSIGN = "AssignVariableOp"
_TYPES = frozenset({tf.float64, tf.resource})
_UPDATES = (OPTIMIZER, "backprop")  # files that run the same lines for each variable or op of a step
# Ops whose results float32 may not hold in a later step, and files that bound what they give to them.
_UNBOUNDED = frozenset({"Cosh", "Cumprod", "Exp", "Expm1", "Prod", "Sinh"})
_BOUNDING = (*_UPDATES, "backend", "losses", "nn_impl")


class EagerDoubles:
    """The places of eager code that had float64, joined to regions by the ops that compute with it."""

    def __init__(self) -> None:
        self._places: list[Seen] = []
        self._files: list[str] = []
        self._joined: list[int] = []  # for each place one that it has met, or itself
        self._regions: dict[int, int] = {}  # a place by the number of a tensor or of the handle of a variable
        self._others: dict[int, str] = {}  # lines of the script that made float64 of other origin, in the same way
        self._calls: dict[tuple[script_frames.RunningCall, ...], int] = {}  # that computed, with a bit for each
        self._computed_by: dict[int, int] = {}  # bits of the calls by the number of a tensor or handle
        self._first = 0  # the number of the first tensor whose origin is known
        self._end: Callable[[], None] | None = None
        self._thread = 0
        self._is_lost = False  # True after an error
        self._is: dict[str, set[int]] = {"mixed": set(), "sums": set(), "large": set()}

    def remember(self, seen: Seen, value: Value) -> None:
        """Remember a tensor or a variable of float64."""
        if self._end is None:
            self._end, self._thread = tf_recording.watch_ops(self._note_op), threading.get_ident()
            self._first = tf_recording.number_of_tensor(tf.constant(0))
        if self._end is None or self._thread != threading.get_ident():
            seen.note("mixed", True)
            return
        line = tf_recording.script_line_text()
        place = next((place for place, other in enumerate(self._places) if other is seen), len(self._places))
        if place == len(self._places):
            self._places.append(seen)
            self._files.append(line.rpartition(":")[0])
            self._joined.append(place)
        number = tf_recording.number_of_tensor(value)
        if number in self._regions:
            place = self._join({place, self._regions[number]})
        elif self._others.pop(number, line) != line:  # another call has made it
            self._is["mixed"].add(place)
        self._regions[number] = place
        self._note_large(place, value)

    def note_regions(self) -> int:
        """Note of each place what there is in its region. Return the number of places."""
        if self._end is not None:
            self._end()
        roots = [self._root(place) for place in range(len(self._places))]
        for place, seen in enumerate(self._places):
            members = [member for member, root in enumerate(roots) if root == roots[place]]
            seen.note("region", roots[place])
            for name, places in self._is.items():
                seen.note(name, any(member in places for member in members))
            if self._is_lost or len({self._files[member] for member in members}) > 1:
                seen.note("mixed", True)
        return len(self._places)

    def _note_op(
        self,
        op_type: str,
        inputs: Sequence[Value],
        attributes: object,
        outputs: Sequence[Value],
        op_name: str | None = None,
        graph: Graph | None = None,
    ) -> None:
        if not self._is_lost and (_may_have_doubles(inputs) or _may_have_doubles(outputs)):
            try:
                self._note_doubles(op_type, inputs, outputs, graph)
            except Exception:  # an op of a kind that nobody expected: the script goes on, and nothing is known
                self._is_lost = True

    def _note_doubles(
        self, op_type: str, inputs: Sequence[Value], outputs: Sequence[Value], graph: Graph | None
    ) -> None:
        """Join the places whose float64 an op takes, and note where its own float64 comes from."""
        used, computed = list(_numbers_of_doubles(inputs)), list(_numbers_of_doubles(outputs))
        known = {self._regions[number] for number in used if number in self._regions}
        if known:
            place = self._join(known)
            is_hidden = op_type in PYTHON_CALLS or tf.compat.as_str(op_type).startswith("__") or graph is not None
            if is_hidden or any(map(self._is_of_other_origin, used)):
                self._is["mixed"].add(place)
            if op_type in ADDITIONS and not is_called_by_files(script_frames.running_files(), (OPTIMIZER,)):
                self._is["sums"].add(place)
            if op_type == _ASSIGN and not is_hidden:
                self._regions[tf_recording.number_of_tensor(inputs[0])] = place
                self._note_large(place, inputs[1])
                computed.append(used[0])
            self._regions.update(dict.fromkeys(computed, place))
            if not is_called_by_files(script_frames.running_files(), _UPDATES):
                self._note_carried(place, used, computed)
                self._note_large_results(place, outputs)
            if op_type in _UNBOUNDED and not is_called_by_files(script_frames.running_files(), _BOUNDING):
                self._is["large"].add(place)
        elif op_type == _ASSIGN:
            if len(used) == 2 and not is_called_by_files(script_frames.running_files(), (OPTIMIZER,)):
                self._others[used[0]] = tf_recording.script_line_text()
        elif computed and graph is None:
            is_other = any(map(self._is_of_other_origin, used))
            if is_other or not is_called_by_files(script_frames.running_files()):
                self._others.update(dict.fromkeys(computed, tf_recording.script_line_text()))

    def _note_carried(self, place: int, used: Sequence[int], computed: Sequence[int]) -> None:
        """Note a value as a sum if a call computes it from what the same call has computed in an earlier step."""
        call = self._calls.setdefault(script_frames.running_calls(), 1 << len(self._calls))
        origin = functools.reduce(operator.or_, (self._computed_by.get(number, 0) for number in used), 0)
        if origin & call:
            self._is["sums"].add(place)
        self._computed_by.update(dict.fromkeys(computed, origin | call))

    def _note_large_results(self, place: int, outputs: Sequence[Value]) -> None:
        """Note large numbers among results. Of arrays they are not looked for, which takes time."""
        for value in outputs:
            if value.dtype == tf.float64 and not value.shape.rank:
                self._note_large(place, value)

    def _is_of_other_origin(self, number: int) -> bool:
        return number in self._others or number < self._first and number not in self._regions

    def _note_large(self, place: int, value: Value) -> None:
        if place not in self._is["large"] and exceeds_float32(value.numpy()):
            self._is["large"].add(place)

    def _root(self, place: int) -> int:
        while self._joined[place] != place:
            place = self._joined[place]
        return place

    def _join(self, places: set[int]) -> int:
        roots = {self._root(place) for place in places}
        first = min(roots)
        for root in roots:
            self._joined[root] = first
        return first


def _may_have_doubles(values: Sequence[Value]) -> bool:
    for value in values:  # of each op: faster than any()
        if getattr(value, "dtype", None) in _TYPES:
            return True
    return False


def _numbers_of_doubles(values: Sequence[Value]) -> Iterator[int]:
    """Yield the numbers of the eager tensors of float64 among values, and of the handles of variables."""
    for value in values:
        if getattr(value, "dtype", None) not in _TYPES:
            continue
        if isinstance(value, tf.Variable):
            if tf_recording.has_eager_value(value):
                yield tf_recording.number_of_tensor(value)
        elif isinstance(value, tf.Tensor) and hasattr(value, "numpy"):
            yield tf_recording.number_of_tensor(value)
