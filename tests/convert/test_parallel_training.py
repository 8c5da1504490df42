"""Programs of TensorFlow 2 with ``-d tf_strategy``: what is wrapped, what is reported, and what stays."""

from __future__ import annotations

import pathlib

import pytest
from convert_tf2npu.engine.converter import FINDING, Converter
from convert_tf2npu.engine.run import convert_source
from convert_tf2npu.engine.settings import Settings
from convert_tf2npu.main import main

CONVERTER = Converter(Settings(distributed="tf_strategy"))
HEAD = "import tensorflow as tf\n"
STEP = """
@tf.function
def train_step(x, y):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((model(x) - y) ** 2)
    optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
"""
DATASET = "data = tf.data.Dataset.from_tensor_slices((a, b)).batch(8, drop_remainder=True)\n"
START = HEAD + "tf.random.set_seed(1)\n" + DATASET + "optimizer = tf.keras.optimizers.SGD(0.1)\n" + STEP
OPTIMIZER = "npu.distribute.distributed_optimizer(tf.keras.optimizers.SGD(0.1))"
SHARDED = "npu.distribute.shard_batches(data)"


def converted(text: str) -> tuple[str, list[str]]:
    """Return the new text, or the old one, and the codes of the findings of these rules."""
    result = CONVERTER.convert(text.encode())
    new = text if result.new is None else result.new.decode()
    assert CONVERTER.convert(new.encode()).new is None  # twice is once
    findings = [d.code for d in result.diagnostics if d.kind == FINDING]
    return new, [code for code in findings if "NPU302" <= code <= "NPU311"]


@pytest.mark.parametrize(
    "loop, after",
    [
        ("for x, y in data:\n    train_step(x, y)\n", f"for x, y in {SHARDED}:\n"),
        ("for i, (x, y) in enumerate(data):\n    train_step(x, y)\n", f"for i, (x, y) in enumerate({SHARDED}):\n"),
        ("for i, (x, y) in data.enumerate():\n    train_step(x, y)\n", f"for i, (x, y) in {SHARDED}.enumerate():\n"),
        ("for x, y in data.take(3):\n    train_step(x, y)\n", "in npu.distribute.shard_batches(data.take(3)):\n"),
        ("for x, y in tqdm(data, 'train'):\n    train_step(x, y)\n", f"in tqdm({SHARDED}, 'train'):\n"),
        (
            "for i, x in tqdm(zip(range(9), data), total=9):\n    train_step(x, x)\n",
            f"in tqdm(zip(range(9), {SHARDED}), total=9):\n",
        ),
        ("batches = iter(data)\nfor _ in range(9):\n    train_step(*next(batches))\n", f"batches = iter({SHARDED})\n"),
        (
            "def epoch(data):\n    for x, y in data:\n        train_step(x, y)\nepoch(data)\n",
            f"for x, y in {SHARDED}:\n",
        ),
    ],
    ids=[
        "loop",
        "enumerate",
        "method enumerate",
        "take",
        "progress bar",
        "numbered progress bar",
        "iterator",
        "in a function",
    ],
)
def test_the_data_of_a_training_loop_is_sharded(loop: str, after: str) -> None:
    new, findings = converted(START + loop)
    assert after in new and new.count("shard_batches") == 1
    assert OPTIMIZER in new and findings == []


@pytest.mark.parametrize(
    "loop",
    [
        "for x, y in data:\n    print(model(x))\n",
        "for x, y in data.take(1):\n    losses.append(loss_of(x, y))\n",
        "for epoch in range(9):\n    train_step(a, b)\n",
    ],
)
def test_other_loops_stay(loop: str) -> None:
    new, findings = converted(START + loop)
    assert "shard_batches" not in new and findings == []


FUNCTION = "def batches():\n    return iter(data)\n"
METHOD = "class Data:\n    def batches(self):\n        return iter(data)\n"
NEXT = "for _ in range(9):\n    x, y = next(it)\n    train_step(x, y)\n"


