"""Convert or report a batching call with a dynamic last batch.

Shared by the rules for the methods of datasets and for the functions that batch.
"""

from __future__ import annotations

import ast
import re
from typing import Iterator, NamedTuple

from ...analysis.array_rows import element_count_of_dataset, integer_of
from ...analysis.dataset_reads import Use, Uses
from ...analysis.dataset_uses import uses_of_dataset
from ...analysis.datasets import (
    batched_dataset,
    is_cached,
    is_in_window_function,
    is_repeated_later,
    is_unbatched_later,
    may_vary_by_epoch,
    repeats_forever,
)
from ...analysis.device_placement import is_in_map_function
from ...analysis.host_work import belongs_to_host_code, is_only_printed_or_drawn
from ...analysis.observed_use import ObservedUse
from ...analysis.phase_words import EVAL, OTHER, PREDICT, PREPARE, TRAIN
from ...analysis.train_phase import Phase, phase_of
from ...analysis.training_flag import training_flag_text
from ...facts.kinds import DATASET
from ...rewrite.call_edits import edit_to_add_argument, edits_to_wrap
from ...semantics.model import Call, Where
from ...semantics.module_index import Names
from ...semantics.signatures import Bound
from ...semantics.tf_types import TRAINING_METHODS
from ...semantics.value_flow import origins
from ...syntax.expressions import boxed_constant, last_name
from ...syntax.source import Edit, one_line
from ..base import Change, Context, Finding, Message, Question

_TRAINERS = frozenset({"jax", "haiku", "flax", "torch"})  # which may read their data with tf.data
_TRAINS = re.compile(r"tensorflow\.(keras\.(Model|Sequential|layers|optimizers)|estimator|GradientTape|.*Optimizer)\b")
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)

BY_MASK = "and its mask"  # the end of the messages below on datasets that feed no training
SHARED_SHAPES = (
    "an iterator that reads other datasets has the shapes of this one. "
    "Make all static: {0}=True in training, npu_shim.data.pad_last_batch and its mask in evaluation"
)
_STATIC = frozenset(f"npu_shim.data.{name}" for name in ("drop_in_training", "enforce_static_batch", "pad_last_batch"))
_TOGETHER = {
    frozenset({TRAIN, EVAL}): "training and evaluation",
    frozenset({TRAIN, PREDICT}): "training and prediction",
    frozenset({EVAL, PREDICT}): "evaluation and prediction",
    frozenset({TRAIN, EVAL, PREDICT}): "training, evaluation and prediction",
    frozenset({TRAIN, OTHER}): "training and other code",
    frozenset({TRAIN, PREPARE}): "training and preprocessing",
}

_MOST_STEPS = 20  # from the argument of an initializer to the call that makes its batches


class StaticBatch(NamedTuple):
    """The ways to make the batches of a call static.

    Attributes:
        flag: the argument that drops the last partial batch; None if the function has none.
        drop: the function that drops it, for a function without such an argument, with ``%s`` for the call.
        pad: the function that pads it, with ``%s`` for the call.
    """

    flag: str | None = "drop_remainder"
    drop: str = "npu_shim.data.enforce_static_batch(%s)"
    pad: str = "npu_shim.data.pad_last_batch(%s)"


class Size(NamedTuple):
    """The number of examples, and that of a batch."""

    rows: int
    batch: int


