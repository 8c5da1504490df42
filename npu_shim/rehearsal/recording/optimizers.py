"""Record each update of an optimizer: inputs, loss, gradients, learning rate, and the variables after it.

The values are inputs of one op that runs after the update, so that they are those of the update wherever it runs: in a
session, in Keras' own training function, in a tf.function, or in a loop inside the graph.
"""

from __future__ import annotations

import itertools
import weakref
from typing import Callable, List, Tuple

import numpy as np
import tensorflow as tf

from npu_shim._tensorflow import tf_op_creation, tf_recording
from npu_shim._tensorflow.types import Function, Gradient, Graph, Optimizer, Result, Tensor, Value, Variable
from npu_shim.rehearsal.recording import methods, updating
from npu_shim.rehearsal.recording.graph_inputs import learning_rates_of, named_inputs_and_draws
from npu_shim.rehearsal.recording.kinds import GRADIENT, LOSS, RATE, VARIABLE
from npu_shim.rehearsal.recording.names import OF_OPTIMIZER, plain_name
from npu_shim.rehearsal.recording.recorder import Recorder
from npu_shim.rehearsal.recording.saved_graphs import add_note
from npu_shim.rehearsal.recording.update_hooks import Apply, Pairs, UpdateHooks, optimizer_classes

Named = List[Tuple[str, str, Tensor]]  # kind, name, tensor


class UpdateWatch(UpdateHooks):
    """The functions around the methods of optimizers. Subclasses say what is done with an update."""

    def __init__(self) -> None:
        # graph -> its losses and the names of the variables of their gradients
        self._losses: weakref.WeakKeyDictionary[Graph, list[tuple[weakref.ref[Tensor], set[str]]]] = (
            weakref.WeakKeyDictionary()
        )
        self._numbers: weakref.WeakKeyDictionary[Optimizer, int] = weakref.WeakKeyDictionary()
        self._optimizers = itertools.count()
        self._updates: weakref.WeakKeyDictionary[Optimizer, itertools.count[int]] = weakref.WeakKeyDictionary()
        self._watched = 0  # updates, to see if a nested call has watched one

    def install(self) -> None:
        """Put the functions around the methods of all optimizers of this process."""
        super().install()
        for owner in optimizer_classes():
            methods.wrap_methods(owner, ("compute_gradients", "get_gradients"), self.remember_loss)

    def remember_loss(
        self, original: Function, optimizer: Optimizer, loss: Tensor, *args: Value, **kwargs: Value
    ) -> Result:
        """Remember the loss of which gradients are computed in a graph, and their variables."""
        in_function = getattr(getattr(loss, "graph", None), "building_function", False)
        has_tape = in_function and not isinstance(optimizer, tf.compat.v1.train.Optimizer)  # it records the loss
        variables: set[str] = set()
        if isinstance(loss, tf.Tensor) and not tf.executing_eagerly() and not has_tape:
            self._losses.setdefault(loss.graph, []).append((weakref.ref(loss), variables))
        result = original(optimizer, loss, *args, **kwargs)
        if isinstance(result, (list, tuple)):
            are_pairs = all(isinstance(part, (list, tuple)) for part in result)  # get_gradients() has no variables
            pairs = result if are_pairs else zip(result, kwargs["params"] if "params" in kwargs else args[0])
            variables.update(plain_name(variable) for gradient, variable in pairs if gradient is not None)
        return result

    def _apply_and_watch(self, optimizer: Optimizer, pairs: Pairs, apply: Apply, is_reduced: bool = False) -> Result:
        before = self._watched
        graph = None if tf.executing_eagerly() else tf.compat.v1.get_default_graph()
        start = len(graph.get_operations()) if graph is not None else 0
        with tf.control_dependencies(_gradients_to_wait_for(graph, pairs)):
            result = apply(pairs)
        if self._watched != before:
            return result
        self._watched += 1
        if graph is not None:
            updating.remember_update(graph, result)
        applied = [(gradient, variable) for gradient, variable in pairs if gradient is not None]
        applied = applied if is_reduced else _sum_over_replicas(applied)
        number = self.number_of_optimizer(optimizer, graph)
        if graph is None:
            self.on_eager_update(optimizer, number, applied)
            return result
        return self.on_graph_update(graph, start, optimizer, number, applied, result)

    def number_of_optimizer(self, optimizer: Optimizer, graph: Graph | None) -> int:
        """Return the number of an optimizer; in a graph of TensorFlow 1 that of the update.

        Scripts do not keep the optimizers of such a graph, and may use one for two losses.
        """
        with tf.init_scope():
            is_eager = tf.executing_eagerly()
        if graph is None or is_eager:
            if optimizer not in self._numbers:
                self._numbers[optimizer] = next(self._optimizers)
            return self._numbers[optimizer]
        while hasattr(graph, "outer_graph"):  # of a branch or a loop
            graph = graph.outer_graph
        return next(self._updates.setdefault(graph, itertools.count()))

    def on_eager_update(self, optimizer: Optimizer, number: int, pairs: Pairs) -> None:
        """Watch an update in eager code.

        Args:
            optimizer: which has applied the gradients.
            number: its number, from 0; in a graph of TensorFlow 1 that of the update.
            pairs: the gradients that are not None, and their variables.
        """
        raise NotImplementedError

    def on_graph_update(
        self, graph: Graph, start: int, optimizer: Optimizer, number: int, pairs: Pairs, result: Result
    ) -> Result:
        """Watch an update that was added to a graph.

        Args:
            graph: in which it is.
            start: number of ops of the graph before it.
            optimizer, number, pairs: as for on_eager_update().
            result: what the method of the optimizer returns.
        Returns:
            The same, or a replacement.
        """
        raise NotImplementedError

    def losses_of(self, graph: Graph, pairs: Pairs) -> list[Tensor]:
        """Return the last loss whose gradients are those of an update, in a list; an empty list if there is none."""
        names = {plain_name(variable) for _, variable in pairs}
        known = [(loss(), variables) for loss, variables in self._losses.get(graph, ())]
        alive = [(a, b) for a, b in known if a is not None and tf_recording.is_reachable(a.op, graph)]
        # The optimizer may hold copies of the variables that were differentiated.
        return [loss for loss, _ in [entry for entry in alive if entry[1] & names] or alive][-1:]

    def place_of_loss(self, loss: Tensor) -> int:
        """Return the place of a loss among those of its graph."""
        return [known() is loss for known, _ in self._losses[loss.graph]].index(True)


