"""The rate of an input pipeline on this machine: the batches a second that it makes when nothing else runs."""

from __future__ import annotations

import threading
import time
from typing import Callable, Sequence

from npu_shim._tensorflow import tf_capture
from npu_shim._tensorflow.tf_api import tf
from npu_shim._tensorflow.types import FeedDict, Function, Operation, Session, Value
from npu_shim.rehearsal.assess.given_shapes import iterator_outputs

_SECONDS, _MOST_SECONDS = 2.0, 60.0
_FAILURES = (StopIteration, tf.errors.OpError, RuntimeError, TypeError, ValueError)


def rate_of_session(session: Session, ops: list[Operation], feed_dict: FeedDict | None, run: Function) -> float | None:
    """Return the batches a second of the iterators behind a run; None without one. It reads them further.

    Args:
        session: that runs.
        ops: that it runs.
        feed_dict: of the run.
        run: the method of sessions.
    """
    outputs = iterator_outputs(session, ops)
    return _rate(lambda: run(session, outputs, feed_dict)) if outputs else None


def rate_of_iterators(iterators: Sequence[Value]) -> float | None:
    """Return the batches a second of the dataset of an iterator, read anew; None unless there is exactly one."""
    datasets = [tf_capture.dataset_of_iterator(iterator) for iterator in iterators]
    if len(datasets) != 1 or datasets[0] is None:
        return None
    try:
        again = iter(datasets[0])
    except _FAILURES:
        return None
    return _rate(lambda: next(again))


def _rate(read_batch: Callable[[], Value]) -> float | None:
    """Return the batches a second after the first one, for which the pipeline fills its buffers.

    Another thread reads them, because a pipeline may wait for the script, which waits here: after a minute it has none.
    """
    rates: list[float] = []

    def measure() -> None:
        count, start = -1, time.perf_counter()
        try:
            while time.perf_counter() - start < _SECONDS:
                read_batch()
                count += 1
                start = time.perf_counter() if count == 0 else start
        except _FAILURES:
            pass
        if count > 0:
            rates.append(count / (time.perf_counter() - start))

    thread = threading.Thread(target=measure)
    thread.start()
    thread.join(_MOST_SECONDS)
    return rates[0] if rates else None
