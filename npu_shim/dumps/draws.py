"""The random numbers of a recording for a run on a card, which draws others from the same seeds.

The graph of such a run gets them from the host: each random op becomes a placeholder, in a tf.function a variable.
Before each run TensorFlow draws on the CPU what the op would, with the seeds that the recording has, and feeds the run.
In a loop or a branch the op may run several times, or not at all: there the run gets the numbers of many, takes those
whose turn it is by a variable that counts, and the host goes on with the first that was not taken. Dropout of the
vendor becomes that of TensorFlow, which the recording has, too. So the run has another graph than the script; it says
so, and the folder of the dumps names the ops.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import json
import os
import sys
import weakref
from typing import Callable, Hashable, Iterable, Mapping, Sequence

import numpy as np
import tensorflow as tf

from npu_shim._host import host_device
from npu_shim._tensorflow import tf_api, tf_capture, tf_graph, tf_op_creation, tf_recording, tf_session
from npu_shim._tensorflow.types import (
    FeedDict,
    Fetches,
    Function,
    Graph,
    Message,
    Operation,
    Result,
    Session,
    Structure,
    Tensor,
    TracedFunction,
    Value,
    Variable,
)
from npu_shim.dumps.reference import DRAWS
from npu_shim.ops.dropout import dropout
from npu_shim.rehearsal.recording import methods, random_seeds
from npu_shim.rehearsal.recording.graph_inputs import FEW, is_random
from npu_shim.rehearsal.recording.kinds import DRAW
from npu_shim.rehearsal.recording.names import fetches_with_values
from npu_shim.rehearsal.recording.recorder import Recorder

v1 = tf_api.v1
_OF_VENDOR = (("estimator.npu_ops", "dropout"), ("estimator.npu_aicore_ops", "dropout_v3"))
_INITIAL = "Initializer"  # in names of ops that draw initial variables, which a recording has
_DATA = ("Iterator", "QueueDequeue", "RngRead")  # begin types of ops with data that are not fed
_VECTORIZED = "loop_body/"  # in names of ops of tf.vectorized_map, which makes one op of many runs
_MOST_BYTES, _MOST_RUNS, _FEW_RUNS = 1 << 27, 1024, 4  # of the numbers for an op in a loop


class _Draw:
    """A random op that runs on the host, and the tensor or variable of the script's graph that gets its numbers.

    Attributes:
        name: of the op.
        asked: the inputs of the op, like its shape, that follow from what a run is fed.
        known: their values by the shapes of what is fed; None for those that do not follow.
        target: the tensor or variable.
        counter: the variable that counts how often the op runs; None for one that runs once in each run.
        none: numbers for no run.
        is_lost: True after a run whose sizes did not follow.
    """

    def __init__(self, op: Operation, inputs: Sequence[np.ndarray | None], run: Function, in_loop: bool) -> None:
        with tf_op_creation.suspend_hooks(), tf.Graph().as_default():
            given = [
                v1.placeholder(of.dtype) if value is None else tf.constant(value)
                for value, of in zip(inputs, op.inputs)
            ]
            self._output = _output_of_copied_op(op, given)
        self.name = op.name
        self.asked = [tensor for value, tensor in zip(inputs, op.inputs) if value is None]
        self.known: dict[Hashable, Sequence[np.ndarray] | None] = {}
        self.target: Structure = None
        self.counter: Variable = None
        self._fed = [tensor for value, tensor in zip(inputs, given) if value is None]
        shape = [0, *(size or 0 for size in op.outputs[0].shape.as_list())]
        self.none, self.is_lost = np.zeros(shape, op.outputs[0].dtype.as_numpy_dtype), False
        self._run = run
        self._most = 0 if in_loop else 1  # times that a run can get numbers; 0 before the first
        self._past: list[tuple[Sequence[np.ndarray], int]] = []  # inputs, and how often the op ran with them
        self._open_session()

    def _open_session(self) -> None:
        self._session = v1.Session(graph=self._output.graph)
        self._numbers: list[np.ndarray] = []  # that are drawn, and not taken
        self._inputs: Sequence[np.ndarray] = ()

    def _draw_up_to(self, number: int) -> None:
        while len(self._numbers) < number:
            self._numbers.append(self._run(self._session, self._output, dict(zip(self._fed, self._inputs))))

    def next_numbers(self, inputs: Sequence[np.ndarray] = ()) -> np.ndarray:
        """Return the numbers for the next run, whose op has these inputs that follow from what the run is fed."""
        if self._numbers and [array.tolist() for array in inputs] != [array.tolist() for array in self._inputs]:
            self._open_session()  # those that are drawn have another size
            for before, number in self._past:
                self._inputs = before
                self._draw_up_to(number)
                self._numbers.clear()
        self._inputs = inputs
        self._draw_up_to(1)
        if self.counter is None:
            return self._numbers[0]
        if not self._most:
            self._most = min(max(_MOST_BYTES // max(self._numbers[0].nbytes, 1), _FEW_RUNS), _MOST_RUNS)
        self._draw_up_to(self._most)
        return np.stack(self._numbers[: self._most])

    def skip_draws(self, runs: int) -> bool:
        """Go on behind a run in which the op ran so often. Return False if the run had fewer numbers."""
        if self.is_lost:
            return True
        self._draw_up_to(runs)
        del self._numbers[:runs]
        self._past.append((self._inputs, runs))
        is_enough = self.counter is None or runs <= self._most
        if not is_enough and isinstance(self.target, tf.Tensor):  # a variable keeps its shape
            self._most = 2 * runs
        return is_enough


class SharedDraws(tf_op_creation.OpHook):
    """Give the random ops of graphs the numbers that a recording has.

    Args:
        recorder: receives the first numbers of each op, to compare them with those of the recording.
        folder: of the dumps, receives the names of the ops; None without one.
    """

    def __init__(self, recorder: Recorder, folder: str | None) -> None:
        self._recorder, self._folder = recorder, folder
        self._of_graph: weakref.WeakKeyDictionary[Graph, list[_Draw]] = weakref.WeakKeyDictionary()
        self._of_functions: list[_Draw] = []
        self._needed: weakref.WeakKeyDictionary[Graph, dict[Hashable, list[_Draw]]] = weakref.WeakKeyDictionary()
        self._shared: list[str] = []
        self._eager: set[str] = set()  # types of ops that eager code runs
        self._left: list[dict[str, str]] = []  # op, and why it draws its own
        self._plain_run = tf_recording.BaseSession.run

    def start(self, seed: int) -> None:
        """Begin with what is created from now on. Call it before the hooks of a recording are installed."""
        random_seeds.seed_ops_by_call_site(seed, self._recorder.record_seed, None, self._recorder.updates_in_tape)
        tf_op_creation.add_hook(self)
        tf_recording.serialize_loop_iterations()
        methods.wrap_methods(tf_recording.BaseSession, ("run",), self._run_session)
        methods.wrap_methods(tf_recording.BaseSession, ("make_callable",), self._make_run)
        methods.wrap_methods(tf_recording.BaseSession, (tf_capture.MAKE_CALLABLE,), self._make_callable)
        methods.wrap_methods(tf_recording.ConcreteFunction, (tf_recording.CALL_FLAT,), self._call_function)
        for module, name in _OF_VENDOR:
            vendor_module = host_device.find_vendor_module(f"{host_device.VENDOR_PACKAGE}.{module}")
            if vendor_module is not None:
                setattr(vendor_module, name, dropout)
        if host_device.has_npu_device():  # which makes tf.nn.dropout of a function the vendor's
            setattr(
                host_device.import_vendor_module("npu_device.train.convert_dropout"),
                "dropout_api_convert",
                lambda: None,
            )
        atexit.register(self.close)

    def close(self) -> None:
        """Report which ops got the numbers of the recording, and which did not."""
        atexit.unregister(self.close)
        graph = ""
        if self._of_graph or self._of_functions:
            graph = f"another graph for this run: {len(self._shared)} random ops get their numbers from the host"
        eager = f"the host draws for eager code: {', '.join(sorted(self._eager))}" if self._eager else ""
        own = "; ".join(f"{row['op']}, {row['why']}" for row in self._left)
        left = f"{len(self._left)} random ops draw their own numbers, which are not those of the recording: {own}"
        for line in (graph, eager, left if self._left else ""):
            if line:
                print(f"npu_shim: {line}", file=sys.stderr, flush=True)
        if self._folder:
            with open(os.path.join(self._folder, DRAWS), "w", encoding="utf-8") as stream:
                draws = {"schema_version": 1, "shared": [*self._shared, *sorted(self._eager)], "left": self._left}
                json.dump(draws, stream, indent=1)

    def runs_on_host(self, op_type: str) -> bool:
        """Return True for random ops, which draw on the CPU what they draw in the recording."""
        if is_random(op_type):
            self._eager.add(op_type)
        return op_type in self._eager

    def replace_outputs(
        self, op_type: str, op: Operation | None, inputs: Sequence[Value], outputs: Sequence[Value]
    ) -> list[Value]:
        """Return what gets the numbers of the recording instead of the output of a random op in a graph."""
        if op is None or not is_random(op_type) or _INITIAL in op.name:
            return list(outputs)
        inputs = list(map(tf_api.static_value, op.inputs))
        why = ""
        if any(value is None for value in inputs) and not _depends_on_fed_alone(op):
            why = "its shape or seed is known at run time only"
        elif tf_graph.outermost_session_graph(op.graph) is None and not tf_graph.is_eager_outermost():
            why = "it is in a function of TensorFlow 1"
        elif _VECTORIZED in op.name:
            why = "it is in tf.vectorized_map"
        if why:
            self._leave_unshared(op.name, why)
            return list(outputs)
        self._shared.append(op.name)
        draw = self._new_draw(op, inputs)
        with tf_op_creation.create_hook_ops(op.graph):
            return [tf.identity(draw.target) if draw.counter is None else _numbers_of_next_execution(draw, op)]

    def _new_draw(self, op: Operation, inputs: Sequence[np.ndarray | None]) -> _Draw:
        """Return the draw of an op, with the tensor or variable that gets its numbers."""
        own = op.outputs[0]
        graph = tf_graph.outermost_session_graph(op.graph)
        around = tf_graph.control_flow_types_text(op.graph)
        draw = _Draw(op, inputs, self._plain_run, "While" in around)
        with contextlib.ExitStack() as stack:
            stack.enter_context(tf_op_creation.suspend_hooks())
            if graph is None:
                stack.enter_context(tf.init_scope())
            else:
                stack.enter_context(graph.as_default())
                stack.enter_context(tf_op_creation.create_hook_ops(graph))
                stack.enter_context(graph.control_dependencies(None))
            if around or draw.asked:
                draw.counter = tf_recording.create_hook_variable(np.zeros((), np.int64))
            if graph is None:
                shape = [None, *own.shape] if draw.asked else None
                draw.target = tf_recording.create_hook_variable(draw.none if draw.asked else draw.next_numbers(), shape)
                self._of_functions.append(draw)
            else:
                draw.target = v1.placeholder(
                    own.dtype, [None, *own.shape] if around or draw.asked else own.shape, "draw"
                )
                self._of_graph.setdefault(graph, []).append(draw)
        return draw

    def _run_session(
        self,
        original: Function,
        session: Session,
        fetches: Fetches,
        feed_dict: FeedDict | None = None,
        *a: object,
        **k: object,
    ) -> Result:
        draws = self._needed_by_run(session.graph, fetches)
        if not draws:
            return original(session, fetches, feed_dict, *a, **k)
        shapes = {
            tensor.op.name: np.asarray(value).shape for tensor, value in tf_session.fed_values(session, feed_dict)
        }
        return self._run_with_draws(
            session, draws, shapes, lambda values: original(session, fetches, {**(feed_dict or {}), **values}, *a, **k)
        )

    def _make_run(
        self,
        original: Function,
        session: Session,
        fetches: Fetches,
        feed_list: Sequence[Tensor] | None = None,
        *a: object,
        **k: object,
    ) -> Function:
        """Return session.run() where the session would not call it, as nothing is fed."""
        if feed_list or not self._needed_by_run(session.graph, fetches):
            return original(session, fetches, feed_list, *a, **k)
        return functools.partial(session.run, fetches)

    def _make_callable(self, original: Function, session: Session, options: Message) -> Function:
        """Return what Keras in graph mode runs instead of a session; it gets the numbers as further arguments."""
        draws = self._needed_by_run(session.graph, [*options.fetch, *options.target])
        callables: dict[Hashable, Function] = {}

        def call(*args: object, **keywords: object) -> Result:
            def run(values: dict[Tensor, np.ndarray]) -> Result:
                names = tuple(target.name for target in values)
                if names not in callables:
                    fed = type(options)()
                    fed.CopyFrom(options)
                    fed.feed.extend(names)
                    callables[names] = original(session, fed)
                return callables[names](*args, *values.values(), **keywords)

            shapes = {name.partition(":")[0]: np.asarray(value).shape for name, value in zip(options.feed, args)}
            return self._run_with_draws(session, draws, shapes, run)

        return call if draws else original(session, options)

    def _run_with_draws(
        self,
        session: Session,
        draws: Sequence[_Draw],
        shapes: Mapping[str, Sequence[int]],
        run: Callable[[dict[Tensor, np.ndarray]], Result],
    ) -> Result:
        """Return what a run of a session returns with the numbers of draws; shapes are those of what else is fed."""
        given = self._numbers_for_run(draws, session.graph, shapes)
        counters = [draw.counter for draw in given if draw.counter is not None]
        self._plain_run(session, [counter.initializer for counter in counters])
        result = run({draw.target: value for draw, value in given.items()})
        self._skip_draws(given, self._plain_run(session, counters))
        return result

    def _call_function(
        self, original: Function, function: TracedFunction, args: Sequence[Value], *rest: object, **keywords: object
    ) -> Result:
        """Give the variables that a function captures their numbers before eager code calls it."""
        captured = set(map(id, function.captured_inputs)) if tf.executing_eagerly() and self._of_functions else ()
        draws = [draw for draw in self._of_functions if id(draw.target.handle) in captured]
        if not draws:
            return original(function, args, *rest, **keywords)
        shapes = {
            tensor.op.name: tuple(value.shape)
            for tensor, value in zip(function.inputs, args)
            if isinstance(value, tf.Tensor)
        }
        with tf_op_creation.suspend_hooks():
            given = self._numbers_for_run(draws, function.graph, shapes)
            for draw in draws:
                draw.target.assign(given[draw])
                if draw.counter is not None:
                    draw.counter.assign(0)
        result = original(function, args, *rest, **keywords)
        self._skip_draws(given, [draw.counter.numpy() for draw in given if draw.counter is not None])
        return result

    def _numbers_for_run(
        self, draws: Sequence[_Draw], graph: Graph, shapes: Mapping[str, Sequence[int]]
    ) -> dict[_Draw, np.ndarray]:
        """Return the numbers for a run of a graph; none of a draw whose sizes do not follow from what it is fed."""
        given = {}
        for draw in draws:
            inputs = self._inputs_of_draw(draw, graph, shapes) if draw.asked else []
            given[draw] = draw.none if inputs is None else draw.next_numbers(inputs)
        firsts = [(draw.name, value if draw.counter is None else value[:1]) for draw, value in given.items()]
        rows = [(name, value.reshape(-1)[:FEW]) for name, value in firsts if value.size]
        if rows:
            self._recorder.record_values(DRAW, rows, self._recorder.steps + 1)
        return given

    def _skip_draws(self, draws: Iterable[_Draw], counts: Iterable[int]) -> None:
        """Go on behind a run in which the draws that have counters ran so often."""
        counted = iter(counts)
        for draw in draws:
            number = 1 if draw.counter is None else int(next(counted))
            if not draw.skip_draws(number):
                self._leave_unshared(draw.name, "in a run, its loop took more numbers than the host gave")

    def _inputs_of_draw(
        self, draw: _Draw, graph: Graph, shapes: Mapping[str, Sequence[int]]
    ) -> Sequence[np.ndarray] | None:
        """Return the inputs of a draw that follow from the shapes of what a run is fed; None if they do not."""
        key = tuple(sorted(shapes.items()))
        if draw.asked[0].graph is not graph:
            draw.known[key] = None
        elif key not in draw.known:
            with tf_op_creation.suspend_hooks():
                draw.known[key] = tf_graph.values_for_shapes(draw.asked, shapes, self._plain_run)
        if draw.known[key] is None:
            draw.is_lost = True  # how far its own numbers went is not known
            self._leave_unshared(draw.name, "its sizes do not follow from the shapes of what is fed")
        return draw.known[key]

    def _leave_unshared(self, op: str, why: str) -> None:
        row = {"op": op, "why": why}
        self._left += [] if row in self._left else [row]
        self._shared = [name for name in self._shared if name != op]

    def _needed_by_run(self, graph: Graph, fetches: Fetches) -> list[_Draw]:
        """Return the random ops of which a run needs numbers."""
        draws, known = self._of_graph.get(graph), self._needed.setdefault(graph, {})
        if not draws:
            return []
        ops = [tf_recording.fetched_op(graph, fetch) for fetch, _ in fetches_with_values(fetches, fetches)]
        key = len(draws), frozenset(op for op in ops if op)
        if key not in known:
            above = tf_graph.ops_with_ancestors(key[1])
            known[key] = [draw for draw in draws if draw.target.op in above]
        return known[key]


def _output_of_copied_op(op: Operation, inputs: Sequence[Tensor]) -> Tensor:
    """Return what the same op returns for inputs in the default graph."""
    types, attributes = [tensor.dtype for tensor in op.outputs], dict(op.node_def.attr)
    output: Tensor = v1.get_default_graph().create_op(op.type, list(inputs), types, attrs=attributes).outputs[0]
    return output


def _numbers_of_next_execution(draw: _Draw, op: Operation) -> Tensor:
    """Return the numbers of the next time that an op of the current graph runs, its own where it got too few."""
    with tf.control_dependencies([draw.counter.assign_add(1, read_value=False)]):
        turn = draw.counter.read_value() - 1
    is_given = turn < tf.shape(draw.target, out_type=tf.int64)[0]
    numbers = v1.cond(is_given, lambda: tf.gather(draw.target, turn), lambda: _output_of_copied_op(op, op.inputs))
    numbers.set_shape(op.outputs[0].shape)
    return numbers


def _depends_on_fed_alone(op: Operation) -> bool:
    """Return True if unknown sizes or seeds of a random op can follow from what is fed: it needs no data but fed ones.

    In eager code that is a function called with arguments. In functions and branches inside of others nothing follows.
    """
    outside = getattr(op.graph, "outer_graph", None)
    above = tf_graph.ops_with_ancestors(tensor.op for tensor in op.inputs)
    is_inside = outside is not None and (
        outside.building_function or tf_graph.outermost_session_graph(outside) is not None
    )
    return (
        not is_inside
        and op.outputs[0].shape.rank is not None
        and not any(producer.type.startswith(_DATA) for producer in above)
    )
