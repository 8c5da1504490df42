"""Embedding tables: rows for new keys, the filter, the limit, and contents that are saved and loaded."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from npu_shim.npu_cpu import npu_cpu_ops as ops

pytestmark = pytest.mark.twice

FREE: dict[str, Any] = {"filter_mode": "no_filter", "filter_freq": 0, "filter_key_flag": False, "filter_key": -1}
DEFAULT: dict[str, Any] = {"default_key_or_value": False, "default_key": 0, "default_value": 0.5}


def test_rows_filters_and_contents() -> None:
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        keys = tf.compat.v1.placeholder(tf.int64, [None])
        handle = ops.init_embedding_hashmap_v2(7, 3, 80, 2, tf.float32)
        session.run(handle)
        found = ops.table_to_resource_v2(7, 3, 80, 2, tf.float32)
        session.run(ops.init_embedding_hashtable(found, np.arange(6.0), 3, 2, "random", 0.0))
        free = ops.embedding_hashtable_lookup_or_insert(found, keys, 3, 2, **FREE, **DEFAULT)
        counted = {**FREE, "filter_mode": "counter", "filter_freq": 2, "filter_key_flag": True, "filter_key": 99}
        filtered = ops.embedding_hashtable_lookup_or_insert(found, keys, 3, 2, **counted, **DEFAULT)
        of_key = ops.embedding_hashtable_lookup_or_insert(
            found, keys, 3, 2, **counted, **{**DEFAULT, "default_key_or_value": True, "default_key": 5}
        )
        assert session.run(free, {keys: [5, -4, 5]}).tolist() == [[0, 1], [2, 3], [0, 1]]
        assert session.run(filtered, {keys: [8]}).tolist() == [[0.5, 0.5]]
        assert session.run(of_key, {keys: [99]}).tolist() == [[0, 1]]
        assert session.run(filtered, {keys: [99, 8]}).tolist() == [[0.5, 0.5], [4, 5]]
        sizes = [ops.embedding_hashmap_table_size_v2([7], admitted, "all") for admitted in (True, False)]
        assert [each.tolist() for each in session.run(sizes)] == [[3], [4]]
        with pytest.raises(Exception, match="has 3 rows, all in use, at key 1. Raise bucket_size"):
            session.run(free, {keys: [1]})
        saved = session.run(ops.embedding_hash_table_export([7], [4], [2], [3]))
        assert [part[0].tolist() for part in saved[:3]] == [[5, -4, 8, 99, 1], [2, 1, 2, 2, 1], [1, 1, 1, 0, 0]]
        assert saved[3][0].tolist() == [0, 1, 2, 3, 4, 5, 0, 0, 0, 0]
        session.run(ops.init_embedding_hashmap_v2(8, 3, 80, 2, tf.float32))
        session.run(ops.embedding_hash_table_import([8], [2], [3], *[[tf.constant(p[0])] for p in saved]))
        again = session.run(ops.embedding_hash_table_export([8], [4], [2], [3]))
        assert [part[0].tolist() for part in again] == [part[0].tolist() for part in saved]
        filtered_of_8 = ops.embedding_hashtable_lookup_or_insert(8, keys, 3, 2, **counted, **DEFAULT)
        session.run(filtered_of_8, {keys: [20, 21, 22, 23]})  # three keys wait; 99, 1 and 20 are forgotten
        assert session.run(ops.embedding_hash_table_export([8], [4], [2], [3])[0])[0].tolist() == [5, -4, 8, 21, 22, 23]
        session.run(ops.deinit_embedding_hashmap_v2(7))
        with pytest.raises(Exception, match="there is no embedding table 7. Call init_embedding_hashmap_v2 first"):
            session.run(free, {keys: [5]})


def test_constant_rows_in_eager_code_and_wrong_arguments() -> None:
    if tf.executing_eagerly():
        handle = ops.init_embedding_hashmap_v2(9, 100, 80, 2, tf.float32)
        ops.init_embedding_hashtable(handle, np.zeros(2), 1, 2, "constant", 0.25)
        rows = tf.function(
            lambda keys: ops.embedding_hashtable_lookup_or_insert(handle, keys, 100, 2, **FREE, **DEFAULT)
        )
        assert rows(tf.range(40, dtype=tf.int64)).numpy().tolist() == [[0.25, 0.25]] * 40
    with pytest.raises(ValueError, match="initializer_mode='normal' is not allowed"):
        ops.init_embedding_hashtable(1, [0.0], 1, 1, "normal", 0.0)
    with pytest.raises(ValueError, match="filter_mode='none' is not allowed"):
        ops.embedding_hashtable_lookup_or_insert(1, [1], 3, 2, **{**FREE, "filter_mode": "none"}, **DEFAULT)
    with pytest.raises(ValueError, match="bucket_size=0"):
        ops.init_embedding_hashmap_v2(1, 0, 80, 2, tf.float32)
    with pytest.raises(ValueError, match="export_mode='new' is not supported. Use 'all'"):
        ops.embedding_hashmap_table_size_v2([1], False, "new")
