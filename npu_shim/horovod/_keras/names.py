"""The names of ``hvd`` that Horovod's modules for tf.keras and for the package keras share."""

from npu_shim.horovod._keras.interface import (
    DistributedOptimizer as DistributedOptimizer,
    PartialDistributedOptimizer as PartialDistributedOptimizer,
    load_model as load_model,
)
from npu_shim.horovod._keras.values import (
    allgather as allgather,
    allreduce as allreduce,
    broadcast as broadcast,
    broadcast_global_variables as broadcast_global_variables,
    reducescatter as reducescatter,
)
from npu_shim.horovod.common.process_sets import *  # noqa: F403
from npu_shim.horovod.common.rank_functions import *  # noqa: F403
from npu_shim.horovod.tensorflow.compression import Compression as Compression
from npu_shim.horovod.tensorflow.mpi_ops import (
    Adasum as Adasum,
    Average as Average,
    Max as Max,
    Min as Min,
    Product as Product,
    Sum as Sum,
)
