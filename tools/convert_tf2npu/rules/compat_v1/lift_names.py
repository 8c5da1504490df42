"""Lift TensorFlow 1 code to tf.compat.v1 (with ``--compat-v1``).

TensorFlow 2 has the interface of TensorFlow 1 under ``tf.compat.v1``. To lift a file means to change its import. With
``import tensorflow.compat.v1 as tf`` each ``tf.`` name keeps the meaning that it has in TensorFlow 1. This includes
names with another meaning in TensorFlow 2 (``tf.where``, ``tf.data.Dataset``, ``tf.estimator.Estimator``), names
reached by ``getattr(tf, name)``, and names that other files import from this one. Nothing else in the file changes,
and it still runs on TensorFlow 1.15. A file whose names all mean the same in both versions is not changed.

The entry script disables the behavior of TensorFlow 2 once, after the import: eager execution, resource variables,
control flow and tensor shapes of version 2. The entry script is the file given with ``-m FILE``. Without ``-m`` it is
each file with a main guard, and each file that no other file imports and that does work at module level. A script
that disables the behavior itself, or builds its graphs in ``tf.Graph().as_default()``, is not changed.

In a file that also uses names of TensorFlow 2, such as ``tf.random.set_seed``, the import is not changed. Only the
names that TensorFlow 2 lacks are lifted, each where it is used.

The rule reports the entry script of a program that shows TensorFlow 2 only, as ``tf.GradientTape`` does.

Before::

    import tensorflow as tf

    x = tf.placeholder(tf.float32, [2])
    total = tf.reduce_sum(tf.where(tf.is_nan(x), tf.zeros_like(x), x))
    writer = tf.summary.FileWriter(logdir, tf.get_default_graph())

After::

    import tensorflow.compat.v1 as tf
    tf.disable_v2_behavior()

    x = tf.placeholder(tf.float32, [2])
    total = tf.reduce_sum(tf.where(tf.is_nan(x), tf.zeros_like(x), x))
    writer = tf.summary.FileWriter(logdir, tf.get_default_graph())

Before::

    import os, tensorflow as tf
    from tensorflow import placeholder as ph, keras
    from tensorflow.keras.layers import Dense
    from tensorflow.python.framework import ops

    def run(session: tf.Session, activation=tf.nn.relu):
        keras.backend.set_session(session)

After::

    import os, tensorflow.compat.v1 as tf
    from tensorflow.compat.v1 import placeholder as ph, keras
    from tensorflow.keras.layers import Dense
    from tensorflow.python.framework import ops

    def run(session: tf.Session, activation=tf.nn.relu):
        keras.backend.set_session(session)

Before::

    import tensorflow as tf

    def seed(value):
        if hasattr(tf.random, 'set_seed'):
            tf.random.set_seed(value)
        else:
            tf.set_random_seed(value)

After::

    import tensorflow as tf

    def seed(value):
        if hasattr(tf.random, 'set_seed'):
            tf.random.set_seed(value)
        else:
            tf.compat.v1.set_random_seed(value)

Untouched::

    import tensorflow.compat.v1 as tf
    tf.disable_v2_behavior()

    x = tf.placeholder(tf.float32, [2])

Untouched::

    import tensorflow as tf

    def scaled(x):
        return tf.reshape(x, [-1]) / tf.cast(tf.rank(x), tf.float32)

Untouched::

    import tensorflow as tf

    def loss(labels, logits):
        return tf.compat.v1.losses.sparse_softmax_cross_entropy(labels, logits)

Untouched::

    try:
        import tensorflow.compat.v1 as tf
        tf.disable_v2_behavior()
    except ImportError:
        import tensorflow as tf

    x = tf.placeholder(tf.float32, [2])
"""

from __future__ import annotations

import ast
import re
from typing import Iterator

from ...analysis.tensorflow_version import evidence_of_tf2
from ...analysis.v2_behavior import place_of_switch
from ...rewrite.call_edits import edit_to_rename_after_root
from ...rewrite.insertion import edit_adding_before
from ...rewrite.npu_imports import edit_adding_after
from ...rewrite.removal import remove_statements
from ...rewrite.spans import Spans
from ...semantics.model import Lift
from ...syntax.source import Edit, Source
from ...tf_api.v1_fate import V1, name_below_tensorflow, needs_compat_v1
from ..base import Change, Context, Finding
from .lift_plan import CODE
from .tensorflow_uses import Use, call_or_expression, is_liftable_alias, tensorflow_uses

__all__ = ["CODE", "NEEDS", "check_file", "check_last"]
NEEDS = {"compat_v1": True}
_SWITCH = "disable_v2_behavior()"
_NAME = re.compile(r"(?<![\w.])tensorflow(?:[ \t]*\.[ \t]*\w+)*(?:[ \t]+as[ \t]+\w+)?")


