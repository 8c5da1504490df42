"""``npu-shim verify --ranks 2`` names planted defects of ranks, and agrees with scripts whose ranks work together."""

from __future__ import annotations

import pathlib
import re
import shutil
from typing import Any, Mapping, Sequence

import pytest
import tensorflow as tf

from npu_shim.rehearsal import verifying
from npu_shim.rehearsal.running import DEFAULTS, FILES, PROCESS, Run
from samples import training
from tests.distributed import forks
from tests.rehearsal.test_mutants import process_of_a_run

# One process trains on the rows of all ranks: the scripts divide their batches by the number of ranks.
SESSION = """
import sys

import numpy as np
import tensorflow as tf

import npu_shim.horovod.tensorflow as hvd

v1 = tf.compat.v1
v1.disable_v2_behavior()
hvd.init()
rank, size = hvd.rank(), hvd.size()
table = np.random.RandomState(0).rand(64, 4).astype("f4")
data = v1.data.Dataset.from_tensor_slices(table).shuffle(64, seed=3).repeat().shard(size, rank).batch(16 // size, True)
rows = v1.data.make_one_shot_iterator(data).get_next()
kernel = v1.get_variable("kernel", [4, 8], initializer=v1.glorot_uniform_initializer())
head = v1.get_variable("head", [8, 1], initializer=v1.glorot_uniform_initializer())
target = tf.reduce_sum(rows, 1, keepdims=True)
loss = tf.reduce_mean((tf.matmul(tf.tanh(tf.matmul(rows, kernel)), head) - target) ** 2)
optimizer = hvd.DistributedOptimizer(v1.train.GradientDescentOptimizer(0.1))
train = optimizer.minimize(loss)
saver = v1.train.Saver()
with v1.Session() as session:
    session.run(v1.global_variables_initializer())
    session.run(hvd.broadcast_global_variables(0))
    for _ in range(4):
        session.run(train)
    if rank == 0:
        saver.save(session, sys.argv[1] + "/weights")
"""
FIT = """
import sys

import numpy as np
import tensorflow as tf

import npu_shim.horovod.tensorflow.keras as hvd

hvd.init()
rank, size = hvd.rank(), hvd.size()
table = np.random.RandomState(0).rand(80, 4).astype("f4")
x, test = table[:64], table[64:]
model = tf.keras.Sequential([tf.keras.layers.Dense(8, "tanh"), tf.keras.layers.Dense(1)])
model.compile(hvd.DistributedOptimizer(tf.keras.optimizers.SGD(0.1)), "mse")
mine = x[rank::size]
first = [hvd.callbacks.BroadcastGlobalVariablesCallback(0)]
model.fit(mine, mine.sum(1), batch_size=16 // size, epochs=1, shuffle=False, verbose=0, callbacks=first)
if rank == 0:
    model.save_weights(sys.argv[1] + "/model.weights.h5")
model.evaluate(test, test.sum(1), verbose=0)
# the end
"""
LOOP = """
import sys

import numpy as np
import tensorflow as tf

import npu_shim.horovod.tensorflow as hvd

hvd.init()
tf.random.set_seed(1)
rank, size = hvd.rank(), hvd.size()
table = np.random.RandomState(0).rand(64, 4).astype("f4")
net = tf.keras.Sequential([tf.keras.layers.Dense(8, "tanh"), tf.keras.layers.Dense(1)])
optimizer = tf.keras.optimizers.SGD(0.1)


@tf.function
def step(x):
    with tf.GradientTape() as tape:
        seen = tf.nn.dropout(x, 0.0)
        loss = tf.reduce_mean((net(seen, training=True) - tf.reduce_sum(x, 1, keepdims=True)) ** 2)
    local = tape.gradient(loss, net.trainable_variables)
    gradients = [hvd.allreduce(each) for each in local]
    optimizer.apply_gradients(zip(gradients, net.trainable_variables))


order = np.arange(64)
for number in range(4):
    step(tf.constant(table[order][number * 16 : (number + 1) * 16][rank::size]))
    if number == 0:
        hvd.broadcast_variables(net.variables, root_rank=0)
if rank == 0:
    tf.train.Checkpoint(net=net).write(sys.argv[1] + "/weights")
"""
SHARED = """
import numpy as np
import tensorflow as tf

import npu_shim.npu_device as npu

npu.open().as_default()
npu.distribute.share_random_state()
table = np.random.RandomState(0).rand(64, 4).astype("f4")
data = tf.data.Dataset.from_tensor_slices(table).shuffle(64).batch(16, drop_remainder=True)
net = tf.keras.Sequential([tf.keras.layers.Dense(8, "tanh"), tf.keras.layers.Dense(1)])
optimizer = tf.keras.optimizers.SGD(0.1)
for x in npu.distribute.shard_batches(data):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((net(x, training=True) - tf.reduce_sum(x, 1, keepdims=True)) ** 2)
    gradients = npu.distribute.all_reduce(tape.gradient(loss, net.trainable_variables))
    optimizer.apply_gradients(zip(gradients, net.trainable_variables))
"""
# As the tool writes it with -d tf_strategy: the strategy gives each rank every second batch.
ESTIMATOR = """
import sys

import numpy as np
import tensorflow as tf

from npu_shim.npu_init import *

v1 = tf.compat.v1
size = get_rank_size()
table = np.random.RandomState(0).rand(64, 4).astype("f4")


def model_fn(features, labels, mode):
    hidden = v1.layers.dense(features, 8, tf.tanh, name="hidden")
    loss = tf.reduce_mean((v1.layers.dense(hidden, 1, name="head") - labels) ** 2)
    optimizer = npu_distributed_optimizer_wrapper(v1.train.GradientDescentOptimizer(0.1))
    train = optimizer.minimize(loss, v1.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train)


def rows(inputs):
    return tf.data.Dataset.from_tensor_slices((inputs, inputs.sum(1, keepdims=True)))


def input_fn():
    return rows(table).shuffle(64, seed=3).repeat().batch(16 // size, drop_remainder=True)


def test_fn():
    return rows(table[:16]).batch(4)


strategy = npu_strategy.NPUStrategy()
config = NPURunConfig(model_dir=sys.argv[1] + "/model", train_distribute=strategy)
estimator = NPUEstimator(model_fn, config=config)
steps, hooks = 4, []
estimator.train(input_fn, max_steps=steps, hooks=npu_hooks_append(hooks))
estimator.evaluate(test_fn)
"""
WHOLE = [(".shard(size, rank).batch(16 // size, True)", ".batch(16, True)")]
UNAVERAGED = [
    ("hvd.DistributedOptimizer(v1.train.GradientDescentOptimizer(0.1))", "v1.train.GradientDescentOptimizer(0.1)")
]
NO_BROADCAST = [("    session.run(hvd.broadcast_global_variables(0))\n", "")]
ALONE = [("train_distribute=strategy", "train_distribute=None")]
BY_HAND = (
    "rows(table).shuffle(64, seed=3).repeat()",
    "rows(table).shuffle(64, seed=3).repeat().shard(size, get_rank_id())",
)
LOCAL = [("npu_distributed_optimizer_wrapper(v1.train.GradientDescentOptimizer(0.1))", UNAVERAGED[0][1])]
SHARES = ("evaluate(test, test.sum(1)", "evaluate(test[rank::size], test[rank::size].sum(1)")
AVERAGED = ("# the end", "hvd.allreduce(tf.constant(score))")
OWN_ORDER = ("order = np.arange(64)", "order = np.random.permutation(64)")
# Script, edits of the migrated one, and what the verdict says.
DEFECTS = {
    "sharded data without averaging": (SESSION, UNAVERAGED, r"Nothing is averaged \(NPU303, train.py:17\)\."),
    "everything on both ranks": (
        SESSION,
        WHOLE + UNAVERAGED,
        r"Both ranks train on the same 16 rows; nothing is averaged \(NPU303, train.py:17\)\.",
    ),
    "averaging without sharding": (
        SESSION,
        WHOLE,
        "Both ranks train on the same 16 rows; their average is the gradient of one rank",
    ),
    "a checkpoint by both ranks": (
        SESSION,
        [("if rank == 0", "if True")],
        r"Ranks 0 and 1 write .*/weights \(.*train.py:\d+\)\. Save on rank 0 only\.",
    ),
    "initial variables that are not broadcast": (
        SESSION,
        NO_BROADCAST,
        "Rank 1 departs from rank 0 at step 1: gradient|Rank 1 departs from rank 0 at step 1: variable",
    ),
    "seeds of the ranks, not broadcast": (
        SESSION,
        [*NO_BROADCAST, ("hvd.init()", "hvd.init()\nv1.set_random_seed(1 + hvd.rank())")],
        "Rank 1 departs from rank 0 at step 1: variable",
    ),
    "a learning rate scaled on one side": (SESSION, [("Optimizer(0.1)", "Optimizer(0.1 * size)")], "learning rate"),
    "half of the batch": (SESSION, [("16 // size", "8 // size")], "8 rows together, the original on 16"),
    "a shuffle of each rank": (
        SESSION,
        [(".shuffle(64, seed=3)", ".shuffle(64, seed=3 + rank)")],
        "At step 1 the rows of all ranks together are not those of the original: .* stay equal",
    ),
    "a metric of the share of rank 0": (
        FIT,
        [SHARES],
        "Metric 'evaluate.*' of rank 0 is that of its share",
    ),
    "a checkpoint of a loop by both ranks": (LOOP, [("if rank == 0", "if True")], "Ranks 0 and 1 write .*/weights"),
    "unequal numbers of steps": (
        FIT,
        [
            ("hvd.DistributedOptimizer(tf.keras.optimizers.SGD(0.1))", "tf.keras.optimizers.SGD(0.1)"),
            ("epochs=1", "epochs=1 + rank"),
        ],
        "Rank 0 makes 4 training steps, rank 1 makes 8. Give all the same number",
    ),
    "one layer without averaging": (
        LOOP,
        [("    optimizer.apply", "    gradients[2] = local[2]\n    optimizer.apply")],
        "Rank 1 departs from rank 0 at step 1: gradient '.*dense_1/kernel'",
    ),
    "equal masks on both ranks": (
        LOOP,
        [("dropout(x, 0.0)", "dropout(x, 0.5)")],
        r"All ranks draw the same random numbers in a step: .* \(.*train.py:.*\)\. Seed them by rank",
    ),
    "masks of each rank": (
        LOOP,
        [("dropout(x, 0.0)", "dropout(x, 0.5)"), ("set_seed(1)", "set_seed(1 + hvd.rank())")],
        r"Each rank draws its own random numbers in a step: .* Turn them off to compare",
    ),
    "shards of data that each rank shuffles by chance": (
        LOOP,
        [OWN_ORDER],
        "At step 1 the rows of all ranks together are not",
    ),
    "an Estimator with sharded data, without averaging": (
        ESTIMATOR,
        [*ALONE, BY_HAND, *LOCAL],
        r"Nothing is averaged \(NPU303, train.py:17\)\.",
    ),
    "an Estimator that trains on everything on both ranks": (
        ESTIMATOR,
        ALONE + LOCAL,
        r"Both ranks train on the same 8 rows; nothing is averaged \(NPU303, train.py:17\)\.",
    ),
    "an Estimator with averaging, without sharding": (
        ESTIMATOR,
        ALONE,
        "Both ranks train on the same 8 rows; their average is the gradient of one rank",
    ),
    "an Estimator whose ranks shard what the strategy shards": (
        ESTIMATOR,
        [BY_HAND, ("16 // size", "16")],
        "At step 1 the ranks train on 32 rows together, the original on 16",
    ),
    "an Estimator with unequal numbers of steps": (
        ESTIMATOR,
        [*ALONE, BY_HAND, *LOCAL, ("steps, hooks = 4", "steps, hooks = 4 + get_rank_id()")],
        "Rank 0 makes 4 training steps, rank 1 makes 5. Give all the same number",
    ),
    "an Estimator with averaging and unequal numbers of steps": (
        ESTIMATOR,
        [("steps, hooks = 4", "steps, hooks = 4 + get_rank_id()")],
        r"Rank [01] waits in all\w+, and rank [01] is at .*train.py:\d+: give all ranks the same number of steps",
    ),
    "a checkpoint of an Estimator by both ranks": (
        ESTIMATOR,
        [("hooks = 4, []", "hooks = 4, [v1.train.CheckpointSaverHook(sys.argv[1] + '/copy', save_steps=2)]")],
        r"Ranks 0 and 1 write .*/copy/model.ckpt.* \(.*train.py:\d+\)\. Save on rank 0 only\.",
    ),
    "a folder of TensorFlow's own Estimator for both ranks": (
        ESTIMATOR,
        [
            *ALONE,
            BY_HAND,
            ("= NPUEstimator(", "= tf.estimator.Estimator("),
            ("NPURunConfig(", "tf.estimator.RunConfig("),
        ],
        r"Ranks 0 and 1 write .*/model/model.ckpt.* \(.*train.py:\d+\)\. Save on rank 0 only\.",
    ),
    "an Estimator's metric of the share of rank 0": (
        ESTIMATOR,
        [("table[:16]", "table[:16][get_rank_id()::size]")],
        "Metric 'evaluate.*' of rank 0 is that of its share",
    ),
    "an Estimator whose ranks shuffle with seeds of their own": (
        ESTIMATOR,
        [("model_dir=", "tf_random_seed=1 + get_rank_id(), model_dir=")],
        "At step 1 the rows of all ranks together are not those of the original: ",
    ),
    "the sum of gradients": (LOOP, [("hvd.allreduce(each)", "hvd.allreduce(each, op=hvd.Sum)")], "gradient"),
}
SEEDED = SESSION.replace("hvd.init()", "hvd.init()\nv1.set_random_seed(1)")
TRUE = {
    "a session": (SESSION, []),
    "a session with seeds and without a broadcast": (SEEDED, NO_BROADCAST),
    "an Estimator": (ESTIMATOR, []),
    "fit": (FIT, []),
    "a loop": (LOOP, []),
    "an averaged metric of shares": (FIT, [SHARES, ("model.evaluate(", "score = model.evaluate("), AVERAGED]),
    "random numbers of rank 0 on all ranks, and no broadcast": (SHARED, []),
}

