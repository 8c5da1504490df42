"""Give Keras a session for the NPU, and close it at the end.

Keras makes its session itself. The script that trains a Keras model in graph mode gets one for the
NPU first, in the function where the training starts from, and closes it when that function ends.

Before::

    import tensorflow.compat.v1 as tf

    def main(_):
        \"\"\"Trains.\"\"\"
        model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
        model.compile('adam', 'mse')
        model.fit(images, labels)

    if __name__ == '__main__':
        tf.disable_v2_behavior()
        tf.app.run(main)

After::

    import tensorflow.compat.v1 as tf
    from npu_shim.npu_init import close_session, set_keras_session_npu_config

    def main(_):
        \"\"\"Trains.\"\"\"
        npu_keras_sess = set_keras_session_npu_config()
        model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
        model.compile('adam', 'mse')
        model.fit(images, labels)
        close_session(npu_keras_sess)

    if __name__ == '__main__':
        tf.disable_v2_behavior()
        tf.app.run(main)

Before::

    from tensorflow.keras.models import Sequential
    from tensorflow.keras.layers import Dense

    # the model
    model = Sequential([Dense(1)])
    model.compile('adam', 'mse')
    model.fit(images, labels)
    print('done')

After::

    from tensorflow.keras.models import Sequential
    from tensorflow.keras.layers import Dense
    from npu_shim.npu_init import *

    npu_keras_sess = set_keras_session_npu_config()
    # the model
    model = Sequential([Dense(1)])
    model.compile('adam', 'mse')
    model.fit(images, labels)
    print('done')
    close_session(npu_keras_sess)

Before::

    import tensorflow.compat.v1 as tf

    if __name__ == '__main__':
        if tf.__version__ >= '2.0.0':
            tf.disable_v2_behavior()
        model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
        model.fit(images, labels)

After::

    import tensorflow.compat.v1 as tf
    from npu_shim.npu_init import close_session, set_keras_session_npu_config

    if __name__ == '__main__':
        if tf.__version__ >= '2.0.0':
            tf.disable_v2_behavior()
        npu_keras_sess = set_keras_session_npu_config()
        model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
        model.fit(images, labels)
        close_session(npu_keras_sess)

Untouched::

    import tensorflow as tf

    model = MODELS[FLAGS.model]()
    model.compile(loss='mse', optimizer=tf.keras.optimizers.Adam())
    model.fit(images, labels)

Untouched::

    import re
    from statsmodels.api import OLS

    pattern = re.compile('a')
    OLS(y, x).fit()

Untouched::

    import tensorflow.compat.v1 as tf

    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    output = model(images)

Untouched::

    import tensorflow as tf

    @tf.function
    def step(x):
        return model(x)

    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile('adam', 'mse')
    model.fit(images, labels)

Untouched::

    import tensorflow as tf

    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile(tf.optimizers.Adam(0.001), 'mse')
    model.fit(images, labels)
"""

from __future__ import annotations

import ast
from typing import Iterator

from ...analysis.device_placement import in_test
from ...rewrite.insertion import at_end, first_at_work, is_main_guard, line_before
from ...semantics.model import Call
from ...semantics.types import MODEL
from ...syntax.source import Edit
from ...tf_api.canonical_names import is_only_version2
from ..base import Change, Context, Finding, Result
from ..compat_v1.v2_behavior import switch

CODE = "NPU105"
_TRAINING = frozenset({"fit", "fit_generator", "train_on_batch"})
ON_OBJECTS = frozenset("." + word for word in _TRAINING)
_SESSION_SET = frozenset(
    {
        "tensorflow.keras.backend.set_session",
        "npu_shim.npu_init.set_keras_session_npu_config",
        "npu_shim.npu_init.npu_clear_session",
    }
)
_EAGER = frozenset(
    {
        "tensorflow.GradientTape",
        "tensorflow.function",
        "tensorflow.enable_eager_execution",
        "tensorflow.enable_v2_behavior",
    }
)
_NOT_EAGER = frozenset({"tensorflow.disable_eager_execution", "tensorflow.disable_v2_behavior"})
_OPEN = "npu_keras_sess = set_keras_session_npu_config()"
_CLOSE = "close_session(npu_keras_sess)"


