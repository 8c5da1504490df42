"""Batches padded to their longest element.

Each batch is as long as its longest element, and the NPU recompiles for each new length, in these cases:

* ``padded_batch`` with ``None`` or -1 in ``padded_shapes``, or without ``padded_shapes``, which TensorFlow 2 allows;
* ``bucket_by_sequence_length`` without ``pad_to_bucket_boundary=True``;
* ``dense_to_ragged_batch`` and ``ragged_batch``.

Such a graph cannot have the loops and conditions of TensorFlow 1 either: see NPU234.

Pad to a fixed length, or to the lengths of a few buckets with ``npu_shim.data.bucket_by_length(dataset, length_of,
[LENGTHS], batch_size)``. Then the NPU compiles once for each length.

With facts of ``npu-shim observe``, padded batches that had one length in all observed runs get it:
``npu_shim.data.fixed_lengths(dataset.padded_batch(32, [None]), [128])`` is an error, with its line, for a later batch of
another length, unless an iterator that reads other datasets has their shapes. If there were several lengths, the
finding names them.

Reported::

    import tensorflow as tf

    dataset = tf.data.Dataset.from_generator(read, tf.int64)
    shapes = ([None], [])
    dataset = dataset.padded_batch(32, shapes, drop_remainder=True)
    other = dataset.padded_batch(32, padded_shapes=([None], []), drop_remainder=True)

Reported::

    import tensorflow as tf

    dataset = dataset.apply(tf.data.experimental.bucket_by_sequence_length(
        length, boundaries, sizes))

Reported::

    import tensorflow as tf

    dataset = tf.data.Dataset.from_generator(read, tf.int64)
    first = dataset.padded_batch(32, {'ids': [-1]}, drop_remainder=True)
    second = dataset.padded_batch(32)
    third = dataset.bucket_by_sequence_length(length, boundaries, sizes)

Reported::

    import tensorflow as tf

    dataset = tf.data.Dataset.from_generator(read, tf.int64)
    model.fit(dataset.apply(tf.data.experimental.dense_to_ragged_batch(32, drop_remainder=True)))

Untouched::

    import tensorflow as tf

    dataset = tf.data.Dataset.from_generator(read, tf.int64)
    dataset = dataset.padded_batch(32, padded_shapes=([128], []), drop_remainder=True)
    dataset = dataset.apply(tf.data.experimental.bucket_by_sequence_length(
        length, boundaries, sizes, pad_to_bucket_boundary=True))

Untouched::

    import tensorflow as tf

    rows = loader.padded_batch(32, padded_shapes=[None])
"""

from __future__ import annotations

import ast
from typing import Iterator

from ...analysis.dataset_uses import uses_of_dataset
from ...analysis.datasets import batched_dataset
from ...analysis.graph_control_flow import control_flow_advice
from ...analysis.host_work import belongs_to_host_code
from ...analysis.observed_lengths import ObservedLengths
from ...analysis.observed_use import ObservedUse
from ...facts.kinds import DATASET
from ...rewrite.call_edits import edit_to_rename, edits_to_wrap, text_with_edits
from ...rewrite.masked_reductions import DATA
from ...semantics.model import Call, Where
from ...semantics.signatures import BUCKET_BY_LENGTH, bind_arguments
from ...semantics.tf_types import Type
from ...syntax.expressions import boxed_constant
from ..base import Change, Context, Finding, Question

CODE = "NPU238"
_RAGGED = "tensorflow.data.experimental.dense_to_ragged_batch"
CALLS = frozenset(
    {
        "tensorflow.data.experimental.bucket_by_sequence_length",
        "tensorflow.contrib.data.bucket_by_sequence_length",
        _RAGGED,
    }
)
METHODS = frozenset({"padded_batch", "bucket_by_sequence_length", "ragged_batch"})
_FIXED = "npu_shim.data.fixed_lengths"
_RECOMPILES = "dynamic batch length: the NPU recompiles for each new length"


