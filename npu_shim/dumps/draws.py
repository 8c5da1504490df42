"""The random numbers of a recording for a run on a card, which draws others from the same seeds.

The graph of such a run gets them from the host: each random op becomes a placeholder, in a tf.function a variable.
Before each run TensorFlow draws on the CPU what the op would, with the seeds that the recording has, and feeds the run.
Dropout of the vendor becomes that of TensorFlow, which the recording has, too. So the run has another graph than the
script; it says so, and the folder of the dumps names the ops.
"""

from __future__ import annotations

import atexit
import functools
import json
import os
import sys
import weakref
from typing import TYPE_CHECKING, Any, Sequence

import numpy as np
import tensorflow as tf

from npu_shim._host import host_device
from npu_shim._tensorflow import tf_api, tf_graph, tf_op_creation, tf_recording, tf_session
from npu_shim.dumps.reference import DRAWS
from npu_shim.ops.dropout import dropout
from npu_shim.rehearsal.recording import methods, random_seeds, updating
from npu_shim.rehearsal.recording.graph_inputs import FEW, RANDOM
from npu_shim.rehearsal.recording.kinds import DRAW
from npu_shim.rehearsal.recording.names import pairs
from npu_shim.rehearsal.recording.recorder import Recorder

if TYPE_CHECKING:
    from npu_shim._tensorflow.types import FeedDict, Fetches, Function, Graph, Operation, Result, Session, Tensor, Value

v1 = tf_api.v1
_OF_VENDOR = (("estimator.npu_ops", "dropout"), ("estimator.npu_aicore_ops", "dropout_v3"))
_INITIAL = "Initializer"  # in names of ops that draw initial variables, which a recording has
_MOST_DEFAULT = 1 << 20  # elements of a default value, which is a part of the graph


class _Draw:
    """A random op that runs on the host, and the tensor or variable of the script's graph that gets its numbers.

    Attributes:
        name: of the op.
        asked: the inputs of the op, like its shape, that follow from what a run is fed.
        known: their values by the shapes of what is fed; None for those that do not follow.
        value: the numbers of the current run.
        target: the tensor or variable.
    """

    def __init__(self, op: Operation, inputs: Sequence[np.ndarray | None], run: Function) -> None:
        with tf_op_creation.suspended(), tf.Graph().as_default() as graph:
            types, attributes = [each.dtype for each in op.outputs], dict(op.node_def.attr)
            given = [
                v1.placeholder(of.dtype) if each is None else tf.constant(each) for each, of in zip(inputs, op.inputs)
            ]
            output = graph.create_op(op.type, given, types, attrs=attributes).outputs[0]
        self.name = op.name
        self.asked = [tensor for each, tensor in zip(inputs, op.inputs) if each is None]
        self.known: dict[Any, Sequence[np.ndarray] | None] = {}
        self._fed = [tensor for each, tensor in zip(inputs, given) if each is None]
        self._draw = functools.partial(run, v1.Session(graph=graph), output)
        self._is_first = not self.asked
        self.value: np.ndarray = np.zeros(0) if self.asked else self._draw()
        self.target: Any = None

    def next(self, inputs: Sequence[np.ndarray] = ()) -> np.ndarray:
        """Return the numbers of the next run, whose op has these inputs that follow from what the run is fed."""
        self.value = self.value if self._is_first else self._draw(dict(zip(self._fed, inputs)))
        self._is_first = False
        return self.value


