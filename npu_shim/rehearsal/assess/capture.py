"""Stop a script at its first training step, with the graphs that it would run. Nothing is trained."""

from __future__ import annotations

import os
import re
from typing import Callable, Hashable, Mapping, NamedTuple, Sequence

import numpy as np

from npu_shim._tensorflow import patches, tf_api, tf_capture, tf_estimator, tf_keras, tf_op_creation, tf_session
from npu_shim._tensorflow.types import (
    CheckpointSaverListener,
    ConfigProto,
    Estimator,
    EventWriter,
    FeedDict,
    Fetches,
    Function,
    Graph,
    InputFn,
    Message,
    Operation,
    Optimizer,
    Result,
    Session,
    SessionRunHook,
    Structure,
    Tensor,
    Value,
)
from npu_shim.rehearsal.assess.flat import Flat, Shape, flatten
from npu_shim.rehearsal.assess.given_shapes import (
    Feeds,
    fed_integers,
    feed_shapes,
    given_arguments,
    iterators_among,
    read_iterator_shapes,
)
from npu_shim.rehearsal.assess.input_rate import rate_of_iterators, rate_of_session
from npu_shim.rehearsal.assess.lines import running_script_line
from npu_shim.rehearsal.assess.training_ops import (
    all_ops_with_functions,
    has_gradient_updates,
    needed_ops_with_functions,
)
from npu_shim.rehearsal.assess.zeros import zeros_like_fetch, zeros_like_output

tf, v1 = tf_api.tf, tf_api.v1
TRAIN, OTHER = "train", "other"
BY_ESTIMATOR, BY_KERAS = "Estimator", "Keras"
_MOST_GRAPHS = 16


class Stop(BaseException):
    """Ends the script. It is no Exception, so that the script's own handlers let it pass."""


class Captured(NamedTuple):
    """A graph that the script runs for a training step, or after one.

    Attributes:
        kind: TRAIN, or OTHER for an evaluation or another run.
        name: of the function, or of the call that runs the graph.
        line: of the script that runs it.
        graph: of the session, or of the tf.function.
        targets: the operations that are run or fetched.
        given: the shapes of what is fed, passed or read, by the names of tensors.
        parameters: the NPU options of the session, or of the device for a tf.function.
        values: those of what is fed or passed on which shapes, loops or branches may depend.
        connected: the names of tensors that a session reads in the place of others, by the names of these.
        flat: its nodes.
        session: the session, None for a tf.function.
        feeds: the values that a session is fed.
        fetches: what the session is asked for.
        input_rate: batches a second of its input pipeline; None if it was not measured.
        caller: BY_ESTIMATOR, BY_KERAS, or "" for the script.
    """

    kind: str
    name: str
    line: str
    graph: Graph
    targets: list[Operation]
    given: dict[str, Shape]
    parameters: dict[str, Value]
    values: dict[str, Value]
    connected: Mapping[str, str] = {}
    flat: Flat | None = None
    session: Session | None = None
    feeds: FeedDict | None = None
    fetches: Fetches = None
    input_rate: float | None = None
    caller: str = ""


