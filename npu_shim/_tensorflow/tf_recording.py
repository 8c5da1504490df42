"""Private parts of TensorFlow that recordings need: seeds of ops, control flow of graphs."""

from __future__ import annotations

import functools
import inspect
import os
import sys
import threading
import types
from typing import Callable, Sequence

import numpy as np
import tensorflow as tf
from tensorflow.core.framework import attr_value_pb2 as _attr_value
from tensorflow.python.client import session as _session
from tensorflow.python.data.ops.readers import ParallelInterleaveDataset as ParallelInterleaveDataset
from tensorflow.python.data.util import random_seed as _dataset_seed
from tensorflow.python.eager import context as _context
from tensorflow.python.framework import op_callbacks as _op_callbacks, random_seed as _random_seed
from tensorflow.python.ops import (
    control_flow_ops as _control_flow,
    resource_variable_ops as _resources,
    while_v2 as _while_v2,
)

from npu_shim._tensorflow import script_frames, tf_autograph as tf_autograph  # the second for its effect
from npu_shim._tensorflow.types import (
    Fetches,
    Function,
    Graph,
    Operation,
    QueueRunner,
    Result,
    Structure,
    Supervisor,
    Tensor,
    Value,
    Variable,
)

try:
    from tensorflow.python.eager.polymorphic_function.polymorphic_function import (
        UnliftedInitializerVariable as _OfFunction,
    )
except ImportError:  # TF 2.6 and before
    from tensorflow.python.eager.def_function import UnliftedInitializerVariable as _OfFunction

try:
    from tensorflow.python.eager.polymorphic_function.concrete_function import ConcreteFunction as ConcreteFunction
except ImportError:  # TF 2.6 and before
    from tensorflow.python.eager.function import ConcreteFunction as ConcreteFunction


BaseSession = _session.BaseSession
CALL_FLAT = "_call_flat"  # method of a ConcreteFunction: its arguments are flat, and it takes no Python values
_UNORDERED = ("NonDeterministicInts", "RecordInput", "OrderedMapUnstage", "MapUnstage", "Unstage", "Barrier")
_TAKE_SEEDS = ("set_seed", "set_random_seed", "create_rng_state", "fold_in", "split", "index_shuffle")
_BRANCHES = ("CondBranchFuncGraph", "WhileBodyFuncGraph", "WhileCondFuncGraph")


def replace_get_seed(make: Callable[[Function], Function]) -> None:
    """Replace the function with which random ops and datasets make their two seeds from one."""
    _random_seed.get_seed = make(_random_seed.get_seed)


def replace_get_seed_of_datasets(make: Callable[[Function], Function]) -> None:
    """Replace the function with which datasets make their two seeds from one; it calls the one of random ops."""
    _dataset_seed.get_seed = make(_dataset_seed.get_seed)


def seed_random_boxes(next_seed: Callable[[], int]) -> None:
    """Give tf.image.sample_distorted_bounding_box a seed where the script gives none.

    The function asks for no seed as other random ops do. With deterministic ops it then fails from TensorFlow 2.9 on.
    """

    def seeded_sample(original: Function) -> Function:
        def sample(
            image_size: Value, bounding_boxes: Value, seed: int | None = None, *args: object, **kwargs: object
        ) -> Result:
            return original(image_size, bounding_boxes, seed or next_seed(), *args, **kwargs)

        return sample

    name = "sample_distorted_bounding_box"
    for owner in {tf.image, tf.compat.v1.image, tf.compat.v2.image}:
        setattr(owner, name, seeded_sample(getattr(owner, name)))


def set_default_seed() -> None:
    """Set the global seed of eager code to what ops with a seed of their own take for it if it is not set."""
    if tf.executing_eagerly():
        tf.compat.v1.set_random_seed(_random_seed.DEFAULT_GRAPH_SEED)