@pytest.mark.parametrize(
    "text, after, codes",
    [
        (FUNCTION + "for x, y in batches():\n    train_step(x, y)\n", "in npu.distribute.shard_batches(batches()):", []),
        (FUNCTION + "it = batches()\nfor x, y in it:\n    train_step(x, y)\n", "in npu.distribute.shard_batches(it):", []),
        (FUNCTION + "it = batches()\n" + NEXT, "it = iter(npu.distribute.shard_batches(batches()))\n", []),
        (METHOD + "it = Data().batches()\n" + NEXT, "it = Data().batches()\n", ["NPU309"]),
        (FUNCTION + "it = batches()\n" + NEXT.replace("next(it)", "it.get_next()"), "it = batches()\n", ["NPU309"]),
        (FUNCTION + "it = batches()\nwhile True:\n    train_step(it)\n", "it = batches()\n", ["NPU309"]),
        ("it = iter(data)\nwhile True:\n    train_step(it)\n", f"it = iter({SHARDED})\n", []),
        ("it = iter(data)\n" + NEXT, f"it = iter({SHARDED})\n", []),
        ("it = iter(data)\n" + NEXT.replace("next(it)", "it.get_next()"), f"it = iter({SHARDED})\n", []),
        ("it = iter(data)\nwhile True:\n    train_step(*next(it))\n", f"it = iter({SHARDED})\n", []),
        ("class T:\n    def __init__(self):\n        self.it = iter(data)\n    def go(self):\n"
         "        train_step(*next(self.it))\nT().go()\n", f"self.it = iter({SHARDED})\n", []),
        ("it = lib.batches()\n" + NEXT, "it = lib.batches()\n", ["NPU309"]),
        ("def go(it):\n    train_step(*next(it))\ngo(lib.batches())\n", "go(lib.batches())\n", ["NPU309"]),
        ("it = iter(data)\nprint(next(it))\n", "it = iter(data)\n", []),
        (FUNCTION + "it = batches()\nprint(next(it))\n", "it = batches()\n", []),
    ],
    ids=["loop", "loop over a variable", "next", "method", "get_next of a function", "passed from a function", "passed", "before the step", "get_next", "in the step", "attribute",
         "unknown", "unknown argument", "not trained", "function, not trained"],
)  # fmt: skip
def test_an_iterator_that_steps_read_is_sharded(text: str, after: str, codes: list[str]) -> None:
    new, findings = converted(START + text)
    assert after in new and findings == codes


def test_batches_of_unknown_origin_are_reported() -> None:
    new, findings = converted(START + "for x, y in batches:\n    train_step(x, y)\n")
    assert "shard_batches" not in new and findings == ["NPU309"]


def test_an_optimizer_that_a_class_takes_as_any_argument_is_known() -> None:
    net = "class Net(tf.keras.Model):\n    def __init__(self, **settings):\n        super().__init__()\n"
    net += "        self.__dict__.update(settings)\n    def learn(self, g):\n"
    net += "        self.apply_gradients(g)\n    def apply_gradients(self, g):\n"
    net += "        self.optimizer.apply_gradients(zip(g, self.variables))\n"
    made = "net = Net(optimizer=tf.keras.optimizers.SGD(0.1))\nfor x, y in data:\n    net.learn(tf.GradientTape(), x)\n"
    new, findings = converted(HEAD + DATASET + net + made)
    assert f"Net(optimizer={OPTIMIZER})" in new and findings == []
    assert converted(HEAD + DATASET + net + made.replace("Net(", "Net(rate=1, other"))[1] == ["NPU308"]


TRAINER = """
class Trainer:
    def __init__(self, net, name):
        self.net = net
        self.optimizer = MADE(0.1)
    def step(self, x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((self.net(x) - y) ** 2)
        self.optimizer.apply_gradients(zip(tape.gradient(loss, self.net.variables), self.net.variables))
    def fit(self, batches, other=None):
        for x, y in batches:
            self.step(x, y)
"""
CLASS = "getattr(tf.keras.optimizers, name)"


