"""Fill the queues of TensorFlow 1 in the same order in every run.

* A QueueRunner has one thread for equal ops. The threads of several ops run them in turn.
* A RandomShuffleQueue that a QueueRunner fills has room for one element more than it keeps. So each element leaves a
  full queue, and its place does not depend on how far the threads have got.
* A Supervisor starts no threads that compute summaries every few seconds, because these take batches from the queues.
"""

from __future__ import annotations

import contextlib
import threading
import weakref
from typing import Iterator

import tensorflow as tf

from npu_shim._tensorflow import tf_recording
from npu_shim._tensorflow.types import Function, Operation, QueueRunner, Result, Session, Supervisor
from npu_shim.rehearsal.recording import methods


def order_queues() -> None:
    """Put the threads of all QueueRunners of this process in order."""
    orders: weakref.WeakKeyDictionary[QueueRunner, weakref.WeakKeyDictionary[Session, Turns]] = (
        weakref.WeakKeyDictionary()
    )
    current = threading.local()

    def init(original: Function, runner: QueueRunner, *args: object, **kwargs: object) -> None:
        original(runner, *args, **kwargs)
        tf_recording.drop_duplicate_enqueue_ops(runner)
        tf_recording.enlarge_shuffle_queue(runner)

    def run(
        original: Function, runner: QueueRunner, sess: Session, op: Operation, *args: object, **kwargs: object
    ) -> Result:
        ops = runner.enqueue_ops
        turns = orders.setdefault(runner, weakref.WeakKeyDictionary()).setdefault(sess, Turns(len(ops)))
        current.turns, current.place = turns, ops.index(op)
        try:
            return original(runner, sess, op, *args, **kwargs)
        finally:
            turns.leave(current.place)

    def in_turn(original: Function, session: Session, *args: object, **kwargs: object) -> Result:
        turns = getattr(current, "turns", None)
        with contextlib.nullcontext() if turns is None else turns.wait_for_turn(current.place):
            return original(session, *args, **kwargs)

    def make_callable(original: Function, session: Session, *args: object, **kwargs: object) -> Result:
        run_callable = original(session, *args, **kwargs)
        if getattr(current, "turns", None) is None:
            return run_callable
        return lambda *a, **k: in_turn(lambda _: run_callable(*a, **k), session)

    def init_supervisor(original: Function, supervisor: Supervisor, *args: object, **kwargs: object) -> None:
        original(supervisor, *args, **kwargs)
        tf_recording.disable_timed_summaries(supervisor)

    methods.wrap_methods(tf.compat.v1.train.Supervisor, ("__init__",), init_supervisor)
    methods.wrap_methods(tf.compat.v1.train.QueueRunner, ("__init__",), init)
    methods.wrap_methods(tf.compat.v1.train.QueueRunner, ("_run",), run)
    methods.wrap_methods(tf_recording.BaseSession, ("run",), in_turn)
    methods.wrap_methods(tf_recording.BaseSession, ("make_callable",), make_callable)


class Turns:
    """The order in which threads run.

    Args:
        count: number of threads. Their places are from 0 on.
    """

    def __init__(self, count: int) -> None:
        self._order = list(range(count))
        self._changed = threading.Condition()

    @contextlib.contextmanager
    def wait_for_turn(self, place: int) -> Iterator[None]:
        """Wait for the turn of a thread, and pass it on at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._order[0] == place)
        try:
            yield
        finally:
            with self._changed:
                self._order.append(self._order.pop(0))
                self._changed.notify_all()

    def leave(self, place: int) -> None:
        """End the turns of a thread."""
        with self._changed:
            self._order.remove(place)
            self._changed.notify_all()
