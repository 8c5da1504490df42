"""Runs cases of Horovod's interface on each rank; writes what came of them, by case.

    python horovod_ranks.py FOLDER STYLE

STYLE is graph or eager. A case is a function; it raises an error if this rank gets something wrong.
"""

import json
import os
import sys
import traceback

import numpy as np
import tensorflow as tf

import npu_shim.horovod.tensorflow as hvd
import npu_shim.horovod.tensorflow.keras as hvd_keras
from npu_shim.distributed.world import WORLD
from npu_shim.horovod.tensorflow import card, gradients

FOLDER, STYLE = sys.argv[1:]
v1 = tf.compat.v1
KERAS3 = not hasattr(v1.keras.backend, "set_session")
if STYLE == "graph":
    v1.disable_eager_execution()
hvd.init()
RANK, SIZE = hvd.rank(), hvd.size()
OTHERS = float(sum(range(SIZE)))


def values(*tensors):
    """Return the values of tensors."""
    if STYLE == "eager":
        return [np.array(tensor) for tensor in tensors]
    with v1.Session() as session:
        session.run([v1.global_variables_initializer(), v1.local_variables_initializer()])
        return session.run(list(tensors))


def gradient(function, x, dy=None):
    """Return the gradient of a function's result with respect to x."""
    if STYLE == "graph":
        return tf.gradients(function(x), x, dy)[0]
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = function(x)
    return tape.gradient(y, x, dy)


def allreduce_has_every_reduction():
    x = tf.constant([1.0, -2.0]) * (RANK + 1)
    ops = [hvd.Average, hvd.Sum, hvd.Min, hvd.Max, hvd.Product]
    own = [np.array([1.0, -2.0]) * (rank + 1) for rank in range(SIZE)]
    expected = [np.mean(own, 0), np.sum(own, 0), np.min(own, 0), np.max(own, 0), np.prod(own, 0)]
    np.testing.assert_allclose(values(*[hvd.allreduce(x, op=op) for op in ops]), expected, rtol=1e-6)
    np.testing.assert_allclose(values(hvd.allreduce(x, average=False))[0], expected[1])
    np.testing.assert_allclose(values(hvd.allreduce(x, compression=hvd.Compression.fp16))[0], expected[0], rtol=1e-3)


def factors_multiply_before_and_after():
    scaled = hvd.allreduce(tf.constant([3.0]), op=hvd.Sum, prescale_factor=0.5, postscale_factor=4.0)
    whole = hvd.allreduce(tf.constant([3], tf.int32), op=hvd.Sum, prescale_factor=0.5)
    np.testing.assert_allclose(values(scaled)[0], [6.0 * SIZE])
    np.testing.assert_array_equal(values(whole)[0], [SIZE])


def averages_are_quotients():
    for dtype in (tf.int8, tf.int32, tf.int64):  # 49 * (1 / 49) is less than 1
        sums = tf.constant([49, 98, -50], dtype)
        np.testing.assert_array_equal(values(gradients.scale_tensor(sums, 1.0, 49))[0], [1, 2, -1])
    if STYLE == "graph":  # TensorFlow's constant folding multiplies with the reciprocal
        return
    x = np.random.RandomState(0).uniform(-100, 100, [1000]).astype(np.float32)
    total = x
    for _ in range(SIZE - 1):
        total = total + x
    np.testing.assert_array_equal(values(hvd.allreduce(tf.constant(x)))[0], total / np.float32(SIZE))


def adasum_says_what_to_use():
    try:
        hvd.allreduce(tf.ones([2]), op=hvd.Adasum)
    except NotImplementedError as error:
        assert "hvd.Average" in str(error)
    else:
        raise AssertionError("no error")


def groups_mix_types_and_sparse_tensors():
    slices = tf.IndexedSlices(tf.ones([RANK + 1, 2]), tf.range(RANK + 1), tf.constant([SIZE, 2]))
    made = hvd.grouped_allreduce([tf.ones([2]), slices, tf.constant([2], tf.int64)], op=hvd.Sum)
    dense, total = values(made[0], made[2])
    np.testing.assert_allclose(dense, [SIZE] * 2)
    np.testing.assert_array_equal(total, [2 * SIZE])
    summed = values(v1.unsorted_segment_sum(made[1].values, made[1].indices, SIZE) if hasattr(v1, "unsorted_segment_sum")
                    else tf.math.unsorted_segment_sum(made[1].values, made[1].indices, SIZE))[0]
    np.testing.assert_allclose(summed[:, 0], [SIZE - row for row in range(SIZE)])


