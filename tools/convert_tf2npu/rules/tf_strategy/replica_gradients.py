"""Average gradients that a script computes and applies itself (with ``-d tf_strategy``).

The rule averages the gradients of ``tf.gradients`` over all ranks if they reach ``apply_gradients``, through lists,
clipping and functions. It averages them once, before they are clipped. Optimizers average the gradients of
``compute_gradients`` themselves (see NPU303). The gradients that the iterations of a loop compute, such as towers, are
averaged once where they are applied, not for each iteration. Gradients with another use, such as a penalty, a Hessian or a custom
gradient, belong to the loss of one rank and are not changed.

The rule reports gradients that it cannot trace, and the gradients of a tape. Average them once with ``npu_allreduce``
before ``apply_gradients``. It also reports gradients of all trainable variables in a file that has no optimizer of
TensorFlow: the script updates the variables itself.

Options: -d tf_strategy

Before::

    import tensorflow as tf

    optimizer = tf.train.AdamOptimizer(0.1)
    towers = [optimizer.compute_gradients(loss_of(part)) for part in tf.split(images, 2)]
    gradients = [(tf.add_n([g for g, _ in same]) / 2, same[0][1]) for same in zip(*towers)]
    train_op = optimizer.apply_gradients(gradients)

After::

    import tensorflow as tf
    from npu_shim.npu_init import *

    optimizer = tf.train.AdamOptimizer(0.1)
    towers = [optimizer.compute_gradients(loss_of(part)) for part in tf.split(images, 2)]
    gradients = [(tf.add_n([g for g, _ in same]) / 2, same[0][1]) for same in zip(*towers)]
    train_op = optimizer.apply_gradients([(npu_allreduce(g), v) for g, v in gradients])

Before::

    import tensorflow as tf

    def train(optimizer, loss):
        variables = tf.trainable_variables()
        gradients = tf.gradients(loss, variables)
        gradients, _ = tf.clip_by_global_norm(gradients, 1.0)
        return optimizer.apply_gradients(zip(gradients, variables))

After::

    import tensorflow as tf
    from npu_shim.npu_init import *

    def train(optimizer, loss):
        variables = tf.trainable_variables()
        gradients = npu_allreduce(tf.gradients(loss, variables))
        gradients, _ = tf.clip_by_global_norm(gradients, 1.0)
        return optimizer.apply_gradients(zip(gradients, variables))

Reported::

    import tensorflow as tf

    variables = tf.trainable_variables()
    gradients = tf.gradients(loss, variables)
    train_op = tf.group(*[tf.assign_sub(v, 0.1 * g) for g, v in zip(gradients, variables)])

Untouched::

    import tensorflow as tf

    def critic_loss(critic, mixed):
        slopes = tf.gradients(critic(mixed), [mixed])[0]
        return tf.reduce_mean((tf.norm(slopes, axis=1) - 1.0) ** 2)

    pairs = optimizer.compute_gradients(critic_loss(critic, mixed), variables)
    pairs = [(tf.clip_by_norm(g, 1.0), v) for g, v in pairs]
    train_op = optimizer.apply_gradients(pairs)

Untouched::

    import tensorflow as tf

    @tf.custom_gradient
    def scaled(x):
        y = f(x)
        def grad(dy):
            return tf.gradients(y, x, grad_ys=dy)
        return y, grad

Untouched::

    import tensorflow as tf
    from npu_shim.npu_init import *

    gradients = npu_allreduce(tf.gradients(loss, variables))
    train_op = optimizer.apply_gradients(zip(gradients, variables))
"""

from __future__ import annotations

import ast
from typing import Iterator

from ...analysis.device_placement import is_in_test, only_predicts
from ...analysis.gradient_sources import AVERAGES, BY_HAND, BY_TAPE, UNKNOWN, GradientSource
from ...analysis.gradients import (
    GRADIENTS,
    PAIRS,
    Applied,
    applications_of_loop_gradients,
    apply_gradients_calls_by_file,
    apply_gradients_calls_by_node,
)
from ...analysis.parallel_training import may_be_eager_program
from ...analysis.tensorflow_version import is_tf2_program
from ...rewrite.call_edits import edits_to_wrap
from ...semantics.call_sites import modules_using
from ...semantics.module_index import Names
from ...semantics.resolved_name import ResolvedName
from ...semantics.signatures import bind_arguments
from ...semantics.tf_types import Type
from ...semantics.value_flow import origins
from ...syntax.expressions import last_name
from ..base import Change, Context, Finding, Message

