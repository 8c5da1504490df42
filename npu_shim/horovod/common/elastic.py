"""Elastic training on a fixed world: states that are committed, and restored after a restart of the job.

Horovod goes on with the ranks that are left. Here a lost rank ends the job, and the launcher starts it again
(``npu-shim launch --max-restarts N``); the training function then begins with the last commit of rank 0.
"""

from __future__ import annotations

import functools
import os
import pickle
import tempfile
from typing import Callable, Dict, Sequence

from npu_shim._host import host_env
from npu_shim._tensorflow.types import Function, Result
from npu_shim.horovod.common.exceptions import HorovodInternalError, HostsUpdatedInterrupt

SavedState = Dict[str, Result]  # "objects", and "values" of variables


class State:
    """State of a training: save() keeps it in memory, and restore() takes it back.

    Args:
        bcast_object: a function that returns rank 0's object on all ranks.
        get_rank: a function that returns the rank of this process.
    """

    def __init__(self, bcast_object: Callable[[Result], Result], get_rank: Callable[[], int]) -> None:
        self._bcast_object, self._rank = bcast_object, get_rank
        self._reset_callbacks: list[Callable[[], None]] = []

    def register_reset_callbacks(self, callbacks: Sequence[Callable[[], None]]) -> None:
        """Add functions that on_reset() calls."""
        self._reset_callbacks.extend(callbacks)

    def on_reset(self) -> None:
        """Call reset() and the registered functions."""
        self.reset()
        for callback in self._reset_callbacks:
            callback()

    def on_hosts_updated(self, timestamp: float, update_res: int) -> None:
        """Do nothing: the hosts of a job do not change."""

    def commit(self) -> None:
        """Save the state."""
        self.save()
        self.check_host_updates()

    def check_host_updates(self) -> None:
        """Do nothing: the hosts of a job do not change."""

    def save(self) -> None:
        """Keep the state in memory."""
        raise NotImplementedError

    def restore(self) -> None:
        """Take back the state that was saved last."""
        raise NotImplementedError

    def sync(self) -> None:
        """Give all ranks the state of rank 0."""
        raise NotImplementedError

    def reset(self) -> None:
        """Prepare the state for a new start of training."""

    def saved(self) -> SavedState:
        """Return what save() has kept, as an object that pickle can write."""
        raise NotImplementedError

    def load(self, saved: SavedState) -> None:
        """Take over what another process has kept."""
        raise NotImplementedError


class ObjectState(State):
    """Named Python objects, which are attributes of the state.

    Args:
        bcast_object: as for State.
        get_rank: as for State.
        **kwargs: the objects by name.
    """

    def __init__(self, bcast_object: Callable[[Result], Result], get_rank: Callable[[], int], **kwargs: object) -> None:
        super().__init__(bcast_object, get_rank)
        self._saved_state = kwargs
        self._set_attributes()

    def save(self) -> None:
        """Keep the objects, and on rank 0 write them to a file that outlives the process."""
        self._saved_state = {name: getattr(self, name) for name in self._saved_state}
        path = commit_path()
        if path is not None and self._rank() == 0:
            _write_saved_state(path, self.saved())

    def restore(self) -> None:
        """Take back the objects that were saved last."""
        self._set_attributes()

    def sync(self) -> None:
        """Give all ranks the objects of rank 0."""
        if self._saved_state:
            self._saved_state = self._bcast_object(self._saved_state)
            self._set_attributes()

    def saved(self) -> SavedState:
        """Return the objects by name."""
        return {"objects": self._saved_state}

    def load(self, saved: SavedState) -> None:
        """Take over the objects of another process."""
        self._saved_state = saved["objects"]
        self._set_attributes()

    def _set_attributes(self) -> None:
        for name, value in self._saved_state.items():
            setattr(self, name, value)


def commit_path() -> str | None:
    """Return the file for commits; None if the launcher does not restart the job."""
    folder = host_env.read_environment().commit_dir
    return None if folder is None else os.path.join(folder, "commit.pickle")


def run_fn(func: Function, reset: Callable[[], None]) -> Function:
    """Return a training function that begins with the state of rank 0, after a restart with the last commit.

    Args:
        func: called with a State and more arguments.
        reset: called before training begins anew because the function raised HorovodInternalError.
    """

    @functools.wraps(func)
    def wrapper(state: State, *args: object, **kwargs: object) -> Result:
        path, skip_sync = commit_path(), False
        if path is not None and state._rank() == 0 and os.path.exists(path):
            with open(path, "rb") as file:
                state.load(pickle.load(file))
        while True:
            try:
                if not skip_sync:
                    state.sync()
                return func(state, *args, **kwargs)
            except HorovodInternalError:
                state.restore()
                skip_sync = False
            except HostsUpdatedInterrupt as interrupt:
                skip_sync = interrupt.skip_sync
            reset()
            state.on_reset()

    return wrapper


def _write_saved_state(path: str, saved: SavedState) -> None:
    """Replace the file, so that it is never half written."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=os.path.dirname(path))
    try:
        with os.fdopen(handle, "wb") as file:
            pickle.dump(saved, file, protocol=4)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
