"""Ranks, start and end, and what this Horovod is built with, as functions: ``hvd.rank()``."""

from npu_shim.horovod.common.basics import basics as _basics

init, shutdown, is_initialized = _basics.init, _basics.shutdown, _basics.is_initialized
rank, size, local_rank, local_size = _basics.rank, _basics.size, _basics.local_rank, _basics.local_size
cross_rank, cross_size, is_homogeneous = _basics.cross_rank, _basics.cross_size, _basics.is_homogeneous
start_timeline, stop_timeline = _basics.start_timeline, _basics.stop_timeline
mpi_threads_supported, mpi_enabled, mpi_built = _basics.mpi_threads_supported, _basics.mpi_enabled, _basics.mpi_built
gloo_enabled, gloo_built, nccl_built, ddl_built = (
    _basics.gloo_enabled,
    _basics.gloo_built,
    _basics.nccl_built,
    _basics.ddl_built,
)
ccl_built, cuda_built, rocm_built = _basics.ccl_built, _basics.cuda_built, _basics.rocm_built
