"""The operators of embedding_tables and lru_cache, with the parameters of the functions that TensorFlow generates."""

from __future__ import annotations

from typing import Sequence

import numpy as np

from npu_shim._tensorflow.tf_api import numpy_function, tf
from npu_shim._tensorflow.types import DType, Operation, Tensor
from npu_shim.ops import embedding_tables
from npu_shim.ops.embedding_tables import lock, op_or_none_if_eager, table_of_handle
from npu_shim.ops.lru_cache import LruCache

_CONSTANT, _RANDOM = "constant", "random"


def lru_cache(
    cache_size: int,
    dtype: DType,
    load_factor: float = 1.0,
    container: str = "",
    shared_name: str = "LruCache",
    name: str | None = None,
) -> LruCache:
    """Return a cache of ids, for cache_add and the operators beside it.

    Args:
        cache_size, dtype, load_factor: as for LruCache.
        container, shared_name, name: have no effect; each call makes a cache.
    """
    return LruCache(cache_size, load_factor, dtype)


def cache_add(cache: LruCache, ids: Tensor, name: str | None = None) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Put ids into a cache. See LruCache.cache_add."""
    with tf.name_scope(name or "cache_add"):
        return cache.cache_add(ids)


def cache_remote_index_to_local(cache: LruCache, ids: Tensor, name: str | None = None) -> Tensor:
    """Return the places of ids in a cache. See LruCache.cache_remote_index_to_local."""
    with tf.name_scope(name or "cache_remote_index_to_local"):
        return cache.cache_remote_index_to_local(ids)


def cache_all_index_to_local(cache: LruCache, dtype: DType, name: str | None = None) -> Tensor:
    """Return the places of all ids in a cache, of a type. See LruCache.cache_all_index_to_local."""
    with tf.name_scope(name or "cache_all_index_to_local"):
        return tf.cast(cache.cache_all_index_to_local(), dtype)


def init_embedding_hashmap_v2(
    table_id: Tensor,
    bucket_size: int,
    load_factor: int,
    embedding_dim: int,
    dtype: DType = tf.float32,
    name: str | None = None,
) -> Tensor:
    """Create a table, or empty it. Arguments and result as for embedding_tables.init_embedding_hashmap_v2."""
    with tf.name_scope(name or "init_embedding_hashmap_v2"):
        return embedding_tables.init_embedding_hashmap_v2(table_id, bucket_size, load_factor, embedding_dim, dtype)


def deinit_embedding_hashmap_v2(table_id: Tensor, name: str | None = None) -> Operation | None:
    """Remove a table. Return the op; None in eager code."""
    with tf.name_scope(name or "deinit_embedding_hashmap_v2"):
        return embedding_tables.deinit_embedding_hashmap_v2(table_id)


def table_to_resource_v2(table_id: Tensor, name: str | None = None) -> Tensor:
    """Return the handle of a table that init_embedding_hashmap_v2 has created."""
    with tf.name_scope(name or "table_to_resource_v2"):
        return embedding_tables.table_to_resource_v2(table_id, 0, 0, 0, tf.float32)


def init_embedding_hash_table(
    table_handle: Tensor, sampled_values: Tensor, bucket_size: int, embedding_dim: int, initializer_mode: str = _RANDOM,
    constant_value: float = 0.0, name: str | None = None,
) -> Operation | None:  # fmt: skip
    """Set the first values of rows. Arguments and result as for embedding_tables.init_embedding_hashtable."""
    with tf.name_scope(name or "init_embedding_hash_table"):
        return embedding_tables.init_embedding_hashtable(
            table_handle, sampled_values, bucket_size, embedding_dim, initializer_mode, constant_value
        )


def embedding_hash_table_lookup_or_insert(
    table_handle: Tensor, keys: Tensor, bucket_size: int, embedding_dim: int, filter_mode: str = "no_filter",
    filter_freq: int = 0, default_key_or_value: bool = False, default_key: int = 0, default_value: float = 0.0,
    filter_key_flag: bool = False, filter_key: int = -1, name: str | None = None,
) -> Tensor:  # fmt: skip
    """Return the rows of keys. Arguments and result as for embedding_tables.embedding_hashtable_lookup_or_insert."""
    with tf.name_scope(name or "embedding_hash_table_lookup_or_insert"):
        return embedding_tables.embedding_hashtable_lookup_or_insert(
            table_handle, keys, bucket_size, embedding_dim, filter_mode, filter_freq, default_key_or_value,
            default_key, default_value, filter_key_flag, filter_key,
        )  # fmt: skip


def embedding_hash_table_evict(
    table_handle: Tensor, keys: Tensor, table_cap: int, embedding_dim: int, init_mode: str = _CONSTANT,
    const_val: float = 0.0, name: str | None = None,
) -> Operation | None:  # fmt: skip
    """Remove keys from a table, with their counters. Their rows are free for other keys.

    Args:
        table_handle: int64 scalar or [1].
        keys: int64 [n]; those without a row lose their counter.
        table_cap, embedding_dim: have no effect.
        init_mode: the first values of the next keys in these rows: "constant" for const_val, "random" for those of the
            table.
        const_val: a number.
        name: name of the ops.
    Returns:
        The op; None in eager code.
    Raises:
        ValueError: another init_mode.
    """
    if init_mode not in (_CONSTANT, _RANDOM):
        raise ValueError(
            f"embedding_hash_table_evict: init_mode={init_mode!r} is not allowed. It must be 'constant' or 'random'."
        )

    def evict(handle: np.ndarray, keys: np.ndarray) -> None:
        table = table_of_handle(np.ravel(handle)[0])
        with lock:
            for key in keys.ravel().tolist():
                table.evict(key, const_val if init_mode == _CONSTANT else None)

    with tf.name_scope(name or "embedding_hash_table_evict"):
        return op_or_none_if_eager(numpy_function(evict, [table_handle, keys], []))


def embedding_hashmap_size(
    table_ids: Tensor, filter_export_flag: bool = False, export_mode: str = "all", name: str | None = None
) -> Tensor:
    """Return the numbers of keys of tables. See embedding_tables.embedding_hashmap_table_size_v2."""
    with tf.name_scope(name or "embedding_hashmap_size"):
        return embedding_tables.embedding_hashmap_table_size_v2(table_ids, filter_export_flag, export_mode)


def embedding_hash_table_export(
    table_handles: Tensor, table_sizes: Tensor, embedding_dims: Tensor, bucket_sizes: Tensor, num: int,
    export_mode: str = "all", filter_export_flag: bool = False, name: str | None = None,
) -> tuple[list[Tensor], list[Tensor], list[Tensor], list[Tensor]]:  # fmt: skip
    """Return the contents of tables. See embedding_tables.embedding_hash_table_export.

    Args:
        num: the number of tables.
    """
    with tf.name_scope(name or "embedding_hash_table_export"):
        handles = tf.ensure_shape(tf.convert_to_tensor(table_handles, tf.int64), [num])
        return embedding_tables.embedding_hash_table_export(
            handles, table_sizes, embedding_dims, bucket_sizes, export_mode, filter_export_flag
        )


def embedding_hash_table_import(
    table_handles: Tensor, embedding_dims: Tensor, bucket_sizes: Tensor, keys: Sequence[Tensor],
    counters: Sequence[Tensor], filter_flags: Sequence[Tensor], values: Sequence[Tensor], name: str | None = None,
) -> Operation | None:  # fmt: skip
    """Put contents into tables. See embedding_tables.embedding_hash_table_import."""
    with tf.name_scope(name or "embedding_hash_table_import"):
        return embedding_tables.embedding_hash_table_import(
            table_handles, embedding_dims, bucket_sizes, keys, counters, filter_flags, values
        )
