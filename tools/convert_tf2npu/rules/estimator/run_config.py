"""Replace RunConfig with NPURunConfig.

``NPURunConfig`` is a ``tf.estimator.RunConfig`` that also accepts the NPU options. Positional arguments become
keyword arguments, because ``NPURunConfig`` has other parameters first. A RunConfig with an argument that the NPU does
not support (and that is not None) keeps its class, and ``npu_run_config_init`` prepares it.

The NPU cannot write summaries, so ``NPURunConfig`` disables them. The rule also disables them in the run
configurations of TPUEstimator and contrib.learn, which their Estimators prepare.

With facts of ``npu-shim observe``, ``NPURunConfig`` gets ``mix_compile_mode=True`` if the graph has lookup tables (see
NPU240).

The rule reports these calls:

* Some arguments are hidden behind ``*`` or ``**``, or unknown. Write ``NPURunConfig(...)`` with arguments that it
  accepts.
* With ``-d``, a RunConfig saves checkpoints every N seconds. The ranks of a job must save at the same step, and
  seconds differ between ranks. Use ``save_checkpoints_steps`` with the number of steps of that time.
* ``save_summary_steps`` is not 0. Pass 0.

Before::

    import tensorflow as tf

    config = tf.estimator.RunConfig(FLAGS.model_dir, save_checkpoints_steps=500, device_fn=None)

After::

    import tensorflow as tf
    from npu_shim.npu_init import *

    config = NPURunConfig(model_dir=FLAGS.model_dir, save_checkpoints_steps=500, device_fn=None)

Before::

    from tensorflow import estimator as est

    config = est.RunConfig(train_distribute=strategy)

After::

    from tensorflow import estimator as est
    from npu_shim.npu_init import *

    config = npu_run_config_init(run_config=est.RunConfig(train_distribute=strategy, save_summary_steps=0))

Before::

    import tensorflow as tf

    config = tf.contrib.tpu.RunConfig(
        model_dir=FLAGS.output_dir,
        save_checkpoints_steps=1000)

After::

    import tensorflow as tf

    config = tf.contrib.tpu.RunConfig(
        model_dir=FLAGS.output_dir,
        save_checkpoints_steps=1000,
        save_summary_steps=0)

Untouched::

    import tensorflow as tf
    from mycompany.jobs import RunConfig

    config = RunConfig('night', retries=3)

Untouched::

    import tensorflow as tf
    from npu_shim.npu_init import *

    config = NPURunConfig(model_dir=FLAGS.model_dir)

Untouched::

    import tensorflow as tf

    config = tf.estimator.RunConfig(**run_arguments)
"""

from __future__ import annotations

import ast
import re
from typing import Iterator

from ...analysis.host_operators import estimator_config_of_file, runs_with_tables_in_estimator
from ...analysis.mixed_computing import OPTION as MIXED_COMPUTING
from ...analysis.run_configs import arguments_without_effect
from ...rewrite.call_edits import edit_to_add_argument, edit_to_rename, edits_to_wrap, name_argument
from ...semantics.model import Call, Where
from ...semantics.module_index import Names
from ...semantics.signatures import RUN_CONFIG, Bound, bind_arguments
from ...semantics.tf_types import RUN_CONFIGS
from ...syntax.expressions import constant_or, is_none
from ...syntax.source import Edit, Source
from ..base import Change, Context, Finding, Message

CODE = "NPU102"
CALLS = RUN_CONFIGS
_TPU = re.compile(r"(?:\w+\.)*(?:use_tpu|is_tpu|on_tpu|tpu)")


