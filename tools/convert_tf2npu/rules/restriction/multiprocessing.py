"""Forked processes in a training script.

A forked process has copies of the NPU runtime's locks and handles, which belong to threads of the parent process. It
can hang or fail at any time. Start processes with a fork server that is created before the first session or tensor. The rule
reports only files that train. Keras forks processes for ``use_multiprocessing=True``; threads are safe.

Reported::

    import multiprocessing
    import tensorflow as tf

    workers = multiprocessing.Pool(8)
    with tf.Session() as sess:
        sess.run(train_op)

Reported::

    import multiprocessing
    import tensorflow as tf

    reader = multiprocessing.Process(target=read)
    with tf.GradientTape() as tape:
        loss = model(x)

Reported::

    import multiprocessing as mp
    import tensorflow as tf

    mp.set_start_method('fork')

Reported::

    import multiprocessing
    import tensorflow as tf

    workers = multiprocessing.get_context(method='fork').Pool(8)

Reported::

    import os
    from tensorflow import keras
    import npu_shim.npu_device as npu

    npu.open().as_default()
    reader = os.fork()
    model = keras.Sequential([keras.layers.Dense(1)])
    model.fit(images, labels)

Reported::

    from tensorflow import keras
    import npu_shim.npu_device as npu

    npu.open().as_default()
    model = keras.Sequential([keras.layers.Dense(1)])
    model.fit(batches, workers=4, use_multiprocessing=True)

Untouched::

    import multiprocessing
    import tensorflow as tf

    if __name__ == '__main__':
        multiprocessing.set_start_method('forkserver')
        workers = multiprocessing.Pool(8)
        model.fit(generate(workers))

Untouched::

    import multiprocessing
    import tensorflow as tf

    def write(files):
        with tf.python_io.TFRecordWriter('out') as writer:
            writer.write(read(files))

    multiprocessing.Pool(8).map(write, files)
"""

from __future__ import annotations

import ast
import re
from typing import Iterator

from ...analysis.device_placement import is_first_call
from ...analysis.keras_methods import is_keras_method
from ...semantics.model import Call
from ...syntax.expressions import constant
from ..base import Context, Finding, Result

CODE = "NPU229"
_METHODS = frozenset({"multiprocessing.set_start_method", "multiprocessing.get_context"})
_WORKERS = frozenset(
    """multiprocessing.Pool multiprocessing.Process multiprocessing.pool.Pool
multiprocessing.process.Process concurrent.futures.ProcessPoolExecutor
concurrent.futures.process.ProcessPoolExecutor""".split()
)
_FORK = "os.fork"
CALLS = _METHODS | _WORKERS | {_FORK}
METHODS = frozenset({"fit", "fit_generator"})
_TRAINS = re.compile(
    r"\.Session\(|\.InteractiveSession\(|\.MonitoredTrainingSession\(|\.Supervisor\(|"
    r"\.Estimator\(|\.TPUEstimator\(|train_and_evaluate\(|\.fit\(|\.fit_generator\(|\.GradientTape\(|\.train_on_batch\("
)
_SETS_START_METHOD = re.compile(r"set_start_method\(|get_context\(|mp_context\s*=")


def check_method(context: Context, call: Call, method: ast.Attribute) -> Iterator[Result]:
    forks = any(k.arg == "use_multiprocessing" and constant(k.value) == (True,) for k in call.node.keywords)
    if forks and not _SETS_START_METHOD.search(context.source.text) and is_keras_method(context, call):
        yield Finding(
            call.node,
            "use_multiprocessing=True forks processes, which can hang or fail with the NPU runtime. "
            "Use threads: use_multiprocessing=False",
        )


def check_call(context: Context, call: Call, name: str) -> Iterator[Result]:
    if name in _METHODS:
        values = call.node.args + [k.value for k in call.node.keywords if k.arg == "method"]
        if values and constant(values[0]) == ("fork",):
            yield Finding(call.node, "forked processes can hang or fail with the NPU runtime. Use 'forkserver'")
        return
    text = context.source.text
    if not _TRAINS.search(text) or not ("tensorflow" in text or "keras" in text):
        return
    if name == _FORK:
        yield Finding(
            call.node,
            "a forked process can hang or fail with the NPU runtime. Start it with multiprocessing and 'forkserver'",
        )
    elif not _SETS_START_METHOD.search(text) and is_first_call(
        context, call, _WORKERS, context.names.tree, on_npu=False
    ):
        yield Finding(
            call.node,
            "forked processes can hang or fail with the NPU runtime. "
            "Call multiprocessing.set_start_method('forkserver') at the start of the main program",
        )
