"""Memory that the ranks of one host share, and that operators read and write by address.

A table of addresses has the rows (rank, address, bytes) in uint64, as embeddingrankid makes them. On the CPU an address
is the key of a named memory in the upper bits and the place in it in the lower ones. Ranks on several hosts have no
such memory.
"""

from __future__ import annotations

import hashlib
import os
import threading
from typing import Sequence

import numpy as np

from npu_shim._host import host_env
from npu_shim._tensorflow import tf_api, tf_graph
from npu_shim._tensorflow.types import DType, Operation, Tensor, Variable
from npu_shim.distributed.backend import connected_backend
from npu_shim.distributed.shm.job_directory import job_directory_path, segment_path
from npu_shim.distributed.world import world

tf = tf_api.tf
_PLACE_BITS = 40  # a memory has at most 1 TiB
_KEY_BYTES = 2
_lock = threading.Lock()
_memories: dict[int, np.ndarray] = {}  # bytes of each memory, by its key
_names: dict[int, str] = {}  # their names


def malloc_shared_memory(var_name: str, shape: Sequence[int], data_type: DType) -> tuple[int, int]:
    """Return address and bytes of the memory of a name; all ranks of the host get the same one. It is zero at first.

    Args:
        var_name: its name.
        shape: its shape.
        data_type: its type, of TensorFlow or as tf_adapter.DT_FLOAT.
    Raises:
        RuntimeError: the ranks are on several hosts.
    """
    size = int(np.prod(shape, dtype=np.int64)) * tf.as_dtype(data_type).size
    key = _key_of_name(var_name)
    _memory_bytes(key, size)
    return key << _PLACE_BITS, size


def get_var_addr_and_size(var_name: str) -> tuple[int, int]:
    """Return address and bytes of the memory of a variable that variable_initializer_in_host has initialized.

    The memory has the initial value of the variable. After that it changes by remote_write only, and the variable by
    TensorFlow's ops only.

    Raises:
        ValueError: var_name is not a str.
        RuntimeError: no variable of the default graph has the name, or the ranks are on several hosts.
    """
    if not isinstance(var_name, str):
        raise ValueError(f"var_name={var_name!r} is not allowed: it must be a str.")
    for variable in tf_api.v1.global_variables():
        if variable.op.name == var_name:
            return malloc_shared_memory(var_name, variable.shape.as_list(), variable.dtype.base_dtype)
    raise RuntimeError(f"get_var_addr_and_size: the default graph has no variable {var_name!r}. Create it first.")


def copy_initial_values_op(variables: Sequence[Variable]) -> Operation:
    """Return an op that copies the initial values of variables into their memories, for get_var_addr_and_size."""

    def store(variable: Variable) -> Operation:
        name, dtype = variable.op.name, variable.dtype.base_dtype
        key, size = _key_of_name(name), variable.shape.num_elements() * dtype.size

        def copy(value: np.ndarray) -> None:
            _memory_bytes(key, size)[:size] = np.ascontiguousarray(value).view(np.uint8).ravel()

        return tf_api.numpy_function(copy, [variable.initial_value], [])

    return tf.group(*[store(variable) for variable in variables])


def get_rdma_cache(data_type: DType, shape: Sequence[int], name: str = "rdma_w") -> Variable:
    """Return a variable of zeros. On the NPU it is in the memory that other ranks reach."""
    return tf_api.v1.get_variable(name, shape, data_type, initializer=tf_api.v1.zeros_initializer())


def remote_read(tensorRemote: Tensor, data_type: DType) -> Tensor:
    """Return the rows at addresses.

    Args:
        tensorRemote: uint64 or int64 [n, 3]: rank, address and bytes of each row, the same bytes for all rows.
        data_type: the type of the elements.
    Returns:
        [n, elements of a row].
    Raises:
        InvalidArgumentError: when it runs, if an address is not in a memory of this process.
    """
    dtype = tf.as_dtype(data_type)

    def read(table: np.ndarray) -> np.ndarray:
        rows = [bytes(part) for part in _memory_at_addresses(table)]
        elements = int(table[0, 2]) // dtype.size if len(rows) else 0
        return np.frombuffer(b"".join(rows), dtype.as_numpy_dtype).reshape(len(rows), elements)

    values = tf_api.numpy_function(read, [tensorRemote], dtype)
    values.set_shape([None, None])
    return values