@pytest.mark.parametrize(
    "end, sharded",
    [
        ("Trainer(net, 'SGD').fit(data)\n", True),
        ("t = Trainer(net, 'SGD')\nt.fit(data.take(2))\nt.fit(batches=data.map(f).shuffle(2))\n", True),
        ("def run(data):\n    Trainer(net, 'SGD').fit(data)\nrun(data)\n", True),
        ("class Run:\n    def go(self, d):\n        Trainer(net, 'SGD').fit(d.take(1))\nRun().go(data)\n", True),
        # fit of other objects
        ("Trainer(net, 'SGD').fit(data)\nm = tf.keras.Sequential([])\nm.fit(x, y)\n", True),
        ("class Fake:\n    def fit(self, x):\n        pass\nFake().fit(3)\nTrainer(net, 'SGD').fit(data)\n", True),
        ("Trainer(net, 'SGD').fit(data)\nmodel_of(x).fit(x)\n", False),
        ("Trainer(net, 'SGD').fit(data if big else rows)\n", False),
        ("Trainer(net, 'SGD').fit(*args)\n", False),
        ("class More(Trainer):\n    pass\nMore(net, 'SGD').fit(rows)\n", False),
    ],
    ids="object methods function method Keras class unknown rows hidden derived".split(),
)
def test_a_trainer_gets_its_dataset_as_an_argument(end: str, sharded: bool) -> None:
    text = HEAD + "tf.random.set_seed(1)\n" + DATASET + TRAINER + end
    new, findings = converted(text.replace("MADE", CLASS))
    assert ("in npu.distribute.shard_batches(batches):" in new) == sharded
    assert f"self.optimizer = npu.distribute.distributed_optimizer({CLASS}(0.1))" in new
    assert findings == ([] if sharded else ["NPU309"])


@pytest.mark.parametrize(
    "made",
    [
        "getattr(tf.optimizers, name, tf.optimizers.SGD)",
        "getattr(tf.keras.optimizers.legacy, name)",
        "(tf.keras.optimizers.SGD if name == 'SGD' else getattr(tf.keras.optimizers, name))",
    ],
)
def test_an_optimizer_by_its_name(made: str) -> None:
    text = HEAD + DATASET + TRAINER.replace("MADE", made) + "Trainer(net, 'SGD').fit(data)\n"
    new, findings = converted(text)
    assert f"npu.distribute.distributed_optimizer({made}(0.1))" in new and findings == []
    other = text.replace(made, "getattr(own, name)")
    assert converted(other)[1] == ["NPU308"]


def test_an_optimizer_as_an_argument_of_a_method() -> None:
    trainer = TRAINER.replace("self.optimizer = MADE(0.1)", "self.name = name")
    trainer += "    def compile(self, optimizer):\n        self.optimizer = optimizer\n"
    end = "t = Trainer(net, 'SGD')\nt.compile(tf.keras.optimizers.SGD(0.1))\nt.fit(data)\n"
    new, findings = converted(HEAD + DATASET + trainer + end)
    assert f"t.compile({OPTIMIZER})" in new and findings == []


@pytest.mark.parametrize(
    "decorator, known", [("", 1), ("@tf.function", 1), ("@tf.function(jit_compile=False)", 1), ("@own", 0)]
)
def test_an_optimizer_as_an_argument_of_a_tf_function(decorator: str, known: int) -> None:
    step = STEP.replace("@tf.function", decorator).replace("(x, y)", "(optimizer, x, y)")
    loop = "for x, y in data:\n    train_step(sgd, x, y)\n"
    new, codes = converted(START.replace("optimizer =", "sgd =").replace(STEP, step) + loop)
    assert f"sgd = {OPTIMIZER}" in new and codes == ["NPU308"] * (1 - known)