def check_last_batch(
    context: Context, code: str, call: Call, bound: Bound, static: StaticBatch, source: ast.AST | None
) -> Iterator[Change | Finding]:
    """Return the change or the finding for a call that makes batches.

    Args:
        context: its file.
        code: of the rule.
        call: the call.
        bound: its arguments.
        static: how to make its batches static.
        source: the dataset that it reads, if this is an expression.
    """
    value = bound.args.get(static.flag or "")
    if value is not None and boxed_constant(value) != (False,):
        return  # the script decides
    if context.once(_reads_data_for_other_library):
        return
    whole = batched_dataset(context, call.node)
    apart = is_unbatched_later(context, whole)
    if apart or belongs_to_host_code(context, call.node) or _is_static(context, call.node):
        return
    if is_only_printed_or_drawn(context, call.node):
        return
    asks = (Question(DATASET, whole),)
    use = ObservedUse(context.observed_at(code, DATASET, whole))
    if is_in_window_function(context, call.node):
        if use.is_full:
            return
        yield Finding(
            call.node,
            "each bucket of group_by_window ends with a partial batch. "
            "Pass {0}=True if windows hold full batches, or use npu_shim.data.bucket_by_length",
            static.flag,
            asks=asks,
        )
        return
    if is_in_map_function(context, call.node):
        return
    if bound.hidden and static.flag:
        if use.needs_nothing:
            return
        yield Finding(
            call.node,
            "the arguments of this batch call are hidden behind * or **. Pass {0}=True in training",
            static.flag,
            asks=asks,
        )
        return
    size = _dataset_and_batch_size(context, bound, source, call.where)
    harmless = _why_no_partial_batch(context, bound, source, call.where, size)
    phase = Phase(frozenset({TRAIN}), harmless) if harmless else phase_of(call.node, context.names, context.source.text)
    if phase.phases == {PREPARE}:
        return
    is_known = phase.name == TRAIN
    lost = _message_on_lost_examples(context, call, size, source) if is_known and not harmless else ""
    if not is_known and use.trains_only:
        lost = use.lost
    if lost:
        yield Finding(call.node, lost)
        return
    edit = (
        edit_to_add_argument(context.source, call.node, static.flag + "=True")
        if is_known and value is None and static.flag and apart is False
        else None
    )
    uses = uses_of_dataset(call.node, context.names) if edit else Uses((), True)
    if uses.shapes_iterators:
        edits = _edits_of_initializers(context, call.node, uses) if use.trains_only and not use.lost else ()
        if edits:
            yield Change(
                call.node,
                Message("batches of an initializer for training made static (see {0})", phase.because),
                edits,
                ("npu_data",),
                runs=use.runs,
            )
        else:
            yield Finding(call.node, SHARED_SHAPES, static.flag, asks=asks)
        return
    if any(map(_counts_steps, uses.reads)) and not harmless and not is_repeated_later(context, whole):
        # as many steps as there are batches, and Keras begins the dataset anew in each epoch. With fewer batches,
        # training would end with the first one. drop_in_training() keeps the passes.
        yield Change(
            call.node,
            Message("training batches made static (see {0})", phase.because),
            edits_to_wrap(context.source, whole, "npu_data.drop_in_training(", ")"),
            ("npu_data",),
        )
        return
    if edit:
        yield Change(
            call.node,
            Message("batches made static without loss: {0}", harmless)
            if harmless
            else Message("training batches made static (see {0})", phase.because),
            (edit,),
        )
        return
    if use.needs_nothing or use.is_unread and uses_of_dataset(call.node, context.names).is_unread:
        return
    if harmless and static.flag:
        yield Finding(
            call.node,
            "the batch dimension is dynamic. Pass {0}=True, which drops no example: {1}",
            static.flag,
            harmless,
        )
        return
    trains_where_known = use.trains_only and use.trains_where_known
    if (use.is_shared or trains_where_known) and not use.lost and value is None and apart is False:
        yield Change(
            call.node,
            "partial batches dropped in training only",
            edits_to_wrap(context.source, whole, "npu_data.drop_in_training(", ")"),
            ("npu_data",),
            runs=use.runs,
        )
        return
    if use.is_endless:
        return
    if use.trains_only and not is_known and static.flag and phase.phases <= {TRAIN}:
        yield Finding(
            call.node,
            "observed runs only trained on this dataset. Pass {0}=True, unless other runs evaluate with it",
            static.flag,
            asks=asks,
        )
        return
    text = _message_on_dynamic_batch(context, call.node, phase, value is not None, static, brief_text(context, whole))
    yield Finding(call.node, text, asks=asks, unused=use.is_unread)


def _edits_of_initializers(context: Context, dataset: ast.AST, uses: Uses) -> tuple[Edit, ...]:
    """Return the edits that make batches static where iterators begin to read them; none if others may begin there.

    The iterator keeps the shapes of its structure, so that other datasets may have partial batches.
    """
    edits: list[Edit] = []
    for value in uses.initialized if uses.complete else ():
        if not any(source is dataset for source in _only_sources(context, value)):
            return ()
        edits += edits_to_wrap(context.source, value, "npu_data.enforce_static_batch(", ")")
    return tuple(edits)


