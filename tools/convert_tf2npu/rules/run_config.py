"""Make run configurations NPU run configurations.

``NPURunConfig`` is a ``tf.estimator.RunConfig`` that also takes the options of the NPU. Positional
arguments get their names, because NPURunConfig has others in front. A RunConfig with an argument
that has no meaning on a card (and is not just None) keeps its class and is prepared by
``npu_run_config_init``.

Before::

    import tensorflow as tf

    config = tf.estimator.RunConfig(FLAGS.model_dir, save_checkpoints_steps=500, device_fn=None)

After::

    import tensorflow as tf
    from npu_shim.npu_init import *

    config = NPURunConfig(model_dir=FLAGS.model_dir, save_checkpoints_steps=500, device_fn=None)

Before::

    from tensorflow import estimator as est

    config = est.RunConfig(train_distribute=strategy)

After::

    from tensorflow import estimator as est
    from npu_shim.npu_init import *

    config = npu_run_config_init(run_config=est.RunConfig(train_distribute=strategy))

Untouched::

    import tensorflow as tf
    from mycompany.jobs import RunConfig

    config = RunConfig('night', retries=3)

Untouched::

    import tensorflow as tf
    from npu_shim.npu_init import *

    config = NPURunConfig(model_dir=FLAGS.model_dir)

Untouched::

    import tensorflow as tf

    config = tf.estimator.RunConfig(**run_arguments)
"""
from __future__ import annotations

import ast
from typing import Iterator, List, Optional

from ..edits import name_argument, rename, wrap
from ..names import Names
from ..registry import Change, Context, Finding, Result
from ..run_configs import foreign_arguments
from ..scopes import Call, Where
from ..signatures import NPU_RUN_CONFIG, RUN_CONFIG, bind
from ..source import Edit

CODE = 'NPU102'
CALLS = frozenset({'tensorflow.estimator.RunConfig'})


def check_call(context: Context, call: Call, name: Optional[str]) -> Iterator[Result]:
    source = context.source
    if _prepared(context.names, call.node, call.where):
        return
    bound = bind(call.node, RUN_CONFIG)
    if bound.hidden or bound.unknown:
        yield Finding(call.node, 'the arguments of RunConfig are not all to be seen; write '
                      'NPURunConfig(...) with those among %s' % ', '.join(sorted(NPU_RUN_CONFIG)))
        return
    foreign = sorted(foreign_arguments(context, call.node, call.where))
    if foreign:
        yield Change(call.node, 'RunConfig keeps its class for the sake of %s and is prepared for '
                     'the NPU' % ', '.join(foreign),
                     wrap(source, call.node, 'npu_run_config_init(run_config=', ')'),
                     ('npu_run_config_init',))
        return
    edits: List[Edit] = [rename(source, call.node.func, 'NPURunConfig')]
    for parameter, value in zip(bound.positional, call.node.args):
        edits.append(name_argument(source, call.node, value, parameter))
    yield Change(call.node, 'RunConfig becomes NPURunConfig', tuple(edits), ('NPURunConfig',))


def _prepared(names: Names, node: ast.AST, where: Where) -> bool:
    """Whether a RunConfig already stands inside npu_run_config_init(...)."""
    for parent in names.ancestors(node):
        if isinstance(parent, ast.stmt):
            return False
        if isinstance(parent, ast.Call) and names.resolve(parent.func, where) == \
                'npu_shim.npu_init.npu_run_config_init':
            return True
    return False