def check_file(context: Context) -> Iterator[Change | Finding]:
    lift = context.names.lift
    if lift is not None:
        for statement in lift.statements:
            yield Change(
                statement, "imported from tf.compat.v1", tuple(_edits_to_lift_import(context.source, statement))
            )
        if lift.star is not None:
            yield Change(
                lift.star.node, "tf imported as tf.compat.v1", tuple(_edits_to_import_tf_after_star(context, lift))
            )
        if lift.parts is not None:
            yield Change(
                lift.parts,
                "tf imported as tf.compat.v1",
                (edit_adding_after(context.source, lift.parts, f"import {V1} as tf"),),
            )
    if context.compat_v1:
        yield from _results_of_disabling_v2_behavior(context)


def check_last(context: Context, replaced: Spans) -> Iterator[Change | Finding]:
    """Lift single names, unless another rule replaces them."""
    names, source = context.names, context.source
    if names.lift is None:
        return
    reported = set()
    for use in tensorflow_uses(names):
        start, end = source.start(use.whole), source.end(use.whole)
        edit = _edit_to_lift_name(context, use)
        node = call_or_expression(names, use.whole)
        if replaced.overlaps(start, end):
            continue
        if edit is None:
            if (
                use.root.id not in reported
                and needs_compat_v1(use.name)
                and not use.name.startswith(V1)
                and not names.by_name
            ):
                reported.add(use.root.id)
                yield Finding(
                    node,
                    "{0} is not imported here as tf.compat.v1. "
                    "Define it as tensorflow.compat.v1, so that this is tf.compat.v1.{1}",
                    use.root.id,
                    name_below_tensorflow(use.name),
                )
            continue
        string = names.strings.get(use.root)
        if string is None or source.is_position_reliable(use.whole, string):
            yield Change(node, "lifted to tf.compat.v1", (edit,))
        else:
            yield Finding(node, "a name inside an f-string cannot be converted. Write {0}.compat.v1 here", use.root.id)


def _edit_to_lift_name(context: Context, use: Use) -> Edit | None:
    """Return the edit that lifts one dotted name, or removes a ``.compat.v1`` that the import now has."""
    names, source = context.names, context.source
    node: ast.expr = use.whole
    while isinstance(node, ast.Attribute):
        base = node.value
        if (
            isinstance(base, ast.Attribute)
            and (base.attr, node.attr) == ("compat", "v1")
            and names.spelled_name(base.value, use.where) == V1
        ):
            return edit_to_rename_after_root(source, base.value, node, "")
        if names.by_name and names.spelled_name(base, use.where) == "tensorflow":
            end = source.end(base)
            return (
                Edit(end, end, V1[len("tensorflow") :]) if use.name.startswith(V1) and node.attr != "compat" else None
            )
        node = base
    return None


def _edits_to_lift_import(source: Source, statement: ast.stmt) -> Iterator[Edit]:
    """Yield the edits that make a statement import from compat.v1."""
    start = source.start(statement)
    text = source.segment(statement)
    if isinstance(statement, ast.ImportFrom):
        at = start + text.index("tensorflow") + len("tensorflow")
        yield Edit(at, at, V1[len("tensorflow") :])
        return
    assert isinstance(statement, ast.Import)
    ours = [a for a in statement.names if a.name.partition(".")[0] == "tensorflow"]
    for alias, match in zip(ours, _NAME.finditer(text)):
        if is_liftable_alias(alias):
            at = start + match.start() + len("tensorflow")
            yield Edit(at, at, V1[len("tensorflow") :] + ("" if alias.asname else " as tensorflow"))


def _edits_to_import_tf_after_star(context: Context, lift: Lift) -> list[Edit]:
    """Import tf after a star import that binds the plain one, and remove the import before it."""
    assert lift.star is not None
    names, source = context.names, context.source
    star, instead = lift.star.node, lift.instead
    edits = [edit_adding_after(source, star, f"import {V1} as tf")]
    return edits + remove_statements(source, names, [instead] if instead else [])


def _results_of_disabling_v2_behavior(context: Context) -> Iterator[Change | Finding]:
    place = place_of_switch(context)
    if place is None:
        return
    two = evidence_of_tf2(context)
    if two is not None:
        yield Finding(place.statement, "the program uses {0} of TensorFlow 2. Convert it without --compat-v1", two.name)
    if place.is_manual:
        yield Finding(
            place.statement,
            "this entry script does not disable TensorFlow 2 behavior. Call tf.compat.v1.{0} at its start",
            _SWITCH,
        )
        return
    lines = [f"{place.module or place.local}.{_SWITCH}"]
    if not place.module:
        lines.insert(0, f"import {V1} as {place.local}")
    if place.is_before:
        edits = [edit_adding_before(context, place.statement, *lines)]
    else:
        edits = [edit_adding_after(context.source, place.statement, line) for line in lines]
    yield Change(place.statement, "TensorFlow 2 behavior disabled", tuple(edits))
