"""The history of a run: its steps with loss, loss scale, gradient norms and ops with Inf or NaN, and its problems."""

from __future__ import annotations

import math
import statistics
import threading
from typing import Iterator, NamedTuple, Sequence

SKIPPED_AT_END = 5  # skipped steps in a row at the end of a run, after which its loss scale counts as lost
EXPLODES = 100.0  # times the median of the steps before
_MEDIAN_OF = 20  # steps
_FEWEST = 5  # steps before a norm is compared
_MOST_STEPS = 4000  # that are kept; above, every second one is dropped
_MOST_OPS = 20  # of a step


class BadOp(NamedTuple):
    """An op whose output has Inf or NaN.

    Attributes:
        name: of the op; empty in eager mode.
        op_type: its type.
        lines: of the script, that make the op, the innermost first.
        outputs: what is in its outputs: the number of Inf and NaN, and the range of the finite elements.
        inputs: the same of its inputs.
        order: the place among all ops that were made.
        has_bad_input: True if an input has Inf or NaN already.
    """

    name: str
    op_type: str
    lines: tuple[str, ...]
    outputs: tuple[str, ...]
    inputs: tuple[str, ...]
    order: int
    has_bad_input: bool

    def __str__(self) -> str:
        where = f" ({self.lines[0]})" if self.lines else ""
        name = f" {self.name!r}" if self.name else ""
        given = f"; inputs: {', '.join(self.inputs)}" if self.inputs else ""
        return f"{self.op_type}{name}{where}: {', '.join(self.outputs)}{given}"

    @property
    def identity(self) -> tuple[str, str, tuple[str, ...]]:
        """The op, whatever its values are."""
        return self.name, self.op_type, self.lines


class Update(NamedTuple):
    """An update of an optimizer: values as in Step, and the place of their reading among all ops that were made.

    Ops that were made later belong to the update before.
    """

    optimizer: int
    loss: float | None
    scale: float | None
    skipped: bool
    norms: dict[str, float]
    place: int


class Step(NamedTuple):
    """A training step.

    Attributes:
        step: its number, from 1.
        optimizer: the number of the optimizer, from 0.
        loss: the value that is differentiated; None if it is not known.
        scale: the loss scale with which the gradients were computed; None without one.
        skipped: True if the update is skipped after an overflow.
        norms: the norm of each gradient by the name of its variable, Inf or NaN included.
        ops: ops with Inf or NaN in the order in which they were made.
    """

    step: int
    optimizer: int
    loss: float | None
    scale: float | None
    skipped: bool
    norms: dict[str, float]
    ops: tuple[BadOp, ...]

    @property
    def norm(self) -> float:
        """The norm of all gradients together."""
        return math.sqrt(sum(value * value for value in self.norms.values()))

    def tensorboard_scalars(self, with_norms: bool) -> dict[str, float]:
        """Return the scalars for TensorBoard by their tags; with the norm of each gradient and layer, if wanted."""
        values = {
            "gradient_norm": self.norm,
            "ops_with_inf_or_nan": float(len(self.ops)),
            "skipped": float(self.skipped),
        }
        values.update({"loss": self.loss} if self.loss is not None else {})
        values.update({"loss_scale": self.scale} if self.scale is not None else {})
        if with_norms:
            values.update({f"gradient_norm/{name}": norm for name, norm in self.norms.items()})
            values.update({f"layer_norm/{name}": norm for name, norm in layer_norms(self.norms).items()})
        mark = f"_of_optimizer_{self.optimizer + 1}" if self.optimizer else ""
        return {f"numerics{mark}/{name}": value for name, value in values.items()}

    @property
    def is_bad(self) -> bool:
        """True if the loss or a gradient has Inf or NaN."""
        return not all(map(math.isfinite, [*self.norms.values(), self.loss or 0.0]))