def _only_sources(context: Context, value: ast.AST) -> Iterator[ast.AST]:
    """Yield the expression of a dataset in the file, that of the dataset whose method it is, and so on; no alternatives."""
    for _ in range(_MOST_STEPS):
        sources = origins(value, context.names.place(value), context.names) if value in context.names.parents else []
        if len(sources) != 1:
            break
        yield sources[0].node
        if not isinstance(sources[0].node, ast.Call) or not isinstance(sources[0].node.func, ast.Attribute):
            break
        value = sources[0].node.func.value


def _counts_steps(use: Use) -> bool:
    """Return True for a read by Keras' fit that says how many steps an epoch has."""
    parent = use.names.parents[use.node]
    call = use.names.parents[parent] if isinstance(parent, ast.keyword) else parent
    keywords = call.keywords if isinstance(call, ast.Call) and use.by in TRAINING_METHODS else []
    counts = [k.value for k in keywords if k.arg == "steps_per_epoch" and boxed_constant(k.value) != (None,)]
    return any(not _is_length_of(count, use.node) for count in counts)


def _is_length_of(node: ast.AST, dataset: ast.AST) -> bool:
    """Return True for ``len(dataset)``, which follows the batches."""
    is_length = isinstance(node, ast.Call) and last_name(node.func) == "len"
    return is_length and [ast.dump(argument) for argument in node.args] == [ast.dump(dataset)]  # type: ignore[attr-defined]


def _is_static(context: Context, node: ast.Call) -> bool:
    """Return True if the script passes these batches to a function of npu_shim that makes them static."""
    return node in context.once(_nodes_of_static_datasets)


def _nodes_of_static_datasets(context: Context) -> frozenset[ast.AST]:
    calls = [call for call in context.names.calls if context.called_names.get(call.node) in _STATIC and call.node.args]
    return frozenset(
        node
        for call in calls
        for node in (
            *(
                part
                for origin in origins(call.node.args[0], call.where, context.names)
                for part in ast.walk(origin.node)
            ),
            *_only_sources(context, call.node.args[0]),
        )
    )


def _dataset_and_batch_size(context: Context, bound: Bound, source: ast.AST | None, where: Where) -> Size | None:
    """Return the number of examples and the batch size, if the script shows both."""
    size = bound.args.get("batch_size")
    batch = integer_of(context, size, where) if size is not None else None
    rows = element_count_of_dataset(context, source, where) if source is not None and batch else None
    return Size(rows, batch) if rows and batch and batch > 0 else None


def _message_on_lost_examples(context: Context, call: Call, size: Size | None, source: ast.AST | None) -> str:
    """Return a message if no batch is full, or if the same examples would be dropped in each epoch."""
    if size is None or source is None:
        return ""
    rows, batch = size
    if rows < batch:
        return Message(
            "the batch size {0} is larger than this dataset of {1}, so drop_remainder=True would leave no "
            "batch. Write batch({2}, drop_remainder=True)",
            batch,
            rows,
            rows,
        )
    dropped = Message("would drop the same {0} of {1} examples in each epoch", rows % batch, rows)
    if is_cached(context, call.node):
        return Message("drop_remainder=True before cache() {0}. Cache before shuffle and batch, and pass it", dropped)
    if may_vary_by_epoch(context, source, call.where):
        return ""
    return Message("drop_remainder=True {0}. Call shuffle({1}) before batch, and pass it", dropped, rows)


def _why_no_partial_batch(
    context: Context, bound: Bound, source: ast.AST | None, where: Where, size: Size | None
) -> str:
    """Return the reason why no batch can be partial, or the empty string."""
    if boxed_constant(bound.args.get("batch_size")) == (1,):
        return "a batch is one example"
    if size is not None and size.rows % size.batch == 0:
        return Message("{0} divides the {1} examples", size.batch, size.rows)
    return "the dataset repeats forever" if source is not None and repeats_forever(context, source, where) else ""


