"""Run the original once more if the migrated script departs from it, and compare it with itself."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Callable, Sequence

from npu_shim.rehearsal.comparing import comparison as comparing
from npu_shim.rehearsal.comparing.comparison import Comparison, Departure
from npu_shim.rehearsal.comparing.read_recording import Recording
from npu_shim.rehearsal.failures import run_again
from npu_shim.rehearsal.recording.kinds import FETCH, FINAL, INPUT, KINDS, PRINT
from npu_shim.rehearsal.recording.settings import Race
from npu_shim.rehearsal.result import Itself
from npu_shim.rehearsal.running import Run

AGAIN = "again"  # the folder of the second run, in that of the first
_SHARE = 0.1  # of the difference of the two scripts: what the original alone must depart by to explain it
_UNKNOWN = "The cause is unknown."
_OWN_FOLDER = "Give each run a folder of its own, as in -- --model_dir={run}."
_ADVICE = "Change that line, or compare means with --seeds 5."


def rerun_original(first: Departure, original: Run, report: Callable[[str], None]) -> Recording:
    """Run the original with the same seeds until the value at which the migrated script departs; return the recording.

    Its elements are kept, as elements.largest_differences() needs them. For a printed value it runs to its end.

    Args:
        first: the first departure.
        original: the run of the original.
        report: prints a line about the progress.
    Raises:
        NotRepeated: if it ends otherwise than before.
    """
    is_printed = first.kind == PRINT
    until = "its end" if is_printed else f"step {first.step}"
    report(f"{original.run_text} again until {until}, to compare it with itself")
    return run_again(
        replace(
            original,
            folder=os.path.join(original.folder, AGAIN),
            keep=None if is_printed or first.number is None else (first.kind, first.name, first.number),
            until=None if first.kind in (PRINT, FINAL) else first.step,  # the last final value counts
        )
    )


def drop_varying_prints(
    comparison: Comparison, recorded: Recording, repeated: Recording, tolerance: float
) -> list[str]:
    """Drop the printed numbers by which the original departs from itself, such as times, and lines that it lacks then.

    Args:
        comparison: the comparison of original and migrated script.
        recorded, repeated: the recordings of the original.
        tolerance: of the comparison.
    Returns:
        Their lines and places.
    """
    itself = comparing.compare_recordings(recorded, repeated, tolerance, (PRINT,))
    names = {departure.name for departure in itself.departures}
    names |= {name for kind, name in recorded.streams if kind == PRINT and (kind, name) not in repeated.streams}
    for pair in comparison.compared:
        if pair.original.kind == PRINT and pair.original.name in names:
            pair.differences.clear()
            pair.departures.clear()
    dropped = [departure for departure in comparison.departures if departure.kind == PRINT and departure.name in names]
    comparison.departures = [departure for departure in comparison.departures if departure not in dropped]
    return sorted({departure.name for departure in dropped})


def departure_from_itself(
    comparison: Comparison, recorded: Recording, repeated: Recording, tolerance: float
) -> Itself | None:
    """Return the first value by which the original departs from itself, if that explains the comparison.

    It does if it departs by more than the tolerance up to the step at which the migrated script does, or by a part of
    the same difference there.

    Args:
        comparison: the comparison of original and migrated script.
        recorded, repeated: the recordings of the original.
        tolerance: of the comparison.
    Returns:
        None if the original agrees with itself.
    """
    itself = comparing.compare_recordings(recorded, repeated, tolerance, [kind for kind in KINDS if kind != PRINT])
    first = comparison.first_departure
    assert first is not None
    # The last final value of a variable counts. The second run may end before it.
    itself.compared = [
        pair
        for pair in itself.compared
        if pair.original.kind != FINAL or len(pair.original.values) == len(pair.migrated.values)
    ]
    whole = {(pair.original.kind, pair.original.name) for pair in itself.compared}
    itself.departures = [departure for departure in itself.departures if (departure.kind, departure.name) in whole]
    # The second run ends at the departure, so it lacks values.
    departed = [
        departure for departure in itself.departures if departure.step <= first.step and departure.number is not None
    ]
    if first.number is None:  # a value that one script lacks does not follow from what comes after it in the step
        departed = [departure for departure in departed if departure.sort_key < first.sort_key]
    departed += [departure for departure in _equal_value_departures(itself, first) if not departed]
    if not departed:
        return None
    return describe_departure(departed[0], recorded, repeated)


def describe_departure(value: Departure, recorded: Recording, repeated: Recording) -> Itself:
    """Return a departure of the original from itself, with line and cause."""
    line = recorded.lines.get((value.kind, value.name), "")
    cause = _cause_sentence(recorded, repeated, value.kind)
    return Itself(value.step, value.kind, value.name, value.text, line or None, cause)


def departure_sentences(itself: Itself) -> list[str]:
    """Return sentences about a departure of the original from itself."""
    place = f", at {itself.line}" if itself.line else ""
    text = (
        f"The original departs from itself at step {itself.step}: {itself.kind} {itself.name!r}, "
        f"{itself.values}{place}."
    )
    cause = itself.cause or _UNKNOWN
    return [text, cause if cause.endswith(_OWN_FOLDER) else f"{cause} {_ADVICE}"]


def forced_order_sentences(races: Sequence[Race]) -> list[str]:
    """Return a sentence for each variable that a run reads and updates in no order."""
    by_variable = {race.variable: race for race in reversed(races)}
    return [
        f"{_op_text(race.read, race.read_line)} reads {race.variable}, {_op_text(race.update, race.line)} writes it in "
        "the same run, and no op orders the two. Both scripts are compared with the read first. Order them with "
        "tf.control_dependencies."
        for race in reversed(list(by_variable.values()))
    ]


def _op_text(name: str, line: str) -> str:
    return f"{name} at {line}" if line else name


def _equal_value_departures(itself: Comparison, first: Departure) -> list[Departure]:
    """Return the same value as a departure of the original from itself, if it is a large part of the difference."""
    for pair in itself.compared:
        if (pair.original.kind, pair.original.name) == (first.kind, first.name) and first.number is not None:
            far = max((difference for step, difference in pair.differences if step == first.step), default=0.0)
            if far >= _SHARE * first.difference:
                return [first._replace(text=f"relative difference {far:.1e}", difference=far)]
    return []


def _cause_sentence(recorded: Recording, repeated: Recording, kind: str) -> str | None:
    """Return a sentence about the cause, where it is known."""
    for path in repeated.restored:
        if path not in recorded.restored:
            return f"The second run starts from the checkpoint {path}, which the first one wrote. {_OWN_FOLDER}"
    for (call, value, line), (_, other, _) in zip(recorded.seeds, repeated.seeds):
        if value != other:
            return f"{call} gets {value} and {other} at {line}, from the clock or the system."
    notes, thread = recorded.notes, recorded.notes.queue_thread
    if thread:
        return f"A thread of the script fills a queue at {thread}, and its speed decides what is read."
    if notes.unordered_op:
        return f"The op {notes.unordered_op} at {notes.unordered_line} is not deterministic."
    if repeated.notes.racing_update and kind != INPUT:
        return (
            f"The update at {repeated.notes.racing_update} writes variables while the same run computes with them, "
            "and no op orders the two."
        )
    if kind == FETCH:
        return "The run that fetches it may read a variable before or after it updates it."
    return None
