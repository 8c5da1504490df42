"""Private parts of TensorFlow that recordings need: seeds of ops, control flow of graphs."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Callable

import tensorflow as tf
from tensorflow.python.client import session as _session
from tensorflow.python.framework import random_seed as _random_seed

from npu_shim._tensorflow import script_frames, tf_autograph as tf_autograph  # the second for its effect

if TYPE_CHECKING:
    from npu_shim._tensorflow.types import Fetches, Function, Graph, Operation, Result, Tensor, Value, Variable

BaseSession = _session.BaseSession
_BRANCHES = ("CondBranchFuncGraph", "WhileBodyFuncGraph", "WhileCondFuncGraph")


def replace_get_seed(make: Callable[[Function], Function]) -> None:
    """Replace the function with which random ops and datasets make their two seeds from one."""
    _random_seed.get_seed = make(_random_seed.get_seed)


def seed_random_boxes(next_seed: Callable[[], int]) -> None:
    """Give tf.image.sample_distorted_bounding_box a seed where the script gives none.

    The function asks for no seed as other random ops do. With deterministic ops it then fails from TensorFlow 2.9 on.
    """

    def make(original: Function) -> Function:
        def sample(
            image_size: Value, bounding_boxes: Value, seed: int | None = None, *args: Any, **kwargs: Any
        ) -> Result:
            return original(image_size, bounding_boxes, seed or next_seed(), *args, **kwargs)

        return sample

    name = "sample_distorted_bounding_box"
    for owner in {tf.image, tf.compat.v1.image}:
        setattr(owner, name, make(getattr(owner, name)))


def set_default_seed() -> None:
    """Set the global seed of eager code to what ops with a seed of their own take for it if it is not set."""
    if tf.executing_eagerly():
        tf.random.set_seed(_random_seed.DEFAULT_GRAPH_SEED)


def set_default_graph_seed() -> None:
    """Do the same for the default graph, if the script has not set its seed."""
    if not tf.executing_eagerly() and tf.compat.v1.get_default_graph().seed is None:
        tf.compat.v1.set_random_seed(_random_seed.DEFAULT_GRAPH_SEED)


def graph_of_op() -> object:
    """Return the graph in which random ops are counted: a function's own, not that of a branch or loop inside it."""
    graph = tf.compat.v1.get_default_graph()
    while type(graph).__name__ in _BRANCHES:
        graph = graph.outer_graph
    return graph


def script_function() -> str:
    """Return the name of the innermost running function of the script, as it was before AutoGraph.

    In a thread that TensorFlow has made, such as that of a replica, it is the function for which the main thread waits.
    """
    for thread in (None, threading.main_thread().ident):
        for frame in script_frames.running(thread):
            name = frame.f_code.co_name
            return name[4:] if name.startswith("tf__") else name
    return ""


def is_reachable(op: Operation, graph: Graph) -> bool:
    """Return True if new ops in a graph may use the outputs of an op: it is in the same or an outer control flow."""
    context, own = graph._get_control_flow_context(), op._control_flow_context
    while context is not None:
        if context is own:
            return True
        context = context.outer_context
    return own is None


def graph_element(variable: Variable) -> Tensor:
    """Return the tensor of a variable that exists already, also in a finalized graph."""
    return getattr(variable, "_graph_element", None) if hasattr(variable, "_graph_element") else variable.value()


def fetched_op(graph: Graph, fetch: Fetches) -> Operation | None:
    """Return the op that computes a tensor, operation or variable that a session fetches; None for other fetches."""
    try:
        element = graph.as_graph_element(fetch)
    except (KeyError, TypeError, ValueError):
        return None
    return element if isinstance(element, tf.Operation) else element.op


def global_step_of_hooks(graph: Graph) -> list[Operation]:
    """Return the op, if there is one, with which hooks of TensorFlow read the global step."""
    return [tensor.op for tensor in graph.get_collection("global_step_read_op_cache")]


def is_summary(op: Operation) -> bool:
    """Return True for an op whose output is a serialized tf.compat.v1.Summary."""
    return op.type in ("MergeSummary", "ScalarSummary")