class Capture:
    """Takes the place of session runs and calls of tf.functions until the script trains.

    Runs and calls before the first training step happen as usual: initial values, restored weights, look-ups. The first
    one that trains does not happen; it returns zeros of the right shapes and types, and so does every one after it, so
    that a second network of the same loop or an evaluation is found, too. The script ends when a graph comes again.

    Args:
        script_folder: the folder of the script.
        measures_input: True to measure the rate of the input pipeline of training steps.
        read_device_options: returns the NPU options of a tf.function.
    """

    def __init__(
        self,
        script_folder: str,
        measures_input: bool = False,
        read_device_options: Callable[[], dict[str, Value]] = dict,
    ) -> None:
        self.graphs: list[Captured] = []
        self.compiled: dict[Hashable, str] = {}  # signature -> line: the graphs that ran before the first training step
        self.eager_line: str | None = None
        self.failure: str | None = None
        self._folder = script_folder
        self._seen: set[Hashable] = set()
        self._trains: dict[Hashable, bool] = {}
        self._measures_input = measures_input
        self._read_device_options = read_device_options
        self._caller = ""
        self._last_read: tuple[Value, Structure] | None = None  # the iterator that eager code read last, and its batch

    def install(self) -> None:
        """Replace TensorFlow's entry points. ``patches.restore_all`` restores them."""
        tf_op_creation.disable_forms_in_graphs()  # for the list of what a card is asked for
        patches.register_undo(tf_op_creation.drop_forms)
        replace = patches.replace_attribute
        replace(tf_session.BaseSession, "run", self._wrap_session_run)
        replace(tf_session.BaseSession, tf_capture.MAKE_CALLABLE, self._wrap_make_callable)
        replace(tf_session.BaseSession, "make_callable", _wrap_make_callable_of_script)
        replace(v1.train.Saver, "save", _wrapper_that_skips_write("path"))
        for name in ("add_event", "flush", "close", "reopen"):
            replace(tf_capture.EventFileWriter, name, _wrapper_that_skips_write(None))
        replace(tf_capture.EventFileWriter, "__init__", _wrap_init_without_file)
        replace(v1.train.Optimizer, "apply_gradients", self._wrap_apply_to_stop)
        for owner in getattr(tf_estimator.estimator_class(), "__mro__", ())[:-1]:
            if "train" in vars(owner):
                replace(owner, "train", self._wrap_train_to_stop)
        if tf.__version__.startswith("1."):
            return
        replace(tf_session.FUNCTION, "__call__", self._wrap_function_call)
        if self._measures_input:
            replace(tf_capture.EagerIterator, "__next__", self._wrap_next)
        for kind in tf_keras.optimizer_classes():
            for owner in kind.__mro__:
                for name in {"apply_gradients", "apply"} & set(vars(owner)):
                    replace(owner, name, self._wrap_apply_to_stop)
        replace(tf.train.Checkpoint, "write", _wrapper_that_skips_write("path"))
        replace(tf.train.Checkpoint, "save", _wrapper_that_skips_write("path"))

    # --- sessions

    def _wrap_session_run(self, original: Function) -> Function:
        def run(
            session: Session,
            fetches: Fetches,
            feed_dict: FeedDict | None = None,
            options: Message | None = None,
            run_metadata: Message | None = None,
        ) -> Result:
            ops = [_op_of_element(element) for element in tf_session.fetched_elements(session, fetches)]
            feeds = tf_session.fed_values(session, feed_dict)
            if not self._should_skip_run(session.graph, ops, feeds):
                return original(session, fetches, feed_dict, options, run_metadata)
            self._record_run(session, ops, feeds, feed_dict, fetches, original)
            return tf_capture.results_without_run(session, fetches, zeros_like_fetch)

        return run

    def _wrap_make_callable(self, original: Function) -> Function:
        def make(session: Session, options: Message) -> Result:
            real = original(session, options)

            def call(*args: object, **kwargs: object) -> Result:
                find = session.graph.as_graph_element
                fetches = [find(name) for name in options.fetch]
                ops = [_op_of_element(fetch) for fetch in fetches] + [find(name) for name in options.target]
                feeds = [(find(name), value) for name, value in zip(options.feed, args)]
                if not self._should_skip_run(session.graph, ops, feeds):
                    return real(*args, **kwargs)
                connected = {pair.to_tensor: pair.from_tensor for pair in options.tensor_connection}
                needed = ops + [find(name).op for name in connected.values()]
                fetched = fetches + ops[len(fetches) :]
                self._caller = BY_KERAS
                self._record_run(session, needed, feeds, dict(feeds), fetched, tf_session.BaseSession.run, connected)
                return [zeros_like_fetch(fetch) for fetch in fetches]

            return call

        return make

    def _should_skip_run(self, graph: Graph, ops: list[Operation], feeds: Feeds) -> bool:
        """Return True if a run is not to happen: it trains, or follows one that would have."""
        if ops and all("Queue" in op.type for op in ops):  # threads fill queues, and end when the queues are closed
            return False
        key = (id(graph), graph.version, tuple(op.name for op in ops))
        if key not in self._trains:
            self._trains[key] = has_gradient_updates(needed_ops_with_functions(ops))
        if not self.graphs and not self._trains[key]:
            self.compiled.setdefault((key, feed_shapes(feeds)), self._running_line())
            return False
        is_new = all(graph is not captured.graph for captured in self.graphs if captured.kind == TRAIN)
        if is_new and not self._trains[key] and not any(op.outputs for op in ops):
            return False  # initial values and iterators of an evaluation
        return True

    def _record_run(
        self,
        session: Session,
        ops: list[Operation],
        feeds: Feeds,
        feed_dict: FeedDict | None,
        fetches: Fetches,
        run: Function,
        connected: Mapping[str, str] = {},
    ) -> None:
        graph = session.graph
        key = (id(graph), tuple(op.name for op in ops))
        self._stop_if_repeated(key)
        given: dict[str, Shape] = {tensor.name: tuple(np.shape(value)) for tensor, value in feeds}
        read, integers = read_iterator_shapes(session, ops, feed_dict, run)
        given.update(read)
        kind = TRAIN if has_gradient_updates(needed_ops_with_functions(ops)) else OTHER
        name = "session.run"
        if kind == TRAIN or any(op.type not in ("NoOp", "Assign", "VarHandleOp") for op in ops):
            config = tf_session.reported_config(session)
            options, values = npu_optimizer_options(config), {**fed_integers(feeds), **integers}
            measures = self._measures_input and kind == TRAIN
            rate = rate_of_session(session, ops, feed_dict, run) if measures else None
            self._add_graph(
                Captured(
                    kind,
                    name,
                    self._running_line(),
                    graph,
                    ops,
                    given,
                    options,
                    values,
                    connected,
                    None,
                    session,
                    feed_dict,
                    fetches,
                    rate,
                    self._caller,
                )
            )

    def _wrap_train_to_stop(self, original: Function) -> Function:
        """Let the training of an Estimator end when its step comes again, so that evaluations are found, too."""

        def train(
            estimator: Estimator,
            input_fn: InputFn,
            hooks: Sequence[SessionRunHook] | None = None,
            steps: int | None = None,
            max_steps: int | None = None,
            saving_listeners: Sequence[CheckpointSaverListener] | None = None,
        ) -> Estimator:
            if self.graphs:
                raise Stop
            self._caller = BY_ESTIMATOR
            try:
                return original(estimator, input_fn, hooks, steps, max_steps, saving_listeners)
            except Stop:
                if not self.graphs:
                    raise
            for spec in tf_estimator.eval_specs_of_listeners(saving_listeners or ()):
                estimator.evaluate(spec.input_fn, spec.steps, spec.hooks)
            return estimator

        return train

    # --- tf.function

    def _wrap_function_call(self, original: Function) -> Function:
        def call(function: Value, *args: Structure, **kwargs: Structure) -> Result:
            if not tf.executing_eagerly():
                return original(function, *args, **kwargs)
            concrete = function.get_concrete_function(*args, **kwargs)
            if not self._should_skip_call(concrete):
                return original(function, *args, **kwargs)
            return self._record_call(function, concrete, args, kwargs)

        return call

    def _wrap_next(self, original: Function) -> Function:
        def __next__(iterator: Value) -> Value:
            batch = original(iterator)
            self._last_read = iterator, batch
            return batch

        return __next__

    def _iterators_of_batch(self, shapes: Mapping[str, Shape]) -> list[Value]:
        """Return the iterator that eager code read last, if its batch has a first size of the arguments."""
        if self._last_read is None:
            return []
        iterator, batch = self._last_read
        parts = tf_capture.function_input_tensors(batch)
        sizes = {part.shape[0] for part in parts if len(part.shape)}
        return [iterator] if sizes & {shape[0] for shape in shapes.values() if shape} else []

    def _should_skip_call(self, concrete: Value) -> bool:
        """Return True if a call is not to happen."""
        if self.graphs or has_gradient_updates(all_ops_with_functions(concrete.graph)):
            return True
        self.compiled.setdefault(concrete.name, self._running_line())
        return False

    def _record_call(self, function: Value, concrete: Value, args: Structure, kwargs: Structure) -> Result:
        self._stop_if_repeated((id(function), concrete.name))
        graph = concrete.graph
        targets = [output.op for output in graph.outputs] + list(graph.control_outputs)
        kind = TRAIN if has_gradient_updates(all_ops_with_functions(graph)) else OTHER
        name = python_function_name(function)
        shapes, values = given_arguments(graph, args, kwargs)
        options = self._read_device_options()
        captured = Captured(kind, name, self._running_line(), graph, targets, shapes, options, values)
        if self._measures_input and kind == TRAIN:
            iterators = iterators_among(args, kwargs) or self._iterators_of_batch(shapes)
            captured = captured._replace(input_rate=rate_of_iterators(iterators))
        self._add_graph(captured)
        return tf.nest.map_structure(zeros_like_output, concrete.structured_outputs)

    def _wrap_apply_to_stop(self, original: Function) -> Function:
        def apply(optimizer: Optimizer, *args: object, **kwargs: object) -> Result:
            if not tf.executing_eagerly():  # false in a tf.function, too
                return original(optimizer, *args, **kwargs)
            if self.graphs:
                return None
            self.eager_line = self._running_line()
            raise Stop

        return apply

    # ---

    def _stop_if_repeated(self, key: Hashable) -> None:
        if key in self._seen or len(self.graphs) >= _MOST_GRAPHS:
            raise Stop
        self._seen.add(key)

    def _add_graph(self, captured: Captured) -> None:
        names = [known.name for known in self.graphs]
        number = sum(1 for name in names if re.sub(r" \(\d+\)$", "", name) == captured.name)
        name = f"{captured.name} ({number + 1})" if number else captured.name
        # now, because the variables of a tf.function may go with the frames of the script
        flat = flatten(captured.graph, captured.targets, captured.given, captured.values, captured.connected)
        self.graphs.append(captured._replace(name=name, flat=flat))

    def _running_line(self) -> str:
        return running_script_line(self._folder)