def set_default_graph_seed() -> None:
    """Do the same for the default graph, if the script has not set its seed."""
    if not tf.executing_eagerly() and tf.compat.v1.get_default_graph().seed is None:
        tf.compat.v1.set_random_seed(_random_seed.DEFAULT_GRAPH_SEED)


def global_seed() -> int | None:
    """Return the global seed of the code that runs: of eager code, or of the default graph."""
    seed: int | None = _context.global_seed() if tf.executing_eagerly() else tf.compat.v1.get_default_graph().seed
    return seed


def set_global_seed(seed: int) -> None:
    """Set it."""
    tf.compat.v1.set_random_seed(seed)


def seed_generators(next_seed: Callable[[], int]) -> None:
    """Seed the objects tf.random.Generator that have a random state without a seed, the global one included."""
    owner = tf.random.experimental.Generator

    def from_seed(cls: type, alg: Result = None) -> Result:
        return getattr(cls, "from_seed")(next_seed(), **({} if alg is None else {"alg": alg}))

    owner.from_non_deterministic_state = classmethod(from_seed)
    for module in (tf.random, tf.compat.v2.random, tf.random.experimental, tf.compat.v2.random.experimental):
        if hasattr(module, "get_global_generator"):
            module.get_global_generator = _create_missing_generator(module.get_global_generator)


def seed_keras_generator(next_seed: Callable[[], int]) -> None:
    """Seed what Keras 3 seeds with the generator of Python, whose order a migration changes.

    That is SeedGenerator, layers and initializers without a seed.
    """
    of_keras = getattr(getattr(tf.keras, "random", None), "SeedGenerator", None)
    if of_keras is not None:
        drawn = types.SimpleNamespace(randint=lambda low, high: low + next_seed() % (high - low))
        setattr(sys.modules[of_keras.__module__], "python_random", drawn)


def replace_script_seeds(seed_of: Callable[[Value], Value]) -> None:
    """Replace numbers in the seeds that scripts set, or give to stateless random functions and random states.

    Args:
        seed_of: receives a number, and returns the one in its place.
    """
    roots = (tf, tf.compat.v1, tf.compat.v2)
    modules = {*roots, *(getattr(root, name) for root in roots for name in ("random", "image"))}
    modules |= {module.experimental for module in modules if hasattr(module, "experimental")}
    for module in modules:
        for name in dir(module):
            if name.startswith("stateless_") or name in _TAKE_SEEDS:
                setattr(module, name, _replace_seed_argument(getattr(module, name), seed_of))
    generator = tf.random.experimental.Generator
    generator.from_seed = classmethod(_replace_seed_argument(generator.from_seed.__func__, seed_of))
    of_keras = getattr(getattr(tf.keras, "random", None), "SeedGenerator", None)  # from Keras 3 on
    if of_keras is not None:
        of_keras.__init__ = _replace_seed_argument(of_keras.__init__, seed_of)


def _replace_seed_argument(original: Function, seed_of: Callable[[Value], Value]) -> Function:
    signature = inspect.signature(original)
    if "seed" not in signature.parameters:
        return original

    def replaced(seed: Value) -> Value:
        if isinstance(seed, (list, tuple)):
            return type(seed)(map(replaced, seed))
        value = tf.get_static_value(seed) if isinstance(seed, tf.Tensor) else seed
        if isinstance(value, np.ndarray):
            return np.reshape([seed_of(number) for number in value.ravel()], value.shape)
        return seed_of(value) if isinstance(value, (int, np.number)) else seed

    @functools.wraps(original)
    def call(*args: object, **kwargs: object) -> Result:
        given = signature.bind(*args, **kwargs)
        if "seed" in given.arguments:
            given.arguments["seed"] = replaced(given.arguments["seed"])
        return original(*given.args, **given.kwargs)

    return call


def _create_missing_generator(original: Function) -> Function:
    def get_global_generator() -> Result:
        try:
            return original()
        except RuntimeError:  # TensorFlow 2.8 and later make none with deterministic ops
            with tf.init_scope():
                tf.random.set_global_generator(tf.random.Generator.from_non_deterministic_state())
            return original()

    return get_global_generator


