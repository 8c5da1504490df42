"""A cache of ids that forgets the least recently used one, for embeddings of which the device holds a part."""

from __future__ import annotations

import collections
import threading

import numpy as np

from npu_shim._tensorflow.tf_api import numpy_function, tf
from npu_shim._tensorflow.types import DType, Tensor


class LruCache:
    """A cache of ids, each with a place from 0 to cache_size - 1. It lives on the host, also in graphs.

    Args:
        cache_size: int, the number of places.
        load_factor: a number above 0; it has no effect on the CPU.
        dtype: tf.int32, tf.int64, tf.uint32 or tf.uint64, the type of the places in cache_all_index_to_local.
    Raises:
        ValueError: an argument is not allowed.
    """

    def __init__(self, cache_size: int = 100000, load_factor: float = 1, dtype: DType = tf.uint32) -> None:
        if cache_size < 1 or load_factor <= 0:
            raise ValueError(
                f"LruCache: cache_size={cache_size!r} and load_factor={load_factor!r} are not allowed. Both must be "
                "above 0."
            )
        self._dtype = tf.as_dtype(dtype)
        self._size = cache_size
        self._places: collections.OrderedDict[int, int] = collections.OrderedDict()  # the last one was used last
        self._lock = threading.Lock()

    def cache_add(self, ids: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Put ids into the cache, and note those that are there as used.

        Args:
            ids: [n], integers.
        Returns:
            swap_in_id and swap_in_idx, the ids that were put in and their places; swap_out_id and swap_out_idx, the ids
            that were forgotten for them and their places. All have the type of the ids.
        Raises:
            InvalidArgumentError: when it runs, if there are more different ids than places.
        """
        ids = tf.convert_to_tensor(ids)
        with tf.name_scope("cache_add"):
            results = numpy_function(self._add_ids, [ids], [ids.dtype] * 4)
            for result in results:
                result.set_shape([None])
            return tuple(results)

    def cache_remote_index_to_local(self, ids: Tensor) -> Tensor:
        """Return the places of ids, of their type and shape.

        Args:
            ids: [n], integers.
        Raises:
            InvalidArgumentError: when it runs, if an id is not in the cache.
        """
        ids = tf.convert_to_tensor(ids)
        with tf.name_scope("cache_remote_index_to_local"):
            places = numpy_function(self._places_of_ids, [ids], ids.dtype)
            places.set_shape(ids.shape)
            return places

    def cache_all_index_to_local(self) -> Tensor:
        """Return the places of all ids in the cache, the least recently used one first."""
        with tf.name_scope("cache_all_index_to_local"):
            places = numpy_function(self._all_places, [], self._dtype)
            places.set_shape([None])
            return places

    def _add_ids(self, ids: np.ndarray) -> list[np.ndarray]:
        wanted = list(dict.fromkeys(ids.ravel().tolist()))
        if len(wanted) > self._size:
            raise ValueError(f"LruCache: {len(wanted)} different ids for {self._size} places. Raise cache_size.")
        came: list[tuple[int, int]] = []
        went: list[tuple[int, int]] = []
        with self._lock:
            for key in wanted:
                if key in self._places:
                    self._places.move_to_end(key)
            for key in wanted:
                if key in self._places:
                    continue
                place = len(self._places)
                if place == self._size:
                    old, place = self._places.popitem(last=False)
                    went.append((old, place))
                self._places[key] = place
                came.append((key, place))
        return [np.array([pair[part] for pair in pairs], ids.dtype) for pairs in (came, went) for part in (0, 1)]

    def _places_of_ids(self, ids: np.ndarray) -> np.ndarray:
        with self._lock:
            unknown = [key for key in ids.ravel().tolist() if key not in self._places]
            if unknown:
                raise ValueError(f"LruCache: id {unknown[0]} is not in the cache. Call cache_add first.")
            return np.array([self._places[key] for key in ids.ravel().tolist()], ids.dtype).reshape(ids.shape)

    def _all_places(self) -> np.ndarray:
        with self._lock:
            return np.array(list(self._places.values()), self._dtype.as_numpy_dtype)