class SharedDraws(tf_op_creation.OpHook):
    """Give the random ops of graphs the numbers that a recording has.

    Args:
        recorder: receives the first numbers of each op, to compare them with those of the recording.
        folder: of the dumps, receives the names of the ops; None without one.
    """

    def __init__(self, recorder: Recorder, folder: str | None) -> None:
        self._recorder, self._folder = recorder, folder
        self._of_graph: weakref.WeakKeyDictionary[Graph, list[_Draw]] = weakref.WeakKeyDictionary()
        self._of_function: weakref.WeakKeyDictionary[Any, list[_Draw]] = weakref.WeakKeyDictionary()
        self._needed: weakref.WeakKeyDictionary[Graph, dict[Any, list[_Draw]]] = weakref.WeakKeyDictionary()
        self._called: list[Any] = []  # the tf.function that runs
        self._shared: list[str] = []
        self._eager: set[str] = set()  # types of ops that eager code runs
        self._left: list[dict[str, str]] = []  # op, and why it draws its own
        self._plain_run = tf_recording.BaseSession.run

    def start(self, seed: int) -> None:
        """Begin with what is created from now on. Call it before the hooks of a recording are installed."""
        random_seeds.seed_ops_by_call_site(seed, self._recorder.seed)
        tf_op_creation.add(self)
        methods.wrap(tf_recording.BaseSession, ("run",), self._session_run)
        methods.wrap(type(tf.function(lambda: None)), ("__call__",), self._call)
        for module, name in _OF_VENDOR:
            found = host_device.find_vendor(f"{host_device.VENDOR_PACKAGE}.{module}")
            if found is not None:
                setattr(found, name, dropout)
        if host_device.has_npu_device():  # which makes tf.nn.dropout of a function the vendor's
            setattr(host_device.vendor("npu_device.train.convert_dropout"), "dropout_api_convert", lambda: None)
        atexit.register(self.close)

    def close(self) -> None:
        """Report which ops got the numbers of the recording, and which did not."""
        atexit.unregister(self.close)
        graph = ""
        if self._of_graph or self._of_function:
            graph = f"another graph for this run: {len(self._shared)} random ops get their numbers from the host"
        eager = f"the host draws for eager code: {', '.join(sorted(self._eager))}" if self._eager else ""
        own = "; ".join(f"{each['op']}, {each['why']}" for each in self._left)
        left = f"{len(self._left)} random ops draw their own numbers, which are not those of the recording: {own}"
        for line in (graph, eager, left if self._left else ""):
            if line:
                print(f"npu_shim: {line}", file=sys.stderr, flush=True)
        if self._folder:
            with open(os.path.join(self._folder, DRAWS), "w", encoding="utf-8") as stream:
                found = {"schema_version": 1, "shared": [*self._shared, *sorted(self._eager)], "left": self._left}
                json.dump(found, stream, indent=1)

    def on_host(self, op_type: str) -> bool:
        """Return True for random ops, which draw on the CPU what they draw in the recording."""
        if op_type.startswith("Stateful"):
            self._leave(op_type, "a tf.random.Generator has its state on the device")
        elif op_type.startswith(RANDOM):
            self._eager.add(op_type)
        return op_type in self._eager

    def outputs(
        self, op_type: str, op: Operation | None, inputs: Sequence[Value], outputs: Sequence[Value]
    ) -> list[Value]:
        """Return what gets the numbers of the recording instead of the output of a random op in a graph."""
        if op is None or not op_type.startswith(RANDOM) or _INITIAL in op.name:
            return list(outputs)
        target = self._target(op)
        if isinstance(target, str):
            self._leave(op.name, target)
            return list(outputs)
        self._shared.append(op.name)
        with tf_op_creation.own_ops(op.graph):
            return [tf.identity(target)]

    def _target(self, op: Operation) -> Any:
        """Return the tensor or variable that gets the numbers of a random op, or why it draws its own."""
        inputs = list(map(tf_api.static_value, op.inputs))
        graph, is_known = tf_graph.outermost(op.graph), all(value is not None for value in inputs)
        if tf_graph.in_loop(op):
            return "it is in a loop"
        if not is_known and (graph is not op.graph or not _follows_from_feeds(op)):
            return "its shape or seed is known at run time only"
        if not self._called and graph is None:
            return "its function is traced before it is called"
        draw = _Draw(op, inputs, self._plain_run)
        if self._called:
            with tf_op_creation.suspended(), tf.init_scope():
                draw.target = tf_recording.variable_of_hooks(draw.value)
            self._of_function.setdefault(self._called[0], []).append(draw)
        else:
            draw.target = _placeholder(draw.value, graph) if is_known else _instead(op.outputs[0])
            self._of_graph.setdefault(graph, []).append(draw)
        return draw.target

    def _session_run(
        self,
        original: Function,
        session: Session,
        fetches: Fetches,
        feed_dict: FeedDict | None = None,
        *a: Any,
        **k: Any,
    ) -> Result:
        draws = self._of_run(session.graph, fetches) if self._of_graph.get(session.graph) else []
        given = {draw: self._inputs(session, draw, feed_dict) for draw in draws}
        values = {draw.target: draw.next(inputs) for draw, inputs in given.items() if inputs is not None}
        self._note([draw for draw in draws if draw.target in values])
        return original(session, fetches, {**(feed_dict or {}), **values} if values else feed_dict, *a, **k)

    def _inputs(self, session: Session, draw: _Draw, feed_dict: FeedDict | None) -> Sequence[np.ndarray] | None:
        """Return the inputs of a draw that follow from the shapes of what a run is fed; None if they do not."""
        if not draw.asked:
            return []
        fed = tf_session.fed_values(session, feed_dict)
        shapes = {tensor.op.name: np.asarray(value).shape for tensor, value in fed}
        key = tuple(sorted(shapes.items()))
        if key not in draw.known:
            with tf_op_creation.suspended():
                draw.known[key] = tf_graph.values_for_shapes(draw.asked, shapes, self._plain_run)
            if draw.known[key] is None:
                self._shared = [each for each in self._shared if each != draw.name]
                self._leave(draw.name, "its sizes do not follow from the shapes of what is fed")
        return draw.known[key]

    def _leave(self, op: str, why: str) -> None:
        row = {"op": op, "why": why}
        self._left += [] if row in self._left else [row]

    def _of_run(self, graph: Graph, fetches: Fetches) -> list[_Draw]:
        """Return the random ops of which a run needs numbers."""
        ops = [tf_recording.fetched_op(graph, each) for each, _ in pairs(fetches, fetches)]
        draws, known = self._of_graph[graph], self._needed.setdefault(graph, {})
        key = len(draws), frozenset(op for op in ops if op)
        if key not in known:
            above = updating.ancestors(key[1])
            known[key] = [draw for draw in draws if draw.target.op in above]
        return known[key]

    def _call(self, original: Function, function: Any, *args: object, **kwargs: object) -> Result:
        """Give the variables of a tf.function their numbers before the outermost call of it."""
        if self._called or not tf.executing_eagerly():
            return original(function, *args, **kwargs)
        self._called.append(function)
        try:
            known = list(self._of_function.get(function, ()))
            with tf_op_creation.suspended():
                for draw in known:
                    draw.target.assign(draw.next())
            result = original(function, *args, **kwargs)
            draws = self._of_function.get(function, [])
            for draw in draws[len(known) :]:  # made by this call
                draw.next()
            self._note(draws)
            return result
        finally:
            self._called.pop()

    def _note(self, draws: Sequence[_Draw]) -> None:
        rows = [(draw.name, draw.value.reshape(-1)[:FEW]) for draw in draws]
        if rows:
            self._recorder.values(DRAW, rows, self._recorder.steps + 1)


def _placeholder(value: np.ndarray, graph: Graph) -> Tensor:
    """Return a placeholder; Keras of TensorFlow 1 runs graphs without a feed, and gets the numbers of the first run."""
    with graph.as_default(), tf_op_creation.own_ops(graph), graph.control_dependencies(None):
        if value.size > _MOST_DEFAULT:
            return v1.placeholder(value.dtype, value.shape, "draw")
        return v1.placeholder_with_default(value, value.shape, "draw")


def _instead(own: Tensor) -> Tensor:
    """Return a placeholder that has the numbers of the random op itself where a run does not feed it."""
    with own.graph.as_default(), tf_op_creation.own_ops(own.graph), own.graph.control_dependencies(None):
        return v1.placeholder_with_default(own, own.shape, "draw")


def _follows_from_feeds(op: Operation) -> bool:
    """Return True if the unknown sizes of a random op can follow from what is fed: it needs no data but fed ones."""
    above = updating.ancestors(each.op for each in op.inputs)
    return any(each.type.startswith("Placeholder") for each in above) and not any(
        each.type.startswith(("Iterator", "QueueDequeue")) for each in above
    )
