"""What becomes of a batching call whose last batch may be smaller: the change, or the words.

Shared by the rules for the methods of datasets and for the functions that batch.
"""

from __future__ import annotations

import ast
import re
from typing import Iterator, NamedTuple

from ..project.context import Context
from ..rewrite.call_edits import add_argument
from ..rewrite.change import Change, Finding, Result
from ..semantics.model import Call, Where
from ..semantics.signatures import Bound
from ..syntax.expressions import constant, last_name
from .datasets import around, in_window, is_endless, unbatched
from .device_placement import in_map_function
from .phase_words import EVAL, PREDICT, TRAIN, meaning, mode_parameter, parameters
from .train_phase import Phase, phase_of

_COST = "its last, smaller batch costs the card one more compilation, unless the batch size divides the examples"
_WINDOW = (
    "each bucket of group_by_window ends with a smaller batch, which costs the card one more compilation; for "
    "training write %s=True, if a window holds a whole batch (else nothing would be left), or "
    "npu_shim.data.bucket_by_length(dataset, length_of, [LENGTHS], batch_size)"
)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class Way(NamedTuple):
    """How a call that makes batches is brought to make batches of one size.

    ``flag`` is the argument that leaves the smaller last batch out, where it has one, ``drop`` and ``pad``
    are what to write around it else, with a place for the call.
    """

    flag: str | None = "drop_remainder"
    drop: str = "npu_shim.data.enforce_static_batch(%s)"
    pad: str = "npu_shim.data.pad_last_batch(%s)"


def judge(context: Context, call: Call, bound: Bound, way: Way, source: ast.AST | None) -> Iterator[Result]:
    """What is to be done, or said, about a call that makes batches.

    Args:
        context: its file.
        call: the call.
        bound: its arguments.
        way: how its batches get one size.
        source: the dataset that it reads, where that is an expression of its own.
    """
    value = bound.args.get(way.flag or "")
    if value is not None and constant(value) != (False,):
        return  # the script decides
    whole = around(context, call.node)
    apart = unbatched(context, whole)
    if apart or stays_on_host(context, call.node):
        return
    if in_window(context, call.node):
        yield Finding(call.node, _WINDOW % way.flag)
        return
    if in_map_function(context, call.node):
        return
    if bound.hidden and way.flag:
        yield Finding(
            call.node,
            "its arguments are hidden behind * or **, so that it cannot be told whether its "
            f"last, smaller batch is left out; training needs {way.flag}=True among them",
        )
        return
    harmless = _loses_nothing(context, bound, source, call.where)
    phase = Phase(frozenset({TRAIN}), harmless) if harmless else phase_of(call.node, context.names, context.source.text)
    edit = (
        add_argument(context.source, call.node, way.flag + "=True")
        if (phase.name == TRAIN and value is None and way.flag and apart is False)
        else None
    )
    if edit:
        yield Change(
            call.node,
            harmless
            and f"batches have one static size, and nothing is lost: {harmless}"
            or f"training batches have one static size (told by {phase.because})",
            (edit,),
        )
        return
    if harmless and way.flag:
        yield Finding(
            call.node,
            f"its batch dimension is not static, and the card cannot plan for it; write {way.flag}=True, "
            f"which loses nothing: {harmless}",
        )
        return
    yield Finding(call.node, _words(context, call.node, phase, value is not None, way, brief(context, whole)))


def _loses_nothing(context: Context, bound: Bound, source: ast.AST | None, where: Where) -> str:
    """Why no batch can be a smaller one, or nothing where one can."""
    if constant(bound.args.get("batch_size")) == (1,):
        return "a batch is one example"
    return "the data repeat for ever" if source is not None and is_endless(context, source, where) else ""


