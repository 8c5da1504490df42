"""npu.distribute and the loss scaling of npu.train on several ranks: each case compares with the numbers it knows.

Arguments: the folder for the results. Each rank writes what failed, by case, to rank_R_of_N.json.
"""

from __future__ import annotations

import json
import pathlib
import random
import sys
import traceback
from typing import Any

import numpy as np
import tensorflow as tf

import npu_shim.npu_device as npu
from npu_shim.npu_device.distribute import hccl_ops, npu_callbacks
from npu_shim.npu_device.distribute.global_batches import set_step_weight
from npu_shim.npu_device.distribute.gradient_sharing import distributed_optimizer

handle = npu.open().as_default()
rank, size = handle.worker_id, handle.workers_num
ranks = np.arange(size)
VERSION = tuple(map(int, tf.__version__.split(".")[:2]))
retracing = {"reduce_retracing" if VERSION >= (2, 9) else "experimental_relax_shapes": True}


def equal(found: Any, wanted: Any) -> None:
    np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-6)


def reductions() -> None:
    x = tf.constant([1.0, 2.0]) * (rank + 1)
    equal(npu.distribute.all_reduce(x), np.array([1, 2]) * np.mean(ranks + 1))
    equal(npu.distribute.all_reduce(x, "sum", fusion=0), np.array([1, 2]) * np.sum(ranks + 1))
    equal(npu.distribute.all_reduce(x, "max"), np.array([1, 2]) * size)
    equal(npu.distribute.all_reduce(x, "min", fusion=2, fusion_id=3), [1, 2])
    equal(npu.distribute.all_reduce(x, "prod"), np.array([1.0, 2.0]) ** size * np.prod(ranks + 1))


def mean_of_integers() -> None:
    found = npu.distribute.all_reduce([tf.constant(rank), tf.constant(1.0 * rank)])
    assert found[0].dtype == tf.float64, found[0].dtype
    equal(found, [np.mean(ranks)] * 2)


def structures() -> None:
    x = tf.constant(1.0 * rank)
    found = npu.distribute.all_reduce((x, None, x + 1))
    assert isinstance(found, list) and found[1] is None
    equal([found[0], found[2]], [np.mean(ranks), np.mean(ranks) + 1])
    nested = npu.distribute.all_reduce([x, [x, (x, None)]], "sum")
    equal(nested[1][1][0], np.sum(ranks))
    assert nested[1][1][1] is None


def indexed_slices() -> None:
    slices = tf.IndexedSlices(tf.ones([rank + 1, 2]), tf.zeros([rank + 1], tf.int32), tf.constant([3, 2]))
    equal(npu.distribute.all_reduce([slices], "sum")[0], [[np.sum(ranks + 1)] * 2, [0, 0], [0, 0]])


def functions() -> None:
    @tf.function(**retracing)
    def f(x: Any) -> Any:
        return npu.distribute.all_reduce([x, 2 * x], "sum")

    for length in (1, 2, 3, 4):
        equal(f(tf.ones([length]) * rank), [[np.sum(ranks)] * length, [2 * np.sum(ranks)] * length])


def loops() -> None:
    @tf.function
    def f(x: Any) -> Any:
        total = tf.zeros_like(x)
        for step in tf.range(5):
            total += npu.distribute.all_reduce(x * tf.cast(step, tf.float32), "sum")
        return total

    @tf.function
    def g(x: Any) -> Any:
        return tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, npu.distribute.all_reduce(y)), (0, x))[1]

    equal(f(tf.constant(1.0 * rank)), 10 * np.sum(ranks))
    equal(g(tf.constant(1.0 * rank)), np.mean(ranks))


def branches() -> None:
    @tf.function
    def f(x: Any) -> Any:
        return tf.cond(tf.reduce_sum(x) >= 0, lambda: npu.distribute.all_reduce(x, "sum"), lambda: x)

    equal(f(tf.constant([1.0 * rank])), [np.sum(ranks)])


