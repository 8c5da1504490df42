"""Private TensorFlow symbols and differences between TensorFlow versions; see also the other _tf_* modules.

Import it only from modules that need TensorFlow anyway.
"""

from __future__ import annotations

from typing import Any, Callable, Sequence

import numpy as np
import tensorflow as tf
from tensorflow.core.framework import attr_value_pb2, op_def_pb2
from tensorflow.core.protobuf import config_pb2, rewriter_config_pb2
from tensorflow.python.client import session as session_module
from tensorflow.python.distribute import (
    distribute_lib,
    numpy_dataset,
    one_device_strategy,
    values as distribute_values,  # noqa: F401
)
from tensorflow.python.eager import context as _context
from tensorflow.python.framework import function as _function, kernels as _kernels
from tensorflow.python.training import session_run_hook

try:
    from tensorflow.python.eager import record as _tape
except ImportError:  # TF 2.6 and before
    from tensorflow.python.eager import tape as _tape
try:
    from tensorflow.python.framework.ops import gradient_registry as _gradients
except ImportError:  # TF 1.15
    from tensorflow.python.framework.ops import _gradient_registry as _gradients
try:
    from tensorflow.python.client import pywrap_tf_session as _c_api
except ImportError:  # TF 1.15
    from tensorflow.python import pywrap_tensorflow as _c_api

v1 = tf.compat.v1
LAST_TF_WITH_ESTIMATOR = "2.15"
INFINITE_CARDINALITY = -1
UNKNOWN_CARDINALITY = -2

ConfigProto = config_pb2.ConfigProto
RewriterConfig = rewriter_config_pb2.RewriterConfig
SessionRunHook = session_run_hook.SessionRunHook
GraphDef = v1.GraphDef
BaseSession = session_module.BaseSession
Session = session_module.Session
InteractiveSession = session_module.InteractiveSession
ArrayDevice = numpy_dataset.SingleDevice  # where a strategy puts a variable that holds an array of the script
OneDeviceExtended = one_device_strategy.OneDeviceExtended
ReplicaContext = distribute_lib.ReplicaContext
# Whether XLA asks at each element if there is one, and so takes them singly, where threads cannot share them evenly
UNEVEN_IS_SLOW = tuple(map(int, tf.__version__.split(".")[:2])) >= (2, 19)
REPLICAS_HAVE_NUMBERS = hasattr(
    distribute_lib, "ReplicaContextBase"
)  # before TF 2.4 the number of a replica is a tensor

logging = v1.logging


def estimator() -> Any | None:
    """The ``tf.estimator`` namespace, or None where TensorFlow no longer has it."""
    try:
        api = tf.estimator
        api.Estimator  # the lazy loader raises only here
        return api
    except (AttributeError, ImportError):
        return None


def no_estimator_text(name: str) -> str:
    """The one error text for what needs tf.estimator."""
    return (
        f"{name} needs tf.estimator, which TensorFlow {tf.__version__} does not have; the last TensorFlow that has it "
        f"is {LAST_TF_WITH_ESTIMATOR}. Install tensorflow=={LAST_TF_WITH_ESTIMATOR}.*, or train with tf.compat.v1.Session."
    )


def keras_backend() -> Any:
    """The Keras backend with graph-mode sessions (``tf.compat.v1.keras.backend``); of Keras 3 where that is all there is."""
    return v1.keras.backend


def has_keras_sessions() -> bool:
    """False with Keras 3 (TF 2.16 and later), which has no sessions."""
    return hasattr(keras_backend(), "set_session")


def static_value(tensor: Any) -> Any:
    """The value of a constant tensor as numpy, None when it is not constant."""
    return tf.get_static_value(tensor) if hasattr(tf, "get_static_value") else v1.get_static_value(tensor)


def attr_scope(attrs: dict[str, bool | int | str]) -> Any:
    """Context manager: every op made inside carries these node attributes."""
    return v1.get_default_graph()._attr_scope({name: attr_value(value) for name, value in attrs.items()})


def attr_value(value: bool | int | str) -> attr_value_pb2.AttrValue:
    """A node attribute of a Python value."""
    if isinstance(value, bool):
        return attr_value_pb2.AttrValue(b=value)
    if isinstance(value, int):
        return attr_value_pb2.AttrValue(i=value)
    return attr_value_pb2.AttrValue(s=tf.compat.as_bytes(value))


def fetched(session: Any, fetches: Any) -> list[Any]:
    """The ops and tensors that ``session.run(fetches)`` asks for, names and nested structures resolved."""
    with session.graph.as_default():
        return session_module._FetchMapper.for_fetch(fetches).unique_fetches()


def never_opened(session: Any) -> None:
    """Lets a session object whose constructor failed be deleted without a word."""
    session._session, session._closed, session._default_session = None, True, None


