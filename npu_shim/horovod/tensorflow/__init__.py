"""``import npu_shim.horovod.tensorflow as hvd``: Horovod's interface for TensorFlow."""

from types import ModuleType as _ModuleType

from npu_shim.horovod.common.process_sets import *  # noqa: F403
from npu_shim.horovod.common.rank_functions import *  # noqa: F403
from npu_shim.horovod.common.util import (
    check_extension as check_extension,
    gpu_available as gpu_available,
    split_list as split_list,
)
from npu_shim.horovod.tensorflow import elastic as elastic, mpi_ops as mpi_ops, util as util
from npu_shim.horovod.tensorflow.compression import Compression as Compression
from npu_shim.horovod.tensorflow.functions import *  # noqa: F403
from npu_shim.horovod.tensorflow.mpi_ops import (
    Adasum as Adasum,
    Average as Average,
    Max as Max,
    Min as Min,
    Product as Product,
    Sum as Sum,
    allgather as allgather,
    alltoall as alltoall,
    barrier as barrier,
    broadcast as broadcast,
    broadcast_ as broadcast_,
    check_num_rank_power_of_2 as check_num_rank_power_of_2,
    grouped_allgather as grouped_allgather,
    handle_average_backwards_compatibility as handle_average_backwards_compatibility,
    join as join,
    local_rank_op as local_rank_op,
    local_size_op as local_size_op,
    process_set_included_op as process_set_included_op,
    rank_op as rank_op,
    size_op as size_op,
)
from npu_shim.horovod.tensorflow.optimizer import DistributedOptimizer as DistributedOptimizer
from npu_shim.horovod.tensorflow.reductions import *  # noqa: F403
from npu_shim.horovod.tensorflow.sync_batch_norm import SyncBatchNormalization as SyncBatchNormalization
from npu_shim.horovod.tensorflow.tape import *  # noqa: F403
from npu_shim.horovod.tensorflow.util import _executing_eagerly as _executing_eagerly
from npu_shim.horovod.tensorflow.variables import *  # noqa: F403

__all__ = ["elastic", "mpi_ops", "util"]
__all__ += [name for name, value in vars().items() if not (name.startswith("_") or isinstance(value, _ModuleType))]
