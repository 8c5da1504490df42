"""The recorder of a process: it counts training steps, and hands values to the writer."""

from __future__ import annotations

import threading
import weakref
import zlib
from typing import AbstractSet, Callable, Iterable, Iterator

import numpy as np

from npu_shim._tensorflow.types import Graph, KerasModel, Value, Variable
from npu_shim.rehearsal.recording.calls import Calls
from npu_shim.rehearsal.recording.kinds import (
    DRAW,
    FINAL,
    GRADIENT,
    INPUT,
    LOSS,
    RATE,
    REDUCED,
    ROWS,
    TAPE,
    TAPES,
    VARIABLE,
)
from npu_shim.rehearsal.recording.losses import Losses
from npu_shim.rehearsal.recording.row_sums import sum_of_rows
from npu_shim.rehearsal.recording.writer import Row, Writer

_MOST_SEEDS = 1000
_NUMBERED = (TAPE, GRADIENT, VARIABLE, FINAL)
_EACH_STEP = (INPUT, LOSS, RATE, DRAW, REDUCED)  # also if tensors are recorded at every n-th step only


class Watcher(Calls):
    """The interface of the hooks to a recorder, without the values of ops that they add to a graph.

    Attributes:
        records_tensors: False if only scalars are wanted; then nothing is changed that computes them.
        steps: number of training steps so far.
        final_step: the step of the last final variables.
        has_cut_training: True if training that would go on was asked to end after the last step that is wanted.
    """

    records_tensors = True
    has_cut_training = False

    def __init__(self) -> None:
        super().__init__()
        self.at_fit: list[Callable[[KerasModel], None]] = []  # functions to call with a model when Keras' fit begins
        self.steps = self.final_step = 0

    def record_values(self, kind: str, values: Iterable[tuple[str, Value]], step: int | None = None) -> None:
        """Take named values of one kind, of the current step if it is None."""
        raise NotImplementedError

    @property
    def adds_summary_ops(self) -> bool:
        """True if a summary in a tf.function gets an op that records it."""
        return self.records_tensors

    def is_done(self) -> bool:
        """Return True if the script has made all steps that are wanted."""
        return False

    def record_final_variables(self, values: Iterable[tuple[str, Value]]) -> None:
        """Take the variables of a model or a session that has been trained."""
        self.final_step = self.steps
        self.record_values(FINAL, values)

    def claim_step_for_sampling(self) -> bool:
        """Return True once for each step at which variables without an optimizer are wanted."""
        return False

    def count_batch_and_want_logs(self, batch: int) -> bool:
        """Return True if the logs of this batch of Keras' fit are wanted."""
        return True