def say_config(session: Any, config: Any) -> None:
    """Set the config that an open session reports, whatever config TensorFlow got."""
    session._config = config


def config_of(session: Any) -> Any | None:
    """Return the config that a session reports, None if it has none."""
    return session._config


def raw_session(session: Any) -> Any:
    """The tf.compat.v1.Session inside a monitored session; any other session itself."""
    inside = getattr(session, "_tf_sess", None)
    return inside() if inside is not None else session


def fed(session: Any, feed_dict: Any) -> list[Any]:
    """The tensors that a feed_dict gives values to."""
    found = []
    for key in feed_dict or ():
        if isinstance(key, (str, bytes)):
            key = session.graph.as_graph_element(tf.compat.as_str(key))
        parts = tf.nest.flatten(key, expand_composites=True)
        found += [part for part in parts if isinstance(part, tf.Tensor)]
    return found


def operator_types() -> list[str]:
    """The types of all operators that this TensorFlow has."""
    found = op_def_pb2.OpList.FromString(bytes(_c_api.TF_GetBuffer(_c_api.TF_GetAllOpList())))
    return [op.name for op in found.op]


def set_op_attr(op: Any, name: str, value: bool | int | str) -> None:
    """Puts an attribute on an op that is made already."""
    op._set_attr(name, attr_value(value))


def with_gradient(y: Any, inputs: Sequence[Any], gradient: str) -> Any:
    """y, whose gradient is a registered one instead of that of the ops which made it.

    It reads nothing but its op's own inputs, so it also holds inside loops,
    branches and functions, in control flow v1 and v2 and in every TF version:
    a function's own Python gradient is lost in TF 1.15's control flow v2.

    Args:
        y: the result.
        inputs: what y is a function of.
        gradient: name in tf.RegisterGradient; see gradient_of.
    """
    with _tape.stop_recording():
        (made,) = with_gradients([y], inputs, gradient)
    if not in_plain_graph():  # a tape inside a function follows what is recorded, and not the ops

        def backward(dy: Any) -> list[Any]:
            return _gradients.lookup(gradient)(made.op, dy)[1:]

        _tape.record_operation(gradient, [made], list(inputs), backward)
    return made


def with_gradients(ys: Sequence[Any], inputs: Sequence[Any], gradient: str) -> list[Any]:
    """Several results of the same inputs, as with_gradient."""
    with v1.get_default_graph().gradient_override_map({"IdentityN": gradient}):
        return tf.identity_n(list(ys) + list(inputs))[: len(ys)]


def in_plain_graph() -> bool:
    """False where TensorFlow acts eagerly, and in a graph of tf.function, whose gradients a tape takes."""
    return not tf.executing_eagerly() and not v1.get_default_graph().building_function


def outside_control_flow() -> bool:
    """Whether an op made here stands in a graph's outermost level: in no loop, branch or function."""
    return in_plain_graph() and v1.get_default_graph()._get_control_flow_context() is None


def either(is_first: Any, inputs: Sequence[Any], first: Callable[..., Any], second: Callable[..., Any]) -> Any:
    """first(*inputs) or second(*inputs), tensors in one structure, by a bool tensor; outside control flow only.

    As tf.cond, without its cost: that makes each constant of a branch an op
    that runs, and copies of the predicate, some microseconds in all. It has no
    gradient; see with_gradient.
    """
    sides = [tf.raw_ops.Switch(data=x, pred=is_first) for x in inputs]
    for x, side in zip(inputs, sides):
        for y in side:
            y.set_shape(x.shape)
    made = second(*[side[0] for side in sides]), first(*[side[1] for side in sides])
    return tf.nest.map_structure(lambda *results: tf.raw_ops.Merge(inputs=results)[0], *made)


def gradient_of(function: Callable) -> Callable:
    """A gradient to register for with_gradient: ``function(*inputs, dy)`` gives a gradient for each input."""

    def registered(op: Any, dy: Any, *unused: Any) -> list[Any]:
        return [None] + list(function(*op.inputs[1:], dy))

    return registered


# ---- compiled functions


def no_tape() -> Any:
    """Context manager: no tape follows what is computed inside, whose gradient with_gradient says."""
    return _tape.stop_recording()


def has_cpu_kernel(op_type: str) -> bool:
    """Whether this TensorFlow has the operator, with a kernel for CPUs."""
    found = _kernels.get_registered_kernels_for_op(op_type)
    return any(kernel.device_type == "CPU" for kernel in found.kernel)


