"""The stages in the vendor's order: pre-checks, float exceptions, fusion, random errors, op by op.

Each changes one thing and compares with the recording. If the difference goes with it, that thing is the cause.
"""

from __future__ import annotations

import json
import os
import pkgutil
from typing import Iterable, Mapping

from npu_shim._tensorflow.types import OptionValue
from npu_shim.dumps import device_overflows, dump_comparison
from npu_shim.dumps.comparison_result import DumpComparison
from npu_shim.dumps.diagnosis.ladder import Ladder, Outcome, Stage
from npu_shim.dumps.diagnosis.stage_results import AGREES, CAUSE, NOT_RUN, Cause, Facts
from npu_shim.dumps.dump_settings import Dumping
from npu_shim.dumps.reports import WRITERS, overflows
from npu_shim.dumps.reports.comparison_text import answer_sentences
from npu_shim.rehearsal import result
from npu_shim.rehearsal.comparing.comparison import compare_recordings
from npu_shim.rehearsal.comparing.read_recording import read_recording
from npu_shim.rehearsal.precision_modes import ALL_FORCED, ALL_MIXED, LOWERED
from npu_shim.rehearsal.recording.kinds import DRAW, FEED, INITIAL, INPUT, PRINT, RATE
from npu_shim.rehearsal.recording.writer import FILE
from npu_shim.rehearsal.reports import write_reports

# causes: title, fix, and codes of findings of the migration tool that are about it; looks: the word that the cause of a
# departure begins with, and the fix
_TEXTS = json.loads(pkgutil.get_data(__name__, "causes.json") or b"")
_FEW = 5
_EXACT = 1e-3  # of the limits, for two runs of one kernel
_OF_SCRIPT = {INPUT: "data order", FEED: "data order", INITIAL: "initial variables", RATE: "learning rate"}


def _run_card_stage(ladder: Ladder) -> Outcome:
    ours = read_recording(ladder.given.reference.folder)
    draws = ours.streams_of_kind(DRAW)
    verified, folder, is_alone = ladder.run_and_compare("run"), ladder.stage_path("run"), False
    if verified.verdict == result.DIFFER and ladder.given.run.ranks:
        is_alone, folder = True, ladder.stage_path("one_rank")
        alone = ladder.run_and_compare("one_rank", as_one_process=True)
        if alone.verdict == result.AGREE:
            return _outcome_with_cause_and_findings(ladder, "sharding", verified.problems)
        verified = alone
    first = verified.first_departure
    about = verified.problems or ["no problem"]
    at = (first.step, first.name) if first else (0, "")
    facts = Facts(folder, is_alone, _npu_options_of_run(folder), *at, verified.migrated.seconds or 0.0)
    if verified.verdict == result.AGREE:
        how = ". Its random numbers are those of the recording: another graph than that of the script" if draws else ""
        return Outcome("the card agrees with the recording" + how, AGREES, None, facts)
    if verified.verdict == result.NOT_RUN:
        return Outcome(about[0], NOT_RUN, None, facts)
    if verified.verdict == result.NOT_REPRODUCIBLE:
        return _outcome_with_cause_and_findings(ladder, "original", about, fix=about[-1])
    if first and first.kind in (INPUT, FEED):
        return _outcome_with_cause_and_findings(ladder, "other data", about)
    theirs = read_recording(folder)
    drawn = {value.digest.tobytes() for draw in theirs.streams_of_kind(DRAW) for value in draw.values}
    missing = []
    for draw in draws:
        if not drawn.issuperset(value.digest.tobytes() for value in draw.values if value.step <= theirs.steps):
            line = ours.lines.get((DRAW, draw.name), "an unknown line")
            missing.append(f"{draw.name} at {line} does not get the numbers of the recording")
    if missing:
        return _outcome_with_cause_and_findings(ladder, "random numbers", [*missing[:_FEW], *about])
    return Outcome(about[0], facts=facts)


