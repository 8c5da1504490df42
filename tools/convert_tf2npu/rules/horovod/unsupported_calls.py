"""Horovod calls unsupported on the NPU.

With ``-d horovod`` the tool converts rank and size, the optimizer, broadcasts and reductions. Calls about Horovod's
build, its timeline, Python objects and elastic training are unsupported.

Reported::

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
from .advice import advice

CODE = "NPU216"
CALLS = names_of("horovod")


def check_call(context: Context, call: Call, name: str | None) -> Iterator[Result]:
    if context.distributed == "horovod":
        return  # reported by the rule that converts Horovod
    name = name or ""
    yield Finding(call.node, f"horovod {last_part(name)} is unsupported on the NPU. {advice(name)}")
