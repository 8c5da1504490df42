"""Find the first op whose output departs, in two graphs, functions or models on the same input."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import Hashable, Mapping, NamedTuple

import numpy as np
import tensorflow as tf

from npu_shim._tensorflow.types import Function, Graph, Structure
from npu_shim.rehearsal.comparing import TOLERANCE
from npu_shim.rehearsal.comparing.tolerances import allowed_difference
from npu_shim.rehearsal.op_comparison import eager, graphs
from npu_shim.rehearsal.op_comparison.values import STAGES, Loss, OpValue


class OpRow(NamedTuple):
    """Two outputs that were compared.

    Attributes:
        stage: inference, loss, gradient or update.
        name, other_name: of the ops, or of the variables.
        op_type: type of the op; empty for a variable.
        difference: |x - y| / max(|x|, |y|) with Euclidean norms; infinite for other shapes, or Inf and NaN elsewhere.
        allowed: the difference that is allowed.
        worst: index of the element that differs most, and its two values; empty for other shapes.
    """

    stage: str
    name: str
    other_name: str
    op_type: str
    difference: float
    allowed: float
    worst: str

    @property
    def departs(self) -> bool:
        """True if the difference is larger than allowed."""
        return not self.difference <= self.allowed


@dataclass(frozen=True)
class OpComparison:
    """The result of compare().

    Attributes:
        rows: the outputs that were compared, in the order of the first function's ops.
        unmatched: stage and name of outputs that only one of the two has; the result of another formula.
    """

    rows: list[OpRow]
    unmatched: list[tuple[str, str]]

    @property
    def first(self) -> OpRow | None:
        """The first output that departs; None if all agree."""
        return next((row for row in self.rows if row.departs), None)

    def __str__(self) -> str:
        lines = []
        for stage in STAGES:
            rows = [row for row in self.rows if row.stage == stage]
            if rows:
                largest = max(row.difference for row in rows)
                departing = sum(row.departs for row in rows)
                lines.append(f"{stage}: {len(rows)} outputs, largest difference {largest:.1e}, {departing} depart")
        if self.unmatched:
            lines.append(f"only in one of the two: {len(self.unmatched)} outputs, the first is {self.unmatched[0][1]}")
        first = self.first
        if first is None:
            return "\n".join([*lines, "All outputs agree."])
        return "\n".join(
            [
                *lines,
                f"The first that departs, in {first.stage}: {first.op_type or 'result'} {first.name!r}, difference "
                f"{first.difference:.1e}, allowed {first.allowed:.1e}; {first.worst}.",
            ]
        )


def compare(
    f: Function | Graph,
    g: Function | Graph,
    inputs: Structure,
    loss: Loss | None = None,
    learning_rate: float = 0.01,
    tolerance: float = TOLERANCE,
) -> OpComparison:
    """Compare two graphs, functions or models op by op: inference, then loss, gradients, and one update.

    Outputs pair by the name of their op, and the rest by type and order. An op of one of the two only is listed, and
    the ops after it are compared. The update is ``variable - learning_rate * gradient``; no variable changes.

    Args:
        f, g: two functions, tf.functions or Keras models; or two tf.Graph. In eager code, both must hold the same
            values of variables. Functions that build graphs get the same ones: g's variables take f's initial values,
            by name or else by order.
        inputs: a tuple or list of arguments, or one argument; an argument is an array or a structure of arrays. For
            graphs, a dict of tensors, or their names, and values.
        loss: a function of the output that returns a scalar; without it only inference is compared. Not for graphs.
        learning_rate: of the update.
        tolerance: the relative difference that is allowed for float32 (docs/verify.md).
    Returns:
        The result; ``print`` it, or look at its ``first``.
    Raises:
        ValueError: for a graph and a function, a loss of graphs, or variables of different shapes.

    Example::

        found = npu_shim.rehearsal.compare(original_gelu, npu_unary_ops.gelu, np.linspace(-3, 3, 100, dtype="f4"))
        assert found.first is None, found
    """
    ours, theirs = _values_of_both(f, g, inputs, loss, learning_rate)
    rows, unmatched = [], []
    for stage in STAGES:
        one = [output for output in ours if output.stage == stage]
        other = [output for output in theirs if output.stage == stage]
        pairs, alone = _pair_outputs_and_list_unpaired(one, other)
        rows += [_compare_outputs(a, b, tolerance) for a, b in pairs]
        unmatched += [(stage, output.name) for output in alone]
    return OpComparison(rows, unmatched)


def _values_of_both(
    f: Function | Graph, g: Function | Graph, inputs: Structure, loss: Loss | None, rate: float
) -> tuple[list[OpValue], list[OpValue]]:
    are_graphs = [isinstance(program, tf.Graph) for program in (f, g)]
    variables: graphs.Variables = {}
    if any(are_graphs):
        if not all(are_graphs) or loss is not None or not isinstance(inputs, Mapping):
            raise ValueError(
                "a tf.Graph compares with a tf.Graph, without loss, and with a dict of tensors and values. To compare "
                "losses and gradients, give functions that build the graphs."
            )
        return graphs.dependent_values(f, inputs, variables), graphs.dependent_values(g, inputs, variables)
    arguments = list(inputs) if isinstance(inputs, (tuple, list)) else [inputs]
    if tf.executing_eagerly():
        return eager.eager_values(f, arguments, loss, rate), eager.eager_values(g, arguments, loss, rate)
    ours = graphs.function_values(f, arguments, loss, rate, variables)
    return ours, graphs.function_values(g, arguments, loss, rate, variables)


def _pair_outputs_and_list_unpaired(
    ours: list[OpValue], theirs: list[OpValue]
) -> tuple[list[tuple[OpValue, OpValue]], list[OpValue]]:
    """Pair outputs by name and type, and the rest by an alignment of their types and shapes."""
    by_key = {(output.name, output.op_type, output.value.shape): output for output in theirs}
    partner: dict[int, OpValue] = {}
    for place, output in enumerate(ours):
        same = by_key.pop((output.name, output.op_type, output.value.shape), None)
        if same is not None:
            partner[place] = same
    left = [place for place in range(len(ours)) if place not in partner]
    other = list(by_key.values())
    matcher = difflib.SequenceMatcher(
        None, [_type_and_shape(ours[place]) for place in left], list(map(_type_and_shape, other)), False
    )
    used = set()
    for start, other_start, size in matcher.get_matching_blocks():
        for offset in range(size):
            partner[left[start + offset]] = other[other_start + offset]
            used.add(other_start + offset)
    alone = [ours[place] for place in left if place not in partner]
    alone += [output for place, output in enumerate(other) if place not in used]
    return [(ours[place], partner[place]) for place in sorted(partner)], alone


def _type_and_shape(value: OpValue) -> tuple[Hashable, ...]:
    return value.op_type, value.value.shape


def _compare_outputs(a: OpValue, b: OpValue, tolerance: float) -> OpRow:
    dtype = "float32" if a.value.dtype != b.value.dtype else a.value.dtype.name
    limit = allowed_difference(dtype, "", 0, tolerance)
    difference, worst = _difference_and_place(a.value, b.value)
    return OpRow(a.stage, a.name, b.name, a.op_type, difference, limit, worst)


def _difference_and_place(one: np.ndarray, other: np.ndarray) -> tuple[float, str]:
    if one.shape != other.shape:
        return float("inf"), f"shapes {one.shape} and {other.shape}"
    x, y = one.astype(np.float64).reshape(-1), other.astype(np.float64).reshape(-1)
    finite = np.isfinite(x)
    if (finite != np.isfinite(y)).any():
        return float("inf"), f"{(~finite).sum()} and {(~np.isfinite(y)).sum()} elements are Inf or NaN"
    apart = np.abs(np.where(finite, x, 0) - np.where(finite, y, 0))
    if not apart.any():
        return 0.0, ""
    place = int(apart.argmax())
    index = list(map(int, np.unravel_index(place, one.shape)))
    scale = max(np.linalg.norm(x[finite]), np.linalg.norm(y[finite]))
    return float(np.linalg.norm(apart) / scale), f"element {index} is {x[place]:.8g} and {y[place]:.8g}"
