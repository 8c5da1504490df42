"""A short script for each trouble that a rule finds: {(id of the row, code of the rule): script}."""

from __future__ import annotations

TF = "import tensorflow as tf\n"
NPU = TF + "from npu_shim.npu_init import *\n"
HVD = TF + "import horovod.tensorflow as hvd\n"
MIXED = TF + "config = npu_config_proto(precision_mode='allow_mix_precision')\n"
MODEL_FN = TF + "def model_fn(features, labels, mode):\n    loss = tf.losses.mean_squared_error(labels, features)\n"
SPEC = "    return tf.estimator.EstimatorSpec(mode, loss=loss)\n"
STEP = "@tf.function\ndef step(x):\n    return model(x)\n"
SCALED = NPU + "manager = FixedLossScaleManager(1024)\n"
ITERATOR = "it = tf.data.TFRecordDataset(files).map(lambda r: r * {}).make_initializable_iterator()\n"
TAPE = "    with tf.GradientTape() as tape:\n        loss = loss_of(model(x), y)\n"
APPLY = (
    "    optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))\n"
)
LOOP = "model = tf.keras.Sequential([tf.keras.layers.Dense(8)])\noptimizer = tf.keras.optimizers.Adam(0.1)\n"
ESTIMATOR = "estimator = tf.estimator.Estimator(model_fn, FLAGS.model_dir)\nestimator.train(input_fn)\n"
TABLE = "table = tf.contrib.lookup.index_table_from_file('words.txt')\n"
FORKED = (
    TF + "import multiprocessing\npool = multiprocessing.Pool(8)\nwith tf.Session() as sess:\n    sess.run(train_op)\n"
)