def allgather_takes_different_numbers_of_rows():
    own = tf.fill([RANK + 1, 2], float(RANK))
    expected = np.repeat(np.arange(SIZE, dtype=np.float32), np.arange(SIZE) + 1)
    (gathered,) = values(hvd.allgather(own))
    np.testing.assert_array_equal(gathered[:, 1], expected)
    weights = tf.constant(np.stack([expected, expected], 1))
    (dy,) = values(gradient(hvd.allgather, own, weights))
    np.testing.assert_allclose(dy, np.full([RANK + 1, 2], RANK))


def alltoall_sends_rows_back_in_its_gradient():
    rows = tf.reshape(tf.range(SIZE * 2, dtype=tf.float32), [SIZE, 2]) + 100.0 * RANK
    received, splits = hvd.alltoall(rows, tf.ones([SIZE], tf.int32))
    made, numbers = values(received, splits)
    np.testing.assert_array_equal(made, [[100 * rank + 2 * RANK, 100 * rank + 2 * RANK + 1] for rank in range(SIZE)])
    np.testing.assert_array_equal(numbers, [1] * SIZE)
    (dy,) = values(gradient(lambda x: hvd.alltoall(x) * float(RANK + 1), rows))
    np.testing.assert_allclose(dy[:, 0], np.arange(SIZE) + 1)


def reducescatter_gives_the_first_ranks_more():
    (block,) = values(hvd.reducescatter(tf.range(SIZE + 1, dtype=tf.float32) * (RANK + 1.0), op=hvd.Sum))
    total = np.arange(SIZE + 1) * sum(rank + 1 for rank in range(SIZE))
    np.testing.assert_allclose(block, np.array_split(total, SIZE)[RANK])
    (dy,) = values(gradient(lambda x: hvd.reducescatter(x, op=hvd.Sum), tf.ones([SIZE, 3])))
    np.testing.assert_allclose(dy, np.full([SIZE, 3], SIZE))


def broadcast_has_its_gradient_on_the_root():
    root = SIZE - 1
    np.testing.assert_allclose(values(hvd.broadcast(tf.constant([float(RANK)]), root))[0], [root])
    (dy,) = values(gradient(lambda x: hvd.broadcast(x, root), tf.ones([2])))
    np.testing.assert_allclose(dy, [float(RANK == root)] * 2)


def variables_are_broadcast_by_name():
    names = ["weight", "bias", "scale"]
    order = names if RANK % 2 else names[::-1]  # the ranks make them in another order
    made = {name: tf.Variable(np.full([3], RANK + len(name), np.float32), name=name) for name in order}
    if STYLE == "eager":
        hvd.broadcast_variables(list(made.values()), root_rank=1)
        after = {name: np.array(variable) for name, variable in made.items()}
    else:
        with v1.Session() as session:
            session.run(v1.global_variables_initializer())
            session.run(hvd.broadcast_global_variables(1))
            after = session.run(made)
    for name in names:
        np.testing.assert_array_equal(after[name], np.full([3], 1 + len(name)))


def process_sets_run_their_own_collectives():
    last = hvd.add_process_set([SIZE - 1])
    pair = hvd.add_process_set([0, SIZE - 1]) if SIZE > 2 else hvd.global_process_set
    assert last.included() == (RANK == SIZE - 1) and pair.size() == 2
    number = last.process_set_id
    assert list(values(hvd.process_set_included_op(number), hvd.size_op(number))) == [RANK == SIZE - 1, 1]
    if pair.included():
        (total,) = values(hvd.allreduce(tf.constant([float(RANK)]), op=hvd.Sum, process_set=pair))
        np.testing.assert_allclose(total, [SIZE - 1])
    else:
        try:
            hvd.allreduce(tf.ones([1]), process_set=pair)
        except tf.errors.InvalidArgumentError as error:
            assert f"rank {RANK} is not in" in str(error)
        else:
            raise AssertionError("no error")
    assert hvd.remove_process_set(last) and not hvd.remove_process_set(hvd.global_process_set)
    if SIZE > 2:
        hvd.remove_process_set(pair)