def check_call(context: Context, call: Call, name: str) -> Iterator[Change | Finding]:
    source = context.source
    if name != "tensorflow.estimator.RunConfig":
        yield from _disable_summaries(context, call)
        return
    if _is_in_npu_run_config_init(context.names, call.node, call.where):
        return
    bound = bind_arguments(call.node, RUN_CONFIG)
    if bound.hidden or bound.unknown:
        yield Finding(
            call.node,
            "some arguments of RunConfig are not visible. Write NPURunConfig(...) with arguments that it accepts",
        )
        return
    if context.distributed and bound.is_given("save_checkpoints_secs"):
        yield Finding(
            bound.args["save_checkpoints_secs"],
            "ranks must save at the same step. Replace save_checkpoints_secs with save_checkpoints_steps",
        )
    foreign = sorted(arguments_without_effect(context, call.node, call.where))
    if foreign:
        prepared: list[Edit] = list(edits_to_wrap(source, call.node, "npu_run_config_init(run_config=", ")"))
        summaries = (
            None
            if "save_summary_steps" in bound.args
            else edit_to_add_argument(source, call.node, "save_summary_steps=0")
        )
        yield Change(
            call.node,
            Message("RunConfig keeps its class because of {0} and is prepared for the NPU", ", ".join(foreign)),
            tuple(prepared + ([summaries] if summaries else [])),
            ("npu_run_config_init",),
        )
        return
    edits: list[Edit] = [edit_to_rename(source, call.node.func, "NPURunConfig")]
    for parameter, value in zip(bound.positional, call.node.args):
        edits.append(name_argument(source, call.node, value, parameter))
    edits += _edits_that_keep_checkpoints_disabled(source, call.node, bound)
    runs = None
    if call.node is estimator_config_of_file(context):
        runs = runs_with_tables_in_estimator(context)
        mixed = edit_to_add_argument(source, call.node, f"{MIXED_COMPUTING}=True") if runs is not None else None
        edits += [mixed] if mixed else []
    yield Change(call.node, "RunConfig replaced with NPURunConfig", tuple(edits), ("NPURunConfig",), runs)


def _edits_that_keep_checkpoints_disabled(source: Source, node: ast.Call, bound: Bound) -> list[Edit]:
    """Return the edits that write 0 steps where None disables checkpoints, as on all ranks but one.

    NPURunConfig takes None as "not given" and saves every 100 steps.
    """
    steps = bound.args.get("save_checkpoints_steps")
    if bound.is_given("save_checkpoints_secs"):
        return []
    if steps is None:
        added = (
            edit_to_add_argument(source, node, "save_checkpoints_steps=0")
            if "save_checkpoints_secs" in bound.args
            else None
        )
        return [added] if added else []
    branches = [steps.body, steps.orelse] if isinstance(steps, ast.IfExp) else [steps]
    return [edit_to_rename(source, branch, "0") for branch in branches if is_none(branch)]


def _disable_summaries(context: Context, call: Call) -> Iterator[Change | Finding]:
    """Disable the summaries of a RunConfig of TPUEstimator or contrib.learn, which are never positional."""
    if any(
        isinstance(parent, ast.If) and child in parent.body and _TPU.fullmatch(context.source.segment(parent.test))
        for child, parent in _parents_with_child(context.names, call.node)
    ):
        return  # it serves a TPU only
    given = {keyword.arg: keyword.value for keyword in call.node.keywords}
    steps = given.get("save_summary_steps")
    if None in given or steps is not None and constant_or(steps, None) in (0, None):
        return
    if steps is not None:
        yield Finding(call.node, "the NPU cannot write summaries. Pass save_summary_steps=0")
        return
    edit = edit_to_add_argument(context.source, call.node, "save_summary_steps=0")
    if edit:
        yield Change(call.node, "summaries disabled in RunConfig", (edit,))


def _parents_with_child(names: Names, node: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
    """Yield each node around a node with its child that leads to the node, from the inside out."""
    for parent in names.ancestors(node):
        yield node, parent
        node = parent


def _is_in_npu_run_config_init(names: Names, node: ast.AST, where: Where) -> bool:
    """Return True if a RunConfig is already an argument of npu_run_config_init."""
    for parent in names.ancestors(node):
        if isinstance(parent, ast.stmt):
            return False
        if (
            isinstance(parent, ast.Call)
            and names.resolve(parent.func, where) == "npu_shim.npu_init.npu_run_config_init"
        ):
            return True
    return False
