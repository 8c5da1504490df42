"""Ranks of one host as processes that a benchmark forks, each with the variables that a launch script sets."""

from __future__ import annotations

import multiprocessing
import os
import queue
import sys
from typing import Any, Callable

_ANSWER_SECONDS = 900.0

# Of a rank, the number of all, a barrier of the operating system (whoever waits there takes no processor), and what
# more was given: its answer, of which that of rank 0 counts.
Work = Callable[..., Any]


def run_ranks(size: int, work: Work, *given: Any) -> Any:
    """Runs work(rank, size, barrier, *given) in so many processes.

    Returns:
        What rank 0 returned.
    Raises:
        RuntimeError: a rank failed.
    """
    context = multiprocessing.get_context("fork")
    answers, barrier = context.Queue(), context.Barrier(size)
    job = f"benchmark-{os.getpid()}-{size}"

    def rank_process(rank: int) -> None:
        os.environ.update(
            RANK_ID=str(rank), RANK_SIZE=str(size), JOB_ID=job, NPU_SHIM_FALLBACK="silent", TF_CPP_MIN_LOG_LEVEL="3"
        )
        answer = work(rank, size, barrier, *given)
        if rank == 0:
            answers.put(answer)

    processes = [context.Process(target=rank_process, args=(rank,)) for rank in range(size)]
    for process in processes:
        process.start()
    waited = 0.0
    while True:
        try:
            found = answers.get(timeout=1.0)
            break
        except queue.Empty:
            waited += 1.0
            failed = [rank for rank, process in enumerate(processes) if process.exitcode]
            if failed or waited > _ANSWER_SECONDS:
                for process in processes:
                    process.kill()
                raise RuntimeError(f"rank {failed} failed" if failed else "no answer") from None
    for process in processes:
        process.join()
    sys.stdout.flush()
    return found
