"""The part of a dataset that each replica of NPUStrategy gets; and what the strategy builds for two ranks."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from npu_shim import npu_init as npu
from npu_shim.training import strategy_data

pytestmark = pytest.mark.twice

v1 = tf.compat.v1


def elements(make):
    """All elements of a dataset that a function makes, as lists."""
    with tf.Graph().as_default():
        following = v1.data.make_one_shot_iterator(make()).get_next()
        found = []
        with v1.Session() as sess:
            while True:
                try:
                    found.append(sess.run(following))
                except tf.errors.OutOfRangeError:
                    return found


def lists(found):
    return [np.asarray(element).tolist() for element in found]


@pytest.mark.parametrize("rank, batches", [(0, [[0, 1], [4, 5]]), (1, [[2, 3], [6, 7]])])
def test_batches_are_distributed_in_turn_and_each_rank_gets_as_many(rank, batches):
    assert (
        lists(elements(lambda: strategy_data.every_nth_batch(tf.data.Dataset.range(10).batch(2), rank, 2))) == batches
    )


def test_structures_are_distributed_whole():
    def make():
        rows = tf.data.Dataset.from_tensor_slices(({"x": np.arange(8), "y": np.arange(8) * 2}, np.arange(8) * 3))
        return strategy_data.every_nth_batch(rows.batch(2, drop_remainder=True), 1, 2)

    assert v1.data.get_output_shapes(make())[1].as_list() == [2]
    assert [(list(f["x"]), list(f["y"]), list(labels)) for f, labels in elements(make)] == [
        ([2, 3], [4, 6], [6, 9]),
        ([6, 7], [12, 14], [18, 21]),
    ]


@pytest.mark.parametrize("rank, parts", [(0, [[0], [4], []]), (1, [[1], [5], []]), (2, [[2, 3], [6, 7], [8]])])
def test_batches_are_split_as_evenly_as_possible(rank, parts):
    assert lists(elements(lambda: strategy_data.slice_each_batch(tf.data.Dataset.range(9).batch(4), rank, 3))) == parts


def test_parts_of_static_batches_are_static_and_structures_stay():
    def make():
        rows = tf.data.Dataset.from_tensor_slices((np.ones([6, 2], np.float32), {"label": np.arange(6)}))
        return strategy_data.slice_each_batch(rows.batch(6, drop_remainder=True), 1, 3)

    shapes = v1.data.get_output_shapes(make())
    assert shapes[0].as_list() == [2, 2] and shapes[1]["label"].as_list() == [2]
    ((x, y),) = elements(make)
    assert x.shape == (2, 2) and list(y["label"]) == [2, 3]


def test_sparse_batches_are_split_too():
    def make():
        rows = tf.data.Dataset.from_tensors(tf.SparseTensor([[0, 1], [2, 0], [3, 2]], [1.0, 2.0, 3.0], [4, 3]))
        return strategy_data.slice_each_batch(rows, 1, 2).map(tf.sparse.to_dense)

    assert lists(elements(make)) == [[[2, 0, 0], [0, 0, 3]]]


@pytest.mark.parametrize("rank, rows", [(0, [0]), (1, [1]), (2, [2, 3])])
def test_arrays_are_split_as_batches_of_a_dataset(rank, rows):
    part = strategy_data.rows_of_rank(np.arange(4), rank, 3, least=1)
    assert isinstance(part, np.ndarray) and part.tolist() == rows


@pytest.mark.parametrize("parted", [strategy_data.every_nth_batch, strategy_data.slice_each_batch])
@pytest.mark.parametrize("number, stays", [(2, True), (3, False)])
def test_a_dataset_that_is_sharded_by_rank_is_unchanged(parted, number, stays):
    with tf.Graph().as_default():
        dataset = tf.data.Dataset.range(12).shard(number, 1).shuffle(4, seed=1).batch(2)
        assert (parted(dataset, 1, 2) is dataset) is stays


def test_other_things_than_batches_and_datasets_are_refused():
    with tf.Graph().as_default():
        with pytest.raises(ValueError, match="has scalar elements.*Call batch"):
            strategy_data.slice_each_batch(tf.data.Dataset.range(4), 0, 2)
        with pytest.raises(
            TypeError, match="the input_fn returns .*Tensor. With a strategy it must return a tf.data.Dataset"
        ):
            strategy_data.every_nth_batch(tf.constant(1), 0, 2)


def collectives_of(optimizer, monkeypatch):
    """Return the number of collectives in a step of a replica."""
    monkeypatch.setenv("RANK_SIZE", "2")
    monkeypatch.setenv("RANK_ID", "1")
    with tf.Graph().as_default() as graph:
        strategy = npu.npu_strategy.NPUStrategy()
        run = getattr(strategy, "run", None) or strategy.experimental_run_v2
        assert strategy.num_replicas_in_sync == 2
        with strategy.scope():
            weight = v1.Variable([1.0, 2.0], use_resource=True)
            before = len(collectives_in(graph))
            run(lambda: optimizer().minimize(tf.reduce_sum(weight * weight)))
        return before, len(collectives_in(graph)) - before


def collectives_in(graph):
    return [op for op in graph.get_operations() if op.type == "MapDataset"]


def test_gradients_are_sent_once(monkeypatch):
    plain = collectives_of(lambda: v1.train.GradientDescentOptimizer(0.1), monkeypatch)
    for wrapper in (
        npu.npu_distributed_optimizer_wrapper,
        npu.NPUDistributedOptimizer,
        lambda inner: npu.NPUOptimizer(inner, is_distributed=True),
    ):
        wrapped = collectives_of(lambda: wrapper(v1.train.GradientDescentOptimizer(0.1)), monkeypatch)
        assert plain == wrapped == (1, 1)  # the initial value, and the gradient
