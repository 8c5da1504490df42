"""Forked processes in a training script.

A forked process has copies of the NPU runtime's locks and handles, which belong to threads of the parent process. It
can hang or fail at any time. Start processes with a fork server that is created before the first session or tensor. The rule
reports only code that a program which trains may run, in whichever of its files. Keras forks processes for
``use_multiprocessing=True``; threads are safe.

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

Reported::

    import tensorflow as tf

    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.fit_generator(batches, workers=FLAGS.workers, use_multiprocessing=FLAGS.workers > 1)

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
from ...analysis.training_programs import texts_of_first_training_program
from ...semantics.model import Call
from ...syntax.expressions import boxed_constant
from ..base import Context, Finding

CODE = "NPU229"
_METHODS = frozenset({"multiprocessing.set_start_method", "multiprocessing.get_context"})
_WORKERS = frozenset(
    """multiprocessing.Pool multiprocessing.Process multiprocessing.pool.Pool
multiprocessing.process.Process concurrent.futures.ProcessPoolExecutor
concurrent.futures.process.ProcessPoolExecutor""".split()
)
_ENQUEUERS = frozenset(
    f"tensorflow.keras.utils.{name}" for name in ("GeneratorEnqueuer", "OrderedEnqueuer", "SequenceEnqueuer")
)
_FORK = "os.fork"
CALLS = _METHODS | _WORKERS | _ENQUEUERS | {_FORK}
# Keras' methods that take workers.
METHODS = frozenset("evaluate evaluate_generator fit fit_generator predict predict_generator".split())
ON_OBJECTS = ("multiprocessing", "ProcessPoolExecutor", _FORK)  # of helpers of a program, without TensorFlow
_SETS_START_METHOD = re.compile(
    rb"\bset_start_method\(|\b(?:multiprocessing|mp)\.get_context\(|"
    rb"\bfrom multiprocessing\b[^\n]*\bget_context\b|\bmp_context\s*="
)


def check_method(context: Context, call: Call, method: ast.Attribute) -> Iterator[Finding]:
    if _may_fork(call) and is_keras_method(context, call):
        yield from _findings_of_keras_multiprocessing(context, call)


def check_call(context: Context, call: Call, name: str) -> Iterator[Finding]:
    if name in _METHODS:
        values = call.node.args + [k.value for k in call.node.keywords if k.arg == "method"]
        if values and boxed_constant(values[0]) == ("fork",):
            yield Finding(call.node, "forked processes can hang or fail with the NPU runtime. Use 'forkserver'")
    elif name in _ENQUEUERS:
        if _may_fork(call):
            yield from _findings_of_keras_multiprocessing(context, call)
    elif name == _FORK:
        if texts_of_first_training_program(context, call.node):
            yield Finding(
                call.node,
                "a forked process can hang or fail with the NPU runtime. Start it with multiprocessing and 'forkserver'",
            )
    elif is_first_call(context, call, _WORKERS, context.names.tree, on_npu=False):
        program = texts_of_first_training_program(context, call.node)
        if program and not _sets_start_method(program):
            yield Finding(
                call.node,
                "forked processes can hang or fail with the NPU runtime. "
                "Call multiprocessing.set_start_method('forkserver') at the start of the main program",
            )


def _sets_start_method(program: list[bytes]) -> bool:
    return any(
        (b"multiprocessing" in text or b"mp_context" in text) and _SETS_START_METHOD.search(text) for text in program
    )


def _may_fork(call: Call) -> bool:
    given = [keyword.value for keyword in call.node.keywords if keyword.arg == "use_multiprocessing"]
    return any(boxed_constant(value) not in ((False,), (None,)) for value in given)


def _findings_of_keras_multiprocessing(context: Context, call: Call) -> Iterator[Finding]:
    program = texts_of_first_training_program(context, call.node) or [context.source.text.encode("utf-8", "replace")]
    if not _sets_start_method(program):
        yield Finding(
            call.node,
            "use_multiprocessing=True forks processes, which can hang or fail with the NPU runtime. "
            "Use threads: use_multiprocessing=False",
        )