def gradients() -> None:
    x = tf.Variable([1.0, 2.0])

    def loss() -> Any:
        return tf.reduce_sum(npu.distribute.all_reduce(x * (rank + 1.0), "sum") ** 2)

    for call in (loss, tf.function(loss)):
        with tf.GradientTape() as tape:
            value = call()
        # d(sum of squares)/dx of every rank's loss, summed over the ranks, times the factor of this one
        total = np.sum(ranks + 1)
        equal(tape.gradient(value, x), 2 * np.array([1, 2]) * total * size * (rank + 1))


def broadcasts() -> None:
    variables = [tf.Variable([1.0 * rank]), tf.Variable(10 * rank)]
    npu.distribute.broadcast(variables, root_rank=size - 1)
    equal(variables[0], [size - 1.0])
    equal(variables[1], 10 * (size - 1))
    variables[0].assign([1.0 * rank])
    tf.function(lambda: npu.distribute.broadcast(variables[0]))()
    equal(variables[0], [0.0])
    variables[0].assign([1.0 * rank])
    npu_callbacks.broadcast_helper(variables)
    npu_callbacks.broadcast_helper(variables)  # sent once
    equal(variables[0], [0.0])


def scopes() -> None:
    strategy = npu_callbacks.npu_broadcast_scope_wrapper(tf.distribute.OneDeviceStrategy("/cpu:0"))
    assert npu_callbacks.npu_broadcast_scope_wrapper(strategy) is strategy
    with strategy.scope():
        variable = tf.Variable([1.0 + rank])
        with strategy.scope():
            inner = tf.Variable([2.0 + rank])
    equal(variable, [1.0])
    equal(inner, [2.0])
    model = tf.keras.Sequential([tf.keras.layers.Dense(1, kernel_initializer=tf.keras.initializers.Constant(rank + 1.0))])
    model.build([None, 2])
    assert npu_callbacks.broadcast_keras_model(model) is model
    equal(model.get_weights()[0], [[1.0], [1.0]])


def callbacks_broadcast() -> None:
    model = tf.keras.Sequential([tf.keras.layers.Dense(1, kernel_initializer=tf.keras.initializers.Constant(rank + 1.0))])
    model.build([None, 2])
    model.compile(tf.keras.optimizers.SGD(0.0), "mse")
    given = [tf.keras.callbacks.Callback()]
    callbacks = npu.distribute.hccl.npu_callbacks_append(given)
    assert len(given) == 1 and callbacks[0] is given[0]
    model.fit(np.ones([2, 2], np.float32), np.ones([2, 1], np.float32), callbacks=callbacks, verbose=0)
    equal(model.get_weights()[0], [[1.0], [1.0]])


def shares_of_a_dataset() -> None:
    dataset, batch = npu.distribute.shard_and_rebatch_dataset(tf.data.Dataset.range(4 * size), 2 * size)
    assert batch == 2
    equal(list(dataset.as_numpy_iterator()), rank + size * np.arange(4))
    try:
        npu.distribute.shard_and_rebatch_dataset(dataset, 2 * size + 1)
    except ValueError as error:
        assert "must be a multiple of the number of ranks" in str(error)
    else:
        raise AssertionError("no error")


def other_collectives() -> None:
    x = tf.constant([[1.0 * rank]])
    equal(hccl_ops.allgather(x, size), ranks.reshape(-1, 1))
    equal(hccl_ops.reduce_scatter(tf.ones([size, 2]) * rank, "sum", size), [[np.sum(ranks)] * 2])
    equal(hccl_ops.allreduce(x, "sum"), [[np.sum(ranks)]])


x_all = np.random.RandomState(0).randn(12 * size, 3).astype(np.float32)
y_all = x_all @ np.array([[1.0], [2.0], [-1.0]], np.float32)