@pytest.mark.parametrize(
    "maker, made, known",
    [
        ("", "make=tf.keras.optimizers.SGD", True),
        ("def sgd(rate):\n    return tf.keras.optimizers.SGD(rate)\n", "make=sgd", True),
        ("", "make=lambda rate: tf.keras.optimizers.SGD(rate)", True),
        ("", "make", False),
    ],
    ids=["a class by default", "a factory by default", "a lambda by default", "a parameter"],
)
def test_an_optimizer_that_a_method_makes_with_an_argument(maker: str, made: str, known: bool) -> None:
    trainer = TRAINER.replace("net, name", f"net, {made}").replace("self.optimizer = MADE(0.1)", "self.make = make")
    trainer += "    def build(self):\n        self.optimizer = self.make(0.1)\n"
    end = "t = Trainer(net)\nt.build()\nt.fit(data)\n"
    new, findings = converted(HEAD + DATASET + maker + trainer + end)
    assert new.count("npu.distribute.distributed_optimizer(") == known
    assert findings == ([] if known else ["NPU308"])
    assert converted(HEAD + DATASET + maker + trainer + end.replace("net", "net, settings.make"))[1] == ["NPU308"]


def test_an_optimizer_that_is_a_default_is_reported() -> None:
    """Python makes it where the class is defined, before the device is open, so averaging would do nothing."""
    trainer = TRAINER.replace("net, name", "net, optimizer=tf.keras.optimizers.SGD(0.1)").replace(
        "MADE(0.1)", "optimizer"
    )
    new, findings = converted(HEAD + DATASET + trainer + "Trainer(net).fit(data)\n")
    assert "distributed_optimizer" not in new and findings == ["NPU308"]


def test_a_step_that_gets_its_optimizer_from_a_factory_that_the_caller_passes() -> None:
    step = STEP.replace("(x, y)", "(optimizer, x, y)")
    text = HEAD + DATASET + "def make(n):\n    return tf.keras.optimizers.SGD(0.1), n\n" + step
    text += "def learn(make_optimizer, data):\n    optimizer, _ = make_optimizer(3)\n    for x, y in data:\n"
    new, findings = converted(text + "        train_step(optimizer, x, y)\nlearn(make, data)\n")
    assert f"return {OPTIMIZER}, n" in new and findings == []


def test_an_optimizer_that_calls_its_base_is_known() -> None:
    own = "class Own(tf.keras.optimizers.SGD):\n    def apply_gradients(self, pairs):\n        return {}(pairs)\n"
    for base in ("super().apply_gradients", "super(Own, self).apply_gradients"):
        made = START.replace("tf.keras.optimizers.SGD(0.1)", "Own(0.1)")
        new, findings = converted(made.replace("optimizer =", own.format(base) + "optimizer ="))
        assert "optimizer = npu.distribute.distributed_optimizer(Own(0.1))" in new and findings == []


def test_an_optimizer_that_averages_with_mpi_stays() -> None:
    own = "from mpi4py import MPI\ndef mean(g):\n    return MPI.COMM_WORLD.{}(g) / MPI.COMM_WORLD.Get_size()\n"
    own += "class Own(tf.keras.optimizers.SGD):\n    def apply_gradients(self, pairs):\n"
    own += "        return super().apply_gradients([(mean(g), v) for g, v in pairs])\n"
    text = START.replace("tf.keras.optimizers.SGD(0.1)", "Own(0.1)").replace("optimizer =", own + "optimizer =")
    new, findings = converted(text.replace("{}", "allreduce"))
    assert "optimizer = Own(0.1)\n" in new and findings == ["NPU308"]
    new, findings = converted(text.replace("{}", "bcast"))
    assert "optimizer = npu.distribute.distributed_optimizer(Own(0.1))" in new and findings == []


def test_a_step_in_the_loop_itself() -> None:
    loop = "for x, y in data:\n    with tf.GradientTape() as tape:\n        loss = loss_of(model(x), y)\n"
    loop += "    optimizer.apply_gradients(zip(tape.gradient(loss, v), v))\n"
    new, findings = converted(
        HEAD + "tf.random.set_seed(1)\n" + DATASET + "optimizer = tf.keras.optimizers.SGD(0.1)\n" + loop
    )
    assert f"in {SHARDED}:" in new and OPTIMIZER in new and findings == []


