"""verify gives the original the deliberate changes of a migration, names them, and still finds planted defects."""

from __future__ import annotations

import pathlib
from typing import Any, Callable

import pytest

from tests.marks import of_version_1
from tests.rehearsal.test_mutants import HAS_ESTIMATOR, IS_TF2
from tests.verify_command import VerifyCommand

DATA = """
import sys
import numpy as np
import tensorflow as tf

random = np.random.RandomState(0)
x = random.rand(100, 6).astype("f4")
y = x.sum(1, keepdims=True)
"""


LOOP = """
train = (
    tf.data.Dataset.from_tensor_slices((x, y))
    .shuffle(100)
    .batch(32)
)
test = tf.data.Dataset.from_tensor_slices((x[:20], y[:20])).batch(16)
net = tf.keras.Sequential([tf.keras.layers.Dense(4, "tanh", input_shape=(6,)), tf.keras.layers.Dense(1, dtype="float32")])
optimizer = tf.keras.optimizers.SGD(0.01)


@tf.function
def step(a, b):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((net(a) - b) ** 2)
    variables = net.trainable_variables
    gradients = tape.gradient(loss, variables)
    optimizer.apply_gradients(zip(gradients, variables))


for _ in range(2):
    for a, b in train:
        step(a, b)
print([float(tf.reduce_mean((net(a) - b) ** 2)) for a, b in test])
"""


POLICY = """
policy = tf.keras.mixed_precision.Policy("mixed_float16")
tf.keras.mixed_precision.set_global_policy(policy)
"""


FIT = """
net = tf.keras.Sequential([tf.keras.layers.Dense(4, "tanh"), tf.keras.layers.Dense(1)])
net.compile("sgd", "mse")
train = tf.data.Dataset.from_tensor_slices((x, y)).batch(32)
test = tf.data.Dataset.from_tensor_slices((x[:20], y[:20])).batch(16)
net.fit(train, epochs=2, verbose=0)
net.evaluate(test, verbose=0)
"""


FIT_ARRAYS = """
net = tf.keras.Sequential([tf.keras.layers.Dense(4, "tanh", input_shape=(6,)), tf.keras.layers.Dense(1)])
net.compile("sgd", "mse")


def train(**given):
    net.fit(x, y, epochs=2, verbose=0, validation_split=0.1, **given)


train()
net.fit(x, y, batch_size=16, epochs=2, verbose=0)
net.evaluate(x, y, verbose=0)
"""


FIT_IMAGES = """
from tensorflow.keras.preprocessing.image import ImageDataGenerator

ImageDataGenerator.apply_transform = lambda self, x, parameters: x  # which needs another package
net = tf.keras.Sequential([tf.keras.layers.Flatten(input_shape=(1, 2, 3)), tf.keras.layers.Dense(1)])
net.compile("sgd", "mse")
images = ImageDataGenerator().flow(np.reshape(x, [-1, 1, 2, 3]), y, batch_size=16)
net.fit(images, epochs=2, verbose=0)
net.evaluate(images, verbose=0)
"""


ESTIMATOR = """
v1 = tf.compat.v1


def model_fn(features, labels, mode):
    loss = tf.reduce_mean((v1.layers.dense(features, 1) - labels) ** 2)
    train_op = v1.train.GradientDescentOptimizer(0.01).minimize(loss, v1.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def input_fn():
    return v1.data.Dataset.from_tensor_slices((x, y)).batch(32).repeat(2)


estimator = tf.estimator.Estimator(model_fn, sys.argv[1])
estimator.train(input_fn)
estimator.evaluate(lambda: v1.data.Dataset.from_tensor_slices((x, y)).batch(32))
"""


SESSION = """
v1 = tf.compat.v1
v1.disable_eager_execution()
w = v1.get_variable("w", initializer=np.ones([6, 1], "f4"))
x = v1.placeholder(tf.float32, [8, 6])
loss = tf.reduce_mean(tf.matmul(x, w) ** 2)
train = v1.train.GradientDescentOptimizer(0.01).minimize(loss, v1.train.get_or_create_global_step())
"""


