"""Write what TensorFlow computes on the CPU at chosen training steps, one file for each output of an op.

In a graph each op gets an op beside it that hands its outputs over, and what follows waits for it; so loops, branches,
functions and gradients are written, too. Of an op that runs several times in a step the last value stays. The ops of an
imported graph stay as they are: a run of a session fetches those that it computes, but for those in loops.
"""

from __future__ import annotations

import atexit
import contextlib
import dataclasses
import itertools
import os
import sys
import threading
from typing import Callable, Collection, Iterator, Sequence

import numpy as np
import tensorflow as tf

from npu_shim._tensorflow import tf_graph, tf_op_creation, tf_recording, tf_session
from npu_shim._tensorflow.tf_numpy_function import add_array_function_op
from npu_shim._tensorflow.types import Fetches, Function, Operation, Result, Session, Structure, Tensor, Value
from npu_shim.dumps import reference
from npu_shim.dumps.reference_writer import Writer
from npu_shim.rehearsal.assess.lines import creating_lines, running_script_line
from npu_shim.rehearsal.recording import methods
from npu_shim.rehearsal.recording.functions import disable_xla
from npu_shim.rehearsal.recording.names import fetches_with_values
from npu_shim.rehearsal.recording.recorder import Watcher

_FED = "Placeholder"
_INSIDE = ("Switch", "RefSwitch", "Enter", "RefEnter")  # begin branches and loops of TensorFlow 1
_CALLS = ("If", "StatelessIf", "While", "StatelessWhile", "PartitionedCall", "StatefulPartitionedCall")
_OUTSIDE = ("Merge", "RefMerge", "Exit", "RefExit")
_NO_STEP = -1
_FUNCTION = "__"  # begins the type of an op that calls a tf.function
_NO_DUMP = frozenset(  # must stay as TensorFlow connects them, run other ops, are fed, or are the recording's
    "Case EagerPyFunc Enter Exit If LoopCond Merge NextIteration PartitionedCall Placeholder PlaceholderWithDefault "
    "PyFunc PyFuncStateless RefEnter RefExit RefMerge RefNextIteration RefSwitch StatefulPartitionedCall StatelessCase "
    "StatelessIf StatelessWhile Switch While".split()
)