def test_only_the_outermost_optimizer_is_wrapped() -> None:
    scaled = "tf.keras.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.SGD(0.1))"
    new, findings = converted(START.replace("tf.keras.optimizers.SGD(0.1)", scaled))
    inner = "npu.train.optimizer.NpuLossScaleOptimizer(tf.keras.optimizers.SGD(0.1))"
    assert f"optimizer = npu.distribute.distributed_optimizer({inner})\n" in new and findings == []


def test_an_optimizer_that_the_script_averages_stays() -> None:
    text = START.replace("import tensorflow as tf\n", "import tensorflow as tf\nimport npu_shim.npu_device as npu\n", 1)
    by_hand = "npu.distribute.npu_distributed_keras_optimizer_wrapper(tf.keras.optimizers.SGD(0.1))"
    new, _ = converted(text.replace("tf.keras.optimizers.SGD(0.1)", by_hand))
    assert f"optimizer = {by_hand}\n" in new


NORM = "class Norm(tf.keras.layers.{}):\n    def call(self, x, training=False):\n        return {}\n"
OF_BASE = "super().call(x, training=training and self.trainable)"


@pytest.mark.parametrize(
    "own, made, synchronized, codes",
    [
        ("", "tf.keras.layers.BatchNormalization()", True, []),
        (NORM.format("BatchNormalization", OF_BASE), "Norm()", True, []),
        (NORM.format("BatchNormalization", OF_BASE) + "class More(Norm):\n    pass\n", "More()", True, []),
        (NORM.format("BatchNormalization", "(x - tf.reduce_mean(x, 0)) * self.gamma"), "Norm()", False, ["NPU308"]),
        (NORM.format("LayerNormalization", OF_BASE), "Norm()", False, []),
        ("", "tf.keras.applications.ResNet50()", True, []),
        ("", "tf.keras.applications.vgg19.VGG19()", False, []),
        ("", "tf.keras.applications.VGG16(weights=None)", False, []),
        ("", "tf.keras.applications.vgg16.preprocess_input(images)", False, []),
    ],
    ids="Keras subclass derived own_statistics other ResNet VGG19 VGG16 function".split(),
)
def test_batch_normalization_uses_the_rows_of_all_ranks(
    own: str, made: str, synchronized: bool, codes: list[str]
) -> None:
    new, findings = converted(START + own + f"layer = {made}\n")
    assert (f"layer = npu.distribute.sync_batch_norm({made})\n" in new) == synchronized and findings == codes
    assert synchronized or f"layer = {made}\n" in new


def test_the_step_of_a_keras_model_belongs_to_fit() -> None:
    text = HEAD + "tf.random.set_seed(1)\nclass Net(tf.keras.Model):\n    def train_step(self, data):\n"
    text += "        with tf.GradientTape() as tape:\n            loss = self.loss_of(data)\n"
    text += "        self.optimizer.apply_gradients(zip(tape.gradient(loss, self.variables), self.variables))\n"
    text += "model = Net()\nmodel.compile(tf.keras.optimizers.Adam())\nmodel.fit(data_of())\n"
    new, findings = converted(text)
    assert "npu.distribute.data_parallel(model).fit(data_of())" in new
    assert "distributed_optimizer" not in new and findings == []


def test_a_strategy_shards_and_reduces_by_itself() -> None:
    strategy = "strategy = tf.distribute.MirroredStrategy()\n"
    loop = "for x, y in data:\n    strategy.run(train_step, (x, y))\n"
    new, findings = converted(START.replace(DATASET, DATASET + strategy) + loop)
    assert "strategy = npu.distribute.NPUStrategy()\n" in new and findings == []
    assert "shard_batches" not in new and "distributed_optimizer" not in new


