"""The collectives among processes of one host as TensorFlow ops: in graphs, in tf.function and eagerly.

Each is one stateful op that calls NumPy on shared memory. It blocks the thread it
runs on until the other ranks come; session_config therefore gives sessions more
threads than there are collectives that can wait for each other.
"""

from __future__ import annotations

import functools
from collections import Counter
from typing import TYPE_CHECKING, Any, Callable, List, Sequence

import numpy as np

from npu_shim import _tf, _tf_gradients, _tf_graph, _tf_numpy_function
from npu_shim.distributed import backend as communicator, collectives, graph_consistency as graph_order, groups

if TYPE_CHECKING:
    Work = Callable[[collectives.Group, str, List[np.ndarray]], List[np.ndarray]]

tf = _tf.tf
_SUM = "allreduce sum"
_BITS = tf.uint16  # what bfloat16 travels as: NumPy has no such type


def allreduce(tensors: Sequence[Any], reduction: str, group: str) -> list[Any]:
    """Reduces tensors of one type over a group's ranks, all in one collective.

    The gradient of a sum is the sum of the gradients over the same group. What
    the card computes for other reductions (the sum over all ranks of the world)
    is not their derivative, so they have none here.

    Args:
        tensors: of any shapes.
        reduction: 'sum', 'prod', 'max' or 'min'.
        group: name of the group.
    Returns:
        Tensors of the same shapes.
    """

    def work(comm: collectives.Group, key: str, arrays: list[np.ndarray]) -> list[np.ndarray]:
        return comm.allreduce(arrays, reduction, key=key, type_name=halves)

    given = _tensors(tensors)
    halves = _type_name(given)
    return _op(f"allreduce {reduction}", group, given, [(t.dtype, t.shape) for t in given], work)


def reduce(tensor: Any, reduction: str, root: int, group: str) -> Any:
    """Reduces a tensor to the rank with number ``root`` in the group; the others get their own back."""
    given = _tensors([tensor])
    halves = _type_name(given)

    def work(comm: collectives.Group, key: str, arrays: list[np.ndarray]) -> list[np.ndarray]:
        made = comm.reduce(arrays[0], reduction, root=root, key=key, type_name=halves)
        return [made if comm.rank == root else made.copy()]  # TensorFlow must not get its own input back

    return _op(f"reduce {reduction} to rank {root}", group, given, [(given[0].dtype, given[0].shape)], work)[0]


