"""Embedding tables that grow with the keys they see, up to a size, on the host.

A table has a row of numbers for each key, a counter of its lookups, and a flag that says if the key is admitted: with
filter_mode="counter" only from its filter_freq-th lookup on. Keys that are not admitted get a default, and no row. Of
these a table counts at most as many as it may have rows, and forgets the one that came first.
"""

from __future__ import annotations

import threading
from typing import Sequence

import numpy as np

from npu_shim._tensorflow.tf_api import numpy_function, tf
from npu_shim._tensorflow.types import DType, Operation, Tensor

_tables: dict[int, _Table] = {}  # by handle
lock = threading.Lock()
_FILTERS, _INITIALIZERS = ("no_filter", "counter"), ("random", "constant")


class _Table:
    """The rows of one table."""

    def __init__(self, bucket_size: int, embedding_dim: int) -> None:
        self.size, self.dim = bucket_size, embedding_dim
        self.initial: np.ndarray = np.zeros([1, embedding_dim], np.float32)  # of the rows, in the order of their keys
        self.values = np.zeros([0, embedding_dim], np.float32)
        self.used = 0  # rows that have had a key
        self.free: list[tuple[int, float | None]] = []  # rows that keys left, and the value of the next key there
        self.places: dict[int, int] = {}
        self.counters: dict[int, int] = {}  # of keys with a row
        self.waiting: dict[int, int] = {}  # of keys without

    def find_or_add_row(self, key: int) -> int:
        """Return the place of a key, which gets a row if it has none."""
        if key not in self.places:
            place, value = self.free.pop() if self.free else (self.used, None)
            if place == self.size:
                raise ValueError(
                    f"the embedding table has {self.size} rows, all in use, at key {key}. Raise bucket_size."
                )
            self.used = max(self.used, place + 1)
            if place == len(self.values):
                more = np.zeros([min(max(16, place), self.size - place), self.dim], np.float32)
                self.values = np.concatenate([self.values, more])
            self.values[place] = self.initial[place % len(self.initial)] if value is None else value
            self.places[key] = place
            self.counters[key] = self.waiting.pop(key, 0)
        return self.places[key]

    def row_of_key(self, key: int) -> np.ndarray:
        """Return the row of a key."""
        place = self.find_or_add_row(key)  # may replace self.values
        return self.values[place]

    def evict(self, key: int, value: float | None) -> None:
        """Forget a key; its row is free for another one, which starts with a value, or None for that of the table."""
        self.waiting.pop(key, None)
        if key in self.places:
            del self.counters[key]
            self.free.append((self.places.pop(key), value))

    def count_lookup(self, key: int) -> int:
        """Count a lookup of a key, and return the number of its lookups."""
        counters = self.counters if key in self.places else self.waiting
        if counters is self.waiting and key not in counters and len(counters) == self.size:
            del counters[next(iter(counters))]
        counters[key] = counters.get(key, 0) + 1
        return counters[key]


def init_embedding_hashmap_v2(
    table_id: Tensor, bucket_size: int, load_factor: int, embedding_dim: int, dtype: DType
) -> Tensor:
    """Create a table, or empty it.

    Args:
        table_id: int32 scalar, its number.
        bucket_size: the most rows it may have.
        load_factor: has no effect on the CPU.
        embedding_dim: numbers of a row.
        dtype: tf.float32.
    Returns:
        int64 scalar, its handle.
    Raises:
        ValueError: bucket_size or embedding_dim is below 1, or dtype is another type.
    """
    if bucket_size < 1 or embedding_dim < 1 or tf.as_dtype(dtype) != tf.float32:
        raise ValueError(
            f"init_embedding_hashmap_v2: bucket_size={bucket_size!r}, embedding_dim={embedding_dim!r}, dtype={dtype!r} "
            "is not allowed. Sizes must be 1 or more, and dtype tf.float32."
        )

    def create(number: np.ndarray) -> np.int64:
        with lock:
            _tables[int(number)] = _Table(bucket_size, embedding_dim)
        return np.int64(number)

    return _scalar(numpy_function(create, [table_id], tf.int64))


def table_to_resource_v2(
    table_id: Tensor, bucket_size: int, load_factor: int, embedding_dim: int, dtype: DType
) -> Tensor:
    """Return the handle of a table that init_embedding_hashmap_v2 has created; the other arguments have no effect."""

    def find(number: np.ndarray) -> np.int64:
        table_of_handle(number)
        return np.int64(number)

    return _scalar(numpy_function(find, [table_id], tf.int64))