def _words(context: Context, node: ast.Call, phase: Phase, given: bool, way: Way, shown: str) -> str:
    padded = way.pad.replace("%s", shown)

    def dropped(when: str) -> str:
        if not way.flag:
            return way.drop.replace("%s", shown) + ("" if when == "True" else f" where {when}")
        return f"{way.flag}={when}" + (" in place of False" if given else "")

    if phase.name == TRAIN:
        return "it feeds training (by {}); {}; write {}".format(phase.because, _COST, dropped("True"))
    if phase.phases and phase.complete and TRAIN not in phase.phases:
        if phase.name == PREDICT:
            return (
                f"it feeds prediction (by {phase.because}) and stays; {_COST}; NPUEstimator pads it by itself, elsewhere write {padded} "
                "and keep the rows of its mask"
            )
        return f"it feeds {_listed(phase)} (by {phase.because}) and stays; {_COST}; against that write {padded} and give loss and metrics its mask as weights"
    flag = training_flag(context, node)
    if flag:
        by = f" (by {phase.because})" if len(phase.phases) > 1 else ""
        return f"it feeds training and evaluation{by}; {_COST}; write {dropped(flag)}"
    if phase.phases and phase.complete:
        return "it feeds {} (by {}); {}; give its function an argument is_training and write {}".format(
            _listed(phase), phase.because, _COST, dropped("is_training")
        )
    return "cannot tell whether it feeds training or evaluation ({}); for training write {}, for evaluation {}".format(
        phase.because if not phase.phases else f"not all of {phase.because} tell", dropped("True"), padded
    )


def _listed(phase: Phase) -> str:
    return " and ".join(sorted(phase.phases, key=(TRAIN, EVAL, PREDICT).index))


def brief(context: Context, node: ast.AST) -> str:
    """An expression in one line, with what is long left out."""
    text = context.source.segment(node)
    line = _line(text)
    if line or not isinstance(node, ast.Call):
        return line or "(...)"
    name = _line(context.source.segment(node.func), 45)
    if name or not isinstance(node.func, ast.Attribute):
        return (name or "(...)") + "(...)"
    arguments = text[context.source.end(node.func) - context.source.start(node) :]
    return "(...)." + node.func.attr + (_line(arguments) or "(...)")


def _line(text: str, longest: int = 66) -> str:
    """A text in one line, or nothing where it is too long or holds a comment."""
    line = re.sub(r"(?<=[(\[]) | (?=[)\]])", "", " ".join(text.split()))
    return line if len(line) <= longest and "#" not in line else ""


def stays_on_host(context: Context, node: ast.AST) -> bool:
    """Whether code stands in a unit test, in a function that serves, or in one that writes records."""
    for parent in context.names.ancestors(node):
        if isinstance(parent, ast.ClassDef) and (
            parent.name.endswith(("Test", "TestCase", "Tests"))
            or any(last_name(base).endswith("TestCase") for base in parent.bases)
        ):
            return True
        if isinstance(parent, _FUNCTIONS) and (
            parent.name.startswith(("test_", "serving")) or "serving_" in parent.name or _writes(parent)
        ):
            return True
    return False


def _writes(function: ast.AST) -> bool:
    return any(last_name(n) == "TFRecordWriter" for n in ast.walk(function))


def training_flag(context: Context, node: ast.AST) -> str | None:
    """An expression that is true at a node where the code runs for training, as the script would write it."""
    names, source = context.names, context.source
    place = names.place(node)
    for function in [p for p in names.ancestors(node) if isinstance(p, _FUNCTIONS)]:
        for part in ast.walk(function):
            if isinstance(part, (ast.If, ast.IfExp)):
                yes, no = meaning(part.test)
                if (
                    yes == TRAIN
                    and no == EVAL
                    and not isinstance(part.test, ast.BoolOp)
                    and all(names.lookup(n.id, place) for n in ast.walk(part.test) if isinstance(n, ast.Name))
                ):
                    return " ".join(source.segment(part.test).split())
        by_name = mode_parameter(function)
        if by_name:
            return by_name
        if any(p.arg == "mode" for p in parameters(function)):
            keys = next(
                (n for n in ast.walk(names.tree) if isinstance(n, ast.Attribute) and n.attr == "ModeKeys"), None
            )
            if keys is not None:
                return f"mode == {source.segment(keys)}.TRAIN"
    return None