def objects_travel():
    with v1.Session() if STYLE == "graph" else tf.device("cpu"):
        assert hvd.broadcast_object({"a": RANK} if RANK else [1, 2], root_rank=1) == {"a": 1}
        assert hvd.allgather_object("x" * RANK) == ["x" * rank for rank in range(SIZE)]


def states_restore_their_last_commit_and_take_the_values_of_rank_0():
    if STYLE == "graph":
        return
    variable = tf.Variable([float(RANK)])
    state = hvd.elastic.TensorFlowState([variable], step=RANK)
    state.sync()
    assert (variable.numpy(), state.step) == (0.0, 0)
    variable.assign([5.0])
    state.step = 5
    state.save()
    variable.assign([7.0])
    state.step = 7
    state.restore()
    assert (variable.numpy(), state.step) == (5.0, 5)


def a_keras_model_and_its_slots_become_those_of_rank_0():
    if KERAS3 and STYLE == "graph":
        return
    optimizers = getattr(tf.keras.optimizers, "legacy", tf.keras.optimizers) if STYLE == "graph" else tf.keras.optimizers
    for options in ({}, {"momentum": 0.5}):
        model = tf.keras.Sequential([tf.keras.layers.Dense(1, use_bias=False)])
        model.build([None, 2])
        model.compile(loss="mse", optimizer=optimizers.SGD(0.25, **options))
        model.set_weights([np.full([2, 1], RANK + 1.0)])
        x, y = np.ones([2, 2], np.float32), np.zeros([2, 1], np.float32)
        if RANK == 0 or STYLE == "graph":  # a graph has all variables before they can be broadcast
            model.train_on_batch(x, y)
        state = hvd_keras.elastic.KerasState(model, batch=RANK)
        state.sync()
        model.train_on_batch(x, y)
        # 1 - 0.25 * 2 * 2 = 0 is followed by 0 - 0.25 * 0, and with momentum by 0 + 0.5 * -1
        np.testing.assert_allclose(model.get_weights()[0], np.full([2, 1], -0.5 if options else 0.0), atol=1e-6)
        assert state.batch == 0
        state.restore()
        np.testing.assert_allclose(model.get_weights()[0], np.zeros([2, 1]), atol=1e-6)


def a_difference_between_ranks_is_an_error():
    expected = tf.errors.FailedPreconditionError if STYLE == "eager" else tf.errors.UnknownError
    try:
        values(hvd.allreduce(tf.ones([RANK + 1])))
    except expected as error:
        assert "float32[1]" in str(error) and "float32[2]" in str(error)
    else:
        raise AssertionError("no error")


def hccl_forms_have_the_same_results():
    """The forms for NPUs are composed of HCCL's collectives, which run here on the CPU."""
    own = tf.fill([RANK + 1, 2], float(RANK))
    unknown = own if STYLE == "eager" else v1.placeholder_with_default(own, [None, 2])
    expected = np.repeat(np.arange(SIZE, dtype=np.float32), np.arange(SIZE) + 1)
    if STYLE == "graph":
        np.testing.assert_array_equal(values(card.allgather(unknown, WORLD))[0][:, 0], expected)
    np.testing.assert_array_equal(values(card.allgather(tf.ones([1]) * RANK, WORLD))[0], np.arange(SIZE))
    rows = tf.reshape(tf.range(SIZE * 2, dtype=tf.float32), [SIZE, 2]) + 100.0 * RANK
    made, _ = values(*card.alltoall(rows, None, WORLD))
    np.testing.assert_array_equal(made[:, 0], [100 * rank + 2 * RANK for rank in range(SIZE)])
    (block,) = values(card.reduce_scatter(tf.range(SIZE + 1, dtype=tf.float32), "sum", WORLD))
    np.testing.assert_allclose(block, np.array_split(np.arange(SIZE + 1) * SIZE, SIZE)[RANK])
    card.barrier(WORLD)


def tapes_reduce_gradients():
    if STYLE == "graph":
        return
    weight, kept, table = tf.Variable([1.0, 2.0]), tf.Variable([1.0]), tf.Variable(tf.ones([4, 2]))

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            rows = tf.gather(table, tf.range(RANK + 1))  # another number of rows on each rank
            loss = tf.reduce_sum(weight) * (RANK + 1.0) + tf.reduce_sum(kept) * SIZE + tf.reduce_sum(rows)
        tape = hvd.DistributedGradientTape(tape, op=hvd.Sum)
        tape.register_local_source(kept)
        return tape.gradient(loss, {"w": weight, "k": kept, "t": table})

    made = step()
    np.testing.assert_allclose(made["w"], [OTHERS + SIZE] * 2)
    np.testing.assert_allclose(made["k"], [1.0])  # its own, divided by the number of ranks
    np.testing.assert_allclose(tf.convert_to_tensor(made["t"])[:, 0], [SIZE - row if row < SIZE else 0 for row in range(4)])


