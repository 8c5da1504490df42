"""Horovod calls without a counterpart on the NPU.

Rank and size, the optimizer, broadcasts and reductions have counterparts (with ``-d horovod``). These have none: they ask
how Horovod was built, write its timeline, exchange Python objects, or make training elastic.

Told::

    import horovod.tensorflow as hvd
    import tensorflow as tf

    settings = hvd.broadcast_object(settings, root_rank=0)
    hvd.start_timeline('timeline.json')

Untouched::

    import horovod.tensorflow as hvd
    import tensorflow as tf

    hvd.init()
    print(hvd.rank(), hvd.size())

Untouched::

    import horovod.torch as hvd
    import tensorflow as tf

    settings = hvd.broadcast_object(settings, root_rank=0)
"""
from __future__ import annotations

from typing import Iterator, Optional

from ..api_support import names_of
from ..registry import Context, Finding, Result
from ..scopes import Call

CODE = 'NPU216'
CALLS = names_of('horovod')
_INSTEAD = {
    'rank_op': 'use the number that get_rank_id() gives',
    'local_rank_op': 'use the number that get_local_rank_id() gives',
    'size_op': 'use the number that get_rank_size() gives',
    'local_size_op': 'use the number that get_local_rank_size() gives',
    'broadcast_object': 'give every rank the same arguments or files instead',
    'allgather_object': 'exchange tensors with hccl_ops.allgather instead',
    'start_timeline': "use the NPU's profiler (profiling_mode=True) instead",
    'stop_timeline': "use the NPU's profiler (profiling_mode=True) instead",
    'is_homogeneous': 'leave it out: every host of a ranktable has the same number of cards',
    'run': 'start again from the last checkpoint instead',
    'TensorFlowKerasState': 'start again from the last checkpoint instead',
}


def check_call(context: Context, call: Call, name: Optional[str]) -> Iterator[Result]:
    if context.distributed == 'horovod':
        return  # the rule that turns Horovod over tells it
    short = (name or '').rsplit('.', 1)[1]
    yield Finding(call.node, 'horovod %s has no counterpart on the NPU; %s' % (
        short, _INSTEAD.get(short, 'leave it out: it asks how Horovod was built, which the NPU does '
                            'not use')))
