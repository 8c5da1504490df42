"""Files that each rank lists in an order of its own.

``shard`` gives a rank each n-th file, so all ranks must list the files in the same order. ``tf.data.Dataset.list_files``
shuffles them unless it has ``shuffle=False`` or a seed, and ``glob.glob`` and ``os.listdir`` return them as the file
system has them: ranks, and servers above all, read some files twice and others never. List files with ``shuffle=False``
or sort them, then shard, then shuffle.

Reported::

    import horovod.tensorflow as hvd
    import tensorflow as tf

    files = tf.data.Dataset.list_files('/data/train-*').shard(hvd.size(), hvd.rank())

Reported::

    import glob
    import tensorflow as tf
    from npu_shim.npu_init import *

    def input_fn():
        files = glob.glob('/data/train-*')
        data = tf.data.Dataset.from_tensor_slices(files)
        data = data.shard(get_rank_size(), get_rank_id())
        return data.interleave(tf.data.TFRecordDataset, 4)

Untouched::

    import glob
    import tensorflow as tf
    from npu_shim.npu_init import *

    sorted_files = tf.data.Dataset.list_files('/data/train-*', shuffle=False).shard(get_rank_size(), get_rank_id())
    seeded = tf.data.Dataset.list_files('/data/train-*', seed=1).shard(get_rank_size(), get_rank_id())
    names = tf.data.Dataset.from_tensor_slices(sorted(glob.glob('/data/*'))).shard(get_rank_size(), get_rank_id())

Untouched::

    import os
    import tensorflow as tf
    from npu_shim.npu_init import *

    names = os.listdir('/data')
    names.sort()
    data = tf.data.Dataset.from_tensor_slices(names).shard(get_rank_size(), get_rank_id())

Untouched::

    import tensorflow as tf

    files = tf.data.Dataset.list_files('/data/train-*').shuffle(8)
"""

from __future__ import annotations

import ast
from typing import Iterator

from ...semantics.model import Call, Where
from ...semantics.module_index import Names
from ...semantics.tf_types import Type
from ...semantics.value_flow import origins
from ...syntax.expressions import boxed_constant, last_part
from ..base import Context, Finding

CODE = "NPU288"
METHODS = frozenset({"shard"})
_SHUFFLES = "tensorflow.data.Dataset.list_files"
_UNSORTED = frozenset({"glob.glob", "glob.iglob", "os.listdir", "os.scandir"})
_TAKES_NAMES = frozenset(
    f"tensorflow.data.{name}" for name in ("Dataset.from_tensor_slices", "TFRecordDataset", "TextLineDataset")
)
_DEEPEST = 8  # methods, functions and names between the files and shard


def check_method(context: Context, call: Call, method: ast.Attribute) -> Iterator[Finding]:
    if context.types.type_of(method.value, call.where) != Type.DATASET:
        return
    name = _unordered_listing_function(method.value, call.where, context.names, _DEEPEST)
    if name:
        yield Finding(
            call.node,
            "{0} may list files in another order on each rank. {1} before shard",
            last_part(name),
            "Pass shuffle=False" if name == _SHUFFLES else "Sort them",
        )


def _unordered_listing_function(value: ast.expr, where: Where, names: Names, deepest: int) -> str | None:
    """Return the function that lists the files of a dataset in an order of this rank."""
    for origin in origins(value, where, names) if deepest else ():
        node = origin.node
        if not isinstance(node, ast.Call):
            continue
        name = origin.resolve() or ""
        if name in _UNSORTED:
            return None if isinstance(value, ast.Name) and _is_sorted_in_place(value.id, origin.names) else name
        if name == _SHUFFLES:
            return None if _may_have_fixed_order(node) else name
        inner = node.args[0] if name in _TAKES_NAMES and node.args else None
        if inner is None and not name and isinstance(node.func, ast.Attribute):  # a method of a dataset
            inner = node.func.value
        lister = (
            _unordered_listing_function(inner, origin.where, origin.names, deepest - 1) if inner is not None else None
        )
        if lister:
            return lister
    return None


def _may_have_fixed_order(call: ast.Call) -> bool:
    """Return True if a call of list_files may have a seed or ``shuffle=False``."""
    given = dict(zip(("shuffle", "seed"), call.args[1:]))
    given.update((keyword.arg or "seed", keyword.value) for keyword in call.keywords)
    shuffle = boxed_constant(given.get("shuffle"))
    return "seed" in given or ("shuffle" in given and shuffle not in ((True,), (None,)))


def _is_sorted_in_place(name: str, names: Names) -> bool:
    """Return True if a list is sorted in place somewhere."""
    return any(
        isinstance(call.node.func, ast.Attribute)
        and call.node.func.attr == "sort"
        and isinstance(call.node.func.value, ast.Name)
        and call.node.func.value.id == name
        for call in names.calls
    )