GELU = """
random = np.random.RandomState(0)
v1 = tf.compat.v1
v1.disable_eager_execution()


def gelu(x):
    return x * 0.5 * (1.0 + tf.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * tf.pow(x, 3))))


x = v1.placeholder(tf.float32, [32, 16])
h = x
for n in range(4):
    h = gelu(tf.matmul(h, v1.get_variable("w%d" % n, [16, 16], initializer=v1.random_normal_initializer(0, 0.6))))
loss = tf.reduce_mean((h - tf.sin(20 * x)) ** 2)
train = v1.train.GradientDescentOptimizer(0.5).minimize(loss)
with v1.Session() as session:
    session.run(v1.global_variables_initializer())
    for step in range(200):
        session.run([train, loss], {x: random.rand(32, 16)})
"""


PLAIN = """
with v1.Session() as session:
    session.run(v1.global_variables_initializer())
    try:
        for number in range(100):
            session.run([train, loss] if number % 2 else train, {x: random.rand(8, 6)})
            print("after", number)
    finally:
        print("finally", session.run(w).sum())
"""


MONITORED = """
with v1.train.MonitoredTrainingSession(checkpoint_dir=sys.argv[1]) as session:
    while not session.should_stop():
        _, value = session.run([train, loss], {x: random.rand(8, 6)})
print("finally", value.dtype, v1.train.latest_checkpoint(sys.argv[1])[-13:])
"""


EAGER = """
net = tf.keras.Sequential([tf.keras.layers.Dense(1)])
optimizer = tf.keras.optimizers.SGD(0.01)
try:
    for number in range(100):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((net(x) - y) ** 2)
        optimizer.apply_gradients(zip(tape.gradient(loss, net.trainable_variables), net.trainable_variables))
        print("after", number)
finally:
    print("finally")
"""

BY_SCRIPT = """
import numpy as np
import tensorflow as tf

random = np.random.RandomState(0)
weight, bias = tf.Variable(random.randn(4, 3).astype("f4")), tf.Variable(np.zeros(3, "f4"))


def gradients(x, y):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((x @ weight + bias - y) ** 2)
    return tape.gradient(loss, [weight, bias])


made = 0
try:
    while True:
        pair = tf.constant(random.randn(8, 4).astype("f4")), tf.constant(random.randn(8, 3).astype("f4"))
        parts = [gradients(*pair), gradients(*pair)]  # two parts of a batch are one step
        for number, variable in enumerate((weight, bias)):
            variable.assign_sub(0.05 * (parts[0][number] + parts[1][number]))
        made += 1
finally:
    print("made", made)
"""


COST = "4 of 100 examples of each epoch (4 %)"
BY_HAND = (".batch(32)", ".batch(32, drop_remainder=True)")


Verify = Callable[..., Any]


@pytest.fixture
def verify(verify_command: VerifyCommand, tmp_path: pathlib.Path) -> Verify:
    """verify(original, migrated, *options) -> the result for a script, or for two, with all that is printed."""

    def run(original: str, migrated: str | None, *options: str) -> Any:
        scripts = {"original.py": original, **({} if migrated is None else {"migrated.py": migrated})}
        for name, text in scripts.items():
            (tmp_path / name).write_text(DATA + text, encoding="utf-8")
        code, output, found = verify_command(tmp_path, *options, *scripts, "--", "{run}")
        assert code in (0, 1) or found["problems"], output
        log = tmp_path / "report" / "original" / "output.log"
        return {**found, "text": output, "output": log.read_text(encoding="utf-8")}

    return run


def changes(found: Any) -> list[tuple[str, str]]:
    """Return code and cost of each deliberate change."""
    return [(each["code"], each["cost"]) for each in found["deliberate"]]


