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

    sess = tf.Session(**session_arguments)
"""
from __future__ import annotations

from typing import Iterator, Optional

from ..edits import add_argument, wrap
from ..infer import NPU_CONFIG
from ..registry import Change, Context, Finding, Result
from ..scopes import Call
from ..signatures import SESSION, bind

CODE = 'NPU101'
_CREATOR = ('scaffold', 'master', 'config', 'checkpoint_dir', 'checkpoint_filename_with_path')
_SIGNATURES = {
    'tensorflow.Session': SESSION,
    'tensorflow.InteractiveSession': SESSION,
    'tensorflow.train.ChiefSessionCreator': _CREATOR,
    'tensorflow.train.WorkerSessionCreator': _CREATOR[:3] + ('max_wait_secs',),
    'tensorflow.train.MonitoredTrainingSession': (
        'master', 'is_chief', 'checkpoint_dir', 'scaffold', 'hooks', 'chief_only_hooks',
        'save_checkpoint_secs', 'save_summaries_steps', 'save_summaries_secs', 'config',
        'stop_grace_period_secs', 'log_step_count_steps', 'max_wait_secs',
        'save_checkpoint_steps', 'summary_dir', 'save_graph_def'),
}
CALLS = frozenset(_SIGNATURES)


def check_call(context: Context, call: Call, name: Optional[str]) -> Iterator[Result]:
    source = context.source
    bound = bind(call.node, _SIGNATURES[name or ''])
    short = (name or '').rsplit('.', 1)[1]
    config = bound.args.get('config')
    if config is not None:
        if context.types.of(config, call.where) != NPU_CONFIG:
            yield Change(call.node, '%s runs on the NPU' % short, wrap(
                source, config, 'npu_config_proto(config_proto=', ')'), ('npu_config_proto',))
        return
    if bound.hidden:
        yield Finding(call.node, 'the arguments of %s are hidden behind * or **; put '
                      'npu_config_proto(config_proto=...) around the config among them' % short)
        return
    edit = add_argument(source, call.node, 'config=npu_config_proto()')
    if edit:
        yield Change(call.node, '%s runs on the NPU' % short, (edit,), ('npu_config_proto',))
