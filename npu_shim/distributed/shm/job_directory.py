"""The job directory: where the ranks of a job on one host meet, what it contains, and its removal."""

from __future__ import annotations

import glob
import hashlib
import os
import tempfile
import time

from npu_shim.distributed.collectives.errors import RankTaken
from npu_shim.distributed.shm import rank_lock
from npu_shim.distributed.shm.rank_lock import RankLock

_RETRY_FOR_S = 0.05


def job_directory_path(job: str, base: str | None = None) -> str:
    """Return the path of the directory in which the ranks of a job meet."""
    if base is None:
        base = "/dev/shm" if os.access("/dev/shm", os.W_OK | os.X_OK) else tempfile.gettempdir()
    digest = hashlib.blake2b(job.encode("utf-8"), digest_size=8).hexdigest()
    return os.path.join(base, f"npu_shim-{os.getuid()}-{digest}")


def lock_path(directory: str, rank: int) -> str:
    """Return the path of the lock file of a world rank."""
    return os.path.join(directory, f"rank_{rank}")


def segment_path(directory: str, name: str) -> str:
    """Return the path of a segment during the rendezvous; clean_up_job_directory() recognizes such names."""
    return os.path.join(directory, f"s-{name}")


def clean_up_job_directory(directory: str) -> None:
    """Remove what dead ranks left in a job directory, and the directory, if no rank of the job is alive.

    It holds the lock of rank 0 meanwhile, so that no new run of the job can start.
    """
    lock_files = sorted({lock_path(directory, 0)} | set(glob.glob(os.path.join(glob.escape(directory), "rank_*"))))
    acquired: dict[str, int] = {}
    try:
        for path in lock_files:
            fd = _acquire_with_retries(path, _RETRY_FOR_S if path == lock_files[0] else 0)
            if fd is None:
                return
            acquired[path] = fd
        for path in glob.glob(os.path.join(glob.escape(directory), "s-*")):
            remove_if_exists(path)
    finally:
        for path, fd in acquired.items():
            rank_lock.release_acquired(
                fd, path, deletes_file=len(acquired) == len(lock_files) or os.fstat(fd).st_size == 0
            )
    try:
        os.rmdir(directory)
    except OSError:  # a rank has joined again, or cleans up as well
        return


def _acquire_with_retries(path: str, retry_for_s: float) -> int | None:
    """Acquire a stale lock with retries: a rank that leaves at the same time may hold it to clean up as well."""
    give_up = time.monotonic() + retry_for_s
    while True:
        fd = rank_lock.try_acquire_stale(path)
        if fd is not None or time.monotonic() >= give_up or not os.path.isdir(os.path.dirname(path)):
            return fd
        time.sleep(0.002)


def clean_up_other_jobs(directory: str) -> None:
    """Clean up the directories of this user's finished jobs."""
    for other in glob.glob(os.path.join(os.path.dirname(directory), f"npu_shim-{os.getuid()}-*")):
        if other != directory:
            clean_up_job_directory(other)


def lock_rank(directory: str, rank: int, job: str, shown_rank: int) -> RankLock:
    """Acquire the lock of this rank.

    Args:
        directory: the job directory.
        rank: the rank of this process on this host.
        job: name of the job in the message.
        shown_rank: the number of the rank in the message.
    Raises:
        RankTaken: another process is this rank of this job.
    """
    try:
        return RankLock(lock_path(directory, rank))
    except RankTaken as error:
        raise RankTaken(
            f"rank {shown_rank} of job {job!r} is already running ({error}). End it, or set another JOB_ID for this "
            "job on every rank."
        ) from None


def remove_if_exists(path: str) -> None:
    """Remove a file that may not exist."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        return
