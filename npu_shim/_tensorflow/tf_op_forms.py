"""Other forms of ops: what is computed in place of an op that a script creates in a graph or runs eagerly.

A form is chosen by the type, inputs and attributes of the op, before there is one. Whoever creates the op gets the
results of its form. In a graph, the ops of a form are in a name scope, and its results have the name that the op would
have.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from typing import Callable, Iterable, Iterator, List, Mapping, NamedTuple, Optional, Sequence

import numpy as np
import tensorflow as tf
from tensorflow.python.framework import op_def_registry as _registry, ops as _ops

from npu_shim._tensorflow import tf_api, tf_gradients
from npu_shim._tensorflow.tf_graph import add_to_rehearsal_op_count, script_op_count, set_op_attr
from npu_shim._tensorflow.types import (
    DType,
    Function,
    Graph,
    Message,
    Operation,
    Structure,
    Tensor,
    TensorShape,
    Value,
)

v1 = tf.compat.v1
_IS_1 = tf.__version__.startswith("1.")
_RESULT = "_npu_shim_form"  # an attribute of the node with the results of a form
_NODE = "_npu_shim_form_of"  # another one, with the node of the op, if it has the gradient of that


class AskedOp(NamedTuple):
    """An op that a script asks for.

    Attributes:
        type: of the op.
        inputs: tensors, or lists of them, by the names of the operator's definition. While a form is chosen, variables
            and others with a shape, too.
        attributes: those given, and the others with their default values.
    """

    type: str
    inputs: Mapping[str, Structure]
    attributes: Mapping[str, Value]

    def run(self, changes: Mapping[str, Structure], op_type: str = "") -> list[Tensor]:
        """Create the op, or one of another type, with some other inputs and attributes. Return its outputs."""
        names = [arg.name for arg in operator_definition(op_type or self.type).input_arg]
        names += [attr.name for attr in operator_definition(op_type or self.type).attr]
        given = {name: value for name, value in {**self.attributes, **self.inputs, **changes}.items() if name in names}
        taken = {name: value for name, value in given.items() if name not in _inferred_attributes(op_type or self.type)}
        outputs = getattr(tf.raw_ops, op_type or self.type)(**taken)
        return list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]


# Returns what computes the outputs, or None where the op itself is to be created.
Chooser = Callable[[AskedOp], Optional[Callable[[], Sequence["Tensor"]]]]


class Form(NamedTuple):
    """A form of one type of op.

    Attributes:
        choose: returns what computes the outputs.
        dtypes: if there are some, ops without an input of one of them have no form.
    """

    choose: Chooser
    dtypes: frozenset[DType] = frozenset()

    def is_for(self, values: Sequence[Value]) -> bool:
        """Return False for values, inputs among them, of other types."""
        return not self.dtypes or any(_dtype_or_none(value) in self.dtypes for value in values)


def _dtype_or_none(value: Value) -> DType | None:
    return getattr(getattr(value, "dtype", None), "base_dtype", None)


class _State(threading.local):
    is_plain = False


_STATE = _State()


@contextlib.contextmanager
def create_ops_without_forms() -> Iterator[None]:
    """Return a context manager inside which ops of this thread have no form."""
    before, _STATE.is_plain = _STATE.is_plain, True
    try:
        yield
    finally:
        _STATE.is_plain = before


class FormOutputs(List["Tensor"]):
    """The results of a form, as the generated op functions handle them. Tapes have recorded the ops of the form."""

    def __getitem__(self, place: Value) -> Value:
        outputs = super().__getitem__(place)
        return FormOutputs(outputs) if isinstance(place, slice) else outputs


class FormedOp:
    """Stands for the op where the generated op functions ask it for outputs and attributes."""

    def __init__(self, asked: AskedOp, last: Operation, outputs: Sequence[Tensor]) -> None:
        self.type, self.inputs, self.outputs = asked.type, flatten_values(asked.inputs.values()), FormOutputs(outputs)
        self._asked, self._last = asked, last

    def get_attr(self, name: str) -> Value:
        """Return an attribute of the op."""
        return self._asked.attributes.get(name)

    _get_attr_type = _get_attr_bool = _get_attr_int = get_attr

    def __getattr__(self, name: str) -> Value:
        return getattr(self._last, name)


def create_form_in_graph(
    form: Form,
    op_type: str,
    name: str | None,
    keywords: Mapping[str, Structure],
    change: Callable[[list[Tensor]], list[Tensor]],
) -> FormedOp | None:
    """Return what stands for an op of a graph, or None where the op itself is to be created.

    Args:
        form: chooses the form.
        op_type: the type of the op.
        name: its name; None for its type.
        keywords: its inputs and attributes by name.
        change: returns the inputs that the op gets instead of its own.
    """
    values = flatten_values(keywords.values())
    given = _asked_op_of_keywords(op_type, keywords) if not _STATE.is_plain and form.is_for(values) else None
    if given is None or form.choose(given) is None:
        return None  # before anything is added to the graph
    with _ops._get_graph_from_inputs(values).as_default() as graph:
        given = given._replace(
            inputs=_nest_like_inputs(given.inputs, _capture_outer_inputs(graph, flatten_values(given.inputs.values())))
        )
        if form.choose(given) is None:
            return None  # inside a function, what it takes from outside is no result of a form
        # Some code of TensorFlow asks for a GPU by its name.
        with v1.device("/device:CPU:0"), v1.name_scope(name or op_type) as scope:
            asked = _convert_inputs_to_tensors(given)
            asked = asked._replace(
                inputs=_nest_like_inputs(
                    asked.inputs, _capture_outer_inputs(graph, flatten_values(asked.inputs.values()))
                )
            )
            _add_control_flow_entries(graph, flatten_values(asked.inputs.values()))
            before = script_op_count()
            asked = asked._replace(
                inputs=_nest_like_inputs(asked.inputs, change(flatten_values(asked.inputs.values())))
            )
            results = _results_of_form(form, asked, scope)
        set_op_attr(results[0].op, _RESULT, True)
        add_to_rehearsal_op_count(graph, script_op_count() - before - 1)  # on the NPU it is one op
        return FormedOp(asked, results[0].op, results)


def _capture_outer_inputs(graph: Graph, inputs: Sequence[Value]) -> list[Value]:
    """Return inputs with the tensors that a function takes for those from outside, as the op itself would add them."""
    is_function = hasattr(graph, "capture")
    return [graph.capture(value) if is_function and isinstance(value, tf.Tensor) else value for value in inputs]


def _add_control_flow_entries(graph: Graph, inputs: Sequence[Tensor]) -> None:
    """Add the ops that bring tensors into the loop or branch of a new op, as the op itself would."""
    context = graph._get_control_flow_context()
    for tensor in inputs if context is not None else ():
        context.AddValue(tensor)


def _results_of_form(form: Form, asked: AskedOp, scope: str) -> list[Tensor]:
    """Return the results of a form, which are those of one node.

    With TensorFlow 1 its gradient is that of the op, as on the NPU: the number of ops in a graph is a seed there. A
    graph that is saved has the gradient of the ops of the form where npu_shim is not imported.
    """
    if not _IS_1 or tf_gradients.registered_gradient(asked.type) is None:
        results = list(_form_computation(form, asked)())
        if len(results) == 1:
            return [tf.identity(results[0], name=scope)]
        return list(tf.identity_n(results, name=scope))
    inputs = flatten_values(asked.inputs.values())
    with tf_gradients.stop_recording():
        results = list(_form_computation(form, asked)())
        named = tf.identity_n([*results, *inputs], name=scope)[: len(results)]
    set_op_attr(named[0].op, _NODE, _node_of(asked).SerializeToString())
    tf_gradients.record_on_tapes(
        asked.type, named, inputs, lambda *upstream: _gradient_of_asked_op(_Op(named[0].op), upstream)
    )
    return named


def _node_of(asked: AskedOp) -> Message:
    """Return the node that the op would have, from a graph of its own."""
    with tf.Graph().as_default(), create_ops_without_forms():
        inputs = [
            v1.placeholder(tensor.dtype.base_dtype, tensor.shape) for tensor in flatten_values(asked.inputs.values())
        ]
        return asked._replace(inputs=_nest_like_inputs(asked.inputs, inputs)).run({})[0].op.node_def


class _Op:
    """The op of a form, as its gradient asks for it."""

    def __init__(self, last: Operation) -> None:
        self._last, self._node = last, v1.NodeDef.FromString(last.get_attr(_NODE))
        number = len(last.inputs) - len(self._node.input)
        self.type, self.inputs = self._node.op, last.inputs[number:]
        # What only gradients read comes from the form. TensorFlow removes a node with one result, and its transposes.
        # A function returns what its gradients read, and gets gradients for that.
        rest = last.outputs if hasattr(last.graph, "outer_graph") else last.inputs
        self.outputs = [last.outputs[0], *rest[1:number]]

    def get_attr(self, name: str) -> Value:
        """Return an attribute of the op."""
        value = self._node.attr[name]
        return tf.as_dtype(value.type) if value.WhichOneof("value") == "type" else _attr_as_python_value(value)

    def __getattr__(self, name: str) -> Value:
        return getattr(self._last, name)


def _is_form_result(op: Operation) -> bool:
    """Return True for a node with the results of a form that has the gradient of its op."""
    return op.type == "IdentityN" and _NODE in op.node_def.attr


def look_up_gradient(original: Function, op: Operation) -> Function | None:
    """Return the gradient of any op, given the function of TensorFlow that looks it up."""
    return _gradient_of_result_node if _is_form_result(op) else original(op)


def zeros_for_output(original: Callable[[Operation, int], Tensor], op: Operation, index: int) -> Tensor:
    """Return zeros in place of the gradient of an output, as TensorFlow 1 makes them, or those of the op of a form.

    Args:
        original: makes them. It reads the output, which a function then takes from the function that it belongs to.
        op: any op.
        index: of the output.
    """
    if not _is_form_result(op):
        return original(op, index)
    of_form = _Op(op)
    return original(of_form, index) if index < len(of_form.outputs) else v1.zeros([], op.outputs[index].dtype)


def _gradient_of_result_node(last: Operation, *upstream: Tensor) -> list[Tensor | None]:
    """Return the gradient of the node with the results of a form: that of its op, for the inputs of the op."""
    op = _Op(last)
    number = len(op.outputs)
    # TensorFlow has made zeros for the others, which the op does not have.
    add_to_rehearsal_op_count(v1.get_default_graph(), sum(gradient is not None for gradient in upstream[number:]))
    return [None] * number + _gradient_of_asked_op(op, upstream[:number])


def _gradient_of_asked_op(op: _Op, upstream: Sequence[Tensor]) -> list[Tensor | None]:
    function = tf_gradients.registered_gradient(op.type)
    assert function is not None, op.type
    return flatten_values([function(op, *upstream)])


def run_form_eagerly(form: Form, op_type: str, arguments: Sequence[Structure]) -> list[Tensor] | None:
    """Return the results of an op that is run eagerly, or None where the op itself is to be run.

    Args:
        form: chooses the form.
        op_type: the type of the op.
        arguments: its inputs in order; then names of attributes, each followed by its value.
    """
    if _STATE.is_plain or not form.is_for(arguments):
        return None
    inputs = operator_definition(op_type).input_arg
    if any(arg.number_attr for arg in inputs):
        return None  # forms of ops with lists only save transposes in graphs
    names = [arg.name for arg in inputs]
    keywords = dict(zip(names, arguments))
    rest = arguments[len(names) :]
    keywords.update(zip(map(tf.compat.as_str, rest[::2]), rest[1::2]))
    if any(isinstance(value, tf.Tensor) and not hasattr(value, "numpy") for value in flatten_values(keywords.values())):
        return None  # a tensor of a graph, which the caller adds the op to
    given = _asked_op_of_keywords(op_type, keywords)
    return (
        None
        if given is None or form.choose(given) is None
        else list(_form_computation(form, _convert_inputs_to_tensors(given))())
    )


def inner_tensor_of_result(tensor: Tensor) -> Tensor | None:
    """Return the last tensor inside a form whose result this tensor of a graph is; None for others."""
    if not isinstance(tensor, tf.Tensor) or isinstance(tensor, _ops.EagerTensor):
        return None
    op = tensor.op
    if op.type not in ("Identity", "IdentityN") or _RESULT not in op.node_def.attr:
        return None
    return op.inputs[tensor.value_index]


def name_prefixes_of_forms(nodes: Iterable[Message]) -> tuple[str, ...]:
    """Return what the names of the nodes begin with that are parts of forms."""
    return tuple(node.name + "/" for node in nodes if node.op in ("Identity", "IdentityN") and _RESULT in node.attr)


def static_shape_from_sizes(sizes: Value) -> TensorShape:
    """Return the shape that an input of sizes has, as far as it is known."""
    return tf.TensorShape(list(sizes.value)) if isinstance(sizes, _Constant) else tf_api.shape_from_sizes(sizes)


def asked_op_of_node(node: Message, inputs: Sequence[Tensor]) -> AskedOp:
    """Return the op of a node, given its inputs in order, without lists of types."""
    definition = operator_definition(node.op)
    names = {attr.name for attr in definition.attr} - _inferred_attributes(node.op)
    attributes = {
        name: _node_attribute(node, name) for name in names if name in node.attr or name in _default_attributes(node.op)
    }
    left = iter(inputs)
    given = {
        arg.name: [next(left) for _ in range(_node_attribute(node, arg.number_attr))] if arg.number_attr else next(left)
        for arg in definition.input_arg
    }
    return AskedOp(node.op, given, attributes)


def dtypes_of_inputs(node: Message) -> list[DType]:
    """Return the types of the inputs of a node, without lists of types."""
    return [
        tf.as_dtype(_node_attribute(node, arg.type_attr) if arg.type_attr else arg.type)
        for arg in operator_definition(node.op).input_arg
        for _ in range(_node_attribute(node, arg.number_attr) if arg.number_attr else 1)
    ]


def _node_attribute(node: Message, name: str) -> Value:
    """Return an attribute of a node, which may leave default values out."""
    return _attr_as_python_value(node.attr[name]) if name in node.attr else _default_attributes(node.op)[name]


def flatten_values(values: Iterable[Structure]) -> list[Value]:
    """Return values, with those of lists among them one by one."""
    return [part for value in values for part in (value if isinstance(value, (list, tuple)) else [value])]


def _nest_like_inputs(inputs: Mapping[str, Structure], values: Sequence[Tensor]) -> dict[str, Structure]:
    left = iter(values)
    return {
        name: [next(left) for _ in value] if isinstance(value, (list, tuple)) else next(left)
        for name, value in inputs.items()
    }


def operator_definition(op_type: str) -> Message:
    """Return the definition of an operator; None if there is none."""
    return _registry.get_registered_ops().get(op_type) if _IS_1 else _registry.get(op_type)


@functools.lru_cache(maxsize=None)
def _inferred_attributes(op_type: str) -> frozenset[str]:
    """Return the attributes that follow from the inputs, which the generated functions do not take."""
    inputs = operator_definition(op_type).input_arg
    return frozenset(name for arg in inputs for name in (arg.type_attr, arg.number_attr) if name)


@functools.lru_cache(maxsize=None)
def _default_attributes(op_type: str) -> Mapping[str, Value]:
    return {
        attr.name: _attr_as_python_value(attr.default_value)
        for attr in operator_definition(op_type).attr
        if attr.HasField("default_value")
    }


class _Constant:
    """An array or list that an op is given, before it is a tensor."""

    def __init__(self, value: Value) -> None:
        self.value, self.shape = value, tf.TensorShape(np.shape(value))


def _asked_op_of_keywords(op_type: str, keywords: Mapping[str, Structure]) -> AskedOp | None:
    """Return an op with its inputs as they are given; None if one is missing, which its creation reports."""
    definition = operator_definition(op_type)
    attributes = dict(_default_attributes(op_type))
    attributes.update(
        (attr.name, keywords[attr.name]) for attr in definition.attr if keywords.get(attr.name) is not None
    )
    for name, value in attributes.items():
        if isinstance(value, bytes):
            attributes[name] = value.decode()
    inputs: dict[str, Structure] = {}
    try:
        for arg in definition.input_arg:
            value = keywords[arg.name]
            inputs[arg.name] = (
                [_refine_static_shape(part) for part in value] if arg.number_attr else _refine_static_shape(value)
            )
    except (KeyError, TypeError, ValueError):
        return None
    return AskedOp(op_type, inputs, attributes)


def _refine_static_shape(value: Value) -> Value:
    return value if isinstance(getattr(value, "shape", None), tf.TensorShape) else _Constant(value)


def _convert_inputs_to_tensors(asked: AskedOp) -> AskedOp:
    dtypes: dict[str, DType] = {}
    inputs: dict[str, Structure] = {}

    def tensor(value: Value, dtype: DType | None) -> Tensor:
        return tf.convert_to_tensor(value.value if isinstance(value, _Constant) else value, dtype)

    for arg in operator_definition(asked.type).input_arg:
        values = flatten_values([asked.inputs[arg.name]])
        dtype = None
        if not arg.type_attr:
            dtype = tf.as_dtype(arg.type)
        else:
            known = [typed.dtype for typed in values if not isinstance(typed, _Constant)]
            dtype = dtypes.get(arg.type_attr) or (tf.as_dtype(known[0]).base_dtype if known else None)
        tensors = [tensor(value, dtype) for value in values]
        if arg.type_attr and tensors:
            dtypes.setdefault(arg.type_attr, tensors[0].dtype.base_dtype)
        inputs[arg.name] = tensors if arg.number_attr else tensors[0]
    return asked._replace(inputs=inputs)


def _form_computation(form: Form, asked: AskedOp) -> Callable[[], Sequence[Tensor]]:
    compute = form.choose(asked)
    assert compute is not None, asked.type  # the shapes are those of before
    return compute


def _attr_as_python_value(default: Message) -> Value:
    kind = default.WhichOneof("value")
    value = getattr(default, kind)
    if kind != "list":
        return value
    return [element for _, values in value.ListFields() for element in values]
