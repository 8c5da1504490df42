"""Replace GPU devices with the CPU device.

A graph for the NPU belongs to the CPU device. The NPU takes the operations that it supports from there, and a GPU
does not exist. The rule replaces each GPU in a literal device name, also if the script fills in the number of the
GPU.

In a program of TensorFlow 2, operations on the CPU device would stay on the host. There the device becomes
``'/device:NPU:0'``; each process has one.

The same holds for the device of ``tf.distribute.OneDeviceStrategy``. If it is the CPU, a program of TensorFlow 2 trains
on the host, which the rule reports, as ``tf.device('/cpu:0').__enter__()``. With ``-d tf_strategy`` NPU302 replaces the
strategy.

A device that the script chooses at run time needs no change: ``npu_shim.npu_init``, and ``npu.open()`` in TensorFlow 2,
let each scope that names a GPU name the same devices as above. The rule reports such a device where the program imports
neither, where it is the device of a strategy, and in TensorFlow 2 where it may be the CPU, as it is with
``'/gpu:0' if tf.test.is_gpu_available() else '/cpu:0'``: the operations would run on the host.

Before::

    import tensorflow as tf

    @tf.function
    def step(x):
        with tf.device('/GPU:1'):
            return model(x)

After::

    import tensorflow as tf

    @tf.function
    def step(x):
        with tf.device('/device:NPU:0'):
            return model(x)

Before::

    import tensorflow as tf
    import npu_shim.npu_device as npu

    npu.open().as_default()
    strategy = tf.distribute.OneDeviceStrategy('/gpu:0')
    with strategy.scope():
        model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
        model.compile('adam', 'mse')
    model.fit(images[:n], labels[:n])

After::

    import tensorflow as tf
    import npu_shim.npu_device as npu

    npu.open().as_default()
    strategy = tf.distribute.OneDeviceStrategy('/device:NPU:0')
    with strategy.scope():
        model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
        model.compile('adam', 'mse')
    model.fit(images[:n], labels[:n])

Reported::

    import tensorflow as tf
    import npu_shim.npu_device as npu

    npu.open().as_default()
    strategy = tf.distribute.OneDeviceStrategy('/cpu:0')
    with strategy.scope():
        model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
        model.compile('adam', 'mse')
    model.fit(images[:n], labels[:n])

Reported::

    import tensorflow as tf
    import npu_shim.npu_device as npu

    npu.open().as_default()
    tf.device('/cpu').__enter__()

    @tf.function
    def step(x):
        return model(x)

Before::

    import tensorflow as tf

    with tf.device('/gpu:0'):
        loss = make_loss()
    with tf.device("/job:worker/task:1/device:GPU:3"):
        other = make_loss()

After::

    import tensorflow as tf

    with tf.device('/cpu:0'):
        loss = make_loss()
    with tf.device("/job:worker/task:1/device:CPU:0"):
        other = make_loss()

Before::

    import tensorflow as tf

    for i in range(FLAGS.num_gpus):
        with tf.device('/gpu:%d' % i), tf.name_scope('tower_%d' % i):
            losses.append(tower_loss(i))
    with tf.device("/device:GPU:" + str(FLAGS.gpu)):
        total = tf.add_n(losses)

After::

    import tensorflow as tf

    for i in range(FLAGS.num_gpus):
        with tf.device('/cpu:0'), tf.name_scope('tower_%d' % i):
            losses.append(tower_loss(i))
    with tf.device("/device:CPU:0"):
        total = tf.add_n(losses)

Untouched::

    import tensorflow as tf

    with tf.device('/cpu:0'):
        table = make_table()

Untouched::

    import tensorflow as tf

    x = tf.placeholder(tf.float32, [8, 4])
    strategy = tf.contrib.distribute.OneDeviceStrategy('/cpu:0')

Untouched::

    import tensorflow as tf
    from npu_shim.npu_init import *

    with tf.device(FLAGS.device):
        build()
    for task in range(FLAGS.tasks):
        with tf.device('/job:worker/task:%d/gpu:%d' % (task, 0)):
            build(task)
    sess = tf.Session(config=npu_config_proto())

Reported::

    import tensorflow as tf

    def build(device):
        with tf.device(device):
            return tf.layers.dense(tf.placeholder(tf.float32, [8, 4]), 2)

Untouched::

    import tensorflow as tf
    import npu_shim.npu_device as npu

    npu.open().as_default()
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    with tf.device(FLAGS.device):
        model.fit(images[:n], labels[:n])

Reported::

    import tensorflow as tf

    device = '/gpu:0' if tf.test.is_gpu_available() else '/cpu:0'
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    with tf.device(device):
        model.fit(images, labels)

Before::

    from tensorflow.python.framework import ops
    import tensorflow as tf

    graph = tf.Graph()
    with graph.as_default(), graph.device('/gpu:0'):
        loss = make_loss()
    with ops.device(device_name_or_function='/gpu:1'):
        other = make_loss()

After::

    from tensorflow.python.framework import ops
    import tensorflow as tf

    graph = tf.Graph()
    with graph.as_default(), graph.device('/cpu:0'):
        loss = make_loss()
    with ops.device(device_name_or_function='/cpu:0'):
        other = make_loss()

Untouched::

    import tensorflow as tf

    def build(plan):
        with plan.device('/gpu:0'):
            return make_loss()

Untouched::

    import tensorflow as tf
    from mycompany.games import OneDeviceStrategy

    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    strategy = OneDeviceStrategy('/gpu:0')

Untouched::

    import torch

    with torch.device('gpu:0'):
        build()
"""