def _run_script_stage(ladder: Ladder) -> Outcome:
    verified = ladder.run_and_compare("cpu", on_host=True)
    about, first = verified.problems, verified.first_departure
    if verified.verdict == result.AGREE:
        return Outcome("the CPU agrees with the recording: the script is right, the card differs")
    if verified.verdict != result.DIFFER:
        return Outcome(f"the script is not ruled out. {about[0]}")
    return _outcome_with_cause_and_findings(ladder, _OF_SCRIPT.get(first.kind if first else "", "script"), about)


def _run_precision_stage(ladder: Ladder) -> Outcome:
    options = ladder.facts.options
    mode = options.get("precision_mode_v2") or options.get("precision_mode") or "the default"
    if mode not in ALL_FORCED | ALL_MIXED:
        return Outcome(f"precision_mode is {mode}, which keeps float32 where operators have it")
    if ladder.given.reference.manifest.half:
        return Outcome(f"precision_mode is {mode}, and the recording has the band of half precision")
    verified = ladder.run_and_compare("float32", Dumping(precision=LOWERED))
    if verified.verdict != result.AGREE:
        return Outcome(f"with precision_mode={LOWERED} it differs as with {mode}")
    about = [f"precision_mode={mode} differs, {LOWERED} agrees"]
    if ladder.given.has_loss_scale:
        return _outcome_with_cause_and_findings(ladder, "precision", about, mode=mode)
    return _outcome_with_cause_and_findings(ladder, "loss scale", [*about, "the script has no loss scale"], mode=mode)


def _run_overflow_stage(ladder: Ladder) -> Outcome:
    folder = ladder.stage_path("dumps")
    problem = ladder.run_script("run", Dumping(folder, overflow=True))
    if not os.path.isdir(folder):
        return Outcome(f"no dumps. {problem}")
    report = device_overflows.find_overflows(folder, [], None if ladder.given.has_loss_scale else 1.0)
    write_reports(report, ladder.stage_path(), overflows.WRITERS)
    bad = [entry for entry in report.overflows if entry.verdict == device_overflows.NOT_NORMAL]
    if not bad:
        return Outcome(
            f"{len(report.overflows)} overflows, none that is not normal" + (f". {problem}" if problem else "")
        )
    lines = [line for line in overflows.to_text(report).splitlines() if line.startswith(" ")]
    first = bad[0]
    fix = first.reason.partition(": ")[2] or "keep the operator in float32"
    where = {"operator": first.operator or "an operator", "type": first.type or "not dumped"}
    return _outcome_with_cause_and_findings(ladder, "overflow", lines[:6], **where, fix=f"{fix[:1].upper()}{fix[1:]}.")


def _run_fusion_stage(ladder: Ladder) -> Outcome:
    if ladder.run_and_compare("off", Dumping(fusion="off")).verdict != result.AGREE:
        return Outcome("without fusion it differs, too")
    if ladder.run_and_compare("on").verdict == result.AGREE:
        return Outcome("without fusion it agrees, but so does a second run with it: the difference is random")
    compared = _dump_and_compare(ladder)
    about = ["without fusion the card agrees, with it twice not", *_departure_sentences(compared)]
    return _outcome_with_cause_and_findings(ladder, "fusion", about)


def _run_repeat_stage(ladder: Ladder) -> Outcome:
    problem = ladder.run_script("again")
    if problem:
        return Outcome(f"no second run. {problem}")
    repeated = compare_recordings(
        read_recording(ladder.facts.folder), read_recording(ladder.stage_path("again")), ladder.given.tolerance(False)
    )
    several = [
        departure for departure in repeated.departures if departure.kind != PRINT or departure.name == ladder.facts.name
    ]
    first = min(several, key=lambda departure: departure.step, default=None)
    if first is None or first.step > ladder.facts.step:
        return Outcome("a second run computes the same" + (f" until step {first.step}" if first else ""))
    folders = [ladder.stage_path(name) for name in ("first", "second")]
    problems = [_dump_steps(ladder, f"run_of_{os.path.basename(folder)}", folder) for folder in folders]
    dumped = _compare_dumps(ladder, folders[0], folders[1], _EXACT) if not any(problems) else None
    about = [
        f"two runs differ at step {first.step}: {first.kind} {first.name!r}, {first.text}",
        *_departure_sentences(dumped),
    ]
    return _outcome_with_cause_and_findings(ladder, "random error", about)


