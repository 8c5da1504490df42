"""A prediction as the sections of a report: the answer, what takes the time, memory, ranks, gains and proposals."""

from __future__ import annotations

from typing import Iterator, Sequence

from npu_shim.distributed.ranktable.model import count_text
from npu_shim.rehearsal.predict.prediction import OnRanks, PredictedMemory, PredictedOp, Prediction, Range, Share
from npu_shim.rehearsal.reports.amounts import amount_text, duration_text
from npu_shim.rehearsal.sections import Section

_MOST = 10  # ops
_LEAST_SHARE = 0.005  # of the ops' time, for a limit or phase to be named
_MOST_NAMES = 3  # of loops and conditions
_EACH_RANK = "each rank has the batch of the script"


def prediction_sections(prediction: Prediction) -> Iterator[Section]:
    """Yield the sections of a prediction."""
    yield Section(f"a step on {prediction.processor}, predicted", list(_answer_lines(prediction)))
    yield _ops_section(prediction)
    yield Section("memory of the device", [f"  {_memory_text(prediction.memory)}"])
    if prediction.ranks:
        yield _ranks_section(prediction.ranks)
    if prediction.gains:
        rows = [[gain.advice, duration_text(gain.seconds), gain.page] for gain in prediction.gains]
        yield Section("what would save time of a step, at most", (), ("change", "saves", "see"), rows, (1,))
    if prediction.proposals:
        proposals = [[f"{row.option}={row.value}", duration_text(row.seconds), row.why] for row in prediction.proposals]
        yield Section("proposed options", (), ("option", "saves", "why"), proposals, (1,))


def _answer_lines(prediction: Prediction) -> Iterator[str]:
    is_bound = prediction.bounded_sizes and not prediction.unknown_sizes and not prediction.unknown_loops
    most, least = ("at most ", "at least ") if is_bound else ("", "")
    device = _range_text(prediction.device)
    yield f"  {most}{_range_text(prediction.step)} a step, of which the device computes {device}"
    if prediction.examples is not None:
        value, low, high = prediction.examples.value, prediction.examples.low, prediction.examples.high
        yield f"  {least}{value:,.0f} examples a second ({low:,.0f} to {high:,.0f})"
    yield f"  phases: {_shares_text(prediction.phases)}"
    yield f"  limits: {_shares_text(prediction.limits)}"
    if prediction.host:
        steps = prediction.steps_in_call
        calls = f"; a call makes {steps:,} steps" if steps > 1 else ""
        yield f"  the host: {duration_text(prediction.host)} of it, a bound by the shortest published step{calls}"
    if prediction.input_rate is not None:
        rate = f"{prediction.input_rate:,.1f} batches a second"
        yield f"  input pipeline on this machine: {rate}; {_input_verdict(prediction)}"
    if prediction.unknown_sizes:
        yield (
            f"  {prediction.unknown_sizes:,} of {prediction.op_runs:,} runs of ops have sizes that only values decide. "
            "They count as 1, so a step takes longer"
        )
    if prediction.bounded_sizes:
        yield (
            f"  {prediction.bounded_sizes:,} of {prediction.op_runs:,} runs of ops have sizes that only values decide. "
            f"With the largest sizes that they can have, they take {duration_text(prediction.bounded_seconds)}"
        )
    if prediction.unknown_loops:
        yield (
            f"  {_names_text('loop', prediction.unknown_loops)} of unknown length. "
            "Each counts once, so a step takes longer"
        )
    if prediction.unknown_branches:
        yield (
            f"  {_names_text('condition', prediction.unknown_branches)} with a branch that only values decide. "
            "The branch that takes longer counts"
        )
    unknown = prediction.not_measured
    if unknown:
        of_others = sum(op.seconds for op in prediction.ops if op.measured != "type")
        share = of_others / (sum(op.seconds for op in prediction.ops) or 1.0)
        yield (
            f"  {unknown:,} of {prediction.op_runs:,} runs of ops, {100 * share:.0f} % of the time, are of types that "
            "nobody has measured on this family of processors: their times are those of similar types"
        )
    yield "  The range of a step is that of published steps, the device's that of profiles. Nothing was run on a card"


