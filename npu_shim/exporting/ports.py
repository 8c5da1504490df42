"""Inputs and outputs of a model: from the command, from a signature, or candidates of the graph."""

from __future__ import annotations

import re
from typing import Iterable, NamedTuple

from npu_shim._tensorflow import tf_api
from npu_shim._tensorflow.types import DType, Graph, GraphDef, Operation, Tensor
from npu_shim.exporting.graph_defs import VARIABLES, ExportError, extract_subgraph, key_of_tensor, split_tensor_name
from npu_shim.exporting.inference import is_mode_placeholder
from npu_shim.exporting.sources import DEFAULT, Source

tf = tf_api.tf
_SPEC = re.compile(r"^(?:(?P<key>[\w.\-]+)=)?(?P<tensor>[^:=;\s]+(?::\d+(?=:)|:0$)?)(?::(?P<shape>[\d,?\-\s]*))?$")
_ITERATORS = ("IteratorGetNext", "IteratorGetNextSync", "IteratorV2", "OneShotIterator")
_QUEUES = ("QueueDequeueV2", "QueueDequeueManyV2", "QueueDequeueUpToV2", "ReaderReadV2")
FED = ("Placeholder", "PlaceholderV2", "PlaceholderWithDefault", *_ITERATORS[:2], *_QUEUES)
_NO_RESULT = re.compile(r"^(gradients|save|report_uninitialized|init|training|Adam|Momentum|GradientDescent)(_\d+)?/")
_LIKELY = re.compile(r"softmax|logits|prob|predict|output|sigmoid|score|argmax|boxes|embedding", re.I)
_LIKELY_TYPES = ("Softmax", "Sigmoid", "ArgMax")
_LOSSES = ("SparseSoftmaxCrossEntropyWithLogits", "SoftmaxCrossEntropyWithLogits", "SquaredDifference", "CTCLoss")
_DISTANCES = ("Square", "Abs", "L2Loss", "Pow")  # of a difference
_NO_RESULT_TYPES = re.compile("Shape|Size|Rank|ZerosLike|OnesLike|Assign")
_MOST_LISTED = 20
_WITHOUT_STRINGS = ("onnx", "npu", "atc")


class Port(NamedTuple):
    """An input or output of the exported model.

    Attributes:
        key: its name in signatures and data files.
        tensor: its name in the source.
        dtype: its type.
        shape: its sizes, None for unknown ones; None if even their number is unknown.
    """

    key: str
    tensor: str
    dtype: DType
    shape: list[int | None] | None

    def text(self) -> str:
        """Return it as ``--inputs`` takes it, with its type."""
        sizes = "?" if self.shape is None else ",".join("?" if size is None else str(size) for size in self.shape)
        name = self.tensor if self.key == split_tensor_name(self.tensor)[0] else f"{self.key}={self.tensor}"
        return f"{re.sub(':0$', '', name)}:{sizes}  {self.dtype.name}"


class Asked(NamedTuple):
    """An input or output in the words of the command: ``[KEY=]TENSOR[:SHAPE]``."""

    key: str | None
    tensor: str
    shape: list[int | None] | None = None


def parse_asked_input(text: str) -> Asked:
    """Read ``images:8,224,224,3``, ``images=IteratorGetNext:0:8,224,224,3`` or ``prob``.

    Raises:
        ExportError: it has another form.
    """
    match = _SPEC.match(text)
    sizes = match.group("shape") if match else None
    parts = [part.strip() for part in sizes.split(",")] if sizes else []
    if not match or any(not re.match(r"^(\d+|\?|-1)$", part) or part == "0" for part in parts):
        raise ExportError(f"{text!r} is not allowed. Write [KEY=]TENSOR[:SHAPE], like images:8,224,224,3")
    shape = None if sizes is None else [int(part) if part.isdigit() else None for part in parts]
    return Asked(match.group("key"), match.group("tensor"), shape)