def _run_operators_stage(ladder: Ladder) -> Outcome:
    compared = _dump_and_compare(ladder)
    first = compared and compared.first_departure
    if not first:
        return Outcome(_departure_sentences(compared)[0])
    looks = _TEXTS["looks"]
    fix = next((fix for word, fix in looks.items() if first.cause.startswith(word)), looks["spread"])
    return _outcome_with_cause_and_findings(
        ladder, "operator", _departure_sentences(compared), operator=first.operator, type=first.type, fix=fix
    )


def _dump_and_compare(ladder: Ladder) -> DumpComparison | None:
    """Dump the card, and compare with what TensorFlow computes. Return the result, None if there is nothing."""
    cpu = ladder.given.dumps or ladder.stage_path("cpu")
    if not ladder.given.dumps:
        _dump_steps(ladder, "run_of_cpu", cpu, on_host=True)
    _dump_steps(ladder, "run_of_card", ladder.stage_path("card"))
    return _compare_dumps(ladder, ladder.stage_path("card"), cpu)


def _dump_steps(ladder: Ladder, name: str, folder: str, on_host: bool = False) -> str | None:
    """Dump the first step, and the one that departs. Return why the run did not end, None if it did."""
    last = max(ladder.facts.step, 1)
    return ladder.run_script(name, Dumping(folder, sorted({0, last - 1})), steps=last, on_host=on_host)


def _compare_dumps(ladder: Ladder, card: str, other: str, tolerance: float = 1.0) -> DumpComparison | None:
    try:
        compared = dump_comparison.compare_dumps(card, other, tolerance=tolerance)
    except (ValueError, OSError) as error:
        ladder.given.report(f"{ladder.stage}: {error}")
        return None
    write_reports(compared, ladder.stage_path(), WRITERS)
    return compared


def _departure_sentences(compared: DumpComparison | None) -> list[str]:
    """Return the sentences about the first operator that departs."""
    if compared is None:
        return ["no dumps that can be compared"]
    if not compared.first_departure:
        return ["no operator departs beyond its limits: differences of rounding add up. Compare with verify --half"]
    return [line.strip() for line in answer_sentences(compared)]


def _outcome_with_cause_and_findings(ladder: Ladder, name: str, evidence: Iterable[str], **values: str) -> Outcome:
    """Return a cause, with the findings of the tool that are about it.

    Args:
        ladder: the walk.
        name: of the cause in causes.json.
        evidence: sentences.
        values: for its title and its fix.
    """
    text = _TEXTS["causes"][name]
    title, codes = text["title"].format(**values), text.get("findings", "").split()
    findings = [f"{of.place}: {of.code} {of.message}" for of in ladder.given.findings if of.code in codes]
    return Outcome(title, CAUSE, Cause(title, [*evidence, *findings], text["fix"].format(**values)))


def _npu_options_of_run(folder: str) -> Mapping[str, OptionValue]:
    """Return the NPU options that the run got; none of ranks and of a process that never started."""
    return read_recording(folder).notes.npu_options if os.path.isfile(f"{folder}/{FILE}") else {}


STAGES = (
    Stage("card", "the script on the card against the recording: data order, ranks", 2, _run_card_stage),
    Stage("script", "the script on the CPU of this machine: seeds, data, learning rate", 1, _run_script_stage),
    Stage("precision", "precision mode and loss scale", 1, _run_precision_stage),
    Stage("overflow", "float exceptions", 1, _run_overflow_stage),
    Stage("fusion", "fusion off against on", 4, _run_fusion_stage),
    Stage("repeat", "a second run against the first: random errors", 3, _run_repeat_stage),
    Stage("operators", "op by op against what TensorFlow computes", 2, _run_operators_stage),
)
