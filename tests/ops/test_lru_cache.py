"""The cache of ids: places, what comes and what goes, in graphs and in eager code."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from npu_shim.npu_cpu.lru_cache import LruCache

pytestmark = pytest.mark.twice


def test_the_least_recently_used_id_goes() -> None:
    cache = LruCache(3, dtype=tf.int64)
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        ids = tf.compat.v1.placeholder(tf.int64, [None])
        added, places, everything = (
            cache.cache_add(ids),
            cache.cache_remote_index_to_local(ids),
            cache.cache_all_index_to_local(),
        )

        def add(*values: int) -> Any:
            return [each.tolist() for each in session.run(added, {ids: values})]

        assert add(7, 8, 7) == [[7, 8], [0, 1], [], []]
        assert add(7) == [[], [], [], []]
        assert add(9, 5) == [[9, 5], [2, 1], [8], [1]]  # 8 was used before 7
        assert session.run(places, {ids: [5, 9, 5]}).tolist() == [1, 2, 1]
        assert session.run(everything).tolist() == [0, 2, 1]
        assert add(7, 4) == [[4], [2], [9], [2]]  # 7 is used now, so it stays
        with pytest.raises(Exception, match="id 9 is not in the cache. Call cache_add first"):
            session.run(places, {ids: [9]})
        with pytest.raises(Exception, match="4 different ids for 3 places. Raise cache_size"):
            add(1, 2, 3, 4)


@pytest.mark.parametrize("dtype", [np.uint32, np.int32])
def test_types_in_eager_code_and_functions(dtype: Any) -> None:
    if not tf.executing_eagerly():
        with pytest.raises(ValueError, match="cache_size=0 and load_factor=1 are not allowed"):
            LruCache(0)
        return
    cache = LruCache(2)
    came, places, _, _ = tf.function(cache.cache_add)(np.array([3, 1], dtype))
    assert came.numpy().dtype == places.numpy().dtype == dtype and came.numpy().tolist() == [3, 1]
    assert cache.cache_remote_index_to_local(np.array([[1, 3]], dtype)).numpy().tolist() == [[1, 0]]
    assert cache.cache_all_index_to_local().dtype == tf.uint32