@pytest.mark.parametrize(
    ("choice", "codes"),
    [
        ("if gpus > 1:\n    strategy = {}\nelse:\n    strategy = None\n", ["NPU302"]),
        ("if gpus < 2:\n    strategy = None\nelse:\n    strategy = {}\n", ["NPU302"]),
        ("strategy = {} if gpus > 1 else None\n", ["NPU302"]),
        (
            "if gpus > 1:\n    strategy = {}\n    with strategy.scope():\n        net = build()\nelse:\n    net = build()\n",
            ["NPU302"],
        ),
        ("strategy = None\nif gpus > 1:\n    strategy = {}\nelse:\n    raise ValueError(gpus)\n", []),
        ("if gpus > 1:\n    strategy = {}\nelse:\n    other = None\n", []),
    ],
)
def test_a_path_without_a_strategy_is_reported(choice: str, codes: list[str]) -> None:
    loop = "for x, y in data:\n    strategy.run(train_step, (x, y))\n"
    text = START.replace(DATASET, DATASET + choice.format("tf.distribute.MirroredStrategy()"))
    new, findings = converted(text + loop)
    assert choice.format("npu.distribute.NPUStrategy()") in new and findings == codes
    assert converted(new)[1] == codes


def test_an_attribute_that_the_class_compiles_is_reported() -> None:
    trainer = "class Trainer:\n    def __init__(self, model):\n        self.model = model\n"
    trainer += "    def prepare(self):\n        self.model.compile(loss='mse', optimizer='sgd')\n"
    other = "class Regression:\n    def __init__(self, model):\n        self.model = model\n"
    train = "    def train(self, x, y):\n        return self.model.fit(x, y)\n"
    _, findings = converted(
        HEAD + trainer + train + other + train + "import zoo\nTrainer(zoo.make()).train(x, y)\n" + STEP
    )
    assert findings.count("NPU307") == 1


OTHER = HEAD + "import nets\nm = tf.keras.Sequential([])\nm.compile('sgd', 'mse')\nm.fit(x, y)\n"
PREPARE = "def prepare(net):\n    net.compile(tf.keras.optimizers.SGD(0.1), 'mse')\n"


@pytest.mark.parametrize(
    "text, codes",
    [
        ("def go(model):\n    model.compile(tf.keras.optimizers.SGD(0.1), 'mse')\n    model.fit(x)\n", ["NPU307"]),
        ("def go(model):\n    model.compile('sgd', 'mse')\n    model.fit(x)\n", ["NPU307"]),
        ("def go(model, sgd):\n    model.compile(sgd, 'mse')\n    model.fit(x)\n", ["NPU307"]),
        (PREPARE + "def go(model):\n    prepare(model)\n    model.fit(x)\n", ["NPU307"]),
        (PREPARE + "def go(model):\n    prepare(net=model)\n    model.fit(x)\n", ["NPU307"]),
        (PREPARE + "def go(model):\n    model.fit(x)\nnet = nets.net()\nprepare(net)\ngo(net)\n", ["NPU307"]),
        (PREPARE + "def made():\n    net = nets.net()\n    prepare(net)\n    return net\nmade().fit(x)\n", ["NPU307"]),
        (PREPARE + "class T:\n    def __init__(self, net):\n        self.net = net\n        prepare(self.net)\n"
         "    def go(self):\n        self.net.fit(x)\n", ["NPU307"]),
        ("def go(model):\n    model.fit(x, epochs=3)\n", ["NPU307"]),
        ("def go(model):\n    model.fit(x)\n", []),
        ("def prepare(net):\n    pass\ndef go(model):\n    prepare(model)\n    model.fit(x)\n", []),
        ("import re\ndef go(model):\n    re.compile('sgd')\n    model.fit(x)\n", []),
    ],
    ids="positional name variable function keyword caller returned attribute epochs unknown other re".split(),
)  # fmt: skip
def test_fit_of_a_model_of_unknown_type_is_reported(text: str, codes: list[str]) -> None:
    assert converted(OTHER + text)[1] == codes


def test_a_positional_compile_shows_that_a_script_trains() -> None:
    text = "import tensorflow as tf\nfrom nets import build\ndef train(m):\n    m.compile('adam', 'mse')\n    m.fit(x, y)\ntrain(build())\n"
    new, codes = converted(text)
    assert codes == ["NPU307"] and "npu.open().as_default()\n" in new
    assert converted(text.replace("tensorflow as tf", "torch")) == (text.replace("tensorflow as tf", "torch"), [])