def groups_of_gradients_are_reduced_alike():
    variables = [tf.Variable(np.ones([size], np.float32)) for size in (1, 2, 3)]

    def loss():
        return sum(tf.reduce_sum(variable) * (number * RANK) for number, variable in enumerate(variables, 1))

    def gradients(groups):
        if STYLE == "graph":
            optimizer = hvd.DistributedOptimizer(v1.train.GradientDescentOptimizer(1.0), op=hvd.Sum, groups=groups)
            return values(*[each for each, _ in optimizer.compute_gradients(loss(), variables)])
        with tf.GradientTape() as tape:
            y = loss()
        return values(*hvd.DistributedGradientTape(tape, op=hvd.Sum, groups=groups).gradient(y, variables))

    for groups in (None, 1, 2, 9, [variables[:2]], [[variables[2], variables[0]], []]):
        for number, made in enumerate(gradients(groups), 1):
            np.testing.assert_allclose(made, [OTHERS * number] * number)
    for groups in (0, -1):
        try:
            gradients(groups)
        except ValueError as error:
            assert f"groups={groups} is not allowed" in str(error), error
        else:
            raise AssertionError("no error")


def graph_optimizers_reduce_gradients():
    if STYLE == "eager":
        return
    weight = tf.Variable([1.0, 2.0])
    optimizer = hvd.DistributedOptimizer(v1.train.GradientDescentOptimizer(1.0))
    train = optimizer.minimize(tf.reduce_sum(weight) * (RANK + 1.0), var_list=[weight])
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        session.run(train)
        np.testing.assert_allclose(session.run(weight), [1.0, 2.0] - np.full([2], OTHERS / SIZE + 1))


def graph_optimizers_sum_several_passes():
    if STYLE == "eager":
        return
    weight, step = tf.Variable([0.0]), v1.train.get_or_create_global_step()
    optimizer = hvd.DistributedOptimizer(
        v1.train.GradientDescentOptimizer(-1.0), backward_passes_per_step=3, average_aggregated_gradients=True
    )
    train = optimizer.minimize(tf.reduce_sum(weight) * float(RANK), global_step=step, var_list=[weight])
    with v1.Session() as session:
        session.run([v1.global_variables_initializer(), v1.local_variables_initializer()])
        seen = []
        for _ in range(7):
            session.run(train)
            seen.append(session.run([weight, step]))
    mean = OTHERS / SIZE
    np.testing.assert_allclose([w[0] for w, _ in seen], [0, 0, mean, mean, mean, 2 * mean, 2 * mean], rtol=1e-6)
    assert [number for _, number in seen] == list(range(1, 8))


def sparse_gradients_of_several_passes_become_dense():
    if KERAS3:
        return
    table = tf.Variable(tf.zeros([3, 1]))

    def loss():
        return tf.reduce_sum(tf.gather(table, [RANK]))

    def train(sparse_as_dense):
        options = {"backward_passes_per_step": 2, "sparse_as_dense": sparse_as_dense}
        if STYLE == "eager":
            optimizer = hvd_keras.DistributedOptimizer(tf.keras.optimizers.SGD(1.0), **options)
            for _ in range(2):
                optimizer.minimize(loss, [table])
            return table.numpy()
        optimizer = hvd.DistributedOptimizer(v1.train.GradientDescentOptimizer(1.0), **options)
        step = optimizer.minimize(loss(), var_list=[table])
        with v1.Session() as session:
            session.run([v1.global_variables_initializer(), v1.local_variables_initializer()])
            for _ in range(2):
                session.run(step)
            return session.run(table)

    try:
        train(False)
        raise AssertionError("no error")
    except ValueError as error:
        assert "Pass sparse_as_dense=True to hvd.DistributedOptimizer" in str(error), error
    np.testing.assert_allclose(train(True)[:, 0], [-2 / SIZE if row < SIZE else 0 for row in range(3)], rtol=1e-6)