def remote_write(tensorRemote: Tensor, tensorLocal: Tensor, data_type: DType) -> Operation | None:
    """Write rows to addresses.

    Args:
        tensorRemote: as for remote_read.
        tensorLocal: [n, elements of a row].
        data_type: not used; the type is that of tensorLocal.
    Returns:
        The op; None in eager code.
    Raises:
        InvalidArgumentError: when it runs, if an address is not in a memory of this process, or a row has another
            number of bytes.
    """

    def write(table: np.ndarray, values: np.ndarray) -> None:
        for part, row in zip(_memory_at_addresses(table), np.ascontiguousarray(values)):
            part[:] = row.view(np.uint8).ravel()

    op = tf_api.numpy_function(write, [tensorRemote, tensorLocal], [])
    return None if tf.executing_eagerly() else op


def remote_ref_read(tensorRemote: Tensor, cache: Variable, offset: Tensor) -> Tensor:
    """Read the rows at addresses into a variable.

    Args:
        tensorRemote: uint64 [n, 3]: rank, address and bytes of each row.
        cache: a variable.
        offset: uint64 [n], the place of the first element of each row in the flat variable.
    Returns:
        The variable's value after the call.
    Raises:
        TypeError: cache is not a variable.
        InvalidArgumentError: when it runs, if an address is not in a memory of this process, a row does not fit the
            variable, or there is another number of offsets.
    """
    if not tf_graph.is_variable(cache):
        raise TypeError(f"hccl_ops.remote_ref_read: cache={cache!r} is updated in place. Pass the variable itself.")
    dtype = cache.dtype.base_dtype

    def read(table: np.ndarray, values: np.ndarray, places: np.ndarray) -> np.ndarray:
        changed = values.copy()
        for row, part in zip(_memory_at_addresses(table), _split_by_row_sizes(changed, table, places)):
            part.view(np.uint8)[:] = row
        return changed

    new = tf_api.numpy_function(read, [tensorRemote, cache.read_value(), offset], dtype)
    new.set_shape(cache.shape)
    return tf_graph.assign_and_read(cache, new)


def remote_scatter_write(tensorRemote: Tensor, tensorLocal: Tensor, offset: Tensor) -> Operation | None:
    """Write rows of a flat tensor to addresses.

    Args:
        tensorRemote: uint64 or int64 [n, 3]: rank, address and bytes of each row.
        tensorLocal: a tensor or variable.
        offset: uint64 [n], the place of the first element of each row in the flat tensor.
    Returns:
        The op; None in eager code.
    Raises:
        InvalidArgumentError: when it runs, as for remote_ref_read.
    """

    def write(table: np.ndarray, values: np.ndarray, places: np.ndarray) -> None:
        for row, part in zip(
            _memory_at_addresses(table), _split_by_row_sizes(np.ascontiguousarray(values), table, places)
        ):
            row[:] = part.view(np.uint8)

    op = tf_api.numpy_function(write, [tensorRemote, tensorLocal, offset], [])
    return None if tf.executing_eagerly() else op


