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
from npu_shim.dumps.reports.comparison_text import answers
from npu_shim.rehearsal import result
from npu_shim.rehearsal.comparing.comparison import compare_recordings
from npu_shim.rehearsal.comparing.read_recording import read_recording
from npu_shim.rehearsal.recording.kinds import DRAW, FEED, INITIAL, INPUT, PRINT, RATE
from npu_shim.rehearsal.recording.writer import FILE
from npu_shim.rehearsal.reports import write_reports

# causes: title, fix, and codes of findings of the migration tool that are about it; looks: the word that the cause of a
# departure begins with, and the fix
_TEXTS = json.loads(pkgutil.get_data(__name__, "causes.json") or b"")
_MODES = (
    "force_fp16 fp16 allow_mix_precision allow_mix_precision_fp16 allow_mix_precision_bf16 mixed_float16 mixed_bfloat16"
).split()
_DEFAULT_MODE = "allow_fp32_to_fp16"
_FEW = 5
_EXACT = 1e-3  # of the limits, for two runs of one kernel
_OF_SCRIPT = {INPUT: "data order", FEED: "data order", INITIAL: "initial variables", RATE: "learning rate"}


def _card(ladder: Ladder) -> Outcome:
    ours = read_recording(ladder.given.reference.folder)
    draws = ours.streams_of_kind(DRAW)
    verified, folder, is_alone = ladder.compare("run"), ladder.path("run"), False
    if verified.verdict == result.DIFFER and ladder.given.run.ranks:
        is_alone, folder = True, ladder.path("one_rank")
        alone = ladder.compare("one_rank", alone=True)
        if alone.verdict == result.AGREE:
            return _because(ladder, "sharding", verified.problems)
        verified = alone
    first = verified.first_departure
    about = verified.problems or ["no problem"]
    at = (first.step, first.name) if first else (0, "")
    facts = Facts(folder, is_alone, _options(folder), *at, verified.migrated.seconds or 0.0)
    if verified.verdict == result.AGREE:
        how = ". Its random numbers are those of the recording: another graph than that of the script" if draws else ""
        return Outcome("the card agrees with the recording" + how, AGREES, None, facts)
    if verified.verdict == result.NOT_RUN:
        return Outcome(about[0], NOT_RUN, None, facts)
    if verified.verdict == result.NOT_REPRODUCIBLE:
        return _because(ladder, "original", about, fix=about[-1])
    if first and first.kind in (INPUT, FEED):
        return _because(ladder, "other data", about)
    theirs = read_recording(folder)
    drawn = {value.digest.tobytes() for draw in theirs.streams_of_kind(DRAW) for value in draw.values}
    missing = []
    for draw in draws:
        if not drawn.issuperset(value.digest.tobytes() for value in draw.values if value.step <= theirs.steps):
            line = ours.lines.get((DRAW, draw.name), "an unknown line")
            missing.append(f"{draw.name} at {line} does not get the numbers of the recording")
    if missing:
        return _because(ladder, "random numbers", [*missing[:_FEW], *about])
    return Outcome(about[0], facts=facts)


def _script(ladder: Ladder) -> Outcome:
    verified = ladder.compare("cpu", on_host=True)
    about, first = verified.problems, verified.first_departure
    if verified.verdict == result.AGREE:
        return Outcome("the CPU agrees with the recording: the script is right, the card differs")
    if verified.verdict != result.DIFFER:
        return Outcome(f"the script is not ruled out. {about[0]}")
    return _because(ladder, _OF_SCRIPT.get(first.kind if first else "", "script"), about)


def _precision(ladder: Ladder) -> Outcome:
    options = ladder.facts.options
    mode = options.get("precision_mode_v2") or options.get("precision_mode") or "the default"
    if mode not in _MODES:
        return Outcome(f"precision_mode is {mode}, which keeps float32 where operators have it")
    if ladder.given.reference.manifest.half:
        return Outcome(f"precision_mode is {mode}, and the recording has the band of half precision")
    verified = ladder.compare("float32", Dumping(precision=_DEFAULT_MODE))
    if verified.verdict != result.AGREE:
        return Outcome(f"with precision_mode={_DEFAULT_MODE} it differs as with {mode}")
    about = [f"precision_mode={mode} differs, {_DEFAULT_MODE} agrees"]
    if ladder.given.has_loss_scale:
        return _because(ladder, "precision", about, mode=mode)
    return _because(ladder, "loss scale", [*about, "the script has no loss scale"], mode=mode)