def serialize_loop_iterations() -> None:
    """Run the iterations of while loops one after the other. Their random ops would draw in the order of threads."""
    for owner, name in ((_control_flow.WhileContext, "__init__"), (_while_v2, "while_loop")):
        setattr(owner, name, _with_serial_iterations(getattr(owner, name)))


def _with_serial_iterations(original: Function) -> Function:
    @functools.wraps(original)
    def one_by_one(*args: object, **kwargs: object) -> Result:
        given = inspect.signature(original).bind(*args, **kwargs)
        given.arguments["parallel_iterations"] = 1
        return original(*given.args, **given.kwargs)

    return one_by_one


def drop_duplicate_enqueue_ops(runner: QueueRunner) -> None:
    """Let a QueueRunner have one thread for each of its ops that differ."""
    runner._enqueue_ops = list(dict.fromkeys(runner.enqueue_ops))


def disable_timed_summaries(supervisor: Supervisor) -> None:
    """Let a Supervisor start no threads that compute summaries and count steps every few seconds."""
    supervisor._save_summaries_secs = 0


def enlarge_shuffle_queue(runner: QueueRunner) -> None:
    """Give the queue of a QueueRunner room for one element more than it keeps, if it shuffles."""
    op = getattr(getattr(runner.queue, "queue_ref", None), "op", None)
    if op is not None and op.type.startswith("RandomShuffleQueue"):
        op._set_attr("capacity", _attr_value.AttrValue(i=op.get_attr("min_after_dequeue") + 1))


def find_nondeterministic_op(graph: Graph) -> Operation | None:
    """Return an op of a graph whose result depends on the speed of threads or on true entropy; None without one."""
    return next((op for op in graph.get_operations() if op.type in _UNORDERED), None)


def create_hook_variable(value: np.ndarray, shape: Sequence[int | None] | None = None) -> Variable:
    """Return a variable that no creator of the script, like that of a tf.function, makes or sees.

    Args:
        value: the first.
        shape: of all values; None if it is that of the first.
    """
    given = {} if shape is None else {"shape": tf.TensorShape(shape)}
    return _resources.ResourceVariable(value, trainable=False, collections=[], name="npu_shim", **given)


def is_resource(variable: Variable) -> bool:
    """Return True for a variable as scripts make it, also in a tf.function.

    Return False for what assign() returns, and for variables of a strategy.
    """
    return type(variable) in (_resources.ResourceVariable, _OfFunction)


def is_script_variable(variable: Variable) -> bool:
    """Return True for a variable as scripts make it, also in a tf.function."""
    return is_resource(variable) or type(variable).__name__ == "UnliftedInitializerVariable"


def has_eager_value(variable: Variable) -> bool:
    """Return True for a variable of eager code, and for one of a strategy: only its replicas have handles."""
    one = getattr(variable, "_primary", variable)
    return hasattr(getattr(one, "handle", None), "numpy")


def watch_ops(callback: Function) -> Callable[[], None] | None:
    """Call a function after each op of this thread that eager code runs or a graph gets. Hooks on ops cost more.

    Args:
        callback: takes the type of the op, its inputs, attributes and outputs, its name, and its graph or None. It
            returns None.

    Returns:
        a function that ends it; None with TensorFlow 1.15, which has no such callbacks.
    """
    if not hasattr(_op_callbacks, "add_op_callback"):
        return None
    _op_callbacks.add_op_callback(callback)
    return lambda: _op_callbacks.remove_op_callback(callback)


def number_of_tensor(value: Value) -> int:
    """Return the number of a tensor of eager code, or of the handle of a variable; later ones have greater numbers."""
    tensor: Value = getattr(value, "handle", value)
    return int(tensor._id)


def is_of_graph(value: Value) -> bool:
    """Return True for a tensor or a variable of the graph that is being made."""
    return getattr(value, "graph", None) is tf.compat.v1.get_default_graph()