CODE = "NPU305"
NEEDS = {"distributed": "tf_strategy"}
_AVERAGE = "npu_allreduce"
_METHODS = frozenset({"minimize", "apply_gradients", "compute_gradients"})
_ALL_VARIABLES = frozenset(
    "tensorflow." + name
    for name in """trainable_variables get_collection global_variables all_variables
contrib.framework.get_trainable_variables contrib.framework.trainable_variables
contrib.slim.get_trainable_variables contrib.slim.get_model_variables""".split()
)


def check_file(context: Context) -> Iterator[Change | Finding]:
    if "radient" not in context.source.text or is_tf2_program(context):
        return
    names = context.names
    own = [
        a
        for a in apply_gradients_calls_by_node(context).values()
        if _may_apply(context, a) and not is_in_test(context, a.call)
    ]
    yield from _report_gradients_of_tapes(context, own)
    if may_be_eager_program(context):
        return
    once = applications_of_loop_gradients(context)
    mine, averaged = {applied.call for applied in own}, {applied.call for applied in once}
    yield from _average_where_applied(context, [applied for applied in once if applied.call in mine])
    own = [applied for applied in own if applied.call not in averaged]
    everything = own + _applications_in_other_files(context)
    undecided = _untraced_applications(context, everything)
    reached = {
        source.key
        for applied in everything
        if id(applied.call) not in undecided
        for source in applied.sources
        if source.kind == BY_HAND
    }
    for call in names.calls:
        if (
            names.call_key(call.node) in reached
            and context.resolve(call.node.func, call.where) == "tensorflow.gradients"
        ):
            yield Change(
                call.node,
                "gradients averaged over all ranks",
                edits_to_wrap(context.source, call.node, _AVERAGE + "(", ")"),
                (_AVERAGE,),
            )
    reasons = [(applied.call, undecided[id(applied.call)]) for applied in own if id(applied.call) in undecided]
    for node, reason in [*reasons, *_calls_for_updates_by_script(context, everything)]:
        yield Finding(
            node, "{0}. Average them once, before they are clipped: gradients = npu_allreduce(gradients)", reason
        )


def _calls_for_updates_by_script(context: Context, everything: list[Applied]) -> Iterator[tuple[ast.Call, str]]:
    """Yield calls that compute the gradients of all variables if the script updates these itself, with the reason."""
    names = context.names
    words = {last_name(call.node.func) for call in names.calls}
    if words & _METHODS or not AVERAGES.isdisjoint(context.called_names.values()) or only_predicts(context):
        return
    known = {source.key for applied in everything for source in applied.sources}
    for call in names.calls:
        if context.called_names.get(call.node) == "tensorflow.gradients" and names.call_key(call.node) not in known:
            xs = bind_arguments(call.node, GRADIENTS).args.get("xs")
            sources = origins(xs, call.where, names) if xs is not None else []
            if any(source.resolve() in _ALL_VARIABLES for source in sources) and not _is_differentiated(
                call.node, names
            ):
                yield call.node, "no optimizer of TensorFlow applies these gradients"


def _average_where_applied(context: Context, once: list[Applied]) -> Iterator[Change]:
    """Average the gradients of all iterations of a loop where they are applied."""
    for applied in once:
        pairs = bind_arguments(applied.call, PAIRS).args["grads_and_vars"]
        yield Change(
            pairs,
            "gradients of all iterations averaged over all ranks",
            edits_to_wrap(context.source, pairs, f"[({_AVERAGE}(g), v) for g, v in ", "]"),
            (_AVERAGE,),
        )