def _overflow(ladder: Ladder) -> Outcome:
    folder = ladder.path("dumps")
    problem = ladder.start("run", Dumping(folder, overflow=True))
    if not os.path.isdir(folder):
        return Outcome(f"no dumps. {problem}")
    report = device_overflows.run(folder, [], None if ladder.given.has_loss_scale else 1.0)
    write_reports(report, ladder.path(), overflows.WRITERS)
    bad = [entry for entry in report.overflows if entry.verdict == device_overflows.NOT_NORMAL]
    if not bad:
        return Outcome(
            f"{len(report.overflows)} overflows, none that is not normal" + (f". {problem}" if problem else "")
        )
    lines = [line for line in overflows.to_text(report).splitlines() if line.startswith(" ")]
    first = bad[0]
    fix = first.reason.partition(": ")[2] or "keep the operator in float32"
    where = {"operator": first.operator or "an operator", "type": first.type or "not dumped"}
    return _because(ladder, "overflow", lines[:6], **where, fix=f"{fix[:1].upper()}{fix[1:]}.")


def _fusion(ladder: Ladder) -> Outcome:
    if ladder.compare("off", Dumping(fusion="off")).verdict != result.AGREE:
        return Outcome("without fusion it differs, too")
    if ladder.compare("on").verdict == result.AGREE:
        return Outcome("without fusion it agrees, but so does a second run with it: the difference is random")
    compared = _departures(ladder)
    about = ["without fusion the card agrees, with it twice not", *_named(compared)]
    return _because(ladder, "fusion", about)


def _repeat(ladder: Ladder) -> Outcome:
    problem = ladder.start("again")
    if problem:
        return Outcome(f"no second run. {problem}")
    repeated = compare_recordings(
        read_recording(ladder.facts.folder), read_recording(ladder.path("again")), ladder.given.tolerance(False)
    )
    several = [
        departure for departure in repeated.departures if departure.kind != PRINT or departure.name == ladder.facts.name
    ]
    first = min(several, key=lambda departure: departure.step, default=None)
    if first is None or first.step > ladder.facts.step:
        return Outcome("a second run computes the same" + (f" until step {first.step}" if first else ""))
    folders = [ladder.path(name) for name in ("first", "second")]
    problems = [_try_to_dump(ladder, f"run_of_{os.path.basename(folder)}", folder) for folder in folders]
    dumped = _compared(ladder, folders[0], folders[1], _EXACT) if not any(problems) else None
    about = [f"two runs differ at step {first.step}: {first.kind} {first.name!r}, {first.text}", *_named(dumped)]
    return _because(ladder, "random error", about)


def _operators(ladder: Ladder) -> Outcome:
    compared = _departures(ladder)
    first = compared and compared.first_departure
    if not first:
        return Outcome(_named(compared)[0])
    looks = _TEXTS["looks"]
    fix = next((fix for word, fix in looks.items() if first.cause.startswith(word)), looks["spread"])
    return _because(ladder, "operator", _named(compared), operator=first.operator, type=first.type, fix=fix)


def _departures(ladder: Ladder) -> DumpComparison | None:
    """Dump the card, and compare with what TensorFlow computes. Return the result, None if there is nothing."""
    cpu = ladder.given.dumps or ladder.path("cpu")
    if not ladder.given.dumps:
        _try_to_dump(ladder, "run_of_cpu", cpu, on_host=True)
    _try_to_dump(ladder, "run_of_card", ladder.path("card"))
    return _compared(ladder, ladder.path("card"), cpu)


def _try_to_dump(ladder: Ladder, name: str, folder: str, on_host: bool = False) -> str | None:
    """Dump the first step, and the one that departs. Return why the run did not end, None if it did."""
    last = max(ladder.facts.step, 1)
    return ladder.start(name, Dumping(folder, sorted({0, last - 1})), steps=last, on_host=on_host)


def _compared(ladder: Ladder, card: str, other: str, tolerance: float = 1.0) -> DumpComparison | None:
    try:
        compared = dump_comparison.run(card, other, tolerance=tolerance)
    except (ValueError, OSError) as error:
        ladder.given.report(f"{ladder.stage}: {error}")
        return None
    write_reports(compared, ladder.path(), WRITERS)
    return compared


def _named(compared: DumpComparison | None) -> list[str]:
    """Return the sentences about the first operator that departs."""
    if compared is None:
        return ["no dumps that can be compared"]
    if not compared.first_departure:
        return ["no operator departs beyond its limits: differences of rounding add up. Compare with verify --half"]
    return [line.strip() for line in answers(compared)]


def _because(ladder: Ladder, name: str, evidence: Iterable[str], **values: str) -> Outcome:
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


def _options(folder: str) -> Mapping[str, OptionValue]:
    """Return the NPU options that the run got; none of ranks and of a process that never started."""
    return read_recording(folder).notes.npu_options if os.path.isfile(f"{folder}/{FILE}") else {}


STAGES = (
    Stage("card", "the script on the card against the recording: data order, ranks", 2, _card),
    Stage("script", "the script on the CPU of this machine: seeds, data, learning rate", 1, _script),
    Stage("precision", "precision mode and loss scale", 1, _precision),
    Stage("overflow", "float exceptions", 1, _overflow),
    Stage("fusion", "fusion off against on", 4, _fusion),
    Stage("repeat", "a second run against the first: random errors", 3, _repeat),
    Stage("operators", "op by op against what TensorFlow computes", 2, _operators),
)
