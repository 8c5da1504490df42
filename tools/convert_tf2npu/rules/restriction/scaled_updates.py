"""Two updates with loss scaling in one run.

The NPU signals an overflow by a status of the whole device, not by values. If one ``session.run`` makes two updates that
scale their loss, as of a generator and a discriminator, one update sees the overflows of the other: it skips steps
without need, or applies what overflowed. Run each update in a ``session.run`` of its own.

Reported::

    import tensorflow as tf
    from npu_shim.npu_init import *

    generator = NPULossScaleOptimizer(tf.train.AdamOptimizer(0.1), FixedLossScaleManager(1024))
    critic = NPULossScaleOptimizer(tf.train.AdamOptimizer(0.2), FixedLossScaleManager(1024))
    step = [generator.minimize(loss), critic.minimize(critic_loss)]
    sess.run([step, global_step])

Reported::

    import tensorflow as tf
    from npu_shim.npu_init import *

    generator = NPULossScaleOptimizer(tf.train.AdamOptimizer(0.1), FixedLossScaleManager(1024))
    critic = NPULossScaleOptimizer(tf.train.AdamOptimizer(0.2), FixedLossScaleManager(1024))
    fetches = [loss]
    sess.run(fetches + [generator.minimize(loss)] + [critic.minimize(critic_loss)])

Reported::

    import tensorflow as tf

    class Trainer:
        def build(self):
            scaled = tf.train.experimental.MixedPrecisionLossScaleOptimizer(tf.train.AdamOptimizer(0.1), 128)
            self.e_op = scaled.minimize(self.e_loss)
            self.d_op = scaled.minimize(self.d_loss)

        def train(self, sess):
            return sess.run({'loss': self.loss, 'e': self.e_op, 'd': self.d_op})

Untouched::

    import tensorflow as tf
    from npu_shim.npu_init import *

    generator = NPULossScaleOptimizer(tf.train.AdamOptimizer(0.1), FixedLossScaleManager(1024))
    critic = NPULossScaleOptimizer(tf.train.AdamOptimizer(0.2), FixedLossScaleManager(1024))
    g_step, c_step = generator.minimize(loss), critic.minimize(critic_loss)
    sess.run(g_step)
    sess.run(c_step)

Untouched::

    import tensorflow as tf
    from npu_shim.npu_init import *

    scaled = NPULossScaleOptimizer(tf.train.AdamOptimizer(0.1), FixedLossScaleManager(1024))
    if FLAGS.clip:
        step = scaled.apply_gradients(clipped)
    else:
        step = scaled.apply_gradients(gradients)
    sess.run([step, loss])

Untouched::

    import tensorflow as tf

    generator, critic = tf.train.AdamOptimizer(0.1), tf.train.AdamOptimizer(0.2)
    sess.run([generator.minimize(loss), critic.minimize(critic_loss)])
"""

from __future__ import annotations

import ast
from typing import Iterator

from ...analysis.graph_rewrites import GRAPH_REWRITES
from ...rewrite.loss_scale_edits import CONTRIB, TRAIN
from ...semantics.model import Call, Where
from ...semantics.module_index import Names
from ...semantics.value_flow import origins
from ..base import Context, Finding, Result

CODE = "NPU287"
METHODS = frozenset({"run"})
_UPDATES = frozenset({"minimize", "apply_gradients"})
_SCALES = GRAPH_REWRITES | {
    CONTRIB + "LossScaleOptimizer",
    TRAIN + "MixedPrecisionLossScaleOptimizer",
    "npu_shim.npu_init.NPULossScaleOptimizer",
}
_DEEPEST = 4  # lists, groups and names around an update


def check_method(context: Context, call: Call, method: ast.Attribute) -> Iterator[Result]:
    fetches = [*call.node.args[:1], *(keyword.value for keyword in call.node.keywords if keyword.arg == "fetches")]
    if _SCALES.isdisjoint(context.called.values()) or len(fetches) != 1:
        return
    updates = _scaled_updates(fetches[0], call.where, context.names, _DEEPEST)
    if updates > 1:
        yield Finding(
            call.node,
            "one run makes {0} updates with loss scaling, and each sees the overflows of the others. "
            "Run each update in a session.run of its own",
            str(updates),
        )


def _scaled_updates(node: ast.expr, where: Where, names: Names, depth: int) -> int:
    """Return the number of updates that scale their loss among the fetches of a run."""
    most = 0  # of the values that an expression may have
    for origin in origins(node, where, names) if depth else ():
        value = origin.node
        parts: list[ast.expr] = []
        if isinstance(value, (ast.List, ast.Tuple)):
            parts = value.elts
        elif isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add):  # lists that are joined
            parts = [value.left, value.right]
        elif isinstance(value, ast.Dict):
            parts = value.values
        elif isinstance(value, ast.Call):
            if origin.resolve() in ("tensorflow.group", "tensorflow.tuple"):
                parts = value.args
            elif _is_scaled_update(value, origin.where, origin.names):
                most = max(most, 1)
        different = {ast.dump(part): part for part in parts}.values()
        most = max(most, sum(_scaled_updates(part, origin.where, origin.names, depth - 1) for part in different))
    return most


def _is_scaled_update(call: ast.Call, where: Where, names: Names) -> bool:
    function = call.func
    return (
        isinstance(function, ast.Attribute)
        and function.attr in _UPDATES
        and any(
            isinstance(maker.node, ast.Call) and maker.resolve() in _SCALES
            for maker in origins(function.value, where, names)
        )
    )
