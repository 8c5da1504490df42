"""Sessions that are never closed.

A session occupies the NPU until it is closed, also if an object keeps it and nothing closes it. The vendor's package
closes the device when Python ends, and the session must be closed before. In a program that imports
``npu_shim.npu_init``, as all do whose sessions the tool configures, npu_shim closes the sessions that are open then.

The rule reports a session in a program that does not import it, such as one whose configuration is hidden behind ``*``.
Close such a session in a method ``close()`` or ``__exit__()`` of the object, or use a ``with`` statement. In any program
this frees the NPU earlier, for a session that follows.

Reported::

    import tensorflow as tf

    class Model:
        def __init__(self, *options):
            self.sess = tf.Session(*options)

        def predict(self, x):
            return self.sess.run(self.y, {self.x: x})

Untouched::

    import tensorflow as tf
    from npu_shim.npu_init import *

    class Model:
        def __init__(self):
            self.sess = tf.Session(config=npu_config_proto())

        def predict(self, x):
            return self.sess.run(self.y, {self.x: x})

Untouched::

    import tensorflow as tf

    class Model:
        def __init__(self, *options):
            self.sess = tf.Session(*options)

        def __exit__(self, *error):
            self.sess.close()

Untouched::

    import tensorflow as tf
    from npu_shim.npu_init import *

    class Model:
        def predict(self, x):
            with tf.Session(config=npu_config_proto()) as sess:
                return sess.run(self.y, {self.x: x})

Untouched::

    import requests
    import tensorflow as tf

    class Client:
        def __init__(self):
            self.session = requests.Session()
"""

from __future__ import annotations

import ast
from typing import Iterator

from ...analysis.device_placement import is_in_test
from ...analysis.host_work import is_on_host
from ...analysis.session_patch import gets_session_patch
from ...semantics.model import Call
from ...semantics.tf_types import SESSIONS
from ..base import Context, Finding

CODE = "NPU206"
CALLS = SESSIONS
_ENDS = frozenset({"close", "__exit__", "__enter__"})


def check_call(context: Context, call: Call, name: str) -> Iterator[Finding]:
    statement = context.names.parents.get(call.node)
    target = statement.targets[0] if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None
    if (
        not isinstance(target, ast.Attribute)
        or context.names.owner_class(target.value, call.where) is None
        or is_in_test(context, call.node)
        or is_on_host(context, call.node)
        or context.once(_may_be_closed, target.attr)
        or gets_session_patch(context)
    ):
        return
    yield Finding(
        call.node,
        "this session is never closed and occupies the NPU. Call {0}.close() in a method close() or __exit__()",
        context.source.segment(target),
    )


def _may_be_closed(context: Context, attribute: str) -> bool:
    """Return True if the value of an attribute is closed, or passed to code that may close it."""
    for mention in context.names.mentions(attribute):
        parent = context.names.parents.get(mention)
        if isinstance(mention, ast.Attribute) and (
            isinstance(parent, ast.Attribute)
            and parent.attr in _ENDS
            or not isinstance(parent, (ast.Attribute, ast.Call, ast.keyword))
        ):
            return True
    return False
