"""Run source and exported model on the same inputs, and compare their outputs."""

from __future__ import annotations

from typing import Dict, NamedTuple

import numpy as np

from npu_shim._tensorflow import tf_api, tf_capture
from npu_shim._tensorflow.types import GraphDef, Session, Tensor, Value
from npu_shim.exporting.graph_defs import ExportError, split_tensor_name
from npu_shim.exporting.inference_model import Model
from npu_shim.exporting.ports import Port

tf, v1 = tf_api.tf, tf_api.v1
TOLERANCE = 1e-5
_HALF = {tf.float16: 5e-3, tf.bfloat16: 4e-2}  # five roundings
_STORES = ("Const", "Placeholder", "Identity")
_EXAMPLES = 2  # for a batch of any size
Values = Dict[str, np.ndarray]  # by key


class Difference(NamedTuple):
    """The difference of an output from the source's.

    Attributes:
        key: of the output.
        largest: the largest difference, relative to the largest value; for integers the share that differs.
        shapes: for the user, if they differ.
    """

    key: str
    largest: float
    shapes: str = ""

    def text(self) -> str:
        """Return a line for the user."""
        return f"{self.key}: {self.shapes or f'largest difference {self.largest:.1e}'}"


def random_inputs(inputs: list[Port], low: float, high: float, seed: int = 0) -> Values:
    """Return inputs drawn by shape and range; integers are at least 0 and below ``high``, or 2."""
    random, arrays = np.random.RandomState(seed), {}
    for port in inputs:
        if port.shape is None:
            raise ExportError(f"{port.key} has no known rank. Give its shape with --inputs {port.key}:SHAPE.")
        shape = [_EXAMPLES if size is None else size for size in port.shape]
        if port.dtype == tf.string:
            raise ExportError(f"{port.key} is a string, and no values can be drawn. Give --data FILE.npz.")
        bounds = (0, 2) if port.dtype == tf.bool else (max(0, int(low)), max(2, int(high)))
        value = random.uniform(low, high, shape) if port.dtype.is_floating else random.randint(*bounds, shape)
        arrays[port.key] = np.asarray(value).astype(port.dtype.as_numpy_dtype)
    return arrays


def load_input_values(path: str, inputs: list[Port]) -> Values:
    """Read inputs from a file of arrays, by key or name of a tensor."""
    try:
        with np.load(path, allow_pickle=False) as stream:
            there = dict(stream)
    except (OSError, ValueError) as error:
        raise ExportError(f"{path}: {error}. Give a file that numpy.savez wrote.")
    arrays = {}
    for port in inputs:
        name = port.key if port.key in there else split_tensor_name(port.tensor)[0]
        if name not in there:
            raise ExportError(f"{path} has no array {port.key}, only {', '.join(there)}. Name one {port.key}.")
        value = there[name].astype(port.dtype.as_numpy_dtype)
        if not tf.TensorShape(port.shape).is_compatible_with(value.shape):
            raise ExportError(f"{path}: {port.key} has the shape {value.shape}, not {port.shape}. Give that shape.")
        arrays[port.key] = value
    return arrays


def run_graph(nodes: GraphDef, variables: Values, inputs: list[Port], outputs: list[Port], values: Values) -> Values:
    """Return the outputs of a graph with the given values of variables and inputs."""
    config = v1.ConfigProto()
    # It fuses ops of constant weights, which the source does not have, and TensorFlow 2.15 loses an epsilon by it.
    config.graph_options.rewrite_options.remapping = tf_api.RewriterConfig.OFF
    with tf_capture.import_into_new_graph(nodes).as_default() as graph, v1.Session(config=config) as session:
        for name, value in variables.items():
            _set_variable(session, graph.get_tensor_by_name(f"{name}:0"), value)
        feed = {port.tensor: values[port.key] for port in inputs}
        try:
            return dict(session.run({port.key: port.tensor for port in outputs}, feed))
        except tf.errors.InvalidArgumentError as error:
            reason = f"the model does not run on these inputs: {str(error).splitlines()[0]}. "
            raise ExportError(reason + "Give shapes with --inputs, a range with --range, or real ones with --data.")


def _set_variable(session: Session, variable: Tensor, value: Value) -> None:
    given, is_handle = v1.placeholder(value.dtype, value.shape), variable.dtype == tf.resource
    assign = tf.raw_ops.AssignVariableOp if is_handle else tf.raw_ops.Assign
    session.run(assign(**{"resource" if is_handle else "ref": variable, "value": given}), {given: value})


def output_tolerance(model: Model) -> float:
    """Return the largest difference of equal outputs, which is larger where the model computes with 16 bits.

    An op with the types of another form, such as that of an op without a kernel for bfloat16, casts its result to them.
    """
    nodes = [node for node in model.graph.node if node.op not in _STORES]
    types = {attribute.type for node in nodes for name, attribute in node.attr.items() if name != "SrcT"}
    return max([TOLERANCE, *(size for dtype, size in _HALF.items() if dtype.as_datatype_enum in types)])


def output_differences(expected: Values, computed: Values) -> list[Difference]:
    """Return the difference of each output."""
    differences = []
    for key, one in expected.items():
        one, two, largest, shapes = np.asarray(one), np.asarray(computed[key]), float("inf"), ""
        if one.shape != two.shape:
            shapes = f"shape {two.shape}, in the source {one.shape}"
        elif one.dtype.kind in "iubSO":
            largest = float(np.mean(one != two)) if one.size else 0.0
        else:
            one, two = one.astype(np.float64), two.astype(np.float64)
            with np.errstate(invalid="ignore"):
                apart = np.where((one == two) | np.isnan(one) & np.isnan(two), 0.0, np.abs(one - two))
            scale = np.abs(one[np.isfinite(one)]).max(initial=0.0) or 1.0
            largest = float(np.where(np.isnan(apart), np.inf, apart).max(initial=0.0) / scale)
        differences.append(Difference(key, largest, shapes))
    return differences
