"""The deliberate changes of a migration: where the tool makes or asks for them, and which ones the original gets too.

A rule that changes numbers on purpose says so in ``DELIBERATE``. Whether the migrated script has such a change is seen
when it runs, so it may be made by the tool or by hand. Then the original runs with the same changes and no others.
"""

from __future__ import annotations

import ast
import os
from dataclasses import replace
from typing import TYPE_CHECKING, Dict, Iterator, List, Sequence

from npu_shim.rehearsal.comparing import TOLERANCE
from npu_shim.rehearsal.comparing.comparison import Comparison
from npu_shim.rehearsal.comparing.read_recording import Recording
from npu_shim.rehearsal.comparing.tolerances import BY_TYPE
from npu_shim.rehearsal.portable import Recorded
from npu_shim.rehearsal.recording.kinds import (
    BATCH,
    FIT,
    GIVEN,
    INPUT_FN,
    LIBRARY_CODE,
    POLICY,
    POLICY_CODE,
    STATIC_INITIALIZER,
    TRAINING_BATCH,
)
from npu_shim.rehearsal.recording.settings import Changes, Place
from npu_shim.rehearsal.result import Change
from npu_shim.rehearsal.running import Run

if TYPE_CHECKING:
    from convert_tf2npu.api import FileResult

Places = Dict[str, List[Place]]  # by the code of a rule


def deliberate_places(results: Sequence[tuple[str, FileResult]]) -> Places:
    """Return the statements in which deliberate rules change or report something that training computes.

    Args:
        results: path and result of each converted file.
    """
    from convert_tf2npu.api import deliberate_changes

    places_by_code: Places = {}
    for path, result in results:
        changes = deliberate_changes(result)
        if changes:
            spans = list(_statement_spans(path))
            for change in changes:
                around = [span for span in spans if span[0] <= change.line <= span[1]]
                first, last = max(around, default=(change.line, change.line))
                places_by_code.setdefault(change.code, []).append(
                    (os.path.relpath(os.path.realpath(path)), first, last)
                )
    return places_by_code


def sentence_by_rule() -> dict[str, str]:
    """Return what each rule changes on purpose."""
    from convert_tf2npu.api import deliberate_rules

    return {code: rule.change for code, rule in deliberate_rules().items()}


def run_with_rounding_rules(original: Run, comparison: Comparison, half: str | None = None) -> Run | None:
    """Return the run of the original with the rules that only round differently, converted in memory.

    Args:
        original: its run.
        comparison: the comparison with it, which has a departure.
        half: the type of 16 bits in which the original computes; its rounding shows at once.
    Returns:
        None if there are no such rules, or rounding is no cause: the first difference is at once, or of equal values.
    """
    from convert_tf2npu.api import deliberate_rules

    known = {} if original.deliberate is None else original.deliberate.places
    codes = [code for code, rule in deliberate_rules().items() if rule.rounds and code in known]
    first = comparison.first_departure
    if not codes or first is None:
        return None
    is_of_half = half is not None and first.difference <= TOLERANCE * BY_TYPE[half]
    if not is_of_half and not any(
        difference for before, difference in comparison.largest_difference_by_step().items() if 0 < before < first.step
    ):
        return None
    codes += [LIBRARY_CODE] if original.convert else []
    return replace(original, convert=_select_options(codes), folder=os.path.join(original.folder, "rounded"))


def rounding_changes(run: Run, comparison: Comparison) -> list[Change]:
    """Return the changes of such a run, if it agrees.

    Args:
        run: of rounded().
        comparison: the comparison without these changes.
    """
    texts = sentence_by_rule()
    codes = [code for option in run.convert or () for code in option.rpartition("=")[2].split(",") if code in texts]
    first = comparison.first_departure
    cost = f"without it the first difference is at step {first.step if first else 0}"
    places = run.deliberate.places if run.deliberate is not None else {}
    return [
        Change(code, texts[code], cost, f"{path}:{first}")
        for code in codes
        if code != LIBRARY_CODE
        for path, first, _ in places[code]
    ]


def _select_options(codes: Sequence[str]) -> list[str]:
    """Return the options of ``npu-shim run`` for a conversion in memory with some rules."""
    return [f"--select={','.join(codes)}"]


def run_with_deliberate_changes(original: Run, migrated: Sequence[Recording]) -> Run:
    """Return the run of the original with the deliberate changes that the migrated script had when it ran.

    Args:
        original: its run; without places it gets no change.
        migrated: the recordings of the migrated script.
    """
    if original.deliberate is None or not migrated:
        return original
    events = migrated[0].deliberate
    batches, in_training, fits, initializers = (
        tuple((event.function, event.number) for event in events if event.what == what)
        for what in (BATCH, TRAINING_BATCH, FIT, STATIC_INITIALIZER)
    )
    had = {event.what for event in events}
    # With TensorFlow 1 the package keras is another library, whose training is not recorded. A script notes it at its
    # end.
    notes = migrated[0].notes
    is_other = str(notes.tensorflow).startswith("1.") and not notes.keras
    library = is_other and migrated[0].end is not None and LIBRARY_CODE in original.deliberate.places
    changes = Changes(
        *(original.deliberate.places, [*batches], INPUT_FN in had, POLICY not in had, library),
        *(in_training, fits, initializers),
    )
    run = replace(original, deliberate=changes)
    return replace(run, convert=_select_options([LIBRARY_CODE])) if library else run


def missing_change_sentences(original: Run, migrated: Sequence[Recording]) -> list[str]:
    """Return a sentence if the migrated script has deliberate changes that a recording of the original lacks."""
    had = original.manifest.deliberate if isinstance(original, Recorded) else None
    has = run_with_deliberate_changes(replace(original, deliberate=Changes()), migrated).deliberate
    if had is None or had.batches is None or has is None or has.batches is None:
        return []
    parts = []
    for what, calls, known in (
        ("a static batch", [*has.batches, *has.training_batches], [*had.batches, *had.training_batches]),
        ("full batches of fit", has.fits, had.fits),
        ("full batches of an iterator", has.static_initializers, had.static_initializers),
    ):
        functions = [function for function, number in calls if (function, number) not in known]
        parts += [f"{what} in {function or 'the script'}" for function in dict.fromkeys(functions)]
    parts += ["a static training input"] * (has.input and not had.input)
    parts += ["float32 policies"] * (has.float32 and not had.float32)
    if not parts:
        return []
    return [
        f"The migrated script has {', '.join(parts)}, and the recording does not. Record it with this script: "
        "verify --record DIR ORIGINAL MIGRATED."
    ]


def deliberate_changes_given_to(recorded: Sequence[Recording], in_half: bool = False) -> list[Change]:
    """Return the deliberate changes that the original was given, each once.

    Args:
        recorded: the recordings of the original.
        in_half: True with ``--half``, which compares with float32 anyway.
    """
    codes = sentence_by_rule()
    changes = [
        Change(event.code, codes[event.code], event.cost, event.place)
        for recording in recorded
        for event in recording.deliberate
        if event.what == GIVEN and not (in_half and event.code == POLICY_CODE)
    ]
    return list(dict.fromkeys(changes))


def _statement_spans(path: str) -> Iterator[tuple[int, int]]:
    """Yield first and last line of each statement of a file, without the statements inside it."""
    with open(path, "rb") as stream:
        tree = ast.parse(stream.read())
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt):
            inside = getattr(node, "body", None)
            last = inside[0].lineno - 1 if inside else max(getattr(part, "lineno", 0) for part in ast.walk(node))
            yield node.lineno, max(node.lineno, last)