def _message_on_dynamic_batch(
    context: Context, node: ast.Call, phase: Phase, has_flag: bool, static: StaticBatch, shown: str
) -> str:
    """Return the message for a call whose last batch stays dynamic."""
    pad = static.pad.replace("%s", shown)
    feeds = Message("this dataset feeds {0} (see {1})", _phase_text(phase), phase.because)

    def drop_message(condition: str) -> Message:
        if not static.flag:
            fix = static.drop.replace("%s", shown)
            return Message("use {0}", fix) if condition == "True" else Message("use {0} if {1}", fix, condition)
        return Message("pass {0}={1} instead of False" if has_flag else "pass {0}={1}", static.flag, condition)

    if phase.name == TRAIN:
        return Message("{0}. {1}", feeds, drop_message("True").as_sentence())
    if phase.phases and phase.complete and TRAIN not in phase.phases:
        if phase.name == PREDICT:
            return Message("{0}. Without NPUEstimator, use {1} and its mask", feeds, pad)
        return Message("{0}. Use {1} and its mask", feeds, pad)
    if phase.shared:
        trained = brief_text(context, phase.trained) if phase.trained is not None else "dataset"
        return Message("{0}. Only in training, use npu_shim.data.enforce_static_batch({1})", feeds, trained)
    flag = training_flag_text(context, node)
    if flag:
        feeds = Message("this dataset feeds training and evaluation")
        if len(phase.phases) > 1:
            feeds = Message("this dataset feeds training and evaluation (see {0})", phase.because)
        return Message("{0}. {1}", feeds, drop_message(flag).as_sentence())
    if phase.phases and phase.complete:
        function = next((p.name for p in context.names.ancestors(node) if isinstance(p, _FUNCTIONS)), "its function")
        return Message("{0}. Add an is_training argument to {1} and {2}", feeds, function, drop_message("is_training"))
    evidence = Message(" (not all of {0} show it)", phase.because) if phase.phases else ""
    feeds = Message("unclear if this dataset feeds training or evaluation{0}", evidence)
    return Message(
        "{0}. {1} in training, else use npu_shim.data.pad_last_batch", feeds, drop_message("True").as_sentence()
    )


def _phase_text(phase: Phase) -> Message:
    few = phase.phases - {OTHER, PREPARE}
    return Message(_TOGETHER.get(phase.phases if len(few) < 2 else few, "".join(few or phase.phases)))


def brief_text(context: Context, node: ast.AST) -> str:
    """Return an expression in one line, with long parts replaced by an ellipsis."""
    text = context.source.segment(node)
    line = _short_line(text)
    if line or not isinstance(node, ast.Call):
        return line or "(...)"
    name = _short_line(context.source.segment(node.func), 45)
    if name or not isinstance(node.func, ast.Attribute):
        return (name or "(...)") + "(...)"
    arguments = text[context.source.end(node.func) - context.source.start(node) :]
    return "(...)." + node.func.attr + (_short_line(arguments) or "(...)")


def _short_line(text: str, longest: int = 66) -> str:
    """Return a text in one line, or the empty string if it is too long or contains a comment."""
    line = one_line(text)
    return line if len(line) <= longest and "#" not in line else ""


def _reads_data_for_other_library(context: Context) -> bool:
    """Return True for a file that reads data for another library, and trains nothing with TensorFlow."""
    imported = {
        binding.target.partition(".")[0]
        for bindings in context.names.module.bindings.values()
        for binding in bindings
        if binding.kind == "import"
    }
    return not imported.isdisjoint(_TRAINERS) and not any(
        map(_calls_training, [context.names, *_importing_modules(context)])
    )


def _importing_modules(context: Context) -> Iterator[Names]:
    """Yield the other files of the project that import a file, directly or not."""
    for importer in sorted(context.names.importing_files):
        module = context.names.project.module(importer)
        if module is not None:
            yield module.names


def _calls_training(names: Names) -> bool:
    """Return True if a file calls what trains with TensorFlow."""
    return any(_TRAINS.match(names.resolve(call.node.func, call.where) or "") for call in names.calls)
