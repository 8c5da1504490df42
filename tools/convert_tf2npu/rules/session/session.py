"""Give every session the NPU configuration.

A session runs on the NPU if its ConfigProto names the custom optimizer ``NpuOptimizer`` and disables remapping and
memory optimization. ``npu_config_proto`` returns such a copy of the script's configuration and keeps all other
settings.

The rule reports a session whose configuration is not visible, because it is hidden behind ``*`` or ``**`` or passed
later. Wrap this configuration in ``npu_config_proto(config_proto=...)``.

Sessions stay on the host in a file that only codes images, such as the preparation of a dataset, and in functions that
build TensorRT graphs. Sessions that programs of TensorFlow 2 make for the memory of GPUs, and that nothing runs, are not
changed (NPU279).

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

Before::

    import functools
    import tensorflow as tf

    class Session(tf.Session):
        def __init__(self, graph=None):
            super().__init__(graph=graph, config=tf.ConfigProto(allow_soft_placement=True))

    class Monitored(tf.train.SingularMonitoredSession):
        pass

    make = functools.partial(tf.Session, graph=graph)
    sess = Monitored(hooks)

After::

    import functools
    import tensorflow as tf
    from npu_shim.npu_init import *

    class Session(tf.Session):
        def __init__(self, graph=None):
            super().__init__(graph=graph, config=npu_config_proto(config_proto=tf.ConfigProto(allow_soft_placement=True)))

    class Monitored(tf.train.SingularMonitoredSession):
        pass

    make = functools.partial(tf.Session, graph=graph, config=npu_config_proto())
    sess = Monitored(hooks, config=npu_config_proto())

Before::

    from tensorflow.contrib import predictor

    predict = predictor.from_saved_model(folder)
    print(predict({'x': images})['scores'])

After::

    from tensorflow.contrib import predictor
    from npu_shim.npu_init import *

    predict = predictor.from_saved_model(folder, config=npu_config_proto())
    print(predict({'x': images})['scores'])

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

    import tensorflow as tf

    config = tf.compat.v1.ConfigProto()
    config.gpu_options.allow_growth = True
    session = tf.compat.v1.Session(config=config)
    model = tf.keras.models.load_model('model')

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

Untouched::

    import functools
    import requests
    import tensorflow as tf

    class Session(requests.Session):
        def __init__(self):
            super().__init__()

    make = functools.partial(Session)
    made = functools.partial(tf.Session)(config=config)
"""

from __future__ import annotations

import ast
from typing import Iterator

from ...analysis.host_work import is_on_host
from ...analysis.tensorflow_version import is_idle_session
from ...rewrite.call_edits import edit_to_add_argument, edit_to_rename
from ...rewrite.session_config import configure_session, default_config_text
from ...semantics.model import Call
from ...semantics.signatures import bind_arguments, session_method_parameters
from ...syntax.expressions import is_none, last_name, last_part
from ...tf_api.name_tables import SESSION_METHOD_PARAMETERS, SESSION_PARAMETERS
from ..base import Change, Context, Finding

CODE = "NPU101"
_MONITORED = ("session_creator", "hooks", "stop_grace_period_secs")
CALLS = frozenset(SESSION_PARAMETERS) | {"tensorflow.train.MonitoredSession", "functools.partial"}
METHODS = frozenset(map(last_part, SESSION_METHOD_PARAMETERS)) | {"__init__"}


def check_file(context: Context) -> Iterator[Change | Finding]:
    """Configure objects of session subclasses in the project that have no __init__ of their own."""
    names = context.names
    words = {last_name(call.node.func) for call in names.calls} if names.classes else frozenset()
    own = {
        node.name
        for node, _ in names.classes
        if node.name in words and not names.outside_ancestors(node).isdisjoint(SESSION_PARAMETERS)
    }
    called = context.called_names
    one_of_each = {called[call.node]: call for call in names.calls if call.node in called}
    elsewhere = {name for name, call in one_of_each.items() if _makes_session(context, call)}
    for call in names.calls if own or elsewhere else ():
        if called.get(call.node) in elsewhere or last_name(call.node.func) in own:
            its_class = names.class_definition(call.node.func, call.where)
            if its_class and not its_class.names.attribute_bindings(its_class.node, "__init__"):
                node = its_class.node
                for base in sorted(its_class.names.outside_ancestors(node).intersection(SESSION_PARAMETERS)):
                    yield from configure_session(context, call.node, call, SESSION_PARAMETERS[base], node.name)


def _makes_session(context: Context, call: Call) -> bool:
    """Return True if a call makes an object of a class of the project that derives from a session of TensorFlow."""
    name = context.names.resolved_name(call.node.func, call.where)
    if name is None or not name.is_definition:
        return False
    return not context.names.project.outside_ancestors(name.path, name.dotted).isdisjoint(SESSION_PARAMETERS)