class UpdateRecording(UpdateWatch):
    """Record each update.

    Args:
        recorder: receives the values.
        after_eager: called after each update in eager code.
    """

    def __init__(self, recorder: Recorder, after_eager: Callable[[], None]) -> None:
        super().__init__()
        self._recorder = recorder
        self._after_eager = after_eager
        self._rate: Value = None

    def _apply_and_watch(self, optimizer: Optimizer, pairs: Pairs, apply: Apply, is_reduced: bool = False) -> Result:
        # With Keras 2.11 and later a property, which computes the rate of a schedule from the number of updates.
        is_computed = isinstance(getattr(type(optimizer), "learning_rate", None), property)
        with tf_op_creation.suspend_hooks():
            self._rate = getattr(optimizer, "learning_rate", None) if is_computed else None
        return super()._apply_and_watch(optimizer, pairs, apply, is_reduced)

    @tf_op_creation.suspend_hooks()
    def on_eager_update(self, optimizer: Optimizer, number: int, pairs: Pairs) -> None:
        """Record the update."""
        rows = (
            _gradient_rows(number, pairs)
            + _with_optimizer_number(number, learning_rate_rows(optimizer, self._rate))
            + _variable_rows(pairs)
        )
        self._recorder.note_trained(variable for _, variable in pairs)
        self._recorder.record_update(number, [(kind, name, np.asarray(value)) for kind, name, value in rows])
        self._after_eager()

    @tf_op_creation.suspend_hooks()
    def on_graph_update(
        self, graph: Graph, start: int, optimizer: Optimizer, number: int, pairs: Pairs, result: Result
    ) -> Result:
        """Add an op that records the update wherever it runs."""
        self._recorder.note_trained(variable for _, variable in pairs)
        half = _half_type_in(graph)
        if half:
            self._recorder.writer.write_event("note", half=half)
        rows = _gradient_rows(number, pairs)
        sources = [value for _, _, value in rows]
        losses = self.losses_of(graph, pairs)
        is_of_tape = graph in self._recorder.graphs_of_tapes  # then it records inputs and draws
        ahead = [] if is_of_tape else named_inputs_and_draws(sources, graph, self._recorder)
        rates = learning_rates_of(graph.get_operations()[start:], graph)
        trained = {plain_name(variable) for _, variable in pairs}
        ahead += [
            (LOSS, self._recorder.losses.name_of_loss(self.place_of_loss(loss), trained), loss) for loss in losses
        ]
        ahead += rows + _with_optimizer_number(
            number, [(RATE, name, value) for name, value in rates] or learning_rate_rows(optimizer, self._rate)
        )
        for kind, name, value in ahead:
            self._recorder.record_line(kind, name, tf_recording.creation_line_of_op(value.op))
        updates = tf_recording.ops_of_update(result)
        with tf.control_dependencies(updates):
            values = ahead + _variable_rows(pairs)
            names = [(kind, name) for kind, name, _ in values]

            def record(*arrays: np.ndarray) -> np.ndarray:
                self._recorder.record_update(number, [name + (array,) for name, array in zip(names, arrays)])
                return np.zeros((), np.int64)

            recorded = add_note(record, [value for _, _, value in values], tf.int64)
        in_function = getattr(graph, "building_function", False)
        if not updates or isinstance(result, (list, tuple)) or (in_function and not _is_graph_optimizer(optimizer)):
            return result  # the function runs the op because it is stateful
        with tf.control_dependencies([recorded]):
            return tf.identity(result) if isinstance(result, tf.Tensor) else tf.group(*updates)


