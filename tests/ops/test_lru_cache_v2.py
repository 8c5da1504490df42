"""The cache of embedding rows: offsets, the rows that come and go, and what is written back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from npu_shim.estimator import npu_aicore_ops

pytestmark = pytest.mark.twice

ROWS, SIZE, PLACES = 1000, 2, 128  # two sets


class Reference:
    """The cache by its definition: dictionaries of the index and the last use of each place."""

    def __init__(self, data: Any) -> None:
        self.data, self.cache = data.copy(), np.zeros([PLACES, SIZE], np.float32)
        self.tags, self.used, self.calls = [-1] * PLACES, [0] * PLACES, 0

    def step(self, indices: list[int], routes: int) -> tuple[list[int], list[int]]:
        self.calls += 1
        offsets = [self.tags.index(index) * SIZE if index in self.tags else -1 for index in indices]
        for offset in offsets:
            if offset >= 0:
                self.used[offset // SIZE] = self.calls
        missing = []
        for index in dict.fromkeys(index for index, offset in zip(indices, offsets) if offset < 0):
            first = (index // routes) % 2 * 64
            free = [place for place in range(first, first + 64) if self.used[place] < self.calls]
            if not free:
                missing.append(index)
                continue
            place = min(free, key=lambda each: (self.tags[each] >= 0, self.used[each], each))
            if self.tags[place] >= 0:
                self.data[self.tags[place]] = self.cache[place]
            self.cache[place] = self.data[index]
            self.tags[place], self.used[place] = index, self.calls
        return offsets, missing + [0] * (len(indices) - len(missing))

    def write_back(self) -> None:
        for place, index in enumerate(self.tags):
            if index >= 0:
                self.data[index] = self.cache[place]


def made() -> Any:
    return np.arange(ROWS * SIZE, dtype=np.float32).reshape(ROWS, SIZE)


def batches(random: Any) -> list[Any]:
    sizes = [5, 90, 60, 90, 150, 40]  # 150 of 200 even numbers of a set do not fit
    return [random.choice(200, size, False) * (4 if size == 150 else 1) for size in sizes]


@pytest.mark.parametrize("is_resource", [True, False])
@pytest.mark.parametrize("routes, dtype", [(1, np.int32), (2, np.int64)])
def test_rows_come_and_go_in_a_graph(routes: int, dtype: Any, is_resource: bool) -> None:
    reference = Reference(made())
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        values = made(), np.zeros(PLACES * SIZE, np.float32), np.full(PLACES, -1, dtype)
        data, cache, tag = (tf.compat.v1.Variable(value, use_resource=is_resource) for value in values)
        indices, last = tf.compat.v1.placeholder(dtype, [None]), tf.compat.v1.placeholder(dtype, [])
        results = npu_aicore_ops.lru_cache_v2(indices, data, cache, tag, last, routes)
        session.run(tf.compat.v1.global_variables_initializer())
        for batch in batches(np.random.RandomState(routes)):
            offsets, missing = reference.step(batch.tolist(), routes)
            found = session.run(results, {indices: batch, last: 0})
            assert found[3].tolist() == offsets and found[4].tolist() == missing
            assert found[5].tolist() == [np.count_nonzero(missing)]
            assert found[2].tolist() == reference.tags
            np.testing.assert_array_equal(found[1].reshape(PLACES, SIZE), reference.cache)
            np.testing.assert_array_equal(found[0], reference.data)
            change = np.random.RandomState(0).standard_normal(PLACES * SIZE).astype(np.float32)
            session.run(cache.assign(change))  # training changes the rows in the cache
            reference.cache = change.reshape(PLACES, SIZE).copy()
        reference.write_back()
        found = session.run(results, {indices: [3], last: 1})
        np.testing.assert_array_equal(found[0], reference.data)
        assert found[3].tolist() == [-1]


def test_eager_code_and_functions() -> None:
    if not tf.executing_eagerly():
        return
    reference = Reference(made())
    data, cache, tag = (
        tf.Variable(each) for each in (made(), np.zeros(PLACES * SIZE, np.float32), np.full(PLACES, -1, np.int32))
    )
    call: Any = lambda batch: npu_aicore_ops.lru_cache_v2(batch, data, cache, tag, 0, 1)  # noqa: E731
    compiled = tf.function(call)
    for number, batch in enumerate(batches(np.random.RandomState(7))):
        offsets, missing = reference.step(batch.tolist(), 1)
        found = (compiled if number % 2 else call)(tf.constant(batch, tf.int32))
        assert found[3].numpy().tolist() == offsets and found[4].numpy().tolist() == missing
        assert tag.numpy().tolist() == reference.tags
        np.testing.assert_array_equal(data.numpy(), reference.data)


def test_a_loop_exchanges_rows_in_each_step() -> None:
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        values = made(), np.zeros(PLACES * SIZE, np.float32), np.full(PLACES, -1, np.int32)
        data, cache, tag = (tf.compat.v1.Variable(value, use_resource=True) for value in values)

        def step(number: Any, total: Any) -> Any:  # 0 2 4 6, then 4 6 8 10, then 8 10 12 14: all of one set
            offsets = npu_aicore_ops.lru_cache_v2(2 * tf.range(4) + 4 * number, data, cache, tag, 0, 1)[3]
            with tf.control_dependencies([offsets]):  # the next step sees what this one changed
                return number + 1, total + tf.reduce_sum(offsets)

        _, total = tf.while_loop(lambda number, _: number < 3, step, (tf.constant(0), tf.constant(0)))
        session.run(tf.compat.v1.global_variables_initializer())
        assert session.run(total) == -4 + (4 + 6 - 2) + (8 + 10 - 2)
        assert session.run(tag)[:9].tolist() == [0, 2, 4, 6, 8, 10, 12, 14, -1]


def test_wrong_arguments() -> None:
    with tf.Graph().as_default():
        data, cache = (tf.compat.v1.Variable(np.zeros(shape, np.float32)) for shape in ([9, 2], [128]))
        tag = tf.compat.v1.Variable(np.zeros(64, np.int32))
        with pytest.raises(ValueError, match="a tag of 64, a cache of .128., data of .9, 2. and pre_route_count=3 are"):
            npu_aicore_ops.lru_cache_v2([1], data, cache, tag, 0, 3)
        with pytest.raises(TypeError, match="lru_cache_v2: cache=.* is updated in place"):
            npu_aicore_ops.lru_cache_v2([1], data, tf.zeros([128]), tag, 0, 1)