def parse_asked_output(text: str) -> Asked:
    """Read ``prob``, ``split:1`` or ``prob=Softmax:0``."""
    key, equals, tensor = text.rpartition("=")
    return Asked(key if equals else None, tensor)


def choose_inputs_and_outputs(
    source: Source,
    graph: Graph,
    signature: str | None,
    inputs: Iterable[Asked] = (),
    outputs: Iterable[Asked] = (),
    constants: Iterable[str] = (),
) -> tuple[list[Port], list[Port]]:
    """Return the inputs and outputs of the model.

    Args:
        source, graph: the source and its graph.
        signature: its name, or None for the default one.
        inputs, outputs: what the command names; outputs decide which inputs are needed.
        constants: placeholders that are no inputs.
    """
    outputs = list(outputs)
    names_in, names_out = _signature_inputs_and_outputs(source, signature, bool(outputs))
    outs = [
        _find_port(graph, output, names_out) for output in outputs or [Asked(*output) for output in names_out.items()]
    ]
    if not outs:
        candidates = "\n".join(f"  {port.text()}" for port in candidate_outputs(graph))
        raise ExportError(f"{source.path} has no signature. Give --outputs. Candidates:\n{candidates or '  none'}")
    given = [_find_port(graph, wanted, names_in) for wanted in inputs]
    rest = [_find_port(graph, Asked(*item), {}) for item in names_in.items()]
    rest = rest or candidate_inputs(source.graph, graph, [out.tensor for out in outs], given)
    taken = {port.tensor for port in given}
    needed = {node.name for node in extract_subgraph(source.graph, [port.tensor for port in outs], taken).node} - set(
        constants
    )
    return given + [
        port for port in rest if port.tensor not in taken and split_tensor_name(port.tensor)[0] in needed
    ], outs


def drop_string_outputs_and_note(outputs: list[Port], is_asked: bool, target: str) -> tuple[list[Port], list[str]]:
    """Return outputs that a target has, and lines for those of a signature that are left out.

    Args:
        outputs: of the model.
        is_asked: True if the command names them.
        target: for messages.
    """
    strings = [port for port in outputs if port.dtype == tf.string and target in _WITHOUT_STRINGS]
    if strings and (is_asked or len(strings) == len(outputs)):
        raise ExportError(f"{strings[0].key} is a string, which {target} does not have. Give --outputs with numbers.")
    kept = [port for port in outputs if port not in strings]
    return kept, [f"{port.key} is left out: {target} has no strings" for port in strings]


def _signature_inputs_and_outputs(
    source: Source, name: str | None, has_outputs: bool
) -> tuple[dict[str, str], dict[str, str]]:
    there = source.signatures
    if name is not None and name not in there:
        raise ExportError(f"{source.path} has no signature {name}. It has: {', '.join(there) or 'none'}.")
    if name is None and (DEFAULT in there or len(there) == 1):
        name = DEFAULT if DEFAULT in there else next(iter(there))
    if name is None and there and not has_outputs:
        raise ExportError(f"{source.path} has the signatures {', '.join(there)}. Give one with --signature.")
    return there[name] if name is not None else ({}, {})


def _find_port(graph: Graph, asked: Asked, keys: dict[str, str]) -> Port:
    """Return the port of a tensor, or of a key of the signature."""
    key = asked.key or (asked.tensor if asked.tensor in keys else None)
    key = key or next(
        (key for key, tensor in keys.items() if split_tensor_name(tensor) == split_tensor_name(asked.tensor)), None
    )
    node, index = split_tensor_name(keys.get(asked.tensor, asked.tensor))
    try:
        tensor = graph.get_tensor_by_name(f"{node}:{index}")
    except (KeyError, ValueError):
        raise ExportError(f"the graph has no tensor {node}:{index}. Choose one that npu-shim export --list prints.")
    if asked.shape is not None and not tensor.shape.is_compatible_with([None, *asked.shape[1:]] if asked.shape else []):
        raise ExportError(f"{asked.tensor} has the shape {tensor.shape}, not {asked.shape}. Give one that fits.")
    shape = shape_of(tensor) if asked.shape is None else asked.shape
    return Port(key or key_of_tensor(f"{node}:{index}"), f"{node}:{index}", tensor.dtype.base_dtype, shape)