def _half_type_in(graph: Graph) -> str | None:
    """Return the name of the type of 16 bits in which a graph computes, None for none."""
    names = {output.dtype.base_dtype.name for op in graph.get_operations() for output in op.outputs}
    return next((name for name in ("bfloat16", "float16") if name in names), None)


def _gradients_to_wait_for(graph: Graph | None, pairs: Pairs) -> list[Tensor]:
    """Return the gradients that an update must wait for.

    It writes into variables in place, unless they are resources. With tf.gradients() no op keeps it from doing so while
    other gradients are still computed from them, and no run is like another.
    """
    if graph is None or not any(_is_written_in_place(variable) for _, variable in pairs):
        return []
    return [gradient for gradient, _ in pairs if isinstance(gradient, (tf.Tensor, tf.IndexedSlices))]


def _is_written_in_place(variable: Variable) -> bool:
    return getattr(getattr(variable, "op", None), "type", "") in ("VariableV2", "Variable")


def _is_graph_optimizer(optimizer: Optimizer) -> bool:
    """Return True for an optimizer of TensorFlow 1. A branch of its graph runs only what its result needs."""
    return isinstance(optimizer, tf.compat.v1.train.Optimizer)


@tf_op_creation.suspend_hooks()
def _sum_over_replicas(pairs: Pairs) -> Pairs:
    """Return the gradients that are applied: with a strategy, optimizers apply the sum of those of all replicas."""
    context = tf.distribute.get_replica_context() if tf.distribute.has_strategy() else None
    if not pairs or context is None or context.num_replicas_in_sync == 1:
        return pairs
    sums = context.all_reduce(tf.distribute.ReduceOp.SUM, [gradient for gradient, _ in pairs])
    return [(gradient, variable) for gradient, (_, variable) in zip(sums, pairs)]


def _gradient_rows(number: int, pairs: Pairs) -> Named:
    """Return the gradients. Those of an embedding are dense, because ranks have its rows in another order."""
    rows = [(GRADIENT, plain_name(variable), dense_gradient(gradient, variable)) for gradient, variable in pairs]
    return _with_optimizer_number(number, rows)


def _with_optimizer_number(number: int, rows: Named) -> Named:
    """Return rows with the number of their optimizer in their names, if it is not the first one."""
    return [(kind, f"{name}{OF_OPTIMIZER}{number + 1}" if number else name, value) for kind, name, value in rows]


def dense_gradient(gradient: Gradient, variable: Variable) -> Tensor:
    """Return a gradient as one tensor of the shape of its variable."""
    if isinstance(gradient, tf.IndexedSlices):
        return tf.math.unsorted_segment_sum(gradient.values, gradient.indices, tf.shape(variable)[0])
    return tf.convert_to_tensor(gradient)


def learning_rate_rows(optimizer: Optimizer, given: Value = None) -> Named:
    """Return the learning rate of the last update of a Keras optimizer, or of any other with an attribute of this name.

    Args:
        optimizer: which has updated variables.
        given: the attribute before the update; None if it was not read then.
    """
    rate = getattr(optimizer, "learning_rate", None) if given is None else given
    if callable(rate) and not hasattr(rate, "dtype"):
        rate = rate(tf.maximum(optimizer.iterations - 1, 0))
    return [] if rate is None else [(RATE, "learning_rate", tf.convert_to_tensor(rate))]


def _variable_rows(pairs: Pairs) -> Named:
    return [(VARIABLE, plain_name(variable), _read_variable(variable)) for _, variable in pairs]


def _read_variable(variable: Variable) -> Tensor:
    read = getattr(variable, "read_value", None)
    return read() if read is not None else tf.convert_to_tensor(variable)
