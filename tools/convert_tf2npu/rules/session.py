"""Give every session the NPU configuration.

A session runs on the NPU when its ConfigProto names the custom optimizer ``NpuOptimizer`` and has
remapping and memory optimization switched off. ``npu_config_proto`` returns such a copy of the
configuration that the script made; what the script set in it stays.

Before::

    import tensorflow as tf

    config = tf.ConfigProto(log_device_placement=True)
    with tf.Session(config=config) as sess:
        sess.run(train_op)

After::

    import tensorflow as tf
    from npu_shim.npu_init import *

    config = tf.ConfigProto(log_device_placement=True)
    with tf.Session(config=npu_config_proto(config_proto=config)) as sess:
        sess.run(train_op)

Before::

    from tensorflow.python.client.session import InteractiveSession

    shell = InteractiveSession('', graph)

After::

    from tensorflow.python.client.session import InteractiveSession
    from npu_shim.npu_init import *

    shell = InteractiveSession('', graph, config=npu_config_proto())

Before::

    import tensorflow.compat.v1 as tf

    with tf.train.MonitoredTrainingSession(
            checkpoint_dir=FLAGS.model_dir,  # where to resume from
            hooks=hooks,
    ) as sess:
        sess.run(train_op)

After::

    import tensorflow.compat.v1 as tf
    from npu_shim.npu_init import npu_config_proto

    with tf.train.MonitoredTrainingSession(
            checkpoint_dir=FLAGS.model_dir,  # where to resume from
            hooks=hooks,
            config=npu_config_proto(),
    ) as sess:
        sess.run(train_op)

Before::

    import tensorflow as tf

    sv = tf.train.Supervisor(logdir=FLAGS.logdir)
    with sv.managed_session(FLAGS.master, config) as sess:
        sess.run(train_op)

After::

    import tensorflow as tf
    from npu_shim.npu_init import *

    sv = tf.train.Supervisor(logdir=FLAGS.logdir)
    with sv.managed_session(FLAGS.master, npu_config_proto(config_proto=config)) as sess:
        sess.run(train_op)

Before::

    import tensorflow as tf

    slim = tf.contrib.slim
    slim.learning.train(train_op, FLAGS.logdir)
    with tf.train.MonitoredSession(hooks=hooks) as sess:
        sess.run(train_op)

After::

    import tensorflow as tf
    from npu_shim.npu_init import *

    slim = tf.contrib.slim
    slim.learning.train(train_op, FLAGS.logdir, session_config=npu_config_proto())
    with tf.train.MonitoredSession(hooks=hooks, session_creator=tf.train.ChiefSessionCreator(config=npu_config_proto())) as sess:
        sess.run(train_op)

Before::

    import tensorflow as tf
    from tensorflow.contrib import gan, slim

    slim.evaluation.evaluation_loop(FLAGS.master, FLAGS.checkpoints, FLAGS.logdir, num_evals=9)
    tf.contrib.training.evaluate_repeatedly(FLAGS.checkpoints, config=config)
    gan.gan_train(train_ops, FLAGS.logdir, hooks=hooks)
    sess = tf.train.SessionManager().prepare_session('', init_op=init)

After::

    import tensorflow as tf
    from tensorflow.contrib import gan, slim
    from npu_shim.npu_init import *

    slim.evaluation.evaluation_loop(FLAGS.master, FLAGS.checkpoints, FLAGS.logdir, num_evals=9, session_config=npu_config_proto())
    tf.contrib.training.evaluate_repeatedly(FLAGS.checkpoints, config=npu_config_proto(config_proto=config))
    gan.gan_train(train_ops, FLAGS.logdir, hooks=hooks, config=npu_config_proto())
    sess = tf.train.SessionManager().prepare_session('', init_op=init, config=npu_config_proto())

Untouched::

    import tensorflow as tf

    class Manager:
        def run(self):
            with self.managed_session() as sess:
                sess.run(train_op)

Untouched::

    import tensorflow as tf

    sess = tf.train.MonitoredSession(session_creator=creator)

Untouched::

    import requests
    import tensorflow as tf

    with requests.Session() as session:
        session.get(url)

Untouched::

    import tensorflow as tf
    from npu_shim.npu_init import *

    sess = tf.Session(config=npu_config_proto())

Untouched::

    import tensorflow as tf
    from mycompany.evaluation import evaluate_once, manager

    evaluate_once(FLAGS.checkpoint, num_evals=9)
    manager.prepare_session(FLAGS.master)

Untouched::

    import tensorflow as tf

    sess = tf.Session(**session_arguments)
"""
from __future__ import annotations

import ast
from typing import Iterator, Optional, Tuple

from ..edits import add_argument, wrap
from ..infer import NPU_CONFIG
from ..registry import Change, Context, Finding, Result
from ..scopes import Call
from ..session_signatures import FUNCTIONS, METHODS_OF
from ..signatures import bind

CODE = 'NPU101'
_MONITORED = ('session_creator', 'hooks', 'stop_grace_period_secs')
CALLS = frozenset(FUNCTIONS) | {'tensorflow.train.MonitoredSession'}
METHODS = frozenset(method for methods in METHODS_OF.values() for method in methods)


def check_call(context: Context, call: Call, name: Optional[str]) -> Iterator[Result]:
    short = (name or '').rsplit('.', 1)[1]
    if short == 'MonitoredSession':
        yield from _creator(context, call)
    else:
        yield from _config(context, call, FUNCTIONS[name or ''], short)


def check_method(context: Context, call: Call) -> Iterator[Result]:
    function = call.node.func
    assert isinstance(function, ast.Attribute)
    signature = METHODS_OF.get(context.types.of(function.value, call.where) or '', {}).get(function.attr)
    if signature:
        yield from _config(context, call, signature, function.attr)


def _config(context: Context, call: Call, signature: Tuple[str, ...], short: str) -> Iterator[Result]:
    source = context.source
    bound = bind(call.node, signature)
    name = 'session_config' if 'session_config' in signature else 'config'
    config = bound.args.get(name)
    if config is not None:
        if context.types.of(config, call.where) != NPU_CONFIG:
            yield Change(call.node, '%s runs on the NPU' % short, wrap(
                source, config, 'npu_config_proto(config_proto=', ')'), ('npu_config_proto',))
        return
    if bound.hidden:
        yield Finding(call.node, 'the arguments of %s are hidden behind * or **; put '
                      'npu_config_proto(config_proto=...) around the config among them' % short)
        return
    edit = add_argument(source, call.node, name + '=npu_config_proto()')
    if edit:
        yield Change(call.node, '%s runs on the NPU' % short, (edit,), ('npu_config_proto',))


def _creator(context: Context, call: Call) -> Iterator[Result]:
    """A MonitoredSession makes its session itself unless it is given a creator."""
    bound = bind(call.node, _MONITORED)
    if bound.given('session_creator') or bound.positional:
        return  # the creator is converted where it is made
    function = call.node.func
    if bound.hidden or not isinstance(function, ast.Attribute):
        yield Finding(call.node, 'MonitoredSession makes its session itself; write session_creator='
                      'tf.train.ChiefSessionCreator(config=npu_config_proto())')
        return
    creator = context.source.segment(function.value) + '.ChiefSessionCreator'
    edit = add_argument(context.source, call.node,
                        'session_creator=%s(config=npu_config_proto())' % creator)
    if edit:
        yield Change(call.node, 'MonitoredSession runs on the NPU', (edit,), ('npu_config_proto',))