class History:
    """Collects the steps of a run. All methods may be called by several threads."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.first: tuple[int, BadOp] | None = None  # the first op with Inf or NaN of the first bad step, and that step
        self.harmless: dict[tuple[object, ...], BadOp] = {}  # ops of steps whose loss and gradients were finite
        self.skipped = 0
        self.count = 0  # steps, those that are no longer kept included
        self.bad = 0  # steps whose loss or gradients have Inf or NaN
        self._skipped_in_a_row = 0
        self._largest_jump: tuple[float, Step] | None = None
        self._recent: dict[int, list[float]] = {}
        self._counts: dict[int, int] = {}
        self._pending: dict[tuple[object, ...], BadOp] = {}
        self._every = 1
        self._lock = threading.Lock()

    def note_bad_op(self, op: BadOp) -> None:
        """Note an op with Inf or NaN in the step that runs."""
        with self._lock:
            if len(self._pending) < 50 * _MOST_OPS:
                self._pending.setdefault(op.identity, op)

    def note_update(self, update: Update) -> Step:
        """Note an update of an optimizer. The ops that were noted since the update before belong to it."""
        with self._lock:
            number = self._counts[update.optimizer] = self._counts.get(update.optimizer, 0) + 1
            ops = self._likely_causes_first(self._take_pending_ops(), update.place)
            step = Step(number, *update[:-1], tuple(ops[:_MOST_OPS]))
            self.count += 1
            self.skipped += step.skipped
            self._skipped_in_a_row = self._skipped_in_a_row + 1 if step.skipped else 0
            self.bad += step.is_bad
            if step.is_bad and self.first is None:
                self.first = (number, ops[0]) if ops else None
            if not step.is_bad:
                self.harmless.update((op.identity, op) for op in ops)
                self._note_largest_jump(step)
            if step.is_bad or number <= 10 or number % self._every == 0:
                self.steps.append(step)
            if len(self.steps) > _MOST_STEPS:
                self._every *= 2
                self.steps = [kept for kept in self.steps if kept.step <= 10 or kept.step % self._every == 0]
            return step

    def finish(self) -> None:
        """End the history: ops that were noted after the last update count as those of the next step."""
        with self._lock:
            ops = self._take_pending_ops()
            if not ops:
                return
            if self.count:
                self.harmless.update((op.identity, op) for op in ops)
            elif self.first is None:
                self.first = (1, ops[0])

    def problem_sentences(self) -> Iterator[str]:
        """Yield a sentence for each problem."""
        if self.bad and not self.only_scaled_overflows:
            yield f"{self.bad} of {self.count} steps have Inf or NaN in the loss or the gradients."
        if self.first is not None and not (self.bad and self.only_scaled_overflows):
            yield f"The first op with Inf or NaN, in step {self.first[0]}: {self.first[1]}." + (
                " Its input has them already: look at what is fed, and at the update of the step before."
                if self.first[1].has_bad_input
                else ""
            )
        if self._skipped_in_a_row >= SKIPPED_AT_END:
            last = self.steps[-1].scale
            yield (
                f"The loss scale does not recover: the last {self._skipped_in_a_row} steps were skipped, and the scale "
                f"is {last:g}. The values overflow at any scale, so look at the first op above."
            )
        if self._largest_jump is not None:
            times, step = self._largest_jump
            name = max(step.norms, key=lambda variable: step.norms[variable])
            ratio = f"{times:.0f}" if times < 1e6 else f"{times:.1e}"
            yield (
                f"The gradients explode: in step {step.step} their norm is {step.norm:.3g}, {ratio} times the "
                f"median of the steps before. The largest is that of {name!r}, {step.norms[name]:.3g}."
            )

    @property
    def skipped_at_end(self) -> int:
        """The number of skipped steps in a row at the end so far."""
        return self._skipped_in_a_row

    @property
    def only_scaled_overflows(self) -> bool:
        """True if each step with Inf or NaN was skipped, as an adapting loss scale needs it, and a good one follows."""
        return self.bad == self.skipped and self._skipped_in_a_row < SKIPPED_AT_END

    def _likely_causes_first(self, ops: list[BadOp], place: int) -> list[BadOp]:
        """Return the ops with harmless ones last, and those of an update that made variables bad first."""
        ordered = sorted(ops, key=lambda op: op.identity in self.harmless)
        updates = [op for op in ops if op.order > place] if ordered and ordered[0].has_bad_input else []
        return updates + [op for op in ordered if op not in updates]

    def _take_pending_ops(self) -> list[BadOp]:
        ops = sorted(self._pending.values(), key=lambda op: op.order)
        self._pending.clear()
        return ops

    def _note_largest_jump(self, step: Step) -> None:
        recent = self._recent.setdefault(step.optimizer, [])
        if len(recent) >= _FEWEST:
            median = statistics.median(recent)
            times = step.norm / median if median else 0.0
            if times > EXPLODES and (self._largest_jump is None or times > self._largest_jump[0]):
                self._largest_jump = (times, step)
        recent.append(step.norm)
        del recent[:-_MEDIAN_OF]


def layer_norms(norms: dict[str, float]) -> dict[str, float]:
    """Return the norm of the gradients of each layer: of the variables with the same name before the last slash."""
    squares: dict[str, float] = {}
    for name, norm in norms.items():
        layer = name.rpartition("/")[0] or name
        squares[layer] = squares.get(layer, 0.0) + norm * norm
    return {layer: math.sqrt(square) for layer, square in squares.items()}


def finite_values(values: Sequence[float | None]) -> list[float]:
    """Return the finite numbers of some values."""
    return [value for value in values if value is not None and math.isfinite(value)]
