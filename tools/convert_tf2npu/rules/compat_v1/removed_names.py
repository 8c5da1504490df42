"""Names that TensorFlow 2 does not have (with ``--compat-v1``).

What is left of a TensorFlow 1 script when all names are lifted that can be lifted (NPU100, NPU119): parts of tf.contrib
without a home, names that TensorFlow 2 gave up, parts of its implementation that it moved or dropped, and calls that
hand over arguments in an order that has changed. Each name is told once in a file, with what to write; what is only
tried, with another way where it fails, is not.

Told::

    import tensorflow as tf

    def net(x):
        return tf.contrib.layers.fully_connected(x, 8)

Told::

    import tensorflow.contrib.slim as slim

    def net(x):
        return slim.conv2d(x, 8, [3, 3])

Told::

    from tensorflow.examples.tutorials.mnist import input_data
    from tensorflow.python.framework.ops import Tensor

Told::

    import tensorflow as tf

    def layer():
        return tf.keras.layers.Conv2D(8, 3, 1, 'same', None, 1, 'relu')

Untouched::

    import tensorflow.compat.v1 as tf

    def layer():
        return tf.keras.layers.Conv2D(8, 3, 1, 'same', activation='relu')

Untouched::

    try:
        from tensorflow.contrib import slim
    except ImportError:
        import tf_slim as slim

    def net(x):
        return slim.conv2d(x, 8, [3, 3])
"""

from __future__ import annotations

import ast
from typing import Iterator, Sequence, Tuple

from ...tf_api.v1_fate import NOWHERE, became, is_lifted, rest_of
from ...tf_api.v1_tables import CHANGED, PRIVATE
from ..base import Context, Finding, Result
from .contrib.advice import advice
from .contrib.plan import plan
from .contrib.spots import below_contrib
from .lifting import Use, uses, whole_call

CODE = "NPU260"
NEEDS = {"compat_v1": True}
_INSTEAD = {
    "keras.utils.multi_gpu_model": "train on several cards with -d horovod or -d tf_strategy",
    "keras.utils.HDF5Matrix": "read the file with h5py",
    "keras.mixed_precision.experimental": "precision is an option of the NPU session (precision_mode_v2)",
    "pywrap_tensorflow": "from tensorflow.python import pywrap_tensorflow, or tf.train.NewCheckpointReader for "
    "checkpoints",
    "examples.tutorials.mnist": "tf.keras.datasets.mnist.load_data() has the digits",
}


def check_last(context: Context, replaced: Sequence[tuple[int, int]]) -> Iterator[Result]:
    if not context.compat_v1:
        return
    told: dict[str, None] = {}
    for node, name, message in sorted(_all(context, replaced), key=lambda item: context.source.start(item[0])):
        words = name.split(".")
        if not any(".".join(words[:cut]) in told for cut in range(2, len(words) + 1)) and not _is_tried(context, node):
            told[name] = None
            yield Finding(node, message)


# Where, the name, or nothing where it is told each time, and the words.
_Said = Tuple[ast.AST, str, str]


def _all(context: Context, replaced: Sequence[tuple[int, int]]) -> Iterator[_Said]:
    for node, name, has_comment in plan(context, replaced).left:
        message = "TensorFlow 2 has no tf.contrib{}; {}".format("." + name if name else "", advice(name))
        if has_comment:
            yield node, "", message + ", or put the comment inside this code before the statement, and run again"
        else:
            yield node, "contrib." + name, message
    for statement in context.names.places:
        if isinstance(statement, (ast.Import, ast.ImportFrom)):
            yield from _imported(context, statement)
    source = context.source
    for use in uses(context.names):
        start, end = source.start(use.whole), source.end(use.whole)
        if not any(s < end and start < e for s, e in replaced if e > s):
            yield from _used(context, use)


