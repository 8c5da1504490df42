"""An Estimator that trains with Horovod."""
import json
import sys

import horovod.tensorflow as hvd
import numpy as np
import tensorflow.compat.v1 as tf

x = np.linspace(-1, 1, 64).astype(np.float32).reshape(64, 1)


def model_fn(features, labels, mode):
    w = tf.get_variable('w', [1, 1], initializer=tf.zeros_initializer())
    loss = tf.reduce_mean(tf.square(tf.matmul(features, w) - labels))
    optimizer = tf.train.MomentumOptimizer(0.05 * hvd.size(), momentum=0.9)
    compression = hvd.Compression.fp16 if '--half' in sys.argv else hvd.Compression.none
    optimizer = hvd.DistributedOptimizer(optimizer, compression=compression)
    train_op = optimizer.minimize(loss, tf.train.get_or_create_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def train_input_fn():
    dataset = tf.data.Dataset.from_tensor_slices((x, 3 * x)).shard(hvd.size(), hvd.rank())
    return dataset.repeat().batch(16, drop_remainder=True)


def main(_):
    hvd.init()
    session_config = tf.ConfigProto()
    session_config.gpu_options.visible_device_list = str(hvd.local_rank())
    config = tf.estimator.RunConfig(model_dir=sys.argv[1] if hvd.rank() == 0 else None, session_config=session_config)
    estimator = tf.estimator.Estimator(model_fn, config=config)
    estimator.train(train_input_fn, hooks=[hvd.BroadcastGlobalVariablesHook(0)], steps=20 // hvd.size())
    print(json.dumps({'w': estimator.get_variable_value('w').tolist(),
                      'step': int(estimator.get_variable_value('global_step'))}))


if __name__ == '__main__':
    tf.disable_v2_behavior()
    tf.app.run(main)