if IS_TF2:

    @pytest.mark.smoke
    def test_both_scripts_have_the_deliberate_changes_and_each_is_named(verify: Verify) -> None:
        found = verify(POLICY + LOOP, None)
        assert found["verdict"] == "agree", found["text"]
        float32 = "both run in float32, and npu-shim verify --half compares the rest"
        assert changes(found) == [("NPU116", float32), ("NPU109", COST)]
        assert f"NPU109 leaves out the partial training batches, {COST}, original.py:" in found["text"]
        assert found["original"]["steps"] == 6

    @pytest.mark.parametrize(
        "old, new, kind",
        [
            ("SGD(0.01)", "SGD(0.0102)", "learning rate"),
            pytest.param("(x, y))", "(x[1:], y[1:]))", "input", marks=pytest.mark.nightly),
            pytest.param(
                "zip(gradients", "zip([0 * gradients[0], *gradients[1:]]", "gradient", marks=pytest.mark.nightly
            ),
        ],
    )
    @pytest.mark.smoke
    def test_a_defect_of_a_port_by_hand_is_found(old: str, new: str, kind: str, verify: Verify) -> None:
        port = LOOP.replace(*BY_HAND)
        assert old in port
        found = verify(LOOP, port.replace(old, new, 1))
        assert found["first_departure"]["step"] == 1 and found["first_departure"]["kind"] == kind

    def test_the_original_leaves_out_the_rows_of_arrays_that_the_port_leaves_out(verify: Verify) -> None:
        full = "verbose=0, shuffle=npu_shim.data.full_batches())"
        port = FIT_ARRAYS.replace("batch_size=16, epochs=2, verbose=0)", f"batch_size=16, epochs=2, {full}")
        found = verify(FIT_ARRAYS, "import npu_shim\n" + port)
        assert found["verdict"] == "agree", found["text"]
        assert changes(found) == [("NPU248", COST)]
        assert "NPU248 leaves out the partial batches of arrays and images in training" in found["text"]
        assert found["original"]["steps"] == found["migrated"]["steps"] == 2 * 3 + 2 * 6
        cut = FIT_ARRAYS.replace("x, y, batch_size=16", "x[:96], y[:96], batch_size=16")
        assert verify(FIT_ARRAYS, cut)["verdict"] == "differ"

    def test_the_original_leaves_out_the_images_that_the_port_leaves_out(verify: Verify) -> None:
        port = FIT_IMAGES.replace("epochs=2", "epochs=2, shuffle=npu_shim.data.full_batches()")
        found = verify(FIT_IMAGES, "import npu_shim\n" + port)
        assert found["verdict"] == "agree", found["text"]
        assert changes(found) == [("NPU248", COST)]
        assert found["original"]["steps"] == found["migrated"]["steps"] == 2 * 6
        other = port.replace("flow(", "flow(1.001 * ")
        assert verify(FIT_IMAGES, "import npu_shim\n" + other)["verdict"] == "differ"

    def test_batches_that_the_port_leaves_out_in_evaluation_are_a_difference(verify: Verify) -> None:
        found = verify(FIT, FIT.replace(*BY_HAND).replace(".batch(16)", ".batch(16, drop_remainder=True)"))
        assert changes(found) == [("NPU109", COST)]
        assert found["first_departure"]["kind"] == "metric", found["text"]

    @pytest.mark.parametrize("port", [LOOP.replace(*BY_HAND), LOOP], ids=["static", "dynamic"])
    def test_a_port_by_hand_agrees(port: str, verify: Verify) -> None:
        found = verify(LOOP, port)
        assert found["verdict"] == "agree", found["text"]
        assert changes(found) == [("NPU109", COST)] * (port != LOOP)

    def test_a_port_that_drops_batches_behind_another_step_agrees(verify: Verify) -> None:
        dropped = "train = npu_shim.data.drop_in_training(train.map(lambda a, b: (a, b)))\ntest ="
        found = verify(LOOP, "import npu_shim\n" + LOOP.replace("test =", dropped, 1))
        assert found["verdict"] == "agree", found["text"]
        assert changes(found) == [("NPU109", COST)]

    def test_strict_compares_with_the_untouched_original(verify: Verify) -> None:
        found = verify(FIT, None, "--strict")
        assert (found["verdict"], found["deliberate"]) == ("differ", [])
        assert found["first_departure"]["step"] == 4

    def test_a_policy_that_only_the_port_has_is_a_difference(verify: Verify) -> None:
        assert verify(LOOP, POLICY + LOOP)["verdict"] == "differ"

    @pytest.mark.parametrize(
        "script, output",
        [
            (EAGER, "after 6\nfinally\n"),
            (BY_SCRIPT, "made 7\n"),
            pytest.param(
                BY_SCRIPT.replace("def grad", "@tf.function\ndef grad"), "made 7\n", marks=pytest.mark.nightly
            ),
            pytest.param(LOOP.replace("range(2)", "range(100)"), "", marks=pytest.mark.nightly),
            pytest.param(FIT.replace("epochs=2", "epochs=100"), "", marks=pytest.mark.nightly),
        ],
    )
    @pytest.mark.smoke
    def test_a_long_training_ends_after_some_steps(script: str, output: str, verify: Verify) -> None:
        found = verify(script, None, "--steps", "7")
        assert found["verdict"] == "agree", found["text"]
        assert found["original"]["steps"] == found["migrated"]["steps"] == 7
        assert found["output"].endswith(output)

    def test_a_script_may_miss_epochs_that_were_not_made(verify: Verify) -> None:
        """The original, which misses them as well, shows that the migration is not the cause."""
        script = FIT.replace("epochs=2", "epochs=100").replace("net.fit(", "fitted = net.fit(")
        later = "losses = fitted.history['loss']\nprint('last loss', losses[99])\n"
        agree = verify(script + later, None, "--steps", "7")
        assert agree["verdict"] == "agree", agree["text"]
        other = verify(script, script + later, "--steps", "7")
        assert other["verdict"] == "not run"
        assert "ended with no error, and the migrated script with IndexError" in other["problems"][0]


