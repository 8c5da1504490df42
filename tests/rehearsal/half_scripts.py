"""Small scripts for verify --half, and the defects of precision that are planted in them.

The network of a script has the places LOSS, UPDATE and OPTIMIZER, which a defect fills in another way.
"""

from __future__ import annotations

from typing import NamedTuple, Sequence

_DATA = """
import numpy as np
import tensorflow as tf

v1 = tf.compat.v1
random = np.random.RandomState(0)
X = random.randn(STEPS, 32, 8).astype("f4")
Y = np.tanh(X @ random.randn(8, 1)).astype("f4")
FIRST, SECOND = (0.4 * random.randn(*shape).astype("f4") for shape in ((8, 16), (16, 1)))
"""
_NETWORK = """
def error_of(x, y, first, second):
    hidden = tf.tanh(tf.matmul(x, first))
    output = tf.matmul(hidden, second)
    LOSS
    return loss
"""
LOSS = "loss = tf.reduce_mean(tf.square(output - y))"
GRAPH_OPTIMIZER = "v1.train.AdamOptimizer(0.01)"
UPDATE = "train = optimizer.minimize(loss)"

GRAPH = (
    _DATA
    + _NETWORK
    + """
from npu_shim.npu_init import ExponentialUpdateLossScaleManager, NPULossScaleOptimizer

v1.disable_eager_execution()
x, y = v1.placeholder(tf.float32, [32, 8]), v1.placeholder(tf.float32, [32, 1])
first = v1.get_variable("first", initializer=FIRST)
second = v1.get_variable("second", initializer=SECOND)
loss = error_of(x, y, first, second)
optimizer = OPTIMIZER
UPDATE
with v1.Session() as session:
    session.run(v1.global_variables_initializer())
    for step in range(STEPS):
        session.run([train, loss], {x: X[step], y: Y[step]})
"""
)
LOOP_OPTIMIZER = "tf.keras.optimizers.Adam(0.01)"
LOOP = (
    _DATA
    + _NETWORK
    + """
import npu_shim.npu_device as npu

first, second = tf.Variable(FIRST, name="first"), tf.Variable(SECOND, name="second")
optimizer = OPTIMIZER


@tf.function
def train_step(x, y):
    with tf.GradientTape() as tape:
        loss = error_of(x, y, first, second)
        scale = getattr(optimizer, "get_scaled_loss", getattr(optimizer, "scale_loss", tf.identity))
        target = scale(loss)
    UPDATE


for step in range(STEPS):
    train_step(tf.constant(X[step]), tf.constant(Y[step]))
"""
)
LOOP_UPDATE = """gradients = tape.gradient(target, [first, second])
unscale = getattr(optimizer, "get_unscaled_gradients", list)
optimizer.apply_gradients(zip(unscale(gradients), [first, second]))"""
FIT = (
    _DATA
    + """
layers = tf.keras.layers
model = tf.keras.Sequential([
    layers.Dense(16, "tanh", input_shape=(8,), kernel_initializer=tf.constant_initializer(FIRST)),
    layers.Dense(1, kernel_initializer=tf.constant_initializer(SECOND)),
])


def loss_of(y, output):
    LOSS
    return loss


optimizer = OPTIMIZER
model.compile(optimizer, loss_of)
model.fit(X.reshape(-1, 8), Y.reshape(-1, 1), batch_size=32, shuffle=False, verbose=0)
"""
)
_FORMS = {
    "graph": (GRAPH, UPDATE, GRAPH_OPTIMIZER),
    "loop": (LOOP, LOOP_UPDATE, LOOP_OPTIMIZER),
    "fit": (FIT, "", LOOP_OPTIMIZER),
}


def script(form: str, steps: int = 12, **places: str) -> str:
    """Return a script.

    Args:
        form: graph, loop or fit.
        steps: number of training steps.
        places: code for LOSS, UPDATE, OPTIMIZER, by the name in lower case.
    """
    text, update, optimizer = _FORMS[form]
    filled = {"loss": LOSS, "update": update, "optimizer": optimizer, **places}
    lines = []
    for line in text.splitlines():
        indent = line[: len(line) - len(line.lstrip())]
        for name, code in filled.items():
            if line.strip() == name.upper():
                line = "\n".join(indent + each for each in code.splitlines())
        lines.append(line.replace("OPTIMIZER", filled["optimizer"]).replace("STEPS", str(steps)))
    return "\n".join(lines) + "\n"


class Defect(NamedTuple):
    """A defect of precision.

    Attributes:
        name: the defect in words.
        forms: the forms of scripts that can have it.
        places: of script().
        first: a regular expression for kind and name of the first value beyond the band.
        last_step: the latest step at which it is.
        overflows: type of the op that overflows; empty for none.
        steps: number of training steps.
        mixlist: content of a mixlist; None without.
    """

    name: str
    forms: Sequence[str]
    places: dict[str, str]
    first: str
    last_step: int
    overflows: str = ""
    steps: int = 12
    mixlist: str | None = None


_AVERAGE = """average = v1.get_variable("average", initializer=FIRST)
train = optimizer.minimize(loss)
with tf.control_dependencies([train]):
    train = average.assign(average + 0.001 * (first - average))"""
_BY_HAND = """for variable, gradient in zip([first, second], tape.gradient(loss, [first, second])):
    variable.assign(variable - 0.001 * gradient)"""
_ALL = ("graph", "loop", "fit")
DEFECTS = (
    Defect(
        "a loss that overflows without a loss scale",
        _ALL,
        {"loss": "loss = tf.reduce_mean(tf.exp(tf.square(output - y) + 11.5) * 1e-5)"},
        "loss .*|gradient.*",
        3,
        "Exp",
    ),
    Defect(
        "a softmax without the shift by its maximum",
        ("graph", "loop"),
        {
            "loss": "scores = tf.exp(hidden * 16)\n"
            "shares = scores / tf.reduce_sum(scores, -1, keepdims=True)\n"
            "loss = tf.reduce_mean(tf.square(tf.matmul(shares, second) - y))"
        },
        "loss .*|gradient.*",
        2,
        "Exp",
    ),
    Defect(
        "a variance as the difference of large squares",
        _ALL,
        {
            "loss": "large = output + 60.0\n"
            "spread = tf.reduce_mean(tf.square(large)) - tf.square(tf.reduce_mean(large))\n"
            "loss = tf.square(spread - 1.0) + tf.reduce_mean(tf.square(output - y))"
        },
        "loss .*|gradient.*",
        2,
    ),
    Defect(
        "gradients that underflow without a loss scale",
        _ALL,
        {"loss": "loss = tf.reduce_mean(tf.square(output - y)) * 1e-6"},
        "gradient.*",
        2,
    ),
    Defect(
        "an average whose update is lost, because a mixlist rounds it",
        ("graph",),
        {"update": _AVERAGE},
        "fetch Assign.*|fetch average.*",
        8,
        steps=20,
        mixlist='{"white-list": {"to-add": ["Add", "AddV2"]}}',
    ),
    Defect(
        "an update by hand that is lost in the rounding of the variable",
        ("loop",),
        {"update": _BY_HAND},
        "gradient of the tape.*|loss.*",
        150,
        steps=150,
    ),
)