def python_function_name(function: Value) -> str:
    """Return the name of the Python function of a tf.function."""
    return getattr(function.python_function, "__name__", "function")


def npu_optimizer_options(config: ConfigProto) -> dict[str, Value]:
    """Return the options of the NpuOptimizer entry of a session config, {} without one."""
    for optimizer in config.graph_options.rewrite_options.custom_optimizers if config is not None else ():
        if optimizer.name == "NpuOptimizer":
            return {key: getattr(value, value.WhichOneof("value")) for key, value in optimizer.parameter_map.items()}
    return {}


def _wrap_make_callable_of_script(original: Function) -> Function:
    """Let what ``Session.make_callable`` returns run by ``Session.run``, which is replaced."""

    def make(
        session: Session, fetches: Fetches, feed_list: Sequence[Tensor] | None = None, accept_options: bool = False
    ) -> Function:
        return lambda *values, **options: session.run(fetches, dict(zip(feed_list or (), values)), **options)

    return make


def _wrapper_that_skips_write(result: str | None) -> Callable[[Function], Function]:
    """Replace a method that writes a file. It returns the path that it was given, as the original does."""

    def make(original: Function) -> Function:
        def skipped(self: object, *args: object, **kwargs: object) -> Result:
            if result is None:
                return None
            paths = [value for value in (*args, *kwargs.values()) if isinstance(value, (str, os.PathLike))]
            return os.fspath(paths[0]) if paths else ""

        return skipped

    return make


def _wrap_init_without_file(original: Function) -> Function:
    """Replace the constructor of the writer of event files."""

    def __init__(self: EventWriter, logdir: str, *args: object, **kwargs: object) -> None:
        self._logdir = logdir

    return __init__


def _op_of_element(element: Operation | Tensor) -> Operation:
    return element if isinstance(element, tf.Operation) else element.op
