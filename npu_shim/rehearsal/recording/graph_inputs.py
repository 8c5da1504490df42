"""Find the inputs and the learning rates of an update in its graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Iterable, List, Sequence, Tuple

from npu_shim._tensorflow import tf_recording

if TYPE_CHECKING:
    from npu_shim._tensorflow.types import Graph, Operation, Tensor

    Found = List[Tuple[str, Tensor]]

_SOURCES = ("IteratorGetNext", "IteratorGetNextSync", "Placeholder", "PlaceholderWithDefault")
_RATES = ("lr", "alpha", "learning_rate")  # arguments of the ops that update variables


def inputs_of(tensors: Iterable[Tensor], graph: Graph) -> Found:
    """Return the data from which tensors are computed: batches of an iterator or a queue, fed values, arguments.

    Nothing else is computed for them: the tensors need them anyway.

    Args:
        tensors: of the graph.
        graph: new ops will be added to it.
    Returns:
        Names and tensors of numbers in the order of the graph: ``batch 0``, ``batch 1`` ... of iterators and queues,
        and the names of fed values and arguments.
    """
    seen: set[Operation] = set()
    waiting = [tensor.op for tensor in tensors if tensor.graph is graph]
    found = []
    while waiting:
        op = waiting.pop()
        if op in seen:
            continue
        seen.add(op)
        if op.type in _SOURCES or op.type.startswith("QueueDequeue"):
            found.append(op)
        waiting += [tensor.op for tensor in op.inputs]
    place = {op: number for number, op in enumerate(graph.get_operations()) if op in seen}
    outputs = [
        output
        for op in sorted(found, key=place.__getitem__)
        if tf_recording.is_reachable(op, graph)
        for output in op.outputs
        if output.dtype.is_floating or output.dtype.is_integer or output.dtype.is_bool
    ]
    names = [output.op.name if output.op.type.startswith("Placeholder") else "batch" for output in outputs]
    return [
        (f"{name} {names[:n].count(name)}" if name == "batch" else name, outputs[n]) for n, name in enumerate(names)
    ]


def rates_of(ops: Sequence[Operation], graph: Graph) -> Found:
    """Return the learning rates that ops use which update variables, each once.

    Args:
        ops: the ops that an optimizer has added.
        graph: their graph.
    """
    found: dict[str, Tensor] = {}
    for op in ops:
        if "Apply" not in op.type or op.op_def is None:
            continue
        names = [argument.name for argument in op.op_def.input_arg]
        for name in _RATES:
            if name in names and len(names) == len(op.inputs):
                tensor = op.inputs[names.index(name)]
                if tf_recording.is_reachable(tensor.op, graph):
                    found.setdefault(tensor.name, tensor)
    return [
        ("learning_rate" if not number else f"learning_rate {number}", tensor)
        for number, tensor in enumerate(found.values())
    ]