from __future__ import annotations

import ast
import re
from typing import Iterator

from ...analysis.device_placement import is_in_test
from ...analysis.gpu_names import cpu_in_same_case, literal_without_gpu
from ...analysis.session_patch import gets_session_patch
from ...analysis.strategies import ONE_DEVICE
from ...analysis.tensorflow_version import is_tf2_program, version_verdict
from ...rewrite.call_edits import edit_to_rename
from ...semantics.model import Call
from ...semantics.tf_types import Type
from ...semantics.value_flow import origins
from ...syntax.expressions import boxed_constant, last_part
from ...syntax.source import Edit
from ..base import Change, Context, Finding

CODE = "NPU110"
CALLS = frozenset({"tensorflow.device", *ONE_DEVICE})
METHODS = frozenset({"device"})
_NPU = "/device:NPU:0"  # each process has one
_GPU = re.compile(r'(?P<name>gpu)(?P<index>:(?:\d+|\*))?(?=["\'/]|\Z)', re.IGNORECASE)


def check_method(context: Context, call: Call, method: ast.Attribute) -> Iterator[Change | Finding]:
    if _is_scope(context, call) and context.resolve(method, call.where) not in CALLS:
        yield from check_call(context, call, "")


def check_call(context: Context, call: Call, name: str) -> Iterator[Change | Finding]:
    source = context.source
    device = _device_argument(call)
    of_strategy = name in ONE_DEVICE
    if of_strategy and (context.distributed == "tf_strategy" or is_in_test(context, call.node)):
        return
    if device is None:
        if of_strategy or not _are_gpus_replaced_at_run_time(context):
            yield Finding(
                call.node, "the device is not visible. Make sure it never names a GPU; '/cpu:0' works on the NPU"
            )
        return
    value = boxed_constant(device)
    if is_tf2_program(context):
        if of_strategy and not version_verdict(context).on_npu:
            return
        if (
            of_strategy
            and value is not None
            and "gpu" not in str(value[0]).lower()
            and "npu" not in str(value[0]).lower()
        ):
            yield Finding(call.node, "the model trains on the host. Write {0}('{1}')", last_part(name), _NPU)
        if _is_scope_for_whole_program(context, call) and value is not None and "cpu" in str(value[0]).lower():
            yield Finding(call.node, "all operations after this run on the host. Remove it")
        yield from _replace_gpu_of_tf2(context, call, device, value, of_strategy)
        return
    if value is None:
        literal = literal_without_gpu(context, device, call)
        if literal:
            yield Change(
                call.node, "GPU device replaced with the CPU device", (edit_to_rename(source, device, literal),)
            )
        elif of_strategy or not _are_gpus_replaced_at_run_time(context):
            yield Finding(
                call.node,
                "the device is chosen at run time. Make sure it never names a GPU; '/cpu:0' works on the NPU",
            )
        return
    if not isinstance(value[0], str):
        if of_strategy or not _are_gpus_replaced_at_run_time(context):
            yield Finding(call.node, "the device is not a string. Make sure this scope never selects a GPU")
        return
    if "gpu" not in value[0].lower():
        return
    text = source.segment(device)
    gpus = list(_GPU.finditer(text))
    if len(gpus) != 1 or "xla_" in text.lower():
        yield Finding(call.node, "this device names a GPU. Write tf.device('/cpu:0')")
        return
    match = gpus[0]
    start = source.start(device)
    yield Change(
        call.node,
        "GPU device replaced with the CPU device",
        (Edit(start + match.start(), start + match.end(), cpu_in_same_case(match) + (":0" if match["index"] else "")),),
    )