EXAMPLES: dict[tuple[str, str], str] = {
    ("tensorflow-1-script", "NPU100"): TF + "x = tf.placeholder(tf.float32, [8])\n",
    ("no-context", "NPU206"): TF
    + "class Model:\n    def __init__(self, *options):\n        self.sess = tf.Session(*options)\n"
    + "    def predict(self, x):\n        return self.sess.run(self.y, {self.x: x})\n",
    ("no-context", "NPU229"): FORKED,
    ("op-of-npu-on-host", "NPU101"): TF + "with tf.Session() as sess:\n    sess.run(train_op)\n",
    ("unsupported-operator", "NPU215"): TF + "generator = tf.random.experimental.Generator.from_seed(7)\n",
    ("unsupported-operator", "NPU217"): TF + "y = tf.nn.depthwise_conv2d(x, kernel, [1, 1, 1, 1], 'SAME')\n",
    ("unsupported-operator", "NPU218"): TF + "points = tf.load_op_library('./sampling.so')\n",
    ("unsupported-operator", "NPU282"): TF + "@tf.function\ndef step(x):\n    return tf.scan(lambda a, b: a + b, x)\n",
    ("v1-control-flow", "NPU234"): TF
    + "x = tf.placeholder(tf.float32, [None, 3])\ny = tf.while_loop(test, body, [x])\n",
    ("v1-control-flow", "NPU238"): TF
    + "data = tf.data.TextLineDataset(f).padded_batch(8, [None], drop_remainder=True)\ny = tf.map_fn(tf.identity, x)\n",
    ("forced-v2-control", "NPU243"): TF + "y = tf.raw_ops.Merge(inputs=[a, b])\n",
    ("op-type-refused", "NPU221"): TF + "x = tf.cast(x, tf.complex64)\n",
    ("op-type-refused", "NPU208"): TF + "y = tf.nn.conv3d(x, w, [1] * 5, 'SAME', data_format='NCDHW')\n",
    ("table-not-initialized", "NPU240"): TF
    + TABLE
    + "it = tf.data.TextLineDataset(f).map(lambda t: table.lookup(t)).make_initializable_iterator()\n",
    ("variable-in-pipeline", "NPU224"): TF + "mean = tf.Variable(0.5)\n" + ITERATOR.format("mean"),
    ("variable-in-pipeline", "NPU278"): TF
    + "mean = tf.Variable(0.5)\ndata = tf.data.TFRecordDataset(files).map(lambda r: r * mean)\n"
    + STEP,
    ("keras-zeros-in-pipeline", "NPU224"): TF
    + "def parse(record):\n    return {'loss': tf.keras.backend.zeros([1])}\ndata = tf.data.TFRecordDataset(f).map(parse)\n",
    ("weights-are-zero", "NPU220"): TF
    + "iterator = data.make_initializable_iterator()\n"
    + "sess.run(tf.group(tf.global_variables_initializer(), iterator.initializer))\n",
    ("input-queue", "NPU223"): TF + "images = tf.train.batch([image], batch_size=8, num_threads=2)\n",
    ("one-shot-iterator", "NPU244"): NPU
    + "batch = data.make_one_shot_iterator().get_next()\ntrain = util.set_iteration_per_loop(sess, train, 10)\n",
    ("loop-without-effect", "NPU244"): NPU
    + "images = tf.data.make_one_shot_iterator(data).get_next()\nop = util.set_iteration_per_loop(sess, op, 100)\n",
    ("unsendable-data", "NPU236"): MODEL_FN + "    words = tf.string_split(features['text'])\n" + SPEC,
    ("unsendable-data", "NPU274"): TF + "text = tf.keras.Input(shape=(1,), dtype=tf.string)\n" + STEP,
    ("fork-hangs", "NPU229"): FORKED.replace("multiprocessing.Pool(8)", "multiprocessing.Process(target=read)"),
    ("sizes-of-samples-differ", "NPU238"): TF
    + "data = tf.data.Dataset.from_generator(read, tf.int64).padded_batch(32, [None], drop_remainder=True)\n",
    ("sizes-of-samples-differ", "NPU234"): TF + "cloud = tf.placeholder(tf.float32, [16, None, 3])\n",
    ("file-order-differs", "NPU288"): HVD
    + "data = tf.data.Dataset.list_files('*.tfrecord').shard(hvd.size(), hvd.rank())\n",
    ("loss-scale-in-control-dependencies", "NPU242"): NPU
    + "with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):\n"
    + "    manager = ExponentialUpdateLossScaleManager(2 ** 32, 1000, 2, 0.5)\n",
    ("constant-underflows", "NPU227"): MIXED + "ratio = tf.square(width) / (tf.square(height) + 1e-8)\n",
    ("two-loss-scale-optimizers", "NPU287"): SCALED
    + "e, d = (NPULossScaleOptimizer(tf.train.AdamOptimizer(0.1), manager) for _ in range(2))\n"
    + "opt = NPULossScaleOptimizer(tf.train.AdamOptimizer(0.1), manager)\n"
    + "sess.run({'e_opt': opt.minimize(e_loss), 'd_opt': opt.minimize(d_loss)})\n",
    ("float64", "NPU221"): TF + "x = tf.placeholder(tf.float64, [8, 3])\n",
    ("data-format", "NPU208"): TF + "y = tf.nn.max_pool3d(x, 2, 2, 'SAME', data_format='NCDHW')\n",
    ("infinite-inputs", "NPU209"): TF + "scores = tf.where(mask, scores, tf.fill(tf.shape(scores), float('-inf')))\n",
    ("infinite-inputs", "NPU227"): MIXED + "scores = tf.where(mask, scores, tf.fill(tf.shape(scores), -1e9))\n",
    ("is-finite", "NPU222"): TF
    + "finite = tf.reduce_all(tf.is_finite(gradient))\n"
    + "train = tf.cond(finite, lambda: optimizer.apply_gradients(pairs), tf.no_op)\n",
    ("loss-scale-of-keras", "NPU116"): TF
    + "optimizer = tf.train.experimental.enable_mixed_precision_graph_rewrite(tf.train.AdamOptimizer(0.1))\n"
    + "train = optimizer.minimize(loss)\nwith tf.Session() as sess:\n    sess.run(train)\n",
    ("loss-scale-of-one-rank", "NPU116"): TF
    + "manager = tf.contrib.mixed_precision.FixedLossScaleManager(128)\n"
    + "optimizer = tf.contrib.mixed_precision.LossScaleOptimizer(tf.train.AdamOptimizer(0.1), manager)\n",
    ("global-step-counts-skipped", "NPU226"): TF
    + "def create_optimizer(loss, optimizer, pairs):\n    step = tf.train.get_or_create_global_step()\n"
    + "    return tf.group(optimizer.apply_gradients(pairs), [step.assign(step + 1)])\n",
    ("no-soft-placement", "NPU113"): TF + "tf.config.set_soft_device_placement(False)\n",
    ("batch-norm-mixed-computing", "NPU237"): MODEL_FN
    + "    x = tf.layers.batch_normalization(features)\n    y = tf.py_func(score, [x], tf.float32)\n"
    + SPEC,
    ("batch-norm-mixed-computing", "NPU240"): TF + TABLE + "x = tf.layers.batch_normalization(features)\n",
    ("conditional-accumulator", "NPU240"): TF + "sums = tf.ConditionalAccumulator(tf.float32, [3])\n",
    ("low-level-control-flow", "NPU243"): TF
    + "from tensorflow.python.ops import control_flow_ops\ndef layer(x, p):\n    return control_flow_ops.switch(x, p)\n",
    ("session-not-closed", "NPU206"): TF
    + "class Trainer:\n    def __init__(self, **options):\n        self.session = tf.Session(**options)\n"
    + "    def train(self):\n        self.session.run(self.op)\n",
    ("run-config-arguments", "NPU102"): TF
    + "run = tf.estimator.RunConfig(model_dir, protocol='grpc', device_fn=None)\n",
    ("save-by-seconds", "NPU102"): HVD + "run = tf.estimator.RunConfig(model_dir, save_checkpoints_secs=600)\n",
    ("print-without-effect", "NPU225"): MODEL_FN + "    tf.print('loss', loss)\n" + SPEC,
    ("print-in-session", "NPU225"): TF
    + "shown = tf.print(loss)\nwith tf.control_dependencies([shown]):\n    train = optimizer.minimize(loss)\n"
    + "with tf.Session() as sess:\n    sess.run(train)\n",
    ("summary-on-device", "NPU205"): MODEL_FN + "    tf.summary.scalar('loss', loss)\n" + SPEC,
    ("native-keras", "NPU228"): "from keras.layers import Dense\n"
    + TF
    + "y = Dense(1)(tf.placeholder(tf.float32, [8, 4]))\n",
    ("native-keras", "NPU277"): "import os\nos.environ['KERAS_BACKEND'] = 'jax'\nimport keras\n",
    ("eager-step", "NPU247"): TF + LOOP + "for x, y in data:\n" + TAPE + APPLY,
    ("two-apis", "NPU279"): TF + "weight = tf.compat.v1.get_variable('weight', [3])\n" + STEP,
    ("copied-across-devices", "NPU278"): TF
    + "flip = tf.keras.layers.RandomFlip()\ndata = tf.data.Dataset.from_tensor_slices(x).map(lambda i: flip(i))\n"
    + STEP,
    ("opened-too-late", "NPU121"): TF + LOOP + "model.compile(optimizer, 'mse')\nmodel.fit(images, labels)\n",
    ("cupy", "NPU249"): TF + "import cupy\nx = cupy.zeros(8)\n",
    ("python-function", "NPU237"): MODEL_FN + "    score = tf.py_func(bleu, [features, labels], tf.float32)\n" + SPEC,
    ("boolean-mask", "NPU231"): TF + "loss = tf.reduce_mean(tf.boolean_mask(losses, mask))\n",
    ("ranks-build-different-graphs", "NPU241"): HVD + "if hvd.rank() == 0:\n    tf.summary.scalar('loss', loss)\n",
    ("distribution-strategy", "NPU302"): TF
    + "strategy = tf.distribute.MirroredStrategy()\nrun = tf.estimator.RunConfig(train_distribute=strategy)\n",
    ("distribution-strategy", "NPU250"): TF
    + "strategy = tf.distribute.MirroredStrategy()\nrun = tf.estimator.RunConfig(train_distribute=strategy)\n",
    ("parameter-servers", "NPU257"): TF
    + "cluster = tf.train.ClusterSpec({'ps': ps, 'worker': workers})\n"
    + "server = tf.train.Server(cluster, job_name='ps', task_index=0)\n",
    ("parameter-servers", "NPU250"): TF + "strategy = tf.distribute.experimental.ParameterServerStrategy()\n",
    ("workers-of-parameter-servers", "NPU257"): TF
    + "cluster = tf.train.ClusterSpec({'ps': FLAGS.ps_hosts.split(','), 'worker': FLAGS.worker_hosts.split(', ')})\n"
    + "server = tf.train.Server(cluster, job_name='worker', task_index=FLAGS.task_index)\n",
    ("not-broadcast", "NPU306"): MODEL_FN + SPEC + ESTIMATOR,
    ("not-broadcast", "NPU251"): TF
    + "train = tf.train.AdamOptimizer(0.1).minimize(loss)\nwith tf.Session() as sess:\n"
    + "    sess.run(tf.global_variables_initializer())\n    sess.run(train)\n",
    ("not-sharded", "NPU252"): TF
    + "def train_input_fn():\n    return tf.data.TFRecordDataset(files).repeat().batch(32, drop_remainder=True)\n",
    ("horovod-import-removed", "NPU301"): HVD
    + "from horovod.common.util import env\nwith env(A='1'):\n    hvd.init()\n",
    ("gradients-of-own-loop", "NPU305"): TF
    + "optimizer = tf.train.AdamOptimizer(0.1)\ngradients = tf.gradients(loss, tf.trainable_variables())\n"
    + "train = optimizer.apply_gradients(zip(gradients, tf.trainable_variables()))\n",
    ("gradients-of-own-loop", "NPU308"): TF + LOOP + "@tf.function\ndef step(x, y):\n" + TAPE + APPLY,
    ("checkpoints-of-all-ranks", "NPU102"): HVD
    + "run = tf.estimator.RunConfig(save_checkpoints_steps=50 if hvd.rank() == 0 else None)\n",
    ("checkpoints-of-all-ranks", "NPU253"): TF
    + "job = tf.estimator.DNNClassifier([32], columns, model_dir='/model')\n",
    ("batch-of-all-ranks", "NPU255"): TF
    + LOOP
    + "data = tf.data.Dataset.from_tensor_slices(images).batch(64, drop_remainder=True)\n@tf.function\n"
    + "def step(x, y):\n    noise = tf.random.normal([64, 100])\n"
    + TAPE
    + APPLY
    + "for x, y in data:\n    step(x, y)\n",
    ("training-ops-frozen", "NPU284"): TF
    + "from tensorflow.keras import backend as K\nmodel = tf.keras.models.load_model('model.h5')\n"
    + "sess = K.get_session()\n"
    + "frozen = tf.graph_util.convert_variables_to_constants(sess, sess.graph_def, ['logits/Softmax'])\n",
    ("last-batch-of-predictions", "NPU245"): TF
    + "for i in range(0, len(images), 100):\n    scores.extend(sess.run(y, feed_dict={x: images[i:i + 100]}))\n",
    ("operator-of-npu-not-registered", "NPU125"): TF
    + "from tensorflow.python.framework import graph_util\nsaver = tf.train.import_meta_graph('model.ckpt.meta')\n"
    + "with tf.Session() as sess:\n    saver.restore(sess, 'model.ckpt')\n"
    + "    frozen = graph_util.convert_variables_to_constants(sess, sess.graph_def, ['logits'])\n",
    ("inference-compiled-for-training", "NPU283"): NPU
    + "graph_def = tf.GraphDef()\ngraph_def.ParseFromString(tf.gfile.GFile('frozen.pb', 'rb').read())\n"
    + "tf.import_graph_def(graph_def, name='')\nwith tf.Session(config=npu_config_proto()) as sess:\n"
    + "    print(sess.run('logits:0', {'images:0': images}))\n",
}