def trained(optimizer: Any, x: Any, y: Any, batch: int, apply: Any = None, scaled: bool = False) -> list[Any]:
    w, b = tf.Variable(tf.zeros([3, 1])), tf.Variable(tf.zeros([1]))

    @tf.function
    def step(x: Any, y: Any) -> None:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((x @ w + b - y) ** 2)
            if scaled:
                loss = (optimizer.scale_loss if VERSION >= (2, 16) else optimizer.get_scaled_loss)(loss)
        grads = tape.gradient(loss, [w, b])
        if scaled and VERSION < (2, 16):
            grads = optimizer.get_unscaled_gradients(grads)
        if apply is None:
            optimizer.apply_gradients(zip(grads, [w, b]))
        else:
            apply(grads, [w, b])

    if hasattr(optimizer, "build"):
        optimizer.build([w, b])
    for _ in range(3):
        for start in range(0, len(x), batch):
            step(x[start : start + batch], y[start : start + batch])
    return [w.numpy(), b.numpy()]


def same_weights(found: list[Any], make: Any) -> None:
    for one, other in zip(found, trained(make(), x_all, y_all, 4 * size)):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def own() -> tuple[Any, Any]:
    """Return the rows of this rank: of each global batch its part."""
    rows = np.concatenate([np.arange(start, start + 4) for start in range(4 * rank, 12 * size, 4 * size)])
    return x_all[rows], y_all[rows]


def optimizers() -> None:
    for make in (
        lambda: tf.keras.optimizers.SGD(0.1, momentum=0.9),
        lambda: tf.keras.optimizers.Adam(0.1),
        lambda: tf.keras.optimizers.SGD(0.1, clipnorm=0.5),
    ):
        optimizer = make()
        assert npu.distribute.npu_distributed_keras_optimizer_wrapper(optimizer) is optimizer
        same_weights(trained(optimizer, *own(), 4), make)


def groups() -> None:
    optimizer = tf.keras.optimizers.Adam(0.1)

    def apply(grads: Any, variables: Any) -> None:
        grads = npu.distribute.all_reduce(grads)
        npu.distribute.grouping_gradients_apply(optimizer.apply_gradients, zip(grads, variables))

    if size == 2:  # two variables
        same_weights(trained(optimizer, *own(), 4, apply), lambda: tf.keras.optimizers.Adam(0.1))
    variables = [tf.Variable([1.0 * rank]) for _ in range(size)]
    npu.distribute.grouping_broadcast(variables)
    equal([variable.numpy() for variable in variables], ranks.reshape(-1, 1))


def loss_scales() -> None:
    def make() -> Any:
        return tf.keras.optimizers.SGD(0.1)

    for settings in ({"initial_scale": 1024.0}, {"dynamic": False, "initial_scale": 128.0}):
        inner = npu.distribute.npu_distributed_keras_optimizer_wrapper(make()) if VERSION < (2, 16) else make()
        optimizer = npu.train.optimizer.NpuLossScaleOptimizer(inner, **settings)
        if VERSION >= (2, 16):
            npu.distribute.npu_distributed_keras_optimizer_wrapper(optimizer)
        same_weights(trained(optimizer, *own(), 4, scaled=True), make)


def update_of(optimizer: Any, variable: Any) -> Any:
    @tf.function
    def step(gradient: Any) -> None:
        optimizer.apply_gradients([(gradient, variable)])

    return step


def an_overflow_of_one_rank() -> None:
    for settings in ({}, {"dynamic": False, "initial_scale": 128.0}):
        variable = tf.Variable([1.0])
        optimizer = npu.train.optimizer.NpuLossScaleOptimizer(tf.keras.optimizers.SGD(0.1), **settings)
        step = update_of(optimizer, variable)
        if hasattr(optimizer, "build"):
            optimizer.build([variable])
        step(tf.constant([np.inf if rank == 1 else 1.0]))
        equal(variable, [1.0])
        assert not optimizer.last_step_finite.numpy()
        step(tf.constant([1.0]))
        assert optimizer.last_step_finite.numpy() and variable.numpy() < 1