# Two ranks that write one file, or one that waits for another rank.
MAY_FAIL = [name for name in DEFECTS if "checkpoint" in name or "averaging and unequal" in name]
CHEAP = ("everything on both ranks", "an Estimator with sharded data, without averaging", "a loop")


class Forked(Run):
    """A run in forks of a process that has imported TensorFlow."""

    def run_script(self) -> int:
        if not forks.is_safe():
            return super().run_script()
        environ = {**training.environment(), **DEFAULTS, "NPU_SHIM_COLLECTIVE_TIMEOUT": "20"}
        command = self.command()
        arguments = command[command.index(PROCESS) + 1 :]
        process = process_of_a_run(pathlib.Path(training.ROOT))
        folder = pathlib.Path(self.folder)
        shutil.rmtree(folder / FILES, ignore_errors=True)
        (folder / FILES).mkdir()
        try:
            if self.ranks is None:
                forks.run_script(process, *arguments, log=folder / "output.log", environ=environ)
            else:
                forks.run_ranks(self.ranks, str(process), *arguments, folder=folder, environ=environ)
        except AssertionError:
            logs = sorted(folder.glob("rank_*.log"))
            if logs:
                (folder / "output.log").write_text("".join(path.read_text() for path in logs))
            return 1
        return 0


def verified(script: str, edits: list[tuple[str, str]], folder: pathlib.Path) -> Any:
    """Verify a script with edits on two ranks against one process without them. Return the result."""
    migrated = script
    for old, new in edits:
        assert old in migrated, old
        migrated = migrated.replace(old, new)
    runs = []
    for name, text in (("original", script), ("migrated", migrated)):
        (folder / name).mkdir()
        path = folder / name / "train.py"
        path.write_text(text)
        ranks = 2 if name == "migrated" else None
        runs.append(Forked(name, str(path), ["{run}"], str(folder / name), ranks=ranks, of_ranks=True))
    settings = verifying.Settings(places=lambda: ["NPU303, train.py:17"])
    return verifying.verify(runs[0], runs[1], settings, lambda line: None)


def cases(known: Mapping[str, Sequence[Any]]) -> list[Any]:
    """Return the names of the cases that this TensorFlow can run; CHEAP ones run by day."""
    of_graphs = (SESSION, SEEDED, ESTIMATOR)
    runnable = [
        name
        for name, (script, *_) in known.items()
        if (tf.executing_eagerly() or script in of_graphs) and (script != ESTIMATOR or hasattr(tf, "estimator"))
    ]
    return [pytest.param(name, marks=[pytest.mark.smoke] if name in CHEAP else []) for name in runnable]


@pytest.mark.parametrize("name", cases(DEFECTS))
def test_a_defect_of_ranks_is_named(name: str, tmp_path: pathlib.Path) -> None:
    script, edits, said = DEFECTS[name]
    found = verified(script, edits, tmp_path)
    assert found.verdict == "differ" or (found.verdict == "not run" and name in MAY_FAIL)
    assert re.search(said, "\n".join(found.problems)), found.problems


@pytest.mark.parametrize("name", cases(TRUE))
def test_ranks_that_work_together_agree(name: str, tmp_path: pathlib.Path) -> None:
    script, edits = TRUE[name]
    found = verified(script, edits, tmp_path)
    assert (found.verdict, found.problems) == ("agree", []), found.problems
