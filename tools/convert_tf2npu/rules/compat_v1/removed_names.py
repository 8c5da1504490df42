"""Names removed in TensorFlow 2 (with ``--compat-v1``).

This rule reports what NPU100 and NPU119 do not convert:

* names of tf.contrib without a replacement, and other names removed in TensorFlow 2;
* private names that were moved or removed;
* calls that pass arguments by position whose order changed.

Each name is reported once for each file, with its replacement. Names in a ``try`` statement with a handler are not
reported. Notes on some replacements:

* Normal initializers of ``tf.compat.v1`` truncate the distribution more exactly than those of tf.contrib. Their
  values are 0.3 % narrower.
* tensorflow_addons supports TensorFlow up to 2.15. Its seq2seq module uses Keras cells.
* ``index_table_from_file(file)`` is ``tf.lookup.StaticVocabularyTable(tf.lookup.TextFileInitializer(file, tf.string,
  tf.lookup.TextFileIndex.WHOLE_LINE, tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER), num_oov_buckets)``.
* ``index_table_from_tensor(words)`` is ``tf.lookup.StaticVocabularyTable(tf.lookup.KeyValueTensorInitializer(words,
  tf.range(len(words), dtype=tf.int64)), num_oov_buckets)``.

Reported::

    import tensorflow as tf

    def net(x):
        return tf.contrib.layers.fully_connected(x, 8)

Reported::

    import tensorflow.contrib.slim as slim

    def net(x):
        return slim.conv2d(x, 8, [3, 3])

Reported::

    from tensorflow.examples.tutorials.mnist import input_data
    from tensorflow.python.framework.ops import Tensor

Reported::

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
from typing import Iterator, Tuple

from ...rewrite.spans import Spans
from ...tf_api.name_tables import CHANGED, PRIVATE
from ...tf_api.v1_fate import NOWHERE, fate_of_v1_name, name_below_tensorflow, needs_compat_v1
from ..base import Context, Finding, Message
from .contrib.advice import advice_for_contrib_name
from .contrib.contrib_plan import plan_contrib_rewrites
from .contrib.contrib_uses import name_below_contrib
from .tensorflow_uses import Use, call_or_expression, tensorflow_uses

CODE = "NPU260"
NEEDS = {"compat_v1": True}
_ADVICE = {
    "keras.utils.multi_gpu_model": "Train on several devices with -d horovod or -d tf_strategy",
    "keras.utils.HDF5Matrix": "Read the file with h5py",
    "keras.mixed_precision.experimental": "Set precision_mode_v2 on the NPU session",
    "pywrap_tensorflow": "Write from tensorflow.python import pywrap_tensorflow, or use tf.train.NewCheckpointReader",
    "examples.tutorials.mnist": Message("Use {0}", "tf.keras.datasets.mnist.load_data()"),
}
_GONE = "{0} was removed in TensorFlow 2. {1}"
_COPY = "Copy its source from TensorFlow 1.15, or remove it"


def check_last(context: Context, replaced: Spans) -> Iterator[Finding]:
    if not context.compat_v1:
        return
    reported: set[str] = set()
    for node, name, message in sorted(
        _all_removed_names(context, replaced), key=lambda item: context.source.start(item[0])
    ):
        words = name.split(".")
        known = any(".".join(words[:cut]) in reported for cut in range(2, len(words) + 1))
        if not known and not _is_in_try(context, node):
            reported.add(name)
            yield Finding(node, message)


# The node, the name (empty if each use is reported) and the message.
_Removed = Tuple[ast.AST, str, str]


def _all_removed_names(context: Context, replaced: Spans) -> Iterator[_Removed]:
    for node, name, has_comment in plan_contrib_rewrites(context, replaced).remaining:
        full = f"tf.contrib.{name}" if name else "tf.contrib"
        if has_comment:
            yield _removed_at(
                node,
                "",
                "a comment inside this code prevents the conversion of {0}. "
                "Move the comment before the statement and run the tool again",
                full,
            )
        else:
            yield _removed_at(node, "contrib." + name, _GONE, full, advice_for_contrib_name(name))
    for statement in context.names.places:
        if isinstance(statement, (ast.Import, ast.ImportFrom)):
            yield from _removed_names_imported(context, statement)
    source = context.source
    for use in tensorflow_uses(context.names):
        start, end = source.start(use.whole), source.end(use.whole)
        if not replaced.overlaps(start, end, counts_insertions=False):
            yield from _removed_names_used(context, use)


def _removed_names_imported(context: Context, statement: ast.stmt) -> Iterator[_Removed]:
    """Yield the removed names that an import statement imports."""
    if isinstance(statement, ast.Import):
        for alias in statement.names:
            if alias.name.startswith("tensorflow.contrib.") and alias.asname is None:
                name = name_below_contrib(alias.name) or ""
                yield _removed_at(statement, "contrib." + name, _GONE, alias.name, advice_for_contrib_name(name))
        return
    assert isinstance(statement, ast.ImportFrom)
    module = statement.module or ""
    if statement.level or module.partition(".")[0] != "tensorflow":
        return
    lift = context.names.lift
    for alias in statement.names:
        name = module + "." + alias.name
        if alias.name == "*" and name_below_contrib(module) is not None:
            yield _removed_at(statement, name, _GONE, module, advice_for_contrib_name(name_below_contrib(module) or ""))
        elif name_below_tensorflow(module).startswith("examples"):
            yield _removed_at(statement, module, _GONE, module, _ADVICE.get(name_below_tensorflow(module), _COPY))
        elif module.startswith("tensorflow.python."):
            yield from _removed_private_name(statement, name)
        elif fate_of_v1_name(name) == NOWHERE:
            yield _removed_name(statement, name)
        elif (
            lift is not None
            and needs_compat_v1(name)
            and statement not in lift.statements
            and not context.names.by_name
        ):
            yield _removed_at(
                statement,
                name,
                "{0} cannot be imported from tf.compat.v1 in all versions of TensorFlow 2. Write "
                "import tensorflow.compat.v1 as tf and {1} = tf.{2}",
                alias.name,
                alias.asname or alias.name,
                name_below_tensorflow(name),
            )


def _removed_names_used(context: Context, use: Use) -> Iterator[_Removed]:
    rest, node = name_below_tensorflow(use.name), call_or_expression(context.names, use.whole)
    if rest.startswith("python."):
        yield from _removed_private_name(node, use.name)
        root = context.names.spelled_name(use.root, use.where)
        if root and not name_below_tensorflow(root):
            words = rest.split(".")
            line = f"from tensorflow.{'.'.join(words[:-1])} import {words[-1]}"
            yield _removed_at(node, use.name, "tf.compat.v1 has no tf.python. Write {0}", line)
    elif fate_of_v1_name(use.name) == NOWHERE:
        yield _removed_name(node, use.name)
    elif rest in CHANGED and isinstance(node, ast.Call) and use.whole is node.func:
        message = _message_on_argument_order(node, rest)
        if message:
            yield node, "call of " + use.name, message


def _removed_at(node: ast.AST, name: str, template: str, *values: str) -> _Removed:
    return node, name, Message(template, *values)


def _removed_name(node: ast.AST, name: str) -> _Removed:
    rest = name_below_tensorflow(name)
    fix = next((text for below, text in _ADVICE.items() if (rest + ".").startswith(below + ".")), _COPY)
    return _removed_at(node, name, _GONE, "tf." + rest, fix)


def _removed_private_name(node: ast.AST, name: str) -> Iterator[_Removed]:
    """Yield a private name that was removed from its module."""
    module, _, last = name.rpartition(".")
    for word in PRIVATE.get(module, "").split():
        own, _, public = word.partition("=")
        if own == last:
            fix = Message("Use tf.{0}", public) if public else "Replace this private name with a public one"
            yield _removed_at(
                node, name, "{0} was removed from {1} in later versions of TensorFlow. {2}", last, module, fix
            )


def _message_on_argument_order(call: ast.Call, name: str) -> str:
    fine, gone = CHANGED[name]
    if len(call.args) > fine and not any(isinstance(a, ast.Starred) for a in call.args):
        return Message(
            "the arguments of tf.{0} changed in TensorFlow 2. Pass them by name from number {1} on", name, fine + 1
        )
    given = [keyword.arg for keyword in call.keywords if keyword.arg in gone.split()]
    return Message("tf.{0} has no argument {1} in TensorFlow 2. Remove it", name, given[0]) if given else ""


def _is_in_try(context: Context, node: ast.AST) -> bool:
    child = node
    for parent in context.names.ancestors(node):
        if isinstance(parent, ast.Try) and parent.handlers and any(child is s for s in parent.body):
            return True
        child = parent
    return False
