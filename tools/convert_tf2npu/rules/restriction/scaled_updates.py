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

Reported::

    import tensorflow as tf
    from npu_shim.npu_init import *

    class Trainer:
        def build(self):
            scaled = NPULossScaleOptimizer(tf.train.AdamOptimizer(0.1), FixedLossScaleManager(1024))
            self.e_op, self.d_op = scaled.minimize(self.e_loss), scaled.minimize(self.d_loss)

        def train(self, sess):
            fetches = {'loss': self.loss, 'e': self.e_op}
            if not self.encoder_only:
                fetches.update({'d': self.d_op})
            return sess.run(fetches)

Reported::

    import tensorflow as tf
    from npu_shim.npu_init import *

    scaled = NPULossScaleOptimizer(tf.train.AdamOptimizer(0.1), FixedLossScaleManager(1024))
    fetches = {'loss': loss}
    fetches['e'] = scaled.minimize(e_loss)
    fetches['d'] = scaled.minimize(d_loss)
    sess.run(fetches)

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
from ...semantics.model import Call, Scope, Where
from ...semantics.module_index import Names
from ...semantics.tf_types import UPDATING_METHODS
from ...semantics.value_flow import origins
from ...syntax.expressions import values_of
from ..base import Context, Finding

CODE = "NPU287"
METHODS = frozenset({"run"})
_SCALES = GRAPH_REWRITES | {
    CONTRIB + "LossScaleOptimizer",
    TRAIN + "MixedPrecisionLossScaleOptimizer",
    "npu_shim.npu_init.NPULossScaleOptimizer",
}
_ADDS = frozenset({"append", "extend", "insert", "update"})
_DEEPEST = 4  # lists, groups and names around an update


def check_method(context: Context, call: Call, method: ast.Attribute) -> Iterator[Finding]:
    fetches = [*call.node.args[:1], *(keyword.value for keyword in call.node.keywords if keyword.arg == "fetches")]
    if _SCALES.isdisjoint(context.called_names.values()) or len(fetches) != 1:
        return
    updates = _count_scaled_updates(fetches[0], call.where, context.names, _DEEPEST)
    if updates > 1:
        yield Finding(
            call.node,
            "one run makes {0} updates with loss scaling, and each sees the overflows of the others. "
            "Run each update in a session.run of its own",
            str(updates),
        )


def _count_scaled_updates(node: ast.expr, where: Where, names: Names, depth: int) -> int:
    """Return the number of updates that scale their loss among the fetches of a run."""
    most = 0  # of the values that an expression may have
    added = _values_added_to(node, where, names) if isinstance(node, ast.Name) and depth else []
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
        places = [(part, origin.where, origin.names) for part in parts]
        if isinstance(value, (ast.List, ast.Dict, ast.Call)):  # a list or dictionary that grows
            places += [(part, where, names) for part in added]
        different = {ast.dump(place[0]): place for place in places}.values()
        most = max(most, sum(_count_scaled_updates(*place, depth - 1) for place in different))
    return most


def _values_added_to(name: ast.Name, where: Where, names: Names) -> list[ast.expr]:
    """Return what a function adds to a list or dictionary: ``append``, ``update``, ``x[key] = value``, ``x += [...]``."""
    return names.once(_added_values).get((where.scope, name.id), [])


def _added_values(names: Names) -> dict[tuple[Scope, str], list[ast.expr]]:
    """Return what is added to each list and dictionary, by the scope in which that happens and the name."""
    added: dict[tuple[Scope, str], list[ast.expr]] = {}
    for call in names.calls:
        function = call.node.func
        if isinstance(function, ast.Attribute) and function.attr in _ADDS and isinstance(function.value, ast.Name):
            values = values_of(call.node)
            added.setdefault((call.where.scope, function.value.id), []).extend(values)
    for statement, place in names.places.items():
        target: ast.AST | None = None
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Subscript):
            target = statement.targets[0].value
        elif isinstance(statement, ast.AugAssign):
            target = statement.target
        if isinstance(target, ast.Name):
            assert isinstance(statement, (ast.Assign, ast.AugAssign))
            added.setdefault((place.scope, target.id), []).append(statement.value)
    return added


def _is_scaled_update(call: ast.Call, where: Where, names: Names) -> bool:
    function = call.func
    return (
        isinstance(function, ast.Attribute)
        and function.attr in UPDATING_METHODS
        and any(
            isinstance(maker.node, ast.Call) and maker.resolve() in _SCALES
            for maker in origins(function.value, where, names)
        )
    )