def check_method(context: Context, call: Call, method: ast.Attribute) -> Iterator[Change | Finding]:
    if context.types.type_of(method.value, call.where) != Type.DATASET:
        return
    around = context.names.parents[call.node]
    if isinstance(around, ast.Call) and context.called_names.get(around) == _FIXED:
        return
    if method.attr != "padded_batch":
        yield from check_call(context, call, _RAGGED if method.attr == "ragged_batch" else "")
        return
    bound = bind_arguments(call.node, ("batch_size", "padded_shapes", "padding_values"))
    shapes = bound.args.get("padded_shapes")
    if not belongs_to_host_code(context, call.node) and (
        not bound.is_given("padded_shapes") and not bound.hidden or _has_dynamic_length(context, shapes, call.where)
    ):
        seen = context.observed_at(CODE, DATASET, call.node)
        lengths, is_unread = ObservedLengths(seen), ObservedUse(seen).is_unread
        if lengths.are_fixed and not uses_of_dataset(call.node, context.names).shapes_iterators:
            edits = [
                edit_to_rename(context.source, node, str(size))
                for node, size in lengths.unknown_dimensions_with_size(shapes)
            ]
            if edits and shapes is not None:
                after = f", {text_with_edits(context.source, shapes, edits)})"
                edited = edits_to_wrap(context.source, call.node, f"{DATA}.fixed_lengths(", after)
                yield Change(call.node, "padded batches given the length that they have", edited, (DATA,), lengths.runs)
            if edits or not bound.is_given("padded_shapes"):
                return
        asks = (Question(DATASET, call.node),)
        if lengths.buckets:
            yield Finding(
                call.node,
                "{0}, and observed runs had lengths from {1} to {2}. Give padded_shapes a fixed length, or use "
                "npu_shim.data.bucket_by_length with lengths {3}",
                _RECOMPILES,
                *lengths.range,
                list(lengths.buckets),
                asks=asks,
            )
        else:
            yield Finding(
                call.node,
                "{0}. Give padded_shapes a fixed length, or use npu_shim.data.bucket_by_length",
                _RECOMPILES,
                asks=asks,
                unused=is_unread,
            )
        advice = control_flow_advice(context, call.node)
        if advice:
            yield Finding(call.node, advice, unused=is_unread)


def check_call(context: Context, call: Call, name: str) -> Iterator[Finding]:
    if name == _RAGGED:
        if not belongs_to_host_code(context, call.node):
            yield Finding(call.node, "{0}. Use padded_batch with a fixed length", _RECOMPILES)
        return
    bound = bind_arguments(call.node, BUCKET_BY_LENGTH)
    given = bound.args.get("pad_to_bucket_boundary")
    if (
        not bound.hidden
        and (given is None or boxed_constant(given) == (False,))
        and not belongs_to_host_code(context, call.node)
    ):
        whole = batched_dataset(context, call.node)
        if not ObservedLengths(context.observed_at(CODE, DATASET, whole)).are_fixed:
            yield Finding(
                call.node,
                "{0}. Pass pad_to_bucket_boundary=True and few boundaries",
                _RECOMPILES,
                asks=(Question(DATASET, whole),),
            )


def _has_dynamic_length(context: Context, shapes: ast.AST | None, where: Where) -> bool:
    """Return True if a literal of shapes, or the one that a name is bound to, has an unknown dimension.

    A shape of None is not reported.
    """
    if isinstance(shapes, ast.Name):
        binding = context.names.only_binding(shapes, where, "value")
        is_known = binding is not None and not isinstance(binding.node, ast.Name)
        return is_known and binding is not None and _has_dynamic_length(context, binding.node, binding.where)
    return shapes is not None and any(
        isinstance(node, (ast.List, ast.Tuple)) and any(boxed_constant(e) in ((None,), (-1,)) for e in node.elts)
        for node in ast.walk(shapes)
    )