def deinit_embedding_hashmap_v2(table_id: Tensor) -> Operation | None:
    """Remove a table. Return the op; None in eager code."""

    def remove(number: np.ndarray) -> None:
        table_of_handle(number)
        with lock:
            del _tables[int(number)]

    return op_or_none_if_eager(numpy_function(remove, [table_id], []))


def init_embedding_hashtable(
    table_handle: Tensor,
    sampled_values: Tensor,
    bucket_size: int,
    embedding_dim: int,
    initializer_mode: str,
    constant_value: float,
) -> Operation | None:
    """Set the first values of rows: those of keys that come later.

    Args:
        table_handle: int64 scalar.
        sampled_values: float32 of bucket_size embedding_dim elements, the rows in the order in which keys come.
        bucket_size: the rows of sampled_values.
        embedding_dim: numbers of a row.
        initializer_mode: "random" for sampled_values, "constant" for constant_value.
        constant_value: a number.
    Returns:
        The op; None in eager code.
    Raises:
        ValueError: another initializer_mode.
    """
    if initializer_mode not in _INITIALIZERS:
        raise ValueError(
            f"init_embedding_hashtable: initializer_mode={initializer_mode!r} is not allowed. It must be 'random' or "
            "'constant'."
        )

    def set_values(handle: np.ndarray, samples: np.ndarray) -> None:
        rows = samples.reshape(-1, embedding_dim) if initializer_mode == "random" else None
        table = table_of_handle(handle)
        with lock:
            table.initial = np.full([1, embedding_dim], constant_value, np.float32) if rows is None else rows.copy()

    return op_or_none_if_eager(numpy_function(set_values, [table_handle, tf.cast(sampled_values, tf.float32)], []))


def embedding_hashtable_lookup_or_insert(
    table_handle: Tensor, keys: Tensor, bucket_size: int, embedding_dim: int, filter_mode: str, filter_freq: int,
    default_key_or_value: bool, default_key: int, default_value: float, filter_key_flag: bool, filter_key: int,
) -> Tensor:  # fmt: skip
    """Return the rows of keys, and count the lookups. Keys that are admitted get a row.

    Args:
        table_handle: int64 scalar.
        keys: int64 [n].
        bucket_size: the rows of the table; it has no effect.
        embedding_dim: numbers of a row.
        filter_mode: "no_filter" to admit all keys, "counter" to admit a key from its filter_freq-th lookup on.
        filter_freq: int.
        default_key_or_value: True: a key that is not admitted gets the row of default_key; False: default_value.
        default_key: int.
        default_value: a number.
        filter_key_flag: True: filter_key is never admitted.
        filter_key: int.
    Returns:
        float32 [n, embedding_dim].
    Raises:
        ValueError: another filter_mode.
        InvalidArgumentError: when it runs, if the table is full or not there.
    """
    if filter_mode not in _FILTERS:
        raise ValueError(
            f"embedding_hashtable_lookup_or_insert: filter_mode={filter_mode!r} is not allowed. It must be 'no_filter' "
            "or 'counter'."
        )

    def look_up(handle: np.ndarray, keys: np.ndarray) -> np.ndarray:
        table = table_of_handle(handle)
        rows = np.empty([keys.size, embedding_dim], np.float32)
        with lock:
            for number, key in enumerate(keys.ravel().tolist()):
                admitted = table.count_lookup(key) >= filter_freq or filter_mode == "no_filter"
                if admitted and not (filter_key_flag and key == filter_key):
                    rows[number] = table.row_of_key(key)
                elif default_key_or_value:
                    rows[number] = table.row_of_key(default_key)
                else:
                    rows[number] = default_value
        return rows

    values = numpy_function(look_up, [table_handle, keys], tf.float32)
    values.set_shape([None, embedding_dim])
    return values


def embedding_hashmap_table_size_v2(table_ids: Tensor, filter_export_flag: bool, export_mode: str) -> Tensor:
    """Return the numbers of keys of tables.

    Args:
        table_ids: int32 [tables].
        filter_export_flag: True for the keys that are admitted, False for all keys that were looked up.
        export_mode: "all".
    Returns:
        int64 [tables].
    Raises:
        ValueError: another export_mode.
    """
    _check_mode("embedding_hashmap_table_size_v2", export_mode)

    def count(numbers: np.ndarray) -> np.ndarray:
        return np.array(
            [len(_keys(table_of_handle(number), filter_export_flag)) for number in numbers.ravel()], np.int64
        )

    sizes = numpy_function(count, [table_ids], tf.int64)
    sizes.set_shape([None])
    return sizes


