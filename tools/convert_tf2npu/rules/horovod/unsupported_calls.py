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

from typing import Iterator

from ...semantics.model import Call
from ...syntax.expressions import last_part
from ...tf_api.support import names_of
from ..base import Context, Finding, Result
from .instead import instead

CODE = "NPU216"
CALLS = names_of("horovod")


def check_call(context: Context, call: Call, name: str | None) -> Iterator[Result]:
    if context.distributed == "horovod":
        return  # the rule that turns Horovod over tells it
    name = name or ""
    yield Finding(call.node, "horovod {} has no counterpart on the NPU; {}".format(last_part(name), instead(name)))
