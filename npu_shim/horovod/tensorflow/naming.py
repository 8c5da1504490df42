"""Names of collectives, by which ranks find each other's."""

from __future__ import annotations

import re
from typing import Sequence

from npu_shim._tensorflow.tf_api import tf
from npu_shim._tensorflow.types import Tensor, Variable


def collective_name(kind: str, name: str | None, tensors: Sequence[Tensor | Variable], ignore_name_scope: bool) -> str:
    """Return the name of a collective, unique in its graph.

    Args:
        kind: of the collective.
        name: the name that the caller gives, or None.
        tensors: what is sent, or the variables whose values are; an unnamed collective is named after the first and
            the last.
        ignore_name_scope: True if name is the same in every name scope.
    """
    if tf.executing_eagerly():  # the n-th use of a name on one rank matches the n-th on the others
        return name or f"Horovod{kind}"
    graph = tf.compat.v1.get_default_graph()
    if name is None:
        ends = [tensors[0]] if len(tensors) == 1 else [tensors[0], tensors[-1]]
        name = "_".join([f"Horovod{kind}", *(re.sub("[^a-zA-Z0-9_]", "_", tensor.name) for tensor in ends)])
    if ignore_name_scope:
        return name
    return graph.unique_name(re.sub("[^A-Za-z0-9_.\\-/]", "_", name))