def reduce_scatter(tensor: Any, reduction: str, group: str) -> Any:
    """Reduces a tensor; the r-th rank of the group gets the r-th part of axis 0."""
    given = _tensors([tensor])
    halves = _type_name(given)
    size = groups.group(group).size
    shape = given[0].shape
    if shape.rank is not None:
        first = _tf.v1.dimension_value(shape[0]) if shape.rank else None
        if shape.rank == 0 or (first is not None and first % size):
            raise ValueError(
                f"hccl_ops.reduce_scatter: a tensor of shape {shape} cannot be scattered over {size} "
                "ranks: axis 0 must divide by their number."
            )
        shape = tf.TensorShape([None if first is None else first // size]).concatenate(shape[1:])

    def work(comm: collectives.Group, key: str, arrays: list[np.ndarray]) -> list[np.ndarray]:
        return [comm.reduce_scatter(arrays[0], reduction, key=key, type_name=halves)]

    return _op(f"reduce_scatter {reduction}", group, given, [(given[0].dtype, shape)], work)[0]


def allgather(tensor: Any, group: str) -> Any:
    """Joins the tensors of a group's ranks along axis 0; a scalar counts as [1]."""
    given = _tensors([tensor])
    shape, size = given[0].shape, groups.group(group).size
    if shape.rank is not None:
        first = _tf.v1.dimension_value(shape[0]) if shape.rank else 1
        shape = tf.TensorShape([None if first is None else first * size]).concatenate(shape[1:])

    def work(comm: collectives.Group, key: str, arrays: list[np.ndarray]) -> list[np.ndarray]:
        return [comm.allgather(arrays[0], key=key)]

    return _op("allgather", group, given, [(given[0].dtype, shape)], work)[0]


def broadcast(tensors: Sequence[Any], root: int, group: str) -> list[Any]:
    """Gives every rank the tensors, of any types, of the rank with number ``root`` in the group."""
    given = _tensors(tensors)

    def work(comm: collectives.Group, key: str, arrays: list[np.ndarray]) -> list[np.ndarray]:
        made = comm.broadcast(arrays, root=root, key=key)
        return [array.copy() for array in made] if comm.rank == root else made

    return _op(f"broadcast from rank {root}", group, given, [(t.dtype, t.shape) for t in given], work)


def send(tensor: Any, tag: int, dest: int, group: str) -> Any:
    """Sends a tensor to a rank of the group; an op that is done when it is received (None where eager)."""
    given = _tensors([tensor])

    def work(comm: collectives.Group, key: str, arrays: list[np.ndarray]) -> list[np.ndarray]:
        comm.send(arrays[0], dest=dest, tag=tag)
        return []

    made = _call("send", group, given, [], work, known=False)
    return made if isinstance(made, tf.Operation) else None


def receive(shape: Sequence[int], dtype: Any, tag: int, source: int, group: str) -> Any:
    """Receives the tensor that a rank of the group sends with the same tag."""
    numpy_type = (_BITS if dtype == tf.bfloat16 else dtype).as_numpy_dtype

    def work(comm: collectives.Group, key: str, arrays: list[np.ndarray]) -> list[np.ndarray]:
        return [comm.receive(tuple(shape), numpy_type, source=source, tag=tag)]

    return _call("receive", group, [], [(dtype, tf.TensorShape(shape))], work, known=False)[0]


def all_to_all_v(tensors: Sequence[Any], group: str) -> Any:
    """Sends a piece of a flat tensor to each rank.

    Args:
        tensors: data, send counts, send displacements, receive counts, receive displacements.
        group: name of the group.
    """
    given = _tensors(tensors[:1]) + [tf.cast(t, tf.int64) for t in tensors[1:]]
    counts = _tf.static_value(given[3])
    shape = tf.TensorShape([None if counts is None else int(counts.sum())])

    def work(comm: collectives.Group, key: str, arrays: list[np.ndarray]) -> list[np.ndarray]:
        return [comm.alltoallv(*arrays, key=key)]

    return _op("alltoallv", group, given, [(given[0].dtype, shape)], work)[0]


def all_to_all_v_c(data: Any, counts: Any, group: str) -> Any:
    """The same with the counts of all ranks as a matrix."""
    given = _tensors([data]) + [tf.cast(counts, tf.int64)]

    def work(comm: collectives.Group, key: str, arrays: list[np.ndarray]) -> list[np.ndarray]:
        return [comm.alltoallvc(*arrays, key=key)]

    return _op("alltoallvc", group, given, [(given[0].dtype, tf.TensorShape([None]))], work)[0]


def _op(kind: str, group: str, given: list[Any], results: list[Any], work: Work) -> list[Any]:
    """A collective with its gradient."""
    if not given:
        return []
    if _tf_graph.in_plain_graph():
        return _tf_gradients.with_gradients(_call(kind, group, given, results, work), given, _registered(kind, group))

    @tf.custom_gradient
    def differentiable(*tensors: Any) -> Any:
        made = _call(kind, group, list(tensors), results, work)
        return tuple(made), lambda *dys, **unused: _gradient(kind, group, dys)

    made = differentiable(*given)
    return list(made) if isinstance(made, (list, tuple)) else [made]


@functools.lru_cache(maxsize=None)
def _registered(kind: str, group: str) -> str:
    """The name under which TensorFlow finds the gradient of a kind of collective in a group."""
    name = f"NpuShim {kind} {group}"

    @tf.RegisterGradient(name)
    def gradient(op: Any, *dys: Any) -> list[Any]:
        count = len(dys) // 2  # the results of a sum, and then the inputs, which are handed on for this
        return [None] * count + _gradient(kind, group, dys[:count])

    return name


def _gradient(kind: str, group: str, dys: Sequence[Any]) -> list[Any]:
    """The gradients of a collective's inputs; only that of a sum is known.

    Raises:
        LookupError: of any other.
    """
    if kind == _SUM:
        return allreduce(dys, "sum", group)
    why = (
        "that of the card, the sum over all ranks, is not its derivative"
        if kind.startswith("allreduce")
        else ("the card has none either")
    )
    raise LookupError(
        f"hccl_ops: there is no gradient of {kind}: {why}. Wrap the result in tf.stop_gradient where the "
        "loss shall not depend on it."
    )


def _call(kind: str, group: str, given: list[Any], results: list[Any], work: Work, known: bool = True) -> Any:
    """The op. With ``known=False`` it is none of the list that all ranks of the group have in common."""
    members = groups.group(group)
    graph = None if tf.executing_eagerly() else _tf.v1.get_default_graph()
    what = f"{kind} of {_types(given)}"
    names = "" if graph is None else ", ".join(tensor.name for tensor in given)
    ticket = graph_order.add(graph, group, what, names) if known else graph_order.Ticket(what, None)

    def act(*arrays: Any) -> list[np.ndarray]:
        comm = communicator.group(members.name, members.ranks)
        ticket.check(comm)
        return work(comm, ticket.key, [np.asarray(array) for array in arrays])

    sent = [tf.bitcast(t, _BITS) if t.dtype == tf.bfloat16 else t for t in given]
    types = [_BITS if dtype == tf.bfloat16 else dtype for dtype, _ in results]
    made = _tf_numpy_function.array_function(act, sent, types)
    if not results:
        return made
    finished = []
    for tensor, (dtype, shape) in zip(made if isinstance(made, (list, tuple)) else [made], results):
        tensor = tf.bitcast(tensor, tf.bfloat16) if dtype == tf.bfloat16 else tensor
        if graph is not None:
            tensor.set_shape(shape)
        finished.append(tensor)
    return finished


def _tensors(values: Sequence[Any]) -> list[Any]:
    return [tf.convert_to_tensor(value) for value in values]


def _type_name(given: list[Any]) -> str | None:
    return collectives.BFLOAT16 if given and given[0].dtype == tf.bfloat16 else None


def _types(given: list[Any]) -> str:
    """The types, without the shapes, of which one rank may know more beforehand than another; what runs is compared then."""
    counted = Counter(tensor.dtype.base_dtype.name for tensor in given)
    return (
        ", ".join(name if number == 1 else f"{number} {name}" for name, number in sorted(counted.items())) or "nothing"
    )
