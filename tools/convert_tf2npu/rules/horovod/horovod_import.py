"""Replace the import of Horovod (with ``-d horovod``).

``npu_shim.horovod`` has the modules and names of Horovod for TensorFlow and Keras, over the collectives of the NPU. So the
import is the only thing of Horovod that changes. Sessions, Estimators and the rest are converted as without the option.
Without ``-d horovod`` see NPU254.

Horovod for other frameworks (``horovod.torch``, ``horovod.mxnet``), its launchers (``horovod.runner``,
``horovod.spark``, ``horovod.ray``) and its data service (``horovod.tensorflow.data``) are reported and not converted.
Files that import Horovod for another framework and no TensorFlow get no finding for it.
``horovod.run`` and strings that name a module of Horovod are reported, except strings in ``importlib.import_module`` and
``importlib.util.find_spec``.

Options: -d horovod

Before::

    import os, horovod.tensorflow as hvd  # pylint: disable=import-error
    import tensorflow as tf

    hvd.init()
    opt = hvd.DistributedOptimizer(tf.train.AdamOptimizer(0.001 * hvd.size()), sparse_as_dense=True)
    hooks = [hvd.BroadcastGlobalVariablesHook(0)]
    config = tf.ConfigProto()
    config.gpu_options.visible_device_list = str(hvd.local_rank())
    with tf.Session(config=config) as sess:
        train(sess, hvd, opt, hooks)

After::

    import os, npu_shim.horovod.tensorflow as hvd  # pylint: disable=import-error
    import tensorflow as tf
    from npu_shim.npu_init import *

    hvd.init()
    opt = hvd.DistributedOptimizer(tf.train.AdamOptimizer(0.001 * hvd.size()), sparse_as_dense=True)
    hooks = [hvd.BroadcastGlobalVariablesHook(0)]
    config = tf.ConfigProto()
    config.gpu_options.visible_device_list = str(hvd.local_rank())
    with tf.Session(config=npu_config_proto(config_proto=config)) as sess:
        train(sess, hvd, opt, hooks)

Before::

    try:
        import horovod.tensorflow
    except ImportError:
        horovod = None

    def main(flags):
        if flags.keras:
            from horovod.tensorflow.keras.callbacks import (
                MetricAverageCallback,  # of all ranks
            )
        horovod.tensorflow.init()

After::

    try:
        import npu_shim.horovod.tensorflow
        from npu_shim import horovod
    except ImportError:
        horovod = None

    def main(flags):
        if flags.keras:
            from npu_shim.horovod.tensorflow.keras.callbacks import (
                MetricAverageCallback,  # of all ranks
            )
        horovod.tensorflow.init()

Untouched::

    import horovod.torch as hvd
    import tensorflow as tf

    hvd.init()

Untouched::

    import torch
    import horovod.torch as hvd

    hvd.init()

Untouched::

    import npu_shim.horovod.tensorflow
    from npu_shim import horovod

    horovod.tensorflow.init()
"""

from __future__ import annotations

import ast
import re
from itertools import groupby
from typing import Iterator

from ...analysis.horovod_imports import (
    Imported,
    framework_of,
    horovod_imports,
    is_data_service,
    is_of_other_framework,
    is_of_other_framework_or_launcher,
)
from ...rewrite.npu_imports import edit_adding_after
from ...syntax.expressions import boxed_constant
from ...syntax.source import Edit
from ..base import Change, Context, Finding

CODE = "NPU301"
NEEDS = {"distributed": "horovod"}
SHOWS = "horovod"
_NEW = "npu_shim."
_STRING = re.compile(r"horovod\.((tensorflow|keras|common)\b[\w.]*)?")
_LAUNCHERS = ("run", "runner", "spark", "ray")


def check_file(context: Context) -> Iterator[Change | Finding]:
    imports = horovod_imports(context)
    uses = [(imported.node, imported.name) for imported in imports] + _attribute_uses(context, imports)
    is_apart = is_of_other_framework(context, imports)
    foreign = [use for use in uses if is_of_other_framework_or_launcher(use[1])]
    reported = [use for use in foreign if framework_of(use[1]) in _LAUNCHERS or is_data_service(use[1]) or not is_apart]
    for use in reported[:1] or [use for use in uses if use[1] == "horovod.run"][:1]:
        yield _foreign_name_finding(*use)
    for node, group in groupby(imports, key=lambda imported: imported.node):
        yield from _replace_import(context, node, list(group), bool(foreign))
    yield from _findings_of_strings(context, imports)


def _replace_import(
    context: Context, node: ast.stmt | ast.expr, group: list[Imported], beside_foreign: bool
) -> Iterator[Change | Finding]:
    """Yield the change of one statement or call."""
    kept = [i for i in group if i.is_foreign or beside_foreign and (i.is_shared or i.binds_horovod)]
    if isinstance(node, ast.ImportFrom) and kept:
        group, kept = [], group
    if not all(imported.is_foreign or imported.is_shared for imported in kept):
        yield Finding(
            node, "this file imports Horovod for another framework too. Write import horovod.tensorflow as hvd"
        )
    edits = {edit for imported in group if imported not in kept for edit in _edits_to_import(context, imported)}
    if edits:
        yield Change(node, "import of Horovod replaced by npu_shim.horovod", tuple(sorted(edits)))


def _edits_to_import(context: Context, imported: Imported) -> Iterator[Edit]:
    start = imported.start
    if not imported.binds_horovod:
        yield Edit(start, start, _NEW)
    elif imported.name == "horovod":
        yield Edit(start, start + len("horovod"), _NEW + "horovod as horovod")
    else:
        yield Edit(start, start, _NEW)
        yield edit_adding_after(context.source, imported.node, "from npu_shim import horovod")


def _attribute_uses(context: Context, imports: list[Imported]) -> list[tuple[ast.AST, str]]:
    """Return the uses of Horovod's names as attributes of its modules."""
    uses: list[tuple[ast.AST, str]] = []
    for node, where in context.names.reads if imports else ():
        parent = context.names.parents.get(node)
        name = context.names.spelled_name(parent, where) if isinstance(parent, ast.Attribute) else None
        if parent and name and name.startswith("horovod."):
            uses.append((parent, name))
    return uses


def _foreign_name_finding(node: ast.AST, name: str) -> Finding:
    if is_data_service(name):
        return Finding(
            node,
            "npu_shim has no data service of Horovod. Give each rank its part: dataset.shard(hvd.size(), hvd.rank())",
        )
    module = "horovod." + framework_of(name)
    if framework_of(name) in _LAUNCHERS:
        return Finding(node, "{0} starts ranks with Horovod. Start them with npu-shim launch", module)
    return Finding(node, "{0} is not for TensorFlow. Use horovod.tensorflow or remove it", module)


def _findings_of_strings(context: Context, imports: list[Imported]) -> Iterator[Finding]:
    """Yield findings for the strings that name modules of Horovod."""
    if "horovod." not in context.source.text:
        return
    known = {imported.node for imported in imports}
    for node in ast.walk(context.names.tree):
        value = boxed_constant(node)
        if value and isinstance(value[0], str) and node not in known and _STRING.fullmatch(value[0]):
            yield Finding(
                node,
                "this string names a part of Horovod. Write '{0}{1}' if the script looks it up by name",
                _NEW,
                value[0],
            )
