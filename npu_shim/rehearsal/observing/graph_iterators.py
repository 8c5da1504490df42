"""The iterators of a graph: which dataset each reads in a session.

An iterator may be initialized with one dataset after the other, and a feedable one reads from the iterator whose handle
it is fed. A run reads what the session has initialized last. Where that is not known, all that the iterator may read
count.
"""

from __future__ import annotations

import weakref
from typing import Dict, Iterable, List, NamedTuple, Sequence

from npu_shim._tensorflow import tf_api, tf_graph
from npu_shim._tensorflow.types import Graph, Operation, Session, Tensor, Value
from npu_shim.rehearsal.observing.readings import Reading
from npu_shim.rehearsal.recording import updating

tf = tf_api.tf
_FROM_HANDLE, _TO_HANDLE, _INITIALIZER = "IteratorFromStringHandle", "IteratorToStringHandle", "MakeIterator"
_Readings = Dict[str, List[Reading]]  # by the name of an iterator


class IteratorPlan(NamedTuple):
    """The part of a run that concerns iterators.

    Attributes:
        read: iterators that it reads.
        fed: the handles of the iterators that it reads.
        handles: iterators, and the tensors of their handles, which it computes.
        initialized: the initializers that it runs.
        trains: True if it updates variables with an optimizer.
    """

    read: tuple[str, ...]
    fed: tuple[Tensor, ...]
    handles: tuple[tuple[str, Tensor], ...]
    initialized: tuple[Operation, ...]
    trains: bool


class GraphIterators:
    """The iterators of a graph.

    Attributes:
        readings: all, by the name of an iterator.
        initializers: the iterator and the reading, by the name of the op that begins it.
        handles: iterators by the values of their handles.
        untracked: iterators that something else may begin.
    """

    def __init__(self) -> None:
        self.readings: _Readings = {}
        self.initializers: dict[str, tuple[str, Reading]] = {}
        self.handles: dict[object, str] = {}
        self.untracked: set[str] = set()
        self._current: weakref.WeakKeyDictionary[Session, _Readings] = weakref.WeakKeyDictionary()
        self._plans: dict[tuple[str, ...], IteratorPlan] = {}

    def add(self, iterator: str, reading: Reading, initializer: Operation | None, graph: Graph) -> None:
        """Add a dataset that an iterator may read.

        Args:
            iterator: its name.
            reading: of the dataset.
            initializer: the op that begins it; None if it begins by itself.
            graph: of the iterator.
        """
        self.readings.setdefault(iterator, []).append(reading)
        if initializer is not None and initializer.graph is graph:
            self.initializers[initializer.name] = iterator, reading
        else:  # in a function or a branch
            self.untracked.add(iterator)

    def plan_of_run(self, graph: Graph, elements: Sequence[Value]) -> IteratorPlan:
        """Return what a run does with iterators, found once for each set of fetches."""
        key = tuple(element.name for element in elements)
        if key not in self._plans:
            ops = tf_graph.ops_with_ancestors(getattr(element, "op", element) for element in elements)
            reading = [op.inputs[0].op for op in ops if op.type.startswith("IteratorGetNext")]
            self._plans[key] = IteratorPlan(
                tuple(op.name for op in reading if not op.type.startswith(_FROM_HANDLE)),
                tuple(op.inputs[0] for op in reading if op.type.startswith(_FROM_HANDLE)),
                tuple((op.inputs[0].op.name, op.outputs[0]) for op in ops if _has_constant_handle(op)),
                tuple(op for op in ops if op.type == _INITIALIZER),
                bool(updating.update_numbers_of_run(graph, elements)),
            )
        return self._plans[key]

    def readings_of(self, iterators: Iterable[str], session: Session) -> list[Reading]:
        """Return what iterators of a session read: the dataset that began last, or all if that is not known."""
        current = self._current.get(session, {})
        readings: list[Reading] = []
        for name in iterators:
            known = current.get(name) if name not in self.untracked else None
            readings += known or self.readings.get(name, [])
        return readings

    def iterators_of_handles(self, plan: IteratorPlan, feeds: Sequence[tuple[Tensor, object]]) -> list[str] | None:
        """Return the iterators whose handles a run is fed or computes; None if one is not known."""
        values = {tensor.name: value for tensor, value in feeds}
        names: list[str | None] = []
        for handle in plan.fed:
            if handle.name in values:
                names.append(self.handles.get(_handle_as_bytes(values[handle.name])))
            else:
                names.append(handle.op.inputs[0].op.name if handle.op.type == _TO_HANDLE else None)
        known = [name for name in names if name is not None]
        return known if len(known) == len(names) else None

    def begin(self, plan: IteratorPlan, session: Session, succeeded: bool) -> None:
        """Note what a run has begun.

        Args:
            plan: of the run.
            session: that ran it.
            succeeded: False if it ended with an error, after which any of its iterators may have begun.
        """
        current = self._current.setdefault(session, {})
        begun: _Readings = {}
        for op in plan.initialized:
            if op.name in self.initializers:
                iterator, reading = self.initializers[op.name]
                before = (
                    current.get(iterator, self.readings[iterator]) if tf_graph.contexts_around(op) != [None] else []
                )
                begun.setdefault(iterator, []).extend([reading, *before])
            else:
                self.untracked.add(op.inputs[1].op.name)
        for iterator, readings in begun.items():
            current[iterator] = readings if succeeded else self.readings[iterator]

    def note_handle(self, iterator: str, value: object) -> None:
        """Note the value of the handle of an iterator."""
        self.handles[_handle_as_bytes(value)] = iterator

    def forget(self) -> None:
        """Count everything that an iterator may read, from now on: something runs that is not seen."""
        self.untracked |= self.readings.keys()


def _has_constant_handle(op: Operation) -> bool:
    """Return True if an op computes the handle of an iterator, and a run of it alone does nothing else."""
    return op.type == _TO_HANDLE and not op.control_inputs and tf_graph.contexts_around(op) == [None]


def _handle_as_bytes(value: Value) -> object:
    return tf.compat.as_bytes(getattr(value, "item", lambda: value)())