# Method of a tf.function: initializes the variables that it has made.
INITIALIZE = "_initialize_uninitialized_variables"


def initialized_variables(initializers: Structure) -> list[Variable]:
    """Return the variables of the argument of INITIALIZE, each with its initializer."""
    return [entry[0] if isinstance(entry, tuple) else entry for entry in initializers]


def is_enqueue_op(op: Operation | None) -> bool:
    """Return True for an op that fills or closes a queue."""
    return op is not None and op.type.startswith(("QueueEnqueue", "QueueClose"))


def graph_of_new_ops() -> object:
    """Return the graph in which random ops are counted: a function's own, not that of a branch or loop inside it."""
    graph = tf.compat.v1.get_default_graph()
    while type(graph).__name__ in _BRANCHES:
        graph = graph.outer_graph
    return graph


def script_function_name() -> str:
    """Return the name of the innermost running function of the script, as it was before AutoGraph.

    In a thread that TensorFlow has made, such as that of a replica, it is the function for which the main thread waits.
    """
    for thread in (None, threading.main_thread().ident):
        for frame in script_frames.running_frames(thread):
            name = frame.f_code.co_name
            return name[4:] if name.startswith("tf__") else name
    return ""


def script_line_text() -> str:
    """Return the line of the script that is running in this thread, else in the main thread; "" without one."""
    for thread in (None, threading.main_thread().ident):
        for frame in script_frames.running_frames(thread):
            return f"{os.path.relpath(frame.f_code.co_filename)}:{frame.f_lineno}"
    return ""


def creation_line_of_op(op: Operation) -> str:
    """Return the innermost line of the script that creates an op; an empty text without one."""
    for frame in reversed(list(op.traceback or ())):
        if not script_frames.is_library(frame[0]):
            return f"{os.path.relpath(frame[0])}:{frame[1]}"
    return ""


def is_reachable(op: Operation, graph: Graph) -> bool:
    """Return True if new ops in a graph may use the outputs of an op: it is in the same or an outer control flow."""
    context, own = graph._get_control_flow_context(), op._control_flow_context
    while context is not None:
        if context is own:
            return True
        context = context.outer_context
    return own is None


def variable_graph_element(variable: Variable) -> Tensor:
    """Return the tensor of a variable that exists already, also in a finalized graph."""
    return getattr(variable, "_graph_element", None) if hasattr(variable, "_graph_element") else variable.value()


def fetched_op(graph: Graph, fetch: Fetches) -> Operation | None:
    """Return the op that computes a tensor, operation or variable that a session fetches; None for other fetches."""
    try:
        element = graph.as_graph_element(fetch)
    except (KeyError, TypeError, ValueError):
        return None
    return element if isinstance(element, tf.Operation) else element.op


def ops_of_update(result: Result) -> list[Operation]:
    """Return the ops of what an optimizer returns in a graph: operations, tensors, or a variable that it has assigned.

    Below a strategy of TensorFlow 1 it is the global step.
    """
    parts = tf.nest.flatten(result)
    ops = [getattr(part, "op", part) for part in parts if isinstance(part, (tf.Tensor, _resources._UnreadVariable))]
    return [*(part for part in parts if isinstance(part, tf.Operation)), *ops]


def global_step_read_ops(graph: Graph) -> list[Operation]:
    """Return the op, if there is one, with which hooks of TensorFlow read the global step."""
    return [tensor.op for tensor in graph.get_collection("global_step_read_op_cache")]


def is_summary_op(op: Operation) -> bool:
    """Return True for an op whose output is a serialized tf.compat.v1.Summary."""
    return op.type in ("MergeSummary", "ScalarSummary")


def function_call_ops(graph: Graph) -> list[Operation]:
    """Return the ops of a function that call functions. TensorFlow orders them by the variables that they use only.

    An optimizer that scales the loss updates variables in such an op, unless gradients overflow.
    """
    return [op for op in graph.get_operations() if op.type in ("If", "While", "StatefulPartitionedCall")]
