"""Optimizer, eviction and files of embedding tables, in graphs and in eager code, by their operators' names."""

from __future__ import annotations

import pathlib
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from npu_shim.npu_cpu import npu_cpu_ops

from npu_shim.estimator.npu_aicore_ops import npu_aicore_ops as operators

pytestmark = pytest.mark.twice

random = np.random.RandomState(5)
RATE, DECAY, BETA1, BETA2, EPSILON = 0.1, 0.2, 0.9, 0.99, 1e-3


def fill(number: int, keys: Any) -> Any:
    """Make a table with rows of 0.5 for keys, and return its handle and rows."""
    handle = operators.init_embedding_hashmap_v2(number, 4, 80, 2)
    with tf.control_dependencies([handle] if isinstance(handle, tf.Tensor) else []):
        first = operators.init_embedding_hash_table(handle, [0.0] * 8, 4, 2, "constant", 0.5)
    with tf.control_dependencies([first] if first is not None else []):
        return handle, operators.embedding_hash_table_lookup_or_insert(handle, keys, 4, 2)


class Reference:
    """AdamW in float64, by the formula."""

    def __init__(self, amsgrad: bool, maximize: bool) -> None:
        self.rows = np.full([4, 2], 0.5)
        self.m, self.v, self.largest = (np.zeros([4, 2]) for _ in range(3))
        self.amsgrad, self.sign, self.steps = amsgrad, -1 if maximize else 1, 0

    def step(self, places: Any, gradient: Any) -> None:
        self.steps += 1
        g = self.sign * gradient.astype(np.float64)
        m = self.m[places] = BETA1 * self.m[places] + (1 - BETA1) * g
        v = self.v[places] = BETA2 * self.v[places] + (1 - BETA2) * g**2
        if self.amsgrad:
            v = self.largest[places] = np.maximum(self.largest[places], v)
        unbiased = m / (1 - BETA1**self.steps) / (np.sqrt(v / (1 - BETA2**self.steps)) + EPSILON)
        self.rows[places] = (1 - RATE * DECAY) * self.rows[places] - RATE * unbiased