def test_models_that_another_file_trains_and_saves(tmp_path: pathlib.Path) -> None:
    train = OTHER + "import helper\nhelper.train(m, x)\nhelper.save(m, 'w.h5')\n"
    helper = "import os\ndef train(net, x):\n    net.fit(x)\ndef save(net, path):\n    net.save(path)\n"
    (tmp_path / "train.py").write_text(train)
    (tmp_path / "helper.py").write_text(helper)
    result = convert_source(str(tmp_path), Settings(distributed="tf_strategy"))
    assert "    npu.distribute.data_parallel(net).fit(x)\n" in result.new_bytes_by_path["helper.py"].decode()
    assert "    if npu.distribute.is_root(): net.save(path)\n" in result.new_bytes_by_path["helper.py"].decode()


@pytest.mark.parametrize(
    "text, codes",
    [
        ("def save(model, path):\n    model.save_weights(path)\n", ["NPU311"]),
        ("def save(model, path):\n    model.save(path)\n", []),
        (PREPARE + "def save(model, path):\n    prepare(model)\n    model.save(path)\n", ["NPU311"]),
        ("class Net(tf.keras.Model):\n    def save_weights(self, path):\n        super().save_weights(path)\n", []),
        ("def save(model, path, rank):\n    if rank == 0:\n        model.save_weights(path)\n", []),
    ],
    ids="weights anything compiled super rank".split(),
)
def test_saving_of_a_model_of_unknown_type_is_reported(text: str, codes: list[str]) -> None:
    assert converted(OTHER + text)[1] == codes


def test_random_numbers_are_shared_where_no_seed_is_set() -> None:
    for seed, shares in (
        ("tf.random.set_seed(1)\n", False),
        ("", True),
        ("tf.random.set_seed(1)\nnp.random.rand(3)\n", True),
        ("if seed is not None:\n    tf.random.set_seed(seed)\n", True),
        ("if seed: tf.random.set_seed(seed)\n", True),
        ("if __name__ == '__main__':\n    if n:\n        print(n)\n    tf.random.set_seed(1)\n", False),
    ):
        new, _ = converted(START.replace("tf.random.set_seed(1)\n", seed))
        assert ("npu.distribute.share_random_state()" in new) == shares


@pytest.mark.parametrize(
    "line, after",
    [
        ("model.save('m.h5')", "if npu.distribute.is_root(): model.save('m.h5')"),
        ("path = checkpoint.save('c')", "path = checkpoint.save('c') if npu.distribute.is_root() else None"),
        ("tf.saved_model.save(model, 'm')", "if npu.distribute.is_root(): tf.saved_model.save(model, 'm')"),
        (
            "log = tf.summary.create_file_writer('l')",
            "log = (tf.summary.create_file_writer('l') if npu.distribute.is_root() else tf.summary.create_noop_writer())",
        ),
        ("if rank == 0: model.save('m.h5')", "if rank == 0: model.save('m.h5')"),
        ("game.save('g')", "game.save('g')"),
    ],
)
def test_files_are_written_on_rank_0(line: str, after: str) -> None:
    made = "model = tf.keras.Sequential()\ncheckpoint = tf.train.Checkpoint(model=model)\n"
    new, findings = converted(START + made + line + "\n")
    assert new.endswith(after + "\n") and findings == []


def test_a_project_of_two_files(tmp_path: pathlib.Path) -> None:
    source = tmp_path / "src"
    source.mkdir()
    (source / "model.py").write_text(
        HEAD + "def make():\n    return tf.keras.Sequential([tf.keras.layers.BatchNormalization()])\n"
    )
    (source / "train.py").write_text(START.replace(STEP, "from model import make\nmodel = make()\n" + STEP))
    assert main(["-i", str(source), "-o", str(tmp_path / "out"), "-d", "tf_strategy", "--no-cache"]) == 0
    normalization = "npu.distribute.sync_batch_norm(tf.keras.layers.BatchNormalization())"
    assert normalization in (tmp_path / "out" / "model.py").read_text()
    assert OPTIMIZER in (tmp_path / "out" / "train.py").read_text()