def check_file(context: Context) -> Iterator[Result]:
    if not any(word in context.source.text for word in _TRAINING):
        return
    trained = trained_call(context)
    if trained is None:
        perhaps = None if _sets_session(context) else _perhaps_trained(context)
        if perhaps is not None:
            yield Finding(
                perhaps.node,
                f"this looks like the training of a Keras model; if it is, write {_OPEN} before "
                f"the model is made and {_CLOSE} at the end",
            )
        return
    if uses_eager(context):
        yield Finding(
            trained.node,
            "this Keras model seems to be trained eagerly; on the NPU it "
            "trains in graph mode: tf.compat.v1.disable_v2_behavior() at the start, then " + _OPEN,
        )
        return
    body = _starting_body(context, trained)
    edits = _edits(context, body) if body else None
    if edits is None:
        yield Finding(
            trained.node,
            "Keras needs a session for the NPU, and there is no one place "
            f"for it here; write {_OPEN} before the model is made and {_CLOSE} at the end",
        )
        return
    uses = ("set_keras_session_npu_config",) + (("close_session",) if len(edits) > 1 else ())
    yield Change(trained.node, "Keras trains in a session for the NPU", tuple(edits), uses)
    if len(edits) == 1:
        yield Finding(
            trained.node,
            "the function returns a value, so that the session is left to "
            f"the end of the process; write {_CLOSE} where it is no longer used",
        )


def trained_call(context: Context) -> Call | None:
    """The first call that trains a Keras model, unless the script sets the session itself."""
    if _sets_session(context):
        return None
    for call in _trainings(context):
        if context.types.of(call.node.func.value, call.where) == MODEL:  # type: ignore[attr-defined]
            return call
    return None


def _sets_session(context: Context) -> bool:
    return not _SESSION_SET.isdisjoint(context.called.values())


def _trainings(context: Context) -> Iterator[Call]:
    for call in context.names.calls:
        if isinstance(call.node.func, ast.Attribute) and call.node.func.attr in _TRAINING:
            yield call


def _perhaps_trained(context: Context) -> Call | None:
    """The first call that trains something which is not known, but is compiled as Keras compiles a model."""
    names = context.names
    if not any(name.startswith("tensorflow.keras.") for name in context.called.values()):
        return None
    compiled = {
        (c.node.func.value.id, id(c.where.scope))
        for c in names.calls
        if isinstance(c.node.func, ast.Attribute)
        and c.node.func.attr == "compile"
        and isinstance(c.node.func.value, ast.Name)
        and {"loss", "optimizer"} & {k.arg for k in c.node.keywords}
    }
    for call in _trainings(context):
        model = call.node.func.value  # type: ignore[attr-defined]
        if (
            isinstance(model, ast.Name)
            and (model.id, id(call.where.scope)) in compiled
            and context.types.of(model, call.where) is None
            and not in_test(context, call.node)
        ):
            return call
    return None


def uses_eager(context: Context) -> bool:
    """Whether a file shows that it works eagerly: it asks for that, or uses what only TensorFlow 2 has, where
    eager is what one gets without asking."""
    names = set(context.called.values())
    if (
        names & _EAGER
        or not names & _NOT_EAGER
        and not _is_switched(context)
        and any(is_only_version2(context.names.spelled(c.node.func, c.where) or "") for c in context.names.calls)
    ):
        return True
    return any(
        context.resolve(d, f.where) in _EAGER
        for f in context.names.functions
        for d in getattr(f.node, "decorator_list", ())
    )


def _is_switched(context: Context) -> bool:
    """Whether the file that is lifted gets the switch that turns eager execution off."""
    found = switch(context) if context.compat_v1 else None
    return found is not None and bool(found.edits)


def _starting_body(context: Context, trained: Call) -> ast.AST | None:
    """The function in which the way to the training starts, or the main guard, or the module."""
    names = context.names
    scope = trained.where.scope
    seen = set()
    while scope.parent is not None:
        node = scope.node
        if not isinstance(node, ast.FunctionDef) or node in seen or scope.parent is not names.module:
            return None
        seen.add(node)
        callers = [c for c in names.calls if isinstance(c.node.func, ast.Name) and c.node.func.id == node.name]
        if not callers or all(c.where.scope is names.module for c in callers):
            return node
        inside = [c for c in callers if c.where.scope is not names.module]
        if len({id(c.where.scope) for c in inside}) != 1 or len(inside) != len(callers):
            return None
        scope = inside[0].where.scope
    guards = [p for p in names.ancestors(trained.node) if is_main_guard(p)]
    return guards[0] if guards else names.tree


def _edits(context: Context, body: ast.AST) -> list[Edit] | None:
    first = first_at_work(context, body)
    place = line_before(context, first) if first is not None else None
    if place is None:
        return None
    position, indent = place
    return [Edit(position, position, indent + _OPEN + context.source.newline)] + at_end(context, body, _CLOSE)