def embedding_hash_table_export(
    table_handles: Tensor,
    table_sizes: Tensor,
    embedding_dims: Tensor,
    bucket_sizes: Tensor,
    export_mode: str = "all",
    filter_export_flag: bool = False,
) -> tuple[list[Tensor], list[Tensor], list[Tensor], list[Tensor]]:
    """Return the contents of tables, to save them.

    Args:
        table_handles: int64 [tables], of a static number.
        table_sizes, embedding_dims, bucket_sizes: have no effect.
        export_mode: "all".
        filter_export_flag: True for the keys that are admitted, False for all keys that were looked up.
    Returns:
        For each table keys, int64 [n], in the order of their rows, then those without; counters, uint64 [n];
        filter_flags, uint8 [n], 1 if the key has a row; values, float32 [n embedding_dim], zeros without a row.
    Raises:
        ValueError: another export_mode, or an unknown number of tables.
    """
    _check_mode("embedding_hash_table_export", export_mode)
    handles = tf.convert_to_tensor(table_handles, tf.int64)
    (number,) = handles.shape.as_list()
    if number is None:
        raise ValueError("embedding_hash_table_export: the number of table_handles must be static.")

    def export(handle: np.ndarray) -> list[np.ndarray]:
        table = table_of_handle(handle)
        keys = _keys(table, filter_export_flag)
        flags = np.array([key in table.places for key in keys], np.uint8)
        values = np.zeros([len(keys), table.dim], np.float32)
        for place, key in enumerate(keys):
            if key in table.places:
                values[place] = table.values[table.places[key]]
        counters = np.array([table.counters.get(key, table.waiting.get(key)) for key in keys], np.uint64)
        return [np.array(keys, np.int64), counters, flags, values.ravel()]

    types = [tf.int64, tf.uint64, tf.uint8, tf.float32]
    parts = [numpy_function(export, [handles[place]], types) for place in range(number)]
    keys, counters, flags, values = ([part[kind] for part in parts] for kind in range(4))
    return keys, counters, flags, values


def embedding_hash_table_import(
    table_handles: Tensor, embedding_dims: Tensor, bucket_sizes: Tensor, keys: Sequence[Tensor],
    counters: Sequence[Tensor], filter_flags: Sequence[Tensor], values: Sequence[Tensor],
) -> Operation | None:  # fmt: skip
    """Put contents that embedding_hash_table_export returned into tables. Return the op; None in eager code."""
    handles = tf.convert_to_tensor(table_handles, tf.int64)

    def load(
        handle: np.ndarray, own_keys: np.ndarray, own_counters: np.ndarray, flags: np.ndarray, rows: np.ndarray
    ) -> None:
        table = table_of_handle(handle)
        rows = rows.reshape(-1, table.dim)
        with lock:
            for key, count, flag, row in zip(own_keys.tolist(), own_counters.tolist(), flags.tolist(), rows):
                if flag:
                    table.row_of_key(key)[:] = row
                (table.counters if flag else table.waiting)[key] = count

    ops = [
        numpy_function(load, [handles[place], *parts], [])
        for place, parts in enumerate(zip(keys, counters, filter_flags, values))
    ]
    return tf.group(*ops)


def _keys(table: _Table, only_admitted: bool) -> list[int]:
    """Return the keys in the order of their rows, then those without a row."""
    with lock:
        rows = sorted(table.places, key=lambda key: table.places[key])
        return rows if only_admitted else [*rows, *table.waiting]


def table_of_handle(number: np.ndarray) -> _Table:
    """Return the table of a number or handle.

    Raises:
        ValueError: there is none.
    """
    table = _tables.get(int(number))
    if table is None:
        raise ValueError(f"there is no embedding table {int(number)}. Call init_embedding_hashmap_v2 first.")
    return table


def _check_mode(name: str, export_mode: str) -> None:
    if export_mode != "all":
        raise ValueError(f"{name}: export_mode={export_mode!r} is not supported. Use 'all'.")


def _scalar(tensor: Tensor) -> Tensor:
    tensor.set_shape([])
    return tensor


def op_or_none_if_eager(op: Operation) -> Operation | None:
    """Return an op; None in eager code, where it has run."""
    return None if tf.executing_eagerly() else op