def _untraced_applications(context: Context, everything: list[Applied]) -> dict[int, str]:
    """Return the calls of apply_gradients whose gradients cannot be averaged where they are computed, with the reason.

    Either all gradients of a call are averaged, or none.
    """
    by_hand = "tensorflow.gradients" in context.called_names.values()
    reasons: dict[int, str] = {}
    for applied in everything:
        for source in applied.sources:
            reason = _reason_against_averaging(source, applied) if source.kind == BY_HAND else None
            if source.kind == UNKNOWN and by_hand:
                reason = "some of these gradients may not come from tf.gradients"
            if reason:
                reasons.setdefault(id(applied.call), reason)
    while True:
        blocked = {
            s.key for applied in everything if id(applied.call) in reasons for s in applied.sources if s.kind == BY_HAND
        }
        more = [
            applied
            for applied in everything
            if id(applied.call) not in reasons and any(s.kind == BY_HAND and s.key in blocked for s in applied.sources)
        ]
        if not more:
            return reasons
        reasons.update((id(applied.call), "some of these gradients are also applied elsewhere") for applied in more)


def _may_apply(context: Context, applied: Applied) -> bool:
    function = applied.call.func
    assert isinstance(function, ast.Attribute)
    return context.types.type_of(function.value, applied.where) in (None, Type.OPTIMIZER, Type.KERAS_OPTIMIZER)


def _applications_in_other_files(context: Context) -> list[Applied]:
    """Return the calls of apply_gradients in the other files of the project."""
    names = context.names
    if not names.is_in_project:
        return []
    return [
        applied
        for other, those in names.project.once(apply_gradients_calls_by_file).items()
        if other != names.path
        for applied in those
    ]


def _report_gradients_of_tapes(context: Context, applied: list[Applied]) -> Iterator[Finding]:
    by_tape: dict[int, GradientSource] = {id(s.node): s for a in applied for s in a.sources if s.kind == BY_TAPE}
    for source in by_tape.values():
        if source.names is context.names:
            yield Finding(
                source.node,
                "the gradients of a tape belong to one rank. Write {0}({1})",
                _AVERAGE,
                context.source.segment(source.node),
            )


def _reason_against_averaging(source: GradientSource, applied: Applied) -> str | None:
    """Return the reason why gradients cannot be averaged where they are computed, or None."""
    names, call = source.names, source.node
    assert isinstance(call, ast.Call)
    if bind_arguments(call, GRADIENTS).is_given("grad_ys"):
        return "some of these gradients start from grad_ys, which may be averaged already"
    if _is_differentiated(call, names):
        return "some of these gradients are differentiated again"
    function = next((p for p in names.ancestors(call) if isinstance(p, ast.FunctionDef)), None)
    if (
        function is None
        or function in names.ancestors(applied.call)
        or isinstance(names.parents.get(function), ast.ClassDef)
    ):
        return None
    others = modules_using(names, function.name)
    itself = ResolvedName(function.name, names.path)
    mentions = [
        m
        for user in [names] + list(others or [])
        for m in user.mentions(function.name)
        if user.resolved_name(m, user.place(m)) in (None, itself)
    ]
    if others is None or len(mentions) > 1:
        return Message("{0} may be called for gradients that are not applied", function.name)
    return None


def _is_differentiated(call: ast.Call, names: Names) -> bool:
    """Return True if the gradients that a call computes are differentiated again."""
    statement = names.parents.get(call)
    words = [t.id for t in getattr(statement, "targets", ()) if isinstance(t, ast.Name)]
    readers = names.once(_arguments_of_gradients)
    return call in readers or any(not readers.get(word, {call}) <= {call} for word in words)


def _arguments_of_gradients(names: Names) -> dict[object, set[ast.Call]]:
    """Return the calls and the names in the arguments of calls of tf.gradients, each with those calls."""
    calls: dict[object, set[ast.Call]] = {}
    for call in names.calls:
        if names.resolve(call.node.func, call.where) == "tensorflow.gradients":
            for node in (node for value in call.node.args for node in ast.walk(value)):
                if isinstance(node, (ast.Name, ast.Call)):
                    calls.setdefault(node.id if isinstance(node, ast.Name) else node, set()).add(call.node)
    return calls
