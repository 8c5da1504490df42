"""Results of the record: what a row has, if it got worse, and if a measurement is missing."""

from __future__ import annotations

import os
from typing import Callable, Mapping, NamedTuple, Sequence

import verified
from record_list import Program

AGREE, DIFFER, NOT_REPRODUCIBLE, NOT_RUN = "agree", "differ", "not reproducible", "not run"
FAILS, ORIGINAL_FAILS = "conversion does not run", "original does not run"
TRAINS_NOTHING = "original trains nothing here"
VERDICTS = [ORIGINAL_FAILS, TRAINS_NOTHING, FAILS, NOT_RUN, DIFFER, NOT_REPRODUCIBLE, AGREE]  # from the worst


class Result(NamedTuple):
    """The result of a program, a row of results.tsv.

    Attributes:
        name: of the program.
        ran: the commit that ran.
        calls: of TensorFlow in its files.
        rewrites, by_facts: all of them, and those that rest on observed runs.
        reached, unreached: places that are left to people, in code that the observed runs reached or did not reach.
        before: places that are left without facts.
        steps, names: that were compared.
        verdict: of verify; FAILS, ORIGINAL_FAILS or TRAINS_NOTHING where it compared nothing.
        reason: the first value that departs, or the error.
        defect: the verdict on the planted defect, "" without one.
        ranks: the verdict on several ranks, "" without them.
        export: of the trained model, "" without one.
        seconds: of all.
        date, version: of the measurement, the commit of npu_shim.
        was: the figures that an earlier measurement had, if they were better, with its date and commit.
    """

    name: str
    ran: str
    calls: int | None = None
    rewrites: int | None = None
    by_facts: int | None = None
    reached: int | None = None
    unreached: int | None = None
    before: int | None = None
    steps: int | None = None
    names: int | None = None
    verdict: str = ""
    reason: str = ""
    defect: str = ""
    ranks: str = ""
    export: str = ""
    seconds: int | None = None
    date: str = ""
    version: str = ""
    was: str = ""

    @property
    def original_trains(self) -> bool:
        """True if the original runs and trains here, so that a failure is one of the conversion."""
        return self.verdict not in (ORIGINAL_FAILS, TRAINS_NOTHING)

    @property
    def line(self) -> str:
        """The result as text."""
        pairs = zip(self._fields[1:], self[1:])
        return f"{self.name}: " + ", ".join(f"{name} {value}" for name, value in pairs if value not in (None, ""))


def kept(programs: Sequence[Program]) -> verified.Kept:
    """Return the results of a list."""
    return verified.Kept(os.path.join("record", "results.tsv"), Result, [program.name for program in programs])


def is_missing(program: Program, result: Result | None) -> bool:
    """Return True for a program without a result, or with one that lacks a figure which the list declares."""
    if result is None:
        return True
    if not result.original_trains or result.verdict == FAILS:
        return False
    declared = (
        (program.defect, result.defect),
        (program.ranks, result.ranks),
        (program.export, result.export),
    )
    return result.calls is None or any(asked and not measured for asked, measured in declared)


def worse(before: Result | None, now: Result) -> list[str]:
    """Return what got worse since an earlier result, a sentence each."""
    return [sentence for _, sentence in _lost(before, now)]


def with_former_figures(before: Result | None, now: Result) -> Result:
    """Return a result with the figures of the earlier one that were better.

    A result that is neither better nor worse than the earlier one keeps the figures that this one has.
    """
    if before is None:
        return now
    lost = [figure for figure, _ in _lost(before, now)]
    if lost:
        return now._replace(was=f"was {'; '.join(lost)} on {before.date} {before.version}".rstrip())
    return now._replace(was="" if worse(now, before) else before.was)


def _lost(before: Result | None, now: Result) -> list[tuple[str, str]]:
    """Return the figures of an earlier result that were better, each with a sentence."""
    if before is None:
        return []
    lost = []
    if VERDICTS.index(now.verdict) < VERDICTS.index(before.verdict):
        sentence = f"The verdict was {before.verdict!r} and is {now.verdict!r}: {now.reason}"
        lost.append((before.verdict, sentence))
    if isinstance(before.reached, int) and (now.reached or 0) > before.reached:
        sentence = f"{before.reached} places in reached code were left, now {now.reached}."
        lost.append((f"{before.reached} left in reached code", sentence))
    for name, is_good in GOOD.items():
        was, is_now = (getattr(result, name) for result in (before, now))
        if is_good(was) and is_now and not is_good(is_now):
            lost.append((f"{name} {was}", f"{name.capitalize()}: it was {was!r} and is {is_now!r}."))
    return lost


GOOD: Mapping[str, Callable[[str], bool]] = {
    "defect": lambda text: text.startswith("differ"),
    "ranks": lambda text: text.startswith(AGREE),
    "export": lambda text: text.startswith("equal"),
}
