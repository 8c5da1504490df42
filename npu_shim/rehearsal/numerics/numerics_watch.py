"""Watch the numbers of a run, from one call at the top of a script."""

from __future__ import annotations

import atexit
import itertools
import os
import sys
from typing import Callable

import tensorflow as tf

from npu_shim._host.messages import report
from npu_shim._tensorflow import tf_op_creation
from npu_shim._tensorflow.types import Result
from npu_shim.distributed.ranks import world
from npu_shim.rehearsal.event_file import EventFile
from npu_shim.rehearsal.numerics import numerics_page
from npu_shim.rehearsal.numerics.history import BadOp, History, Step, Update
from npu_shim.rehearsal.numerics.ops import OpWatch
from npu_shim.rehearsal.numerics.update_values import OptimizerWatch
from npu_shim.rehearsal.recording.functions import disable_xla

PAGE = "numerics.html"


class NumericsWatch:
    """A running watch; a context manager. watch_numerics() makes it.

    Args:
        folder, every: of watch_numerics().
        on_step: called with each step.

    Attributes:
        folder: of the event file and the page.
        history: all that was noted.
    """

    def __init__(self, folder: str, every: int, on_step: Callable[[Step], None] | None = None) -> None:
        if not isinstance(every, int) or every < 1:
            raise ValueError(f"every={every!r} is not allowed: it must be an integer of at least 1.")
        self.folder = world().rank_folder(folder)
        self._every = every
        self._noted = on_step
        self.history = History()
        self._is_open = True
        os.makedirs(self.folder, exist_ok=True)
        self._events = EventFile(self.folder, ".numerics")
        order = itertools.count()
        self._ops = OpWatch(self.history, lambda: self._is_open, order)
        self._optimizers = OptimizerWatch(self._note_update, lambda: self._is_open, order)

    def start(self) -> NumericsWatch:
        """Watch what is created from now on."""
        disable_xla()
        tf_op_creation.add_hook(self._ops)
        self._optimizers.install()
        atexit.register(self.close)
        return self

    @property
    def first(self) -> BadOp | None:
        """The first op with Inf or NaN in the first step whose loss or gradients have them."""
        return None if self.history.first is None else self.history.first[1]

    @property
    def steps(self) -> list[Step]:
        """The steps so far; of a long run every n-th one."""
        return list(self.history.steps)

    @property
    def problems(self) -> list[str]:
        """A sentence for each problem; an empty list for a run without one."""
        return list(self.history.problem_sentences())

    def close(self) -> None:
        """End the watch, write the page and report problems on standard error. A second call does nothing."""
        if not self._is_open:
            return
        self._is_open = False
        atexit.unregister(self.close)
        tf_op_creation.remove_hook(self._ops)
        self.history.finish()
        self._events.close()
        path = os.path.join(self.folder, PAGE)
        with open(path, "w", encoding="utf-8") as file:
            file.write(numerics_page.to_html(self.history, " ".join(sys.argv), tf.__version__))
        for problem in self.problems:
            report(problem)
        report(f"wrote {path}")

    def __enter__(self) -> NumericsWatch:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _note_update(self, update: Update) -> None:
        before = self.history.first
        step = self.history.note_update(update)
        self._events.write_scalars(step.tensorboard_scalars(step.step % self._every == 0 or step.step == 1), step.step)
        if self._noted is not None:
            self._noted(step)
        first: Result = self.history.first
        if before is None and first is not None:
            report(f"step {first[0]}: the first op with Inf or NaN is {first[1]}.")


def watch_numerics(folder: str = "numerics", every: int = 1) -> NumericsWatch:
    """Watch the numbers of this process: ops with Inf or NaN, the loss scale, gradient norms.

    Call it before the script makes its graph or calls its tf.functions. The watch ends with the process, with close(),
    or at the end of a ``with`` block. It adds ops, but changes no number and no seed. XLA is off, because it compiles
    no op that looks at values.

    Args:
        folder: receives an event file for TensorBoard and the page ``numerics.html``; a rank of several writes to
            ``rank_N`` in it.
        every: write the norm of each gradient at every N-th step.
    Returns:
        The watch: ``first`` is the first op with Inf or NaN, ``steps`` has the history, ``problems`` has sentences.
    Raises:
        ValueError: every is less than 1.

    Example::

        import npu_shim.rehearsal

        with npu_shim.rehearsal.watch_numerics("numerics") as watch:
            train()
        assert not watch.problems, watch.problems
    """
    return NumericsWatch(folder, every).start()
