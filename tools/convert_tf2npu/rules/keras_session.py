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
"""
from __future__ import annotations

import ast
from typing import Iterator, List, Optional, Tuple

from ..infer import MODEL, own_returns
from ..registry import Change, Context, Finding, Result
from ..scopes import Call
from ..signatures import constant
from ..source import Edit

CODE = 'NPU105'
_TRAINING = frozenset({'fit', 'fit_generator', 'train_on_batch'})
_SESSION_SET = frozenset({'tensorflow.keras.backend.set_session',
                          'npu_shim.npu_init.set_keras_session_npu_config',
                          'npu_shim.npu_init.npu_clear_session'})
_EAGER = frozenset({'tensorflow.GradientTape', 'tensorflow.function',
                    'tensorflow.enable_eager_execution', 'tensorflow.enable_v2_behavior'})
_SETTINGS = ('tensorflow.disable_', 'tensorflow.enable_', 'tensorflow.logging.',
             'tensorflow.reset_default_graph', 'tensorflow.set_random_seed',
             'tensorflow.random.set_', 'tensorflow.keras.backend.clear_session',
             'tensorflow.keras.backend.set_', 'tensorflow.config.', 'absl.', 'numpy.random.seed',
             'random.seed', 'tensorflow.flags.', 'tensorflow.app.flags.')
_OPEN = 'npu_keras_sess = set_keras_session_npu_config()'
_CLOSE = 'close_session(npu_keras_sess)'


def check_file(context: Context) -> Iterator[Result]:
    trained = trained_call(context)
    if trained is None:
        return
    if uses_eager(context):
        yield Finding(trained.node, 'this Keras model seems to be trained eagerly; on the NPU it '
                      'trains in graph mode: tf.compat.v1.disable_v2_behavior() at the start, then '
                      + _OPEN)
        return
    body = _starting_body(context, trained)
    edits = _edits(context, body) if body else None
    if edits is None:
        yield Finding(trained.node, 'Keras needs a session for the NPU, and there is no one place '
                      'for it here; write %s before the model is made and %s at the end' % (
                          _OPEN, _CLOSE))
        return
    uses = ('set_keras_session_npu_config',) + (('close_session',) if len(edits) > 1 else ())
    yield Change(trained.node, 'Keras trains in a session for the NPU', tuple(edits), uses)
    if len(edits) == 1:
        yield Finding(trained.node, 'the function returns a value, so that the session is left to '
                      'the end of the process; write %s where it is no longer used' % _CLOSE)


def trained_call(context: Context) -> Optional[Call]:
    """The first call that trains a Keras model, unless the script sets the session itself."""
    found = None
    for call in context.names.calls:
        name = context.resolve(call.node.func, call.where)
        if name in _SESSION_SET:
            return None
        function = call.node.func
        if found is None and isinstance(function, ast.Attribute) and function.attr in _TRAINING \
                and context.types.of(function.value, call.where) == MODEL:
            found = call
    return found


def uses_eager(context: Context) -> bool:
    """Whether a file shows that it works eagerly."""
    for call in context.names.calls:
        if context.resolve(call.node.func, call.where) in _EAGER:
            return True
    return any(context.resolve(d, f.where) in _EAGER for f in context.names.functions
               for d in getattr(f.node, 'decorator_list', ()))


def _starting_body(context: Context, trained: Call) -> Optional[ast.AST]:
    """The function in which the way to the training starts, or the module."""
    names = context.names
    scope = trained.where.scope
    seen = set()
    while scope.parent is not None:
        node = scope.node
        if not isinstance(node, ast.FunctionDef) or node in seen or scope.parent is not names.module:
            return None
        seen.add(node)
        callers = [c for c in names.calls
                   if isinstance(c.node.func, ast.Name) and c.node.func.id == node.name]
        if not callers or all(c.where.scope is names.module for c in callers):
            return node
        inside = [c for c in callers if c.where.scope is not names.module]
        if len({id(c.where.scope) for c in inside}) != 1 or len(inside) != len(callers):
            return None
        scope = inside[0].where.scope
    return names.tree


def _edits(context: Context, body: ast.AST) -> Optional[List[Edit]]:
    source = context.source
    statements: List[ast.stmt] = body.body  # type: ignore[attr-defined]
    first = _first(context, statements, body)
    if first is None:
        return None
    start = _line_of(context, first)
    if start is None:
        return None
    position, indent = start
    edits = [Edit(position, position, indent + _OPEN + source.newline)]
    returns = own_returns(body)
    last = statements[-1]
    if isinstance(body, ast.Module):
        last_start = source.line_start(source.start(last))
        if source.text[last_start:source.start(last)].strip():
            return None
    if any(r.value is not None and constant(r.value) is None and not isinstance(r.value, ast.Name)
           for r in returns):
        return edits
    for statement in returns:
        at = source.start(statement)
        column = source.text[source.line_start(at):at]
        if column.strip():
            return edits
        edits.append(Edit(at, at, _CLOSE + source.newline + column))
    if isinstance(last, (ast.Return, ast.Raise)):
        return edits
    if _is_main_guard(last):
        return edits if returns else _with_guard(context, last, edits)
    end = source.next_line(source.end(last))
    text = indent + _CLOSE + source.newline
    if not source.text[:end].endswith(('\n', '\r')):
        text = source.newline + indent + _CLOSE
    edits.append(Edit(end, end, text))
    return edits


def _with_guard(context: Context, guard: ast.stmt, edits: List[Edit]) -> List[Edit]:
    # a script whose training stands at module level and whose last statement is its main guard
    source = context.source
    end = source.next_line(source.end(guard))
    line = '' if source.text[:end].endswith(('\n', '\r')) else source.newline
    return edits + [Edit(end, end, line + _CLOSE + source.newline)]


def _is_main_guard(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Compare) and \
        isinstance(node.test.left, ast.Name) and node.test.left.id == '__name__'


def _first(context: Context, statements: List[ast.stmt], body: ast.AST) -> Optional[ast.stmt]:
    """The first statement that may already need the session."""
    for statement in statements:
        if isinstance(statement, (ast.Import, ast.ImportFrom, ast.Global, ast.Nonlocal, ast.Delete)):
            continue
        if isinstance(body, ast.Module):
            if isinstance(statement, (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef)):
                continue
            if isinstance(statement, ast.Try) and all(
                    isinstance(s, (ast.Import, ast.ImportFrom)) for s in statement.body):
                continue
            if isinstance(statement, (ast.Assign, ast.AnnAssign)) and not any(
                    isinstance(n, ast.Call) for n in ast.walk(statement)):
                continue
        if isinstance(statement, ast.Expr):
            if constant(statement.value):
                continue
            if isinstance(statement.value, ast.Call):
                name = context.resolve(statement.value.func, context.names.places[statement]) or ''
                if name.startswith(_SETTINGS):
                    continue
        return statement
    return None


def _line_of(context: Context, statement: ast.stmt) -> Optional[Tuple[int, str]]:
    """Where a line can be put before a statement and the comments above it, and its indentation."""
    source = context.source
    start = source.start(statement)
    for decorator in getattr(statement, 'decorator_list', ()):
        start = min(start, source.start(decorator) - 1)
    position = source.line_start(start)
    indent = source.text[position:start]
    if indent.strip():
        return None  # it shares its line with something else
    while position > 0:
        above = source.line_start(position - 1)
        line = source.text[above:position]
        if not line.startswith(indent + '#') or line.startswith('#!') or 'coding' in line:
            break
        position = above
    return position, indent
