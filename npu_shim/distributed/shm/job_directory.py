"""The folder in which the ranks of a job meet: where it is, what is in it, and how it goes away."""

from __future__ import annotations

import glob
import hashlib
import os
import tempfile
import time

from npu_shim.distributed.collectives.errors import RankTaken
from npu_shim.distributed.shm import rank_lock as locks
from npu_shim.distributed.shm.rank_lock import RankLock

_PATIENCE_S = 0.05


def job_folder(job: str, base: str | None = None) -> str:
    """The folder in which the ranks of a job meet."""
    if base is None:
        base = "/dev/shm" if os.access("/dev/shm", os.W_OK | os.X_OK) else tempfile.gettempdir()
    told = hashlib.blake2b(job.encode("utf-8"), digest_size=8).hexdigest()
    return os.path.join(base, f"npu_shim-{os.getuid()}-{told}")


def lock_path(folder: str, rank: int) -> str:
    """The lock file of a rank of the world."""
    return os.path.join(folder, f"rank_{rank}")


def segment_path(folder: str, name: str) -> str:
    """Where a segment has its name while ranks gather; tidy() knows such names."""
    return os.path.join(folder, f"s-{name}")


def tidy(folder: str) -> None:
    """Removes what dead ranks left in a job's folder, and the folder, when no rank of the job lives.

    It holds the lock of rank 0 meanwhile, without whom a new run does not begin.
    """
    found = sorted({lock_path(folder, 0)} | set(glob.glob(os.path.join(glob.escape(folder), "rank_*"))))
    taken: dict[str, int] = {}
    try:
        for path in found:
            fd = _take(path, _PATIENCE_S if path == found[0] else 0)
            if fd is None:
                return
            taken[path] = fd
        for path in glob.glob(os.path.join(glob.escape(folder), "s-*")):
            unlink(path)
    finally:
        for path, fd in taken.items():
            locks.drop_stale(fd, path, remove=len(taken) == len(found) or os.fstat(fd).st_size == 0)
    try:
        os.rmdir(folder)
    except OSError:  # somebody has come again, or tidies it up as well
        return


def _take(path: str, patience_s: float) -> int | None:
    """Tries again for a while: of ranks that leave together, one may only be looking whether it is the last."""
    give_up = time.monotonic() + patience_s
    while True:
        fd = locks.take_stale(path)
        if fd is not None or time.monotonic() >= give_up or not os.path.isdir(os.path.dirname(path)):
            return fd
        time.sleep(0.002)


def tidy_other_jobs(folder: str) -> None:
    """Tidies the folders of jobs of this user that are over."""
    for other in glob.glob(os.path.join(os.path.dirname(folder), f"npu_shim-{os.getuid()}-*")):
        if other != folder:
            tidy(other)


def lock_rank(folder: str, rank: int, job: str) -> RankLock:
    """Takes this rank's lock.

    Raises:
        RankTaken: another process is this rank of this job.
    """
    try:
        return RankLock(lock_path(folder, rank))
    except RankTaken as error:
        raise RankTaken(
            f"rank {rank} of job {job!r} runs already ({error}): end it, or set another JOB_ID for this "
            "job on every rank."
        ) from None


def unlink(path: str) -> None:
    """Removes a file that may be gone already."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        return
