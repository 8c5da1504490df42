"""Checkpoints and event files of an Estimator that trains on several ranks."""

from __future__ import annotations

import contextlib
import os
from typing import Iterator

import numpy as np

from npu_shim._tensorflow import tf_api, tf_estimator
from npu_shim._tensorflow.types import Session, SessionRunArgs, SessionRunContext, SessionRunValues
from npu_shim.distributed.ranks import get_rank_id
from npu_shim.distributed.world import world_size

tf = tf_api.tf


class SharedFolder:
    """Find out which ranks share a folder. Each rank writes a mark there and looks for the marks of the others.

    The path alone is not enough: hosts can use one path for different folders, and different paths for one folder.

    Args:
        path: of the folder.
    """

    def __init__(self, path: str) -> None:
        from npu_shim.distributed import hccl_ops

        self._path = path
        self._rank = get_rank_id()
        seed = 0 if self._rank else int(np.random.RandomState().randint(1, 1 << 31))
        self._flag = tf_api.v1.placeholder(tf.int32, [1])
        self._all_flags = hccl_ops.allgather(self._flag, world_size())
        self._token = hccl_ops.broadcast([tf.constant([seed], tf.int32)], 0)[0]

    def gather_flags(self, session: Session, flag: int = 0) -> np.ndarray:
        """Wait for all ranks.

        Returns:
            int32 [world size], the flag of each rank.
        """
        return session.run(self._all_flags, {self._flag: [flag]})

    def find_first_rank(self, session: Session) -> int:
        """Return the lowest rank that shares the folder with this one. All ranks must call this."""
        token = int(session.run(self._token)[0])
        tf.io.gfile.makedirs(self._path)
        mark = os.path.join(self._path, f".npu_shim_{token}_rank_{{}}")
        with tf.io.gfile.GFile(mark.format(self._rank), "w") as file:
            file.write("Ranks look for others that share this folder. This file is removed at once.\n")
        self.gather_flags(session)
        first = next(rank for rank in range(world_size()) if tf.io.gfile.exists(mark.format(rank)))
        self.gather_flags(session)
        tf.io.gfile.remove(mark.format(self._rank))
        return first


class RankCheckpointSaverHook(tf_estimator.CheckpointSaverHook):
    """A CheckpointSaverHook for several ranks: of the ranks that share a folder, only the first one writes.

    The other ranks wait until it has written, so that every rank can continue from the checkpoint. Their listeners,
    which evaluate, run at the same steps, and training ends on all ranks with the last checkpoint complete. With
    ``save_secs`` ranks would save at different steps. Then they wait only at the start and at the end, and evaluate
    at the end.

    Ranks with different intervals, for example with ``save_steps`` on one rank only, do not wait for each other.

    Args:
        checkpoint_dir: the folder.
        save_secs, save_steps: as for CheckpointSaverHook; both 0 or None to save nothing.
        **kwargs: as for CheckpointSaverHook.
    """

    def __init__(
        self, checkpoint_dir: str, save_secs: int | None = None, save_steps: int | None = None, **kwargs: object
    ) -> None:
        self._saves = bool(save_secs or save_steps)
        self._interval = -(save_secs or 0) if save_secs else save_steps or 0
        super().__init__(
            checkpoint_dir, save_secs=save_secs or None, save_steps=save_steps or (None if save_secs else 1), **kwargs
        )
        self.first_rank = get_rank_id()
        self._waits = False  # True if ranks share folders, so that they wait for each other
        self._together = False  # True if all ranks take part in the current save

    def begin(self) -> None:
        """Create the ops with which ranks wait for each other."""
        super().begin()
        self._folder = SharedFolder(self.folder)

    def after_create_session(self, session: Session, coord: object) -> None:
        """Find out which rank writes, and save the first checkpoint."""
        intervals = self._folder.gather_flags(session, self._interval)
        if self._saves and len(set(intervals.tolist())) == 1:
            self.first_rank = self._folder.find_first_rank(session)
            self._waits = bool(self._folder.gather_flags(session, int(not self.is_writer)).any())
        if not self._saves:
            return
        self._together = self._waits
        if self.is_writer:
            super().after_create_session(session, coord)
        else:
            step = self.current_step(session)
            self.save(session, step)
            self.start_interval(step)
        self._together = self._waits and self._interval > 0

    @property
    def is_writer(self) -> bool:
        """True if this rank writes checkpoints."""
        return self.first_rank == get_rank_id()

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs | None:
        """As CheckpointSaverHook."""
        return super().before_run(run_context) if self._saves else None

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """As CheckpointSaverHook, if this rank saves during training."""
        if self._saves and (self.is_writer or self._interval > 0):
            super().after_run(run_context, run_values)

    def end(self, session: Session) -> None:
        """Save the last step, wait until it is written, and then call the listeners."""
        if not self._saves:
            return
        if self._together or not self._waits:
            super().end(session)
            return
        step = self.current_step(session)
        new = step != self.last_saved_step()
        if new and self.is_writer:
            self.write(session, step)
        self._folder.gather_flags(session)
        for listener in self.listeners:
            if new or not self.is_writer:
                listener.after_save(session, step)
            listener.end(session, step)

    def save(self, session: Session, step: int) -> bool:
        """Save a checkpoint together with the other ranks. Return True if a listener asks to stop."""
        for listener in self.listeners:
            listener.before_save(session, step)
        if self.is_writer:
            self.write(session, step)
        if self._together:
            self._folder.gather_flags(session)
        stops = [listener.after_save(session, step) for listener in self.listeners]
        if any(stops):
            tf_api.logging.info("npu_shim: a checkpoint listener stops training at step %d.", step)
            return True
        return False


@contextlib.contextmanager
def redirect_event_files(*folders: str) -> Iterator[None]:
    """Inside, every rank but the first writes its event files to ``rank_N`` below the folders.

    Two ranks that start in the same second would write to one file, and so would one rank that starts twice. So
    TensorFlow's cache keeps the writer of each rank.
    """
    rank = get_rank_id() if world_size() > 1 else 0
    before = {folder: tf_estimator.cached_event_writer(folder) for folder in folders if rank}
    for folder in before:
        own = os.path.join(folder, f"rank_{rank}")
        writer = tf_estimator.cached_event_writer(own)
        if writer is None:
            with tf_api.v1.Graph().as_default():  # in eager mode, a writer needs a graph
                writer = tf_api.v1.summary.FileWriter(own)
            tf_estimator.set_cached_event_writer(own, writer)
        writer.reopen()
        tf_estimator.set_cached_event_writer(folder, writer)
    try:
        yield
    finally:
        for folder, previous in before.items():
            writer = tf_estimator.cached_event_writer(folder)
            if writer is not None:
                writer.flush()
            tf_estimator.set_cached_event_writer(folder, previous)


def rank_export_folder(folder: str) -> str:
    """Return the folder for exports of a rank that does not write checkpoints.

    The names of exports are seconds, so those of two ranks could collide.
    """
    return os.path.join(folder, f"rank_{get_rank_id()}")
