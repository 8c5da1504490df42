"""Remove settings of GPUs.

Without a GPU, the list of GPUs is empty and ``gpus[0]`` raises an IndexError. The rule removes settings of a single
GPU, unless the script first tests that the list is not empty, and assertions that there is one. Memory fractions in a session configuration and
``CUDA_VISIBLE_DEVICES`` have no effect on the NPU, so they are not changed.

The rule reports a setting inside another expression. Put that statement under ``if gpus:``. It reports scripts that end
if there is no GPU. Remove such a test.

Before::

    import tensorflow as tf

    assert tf.test.is_gpu_available(), 'training requires a GPU'
    model = make_model()

After::

    import tensorflow as tf

    model = make_model()

Before::

    import tensorflow as tf

    gpus = tf.config.experimental.list_physical_devices('GPU')
    assert len(gpus) > 0, 'no GPU'
    tf.config.experimental.set_memory_growth(gpus[0], True)
    tf.config.experimental.set_virtual_device_configuration(gpus[0], [
        tf.config.experimental.VirtualDeviceConfiguration(memory_limit=1024)])
    tf.config.experimental.set_visible_devices(gpus[0], 'GPU')
    print('ready')

After::

    import tensorflow as tf

    gpus = tf.config.experimental.list_physical_devices('GPU')
    print('ready')

Untouched::

    import tensorflow as tf

    for gpu in tf.config.experimental.list_physical_devices('GPU'):
        tf.config.experimental.set_memory_growth(gpu, True)

Untouched::

    import tensorflow as tf

    gpus = tf.config.list_physical_devices('GPU')
    if gpus:
        tf.config.experimental.set_visible_devices(gpus[0], 'GPU')

Untouched::

    import tensorflow as tf

    gpus = tf.config.list_physical_devices('GPU')
    if not gpus:
        print('trains on the CPU')
    assert len(gpus) < 9

Untouched::

    import tensorflow as tf

    assert tf.test.is_built_with_cuda() or FLAGS.on_cpu

Untouched::

    import tensorflow as tf

    cpus = tf.config.list_physical_devices('CPU')
    tf.config.set_logical_device_configuration(cpus[0], [tf.config.LogicalDeviceConfiguration()] * 2)
"""

from __future__ import annotations

import ast
from typing import Iterator

from ...analysis.gpu_tests import ASKING, is_list_of_gpus, is_test_for_gpu, is_test_for_missing_gpu
from ...rewrite.removal import remove_statements
from ...semantics.model import Call, Where
from ..base import Change, Context, Finding

CODE = "NPU120"
_HOMES = ("tensorflow.config.", "tensorflow.config.experimental.")
CALLS = frozenset(
    home + name
    for home in _HOMES
    for name in """set_memory_growth set_visible_devices
set_virtual_device_configuration set_logical_device_configuration""".split()
)
_EXITS = frozenset({"sys.exit", "os._exit"})
_CAUGHT = frozenset({"IndexError", "LookupError", "Exception", "BaseException"})


def check_call(context: Context, call: Call, name: str) -> Iterator[Change | Finding]:
    if not call.node.args or not isinstance(call.node.args[0], ast.Subscript):
        return
    gpus = call.node.args[0].value
    if not is_list_of_gpus(context, gpus, call.where) or _is_guarded_against_missing_gpus(context, call.node, gpus):
        return
    statement = context.names.parents.get(call.node)
    if isinstance(statement, ast.Expr):
        yield Change(
            call.node,
            "setting of a GPU removed",
            tuple(remove_statements(context.source, context.names, [statement])),
        )
    else:
        yield Finding(
            call.node, "raises an IndexError without a GPU. Put it under if {0}:", context.source.segment(gpus)
        )


def check_file(context: Context) -> Iterator[Change | Finding]:
    """Remove assertions that there is a GPU, and report scripts that end without one."""
    names = context.names
    if ASKING.isdisjoint(context.called_names.values()):
        return
    for statement, where in names.places.items():
        if isinstance(statement, ast.Assert) and is_test_for_gpu(context, statement.test, where):
            edits = remove_statements(context.source, names, [statement])
            yield Change(statement, "assertion that there is a GPU removed", tuple(edits))
        elif isinstance(statement, ast.If) and is_test_for_missing_gpu(context, statement.test, where):
            if _ends_script(context, statement.body[-1], where):
                yield Finding(statement, "the script ends without a GPU. Remove this test")


def _ends_script(context: Context, statement: ast.stmt, where: Where) -> bool:
    """Return True if a statement ends the script."""
    if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Call):
        return isinstance(statement, ast.Raise)
    function = statement.value.func
    builtin = isinstance(function, ast.Name) and function.id in ("exit", "quit")
    return builtin or context.resolve(function, where) in _EXITS


def _is_guarded_against_missing_gpus(context: Context, node: ast.AST, gpus: ast.expr) -> bool:
    """Return True if the code runs only if the list is not empty, or catches the error."""
    wanted = ast.dump(gpus)
    for parent in context.names.ancestors(node):
        tests = (
            [getattr(parent, "test", None)]
            if isinstance(parent, (ast.If, ast.While, ast.IfExp))
            else [parent.iter]
            if isinstance(parent, ast.For)
            else []
        )
        if any(t is not None and any(ast.dump(n) == wanted for n in ast.walk(t)) for t in tests):
            return True
        if isinstance(parent, ast.Try) and any(
            h.type is None or any(getattr(n, "id", "") in _CAUGHT for n in ast.walk(h.type)) for h in parent.handlers
        ):
            return True
    return False