if HAS_ESTIMATOR:

    @of_version_1
    @pytest.mark.parametrize("evaluated, code", [("lambda: v1", "NPU109"), ("input_fn)  # v1", "NPU103")])
    def test_an_estimator_has_the_static_input_of_the_migrated_one(evaluated: str, code: str, verify: Verify) -> None:
        """The tool does not change an input_fn that feeds evaluation, too. NPUEstimator does in training."""
        found = verify(ESTIMATOR.replace("evaluate(lambda: v1", f"evaluate({evaluated}"), None)
        assert found["verdict"] == "agree", found["text"]
        assert changes(found) == [(code, COST)]

    @of_version_1
    def test_an_estimator_ends_after_some_steps(verify: Verify) -> None:
        script = ESTIMATOR.replace("repeat(2)", "repeat()")
        found = verify(script, None, "--steps", "7")
        assert found["verdict"] == "agree", found["text"]
        assert found["original"]["steps"] == 7
        assert {"metric"} <= {each["kind"] for each in found["streams"]}  # it is evaluated then


@pytest.mark.parametrize(
    "loop, output",
    [(PLAIN, "after 6\nfinally 4.8"), (MONITORED, "finally float32 /model.ckpt-7\n")],
)
@pytest.mark.smoke
def test_sessions_end_after_some_steps(loop: str, output: str, verify: Verify) -> None:
    found = verify(SESSION + loop, None, "--steps", "7")
    assert found["verdict"] == "agree", found["text"]
    assert found["original"]["steps"] == 7
    assert output in found["output"]


@pytest.mark.nightly
def test_training_that_enlarges_rounding_agrees_with_the_gelu_of_the_migrated_script(verify: Verify) -> None:
    found = verify(GELU, None)
    assert found["verdict"] == "agree", found["text"]
    [change] = found["deliberate"]
    assert change["code"] == "NPU108" and change["cost"].startswith("without it the first difference is at step")
    assert change["place"].startswith("original.py:")
    changed = GELU.replace("(32, 16)})", "(32, 16) * (1 + 1e-3 * (step == 60))})")
    assert verify(GELU, changed)["verdict"] == "differ"


@pytest.mark.nightly
def test_the_gelu_of_the_migrated_script_rounds_at_once_in_half_precision(verify: Verify) -> None:
    script = GELU.replace("h = x\n", "h = tf.cast(x, tf.float16)\n").replace(
        "(h - tf.sin", "(tf.cast(h, tf.float32) - tf.sin"
    )
    script = script.replace("v1.get_variable(", "tf.cast(v1.get_variable(").replace("0.6))))", "0.6)), tf.float16)))")
    script = script.replace("range(200)", "range(2)")
    found = verify(script, None)
    assert found["verdict"] == "agree", found["text"]
    assert [each["cost"] for each in found["deliberate"]] == ["without it the first difference is at step 1"]
    changed = script.replace("h = tf.cast(x,", "h = tf.cast(x * (1 + 1e-3),")
    assert verify(script, changed)["verdict"] == "differ"
