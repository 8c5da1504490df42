"""Private parts of TensorFlow's Estimator, checkpoint hooks, iterators and summary writers.

Import it only from modules that need TensorFlow anyway.
"""

from __future__ import annotations

import contextlib
import functools
from typing import Callable, Iterator, Sequence

from tensorflow.python.data.ops import dataset_ops
from tensorflow.python.ops import summary_ops_v2 as _summary_ops

from npu_shim._tensorflow.tf_api import v1
from npu_shim._tensorflow.types import (
    Dataset,
    Estimator,
    EstimatorClass,
    EventWriter,
    Operation,
    Session,
    Value,
    WarmStartSettings,
)


def estimator_class() -> EstimatorClass | None:
    """Return the class Estimator; None where TensorFlow has none."""
    try:
        return getattr(v1.estimator, "Estimator", None)
    except (AttributeError, ImportError):
        return None


def eval_specs_of_listeners(listeners: Sequence[v1.train.CheckpointSaverListener]) -> list[Value]:
    """Return the EvalSpec of each listener with which train_and_evaluate evaluates checkpoints."""
    evaluators: list[Value] = [getattr(listener, "_evaluator", None) for listener in listeners]
    return [evaluator._eval_spec for evaluator in evaluators if hasattr(evaluator, "_eval_spec")]


class CheckpointSaverHook(v1.train.CheckpointSaverHook):
    """tf.train.CheckpointSaverHook with a public interface for subclasses, which override ``save``."""

    _listeners: list[v1.train.CheckpointSaverListener]

    @property
    def folder(self) -> str:
        """The folder of the checkpoints."""
        return self._checkpoint_dir

    @property
    def listeners(self) -> list[v1.train.CheckpointSaverListener]:
        """The listeners, called around each save."""
        return list(self._listeners)

    def current_step(self, session: Session) -> int:
        """Return the global step of a session."""
        return session.run(self._global_step_tensor)

    def last_saved_step(self) -> int | None:
        """Return the step of the last save, None before the first one."""
        return self._timer.last_triggered_step()

    def start_interval(self, step: int) -> None:
        """Count the interval to the next save from this step."""
        self._timer.update_last_triggered_step(step)

    def save(self, session: Session, step: int) -> bool:
        """Write a checkpoint and call the listeners. Return True if one of them asks to stop."""
        return super()._save(session, step)

    def write(self, session: Session, step: int) -> None:
        """Write a checkpoint without calling the listeners."""
        listeners, self._listeners = self._listeners, []
        try:
            super()._save(session, step)
        finally:
            self._listeners = listeners

    def _save(self, session: Session, step: int) -> bool:
        return self.save(session, step)


def cached_event_writer(folder: str) -> EventWriter | None:
    """Return the summary writer that TensorFlow caches for a folder, None if there is none."""
    return v1.summary.FileWriterCache._cache.get(folder)


def set_cached_event_writer(folder: str, writer: EventWriter | None) -> None:
    """Set the summary writer that TensorFlow caches for a folder. None removes it."""
    cache = v1.summary.FileWriterCache._cache
    if writer is None:
        cache.pop(folder, None)
    else:
        cache[folder] = writer


@contextlib.contextmanager
def change_iterator_datasets(change: Callable[[Dataset], Dataset]) -> Iterator[None]:
    """Inside, every TF 1 iterator is made of ``change(dataset)`` instead of the dataset.

    TensorFlow has no public place to change a dataset when an input_fn returns
    the tensors of an iterator.
    """
    owner = v1.data.Dataset
    originals = {name: owner.__dict__[name] for name in ("_make_one_shot_iterator", "_make_initializable_iterator")}

    def wrap_iterator_maker(original: Callable[..., object]) -> Callable[..., object]:
        @functools.wraps(original)
        def make_iterator(self: Dataset, *args: object, **kwargs: object) -> object:
            changed = change(self)
            if not isinstance(changed, owner):
                changed = dataset_ops.DatasetV1Adapter(changed)
            return original(changed, *args, **kwargs)

        return make_iterator

    for name, original in originals.items():
        setattr(owner, name, wrap_iterator_maker(original))
    try:
        yield
    finally:
        for name, original in originals.items():
            setattr(owner, name, original)


def summary_writer_ops() -> tuple[list[Operation], list[Operation]]:
    """Return the ops that open and the ops that flush the summary writers of the default graph."""
    opened = list(_summary_ops.summary_writer_initializer_op())
    flush = getattr(_summary_ops, "legacy_raw_flush", _summary_ops.flush)
    return opened, [flush(writer=op.inputs[0]) for op in opened]


def warm_start_settings(estimator: Estimator) -> WarmStartSettings | None:
    """Return the warm start settings of an Estimator."""
    return estimator._warm_start_settings


def saved_step(model_dir: str) -> int:
    """Return the global step of the newest checkpoint in a folder, 0 if there is none."""
    newest = v1.train.latest_checkpoint(model_dir)
    return int(v1.train.load_variable(newest, v1.GraphKeys.GLOBAL_STEP)) if newest else 0


@contextlib.contextmanager
def no_check_override() -> Iterator[None]:
    """Let subclasses of Estimator override its members while the context lasts."""
    estimator, name = v1.estimator.Estimator, "_assert_members_are_not_overridden"
    check = vars(estimator).get(name)  # None if a base class has it
    setattr(estimator, name, lambda self: None)
    try:
        yield
    finally:
        if check is None:
            delattr(estimator, name)
        else:
            setattr(estimator, name, check)
