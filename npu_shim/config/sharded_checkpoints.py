"""Sharded checkpoints on an NPU, which the vendor's graph passes cannot write in one run.

A sharded saver, TensorFlow's default in MonitoredTrainingSession, packs the names of its shards in the run that reads
the variables. If the passes place the packing on the NPU, they leave the variables on the host, where they have no
values. Then two runs write the checkpoint: the first writes the shards, the second is fed their names and merges them.
Neither the graph nor the files change.
"""

from __future__ import annotations

import functools
from typing import Callable
from weakref import WeakKeyDictionary

import numpy as np

from npu_shim._tensorflow import tf_api, tf_session
from npu_shim._tensorflow.types import FeedDict, Fetches, Graph, Operation, Saver, Session, Structure

tf = tf_api.tf


def wrap_save_in_two_runs(save: Callable[..., str | None]) -> Callable[..., str | None]:
    """Return a ``tf.compat.v1.train.Saver.save`` that writes sharded checkpoints in two runs if one fails.

    Args:
        save: the original method.
    """
    fails: WeakKeyDictionary[Session, bool] = WeakKeyDictionary()  # the sessions in which one run failed

    @functools.wraps(save)
    def wrapped(self: Saver, sess: Session, *args: object, **kwargs: object) -> str | None:
        if getattr(self.saver_def, "sharded", False) and isinstance(sess, tf_session.SessionInterface):
            merge = _shard_merging_op(sess.graph, self.saver_def.save_tensor_name)
            if merge is not None:
                sess = _TwoRuns(sess, self.saver_def.save_tensor_name, merge, fails)
        return save(self, sess, *args, **kwargs)

    return wrapped


class _TwoRuns(tf_session.SessionInterface):
    """A session that runs a saver's op, in two runs if one fails.

    Args:
        session: the session to use.
        saving: name of the tensor that the saver runs.
        merge: the op that merges the shards.
        failing_sessions: remembers the sessions in which one run failed.
    """

    def __init__(
        self, session: Session, saving: str, merge: Operation, failing_sessions: WeakKeyDictionary[Session, bool]
    ) -> None:
        self._session, self._saving, self._merge, self._fails = session, saving, merge, failing_sessions

    @property
    def graph(self) -> Graph:
        """The graph of the session."""
        return self._session.graph

    def run(self, fetches: Fetches, feed_dict: FeedDict | None = None, *args: object, **kwargs: object) -> Structure:
        """Run as the session does; if the passes fail on the saver's op, write the shards and then merge them."""
        if fetches != self._saving:
            return self._session.run(fetches, feed_dict, *args, **kwargs)
        if not self._fails.get(self._session):
            try:
                return self._session.run(fetches, feed_dict, *args, **kwargs)
            except tf.errors.FailedPreconditionError:
                tf_api.logging.info(
                    "npu_shim: the vendor's graph passes fail on a sharded checkpoint, which is written in two runs "
                    "instead. tf.compat.v1.train.Saver(sharded=False) needs one run."
                )
        names, prefix = self._merge.inputs
        written = [*names.op.control_inputs, *self._merge.control_inputs]
        shards, path, _ = self._session.run([list(names.op.inputs), prefix, written], feed_dict)
        self._session.run(self._merge, {**(feed_dict or {}), names: shards})
        self._fails[self._session] = True
        return np.asarray(path).item()


def _shard_merging_op(graph: Graph, saving: str) -> Operation | None:
    """Return the op that merges the shards, None if it does not read their names from one packing op."""
    for op in graph.get_tensor_by_name(saving).op.control_inputs:
        if op.type == "MergeV2Checkpoints" and op.inputs[0].op.type == "Pack":
            return op
    return None
