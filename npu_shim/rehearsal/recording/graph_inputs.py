"""Find the inputs and the learning rates of an update in its graph."""

from __future__ import annotations

from typing import Callable, Iterable, List, Sequence, Tuple

import tensorflow as tf

from npu_shim._tensorflow import tf_graph, tf_recording
from npu_shim._tensorflow.types import Graph, Operation, Tensor
from npu_shim.rehearsal.recording.kinds import DRAW, INPUT
from npu_shim.rehearsal.recording.recorder import Recorder

Found = List[Tuple[str, Tensor]]

_SOURCES = ("IteratorGetNext", "IteratorGetNextSync", "Placeholder", "PlaceholderWithDefault")
_RANDOM = (  # begin types of random ops
    *("RandomUniform", "RandomStandardNormal", "RandomGamma", "RandomPoisson", "TruncatedNormal", "Multinomial"),
    *("ParameterizedTruncatedNormal", "StatelessRandom", "StatelessTruncated", "StatelessMultinomial"),
    *("StatefulUniform", "StatefulStandardNormal", "StatefulTruncatedNormal"),
)
FEW = 16
_RATES = ("lr", "alpha", "learning_rate")  # arguments of the ops that update variables


def is_random(op_type: str) -> bool:
    """Return True for the type of an op that draws random numbers. Those that prepare seeds draw none."""
    return op_type.startswith(_RANDOM) and not op_type.startswith("StatelessRandomGet")


def named_inputs_and_draws(
    tensors: Sequence[Tensor], graph: Graph, recorder: Recorder
) -> list[tuple[str, str, Tensor]]:
    """Return kind, name and tensor of the inputs from which tensors are computed; for ranks also of the draws."""
    rows = [(INPUT, *named) for named in inputs_of(tensors, graph, recorder.batches.setdefault(graph, []))]
    return rows + [(DRAW, *named) for named in (draws_of(tensors, graph) if recorder.of_ranks else ())]


def inputs_of(tensors: Iterable[Tensor], graph: Graph, batches: list[str]) -> Found:
    """Return the data from which tensors are computed: batches of an iterator or a queue, fed values, arguments.

    Nothing else is computed for them: the tensors need them anyway.

    Args:
        tensors: of the graph.
        graph: new ops will be added to it.
        batches: the batches of the graph that were found before. New ones are added. So a batch has one name in all
            updates of a run, which may come in an order of chance.
    Returns:
        Names and tensors of numbers in the order of the graph: ``batch 0``, ``batch 1`` ... of iterators and queues,
        and the names of fed values and arguments.
    """
    outputs = [
        output
        for op in _ops_above(tensors, graph, lambda op: op.type in _SOURCES or op.type.startswith("QueueDequeue"))
        for output in op.outputs
        if output.dtype.is_floating or output.dtype.is_integer or output.dtype.is_bool
    ]
    inputs = []
    for output in outputs:
        name = output.op.name
        if not output.op.type.startswith("Placeholder"):
            if output.name not in batches:
                batches.append(output.name)
            name = f"batch {batches.index(output.name)}"
        inputs.append((name, output))
    return inputs


def draws_of(tensors: Iterable[Tensor], graph: Graph) -> Found:
    """Return the first numbers of the random ops from which tensors are computed, such as masks of dropout."""
    draws = [
        (output.op.name, output)
        for op in _ops_above(tensors, graph, lambda op: is_random(op.type))
        for output in op.outputs
        if output.dtype.is_floating or output.dtype.is_integer
    ]
    with tf.compat.v1.name_scope("npu_shim_verify"):  # names of the script's ops stay
        return [(name, tf.reshape(output, [-1])[:FEW]) for name, output in draws]


def learning_rates_of(ops: Sequence[Operation], graph: Graph) -> Found:
    """Return the learning rates that ops use which update variables, each once.

    Args:
        ops: the ops that an optimizer has added.
        graph: their graph.
    """
    rates: dict[str, Tensor] = {}
    for op in ops:
        if "Apply" not in op.type or op.op_def is None:
            continue
        names = [argument.name for argument in op.op_def.input_arg]
        for name in _RATES:
            if name in names and len(names) == len(op.inputs):
                tensor = op.inputs[names.index(name)]
                if tf_recording.is_reachable(tensor.op, graph):
                    rates.setdefault(tensor.name, tensor)
    return [
        ("learning_rate" if not number else f"learning_rate {number}", tensor)
        for number, tensor in enumerate(rates.values())
    ]


def _ops_above(tensors: Iterable[Tensor], graph: Graph, is_wanted: Callable[[Operation], bool]) -> list[Operation]:
    """Return the wanted ops from which tensors are computed, in the order of the graph."""
    above = tf_graph.reachable_nodes([tensor.op for tensor in tensors if tensor.graph is graph], tf_graph.input_ops)
    wanted = [op for op in graph.get_operations() if op in above and is_wanted(op)]
    return [op for op in wanted if tf_recording.is_reachable(op, graph)]
