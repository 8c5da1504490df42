"""A double of the engine for sessions: it dumps the ops of a training step as the options of the session ask.

A process whose path has ``sitecustomize.py`` (write_startup) seems to have a card with this engine.
"""

from __future__ import annotations

import os
import pathlib
import tempfile
from typing import Any

import numpy as np

PLANTED = "NPU_TEST_PLANTED"  # variable: the operator whose dumps have 1.5 times what they should
WRONG = "NPU_TEST_WRONG"  # variable: if set, the floats that a training step returns are 1.5 times what they should be
_STARTUP = """
import sys
sys.path[:0] = {path!r}
from npu_shim._host import host_device
from npu_shim.import_hook.after_tensorflow import after_tensorflow
host_device.DEVICE_FILES = {files!r}
def install():
    from tests.card import dumping_engine
    dumping_engine.install()
after_tensorflow(install)
"""


def write_startup(folder: pathlib.Path, path: list[str], files: str) -> None:
    """Write what a process runs first: the device files of the card, and the engine when TensorFlow is imported."""
    (folder / "sitecustomize.py").write_text(_STARTUP.format(path=path, files=files))


def install() -> None:
    """Run sessions with an NpuOptimizer entry in TensorFlow, and dump what their options ask for."""
    import tensorflow as tf
    from tensorflow.python.client import session

    from npu_shim.config.parameter_map import find_entry, read_options
    from tests.dumps.recorded_step import below, flat, has_numbers

    init, run = session.BaseSession.__init__, session.BaseSession.run

    def start(self: Any, target: str = "", graph: Any = None, config: Any = None) -> None:
        entry = find_entry(config)
        self.engine_options, self.engine_step = read_options(entry) if entry is not None else None, -1
        if entry is not None:  # TensorFlow has no such optimizer here
            plain = tf.compat.v1.ConfigProto()
            plain.CopyFrom(config)
            del plain.graph_options.rewrite_options.custom_optimizers[:]
            config = plain
        init(self, target, graph, config)

    def run_and_dump(self: Any, fetches: Any, feed_dict: Any = None, *rest: Any) -> Any:
        options: Any = self.engine_options
        ops = below(self.graph, list(flat(fetches))) if options is not None else []
        if not any("Apply" in op.type for op in ops):
            return run(self, fetches, feed_dict, *rest)
        self.engine_step += 1
        if not options.get("enable_dump") or str(self.engine_step) not in options["dump_step"].split("|"):
            return _returned(run(self, fetches, feed_dict, *rest))
        tensors = [each for op in ops if not _is_updated(op) for each in op.outputs if has_numbers(each)]
        result, arrays = run(self, [fetches, tensors], feed_dict, *rest)
        _dump(pathlib.Path(options["dump_path"]), self.engine_step, tensors, list(map(np.asarray, arrays)))
        return _returned(result)

    session.BaseSession.__init__, session.BaseSession.run = start, run_and_dump


def _returned(result: Any) -> Any:
    """Return what a training step returns, a list or one array, as the planted defect changes it."""
    from npu_shim._host import host_device

    if WRONG not in os.environ or not host_device.detect_without_import().is_npu:  # a run on the host
        return result
    if isinstance(result, (list, tuple)):
        return type(result)(map(_returned, result))
    return result * 1.5 if isinstance(result, (float, np.floating, np.ndarray)) else result


def _dump(folder: pathlib.Path, step: int, tensors: list[Any], arrays: list[np.ndarray]) -> None:
    from npu_shim.dumps import reference
    from tests.dumps.engine import Engine
    from tests.dumps.messages import tensor as as_dumped
    from tests.dumps.recorded_step import entry
    from tests.dumps.written_reference import write as write_reference

    with tempfile.TemporaryDirectory() as beside:
        write_reference(beside, [(entry(tensor, ""), array) for tensor, array in zip(tensors, arrays)])
        engine = Engine(reference.read_step(beside, {}))
        engine.write(folder, step)
        name = os.environ.get(PLANTED)
        if name:
            made = engine.operators[name]
            changed = as_dumped(made.arrays[0] * np.float32(1.5), made.layout, made.letters, made.dtype)
            engine.write_operator(folder, name, lambda _: changed, step)


def _is_updated(op: Any) -> bool:
    """Return True for an update, and for a variable of TensorFlow 1 and its reads, which the update changes in place."""
    refers = any(each.dtype._is_ref_dtype for each in [*op.inputs, *op.outputs])
    return refers or "Apply" in op.type or "Assign" in op.type