class Recorder(Watcher):
    """Record what flows in this process.

    Args:
        writer: writes the values.
        every: record gradients and variables at each step that this number divides, and at the first ten.
        limit: the number of steps after which the script ends; 0 to record nothing of training; None for no limit.
    """

    def __init__(self, writer: Writer, every: int = 1, limit: int | None = None) -> None:
        super().__init__()
        self.limit = limit
        self.ends_after_training = False  # True to end the script after the call of fit or train with the last step
        self.writer = writer
        self.every = every
        self.is_rank = False  # True in a process of a job
        self.of_ranks = False  # True to record how ranks work together; for the run that they are compared with, too
        self.has_broadcast = False
        self.reduced = 0  # elements of floats that collectives have reduced or gathered since the last update
        self.script_line: Callable[[], str] = str  # of the script that is running; set when TensorFlow is imported
        self.at_end: list[Callable[[], None]] = []  # functions to call when the script has returned
        self.tapes = 0  # the number of values that tapes have recorded, to see if a call differentiates
        self.graphs_of_tapes: weakref.WeakSet[Graph] = weakref.WeakSet()  # whose inputs a tape records
        self.batches: weakref.WeakKeyDictionary[Graph, list[str]] = weakref.WeakKeyDictionary()  # graph -> known inputs
        self.losses = Losses()
        self._counts: dict[int, int] = {}  # optimizer -> its updates
        self._updated: dict[int, set[str]] = {}  # optimizer -> its variables, if it has updated them in this step
        self._trained: dict[int, weakref.ref[Variable]] = {}  # weak references to the variables of optimizers, by id
        self._sampled = 0  # the step of the last variables without an optimizer
        self.ended_within_step = False  # eager code had begun a step that is not wanted
        self._own: dict[AbstractSet[str], tuple[int, int]] = {}  # variables -> their number, and a checksum
        self.lock = threading.Lock()
        self._seeds = 0
        self._lines: set[tuple[str, str]] = set()

    def record_seed(self, call: str, value: Value, line: str) -> None:
        """Record a seed that the script sets. A difference of two runs may come from it."""
        self._seeds += 1
        if self._seeds <= _MOST_SEEDS:
            self.writer.write_event("seed", call=call, value=str(value), line=line)

    def record_line(self, kind: str, name: str, line: str | None = None) -> None:
        """Record the line of the script that makes the values of a name, once; by default the one that is running."""
        if (kind, name) not in self._lines:
            self._lines.add((kind, name))
            self.writer.write_event("line", kind=kind, name=name, line=line or self.script_line())

    def record_values(self, kind: str, values: Iterable[tuple[str, Value]], step: int | None = None) -> None:
        """Record named values of one kind; values that are no arrays of numbers are left out."""
        rows = [(kind, name, np.asarray(value)) for name, value in values]
        last = self.steps if self.limit is None else min(self.steps, self.limit)
        self._write_rows(last if step is None else step, rows)

    def is_done(self) -> bool:
        """Return True if the script has made all steps that are wanted."""
        return self.limit is not None and self.steps >= self.limit

    def count_batch_and_want_logs(self, batch: int) -> bool:
        """Count a batch of Keras, if no op in its graph does. The logs of each are wanted."""
        if not self.records_tensors:
            self.record_update(0, [])
        return True

    @property
    def updates(self) -> int:
        """The number of updates of all optimizers."""
        return sum(self._counts.values())

    def updates_in_tape(self) -> int | None:
        """Return the number of updates of all optimizers while a tape records; None while none does."""
        return self.updates if self.is_inside(TAPES) else None

    def begins_step(self, optimizer: int) -> bool:
        """Return True if the next update of an optimizer begins a step."""
        return optimizer in self._updated

    def record_update(self, optimizer: int, rows: list[Row]) -> None:
        """Record one update of an optimizer. A step begins with the second update of any optimizer in the step before.

        So one step has the updates of a discriminator and of a generator; if the generator is updated less often, its
        updates are in the steps in which they run.

        Args:
            optimizer: its number, from 0; a negative one for the script itself.
            rows: kind, name and value of its loss, gradients, rates and variables.
        """
        with self.lock:
            count = self._counts[optimizer] = self._counts.get(optimizer, 0) + 1
            if optimizer in self._updated or not self.steps:
                self.steps += 1
                self._updated.clear()
            self._updated[optimizer] = {name for kind, name, _ in rows if kind == VARIABLE}
            step, reduced, self.reduced = self.steps, self.reduced, 0
        if self.of_ranks:
            rows = [*rows, (REDUCED, "elements", np.asarray(reduced))]
        if count > 10 and count % self.every:
            rows = [row for row in rows if row[0] in _EACH_STEP]
        self._write_within_limit(step, rows)

    def note_trained(self, variables: Iterable[Variable]) -> None:
        """Take note of variables that an optimizer updates."""
        self._trained.update((id(variable), weakref.ref(variable)) for variable in variables)

    def is_trained(self, variable: Variable) -> bool:
        """Return True for a variable that an optimizer updates."""
        known = self._trained.get(id(variable))
        return known is not None and known() is variable

    def claim_step_for_sampling(self) -> bool:
        """Return True once for each step at which variables without an optimizer are wanted."""
        step, last = self.steps, self._sampled
        self._sampled = step
        return self.records_tensors and step > last and self.wants_untrained(step)

    def wants_untrained(self, step: int) -> bool:
        """Return True if variables without an optimizer are wanted after a step."""
        return not (step > 10 and step % self.every) and (self.limit is None or step <= self.limit)

    def has_updated_variables(self) -> bool:
        """Return True if an optimizer of TensorFlow or Keras has updated variables."""
        return any(number >= 0 for number in self._counts)

    def record_update_by_script(self, read: Callable[[], list[Row]]) -> None:
        """Record an update if the script itself has changed the variables of a gradient since it computed the last one.

        So the steps of loops without an optimizer count: with `assign_sub`, SciPy's optimizers, or those of a library.

        Args:
            read: returns kind, name and value of the variables.
        """
        if self.has_updated_variables():
            return
        rows = read()
        names = frozenset(name for _, name, _ in rows)
        checksum = 0
        for _, _, value in rows:
            checksum = zlib.crc32(np.ascontiguousarray(value).view(np.uint8).data, checksum)
        number, before = self._own.setdefault(names, (-1 - len(self._own), checksum))
        self._own[names] = number, checksum
        if checksum != before:
            self.record_update(number, rows)

    def record_tensors(self, rows: list[Row], variables: AbstractSet[str] = frozenset()) -> None:
        """Record values that belong to the next update of variables.

        Args:
            rows: kind, name and value of each.
            variables: their names. If one was updated in this step, or there are none, the update begins the next step.
        """
        self.tapes += 1
        with self.lock:
            is_next = not self.steps or not variables or any(variables & names for names in self._updated.values())
            step = self.steps + is_next
        self._write_within_limit(step, rows)

    def _write_within_limit(self, step: int, rows: list[Row]) -> None:
        if self.limit is None or step <= self.limit:  # a call may make more steps than are wanted
            self._write_rows(step, rows)

    def _write_rows(self, step: int, rows: list[Row]) -> None:
        if self.limit == 0 and self.steps:
            return  # a session has trained before it could be ended; what follows is no prediction from the checkpoint
        rows = list(_number_equal_names(rows))
        for kind, name, _ in rows:
            self.record_line(kind, name)
        self.writer.write_rows(step, rows + _checksums_of_inputs(rows) if self.of_ranks else rows)

    def records_inputs(self, graph: Graph) -> bool:
        """Return True if a tape in a tf.function records its inputs, so that its optimizer does not."""
        if getattr(graph, "building_function", False):
            self.graphs_of_tapes.add(graph)
        return graph in self.graphs_of_tapes


def _number_equal_names(rows: Iterable[Row]) -> Iterator[Row]:
    """Number what has one name in an update or a model, as variables of Keras 2 and eager ones have."""
    counts: dict[tuple[str, str], int] = {}
    for kind, name, value in rows:
        number = counts[kind, name] = counts.get((kind, name), 0) + 1
        yield kind, f"{name} ({number})" if number > 1 and kind in _NUMBERED else name, value


def _checksums_of_inputs(rows: list[Row]) -> list[Row]:
    """Return the checksums of the rows of inputs."""
    return [(ROWS, name, sum_of_rows(value)) for kind, name, value in rows if kind == INPUT and value.ndim]
