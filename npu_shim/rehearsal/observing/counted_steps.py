"""Count the training steps of an observed run, and end it after a number of them. Nothing is recorded."""

from __future__ import annotations

from typing import Sequence

from npu_shim._tensorflow.types import Value
from npu_shim.import_hook.after_tensorflow import after_tensorflow
from npu_shim.rehearsal.recording.recorder import Recorder
from npu_shim.rehearsal.recording.writer import Row, Writer


class _NoWriter(Writer):
    """Write nothing."""

    def __init__(self) -> None:
        """Open no file."""

    def write_event(self, event: str, **fields: Value) -> None:
        """Write nothing."""

    def write_rows(self, step: int, rows: Sequence[Row]) -> None:
        """Write nothing."""


def start_counting_steps(limit: int | None) -> Recorder:
    """Count the steps of this process as soon as it has imported TensorFlow.

    Args:
        limit: the number of steps after which the script ends, as with ``npu-shim verify --steps``; None for no limit.
    Returns:
        The recorder, whose ``steps`` are the number.
    """
    recorder = Recorder(_NoWriter(), limit=limit)

    def watch() -> None:
        from npu_shim.rehearsal.recording.estimators import watch_estimators
        from npu_shim.rehearsal.recording.host_values import HostUpdates
        from npu_shim.rehearsal.recording.keras_models import watch_keras_models
        from npu_shim.rehearsal.recording.limit import Limit
        from npu_shim.rehearsal.recording.tapes import count_updates_by_script

        counting = HostUpdates(recorder)
        ending = Limit(recorder, counting) if limit is not None else None
        if ending is not None:
            ending.watch_sessions()
        counting.install()
        count_updates_by_script(recorder, counting)
        watch_keras_models(recorder)
        watch_estimators(recorder)
        if ending is not None:
            ending.watch()

    after_tensorflow(watch)
    return recorder
