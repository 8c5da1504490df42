"""Count the steps of a training on a device, where a recording adds no op to a graph and no seed to an op.

What the host sees anyway is recorded: feeds, fetches, summaries, logs, metrics, predictions, printed numbers, and the
variables at the end.
"""

from __future__ import annotations

from typing import Callable, Hashable, Iterator

import tensorflow as tf

from npu_shim._tensorflow import tf_recording
from npu_shim._tensorflow.types import Fetches, Function, Optimizer, Result, Saver, Session, Value
from npu_shim.rehearsal.recording import methods, updating
from npu_shim.rehearsal.recording.names import plain_name, single_fetches
from npu_shim.rehearsal.recording.optimizers import UpdateWatch
from npu_shim.rehearsal.recording.recorder import Recorder
from npu_shim.rehearsal.recording.traced_updates import TracedUpdates
from npu_shim.rehearsal.recording.update_hooks import Apply, Pairs


class CountedFunctions(TracedUpdates[Hashable, Callable[[], object]]):
    """Count a step for each call of a tf.function that trains, also if it makes several in a loop."""

    def count_call(self, function: Function, result: Result) -> None:
        """Count the step."""
        for count in list(self._training[function].values()):
            count()


class HostUpdates(UpdateWatch):
    """The functions around optimizers and sessions that count steps.

    Args:
        recorder: counts.

    Attributes:
        functions: the tf.functions that train.
    """

    def __init__(self, recorder: Recorder) -> None:
        super().__init__()
        self._recorder = recorder
        recorder.records_tensors = False
        self.functions = CountedFunctions(recorder)
        self.functions.watch()
        self._saved: tuple[str | None, int] = (None, 0)  # the last checkpoint, and the step in which it was written
        methods.wrap_methods(tf_recording.BaseSession, ("run",), self._run_and_count)
        methods.wrap_methods(tf.compat.v1.train.Saver, ("save",), self._note_checkpoint)

    def variables_of(self, session: Session) -> Iterator[tuple[str, Value]]:
        """Yield the variables at the end, if there is a checkpoint of the last step. To read them is one more graph."""
        path, step = self._saved
        if path is None or step != self._recorder.steps:
            return
        reader = tf.train.load_checkpoint(path)
        for variable in session.graph.get_collection(tf.compat.v1.GraphKeys.GLOBAL_VARIABLES):
            if reader.has_tensor(plain_name(variable)):
                yield plain_name(variable), reader.get_tensor(plain_name(variable))

    def has_updated_variables(self) -> bool:
        """Return True if an optimizer has updated variables, or is in a graph or a function that does."""
        return self._watched > 0

    def _note_checkpoint(self, original: Function, saver: Saver, *args: object, **kwargs: object) -> Result:
        result = original(saver, *args, **kwargs)
        self._saved = (result, self._recorder.steps)
        return result

    def _apply_and_watch(self, optimizer: Optimizer, pairs: Pairs, apply: Apply, is_reduced: bool = False) -> Result:
        before = self._watched
        result = apply(pairs)
        if self._watched == before:
            self._watched += 1
            if not tf.executing_eagerly():
                graph = tf.compat.v1.get_default_graph()
                updating.remember_update(graph, result)
                number = self.number_of_optimizer(optimizer, graph)
                self.functions.remember_update(number, lambda: self._recorder.record_update(number, []))
            elif not self._recorder.is_inside("fit", "train_on_batch"):  # which count themselves
                self._recorder.record_update(self.number_of_optimizer(optimizer, None), [])
        return result

    def _run_and_count(
        self, original: Function, session: Session, fetches: Fetches, *args: object, **kwargs: object
    ) -> Result:
        result = original(session, fetches, *args, **kwargs)
        if not self._recorder.is_inside("evaluate", "predict"):
            for number in updating.update_numbers_of_run(session.graph, single_fetches(fetches)):
                self._recorder.record_update(number, [])
        return result