def _input_verdict(prediction: Prediction) -> str:
    """Return whether the host of a server reads the batches of all its ranks while its devices compute a step."""
    reads, ranks = prediction.input_ranks / (prediction.input_rate or 1.0), prediction.input_ranks
    limits = "limits" if reads > prediction.device.high else "may limit" if reads > prediction.device.low else ""
    whom = f"the {ranks} ranks of a server" if ranks > 1 else "the step"
    return f"it {limits} {whom}" if limits else f"it can feed {whom}"


def _names_text(noun: str, names: Sequence[str]) -> str:
    more = ", ..." if len(names) > _MOST_NAMES else ""
    return f"{count_text(len(names), noun)} ({', '.join(names[:_MOST_NAMES])}{more})"


def _range_text(seconds: Range) -> str:
    return f"{duration_text(seconds.value)} ({duration_text(seconds.low)} to {duration_text(seconds.high)})"


def _shares_text(shares: Sequence[Share]) -> str:
    """Return the shares that count, the largest first."""
    total = sum(share.seconds for share in shares) or 1.0
    shown = [share for share in shares if share.seconds >= _LEAST_SHARE * total]
    return ", ".join(
        f"{share.name} {duration_text(share.seconds)} ({100 * share.seconds / total:.0f} %)"
        for share in sorted(shown, key=lambda share: -share.seconds)
    )


def _ops_section(prediction: Prediction) -> Section:
    total = sum(op.seconds for op in prediction.ops) or 1.0
    rows = [
        [
            op.type,
            f"{op.count:,}",
            duration_text(op.seconds),
            f"{100 * op.seconds / total:.0f} %",
            op.phase,
            op.limit,
            op.measured,
            _shapes_text(op),
            ", ".join(op.lines[:2]),
        ]
        for op in prediction.ops[:_MOST]
    ]
    heads = ("op", "runs", "time", "share", "phase", "limit", "measured", "inputs", "lines")
    more = len(prediction.ops) - len(rows)
    title = f"ops that take most, the first {len(rows)} of {len(prediction.ops)}" if more else "ops"
    return Section(title, (), heads, rows, (1, 2, 3))


def _shapes_text(op: PredictedOp) -> str:
    shown = " ".join(op.inputs[:2])
    return shown + (" ..." if len(op.inputs) > 2 else "")


def _memory_text(memory: PredictedMemory) -> str:
    parts = {
        "parameters": memory.parameters,
        "optimizer": memory.optimizer,
        "activations": memory.activations,
        "workspace": memory.workspace,
    }
    needed = sum(parts.values())
    text = f"{amount_text(needed, 'B', 1024)}: " + ", ".join(
        f"{name} {amount_text(number, 'B', 1024)}" for name, number in parts.items() if number
    )
    if memory.card:
        fits = "fits into" if needed <= memory.card else "does not fit into"
        text += f"; {fits} the card's {amount_text(memory.card, 'B', 1024)}"
    if memory.batch is not None and memory.largest_batch is not None:
        text += f". Batch {memory.batch:,} now; {memory.largest_batch:,} fits at most"
    elif memory.why:
        text += f". The largest batch is not known: {memory.why}"
    return text


def _ranks_section(ranks: Sequence[OnRanks]) -> Section:
    rows = [
        [
            f"{row.ranks:,}",
            duration_text(row.seconds),
            duration_text(row.collectives),
            duration_text(row.exposed),
            f"{100 * row.efficiency:.1f} %",
        ]
        for row in ranks
    ]
    heads = ("ranks", "step", "collectives", "not hidden", "efficiency")
    return Section(f"on several ranks ({_EACH_RANK})", (), heads, rows, (0, 1, 2, 3, 4))