class Dump(tf_op_creation.OpHook):
    """Write the outputs of all ops at some steps.

    Args:
        folder: receives a folder for each step.
        steps: the steps, from 0.
        watcher: counts the training steps.
        layers: the names of the ops; all if it is empty.
    """

    def __init__(self, folder: str, steps: Collection[int], watcher: Watcher, layers: Collection[str] = ()) -> None:
        self._writers = {step: Writer(os.path.join(folder, str(step))) for step in steps}
        self._watcher, self._layers = watcher, layers
        self._folder = os.getcwd()
        self._places = itertools.count()
        self._of_run: list[int] = []  # the step at which a session, or a function, began to run
        self._eager: dict[tuple[int, str], int] = {}  # the number of ops of a type in a step
        self._imported: dict[Operation, int] = {}  # their places in the order of the graph
        self._unseen = 0  # the number of imported ops that are not written, or that call functions
        self._lock = threading.Lock()

    def start(self) -> Dump:
        """Write what is created from now on."""
        disable_xla()
        # TensorFlow's constant folding makes a circle of the ops that write and of those of a convolution's gradient.
        tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})
        tf_op_creation.add_hook(self)
        methods.wrap_methods(tf_recording.BaseSession, ("run",), self._run_session)
        methods.wrap_methods(type(tf.function(lambda: None)), ("__call__",), self._call_in_step)
        atexit.register(self.close)
        return self

    def close(self) -> None:
        """Write the indexes."""
        atexit.unregister(self.close)
        tf_op_creation.remove_hook(self)
        for writer in self._writers.values():
            writer.close()
        if self._unseen:
            what = f"{self._unseen} ops of imported graphs are in branches or loops, or call functions"
            print(f"npu_shim: not dumped: {what}", file=sys.stderr, flush=True)

    def replace_outputs(
        self, op_type: str, op: Operation | None, inputs: Sequence[Value], outputs: Sequence[Value]
    ) -> list[Value]:
        """Write the outputs of an op, now or when it runs."""
        written = [number for number, value in enumerate(outputs) if _is_numeric_tensor(value)]
        if not written or op_type in _NO_DUMP or op_type.startswith(_FUNCTION):
            return list(outputs)
        if op is None:
            if self._current_step() in self._writers:
                self._write_eager(op_type, [(number, np.asarray(outputs[number])) for number in written])
            return list(outputs)
        entry = self._index_entry(op, inputs)
        with tf_op_creation.create_hook_ops(op.graph):
            noted = add_array_function_op(
                self._array_writer(entry, written), [outputs[number] for number in written], []
            )
            with tf.control_dependencies([noted]):
                return [tf.identity(value) if number in written else value for number, value in enumerate(outputs)]

    def note_imported_ops(self, ops: Sequence[Operation]) -> None:
        """Take note of the ops that a session's run can fetch: those that always run, and once, but for constants."""
        depths: dict[Operation, int] = {}  # of branches and loops
        for op in ops:
            depth = max((depths.get(tensor.op, 0) for tensor in op.inputs), default=0)
            depths[op] = max(0, depth + (op.type in _INSIDE) - (op.type in _OUTSIDE))
            self._unseen += bool(depths[op]) or op.type in _CALLS
            if (
                not depths[op]
                and op.type not in _NO_DUMP
                and op.type != "Const"
                and tf_op_creation.SCOPE not in op.name
            ):
                self._imported[op] = next(self._places)

    def _tensors_to_fetch(self, session: Session, fetches: Fetches) -> list[Tensor]:
        """Return the tensors of an imported graph that a run computes."""
        fetched = [tf_recording.fetched_op(session.graph, fetch) for fetch, _ in fetches_with_values(fetches, fetches)]
        ops = (
            tf_graph.ops_with_ancestors(op for op in fetched if op).keys() & set(self._imported)
            if self._imported
            else ()
        )
        return [tensor for op in ops for tensor in op.outputs if _is_numeric_tensor(tensor)]

    def _index_entry(self, op: Operation, inputs: Sequence[Value]) -> reference.Output:
        names = [tf_op_creation.original_tensor_name(tensor) for tensor in inputs]
        return reference.Output(
            op.name, type=op.type, line=next(iter(creating_lines(op, self._folder)), ""), inputs=names
        )

    def _array_writer(self, entry: reference.Output, numbers: Sequence[int]) -> Callable[..., list[np.ndarray]]:
        place = next(self._places)

        def write(*arrays: np.ndarray) -> list[np.ndarray]:
            self._write_outputs(place, entry, zip(numbers, arrays))
            return []

        return write

    def _write_eager(self, op_type: str, values: Sequence[tuple[int, np.ndarray]]) -> None:
        """Write the outputs of an op of eager code, whose name is its type and the number of such ops in the step."""
        key = self._current_step(), op_type
        number = self._eager[key] = self._eager.get(key, -1) + 1
        name = f"{op_type}_{number}" if number else op_type
        entry = reference.Output(name, type=op_type, line=running_script_line(self._folder))
        self._write_outputs(next(self._places), entry, values)

    def _write_outputs(self, place: int, entry: reference.Output, values: Structure) -> None:
        writer = self._writers.get(self._current_step())
        if writer is not None and (not self._layers or entry.op in self._layers):
            with self._lock:
                for number, array in values:
                    writer.write_output(place, dataclasses.replace(entry, output=number), array)

    def _current_step(self) -> int:
        """Return the current step. It ends with the session's run, or the function, in which variables are updated."""
        return self._of_run[0] if self._of_run else self._watcher.steps

    def _run_session(
        self, original: Function, session: Session, fetches: Fetches, *args: object, **kwargs: object
    ) -> Result:
        if tf_op_creation.are_hooks_suspended():  # a run of the recording
            with self._running_step(_NO_STEP):
                return original(session, fetches, *args, **kwargs)
        if self._current_step() not in self._writers:
            return self._call_in_step(original, session, fetches, *args, **kwargs)
        given: Value = args[0] if args else kwargs.get("feed_dict")
        for tensor, value in tf_session.fed_values(session, given) if given else ():
            entry = reference.Output(tf_op_creation.original_tensor_name(tensor).partition(":")[0], type=_FED)
            array = np.asarray(value, tensor.dtype.base_dtype.as_numpy_dtype)
            if array.dtype.kind in "biufc":
                self._write_outputs(-1, entry, [(tensor.value_index, array)])
        wanted = self._tensors_to_fetch(session, fetches)
        with self._running_step():
            result, values = original(session, [fetches, wanted], *args, **kwargs)
            for tensor, value in zip(wanted, values):
                self._write_outputs(
                    self._imported[tensor.op],
                    self._index_entry(tensor.op, tensor.op.inputs),
                    [(tensor.value_index, value)],
                )
        return result

    def _call_in_step(self, original: Function, function: object, *args: object, **kwargs: object) -> Result:
        with self._running_step():
            return original(function, *args, **kwargs)

    @contextlib.contextmanager
    def _running_step(self, step: int | None = None) -> Iterator[None]:
        """Return a context manager for a run that belongs to one step."""
        self._of_run.append(self._watcher.steps if step is None else step)
        try:
            yield
        finally:
            self._of_run.pop()


def _is_numeric_tensor(value: Value) -> bool:
    dtype = getattr(value, "dtype", None)
    dtype = None if dtype is None else tf.as_dtype(dtype)
    is_number = dtype is not None and (dtype.is_floating or dtype.is_integer or dtype.is_bool or dtype.is_complex)
    return is_number and not (isinstance(value, tf.Tensor) and tf_graph.is_variable_reference(value))