def check_call(context: Context, call: Call, name: str) -> Iterator[Change | Finding]:
    short = last_part(name)
    if is_on_host(context, call.node) or is_idle_session(context, call.node):
        return
    if short == "MonitoredSession":
        yield from _add_session_creator(context, call)
    elif short == "partial":
        yield from _configure_partial(context, call)
    else:
        yield from configure_session(context, call.node, call, SESSION_PARAMETERS[name], short)


def check_method(context: Context, call: Call, method: ast.Attribute) -> Iterator[Change | Finding]:
    if method.attr == "__init__":
        yield from _configure_base_init(context, call, method.value)
        return
    signature = session_method_parameters(context.types.type_of(method.value, call.where), method.attr)
    if signature:
        yield from configure_session(context, call.node, call, signature, method.attr)


def _configure_base_init(context: Context, call: Call, value: ast.expr) -> Iterator[Change | Finding]:
    """Prepare the configuration in a call of the __init__ of a session class by its subclass."""
    if isinstance(value, ast.Call) and getattr(value.func, "id", "") == "super":
        owner = next((p for p in context.names.ancestors(call.node) if isinstance(p, ast.ClassDef)), None)
        for base in owner.bases if owner else ():
            name = context.resolve(base, context.names.places[owner]) if owner else None
            if name in SESSION_PARAMETERS:
                yield from configure_session(context, call.node, call, SESSION_PARAMETERS[name], last_part(name))
                return
    else:
        name = context.resolve(value, call.where)
        if name in SESSION_PARAMETERS:
            yield from configure_session(
                context, call.node, call, ("self",) + SESSION_PARAMETERS[name], last_part(name)
            )


def _configure_partial(context: Context, call: Call) -> Iterator[Change | Finding]:
    """Prepare the configuration in a partial call of a session."""
    node = call.node
    name = context.resolve(node.args[0], call.where) if node.args else None
    if name not in SESSION_PARAMETERS:
        return
    signature = SESSION_PARAMETERS[name]
    rest = ast.Call(node.func, node.args[1:], node.keywords)
    short = last_part(name)
    if not {"config", "session_config"}.intersection(
        bind_arguments(rest, signature).args
    ) and _may_be_given_config_later(context, node):
        yield Finding(
            node, "the config of this {0} is passed later. Wrap it there in npu_config_proto(config_proto=...)", short
        )
        return
    yield from configure_session(context, rest, call, signature, short)


def _may_be_given_config_later(context: Context, node: ast.Call) -> bool:
    """Return True if a call of a partial may pass a config."""
    names, parent = context.names, context.names.parents.get(node)
    if isinstance(parent, ast.Assign) and len(parent.targets) == 1 and isinstance(parent.targets[0], ast.Name):
        calls = [names.parents.get(m) for m in names.mentions(parent.targets[0].id)]
    else:
        calls = [parent] if isinstance(parent, ast.Call) and parent.func is node else []
    return any(
        isinstance(c, ast.Call)
        and (len(c.args) > 1 or any(k.arg in (None, "config", "session_config") for k in c.keywords))
        for c in calls
    )


def _dotted_name_on_one_line(context: Context, node: ast.AST) -> str:
    """Return a dotted name on one line, without the spaces and comments that the script may have around its dots."""
    if isinstance(node, ast.Attribute):
        return f"{_dotted_name_on_one_line(context, node.value)}.{node.attr}"
    return context.source.segment(node)


def _add_session_creator(context: Context, call: Call) -> Iterator[Change | Finding]:
    """Give a MonitoredSession a session creator, unless the script passes one."""
    bound = bind_arguments(call.node, _MONITORED)
    given = bound.args.get("session_creator")
    if given is not None and not is_none(given):
        return  # the creator is converted where it is created
    function = call.node.func
    if bound.hidden or not isinstance(function, ast.Attribute):
        yield Finding(
            call.node,
            "MonitoredSession creates its session itself. Pass "
            "session_creator=tf.train.ChiefSessionCreator(config=npu_config_proto())",
        )
        return
    home, config = _dotted_name_on_one_line(context, function.value), default_config_text(context)
    creator = f"{home}.ChiefSessionCreator(config={config})"
    edit = (
        edit_to_rename(context.source, given, creator)
        if given is not None
        else edit_to_add_argument(context.source, call.node, "session_creator=" + creator)
    )
    if edit:
        yield Change(call.node, "MonitoredSession uses the NPU session configuration", (edit,), ("npu_config_proto",))