OPENED = "import npu_shim.npu_device as npu\nnpu.open().as_default()\n"
FIT = (
    "model = tf.keras.Sequential([tf.keras.layers.Dense(1)])\nmodel.compile('sgd', 'mse')\nmodel.fit(x[:64], y[:64])\n"
)


@pytest.mark.parametrize(
    "text",
    [
        HEAD + FIT,
        HEAD + "import numpy as np\ntf.random.set_seed(1)\nx = np.random.rand(64, 3)\n" + FIT,
        "from tensorflow.keras.models import Sequential\n\n" + FIT.replace("tf.keras.Sequential", "Sequential"),
        START.replace("tf.random.set_seed(1)\n", "") + "for x, y in data:\n    train_step(x, y)\n",
        HEAD + "def main():\n    " + FIT.replace("\n", "\n    ") + "\nif __name__ == '__main__':\n    main()\n",
        HEAD + "with tf.distribute.MirroredStrategy().scope():\n    m = tf.keras.Sequential([])\nm.fit(x)\n",
    ],
    ids=["fit", "numpy", "imports of Keras", "loop", "main", "strategy"],
)
def test_a_converted_script_is_converted_for_ranks_as_the_original(text: str) -> None:
    plain = Converter(Settings()).convert(text.encode()).new
    assert plain is not None and b"share_random_state" not in plain
    direct, _ = converted(text)
    assert "npu.open().as_default()\n" in direct and "npu.distribute.share_random_state()\n" in direct
    assert converted(plain.decode())[0] == direct


def test_random_numbers_of_scripts_that_open_the_device() -> None:
    new, _ = converted(HEAD + OPENED + FIT)
    assert new.startswith(HEAD + OPENED + "npu.distribute.share_random_state()\n")
    kept, _ = converted(HEAD + OPENED + "npu.distribute.share_random_state()\n" + FIT)
    assert kept.count("share_random_state") == 1
    by_hand, _ = converted(HEAD + OPENED + FIT.replace("model.fit", "npu.distribute.data_parallel(model).fit"))
    assert "share_random_state" not in by_hand
    seeded, _ = converted(HEAD + "tf.random.set_seed(1)\n" + OPENED + FIT)
    assert "share_random_state" not in seeded
    device, _ = converted(
        HEAD + OPENED.replace(".as_default()", "") + "device = npu.open()\ndevice.as_default()\n" + FIT
    )
    assert "device.as_default()\nnpu.distribute.share_random_state()\n" in device


def test_a_script_with_the_vendors_import() -> None:
    """The vendor's package does not have the functions of npu_shim."""
    new, _ = converted(HEAD + OPENED.replace("npu_shim.npu_device", "npu_device") + FIT)
    assert "import npu_device as npu\n" in new and "from npu_shim import npu_device\n" in new
    assert "npu_device.distribute.share_random_state()\n" in new and "npu_device.distribute.data_parallel(model)" in new
    bare, _ = converted(HEAD + "import npu_device\nnpu_device.open().as_default()\n" + FIT)
    assert "import npu_shim.npu_device as npu\n" in bare and "npu.distribute.data_parallel(model)" in bare


def test_ranks_wait_for_what_they_load() -> None:
    text = HEAD + "model = tf.keras.Sequential([tf.keras.layers.Dense(1)])\nmodel.compile('adam', 'mse')\n"
    text += "model.fit(x, y)\nmodel.save(path)\n"
    load = "copy = tf.keras.models.load_model(path)\n"
    assert "NPU311" not in converted(text + "tf.keras.models.load_model(other)\n")[1]
    assert "NPU311" not in converted(text + "npu.distribute.all_reduce(0.0)\n" + load)[1]
    assert "NPU311" not in converted(text + "if npu.distribute.is_root():\n    " + load)[1]
    new, findings = converted(text + load)
    assert "if npu.distribute.is_root(): model.save(path)" in new and findings.count("NPU311") == 1