def weights_of_rows() -> None:
    """The outer of two nested optimizers weights and averages the rows of an embedding."""
    variable = tf.Variable([[1.0], [1.0]])
    inner = distributed_optimizer(tf.keras.optimizers.SGD(1.0))
    outer = npu.train.optimizer.NpuLossScaleOptimizer(inner, dynamic=False, initial_scale=1.0)
    distributed_optimizer(outer)
    if hasattr(outer, "build"):
        outer.build([variable])
    rows = tf.IndexedSlices(tf.ones([1, 1]) * (rank + 1.0), tf.constant([1]), tf.constant([2, 1]))
    with set_step_weight(tf.constant(2.0)):
        outer.apply_gradients([(rows, variable)])
    equal(variable, [[1.0], [1 - 2 * np.mean(ranks + 1)]])


def tapes() -> None:
    """After distributed_optimizer() tapes average the gradients of variables, and of nothing else."""
    distributed_optimizer(tf.keras.optimizers.SGD(1.0))
    w, unused, x = tf.Variable([2.0]), tf.Variable([1.0]), tf.constant([rank + 1.0])
    mean = np.mean(ranks + 1)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * w**2
        with tf.GradientTape() as inner:
            inner.watch(x)
            z = x * w**2
        first = inner.gradient(z, [w, x])  # recorded by the outer tape
        own = tape.gradient(y, w)  # recorded by no other tape
    found = tape.gradient(y, {"w": w, "x": x, "none": unused})
    equal([found["w"], own, found["x"]], [[4 * mean], [4 * mean], [4.0]])
    assert found["none"] is None
    equal(first, [[4 * (rank + 1.0)], [4.0]])
    equal(tape.gradient(first[0], w), [2 * mean])
    equal(tape.jacobian(y, w), [[4 * (rank + 1.0)]])


def averages_are_applied_once() -> None:
    """Optimizers leave averages of a tape as they are, and average other gradients, also after a tape."""
    x = tf.constant([rank + 1.0])
    optimizer = distributed_optimizer(tf.keras.optimizers.SGD(1.0))
    w = tf.Variable([0.0])
    for _ in range(2):
        with tf.GradientTape() as tape:
            y = w * x
        gradient = tape.gradient(y, w) * (rank + 1.0)  # differs by rank, and shows if it is averaged again
        optimizer.apply_gradients([(gradient, w)])
        equal(w, [-np.mean(ranks + 1) * (rank + 1)])
        w.assign([0.0])
        optimizer.apply_gradients([(x, w)])
        equal(w, [-np.mean(ranks + 1)])
        w.assign([0.0])


def random_numbers() -> None:
    random.seed(rank)
    np.random.seed(rank)
    random.gauss(0, 1), np.random.normal()  # Python and NumPy keep the second number of a pair
    npu.distribute.share_random_state()
    numbers = [random.gauss(0, 1), random.random(), *np.random.normal(size=2), *np.random.permutation(9)]
    drawn = tf.concat([tf.constant(numbers, tf.float64), tf.random.normal([2], dtype=tf.float64)], 0)
    for reduction in ("min", "max"):
        equal(npu.distribute.all_reduce(drawn, reduction), drawn)
    random.seed(0)
    np.random.seed(0)
    random.gauss(0, 1), np.random.normal()
    equal([random.gauss(0, 1), random.random(), *np.random.normal(size=2)], numbers[:4])


CASES = [
    random_numbers,
    reductions,
    mean_of_integers,
    structures,
    indexed_slices,
    functions,
    loops,
    branches,
    gradients,
    broadcasts,
    scopes,
    callbacks_broadcast,
    shares_of_a_dataset,
    other_collectives,
    optimizers,
    groups,
    loss_scales,
    an_overflow_of_one_rank,
    weights_of_rows,
    averages_are_applied_once,
    tapes,
]


def main() -> None:
    failed: dict[str, str] = {}
    for case in CASES:
        try:
            case()
            failed[case.__name__] = ""
        except Exception:
            failed[case.__name__] = traceback.format_exc()
            if "PeerLost" in failed[case.__name__] or "within" in failed[case.__name__]:
                break  # the ranks are no longer at the same case
    (pathlib.Path(sys.argv[1]) / f"rank_{rank}_of_{size}.json").write_text(json.dumps(failed))


main()