@pytest.mark.parametrize("amsgrad, maximize", [(False, False), (True, True)])
def test_adam_w_in_a_graph(amsgrad: bool, maximize: bool) -> None:
    reference = Reference(amsgrad, maximize)
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        handle, rows = fill(31, tf.constant([70, 80, 90], tf.int64))
        m, v, largest = (tf.compat.v1.Variable(np.zeros([4, 2], np.float32)) for _ in range(3))
        powers = [tf.compat.v1.Variable([1.0]) for _ in range(2)]
        keys, gradient = tf.compat.v1.placeholder(tf.int64, [None]), tf.compat.v1.placeholder(tf.float32, [None, 2])
        found = operators.table_to_resource_v2(31)
        settings = (RATE, DECAY, BETA1, BETA2, EPSILON)
        step = npu_cpu_ops.embedding_hashtable_apply_adam_w(
            found, keys, m, v, *powers, *settings, gradient, largest, 2, 4, amsgrad, maximize
        )
        session.run(tf.compat.v1.global_variables_initializer())
        session.run(rows)
        for given, places in (([90, 70, 5], [2, 0]), ([80, 90, 70], [1, 2, 0]), ([70], [0])):  # 5 has no row
            g = random.standard_normal([len(given), 2]).astype(np.float32)
            session.run(step, {keys: given, gradient: g})
            reference.step(places, g[: len(places)])
        kept = operators.embedding_hash_table_export([31], [3], [2], [4], 1)
        values = session.run(kept[3])[0].reshape(-1, 2)
        np.testing.assert_allclose(values, reference.rows[:3], rtol=1e-4, atol=1e-5)
        for held, true in ((m, reference.m), (v, reference.v), (largest, reference.largest)):
            np.testing.assert_allclose(session.run(held), true, rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(session.run(powers), [[BETA1**3], [BETA2**3]], rtol=1e-5)
        with pytest.raises(
            TypeError, match="embedding_hash_table_apply_adam_w: m=.* is updated in place. Pass the var"
        ):
            operators.embedding_hash_table_apply_adam_w(
                found, keys, gradient, v, *powers, *settings, gradient, largest, 2, 4
            )


def test_adam_w_in_eager_code_and_functions() -> None:
    if not tf.executing_eagerly():
        return
    reference = Reference(False, False)
    handle, _ = fill(32, tf.constant([70, 80], tf.int64))
    m, v = tf.Variable(tf.zeros([4, 2])), tf.Variable(tf.zeros([4, 2]))
    powers = [tf.Variable(1.0), tf.Variable(1.0)]

    def step(keys: Any, gradient: Any) -> None:
        operators.embedding_hash_table_apply_adam_w(
            handle, keys, m, v, *powers, RATE, DECAY, BETA1, BETA2, EPSILON, gradient, v, 2, 4
        )

    for run in (step, tf.function(step)):
        g = random.standard_normal([2, 2]).astype(np.float32)
        run(tf.constant([80, 70], tf.int64), tf.constant(g))
        reference.step([1, 0], g)
    rows = operators.embedding_hash_table_lookup_or_insert(handle, tf.constant([70, 80], tf.int64), 4, 2)
    np.testing.assert_allclose(rows, reference.rows[:2], rtol=1e-4, atol=1e-5)


def test_evicted_keys_leave_their_rows_to_others() -> None:
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        keys = tf.compat.v1.placeholder(tf.int64, [None])
        handle, rows = fill(33, tf.constant([1, 2, 3, 4], tf.int64))
        session.run(rows)
        look_up = operators.embedding_hash_table_lookup_or_insert(33, keys, 4, 2)
        evict = operators.embedding_hash_table_evict(33, keys, 4, 2, const_val=9.0)
        refill = operators.embedding_hash_table_evict(33, keys, 4, 2, "random")
        with pytest.raises(Exception, match="the embedding table has 4 rows, all in use, at key 5"):
            session.run(look_up, {keys: [5]})
        session.run(evict, {keys: [2, 77]})
        assert session.run(operators.embedding_hashmap_size([33], True)).tolist() == [3]
        assert session.run(look_up, {keys: [5, 1]}).tolist() == [[9, 9], [0.5, 0.5]]
        kept = operators.embedding_hash_table_export([33], [4], [2], [4], 1, filter_export_flag=True)[0]
        assert session.run(kept)[0].tolist() == [1, 5, 3, 4]  # 5 has the row of 2
        session.run(refill, {keys: [1]})
        assert session.run(look_up, {keys: [6]}).tolist() == [[0.5, 0.5]]
        session.run(operators.deinit_embedding_hashmap_v2(33))
        with pytest.raises(Exception, match="there is no embedding table 33"):
            session.run(look_up, {keys: [5]})
    with pytest.raises(ValueError, match="init_mode='zeros' is not allowed"):
        operators.embedding_hash_table_evict(33, [1], 4, 2, "zeros")


def test_tables_go_to_files_and_come_back(tmp_path: pathlib.Path) -> None:
    folder, names, step = str(tmp_path / "new"), ["users", "goods"], tf.constant(7, tf.int64)
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        for number, keys in ((34, [5, 6]), (35, [8])):
            session.run(fill(number, tf.constant(keys, tf.int64))[1])
        contents = operators.embedding_hash_table_export([34, 35], [2, 1], [2, 2], [4, 4], 2)
        step = tf.constant(7, tf.int64)
        session.run(npu_cpu_ops.embedding_hashmap_export_v2(folder, [34, 35], names, step, *contents, 2))
        assert sorted(path.name for path in (tmp_path / "new").iterdir()) == ["goods-7.npz", "users-7.npz"]
        sizes = npu_cpu_ops.embedding_hashmap_file_size_v2(folder, [34, 35], names, step, [2, 2])
        assert session.run(sizes).tolist() == [2, 1]
        read = npu_cpu_ops.embedding_hashmap_import_v2(folder, [36, 37], sizes, names, step, [2, 2], 2)
        for number in (36, 37):
            session.run(operators.init_embedding_hashmap_v2(number, 4, 80, 2))
        session.run(operators.embedding_hash_table_import([36, 37], [2, 2], [4, 4], *read))
        again = operators.embedding_hash_table_export([36, 37], [2, 1], [2, 2], [4, 4], 2)
        for kept, true in zip(session.run(again), session.run(contents)):
            assert [part.tolist() for part in kept] == [part.tolist() for part in true]
        with pytest.raises(
            Exception, match="there is no file .*users-8.npz. Write it with embedding_hashmap_export_v2"
        ):
            session.run(operators.embedding_hashmap_file_size(folder, [34], ["users"], 8, [2]))
        with pytest.raises(Exception, match="users-7.npz has 2 keys and 4 values, not 3 for each key"):
            session.run(operators.embedding_hashmap_import(folder, [34], [2], ["users"], 7, [3], 1)[0])
        with pytest.raises(ValueError, match="num=3, but there are 2 tables"):
            npu_cpu_ops.embedding_hashmap_export_v2(folder, [34, 35], names, step, *contents, 3)


def test_cache_operators() -> None:
    cache = operators.lru_cache(2, tf.int32)
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        added = session.run(operators.cache_add(cache, tf.constant([7, 8], tf.int64)))
        assert [part.tolist() for part in added] == [[7, 8], [0, 1], [], []]
        assert session.run(operators.cache_remote_index_to_local(cache, tf.constant([8, 7]))).tolist() == [1, 0]
        places = session.run(operators.cache_all_index_to_local(cache, tf.int64))
        assert places.dtype == np.int64 and places.tolist() == [0, 1]
