"""Checkpoints and event files of an Estimator that trains on several ranks."""

from __future__ import annotations

import contextlib
import os
from typing import Any, Iterator

import numpy as np

from npu_shim import _tf
from npu_shim.distributed.ranks import get_rank_id
from npu_shim.distributed.world import world_size

tf = _tf.tf
_train: Any = _tf.v1.train


class Folder:
    """Finds out which of the ranks share a folder: they leave a mark there, and look for those of the others.

    Paths alone would not tell: hosts may have the same path for folders of their own, and different ones for one folder.

    Args:
        path: of the folder.
    """

    def __init__(self, path: str) -> None:
        from npu_shim.distributed import hccl_ops

        self._path = path
        self._rank = get_rank_id()
        self._mine = tf.constant([0 if self._rank else int(np.random.RandomState().randint(1, 1 << 31))], tf.int32)
        self._flag = _tf.v1.placeholder(tf.int32, [1])
        self._all = hccl_ops.allgather(self._flag, world_size())
        self._token = hccl_ops.broadcast([self._mine], 0)[0]

    def meet(self, session: Any, flag: int = 0) -> Any:
        """Waits for all ranks.

        Returns:
            int32 [world size], the flags that they came with.
        """
        return session.run(self._all, {self._flag: [flag]})

    def first_rank(self, session: Any) -> int:
        """The first of the ranks that share the folder with this one, perhaps itself. All ranks have to ask."""
        token = int(session.run(self._token)[0])
        tf.io.gfile.makedirs(self._path)
        mark = os.path.join(self._path, f".npu_shim_{token}_rank_{{}}")
        with tf.io.gfile.GFile(mark.format(self._rank), "w") as file:
            file.write("Ranks look who shares this folder; it goes in a moment.\n")
        self.meet(session)
        first = next(rank for rank in range(world_size()) if tf.io.gfile.exists(mark.format(rank)))
        self.meet(session)
        tf.io.gfile.remove(mark.format(self._rank))
        return first


class RankCheckpointSaverHook(_train.CheckpointSaverHook):
    """A CheckpointSaverHook of which, where ranks share a folder, only that of the first one writes.

    The others wait until it has, so that all of them can go on from the checkpoint: their listeners, which evaluate, run
    at the same steps, and training ends on all ranks with the last checkpoint complete. With ``save_secs`` ranks would
    save at different steps; there the others wait at the start and at the end only, and evaluate at the end.

    Ranks that save at different intervals, as with ``save_steps`` on one of them only, do not wait for each other.

    Args:
        checkpoint_dir: the folder.
        save_secs, save_steps: as for CheckpointSaverHook; both 0 or None to save nothing.
        **kwargs: as for CheckpointSaverHook.
    """

    _listeners: list[Any]

    def __init__(
        self, checkpoint_dir: str, save_secs: int | None = None, save_steps: int | None = None, **kwargs: Any
    ) -> None:
        self._saves = bool(save_secs or save_steps)
        self._interval = -(save_secs or 0) if save_secs else save_steps or 0
        super().__init__(
            checkpoint_dir, save_secs=save_secs or None, save_steps=save_steps or (None if save_secs else 1), **kwargs
        )
        self.first_rank = get_rank_id()
        self._waits = False  # whether ranks share folders, so that they wait for each other
        self._together = False  # whether all of them come to the save that is being made

    def begin(self) -> None:
        """Makes the ops by which ranks wait for each other."""
        super().begin()
        self._folder = Folder(self._checkpoint_dir)

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Finds out who writes, and saves the first checkpoint."""
        intervals = self._folder.meet(session, self._interval)
        if self._saves and len(set(intervals.tolist())) == 1:
            self.first_rank = self._folder.first_rank(session)
            self._waits = bool(self._folder.meet(session, int(not self.writes)).any())
        if not self._saves:
            return
        self._together = self._waits
        if self.writes:
            super().after_create_session(session, coord)
        else:
            step = session.run(self._global_step_tensor)
            self._save(session, step)
            self._timer.update_last_triggered_step(step)
        self._together = self._waits and self._interval > 0

    @property
    def writes(self) -> bool:
        """Whether this rank writes checkpoints."""
        return self.first_rank == get_rank_id()

    def before_run(self, run_context: Any) -> Any:
        """As CheckpointSaverHook."""
        return super().before_run(run_context) if self._saves else None

    def after_run(self, run_context: Any, run_values: Any) -> None:
        """As CheckpointSaverHook, where this rank saves during training."""
        if self._saves and (self.writes or self._interval > 0):
            super().after_run(run_context, run_values)

    def end(self, session: Any) -> None:
        """Saves the last step, waits until it is there, and then tells the listeners."""
        if not self._saves:
            return
        if self._together or not self._waits:
            super().end(session)
            return
        step = session.run(self._global_step_tensor)
        new = step != self._timer.last_triggered_step()
        if new and self.writes:
            self._write(session, step)
        self._folder.meet(session)
        for listener in self._listeners:
            if new or not self.writes:
                listener.after_save(session, step)
            listener.end(session, step)

    def _save(self, session: Any, step: int) -> Any:
        for listener in self._listeners:
            listener.before_save(session, step)
        if self.writes:
            self._write(session, step)
        if self._together:
            self._folder.meet(session)
        asked = [listener.after_save(session, step) for listener in self._listeners]
        if any(asked):
            _tf.logging.info("npu_shim: a listener of checkpoints asks to stop at step %d.", step)
            return True
        return False

    def _write(self, session: Any, step: int) -> None:
        listeners, self._listeners = self._listeners, []
        try:
            super()._save(session, step)
        finally:
            self._listeners = listeners


_own_writers: dict[str, Any] = {}  # by folder, of a rank other than the first


@contextlib.contextmanager
def own_event_files(*folders: str) -> Iterator[None]:
    """Inside, the event files that a rank other than the first writes go to ``rank_N`` below the folders.

    Two ranks that begin in the same second would write into one file, and so would one rank that begins twice: its
    writers are kept.
    """
    cache = _tf.v1.summary.FileWriterCache
    rank = get_rank_id() if world_size() > 1 else 0
    before = {folder: cache._cache.get(folder) for folder in folders if rank}
    for folder in before:
        if folder not in _own_writers:
            with _tf.v1.Graph().as_default():  # a script in eager mode may not make one outside
                _own_writers[folder] = _tf.v1.summary.FileWriter(os.path.join(folder, f"rank_{rank}"))
        _own_writers[folder].reopen()
        cache._cache[folder] = _own_writers[folder]
    try:
        yield
    finally:
        for folder, writer in before.items():
            _own_writers[folder].flush()
            cache._cache.pop(folder, None)
            if writer is not None:
                cache._cache[folder] = writer


def own_exports(folder: str) -> str:
    """Where a rank exports which is not the one that writes: the names of exports are seconds, and would meet."""
    return os.path.join(folder, f"rank_{get_rank_id()}")
