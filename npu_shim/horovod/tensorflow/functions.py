"""Variables and Python objects of one rank on all ranks."""

from __future__ import annotations

import pickle
from typing import Callable, Iterable, TypeVar

import numpy as np

from npu_shim._tensorflow import tf_api
from npu_shim._tensorflow.tf_api import tf
from npu_shim._tensorflow.tf_keras import tensorflow_variable
from npu_shim._tensorflow.types import Operation, Session, Tensor, Variable
from npu_shim.horovod.common.process_sets import ProcessSet, global_process_set
from npu_shim.horovod.tensorflow.mpi_ops import allgather, broadcast, broadcast_, rank
from npu_shim.horovod.tensorflow.util import _executing_eagerly


def broadcast_variables(
    variables: Iterable[Variable],
    root_rank: int,
    process_set: ProcessSet = global_process_set,
    inplace: bool = False,
) -> Operation | None:
    """Set variables to those of one rank, in one message.

    Args:
        variables: of the same names, shapes and types on every rank, in any order.
        root_rank: the world rank whose variables are sent.
        process_set: the ranks that take part.
        inplace: unused: the variables are always set in place.
    Returns:
        In a graph an op that does it; otherwise None.
    """
    values = broadcast_([tensorflow_variable(variable) for variable in variables], root_rank, process_set=process_set)
    return None if _executing_eagerly() else tf.group(*values)


_Object = TypeVar("_Object")


def broadcast_object(
    obj: _Object,
    root_rank: int = 0,
    session: Session | None = None,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> _Object:
    """Return the object of one rank on all ranks.

    Args:
        obj: an object that pickle can write; on other ranks than root_rank it is ignored.
        root_rank: the world rank whose object is sent.
        session: for graphs; the default session when None.
        name: the name of the collectives.
        process_set: the ranks that take part.
    """
    is_root = rank() == root_rank
    data = _pickle_to_array(obj) if is_root else np.zeros(0, np.uint8)
    label = name or "broadcast_object"
    length = _evaluate_tensor(
        broadcast(tf.constant([len(data)], tf.int32), root_rank, f"{label}.sz", True, process_set), session
    )
    sent = tf.constant(data if is_root else np.zeros(int(length[0]), np.uint8))
    received = _evaluate_tensor(broadcast(sent, root_rank, f"{label}.t", True, process_set), session)
    return obj if is_root else pickle.loads(received.tobytes())


def broadcast_object_fn(
    root_rank: int = 0,
    session: Session | None = None,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> Callable[[_Object], _Object]:
    """Return a function of an object that does what broadcast_object does, with ops that are built once.

    Args:
        root_rank: the world rank whose object is sent.
        session: for graphs; the default session when None.
        name: the name of the collectives.
        process_set: the ranks that take part.
    """
    label = name or "broadcast_object_fn"
    size_in = tf_api.v1.placeholder(tf.int32, [1])
    size_out = broadcast(size_in, root_rank, f"{label}.sz", True, process_set)
    data_in = tf_api.v1.placeholder(tf.uint8, [None])
    data_out = broadcast(data_in, root_rank, f"{label}.t", True, process_set)
    used = session or tf_api.v1.get_default_session()

    def broadcast_one(obj: _Object) -> _Object:
        is_root = rank() == root_rank
        data = _pickle_to_array(obj) if is_root else np.zeros(0, np.uint8)
        length = used.run(size_out, {size_in: [len(data)]})
        received = used.run(data_out, {data_in: data if is_root else np.zeros(int(length[0]), np.uint8)})
        return obj if is_root else pickle.loads(received.tobytes())

    return broadcast_one


def allgather_object(
    obj: _Object, session: Session | None = None, name: str | None = None, process_set: ProcessSet = global_process_set
) -> list[_Object]:
    """Return the objects of all ranks, in rank order.

    Args:
        obj: an object that pickle can write.
        session: for graphs; the default session when None.
        name: the name of the collectives.
        process_set: the ranks that take part.
    """
    data, label = _pickle_to_array(obj), name or "allgather_object"
    lengths = _evaluate_tensor(allgather(tf.constant([len(data)], tf.int64), f"{label}.sz", True, process_set), session)
    gathered = _evaluate_tensor(allgather(tf.constant(data), f"{label}.t", True, process_set), session)
    ends = np.cumsum(lengths)
    return [pickle.loads(gathered[end - length : end].tobytes()) for end, length in zip(ends, lengths)]


def _pickle_to_array(obj: object) -> np.ndarray:
    return np.frombuffer(pickle.dumps(obj, protocol=4), np.uint8)


def _evaluate_tensor(tensor: Tensor, session: Session | None) -> np.ndarray:
    if _executing_eagerly():
        return tensor.numpy()
    used = session or tf_api.v1.get_default_session()
    if used is None:
        raise ValueError("In a graph, hvd's functions of objects need session=, or a default session: `with session:`.")
    return used.run(tensor)


__all__ = ["allgather_object", "broadcast_object", "broadcast_object_fn", "broadcast_variables"]