def shape_of(tensor: Tensor) -> list[int | None] | None:
    """Return the sizes of a tensor, None for unknown ones; None if even their number is unknown."""
    return tensor.shape.as_list() if tensor.shape.rank is not None else None


# --- candidates


def candidate_inputs(
    definition: GraphDef, graph: Graph, outputs: list[str], known_inputs: Iterable[Port] = ()
) -> list[Port]:
    """Return what outputs need and is fed or read: placeholders, elements of iterators, of queues."""
    part = extract_subgraph(definition, outputs, [port.tensor for port in known_inputs])
    used = {split_tensor_name(name) for node in part.node for name in node.input} | {
        split_tensor_name(name) for name in outputs
    }
    names = [
        f"{node.name}:{index}"
        for node in part.node
        if node.op in FED and node.op != "PlaceholderWithDefault" and not is_mode_placeholder(node)
        for index in range(len(graph.get_operation_by_name(node.name).outputs))
        if (node.name, index) in used
    ]
    return [_find_port(graph, Asked(None, name), {}) for name in names]


def candidate_outputs(graph: Graph) -> list[Port]:
    """Return likely outputs: what a loss compares, or a result of an input that nothing but training uses."""
    from_input = {op.name for op in graph.get_operations() if op.type in FED}
    trained: set[str] = set()
    compared: dict[str, Operation] = {}
    results: dict[str, Operation] = {}
    of_loss: set[str] = set()
    for op in graph.get_operations():
        before = {tensor.op.name for tensor in op.inputs}
        if op.type in VARIABLES or before & trained:
            trained.add(op.name)
        if _NO_RESULT_TYPES.match(op.type) or not before & from_input or _NO_RESULT.match(op.name):
            continue
        from_input.add(op.name)
        if before & of_loss:  # a metric or a regularized loss
            of_loss.add(op.name)
            continue
        is_distance = op.type == "Sub" and any(consumer.type in _DISTANCES for consumer in op.outputs[0].consumers())
        if is_distance and len(before & trained) == 1 or op.type in _LOSSES and "/moments/" not in op.name:
            of_loss.add(op.name)
            compared.update((_op_behind_reshapes(tensor).name, _op_behind_reshapes(tensor)) for tensor in op.inputs)
            continue
        is_likely = op.type in _LIKELY_TYPES or _LIKELY.search(op.name.rpartition("/")[2])
        is_side = op.type in ("Switch", "Enter")  # of a branch, or in a loop
        for tensor in op.outputs[:1] if op.outputs and is_number_tensor(op.outputs[0]) and not is_side else ():
            if is_likely or all(_NO_RESULT.match(consumer.name) for consumer in tensor.consumers()):
                results[op.name] = op
    likely = [op for name, op in compared.items() if name in from_input & trained]
    likely += sorted(results.values(), key=lambda op: not _LIKELY.search(op.name))
    unique = {op.name: op for op in likely}
    return [_find_port(graph, Asked(None, f"{name}:0"), {}) for name in list(unique)[:_MOST_LISTED]]


def _op_behind_reshapes(tensor: Tensor) -> Operation:
    """Return the op whose result comes through reshapes."""
    op = tensor.op
    while op.type in ("Reshape", "Identity", "Cast", "StopGradient", "Squeeze"):
        op = op.inputs[0].op
    return op


def is_number_tensor(tensor: Tensor) -> bool:
    """Return True for real numbers and integers."""
    return bool(tensor.dtype.is_floating or tensor.dtype.is_integer)
