"""Options that make a step faster, each with what the prediction says that it saves."""

from __future__ import annotations

from typing import Iterator, Sequence

from npu_shim.distributed.ranktable.model import RankTable
from npu_shim.rehearsal.precision_modes import MIXED
from npu_shim.rehearsal.predict.configuration_edit import BATCH, KERAS, KERAS_LOOP, LOOP, PRECISION, SPLIT
from npu_shim.rehearsal.predict.gains import (
    LOOPS as LOOP_GAIN,
    PRECISION as PRECISION_GAIN,
    host_seconds,
    steps_of_call,
)
from npu_shim.rehearsal.predict.of_graph import Step
from npu_shim.rehearsal.predict.other_batches import flat_at_batch, trips_at_batch
from npu_shim.rehearsal.predict.prediction import Gain, PredictedMemory, Proposal
from npu_shim.rehearsal.predict.ranks import Message, bucketed, links_of, ranks_of_servers, step_on_ranks

_LEAST = 0.03  # of an example or a step, below which a gain is no proposal
_TILE = 16
_MOST_BATCHES, _MOST_NODES = 4, 12000  # batch sizes that are tried, and nodes of all of them, for the time it takes
_MOST_BUCKETS = 8


def proposals_for(
    step: Step,
    seconds: float,
    memory: PredictedMemory,
    gains: Sequence[Gain],
    gradients: Sequence[Message],
    backward: float,
    ranks: int,
    table: RankTable | None,
) -> list[Proposal]:
    """Return the proposed options, the one that saves most first.

    Args:
        step: that is predicted.
        seconds: of the step on the device.
        memory: of the step.
        gains: of advice.
        gradients: that the ranks would average; none if the step has collectives of its own.
        backward: the seconds after which the backward pass ends.
        ranks: of the job.
        table: its rank table.
    """
    proposals = [*_batch_proposals(step, seconds, memory), *_option_proposals(step, seconds, gains)]
    if ranks > 1:
        proposals += _split_proposals(step, seconds, gradients, backward, ranks_of_servers(ranks, table))
    return sorted(proposals, key=lambda proposal: -proposal.seconds)


def _batch_proposals(step: Step, seconds: float, memory: PredictedMemory) -> Iterator[Proposal]:
    """Yield the largest batch that fits and whose examples take 3 % less than those of half the batch."""
    batch, largest = memory.batch, memory.largest_batch or 0
    if not batch:
        return
    tries = min(_MOST_BATCHES, _MOST_NODES // len(step.flat.nodes))
    host = host_seconds(step)
    better, takes = batch, (seconds + host) / batch
    first = takes
    for size in _larger_batches(batch)[:tries]:
        if size > largest:
            break
        flat = flat_at_batch(step.flat, batch, size)
        at_size = step._replace(flat=flat, trips=trips_at_batch(flat, step.trips))
        of_example = (at_size.seconds() + host) / size
        if of_example > (1 - _LEAST) * takes:
            break
        better, takes = size, of_example
    if better != batch:
        why = f"an example takes {1 - takes / first:.0%} less. Tune the learning rate again; {largest} fit"
        yield Proposal(BATCH, str(better), (first - takes) * batch, why)


def _larger_batches(batch: int) -> list[int]:
    """Return the next power of two, or multiple of 16, and its doubles."""
    size = _TILE * (batch // _TILE + 1) if batch % _TILE and batch > _TILE else 1 << batch.bit_length()
    return [size << doublings for doublings in range(_MOST_BATCHES)]


def _option_proposals(step: Step, seconds: float, gains: Sequence[Gain]) -> Iterator[Proposal]:
    """Yield the options that have the gain of an advice."""
    saved = {gain.advice: gain.seconds for gain in gains}
    if saved.get(PRECISION_GAIN, 0.0) > _LEAST * (seconds + host_seconds(step)):
        why = "operators of the list compute in 16 bits; float16 needs a loss scale"
        yield Proposal(PRECISION, MIXED, saved[PRECISION_GAIN], why)
    if LOOP_GAIN in saved:
        option = KERAS_LOOP if step.trainer == KERAS else LOOP
        why = "at most: the host starts a loop, not each step"
        yield Proposal(option, str(steps_of_call(seconds)), saved[LOOP_GAIN], why)


def _split_proposals(
    step: Step, seconds: float, gradients: Sequence[Message], backward: float, servers: Sequence[int]
) -> Iterator[Proposal]:
    """Yield equal shares of the gradients that hide more of the all-reduce than the strategy of the script."""
    links = links_of(step.device.family)

    def on_ranks(percentages: Sequence[float] | None) -> float:
        return step_on_ranks(seconds, backward, bucketed(gradients, percentages), servers, links).seconds

    splits = [[100 / number] * number for number in range(1, _MOST_BUCKETS + 1) if 100 % number == 0 or number == 8]
    best = min(splits, key=on_ranks)
    saved = on_ranks(None) - on_ranks(best)
    if saved > _LEAST * (seconds + host_seconds(step)):
        value = "[" + ", ".join(f"{share:g}" for share in best) + "]"
        yield Proposal(SPLIT, value, saved, f"hides more of the all-reduce on {sum(servers)} ranks")
