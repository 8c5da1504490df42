"""A script with MultiWorkerMirroredStrategy as users write it; the test converts it. Arguments: the folder, the case."""

import os
import sys

import numpy as np
import tensorflow as tf

FOLDER, CASE = sys.argv[1:]
tf.random.set_seed(1)
strategy = tf.distribute.MultiWorkerMirroredStrategy()
x = np.random.RandomState(0).rand(96, 4).astype(np.float32)
y = x.sum(1, keepdims=True)


def dataset_fn(context):
    dataset = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(96, seed=5)
    dataset = dataset.shard(context.num_input_pipelines, context.input_pipeline_id)
    return dataset.batch(context.get_per_replica_batch_size(24))


def is_chief(task_type, task_id):
    return task_type is None or task_type == "chief" or (task_type == "worker" and task_id == 0)


with strategy.scope():
    glorot = tf.keras.initializers.GlorotUniform
    model = tf.keras.Sequential(
        [
            tf.keras.layers.Dense(4, activation="relu", kernel_initializer=glorot(seed=1)),
            tf.keras.layers.Dense(1, kernel_initializer=glorot(seed=2)),
        ]
    )
    optimizer = tf.keras.optimizers.SGD(0.01)
    squared_error = tf.keras.losses.MeanSquaredError(reduction="none")
    metric = tf.keras.metrics.MeanSquaredError(name="mse")
batches = strategy.distribute_datasets_from_function(dataset_fn)


@tf.function
def train_step(iterator):
    def step_fn(inputs):
        rows, labels = inputs
        with tf.GradientTape() as tape:
            predictions = model(rows, training=True)
            loss = tf.nn.compute_average_loss(squared_error(labels, predictions))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        metric.update_state(labels, predictions)
        return loss

    losses = strategy.run(step_fn, args=(next(iterator),))
    return strategy.reduce(tf.distribute.ReduceOp.SUM, losses, axis=None)


task_type, task_id = strategy.cluster_resolver.task_type, strategy.cluster_resolver.task_id
directory = os.path.join(FOLDER, "checkpoints")
if not is_chief(task_type, task_id):
    directory = os.path.join(FOLDER, "of_worker_%d" % task_id)
manager = tf.train.CheckpointManager(tf.train.Checkpoint(model=model), directory, max_to_keep=1)
found = []
for _ in range(3):
    iterator = iter(batches)
    found += [float(train_step(iterator)) for _ in range(4)]
    found.append(float(metric.result()))
    manager.save()
if not is_chief(task_type, task_id):
    tf.io.gfile.rmtree(directory)
np.savez(os.path.join(FOLDER, f"{CASE}_{os.environ.get('RANK_ID', 'one')}"), np.array(found), *model.get_weights())