def gather_at_addresses_and_count(addrinfo: Tensor, counts: Tensor, data_type: DType) -> tuple[Tensor, Tensor]:
    """Return the elements at addresses, one after the other, and how many of them each rank gets.

    Args:
        addrinfo: uint64 [n, 2]: address and bytes of each part.
        counts: int64 [ranks], the number of parts for each rank.
        data_type: the type of the elements.
    Returns:
        [elements], and int64 [ranks].
    Raises:
        InvalidArgumentError: when it runs, if an address is not in a memory of this process, or the counts do not add
            up to n.
    """
    dtype = tf.as_dtype(data_type)

    def read(table: np.ndarray, parts: np.ndarray) -> list[np.ndarray]:
        if len(table) != parts.sum():
            raise ValueError(
                f"gather_all_to_all_v: addrinfo_count_per_rank adds up to {parts.sum()}, but addrinfo has {len(table)} "
                "rows. They must be equal."
            )
        rows = [bytes(part) for part in _memory_at_addresses(np.concatenate([table[:, :1], table], 1))]
        ends = np.cumsum([0, *[len(row) // dtype.size for row in rows]])
        elements = np.frombuffer(b"".join(rows), dtype.as_numpy_dtype)
        return [elements, np.diff(ends[np.cumsum([0, *parts])]).astype(np.int64)]

    elements, own = tf_api.numpy_function(read, [addrinfo, counts], [dtype, tf.int64])
    elements.set_shape([None])
    own.set_shape(tf.convert_to_tensor(counts).shape)
    return elements, own


def _split_by_row_sizes(values: np.ndarray, table: np.ndarray, places: np.ndarray) -> list[np.ndarray]:
    """Return the parts of an array that begin at places, each as large as its row of a table of addresses."""
    flat = values.reshape(-1)
    if len(places) != len(table):
        raise ValueError(f"there are {len(places)} offsets for {len(table)} rows of addresses. Give one for each row.")
    parts = []
    for place, (_, _, size) in zip(places.tolist(), table.tolist()):
        end = place + size // flat.itemsize
        if size % flat.itemsize or end > len(flat):
            raise ValueError(
                f"a row of {size} bytes does not fit offset {place} of a tensor with {len(flat)} elements of "
                f"{flat.itemsize} bytes. Offsets count elements."
            )
        parts.append(flat[place:end])
    return parts


def _memory_at_addresses(address_table: np.ndarray) -> list[np.ndarray]:
    """Return the memory that each row of a table of addresses points to, as bytes that can be written."""
    views = []
    for _, address, size in address_table.tolist():
        key, place = address >> _PLACE_BITS, address & ((1 << _PLACE_BITS) - 1)
        memory = _memories.get(key)
        if memory is None or place + size > len(memory):
            raise ValueError(
                f"address {address} with {size} bytes is in no memory of this process. Call malloc_shared_memory or "
                "get_var_addr_and_size first."
            )
        views.append(memory[place : place + size])
    return views


def _key_of_name(name: str) -> int:
    key = int.from_bytes(hashlib.blake2b(name.encode("utf-8"), digest_size=_KEY_BYTES).digest(), "big") + 1
    if _names.setdefault(key, name) != name:
        raise RuntimeError(f"the memories {name!r} and {_names[key]!r} have the same address. Rename one of them.")
    return key


def _memory_bytes(key: int, size: int) -> np.ndarray:
    """Return the bytes of a memory, which is made or made larger if need be."""
    with _lock:
        if key not in _memories or len(_memories[key]) < size:
            _memories[key] = _map_memory(key, size)
        return _memories[key]


def _map_memory(key: int, size: int) -> np.ndarray:
    here, env = world(), host_env.read_environment()
    if here.size == 1:
        memory = np.zeros(size, np.uint8)
        before = _memories.get(key, memory[:0])
        memory[: len(before)] = before
        return memory
    if not (here.is_one_host or env.rehearsal):
        raise RuntimeError(
            f"the {here.size} ranks of {here.source} are on several hosts, which share no memory on the CPU. Run them "
            "on one host, or on NPUs with the vendor's package."
        )
    connected_backend()  # makes the directory of the job, which the last rank removes
    path = segment_path(job_directory_path(env.job_id), f"memory-{key}")
    fd = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
    try:
        if os.fstat(fd).st_size < size:
            os.ftruncate(fd, size)
    finally:
        os.close(fd)
    return np.memmap(path, np.uint8, "r+", shape=(size,))
