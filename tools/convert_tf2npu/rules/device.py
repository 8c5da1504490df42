"""Take operations off the GPU.

Under the NPU the graph belongs to the CPU device, from which the NPU takes what it runs; a GPU does
not exist. A device that a function or a variable chooses stays and is told.

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

Untouched::

    import tensorflow as tf

    with tf.device('/cpu:0'):
        table = make_table()

Untouched::

    import tensorflow as tf

    with tf.device(tf.train.replica_device_setter(cluster=cluster)):
        build()

Untouched::

    import torch

    with torch.device('gpu:0'):
        build()
"""
from __future__ import annotations

import ast
import re
from typing import Iterator, Optional

from ..registry import Change, Context, Finding, Result
from ..scopes import Call
from ..signatures import constant
from ..source import Edit

CODE = 'NPU110'
CALLS = frozenset({'tensorflow.device'})
_GPU = re.compile(r'(?P<name>gpu)(?P<index>:(?:\d+|\*))?(?=["\'/]|\Z)', re.IGNORECASE)


def check_call(context: Context, call: Call, name: Optional[str]) -> Iterator[Result]:
    source = context.source
    arguments = list(call.node.args) + [k.value for k in call.node.keywords if k.arg]
    if len(arguments) != 1 or isinstance(arguments[0], ast.Starred):
        yield Finding(call.node, "cannot see the device; it must not name a GPU: tf.device('/cpu:0')")
        return
    device = arguments[0]
    value = constant(device)
    if value is None:
        yield Finding(call.node, 'the device is chosen when the script runs and stays; it must not '
                      "name a GPU: '/cpu:0' is right for the NPU")
        return
    if not isinstance(value[0], str):
        yield Finding(call.node, 'this device scope names no device and stays as it is')
        return
    if 'gpu' not in value[0].lower():
        return
    text = source.segment(device)
    found = list(_GPU.finditer(text))
    if len(found) != 1 or 'xla_' in text.lower():
        yield Finding(call.node, "write tf.device('/cpu:0'): the NPU takes its operations from there")
        return
    match = found[0]
    new = 'CPU' if match['name'].isupper() else 'cpu'
    start = source.start(device)
    yield Change(call.node, 'no operation is placed on a GPU', (
        Edit(start + match.start(), start + match.end(), new + (':0' if match['index'] else '')),))