def keras_trains_as_one_process():
    if KERAS3 and STYLE == "graph":
        return
    x = np.random.RandomState(0).normal(size=[8 * SIZE, 3]).astype(np.float32)
    y = 2 * x.sum(1, keepdims=True)
    kernel = np.ones([3, 1], np.float32)

    def trained(optimizer, rows, callbacks=(), epochs=3):
        model = tf.keras.Sequential([tf.keras.layers.Dense(1, use_bias=False)])
        model.build([None, 3])
        model.compile(loss="mse", optimizer=optimizer)
        model.set_weights([kernel * (RANK + 1 if callbacks else 1)])
        history = model.fit(x[rows], y[rows], 8, epochs, verbose=0, shuffle=False, callbacks=list(callbacks))
        return model.get_weights()[0], history.history

    optimizers = getattr(tf.keras.optimizers, "legacy", tf.keras.optimizers) if STYLE == "graph" else tf.keras.optimizers
    optimizer = hvd_keras.DistributedOptimizer(optimizers.SGD(0.1), name="Kept")
    model_rows = slice(RANK * 8, RANK * 8 + 8)
    made, _ = trained(optimizer, model_rows)
    # one process trains on the whole batch of each step
    expected = kernel.copy()
    for _ in range(3):
        expected -= 0.1 * 2 * x.T @ (x @ expected - y) / len(x)
    np.testing.assert_allclose(made, expected, rtol=1e-4)
    two_passes = {"backward_passes_per_step": 2, "average_aggregated_gradients": True}
    made, _ = trained(hvd_keras.DistributedOptimizer(optimizers.SGD(0.1), **two_passes), model_rows, epochs=6)
    np.testing.assert_allclose(made, expected, rtol=1e-4)
    callbacks = [
        hvd_keras.callbacks.BroadcastGlobalVariablesCallback(0),
        hvd_keras.callbacks.MetricAverageCallback(),
        hvd_keras.callbacks.LearningRateWarmupCallback(0.2, warmup_epochs=2),
    ]
    made, history = trained(hvd_keras.DistributedOptimizer(optimizers.SGD(0.1)), model_rows, callbacks)
    weights = hvd_keras.allgather(made.reshape([1, 3]))
    losses = hvd_keras.allgather(np.array(history["loss"]).reshape([1, 3]))
    np.testing.assert_array_equal(np.array(weights), np.repeat(made.reshape([1, 3]), SIZE, 0))
    np.testing.assert_allclose(np.array(losses), np.repeat([history["loss"]], SIZE, 0))
    np.testing.assert_allclose(history["lr"][1:], [0.2, 0.2], rtol=1e-5)


def synchronized_batch_normalization_sees_all_rows():
    x = np.random.RandomState(1).normal(size=[4 * SIZE, 2]).astype(np.float32)
    layer = hvd.SyncBatchNormalization(epsilon=0.0)
    (made,) = values(layer(tf.constant(x[RANK * 4 : RANK * 4 + 4]), training=True))
    expected = (x - x.mean(0)) / x.std(0)
    np.testing.assert_allclose(made, expected[RANK * 4 : RANK * 4 + 4], rtol=1e-3, atol=1e-4)


def ranks_are_those_of_the_job():
    assert (hvd.local_rank(), hvd.local_size(), hvd.cross_rank(), hvd.cross_size()) == (RANK, SIZE, 0, 1)
    assert hvd.is_initialized() and hvd.is_homogeneous() and not hvd.mpi_built() and not hvd.nccl_built()
    assert list(values(hvd.rank_op(), hvd.size_op(), hvd.local_rank_op(), hvd.local_size_op())) == [RANK, SIZE] * 2
    hvd.barrier()


CASES = [case for name, case in list(globals().items()) if callable(case) and case.__module__ == "__main__" and
         name not in ("values", "gradient")]


def main():
    came = {}
    for case in CASES:
        try:
            with tf.Graph().as_default() if STYLE == "graph" else tf.device("cpu"):
                case()
            came[case.__name__] = ""
        except Exception:
            came[case.__name__] = traceback.format_exc()
            break  # the other ranks may be elsewhere now
    with open(os.path.join(FOLDER, f"{STYLE}_{RANK}_of_{SIZE}.json"), "w") as file:
        json.dump(came, file)


main()
