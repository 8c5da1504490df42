"""Ranks, start and end, and what this Horovod is built with."""

from __future__ import annotations

import warnings
from typing import Callable, Iterable

from npu_shim._host import host_device
from npu_shim.distributed.world import World, world
from npu_shim.horovod.common import process_sets as sets
from npu_shim.horovod.common.process_sets import ProcessSet

AVERAGE, SUM, ADASUM, MIN, MAX, PRODUCT = range(6)


def _constant_answer(value: bool, reason: str) -> Callable[[HorovodBasics], bool]:
    """Return a method that always returns a value, documented with the reason."""

    def answer(self: HorovodBasics) -> bool:
        return value

    answer.__doc__ = f"Return {value}: {reason}."
    return answer


class HorovodBasics:
    """The functions of Horovod that are the same for every framework."""

    Average, Sum, Adasum, Min, Max, Product = AVERAGE, SUM, ADASUM, MIN, MAX, PRODUCT

    def __init__(self) -> None:
        self._world: World | None = None

    def init(self, comm: Iterable[int] | None = None, process_sets: Iterable[ProcessSet] | str | None = None) -> None:
        """Find the ranks of this job. Other functions need this call; a second call does nothing.

        Args:
            comm: None, or the ranks of the whole job in order. Use process_sets for a part of them.
            process_sets: process sets to add; or "dynamic", as sets may always be added later.
        Raises:
            ValueError: comm has other ranks, or the variables of the job contradict each other.
            RuntimeError: the driver shows a card that no package can use, and NPU_SHIM_FALLBACK does not allow the CPU.
        """
        if self._world is not None:
            return
        host_device.is_npu()  # raises the error about a card that would stay unused
        here = world()
        if comm and list(comm) != list(range(here.size)):
            raise ValueError(
                f"hvd.init(comm={comm!r}) is not allowed: this job has the ranks 0 to {here.size - 1}, and all of them "
                "take part. Pass process_sets=[hvd.ProcessSet([...])], and that set to each collective."
            )
        if isinstance(process_sets, str) and process_sets.lower() != "dynamic":
            raise ValueError(f"process_sets={process_sets!r} is not allowed. Pass a list of ProcessSet, or 'dynamic'.")
        sets.start_process_sets([] if process_sets is None or isinstance(process_sets, str) else process_sets)
        self._world = here

    def shutdown(self) -> None:
        """End the use of Horovod. init() may be called again."""
        if self._world is not None:
            self._world = None
            sets.stop_process_sets()

    def is_initialized(self) -> bool:
        """Return True between init() and shutdown()."""
        return self._world is not None

    def rank(self) -> int:
        """Return the rank of this process."""
        return self._initialized_world().rank

    def size(self) -> int:
        """Return the number of ranks."""
        return self._initialized_world().size

    def local_rank(self) -> int:
        """Return the number of this process among the ranks of its host."""
        return self._initialized_world().local_rank

    def local_size(self) -> int:
        """Return the number of ranks on this host."""
        return self._initialized_world().local_size

    def cross_rank(self) -> int:
        """Return the number of this host among those that have a rank with this local rank."""
        return self._ranks_with_same_local_rank().index(self._initialized_world().rank)

    def cross_size(self) -> int:
        """Return the number of hosts that have a rank with this local rank."""
        return len(self._ranks_with_same_local_rank())

    def is_homogeneous(self) -> bool:
        """Return True if every host has the same number of ranks."""
        here = self._initialized_world()
        return len({len(here.ranks_on_server_of(rank)) for rank in range(here.size)}) == 1

    def start_timeline(self, file_path: str, mark_cycles: bool = False) -> None:
        """Warn that there is no timeline."""
        self._initialized_world()
        warnings.warn(
            f"hvd.start_timeline({file_path!r}) writes nothing: npu_shim has no timeline. Use tf.profiler.",
            RuntimeWarning,
            stacklevel=2,
        )

    def stop_timeline(self) -> None:
        """Do nothing: there is no timeline."""
        self._initialized_world()

    def mpi_threads_supported(self) -> bool:
        """Return False: there is no MPI."""
        self._initialized_world()
        return False

    mpi_enabled, mpi_built = _constant_answer(False, "there is no MPI"), _constant_answer(False, "there is no MPI")
    gloo_enabled = _constant_answer(True, "the collectives need no MPI, as Gloo's")
    gloo_built = _constant_answer(True, "the collectives need no MPI, as Gloo's")
    nccl_built, ddl_built = _constant_answer(False, "there is no NCCL"), _constant_answer(False, "there is no DDL")
    ccl_built, cuda_built = _constant_answer(False, "there is no oneCCL"), _constant_answer(False, "there is no CUDA")
    rocm_built = _constant_answer(False, "there is no ROCm")

    def _get_process_set_ids_and_ranks(self) -> dict[int, list[int]]:
        return sets.ids_and_ranks()

    def _initialized_world(self) -> World:
        if self._world is None:
            raise ValueError("Horovod has not been initialized; use hvd.init().")
        return self._world

    def _ranks_with_same_local_rank(self) -> list[int]:
        here = self._initialized_world()
        number = here.local_rank
        return [r for r in range(here.size) if here.ranks_on_server_of(r).index(r) == number]


basics = HorovodBasics()