def _imported(context: Context, statement: ast.stmt) -> Iterator[_Said]:
    """What an import statement takes from where nothing is any more."""
    if isinstance(statement, ast.Import):
        for alias in statement.names:
            if alias.name.startswith("tensorflow.contrib.") and alias.asname is None:
                name = below_contrib(alias.name) or ""
                yield (
                    statement,
                    "contrib." + name,
                    f"TensorFlow 2 has no {alias.name}, and this import fails; {advice(name)}",
                )
        return
    assert isinstance(statement, ast.ImportFrom)
    module = statement.module or ""
    if statement.level or module.partition(".")[0] != "tensorflow":
        return
    lift = context.names.lift
    for alias in statement.names:
        name = module + "." + alias.name
        if alias.name == "*" and below_contrib(module) is not None:
            yield (
                statement,
                name,
                "TensorFlow 2 has no {}, and this import fails; {}".format(module, advice(below_contrib(module) or "")),
            )
        elif rest_of(module).startswith("examples"):
            yield (
                statement,
                module,
                "TensorFlow 2 has no {}; {}".format(
                    module, _INSTEAD.get(rest_of(module), "take its source out of TensorFlow 1.15 into your project")
                ),
            )
        elif module.startswith("tensorflow.python."):
            yield from _private(statement, name)
        elif became(name) == NOWHERE:
            yield statement, name, _gone(rest_of(name))
        elif lift is not None and is_lifted(name) and statement not in lift.statements and not context.names.by_name:
            yield (
                statement,
                name,
                "this cannot be imported from tf.compat.v1 in every TensorFlow 2; write import "
                f"tensorflow.compat.v1 as tf, and {alias.asname or alias.name} = tf.{rest_of(name)}",
            )


def _used(context: Context, use: Use) -> Iterator[_Said]:
    rest, node = rest_of(use.name), whole_call(context.names, use.whole)
    if rest.startswith("python."):
        yield from _private(node, use.name)
        root = context.names.spelled(use.root, use.where)
        if root and not rest_of(root):
            words = rest.split(".")
            yield (
                node,
                use.name,
                "tf.compat.v1 has no tf.python; write from tensorflow.{} import {}".format(
                    ".".join(words[:-1]), words[-1]
                ),
            )
    elif became(use.name) == NOWHERE:
        yield node, use.name, _gone(rest)
    elif rest in CHANGED and isinstance(node, ast.Call) and use.whole is node.func:
        message = _order(node, rest)
        if message:
            yield node, "call of " + use.name, message


def _gone(rest: str) -> str:
    instead: str | None = next((text for name, text in _INSTEAD.items() if (rest + ".").startswith(name + ".")), None)
    return "tf.{} is gone in TensorFlow 2{}".format(rest, "; " + instead if instead else "")


def _private(node: ast.AST, name: str) -> Iterator[_Said]:
    """A name of TensorFlow's implementation that is gone there."""
    module, _, last = name.rpartition(".")
    for word in PRIVATE.get(module, "").split():
        own, _, home = word.partition("=")
        if own == last:
            yield (
                node,
                name,
                "{} is gone from {} in later TensorFlows; {}".format(
                    last, module, "write tf." + home if home else "it is not part of the public interface"
                ),
            )


def _order(call: ast.Call, rest: str) -> str:
    fine, gone = CHANGED[rest]
    if len(call.args) > fine and not any(isinstance(a, ast.Starred) for a in call.args):
        return "tf.{} has other arguments from the {} on in TensorFlow 2; give these by their names".format(
            rest, "%d%s" % (fine + 1, {1: "st", 2: "nd", 3: "rd"}.get(fine + 1, "th"))
        )
    given = [keyword.arg for keyword in call.keywords if keyword.arg in gone.split()]
    return f"tf.{rest} has no argument {given[0]} in TensorFlow 2" if given else ""


def _is_tried(context: Context, node: ast.AST) -> bool:
    child = node
    for parent in context.names.ancestors(node):
        if isinstance(parent, ast.Try) and parent.handlers and any(child is s for s in parent.body):
            return True
        child = parent
    return False