def _replace_gpu_of_tf2(
    context: Context, call: Call, device: ast.expr, value: tuple[object, ...] | None, is_of_strategy: bool
) -> Iterator[Change | Finding]:
    """Replace a GPU in a program of TensorFlow 2, in which operations on the CPU device stay on the host."""
    if value is None and literal_without_gpu(context, device, call) is None:
        if is_of_strategy or not _are_gpus_replaced_at_run_time(context):
            yield Finding(
                call.node,
                "the device is chosen at run time. Make sure it never names a GPU; '{0}' works on the NPU",
                _NPU,
            )
        elif _may_be_cpu(context, device, call):
            yield Finding(call.node, "the device may be the CPU, and then this runs on the host. Write '{0}'", _NPU)
    elif value is None or isinstance(value[0], str) and "gpu" in value[0].lower():
        quote = '"' if '"' in context.source.segment(device) else "'"
        yield Change(
            call.node,
            "GPU device replaced with the NPU device",
            (edit_to_rename(context.source, device, quote + _NPU + quote),),
        )


def _are_gpus_replaced_at_run_time(context: Context) -> bool:
    """Return True if npu_shim replaces the GPUs that scopes of the program name when it runs."""
    return version_verdict(context).on_npu if is_tf2_program(context) else gets_session_patch(context)


def _may_be_cpu(context: Context, device: ast.expr, call: Call) -> bool:
    """Return True if the script shows that a device is the CPU in one case."""
    values = (boxed_constant(origin.node) for origin in origins(device, call.where, context.names))
    return any(value is not None and isinstance(value[0], str) and "cpu" in value[0].lower() for value in values)


def _is_scope_for_whole_program(context: Context, call: Call) -> bool:
    """Return True if a scope is entered and never left, in a program that opens the NPU device."""
    parent = context.names.parents.get(call.node)
    if not isinstance(parent, ast.Attribute) or parent.attr != "__enter__":
        return False
    entered = context.names.parents.get(parent)
    return isinstance(entered, ast.Call) and entered.func is parent and version_verdict(context).on_npu


def _device_argument(call: Call) -> ast.expr | None:
    arguments = list(call.node.args) + [k.value for k in call.node.keywords if k.arg]
    return arguments[0] if len(arguments) == 1 and not isinstance(arguments[0], ast.Starred) else None


def _is_scope(context: Context, call: Call) -> bool:
    """Return True if a call is one of tf.device or of the method ``device`` of a graph."""
    function = call.node.func
    return (
        context.resolve(function, call.where) in CALLS
        or isinstance(function, ast.Attribute)
        and context.types.type_of(function.value, call.where) == Type.GRAPH
    )