def graph_function(function: Callable, types: Sequence[Any]) -> Any:
    """A function of tensors as a function of a graph's library, to be called, or for call_compiled.

    It is traced in a graph of its own, so that it has no device, scope or
    control dependency of the place where it is needed first.
    """
    made = _function.Defun(*types, noinline=True)(function)
    with tf.Graph().as_default() as graph:
        made.add_to_graph(graph)
    return made


def call_compiled(function: Any, inputs: Sequence[Any], constants: int = 0) -> Any:
    """The op that compiles a graph_function and runs it; its one result, whose shape it does not know.

    TensorFlow 2 compiles a call that is marked so, and where it was built
    without XLA it runs the function's own ops: a graph with such a call loads
    everywhere. TF 1.15 does not know the mark; its op for this is XlaLaunch.
    (Defun(compiled=True) is another thing in both: a mark for the clustering
    pass, which takes the ops around the call into the compilation too.)

    Args:
        function: made by graph_function.
        inputs: of the function.
        constants: of how many inputs, the first ones, each value is compiled by itself.
    """
    if not tf.__version__.startswith("1."):
        if v1.executing_eagerly_outside_functions() and not _context.context().has_function(function.name):
            _context.context().add_function_def(function.definition)  # which a Defun does for graphs only
        result = function(*inputs)
        set_op_attr(
            result.op, "_XlaMustCompile", True
        )  # not by attr_scope: loops and branches add ops to lead inputs in
        return result
    graph = v1.get_default_graph()
    function.add_to_graph(graph)
    result = function.definition.signature.output_arg[0].type
    types = attr_value_pb2.AttrValue.ListValue
    kinds = [x.dtype.as_datatype_enum for x in inputs]
    return graph.create_op(
        "XlaLaunch",
        list(inputs),
        [tf.as_dtype(result)],
        attrs={
            "function": attr_value_pb2.AttrValue(func=attr_value_pb2.NameAttrList(name=function.name)),
            "Tconstants": attr_value_pb2.AttrValue(list=types(type=kinds[:constants])),
            "Targs": attr_value_pb2.AttrValue(list=types(type=kinds[constants:])),
            "Nresources": attr_value(0),
            "Tresults": attr_value_pb2.AttrValue(list=types(type=[result])),
        },
    ).outputs[0]


# ---- tf.data


def dataset_inputs(dataset: Any) -> list[Any]:
    """The datasets a dataset reads from."""
    return [unwrap_dataset(d) for d in unwrap_dataset(dataset)._inputs()]


def unwrap_dataset(dataset: Any) -> Any:
    """A TF 1 dataset is a shell around the real one."""
    while isinstance(dataset, v1.data.Dataset) and hasattr(dataset, "_dataset"):
        dataset = dataset._dataset
    return dataset


def dataset_kind(dataset: Any) -> str:
    """What a dataset is, without the version's spelling: 'Batch', 'Repeat', 'Map' ..."""
    name = type(unwrap_dataset(dataset)).__name__.lstrip("_")
    return name[: -len("Dataset")] if name.endswith("Dataset") else name


def dataset_batch_size(dataset: Any) -> int | None:
    """The constant batch size of a batching dataset; None when it is not constant."""
    real = unwrap_dataset(dataset)
    size = getattr(real, "_batch_size_t", None)
    value = static_value(real._batch_size if size is None else size)
    return None if value is None else int(value)


def element_structure(dataset: Any) -> Any:
    """Shapes, types and classes of one element, each nested as the element is."""
    return v1.data.get_output_shapes(dataset), v1.data.get_output_types(dataset), v1.data.get_output_classes(dataset)


def cardinality(dataset: Any) -> int:
    """How many elements a dataset has; negative when infinite or unknown. Reads no element.

    In graph mode it is evaluated in a session of its own; a dataset made from
    placeholders or tables cannot be, and counts as unknown.
    """
    return _number(tf.data.experimental.cardinality(dataset))


def count_elements(dataset: Any) -> int:
    """How many elements a dataset has, found by reading them all; unknown as in cardinality."""
    return _number(dataset.reduce(np.int64(0), lambda count, *_: count + 1))


def _number(tensor: Any) -> int:
    if tf.executing_eagerly():
        return int(tensor)
    try:
        with v1.Session(graph=tensor.graph) as sess:
            return int(sess.run(tensor))
    except tf.errors.OpError:
        return UNKNOWN_CARDINALITY


def smart_cond(pred: Any, true_fn: Callable, false_fn: Callable) -> Any:
    """A branch decided now where pred is known, and in the graph where it is not."""
    if isinstance(pred, tf.Variable):
        return v1.cond(tf.cast(pred, tf.bool), true_fn, false_fn)
    known = static_value(pred) if isinstance(pred, tf.Tensor) else pred
    if known is not None:
        return true_fn() if known else false_fn()
    return v1.cond(tf.cast(pred, tf.bool), true_fn, false_fn)
